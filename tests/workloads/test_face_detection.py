"""face_detection: every variant finds the reference's windows on every device, with every technique on or off."""

from __future__ import annotations

import base64
import io
import secrets
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from perfport import workload
from perfport.backend import OpenDevice
from perfport.machine.device_profile import load_profile, parameters_for
from perfport.model.errors import UnsupportedError, UsageError
from perfport.workload import Session, Setup, Variant
from perfport.workloads.face_detection.problems import CHECK_SIZES, Faces, Windows
from perfport.workloads.face_detection.pyramid import reduced
from perfport.workloads.face_detection.reference import integrals
from perfport.workloads.face_detection.variants import streams

pytest.importorskip("skimage")
pytest.importorskip("cv2")

FOUND = workload.discover()["face_detection"]
LADDER = {name: cls for name, cls in FOUND.variants["windows"].items() if cls.role != "peer"}
WHOLE = {name: cls for name, cls in FOUND.variants["faces"].items() if cls.role != "peer"}
SPEC = ["per_scale", "uberkernel", "coarse_grained", "persistent_threads", "dynamic_mapping", "global_queue"]
SPEC += ["local_queue", "tuned"]
SMALL = {"width": 57, "height": 49, "cascade": "lefteye_2splits", "scale_factor": 1.3}  # tilted features, trees
STUMPS = {"width": 66, "height": 51, "cascade": "russian_plate_number", "step": "full"}
PASSING = {"width": 66, "height": 60, "cascade": "frontalface_alt"}  # stumps, both steps; windows pass
PACKED = {"vector": 0, "tile": 0}  # of `compacted`, what CPUs do not have by default
TILES = {"vector": 0, "tile": 32, "strip": 1024}  # what GPUs have, with strips that are longer
EVERY: list[tuple[str, dict[str, int]]] = [
    *((variant, {}) for variant in LADDER),
    ("compacted", PACKED),
    ("compacted", TILES),
]
PROBLEMS: dict[str, Any] = {}


def problem(cls: type[Any] = Windows, **parameters: Any) -> Any:
    """A problem; its frames are from a fresh seed for each session, its reference is made once.

    Of `PASSING`, frames are drawn until windows pass: elsewhere none does, and a variant that loses all is right.
    """
    key = f"{cls.name} {parameters}"
    while key not in PROBLEMS:
        drawn = cls(cls.Parameters(**parameters), secrets.randbelow(2**31))
        if not PASSING.items() <= parameters.items() or len(drawn.reference.windows):
            PROBLEMS[key] = drawn
    return PROBLEMS[key]


@pytest.fixture
def build(device: OpenDevice) -> Iterator[Any]:
    """``build(problem, variant, group=32)`` gives the variant after one execution, and its outputs."""
    sessions: list[Session] = []

    def run(problem: Any, cls: type[Variant], **tunables: Any) -> tuple[Any, dict[str, np.ndarray]]:
        if tunables.get("vector") and device.info.kind != "cpu":
            pytest.skip("vectors of windows are for CPUs")
        cls.require(device.info)
        sessions.append(Session(device, problem, FOUND.folder))
        chosen = {name: tunable.default_for(device.info) for name, tunable in cls.tunables.items()} | tunables
        setup = Setup(sessions[-1], chosen, {})
        variant = cls(setup)
        for output in setup.outputs.values():
            device.fill(output.buffer, 0xFF)
        variant.launch()
        device.finish()
        outputs = {name: device.read(o.buffer, o.dtype, o.shape) for name, o in setup.outputs.items()}
        return variant, {**outputs, **variant.results()}

    yield run
    for session in sessions:
        session.close()


def right(problem: Any, outputs: dict[str, np.ndarray]) -> None:
    """Every output there is equals the reference."""
    checks = problem.check(outputs)
    assert checks and all(check.passed for check in checks.values()), (problem.seed, problem.parameters, checks)


def test_every_rung_of_the_source_is_there_in_order() -> None:
    assert [name for name, cls in LADDER.items() if cls.role == "rung"] == SPEC
    assert {"opencv_1", "opencv_all", "opencv_opencl"} <= set(FOUND.variants["faces"])


@pytest.mark.parametrize(("variant", "chosen"), EVERY, ids=str)
def test_windows_are_the_references(build: Any, variant: str, chosen: dict[str, int]) -> None:
    for parameters in (SMALL, {**CHECK_SIZES[3], "cascade": "lefteye_2splits"}, PASSING):
        task = problem(**parameters)
        found, outputs = build(task, LADDER[variant], **chosen)
        right(task, outputs)
        assert set(outputs) == {"windows", "count"}
        traffic, work = found.traffic(), task.work()
        assert traffic.integer_ops >= work.integer_ops
        if isinstance(found.detector, streams.StreamDetector):  # evaluates whole vectors
            assert traffic.flops > work.flops
        else:
            assert traffic.flops == work.flops


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize(("variant", "chosen"), EVERY, ids=str)
def test_levels_that_exceed_the_address_space_go_in_groups(
    build: Any, variant: str, chosen: dict[str, int], frames: int
) -> None:
    """As many words as the first level takes: the others share the atlas by twos or more."""
    task = problem(**PASSING, frames=frames, atlas_words=3 * 96 * 61)
    assert len(task.pyramid.groups) > 2 and task.pyramid.lines == 61
    found, outputs = build(task, LADDER[variant], **chosen)
    right(task, outputs)
    assert found.detector.integrals.sums.nbytes == 2 * 4 * 96 * 61 * frames
    notes, counts = found.notes(), task.reference.counts
    assert notes["entered"] == counts.entered.tolist() and notes["features"] == counts.nodes.sum()
    assert found.traffic().integer_ops >= task.work().integer_ops


@pytest.mark.parametrize(
    ("chosen", "kernels"),
    [
        (PACKED, {"rows", "pieces", "columns", "detect"}),
        (TILES, {"rows", "columns", "detect"}),
        ({"vector": 8}, {"lines", "detect"}),
    ],
    ids=["packed", "tiles", "vectors"],
)  # fmt: skip
def test_composed_faces_are_found_by_the_stock_cascade(build: Any, chosen: dict[str, int], kernels: set[str]) -> None:
    task = problem(Faces, width=96, height=80, cascade="frontalface_alt", frames=2)
    found, outputs = build(task, WHOLE["compacted"], **chosen)
    right(task, outputs)
    notes = found.notes()
    assert notes["entered"] == task.reference.counts.entered.tolist() and notes["entered"][-1] > 0
    assert kernels <= set(notes["kernel_seconds"])
    picture = Image.open(io.BytesIO(base64.b64decode(notes["picture"]["jpeg"])))
    assert picture.size == (96, 80)
    assert notes["picture"]["caption"].endswith(f": {sum(face[0] == 0 for face in found.faces)}")


@pytest.mark.parametrize(("variant", "chosen"), [*((variant, {}) for variant in WHOLE), ("compacted", PACKED)], ids=str)
def test_faces_are_the_references(build: Any, variant: str, chosen: dict[str, int]) -> None:
    for parameters in ({**SMALL, "neighbours": 0}, {**PASSING, "neighbours": 1}):
        task = problem(Faces, **parameters)
        right(task, build(task, WHOLE[variant], **chosen)[1])


@pytest.mark.parametrize(
    "switched",
    [
        {"local_queue": 0}, {"global_queue": 0, "unroll": 1}, {"dynamic": 0, "unroll": 4},
        {"dynamic": 0, "persistent": 0, "cooperative_windows": 0}, {"uberkernel": 0, "single_item_stages": 5},
        {"offsets": 0, "select": 0}, {"shifts": 0, "constant": 0},
        {"work_group": 64, "cooperative_windows": 16, "strip": 16, "scan_group": 64},
    ], ids=str,
)  # fmt: skip
def test_techniques_can_be_switched_off(build: Any, switched: dict[str, int]) -> None:
    for parameters in (STUMPS, PASSING):
        task = problem(**parameters)
        right(task, build(task, LADDER["tuned"], **switched)[1])


@pytest.mark.parametrize("cascade", [STUMPS, SMALL, PASSING], ids=["stumps", "trees", "passing"])
@pytest.mark.parametrize(
    "shape",
    [
        {"per_item": 2, "single_item_stages": 0, "work_group": 32, "batch": 256, "scan_group": 64},
        {"per_item": 4, "single_item_stages": 0, "work_group": 64, "scan_group": 128, "tile": 32},
        {"tile": 32, "uberkernel": 0, "by_bank": 32},
        {"tile": 64, "work_group": 32, "shifts": 0, "single_item_stages": 0},
        {"per_item": 4, "work_group": 16, "offsets": 0}, {"per_item": 2, "cooperative_windows": 2, "work_group": 16},
        {"tile": 16, "work_group": 256},
    ], ids=str,
)  # fmt: skip
def test_a_node_may_serve_several_windows(build: Any, cascade: dict[str, Any], shape: dict[str, int]) -> None:
    task = problem(**cascade)
    right(task, build(task, LADDER["compacted"], **{**PACKED, **shape})[1])


@pytest.mark.parametrize("cascade", [STUMPS, SMALL, PASSING], ids=["stumps", "trees", "passing"])
@pytest.mark.parametrize(("tile", "vector"), [(16, 8), (16, 16), (32, 16), (64, 8)])
def test_vectors_of_windows(build: Any, cascade: dict[str, Any], tile: int, vector: int) -> None:
    task = problem(**cascade)
    found, outputs = build(task, LADDER["compacted"], tile=tile, vector=vector)
    right(task, outputs)
    notes = found.notes()
    assert notes["entered"] == task.reference.counts.entered.tolist()
    assert notes["features"] == task.reference.counts.nodes.sum()
    evaluated = found.traffic().flops  # the places of all vectors
    assert notes["features"] / notes["busy_slots"] == pytest.approx(evaluated, rel=1e-9)


def test_tiles_are_halved_until_local_memory_holds_one() -> None:
    info = SimpleNamespace(local_memory_bytes=2**18, kind="cpu")
    setup: Any = SimpleNamespace(
        problem=problem(**SMALL), device=SimpleNamespace(info=info), tunables={"tile": 64, "vector": 8}
    )
    chosen = streams.configure(setup)
    assert chosen.tile == 64 and chosen.image.nbytes > 2**16
    info.local_memory_bytes = chosen.image.nbytes + 4  # with a counter of the instrumented build
    assert streams.configure(setup).tile == 64
    info.local_memory_bytes -= 1
    assert streams.configure(setup).tile == 32
    info.local_memory_bytes = 2**15
    assert streams.configure(setup).tile == 16
    info.local_memory_bytes = 2**13
    with pytest.raises(UnsupportedError, match=f"8 x 8 windows takes more than {2**13 - 4} bytes of local memory"):
        streams.configure(setup)


def test_vectors_are_for_tiles_and_cpus() -> None:
    info = SimpleNamespace(local_memory_bytes=2**18, kind="cpu", id="opencl:cpu:0")
    setup: Any = SimpleNamespace(
        problem=problem(**SMALL), device=SimpleNamespace(info=info), tunables={"tile": 0, "vector": 8}
    )
    with pytest.raises(UsageError, match="vector: with 8, expected a tile, got tile 0"):
        streams.configure(setup)
    info.kind, info.id = "gpu", "cuda:nvidia:0"
    with pytest.raises(UnsupportedError, match="vector: windows as vectors are for CPUs, cuda:nvidia:0 is none"):
        streams.configure(setup)


def test_repeated_scenes_are_the_same_frames() -> None:
    task, alone = (
        Windows(Windows.Parameters(**STUMPS, frames=frames, scenes=scenes), 3) for frames, scenes in ((5, 2), (2, None))
    )
    turn = [0, 1, 0, 1, 0]
    assert np.array_equal(task.scene.pixels, alone.scene.pixels[turn])
    assert [faces.tolist() for faces in task.scene.faces] == [alone.scene.faces[scene].tolist() for scene in turn]
    outcome = alone.reference.outcome.reshape(2, -1)
    assert np.array_equal(task.reference.outcome, outcome[turn].ravel())
    assert task.reference.counts.entered[0] == 2 * (outcome >= 0).sum() + (outcome[0] >= 0).sum()


@pytest.mark.parametrize("name", ["hd7970", "gtx680"])
def test_the_sources_parameters_apply_as_tunables(build: Any, name: str) -> None:
    tuning = parameters_for(load_profile(name), "face_detection")
    assert set(tuning) <= set(LADDER["tuned"].tunables)
    task = problem(**PASSING)
    found, outputs = build(task, LADDER["tuned"], **tuning)
    right(task, outputs)
    configuration = found.detector.configuration
    assert configuration.batch == configuration.group == {"hd7970": 64, "gtx680": 32}[name]


@pytest.mark.parametrize(
    ("variant", "chosen"),
    [
        ("per_scale", {}),
        ("persistent_threads", {}),
        ("local_queue", {}),
        ("compacted", PACKED),
        ("compacted", TILES),
        ("compacted", {"vector": 8}),
    ],
    ids=str,
)
def test_an_instrumented_build_counts_what_the_reference_counts(
    build: Any, variant: str, chosen: dict[str, int]
) -> None:
    task = problem(**SMALL)
    notes = build(task, LADDER[variant], **chosen)[0].notes()
    counts = task.reference.counts
    assert notes["entered"] == counts.entered.tolist() and notes["features"] == counts.nodes.sum()
    assert 0 < notes["busy_slots"] <= 1 <= notes["features_max_over_mean"]
    assert notes["batches"] == notes["batches_per_group"] * notes["work_groups"]
    assert (notes["atomics"] > 0) == (variant == "local_queue" or chosen in (PACKED, TILES))
    assert (notes["queue_bytes"] > 0) == (variant == "local_queue")


@pytest.mark.parametrize(
    ("variant", "chosen"), [("per_scale", {}), ("uberkernel", {}), ("compacted", {"vector": 8})], ids=str
)
def test_integral_images_on_the_device(build: Any, device: OpenDevice, variant: str, chosen: dict[str, int]) -> None:
    task = problem(**SMALL)
    sums = build(task, LADDER[variant], strip=16, **chosen)[0].detector.integrals
    pitch, lines = task.pyramid.pitch, task.pyramid.lines
    atlas = device.read(sums.sums, np.uint32, (task.frames, 3, lines, pitch))
    for level in task.pyramid.levels:
        expected = integrals(reduced(task.scene.pixels[0], level), tilted=True)
        place = atlas[0, :, level.y : level.y + level.height + 1, level.x : level.x + level.width + 1]
        assert np.array_equal(place, expected)


def test_a_cascade_that_fits_goes_to_constant_memory(build: Any) -> None:
    small, large = problem(**STUMPS), problem(**SMALL)
    assert build(small, LADDER["tuned"])[0].detector.in_constants
    assert not build(small, LADDER["tuned"], constant=0)[0].detector.in_constants
    assert not build(large, LADDER["tuned"])[0].detector.in_constants


def test_a_list_that_overflows_is_named(build: Any, device: OpenDevice) -> None:
    task = problem(width=96, height=80, cascade="frontalface_alt", frames=2, capacity=3)
    passing = len(task.reference.windows)
    assert passing > 3
    found, outputs = build(task, LADDER["uberkernel"])
    with pytest.raises(UsageError, match=f"capacity: {passing} windows pass, the list holds 3"):
        task.check(outputs)
    with pytest.raises(UsageError, match="capacity"):
        found.detector.passing.read(device)


def test_a_wrong_list_is_described() -> None:
    task = problem(width=96, height=80, cascade="frontalface_alt", frames=2)
    expected = task.reference.windows
    windows = np.full(task.parameters.capacity, 0xFFFFFFFF, np.uint32)
    windows[: len(expected)] = expected[::-1]
    right(task, {"windows": windows, "count": np.array([len(expected)], np.uint32)})
    windows[0] = max(set(range(task.windows)) - set(expected.tolist()))  # the last of all may be a right one
    errors = task.check({"windows": windows, "count": np.array([len(expected)], np.uint32)})
    assert not errors["windows"].passed and f"missing 1 ({expected[-1]})" in (errors["windows"].detail or "")
    unwritten = task.check({"windows": windows, "count": np.array([0xFFFFFFFF], np.uint32)})
    assert not unwritten["count"].passed


@pytest.mark.parametrize(
    ("variant", "tunables", "expected"),
    [
        ("tuned", {"persistent": 0}, "dynamic: work-groups"),
        ("local_queue", {"work_group": 16, "cooperative_windows": 3}, "cooperative_windows: expected work_group"),
        ("local_queue", {"work_group": 16, "cooperative_windows": 32}, "cooperative_windows: expected work_group"),
        ("local_queue", {"work_group": 24, "cooperative_windows": 0}, "work_group: expected a power of two"),
        (
            "compacted",
            {"vector": 8, "batch": 256, "unroll": 4},
            "with 8, expected vector, tile, strip alone, got batch 256",
        ),
        ("compacted", {"vector": 0, "global_queue": 1}, "tile: with 32, expected global_queue 0"),
        ("compacted", {"vector": 0, "offsets": 0}, "tile: with 32, expected global_queue 0 and offsets 1, got 0 and 0"),
    ],
)
def test_tunables_that_do_not_fit_together(build: Any, variant: str, tunables: dict[str, int], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        build(problem(**STUMPS), LADDER[variant], **tunables)


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"width": 0, "height": 30}, "width"), ({"width": 30, "height": 40_000}, "height"),
        ({"scale_factor": 1.0}, "scale_factor"), ({"scale_factor": 0.5}, "scale_factor"),
        ({"scale_factor": float("nan")}, "scale_factor"), ({"frames": 0}, "frames"), ({"step": "half"}, "step"),
        ({"capacity": 0}, "capacity"), ({"stride": 1}, "stride"), ({"source": "astronought"}, "source"),
        ({"cascade": "frontalface"}, "cascade"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameters: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Windows.Parameters(**parameters)
    assert [error["loc"] for error in caught.value.errors()] == [(key,)]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"width": 23, "height": 30}, "23 x 30 is smaller than the detection window of 24 x 24"),
        ({"width": 30}, "composite frames need both"),
        ({"source": "astronaut", "width": 30}, "given by the image 'astronaut'"),
        ({"source": "astronaut", "frames": 2}, "given by the image 'astronaut'"),
        ({"width": 32_768, "height": 32_768, "frames": 2}, r"less than 2\^31 pixels"),
    ],
)
def test_parameters_that_do_not_fit_together(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        problem(**parameters)


def test_an_image_too_large_for_its_integral_images_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(width: int, height: int, frames: int, seed: int) -> Any:
        pixels = np.broadcast_to(np.uint8(0), (frames, height, width))  # no memory
        return images.Frames(pixels, [])

    from perfport.workloads.face_detection import images

    monkeypatch.setitem(images.MADE, "composite", empty)
    with pytest.raises(
        UsageError, match="atlas_words: the integral images of 32768 x 32768 pixels take more than 2147483647 words"
    ):
        Windows(Windows.Parameters(width=32_768, height=32_768), 1)


def test_work_is_the_references_and_grows_with_the_frames() -> None:
    task = problem(**STUMPS)
    counts, work = task.reference.counts, task.work()
    assert work.flops == counts.nodes.sum() and work.read_bytes == 66 * 51
    assert counts.windows == task.windows and counts.entered[0] <= task.windows
    pixels, trees = task.pyramid.pixels, (counts.entered[:-1] * np.diff(task.cascade.stage_first)).sum()
    features = 5 * counts.rectangles.sum() - counts.nodes.sum() + trees
    assert work.integer_ops == 17 * pixels + 9 * task.windows + features
    assert task.metric_value(2.0) == pytest.approx(task.windows / 2e6)
