"""Streams read and write everything that is counted, once."""

from __future__ import annotations

import numpy as np
import pytest
from ceilings_bench import SMALL, some

from perfport.measure.ceilings import (
    KINDS,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.streams import Stream


def test_the_read_kernel_reads_everything_once(bench: Bench) -> None:
    stream, device = KINDS["dram_read"], bench.device
    assert isinstance(stream, Stream)
    device.write(bench.array(0), np.ones(SMALL // 4, np.float32))
    for shape in some(bench, "dram_read"):
        chosen = stream.execution(bench, shape)
        items = shape["groups"] * shape["group"]
        device.fill(bench.out(items), 0)
        chosen.run()
        sums = device.read(bench.out(items), np.float32, (items,)).astype(np.float64)
        assert sums.sum() == SMALL / 4 and chosen.amount == SMALL, shape


def test_short_chunks_end_with_one_sum_of_each_group(bench: Bench) -> None:
    """A GPU's sweep has them; groups that the array is no multiple of leave some with less, or nothing."""
    stream, device = KINDS["dram_read"], bench.device
    assert isinstance(stream, Stream)
    device.write(bench.array(0), np.ones(SMALL // 4, np.float32))
    for width, unroll, group, groups in ((4, 2, 256, 7), (8, 4, 64, 33), (4, 4, 256, SMALL // 4096)):
        shape = {"width": width, "unroll": unroll, "walk": "sum", "group": group, "groups": groups, "streaming": 0}
        stream.execution(bench, shape)  # makes the buffer
        device.fill(bench.out(groups), 0xFF)
        stream.execution(bench, shape).run()
        sums = device.read(bench.out(groups), np.float32, (groups,)).astype(np.float64)
        vectors = -(-SMALL // 4 // width // groups)
        whole = SMALL // 4 // width // vectors
        assert sums.sum() == SMALL / 4 and (sums[:whole] == vectors * width).all(), shape


def test_only_a_gpu_reads_in_short_chunks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = {name: {shape["walk"] for shape in KINDS[name].shapes(bench, True)} for name in ("dram_read", "dram_copy")}
    assert walks == {"dram_read": {"stride", "chunk"}, "dram_copy": {"stride", "chunk"}}
    monkeypatch.setattr(bench, "cpu", False)
    shapes = [shape for shape in KINDS["dram_read"].shapes(bench, False) if shape["walk"] == "sum"]
    assert {bench.nbytes // shape["groups"] for shape in shapes} == {1 << 17, 1 << 16}
    assert "sum" not in {shape["walk"] for shape in KINDS["dram_copy"].shapes(bench, True)}


@pytest.mark.parametrize(("name", "arrays"), [("dram_copy", 2), ("dram_triad", 3)])
def test_copy_and_triad_write_everything(bench: Bench, name: str, arrays: int) -> None:
    rng, device, stream = np.random.default_rng(5), bench.device, KINDS[name]
    assert isinstance(stream, Stream)
    inputs = [rng.normal(size=SMALL // 4).astype(np.float32) for _ in range(arrays - 1)]
    for number, data in enumerate(inputs):
        device.write(bench.array(number), data)
    expected = inputs[0] if name == "dram_copy" else inputs[0] + np.float32(0.4) * inputs[1]
    for shape in some(bench, name):
        device.fill(bench.array(arrays - 1), 0xFF)
        chosen = stream.execution(bench, shape)
        chosen.run()
        found = device.read(bench.array(arrays - 1), np.float32, (SMALL // 4,))
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6) and chosen.amount == arrays * SMALL, shape
