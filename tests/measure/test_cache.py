"""Cold caches: what displaces them."""

from __future__ import annotations

import numpy as np

from perfport.backend import OpenDevice
from perfport.measure.cache import CacheFlush


def test_the_flush_reads_more_than_the_cache_and_gives_it_back(device: OpenDevice) -> None:
    before = device.allocated
    flush = CacheFlush(device)
    cache = device.info.last_level_cache_bytes or 0
    assert device.allocated - before >= min(max(cache, 64 << 20), 512 << 20, device.info.max_alloc_bytes) // 4096 * 4096
    flush()
    items = flush._groups * flush._group
    sums = device.read(flush._out, np.uint32, (items,)).astype(np.uint64)
    words = flush._buffer.nbytes // 4
    assert int(sums.sum()) % 2**32 == words * 0x01010101 % 2**32, "every word is read once"
    flush.close()
    assert device.allocated == before
