"""Transfers between host and device move the bytes."""

from __future__ import annotations

import numpy as np
import pytest

from perfport.measure.ceilings import (
    KINDS,
)
from perfport.measure.ceilings.bench import Bench


@pytest.mark.parametrize("name", ["h2d_pageable", "h2d_pinned", "d2h_pageable", "d2h_pinned"])
def test_transfers_move_the_bytes(bench: Bench, name: str) -> None:
    one = KINDS[name]
    shape = next(iter(one.shapes(bench, True)))
    host = bench.host(one.pinned, shape["bytes"])  # type: ignore[attr-defined]
    buffer = bench.buffer(f"transfer {shape['bytes']}", shape["bytes"])
    to_device = name.startswith("h2d")
    bench.device.fill(buffer, 7)
    host[:] = 9
    one.samples(bench, shape, 1)
    assert (host == (9 if to_device else 7)).all()
    assert (bench.device.read(buffer, np.uint8, (shape["bytes"],)) == (9 if to_device else 7)).all()
