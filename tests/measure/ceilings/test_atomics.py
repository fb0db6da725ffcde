"""Atomics count up as often as counted."""

from __future__ import annotations

import numpy as np
import pytest
from ceilings_bench import RATES, some

from perfport.measure.ceilings import (
    KINDS,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import Rate


@pytest.mark.parametrize("name", [name for name in RATES if name.startswith("atomic")])
def test_atomics_count_up(bench: Bench, name: str) -> None:
    one = KINDS[name]
    assert isinstance(one, Rate)
    for shape in some(bench, name, full=True):
        chosen = one.execution(bench, shape, 3)
        counters = bench.buffer("counters", 1)
        bench.device.fill(counters, 0)
        chosen.run()
        found = bench.device.read(counters, np.uint32, (counters.nbytes // 4,)).astype(np.int64)
        assert found.sum() == chosen.amount, shape
        used, per_space = int((found > 0).sum()), shape["groups"] if "local" in name else 1
        assert used == per_space if name.endswith("one") else used > 16 * per_space, shape
