"""Work of the host on long arrays, block by block on all cores: how inputs and references are made."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from ..machine.environment import usable_cores

T = TypeVar("T")
#: Elements or bytes of arrays that one thread compares or digests at a time.
BLOCK = 2**22


@cache
def _blas() -> ThreadpoolController:
    """The libraries of linear algebra that are loaded, NumPy's among them."""
    return ThreadpoolController().select(user_api="blas")


def in_blocks(work: Callable[[slice], T], count: int, size: int) -> list[T]:
    """Return what ``work`` returns for each block of ``size`` of ``count`` elements, in order; the last may be shorter.

    Blocks are worked on side by side: NumPy releases the interpreter's lock. Products of matrices within a block take
    one thread each meanwhile, because threads of all products of all blocks wait for each other most of the time.
    """
    blocks = [slice(first, min(first + size, count)) for first in range(0, count, size)]
    with _blas().limit(limits=1):
        if len(blocks) < 2:
            return [work(block) for block in blocks]
        with ThreadPoolExecutor(usable_cores()) as pool:
            return list(pool.map(work, blocks))
