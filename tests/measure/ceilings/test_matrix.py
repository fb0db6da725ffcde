"""Matrix units multiply as often as counted, operands that are not zero."""

from __future__ import annotations

import numpy as np
import pytest
from ceilings_bench import small, some

from perfport.backend import OpenDevice
from perfport.measure.ceilings import (
    KINDS,
)
from perfport.measure.ceilings.matrix import DEPTH, SLICES, WORDS, MatrixRate, operands


def test_matrix_kernels_multiply_as_often_as_counted(cuda: OpenDevice) -> None:
    """Operands of one: every result is the number of products that went into it."""
    if "mma" not in cuda.info.capabilities:
        pytest.skip(f"{cuda.info.id} has no mma")
    ones = {"tf32": 0x3F800000, "bf16": 0x3F803F80, "int8": 0x01010101}
    for name in ("tf32_mma", "bf16_mma", "int8_mma"):
        one, bench = KINDS[name], small(cuda)
        assert isinstance(one, MatrixRate)
        for shape in some(bench, name):
            chosen = one.execution(bench, shape, 1)
            cuda.write(bench.buffer(f"operands {one.operand}", 1), np.full(WORDS, ones[one.operand], np.uint32))
            chosen.run()
            items = shape["groups"] * shape["group"]
            kind_ = np.int32 if one.operand == "int8" else np.float32
            found = cuda.read(bench.out(items), kind_, (items,)).astype(np.float64)
            results = 128 * SLICES if shape["path"] == "wgmma" else 4 * shape["chains"]
            assert (found == 32 * results * DEPTH[one.operand]).all(), shape
            assert 2 * found.sum() == chosen.amount, shape
        bench.close()


def test_operands_of_matrix_units_are_not_zero() -> None:
    for name in ("tf32", "bf16", "int8"):
        words = operands(name, 4096)
        assert words.shape == (4096,) and words.dtype == np.uint32
        assert np.array_equal(words, operands(name, 4096)), "seeded"
        halves = words.view({"tf32": np.uint32, "bf16": np.uint16, "int8": np.uint8}[name])
        assert (halves != 0).all() and len(np.unique(halves)) > 100
