"""Chains of arithmetic do every step that is counted."""

from __future__ import annotations

import numpy as np
import pytest
from ceilings_bench import RATES, some

from perfport.measure.ceilings import (
    KINDS,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import Rate


@pytest.mark.parametrize("name", [name for name in RATES if name in {"fp32_fma", "exp", "rsqrt"}])
def test_floating_point_chains_stay_finite(bench: Bench, name: str) -> None:
    one = KINDS[name]
    assert isinstance(one, Rate)
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 4)
        lanes = shape["groups"] * shape["group"] * shape["width"]
        bench.device.fill(bench.out(lanes), 0xFF)
        chosen.run()
        found = bench.device.read(bench.out(lanes), np.float32, (lanes,))
        assert np.isfinite(found).all() and (found != 0).any(), shape
        per_step = {"fp32_fma": 2}.get(name, 1) * shape["chains"] * lanes
        assert chosen.amount == 512 * per_step, shape


def _integer_step(name: str, x: np.ndarray, c: int) -> np.ndarray:
    if name == "int32_mad":
        return x * x + np.uint32(c)
    if name == "int32_logic":
        return ((x << np.uint32(5)) ^ x) + np.uint32(c)
    return np.uint32(c) + sum(((x >> np.uint32(8 * byte)) & np.uint32(255)) ** np.uint32(2) for byte in range(4))


@pytest.mark.parametrize(("name", "operations"), [("int32_mad", 2), ("int32_logic", 3), ("dp4a", 8)])
def test_integer_chains_do_every_step(bench: Bench, name: str, operations: int) -> None:
    one = KINDS[name]
    c = one.constants[1]  # type: ignore[attr-defined]
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 1)  # type: ignore[attr-defined]
        chosen.run()
        items, width, chains = shape["groups"] * shape["group"], shape["width"], shape["chains"]
        found = bench.device.read(bench.out(items * width), np.uint32, (items, width))
        expected = np.zeros(items, np.uint32)
        for chain in range(chains):
            x = np.arange(items, dtype=np.uint32) + np.uint32(3 + 2 * chain)
            for _ in range(128):
                x = _integer_step(name, x, c)
            expected += x
        assert np.array_equal(found, np.repeat(expected[:, None], width, 1)), shape
        assert chosen.amount == operations * 128 * chains * items * width
