"""vocab_tree on matrix units, without a GPU: the kernel's places of operands, played through, and what it compiles to.

Fragments of `mma.m16n8k32` on bytes and of `ldmatrix` are as the PTX ISA manual defines them; lane, g and t as there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from perfport import backend
from perfport.model.errors import UnavailableError
from perfport.workload import read_source, round_up
from perfport.workloads import vocab_tree
from perfport.workloads.vocab_tree import data, fixed_point, passes, reference

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


@pytest.mark.parametrize(("clusters", "dims"), [(10, 128), (3, 32), (16, 96), (9, 64)])
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


def fragment_place(k: int, d: int, dims: int) -> int:
    """Byte of dimension d of centre k in a fragment of 8 centres, as PLACE in the kernel of many clusters."""
    pairs = dims // 64
    if d < 64 * pairs:
        return d // 64 * 512 + (4 * (k % 8) + d % 64 // 16) * 16 + d % 16
    return pairs * 512 + (4 * (k % 8) + d % 32 // 8) * 8 + d % 8


def slot(d: int, dims: int) -> int:
    """Word of dimension d in the sums of a cluster, as SLOT in that kernel."""
    return d // 64 * 64 + d % 16 // 8 * 32 + d % 64 // 16 * 8 + d % 8 if d < 64 * (dims // 64) else d


def own_bytes(points: np.ndarray, length: int, rows: int) -> np.ndarray:
    """What the lanes load of a block, rows to a lane: (lane, row / 8, step, byte)."""
    dims = points.shape[1]
    found = np.zeros((32, rows, dims // 32, 8), np.uint8)
    for r in range(rows):
        row = np.minimum(8 * r + G, length - 1)
        inside = (8 * r + G < length)[:, None]
        for p in range(dims // 64):
            loaded = points[row[:, None], 64 * p + 16 * T[:, None] + np.arange(16)] * inside
            found[:, r, 2 * p], found[:, r, 2 * p + 1] = loaded[:, :8], loaded[:, 8:]
        if dims % 64:
            found[:, r, -1] = points[row[:, None], dims // 64 * 64 + 8 * T[:, None] + np.arange(8)] * inside
    return found


@pytest.mark.parametrize(
    ("clusters", "dims", "length", "sharing"),
    [(17, 128, 32, 2), (256, 128, 64, 4), (21, 32, 1, 2), (100, 64, 31, 2), (33, 96, 41, 4), (2, 128, 7, 2)],
)
def test_many_clusters_from_rows_in_registers(clusters: int, dims: int, length: int, sharing: int) -> None:
    """Scores, labels, banks and sums of a block, played through with the kernel's places."""
    points, rows = data.generate(max(64, clusters), dims, 5), 2 * sharing
    centres = fixed_point.from_points(points[:clusters]) + np.random.default_rng(6).integers(0, 256, (clusters, dims))
    centres = np.minimum(centres, 65280).astype(np.uint16)
    points = points[: 16 * sharing]
    padded, steps, pairs, size = -(-clusters // 8) * 8, dims // 32, dims // 64, 8 * dims
    memory = np.zeros(2 * padded * dims, np.uint8)
    for k in range(clusters):
        for d in range(dims):
            at = k // 8 * 2 * size + fragment_place(k, d, dims)
            memory[at], memory[at + size] = centres[k, d] >> 8, centres[k, d] & 255
    minus = np.full(padded, -(2**31 - 1))
    minus[:clusters] = -fixed_point.halves(centres).astype(np.int64)

    x = own_bytes(points, length, rows)
    best, nearest = np.full((32, rows), -(2**31)), np.zeros((32, rows), int)
    for n in range(padded // 8):
        score = np.zeros((2, sharing, 32, 4), np.int64)
        score[1] = minus[8 * n + 2 * T[:, None] + np.arange(4) % 2]
        for half in range(2):
            for s in range(steps):
                wide = s < 2 * pairs
                at = (
                    2 * n * size
                    + half * size
                    + (s // 2 * 512 + 16 * LANES + s % 2 * 8 if wide else pairs * 512 + 8 * LANES)
                )
                b = memory[at[:, None] + np.arange(8)].reshape(32, 2, 4)
                for m in range(sharing):
                    a = np.stack(
                        [x[:, 2 * m + h, s, 4 * part : 4 * part + 4] for part in range(2) for h in range(2)], 1
                    )
                    score[half, m] += multiply(a, b)
        assert np.abs(score).max() < 2**31
        value = 256 * score[0] + score[1]
        for r in range(rows):
            for j in range(2):
                own = value[r // 2, :, r % 2 * 2 + j]
                better = own > best[:, r]
                best[better, r], nearest[better, r] = own[better], (8 * n + 2 * T + j)[better]
    for across in (1, 2):
        value, k = best[LANES ^ across], nearest[LANES ^ across]
        better = (value > best) | ((value == best) & (k < nearest))
        best, nearest = np.where(better, value, best), np.where(better, k, nearest)
    expected = reference.classify(points[:length], centres)
    for r in range(0, rows, 4):
        own, labels = 8 * (r + T) + G, nearest[LANES, r + T]
        assert np.array_equal(labels[own < length], expected[own[own < length]])

    sums = np.zeros((clusters, dims), np.int64)
    for r in range(rows):
        for s in range(steps):
            for i in range(8):
                word = 32 * s + 8 * T + (G + i) % 8
                assert len(set(word % 32)) == 32  # banks: a cluster's sums begin at the first one
                np.add.at(sums, (nearest[:, r], word), x[LANES, r, s, (G + i) % 8].astype(np.int64))
    places = [slot(d, dims) for d in range(dims)]
    assert sorted(places) == list(range(dims))
    assert np.array_equal(sums[:, places], reference.totals(points[:length], expected, clusters)[0])


def test_sums_of_half_a_step_hit_every_bank() -> None:
    """Two words for each of the 16 dimensions; what they hold, `test_vocab_tree_warps.py` sees."""
    for i in range(4):
        assert sorted(G // 4 * 16 + 4 * T + (G + i) % 4) == list(range(32))


@pytest.fixture(scope="module")
def compiled() -> Callable[..., str]:
    """Compiles the kernel for a shape; returns PTX."""

    def build(target: str = "sm_90", file: str = "tensor_core.cu", **macros: int) -> str:
        source = read_source(Path(vocab_tree.__file__).parent / "kernels" / file)
        try:
            return backend.get("cuda").build(file, source, macros, target).listing["ptx"]
        except UnavailableError as error:
            pytest.skip(str(error))

    return build


PRODUCT = "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"
HALF_PRODUCT = "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32"


@pytest.mark.parametrize(("clusters", "dims"), [(2, 32), (10, 128), (16, 96), (7, 16), (16, 48), (9, 112)])
def test_the_kernel_compiles_for_every_shape(compiled: Callable[..., str], clusters: int, dims: int) -> None:
    for target in ("sm_80", "sm_90"):
        ptx = compiled(target, K=clusters, DIMS=dims, WARPS=8, STAGES=3)
        assert PRODUCT in ptx  # of sums, where scores need none
        assert ptx.count(HALF_PRODUCT) == dims % 32 // 16 * 4 * -(-clusters // 8)  # of a half, 16 points and 8 centres
        assert "cp.async.cg.shared.global" in ptx
        assert "ldmatrix.sync.aligned.m8n8.x4.trans" in ptx
        assert ".local" not in ptx  # nothing spills to memory


@pytest.mark.parametrize(("clusters", "dims", "sharing"), [
        (2, 32, 2), (17, 64, 4), (100, 96, 2), (256, 128, 4), (2, 16, 4), (37, 48, 4), (130, 112, 2),
    ],
)  # fmt: skip
def test_the_kernel_of_many_clusters_compiles(
    compiled: Callable[..., str], clusters: int, dims: int, sharing: int
) -> None:
    for target in ("sm_80", "sm_90"):
        for spread in (0, 1):
            macros = {"K": clusters, "DIMS": dims, "WARPS": 16, "SHARING": sharing, "SPREAD": spread}
            ptx = compiled(target, "tensor_core_atomics.cu", **macros)
            assert ptx.count(PRODUCT) == sharing * 2 * (dims // 32)  # tiles, halves, steps; eight centres at a time
            assert ptx.count(HALF_PRODUCT) == sharing * 2 * (dims % 32 // 16)
            assert "ld.shared.v4" in ptx or dims < 64
            assert ".local" not in ptx


@pytest.mark.parametrize(("clusters", "dims", "centres"), [(2, 16, 8), (10, 128, 16), (16, 80, 16), (256, 128, 16)])
def test_tiles_compile_for_matrix_units(compiled: Callable[..., str], clusters: int, dims: int, centres: int) -> None:
    shape = {"GROUP": 128, "POINTS_EACH": 1, "CENTRES": centres, "STAGES": 2}
    whole = {"LOCAL_SUMS": 1, "RESIDENT": round_up(clusters, centres)}
    for target in ("sm_80", "sm_90"):
        for kept in (whole, {"LOCAL_SUMS": 0, "RESIDENT": centres}):
            macros = {"VECTOR": 0, "MATRIX": 1, "VNNI": 0, "AHEAD": 64, "LOCAL_PAIRS": 0, **shape, **kept}
            ptx = compiled(target, "tiled.cu", K=clusters, DIMS=dims, **macros)
            assert PRODUCT in ptx and "cp.async.cg.shared.global" in ptx and ".local" not in ptx
            assert ("ldmatrix.sync.aligned.m8n8.x4.trans" in ptx) is (clusters <= passes.TiledPass.PRODUCT_CLUSTERS)
            assert ("atom.shared.add" in ptx) or not kept["LOCAL_SUMS"]


def test_sums_of_few_clusters_need_no_atomic_per_point(compiled: Callable[..., str]) -> None:
    few = compiled(K=10, DIMS=128, WARPS=8, STAGES=3)
    products = 2 * 2 * 2 * 4 + 2 * 8  # tiles, halves, rows, steps; parities, units
    assert few.count("mma.sync") == products
