"""Work of the host, block by block: every element once, in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from perfport.workload import in_blocks


@given(st.integers(0, 200), st.integers(1, 60))
def test_blocks_hold_every_element_once_in_order(count: int, size: int) -> None:
    blocks = in_blocks(lambda block: list(range(count))[block], count, size)
    assert [element for block in blocks for element in block] == list(range(count))
    assert all(len(block) == size for block in blocks[:-1]) and all(blocks)


@pytest.mark.parametrize("size", [5, 100])
def test_an_error_of_one_block_is_the_callers(size: int) -> None:
    def work(block: slice) -> None:
        if block.stop > 42:
            raise ValueError(f"{block.start}")

    with pytest.raises(ValueError, match="40" if size == 5 else "0"):
        in_blocks(work, 50, size)


def _blas_threads(block: slice | None = None) -> set[int]:
    """Threads of NumPy's library of linear algebra; other packages bring others, whenever they are imported."""
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in blas if "numpy" in library["filepath"]}


@pytest.mark.parametrize("size", [5, 100])
def test_products_within_a_block_take_one_thread(size: int) -> None:
    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        assert before == {2}
        assert set().union(*in_blocks(_blas_threads, 50, size)) == {1}
        assert _blas_threads() == before
