"""What is an OpenCL device's own: messages of the compiler, memory, queues (test_base.py has the protocol)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from perfport import backend
from perfport.backend import OpenDevice, opencl_device, ptx
from perfport.backend.opencl_launch import Launch
from perfport.model.errors import CompileError, DeviceMemoryError, UnsupportedError


def refused(code: int) -> cl.Error:
    """An error of the runtime."""
    told: Any = SimpleNamespace(code=lambda: code, routine=lambda: "planted", what=lambda: "planted")
    return cl.RuntimeError(told)


def test_error_lines_refer_to_the_kernel_file(opencl: OpenDevice) -> None:
    with pytest.raises(CompileError) as caught:
        opencl.load(backend.get("opencl").build("mine.cl", "\n\n__kernel void k(void) { oops(); }", {}, None))
    assert "mine.cl:3" in caught.value.log


def test_a_buffer_above_the_largest_is_refused_before_it_is_asked_for(opencl: OpenDevice) -> None:
    nbytes = opencl.info.max_alloc_bytes + 1
    with pytest.raises(DeviceMemoryError, match=f"a buffer of {nbytes} bytes exceeds the largest"):
        opencl.empty(nbytes)


@pytest.mark.parametrize("nbytes", [1000, 1008, 1015])
def test_large_buffers_are_filled_by_a_kernel(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    """NVIDIA's driver fails at 2 GiB, where im2col's matrix of 19 images crashed, and in parts every ceiling did."""

    def refused(*args: Any) -> None:
        raise AssertionError("clEnqueueFillBuffer")

    monkeypatch.setattr(opencl_device, "FILLED_BY_KERNEL", 1000)
    buffer = opencl.upload(np.zeros(nbytes, np.uint8))
    with monkeypatch.context() as patch:
        patch.setattr(cl, "enqueue_fill_buffer", refused)
        for byte in (0xFF, 0x3C):
            opencl.fill(buffer, byte)
            assert (opencl.read(buffer, np.uint8, (nbytes,)) == byte).all()
    small = opencl.upload(np.zeros(999, np.uint8))
    opencl.fill(small, 0x3C)
    assert (opencl.read(small, np.uint8, (999,)) == 0x3C).all()


def test_an_image_is_read_and_written_through_one_handle(opencl: OpenDevice) -> None:
    if "images" not in opencl.info.capabilities:
        pytest.skip(f"{opencl.info.id} has no images")
    image = opencl.image(3, 2)
    assert image.read is image.write and (image.width, image.height) == (3, 2)


def test_a_copy_into_an_image_counts_as_a_launch(opencl: OpenDevice) -> None:
    if "images" not in opencl.info.capabilities:
        pytest.skip(f"{opencl.info.id} has no images")
    image, pixels = opencl.image(3, 2), opencl.upload(np.zeros((2, 3, 4), np.float32))
    assert list(opencl.timed(lambda: opencl.copy_to_image(pixels, image)).kernels) == ["copy_buffer_to_image"]


@pytest.mark.parametrize("capabilities", [["opencl"], ["opencl", "full_groups"]], ids=["stated", "tried"])
def test_a_work_group_above_what_the_runtime_states(opencl: OpenDevice, capabilities: list[str]) -> None:
    """It is refused, unless trials have shown that the runtime runs it; if it does not after all, it says so."""
    device: Any = backend.get("opencl").open(opencl.info.model_copy(update={"capabilities": capabilities}))
    source = "__kernel void k(__global int *x) { x[0] = 1; } __kernel void REQD_GROUP(64) only64(__global int *x) {}"
    module = device.load(backend.get("opencl").build("mine.cl", source, {}, None))
    (kernel, only64), buffer = (module.kernel(name) for name in ("k", "only64")), device.empty(4)
    kernel.stated_group = only64.stated_group = 64
    if "full_groups" not in capabilities:
        kernel.resources["max_work_group"] = 64
        with pytest.raises(UnsupportedError, match="needs a work-group of 128"):
            device.launch(kernel, 1, 128, buffer)
        return
    assert kernel.resources["max_work_group"] == opencl.info.max_work_group
    device.launch(kernel, 1, 128, buffer)
    device.finish()
    with pytest.raises(UnsupportedError, match=r"only64 in work-groups of 128: .* refuses the launch"):
        device.launch(only64, 1, 128, buffer)


STEPS = """
__kernel void one(__global int *x, int more) { x[0] += more; }
__kernel void two(__global int *x, int more) { x[0] = 10 * x[0] + more; }
__kernel void REQD_GROUP(8) eight(__global int *x, int more) { x[0] += more; }
"""


class Steps:
    """A device whose kernels change one number, and what its launches have an event for."""

    def __init__(self, opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        self.device: Any = backend.get("opencl").open(opencl.info.model_copy(update={"kind": kind}))
        module = self.device.load(backend.get("opencl").build("steps.cl", STEPS, {}, None))
        self.kernels = {name: module.kernel(name) for name in ("one", "two", "eight")}
        self.x = self.device.upload(np.zeros(1, np.int32))
        self.events: list[str] = []
        traced = Launch.traced

        def seen(launch: Launch) -> Any:
            self.events.append(launch.kernel.name)
            return traced(launch)

        monkeypatch.setattr(Launch, "traced", seen)

    def launch(self, name: str, more: int, group: int = 1, queue: Any = None) -> None:
        self.device.launch(self.kernels[name], 1, group, self.x, np.int32(more), queue=queue)

    def value(self) -> int:
        return int(self.device.read(self.x, np.int32, (1,))[0])


@pytest.fixture(params=["cpu", "gpu"])
def steps(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Steps:
    return Steps(opencl, monkeypatch, request.param)


def test_the_first_and_the_last_launch_of_a_timed_execution_have_events(steps: Steps) -> None:
    times = steps.device.timed(
        lambda: [steps.launch(*step) for step in [("one", 1), ("two", 2), ("two", 3), ("one", 4)]]
    )
    assert steps.events == ["one", "one"] and steps.value() == 127, "all in order, each with its own arguments"
    assert (times.launches, times.busy, times.kernels) == (4, None, {}) and times.span > 0
    steps.events.clear()
    split = steps.device.timed(
        lambda: [steps.launch("one", 1), steps.launch("two", 2), steps.launch("one", 3)], split=True
    )
    assert steps.events == ["one", "two", "one"] and list(split.kernels) == ["one", "two"]
    assert split.busy == sum(split.kernels.values()) <= split.span


@pytest.mark.parametrize("number", [0, 1, 2])
def test_executions_of_two_launches_at_most_are_split_anyway(steps: Steps, number: int) -> None:
    times = steps.device.timed(lambda: [steps.launch(name, 1) for name in ("one", "two")[:number]])
    assert steps.events == list(times.kernels) == ["one", "two"][:number] and times.launches == number
    assert times.busy == sum(times.kernels.values())


def test_launches_that_are_not_timed_have_no_events(steps: Steps) -> None:
    steps.launch("one", 3)
    steps.launch("two", 4)
    steps.device.timed(lambda: None, before=lambda: steps.launch("one", 1))
    assert steps.events == [] and steps.value() == 35


def test_the_span_ends_with_the_last_launch(steps: Steps) -> None:
    """Whatever comes behind it: a command of another kind finds it enqueued, with its event."""

    def execute() -> None:
        for _ in range(3):
            steps.launch("one", 1)
        steps.device.record()
        steps.launch("two", 5)
        steps.device.fill(steps.device.empty(4), 0)

    times = steps.device.timed(execute)
    assert steps.events == ["one", "one", "two"] and times.launches == 4 and steps.value() == 35


def test_a_launch_on_another_queue_of_a_timed_execution_is_traced_at_once(steps: Steps) -> None:
    other = steps.device.queue()

    def execute() -> None:
        steps.launch("one", 1)
        steps.launch("one", 1)
        steps.device.wait(steps.device.record(), other)
        steps.launch("two", 0, queue=other)
        steps.device.wait(steps.device.record(other))
        other.flush()

    times = steps.device.timed(execute)
    steps.device.finish()
    assert steps.events == ["one", "one", "two"] and times.launches == 3 and steps.value() == 20


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("behind", [0, 1])
def test_a_launch_that_the_runtime_refuses_is_an_error_of_the_execution(steps: Steps, before: int, behind: int) -> None:
    def execute() -> None:
        for _ in range(before):
            steps.launch("one", 1)
        steps.launch("eight", 100, group=4)
        for _ in range(behind):
            steps.launch("one", 1)

    with pytest.raises(cl.LogicError, match="INVALID_WORK_GROUP_SIZE"):
        steps.device.timed(execute)
    assert steps.device.timed(lambda: steps.launch("two", 7)).launches == 1, "nothing is left of it"
    assert steps.value() == 10 * before + 7


def test_an_execution_that_fails_leaves_no_launch_behind(steps: Steps) -> None:
    def execute() -> None:
        steps.launch("one", 1)
        steps.launch("one", 1)
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        steps.device.timed(execute)
    steps.launch("two", 0)
    assert steps.value() == 10, "the second was held back, and is dropped"


def test_memory_may_be_given_back_behind_its_last_launch(steps: Steps) -> None:
    other = steps.device.upload(np.zeros(1, np.int32))

    def execute() -> None:
        steps.launch("one", 1)
        steps.device.launch(steps.kernels["one"], 1, 1, other, np.int32(5))
        other.free()

    assert steps.device.timed(execute).launches == 2


def test_errors_of_memory_are_told_as_such(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(launch: Launch) -> None:
        raise refused(cl.status_code.OUT_OF_RESOURCES)

    monkeypatch.setattr(Launch, "enqueue", refuses)
    with pytest.raises(DeviceMemoryError):
        steps.launch("one", 1)


def test_ptx_is_loaded_as_a_binary_no_newer_than_the_driver(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No platform here takes it: what is handed to the runtime is looked at, and its refusal is a compile error."""
    device: Any = backend.get("opencl").open(opencl.info)
    handed = []

    class Program:
        """The runtime's, whose own compiler writes PTX 8.8."""

        def __init__(self, context: Any, first: Any, binaries: Any = None) -> None:
            handed.append((first, binaries))

        def build(self, options: Any = None, cache_dir: Any = None) -> Program:
            if handed[-1][1] is not None:
                raise refused(cl.status_code.BUILD_PROGRAM_FAILURE)
            return self

        def get_info(self, what: Any) -> list[bytes]:
            return [b"// by a driver\n.version 8.8\n.target sm_90\n"]

        def get_build_info(self, of: Any, what: Any) -> str:
            return "planted log"

    monkeypatch.setattr(cl, "Program", Program)
    artifact = backend.get("opencl").assemble("mine.ptx", ".version 9.5\n.target sm_90\n", "dp4a+sm_90")
    assert artifact.options == ("-arch=sm_90",)
    with pytest.raises(CompileError, match=r"mine\.ptx does not compile") as caught:
        device.load(artifact)
    assert caught.value.log == "planted log"
    assert handed[-1] == ([device.device], [b".version 8.8\n.target sm_90\n"])


@pytest.mark.parametrize("takes_ptx", [True, False])
def test_residency_is_put_into_the_runtimes_own_binary(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch, takes_ptx: bool
) -> None:
    """No platform here writes PTX: what is handed to the runtime is looked at."""
    binary = ".version 8.8\n.entry k(\n)\n{\n\t// perfport.resident 160 4\n\tret;\n}\n"
    device: Any = backend.get("opencl").open(
        opencl.info.model_copy(update={"capabilities": ["opencl", *["ptx"] * takes_ptx]})
    )
    handed = []

    class Program:
        """The runtime's."""

        def __init__(self, context: Any, first: Any, binaries: Any = None) -> None:
            handed.append(binaries)

        def build(self, options: Any = None, cache_dir: Any = None) -> Program:
            return self

        def get_info(self, what: Any) -> list[bytes]:
            return [binary.encode()]

    monkeypatch.setattr(cl, "Program", Program)
    device.load(backend.get("opencl").build("mine.cl", "", {}, None))
    assert handed == [None, *[[ptx.with_residency(binary).encode()]] * takes_ptx]
    binary = binary.replace("perfport", "other")
    device.load(backend.get("opencl").build("mine.cl", "", {}, None))
    assert handed[-1] is None, "what asks for nothing is as it was"
