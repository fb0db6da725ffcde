"""Reads of local memory are as many as counted."""

from __future__ import annotations

import numpy as np
import pytest
from ceilings_bench import some

from perfport.measure.ceilings import (
    KINDS,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import Rate


@pytest.mark.parametrize("name", ["local_read", "local_conflict"])
def test_local_kernels_read_what_is_counted(bench: Bench, name: str) -> None:
    one = KINDS[name]
    assert isinstance(one, Rate)
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 1)
        tile = bench.buffer("tile", 1)
        bench.device.write(tile, np.ones(tile.nbytes // 4, np.float32))
        chosen.run()
        items = shape["groups"] * shape["group"]
        sums = bench.device.read(bench.out(items), np.float32, (items,)).astype(np.float64)
        assert 4 * sums.sum() == chosen.amount, shape
