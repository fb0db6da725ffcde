"""vocab_tree on matrix units, without a GPU: the kernels run on the host, in lock step, and are exact."""

from __future__ import annotations

from pathlib import Path

import host_warps
import numpy as np
import pytest

from perfport.workload import round_up
from perfport.workloads.vocab_tree import data, fixed_point, passes, reference

TILED = {"VECTOR": 0, "MATRIX": 1, "VNNI": 0, "AHEAD": 0, "LOCAL_SUMS": 1, "LOCAL_PAIRS": 0}


def tiled(group: int, points_each: int, centres: int, stages: int, **kept: int) -> dict[str, int]:
    """Macros of ``tiled.cu``; sums, and all centres, in local memory unless ``kept`` says otherwise."""
    own = {"GROUP": group, "POINTS_EACH": points_each, "CENTRES": centres, "STAGES": stages}
    return {**TILED, **own, **kept}


@pytest.mark.skipif(host_warps.COMPILER is None, reason="needs g++")
@pytest.mark.parametrize(
    ("file", "clusters", "dims", "sizes", "items", "macros"),
    [
        ("tiled.cu", 10, 128, [77, 31, 120], 64, tiled(64, 1, 16, 3)),
        ("tiled.cu", 2, 16, [90], 64, tiled(64, 1, 8, 1)),
        ("tiled.cu", 5, 80, [131], 128, tiled(128, 1, 8, 2)),
        ("tiled.cu", 16, 48, [1, 150], 32, tiled(32, 2, 16, 2)),
        ("tiled.cu", 33, 96, [200], 64, tiled(64, 1, 16, 2)),
        ("tiled.cu", 130, 112, [300], 64, tiled(64, 2, 8, 2)),
        ("tiled.cu", 10, 128, [77, 31, 120], 64, tiled(64, 1, 8, 2, LOCAL_SUMS=0)),
        ("tiled.cu", 10, 64, [150, 7], 64, tiled(64, 1, 8, 2, RESIDENT=8, LOCAL_SUMS=0)),
        ("tiled.cu", 130, 80, [200], 64, tiled(64, 1, 16, 1, RESIDENT=48, LOCAL_SUMS=0)),
        ("tensor_core.cu", 10, 128, [77, 31, 120], 64, {"WARPS": 2, "STAGES": 3}),
        ("tensor_core.cu", 7, 16, [77, 31], 64, {"WARPS": 2, "STAGES": 2}),
        ("tensor_core.cu", 16, 48, [1, 150], 32, {"WARPS": 1, "STAGES": 1}),
        ("tensor_core.cu", 12, 112, [90], 64, {"WARPS": 2, "STAGES": 3}),
        ("tensor_core_atomics.cu", 19, 96, [150, 7], 64, {"WARPS": 2, "SHARING": 2, "SPREAD": 0}),
        ("tensor_core_atomics.cu", 5, 16, [131, 1], 32, {"WARPS": 1, "SHARING": 4, "SPREAD": 0}),
        ("tensor_core_atomics.cu", 130, 112, [200], 64, {"WARPS": 2, "SHARING": 2, "SPREAD": 0}),
        ("tensor_core_atomics.cu", 37, 48, [150, 65], 64, {"WARPS": 2, "SHARING": 4, "SPREAD": 1}),
        ("tensor_core_atomics.cu", 9, 64, [77, 31], 32, {"WARPS": 1, "SHARING": 2, "SPREAD": 1}),
        ("tensor_core_atomics.cu", 2, 16, [200], 64, {"WARPS": 2, "SHARING": 4, "SPREAD": 1}),
        ("tensor_core_atomics.cu", 20, 112, [131, 1], 64, {"WARPS": 2, "SHARING": 2, "SPREAD": 1}),
    ],
)
def test_kernels_on_matrix_units_are_exact(
    tmp_path: Path, file: str, clusters: int, dims: int, sizes: list[int], items: int, macros: dict[str, int]
) -> None:
    """Nodes that do not fill blocks, one that does not move, equal centres, bytes of 255."""
    shape = {"K": clusters, "DIMS": dims, "RESIDENT": round_up(clusters, macros.get("CENTRES", 1))}
    run = host_warps.compile_pass(file, tmp_path, {**shape, **macros})
    rng = np.random.default_rng(clusters * dims)
    node_sizes = np.array([*sizes, 40])
    first, count = np.cumsum(node_sizes) - node_sizes, int(node_sizes.sum())
    points = data.generate(count, dims, 5)
    points[: count // 4] = np.where(np.arange(count // 4)[:, None] % 3, 255, points[: count // 4])
    drawn = fixed_point.from_points(points[rng.choice(count, (len(node_sizes), clusters))]).astype(int)
    centres = np.minimum(drawn + rng.integers(0, 256, drawn.shape), 255 * fixed_point.ONE).astype(np.uint16)
    centres[:, -1] = centres[:, 0]
    moving = np.array([1] * len(sizes) + [0], np.uint32)
    labels, halves = np.full(count, 255, np.uint8), fixed_point.halves(centres)
    sums, counts = np.zeros(centres.shape, np.uint32), np.zeros(centres.shape[:2], np.uint32)
    tiles = passes.tiles(first, node_sizes, 96)
    host_warps.run_pass(run, items, [points, tiles, centres, halves, moving, labels, sums, counts])
    for node, (start, size) in enumerate(zip(first, sizes, strict=False)):
        part = points[start : start + size]
        expected = reference.classify(part, centres[node])
        assert np.array_equal(labels[start : start + size], expected)
        own_sums, own_counts = reference.totals(part, expected, clusters)
        assert np.array_equal(sums[node], own_sums) and np.array_equal(counts[node], own_counts)
    assert (labels[first[-1] :] == 255).all() and not sums[-1].any() and not counts[-1].any()
