"""Gates hold a queue until they are opened; the kernel's compiles for NVIDIA, and here with a clock that stands."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import nvidia_opencl
import pyopencl as cl
import pytest
from gates import COUNTING, STANDING

from perfport import backend
from perfport.backend import OpenDevice, assembler
from perfport.backend.opencl_gate import SOURCE, EventGate, SpinGate

GATES = {
    "event": EventGate,
    "spin": lambda context, queue: SpinGate(context, queue, source=STANDING),
}


@pytest.mark.parametrize("kind", GATES)
def test_what_is_behind_a_gate_waits_for_it_each_time(opencl: OpenDevice, kind: str) -> None:
    device: Any = opencl
    queue = cl.CommandQueue(device.context)
    gate, word = GATES[kind](device.context, queue), device.upload(np.zeros(1, np.uint32))
    for number in range(3):
        gate.close(queue)
        event = cl.enqueue_fill_buffer(queue, word.handle, np.uint32(number + 1), 0, 4)
        queue.flush()
        time.sleep(0.02)
        assert event.command_execution_status != cl.command_execution_status.COMPLETE
        gate.open()
        queue.finish()
        assert device.read(word, np.uint32, (1,))[0] == number + 1


@pytest.mark.parametrize("kind", GATES)
def test_executions_are_timed_behind_either(opencl: OpenDevice, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host takes 50 ms to enqueue what the device does in much less."""
    device: Any = opencl
    source = "__kernel void k(__global int *x) { x[0] += 1; }"
    kernel = device.load(backend.get("opencl").build("k.cl", source, {}, None)).kernel("k")
    x = device.upload(np.zeros(1, np.int32))
    monkeypatch.setattr(device, "_gate", GATES[kind](device.context, device._own))

    def execute() -> None:
        for _ in range(5):
            device.launch(kernel, 1, 1, x)
            time.sleep(0.01)

    spans = [device.timed(execute).span for _ in range(5)]
    assert device.read(x, np.int32, (1,))[0] == 25 and 0 < min(spans) < 0.01


def test_a_spinning_gate_gives_up(opencl: OpenDevice) -> None:
    device: Any = opencl
    queue = cl.CommandQueue(device.context)
    gate = SpinGate(device.context, queue, 20_000, COUNTING)
    gate.close(queue)
    queue.finish()


@pytest.mark.skipif(bool(nvidia_opencl.MISSING), reason=nvidia_opencl.MISSING)
def test_the_kernel_reads_memory_and_the_clock_each_turn() -> None:
    text = nvidia_opencl.ptx(SOURCE.encode(), ())
    loop = text[text.index(".entry gate") :]
    assert loop.count("ld.volatile.global.u32") == 1 and loop.count("%globaltimer;") == 2
    pytest.importorskip("cupy")
    assembler.assemble("gate.ptx", text, ["-arch=sm_90"])
