"""vocab_tree on matrix units, without a GPU: the kernel's places of operands, played through, and what it compiles to.

Fragments of `mma.m16n8k32` on bytes and of `ldmatrix` are as the PTX ISA manual defines them; lane, g and t as there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import numpy as np
import pytest

from perfport import backend
from perfport.errors import UnavailableError
from perfport.workloads.vocab_tree import data, fixed_point, reference

LANES = np.arange(32)
G, T = LANES // 4, LANES % 4
ROW = 128


def place(row: np.ndarray | int, unit: np.ndarray | int) -> np.ndarray:
    """Address of a 16-byte unit, as PLACE in the kernel."""
    return np.asarray(row * ROW + ((unit ^ (row & 7)) << 4))


def stored(rows: np.ndarray) -> np.ndarray:
    """Rows of bytes as the kernel lays them out in local memory."""
    memory = np.zeros(len(rows) * ROW, np.uint8)
    for row, values in enumerate(rows):
        for unit in range(len(values) // 16):
            at = int(place(row, unit))
            memory[at : at + 16] = values[16 * unit : 16 * unit + 16]
    return memory


def load_matrices(memory: np.ndarray, addresses: np.ndarray, transposed: bool = False) -> np.ndarray:
    """`ldmatrix.x4`: bytes of four registers of each lane, (32, 4, 4)."""
    rows = np.stack([memory[at : at + 16] for at in addresses]).reshape(4, 8, 8, 2)  # matrix, row, 16-bit column, byte
    found = np.empty((32, 4, 2, 2), np.uint8)
    for matrix in range(4):
        for e in range(2):
            column = rows[matrix, 2 * T + e, G] if transposed else rows[matrix, G, 2 * T + e]
            found[:, matrix, e] = column
    return found.reshape(32, 4, 4)


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`mma.m16n8k32`: four sums of each lane from four registers of A and two of B, as bytes."""
    left, right = np.zeros((16, 32), np.int64), np.zeros((32, 8), np.int64)
    for e in range(4):
        for r in range(4):
            left[G + 8 * (r % 2), 4 * T + e + 16 * (r // 2)] = a[:, r, e]
        for r in range(2):
            right[4 * T + e + 16 * r, G] = b[:, r, e]
    product = left @ right
    return np.stack([product[G + 8 * (r // 2), 2 * T + r % 2] for r in range(4)], axis=1)


@pytest.mark.parametrize(("clusters", "dims"), [(10, 128), (3, 32), (16, 96), (21, 64)])
def test_scores_come_out_at_their_places(clusters: int, dims: int) -> None:
    points = data.generate(32, dims, 1)
    rng = np.random.default_rng(2)
    centres = np.zeros((-(-clusters // 8) * 8, dims), np.uint16)
    centres[:clusters] = rng.integers(0, 65281, (clusters, dims))
    memory = stored(points)
    parts = [stored((centres >> 8).astype(np.uint8)), stored((centres & 255).astype(np.uint8))]
    units, steps = dims // 16, dims // 32
    expected = points.astype(np.int64) @ centres.astype(np.int64).T
    for n in range(len(centres) // 8):
        for m in range(2):
            score = np.zeros((32, 4), np.int64)
            for half, part in enumerate(parts):
                score *= 256 if half else 1
                for s in range(0, steps, 2):
                    y = load_matrices(part, place(8 * n + LANES % 8, (2 * s + LANES // 8) % units))
                    for step in range(s, min(s + 2, steps)):
                        x = load_matrices(memory, place(16 * m + LANES % 16, 2 * step + LANES // 16))
                        score += multiply(x, y[:, 2 * (step - s) : 2 * (step - s) + 2])
            for i in range(4):
                k, point = 8 * n + 2 * T + i % 2, 16 * m + 8 * (i // 2) + G
                assert np.array_equal(score[:, i], expected[point, k])
    assert expected.max() < 2**31


@pytest.mark.parametrize(("clusters", "dims", "length"), [(10, 128, 32), (16, 64, 32), (5, 32, 19)])
def test_sums_are_products_with_labels(clusters: int, dims: int, length: int) -> None:
    points = data.generate(32, dims, 3)
    centres = fixed_point.from_points(points[:clusters])
    labels = reference.classify(points, centres)
    hidden = labels.copy()
    hidden[length:] = 0x7F
    pairs = hidden.view("<u2").astype(np.uint32)
    low, high = pairs[T] | pairs[4 + T] << 16, pairs[8 + T] | pairs[12 + T] << 16

    def equal(word: np.ndarray, k: np.ndarray) -> np.ndarray:
        x = (word ^ k.astype(np.uint32) * np.uint32(0x01010101)) + np.uint32(0x7F7F7F7F)
        return ((~x & np.uint32(0x80808080)) >> np.uint32(7)).astype("<u4").view(np.uint8).reshape(32, 4)

    hot = np.stack([equal(low, G), equal(low, G + 8), equal(high, G), equal(high, G + 8)], axis=1)
    sums, counts = reference.totals(points[:length], labels[:length], clusters)
    memory = stored(points)
    seen = np.zeros((clusters, dims), bool)
    for unit in range(dims // 16):
        y = load_matrices(memory, place(LANES, unit), transposed=True)
        for odd in range(2):
            b = np.stack([np.concatenate([y[:, 2 * r, odd::2], y[:, 2 * r + 1, odd::2]], axis=1) for r in range(2)], 1)
            added = multiply(hot, b)
            for r in range(4):
                k, d = G + r // 2 * 8, 16 * unit + 2 * (2 * T + r % 2) + odd
                inside = k < clusters
                assert np.array_equal(added[inside, r], sums[k[inside], d[inside]])
                seen[k[inside], d[inside]] = True
    assert seen.all()
    for h in range(2):
        number = hot[:, h].sum(axis=1, dtype=int) + hot[:, 2 + h].sum(axis=1, dtype=int)
        own = number.reshape(8, 4).sum(axis=1)
        assert np.array_equal(own[: max(0, min(8, clusters - 8 * h))], counts[8 * h : 8 * h + 8])


@pytest.fixture(scope="module")
def compiled() -> Callable[..., str]:
    """Compiles the kernel for a shape; returns PTX."""

    def build(target: str = "sm_90", **macros: int) -> str:
        text = (files("perfport.workloads.vocab_tree") / "kernels" / "tensor_core.cu").read_text()
        try:
            return backend.get("cuda").build("tensor_core.cu", text, macros, target).listing["ptx"]
        except UnavailableError as error:
            pytest.skip(str(error))

    return build


@pytest.mark.parametrize(("clusters", "dims"), [(2, 32), (10, 128), (16, 96), (17, 64), (256, 128)])
def test_the_kernel_compiles_for_every_shape(compiled: Callable[..., str], clusters: int, dims: int) -> None:
    for target in ("sm_80", "sm_90"):
        ptx = compiled(target, K=clusters, DIMS=dims, WARPS=8, STAGES=1 if clusters > 100 else 3)
        assert "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32" in ptx and "cp.async.cg.shared.global" in ptx
        assert ("ldmatrix.sync.aligned.m8n8.x4.trans" in ptx) is (clusters <= 16)
        assert ".local" not in ptx  # nothing spills to memory


def test_sums_of_few_clusters_need_no_atomic_per_point(compiled: Callable[..., str]) -> None:
    few = compiled(K=10, DIMS=128, WARPS=8, STAGES=3)
    products = 2 * 2 * 2 * 4 + 2 * 8  # tiles, halves, rows, steps; parities, units
    assert few.count("mma.sync") == products
