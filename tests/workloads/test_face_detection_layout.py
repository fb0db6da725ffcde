"""face_detection: tables of the host and structs of the kernels have the same fields in the same places."""

from __future__ import annotations

import re

import numpy as np
import pytest

from perfport import backend, workload
from perfport.backend import OpenDevice
from perfport.workload.source import read_source
from perfport.workloads.face_detection import cascade, pyramid
from perfport.workloads.face_detection.variants.configuration import Techniques
from perfport.workloads.face_detection.variants.layout import (
    LEVEL,
    PACKED_NODE,
    TALLY,
    division,
    gains,
    level_table,
    node_type,
    nodes,
    packed_nodes,
)
from perfport.workloads.face_detection.variants.stream_tables import STAGE, image, order, stages, vector_node
from perfport.workloads.face_detection.variants.stream_tables import nodes as vector_nodes

KERNELS = workload.discover()["face_detection"].folder / "kernels"
MACROS = {
    **{name.upper(): int(value) for name, value in vars(Techniques(offsets=True)).items()},
    "TILE": 0, "PACKED": 0, "STUMPS": 0, "CONSTANT": 0, "INSTRUMENT": 0, "WORK_GROUP": 32, "BATCH": 32, "STAGES": 1,
    "WINDOW_WIDTH": 24, "WINDOW_HEIGHT": 24, "HALVED": 0,
}  # fmt: skip
VECTORS = {"TILE": 32, "LOCAL_PITCH": 96, "LOCAL_LINES": 88, "HALF": 48, "TILTED": 1, "LANES": 1, "VECTOR": 8}
#: Name of the struct, the records of the host, macros.
STRUCTS: dict[str, tuple[str, np.dtype, dict[str, int]]] = {
    "level": ("Level", LEVEL, {}),
    "tree of coordinates": ("Node", node_type(stumps=False, offsets=False), {"OFFSETS": 0}),
    "stump of coordinates": ("Node", node_type(stumps=True, offsets=False), {"OFFSETS": 0, "STUMPS": 1}),
    "tree of offsets": ("Node", node_type(stumps=False, offsets=True), {}),
    "stump of offsets": ("Node", node_type(stumps=True, offsets=True), {"STUMPS": 1}),
    "packed stump": ("Node", PACKED_NODE, {"STUMPS": 1, "PACKED": 1}),
    "tally": ("Tally", TALLY, {"INSTRUMENT": 1}),
    "stump for vectors": ("VectorNode", vector_node(stumps=True), {**VECTORS, "STUMPS": 1}),
    "tree for vectors": ("VectorNode", vector_node(stumps=False), VECTORS),
    "stage for vectors": ("Stage", STAGE, VECTORS),
}


def test_a_level_has_no_other_fields() -> None:
    body = re.search(r"typedef struct \{([^}]*)\} Level;", (KERNELS / "level.cl").read_text())
    assert body
    declared = re.sub(r"/\*.*?\*/", "", body[1], flags=re.S)
    fields = [(kind, name) for kind, names in re.findall(r"(\w+) ([^;]+);", declared) for name in names.split(", ")]
    assert fields == [({"u": "uint", "f": "float"}[LEVEL[name].kind], name) for name in LEVEL.names or ()]


@pytest.mark.parametrize("case", STRUCTS)
def test_structs_are_the_hosts(device: OpenDevice, case: str) -> None:
    struct, table, macros = STRUCTS[case]
    if macros.get("VECTOR") and device.info.kind != "cpu":
        pytest.skip("vectors of integers are for CPUs")
    source = read_source(KERNELS / ("detect_vectors.cl" if macros.get("VECTOR") else "detect_direct.cl"))
    # With offsets, the threshold is the last component of a vector.
    names = [name for name in table.names or () if not (case.endswith("of offsets") and name == "threshold")]
    places = "".join(f"out[{i}] = (uint)((size_t)&there->{name} - (size_t)there);\n" for i, name in enumerate(names, 1))
    source += (
        f"\n__kernel void places(__global const {struct} *there, __global uint *out) {{\n"
        f"out[0] = (uint)sizeof({struct});\n{places}}}\n"
    )
    artifact = backend.get(device.info.backend).build("places.cl", source, {**MACROS, **macros}, device.target)
    there, out = device.empty(4096), device.empty(4 * (1 + len(names)))
    device.launch(device.load(artifact).kernel("places"), 1, 1, there, out)
    expected = [table.itemsize, *((table.fields or {})[name][1] for name in names)]
    assert device.read(out, np.uint32, (len(expected),)).tolist() == expected


def test_division_by_multiplication_is_exact_up_to_2_to_the_31() -> None:
    rng = np.random.default_rng(3)
    for divisor in [2, 3, 5, 7, 31, 32, 33, 641, 1897, 65_537, 11_300_000, 2**31 - 1]:
        multiplier, shift = division(divisor)
        assert multiplier < 2**32
        near = [divisor - 1, divisor, 2**31 - 1, (2**31 - 1) // divisor * divisor, (2**31 - 1) // divisor * divisor - 1]
        for n in [0, 1, *near, *rng.integers(0, 2**31, 200).tolist()]:
            assert (n * multiplier >> 32) >> shift == n // divisor


def test_levels_by_name() -> None:
    levels = pyramid.build(90, 70, (24, 20), 1.2, "opencv")
    table = level_table(levels, strip=16, tile=32)
    assert len(table) == len(levels.levels) > 3
    for row, level in zip(table, levels.levels, strict=True):
        assert row["place"] == level.y * levels.pitch + level.x and row["scale"] == level.scale
        for name in ("width", "height", "columns", "rows", "step"):
            assert row[name] == getattr(level, name)
        assert (row["columns_multiplier"], row["columns_shift"]) == division(level.columns)
        assert row["row_table"] - row["column_table"] == level.width
    second = table[1]
    assert second["first_piece"] == 91 * 5 and second["first_tile"] == 2
    assert second["first_window"] == levels.levels[0].windows and second["first_row"] == 70
    assert second["column_table"] == 90 + 70


def test_stumps_are_packed_where_they_fit() -> None:
    read = cascade.load("frontalface_alt")
    corners = read.offsets(100, 2_500)
    packed = packed_nodes(read, corners)
    assert packed is not None and packed.nbytes == 32 * read.nodes
    assert np.array_equal(packed["corners"], corners[:, :2]) and np.array_equal(
        packed["rest"]["corners"], corners[:, 2]
    )
    assert np.array_equal(packed["rest"]["weights"][:, :3], read.weights)
    assert np.array_equal(packed["rest"]["threshold"], read.threshold)
    assert packed_nodes(read, read.offsets(4_000, 100_000)) is None  # offsets of more than 16 bits
    trees = cascade.load("frontalface_alt2")
    assert packed_nodes(trees, trees.offsets(100, 2_500)) is None


def test_gains_decide_as_leaves_do() -> None:
    read = cascade.load("frontalface_alt")
    leaves, (gained, thresholds) = nodes(read)["leaves"], gains(read)
    below = np.random.default_rng(5).integers(0, 2, (100, read.nodes)).astype(bool)
    first = read.stage_first[:-1]
    sums = np.add.reduceat(np.where(below, *leaves.T), first, axis=1)
    gains_sums = np.add.reduceat(np.where(below, gained, 0), first, axis=1)
    decisions = sums >= read.stage_threshold
    assert decisions.any() and not decisions.all()
    assert np.array_equal(gains_sums >= thresholds, decisions)


@pytest.mark.parametrize("name", ["frontalface_alt", "lefteye_2splits"])
def test_tables_for_vectors_are_the_cascade(name: str) -> None:
    """All nodes once, of a stage's stumps those of three rectangles last, and for levels of step 2 the same again."""
    read = cascade.load(name)
    of = image(32, 2, read, tilted=True)
    table, stage, numbers = vector_nodes(read, of).reshape(2, -1), stages(read), order(read)
    assert sorted(numbers) == list(range(read.nodes)) and of.half
    for half, row in zip((0, of.half), table, strict=True):
        corners = read.offsets(of.row, of.row * of.lines, half).reshape(-1, 12)
        assert np.array_equal(row["corners"], corners[numbers]) and row["corners"].max() < of.nbytes // 4
        assert np.array_equal(row["weights"], read.weights[numbers])
        assert np.array_equal(row["threshold"], read.threshold[numbers])
    assert np.array_equal(stage["first"], read.stage_first[:-1]) and np.array_equal(stage["end"], read.stage_first[1:])
    if read.stumps:
        gained, thresholds = gains(read)
        assert np.array_equal(table["gain"][1], gained[numbers])
        assert np.array_equal(stage["threshold"], thresholds)
        third = table["weights"][0, :, 2] != 0
        for one in stage:
            assert not third[one["first"] : one["third"]].any() and third[one["third"] : one["end"]].all()
        assert (stage["third"] < stage["end"]).any() and (stage["first"] < stage["third"]).any()
    else:
        assert np.array_equal(numbers, np.arange(read.nodes)) and np.array_equal(stage["third"], stage["end"])
        targets = np.stack([table["left"][0], table["right"][0]], axis=1)
        assert np.array_equal(np.where(targets < 0, targets + 1, targets), read.children)
        assert not (targets == 0).any()
