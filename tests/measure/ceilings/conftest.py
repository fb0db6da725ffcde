"""The small bench, on each device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ceilings_bench import small

from perfport.backend import OpenDevice
from perfport.measure.ceilings.bench import Bench


@pytest.fixture
def bench(device: OpenDevice) -> Iterator[Bench]:
    """A bench with small arrays and a warm cache."""
    made = small(device)
    yield made
    made.close()
