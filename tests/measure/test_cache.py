"""Cold caches: what displaces them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfport.backend import OpenDevice
from perfport.measure.cache import CacheFlush, flush_bytes
from perfport.model.device import DeviceInfo


def test_the_flush_reads_more_than_the_cache_and_gives_it_back(device: OpenDevice) -> None:
    before = device.allocated
    flush = CacheFlush(device)
    assert device.allocated - before >= flush.nbytes == flush_bytes(device.info)
    flush()
    items = flush._groups * flush._group
    sums = device.read(flush._out, np.uint32, (items,)).astype(np.uint64)
    words = flush.nbytes // 4
    assert int(sums.sum()) % 2**32 == words * 0x01010101 % 2**32, "every word is read once"
    flush.close()
    assert device.allocated == before


CPU = DeviceInfo(
    id="opencl:pocl:0", backend="opencl", platform="p", name="n", chip="c", kind="cpu", compute_units=4,
    memory_bytes=64 << 30, max_alloc_bytes=16 << 30, local_memory_bytes=1, max_work_group=1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        ({"last_level_cache_bytes": 32 << 20, "cache_sum_bytes": 12 * (32 << 20)}, 48 * (32 << 20)),
        ({"last_level_cache_bytes": 260 << 20, "cache_sum_bytes": 520 << 20}, 2080 << 20),
        ({"last_level_cache_bytes": 260 << 20}, 1040 << 20),  # a system that does not tell who shares what
        ({"last_level_cache_bytes": 8 << 20, "cache_sum_bytes": 8 << 20}, 256 << 20),
        ({}, 256 << 20),
        ({"cache_sum_bytes": 9 << 30}, 16 << 30),
        ({"kind": "gpu"}, 64 << 20),
        ({"kind": "gpu", "last_level_cache_bytes": 200 << 20}, 250 << 20),
        ({"kind": "gpu", "last_level_cache_bytes": 1 << 30}, 512 << 20),
        ({"kind": "gpu", "max_alloc_bytes": 10 << 20}, 10 << 20),
    ],
)
def test_the_flush_is_of_four_times_all_last_level_caches_of_a_cpu(caches: dict[str, Any], expected: int) -> None:
    assert flush_bytes(CPU.model_copy(update=caches)) == expected
