"""face_detection: the NumPy reference is OpenCV's CPU detector; grouping; photographs; peers; the example."""

from __future__ import annotations

import secrets
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_forms import forms
from PIL import Image

from perfport import workload
from perfport.model.errors import UnavailableError, UnsupportedError, UsageError
from perfport.workload import Session, Setup
from perfport.workloads.face_detection import cascade, grouping, images, pyramid, reference
from perfport.workloads.face_detection.problems import OPENCV, Faces
from perfport.workloads.face_detection.variants import peers

cv2 = pytest.importorskip("cv2")
pytest.importorskip("skimage")

EXAMPLE = Path(__file__).parents[2] / "examples" / "detect_faces.py"


def boxes(found: Any) -> list[tuple[int, ...]]:
    return sorted(map(tuple, np.array(found, np.int64).reshape(-1, 4).tolist()))


def clipped(found: np.ndarray, width: int, height: int) -> np.ndarray:
    """The boxes that have something inside, cut off at the edges."""
    boxes, inside = grouping.clip(found, width, height)
    return boxes[inside]


def noise(width: int, height: int) -> np.ndarray:
    """Smooth noise: flat parts, edges and texture."""
    rng = np.random.default_rng(width * height)
    return cv2.GaussianBlur(rng.integers(0, 256, (height, width), np.uint8), (0, 0), 1.5)


@pytest.mark.parametrize(
    ("stock", "width", "height"),
    [
        ("frontalface_default", 97, 81), ("frontalface_alt", 61, 83), ("frontalface_alt2", 24, 97),
        ("lefteye_2splits", 128, 90), ("russian_plate_number", 131, 64), ("frontalcatface_extended", 60, 47),
    ],
)  # fmt: skip
def test_windows_are_opencvs(stock: str, width: int, height: int) -> None:
    image = noise(width, height)
    used = cascade.load(stock)
    levels = pyramid.build(width, height, (used.width, used.height), 1.2, "opencv")
    outcome, _ = reference.outcomes(used, levels, image)
    mine = clipped(levels.boxes(reference.opencv_visits(used, levels, outcome)), width, height)
    assert boxes(mine) == boxes(cv2.CascadeClassifier(used.name).detectMultiScale(image, 1.2, 0))


@pytest.mark.parametrize("stock", ["frontalface_default", "lefteye_2splits"])
def test_windows_of_small_variance_are_those_that_are_left_out(stock: str) -> None:
    image = np.concatenate([noise(60, 40), np.full((40, 60), 77, np.uint8)])
    used = cascade.load(stock)
    levels = pyramid.build(60, 80, (used.width, used.height), 1.3, "full")
    outcomes, counts = zip(*(reference.outcomes(used, levels, image, flat) for flat in (False, True)), strict=True)
    left_out = [outcome == reference.LEFT_OUT for outcome in outcomes]
    assert np.array_equal(left_out[0], ~left_out[1]) and 0 < left_out[0].sum() < levels.windows
    assert [of.entered[0] for of in counts] == [levels.windows - out.sum() for out in left_out]


@pytest.mark.parametrize("rise", [8, 11, 12, 13, 14, 20])
def test_every_window_is_opencvs_with_a_cascade_that_passes_many(rise: int, tmp_path: Path) -> None:
    """One stage of one stump: half of the windows pass, and the rule that skips windows applies everywhere."""
    path = tmp_path / "probe.xml"
    path.write_text(peers.PROBE)
    image = noise(120, 20 + rise)
    levels = pyramid.build(120, 20 + rise, (20, 20), 1.1, "opencv")
    probe = cascade.read(path)
    mine = reference.opencv_visits(probe, levels, reference.outcomes(probe, levels, image)[0])
    assert len(mine) > 100
    found = cv2.CascadeClassifier(str(path)).detectMultiScale(image, 1.1, 0)
    assert boxes(clipped(levels.boxes(mine), 120, 20 + rise)) == boxes(found)


def test_faces_of_a_photograph_are_opencvs() -> None:
    task = Faces(Faces.Parameters(source="astronaut", cascade="frontalface_alt2", scale_factor=1.3), 1)
    image = task.scene.pixels[0]
    found = cv2.CascadeClassifier(task.cascade.name).detectMultiScale(image, 1.3, 3)
    expected = [(0, *box) for box in boxes(found)]
    assert len(expected) == 1
    assert task.check({"faces": np.array(expected)}, OPENCV)["faces"].passed
    assert not task.check({"faces": np.array(expected) + 1}, OPENCV)["faces"].passed
    assert not task.check({"faces": np.empty((0, 5), np.int64)})["faces"].passed


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 5), (64, 33), (300, 211)])
def test_integral_images_are_opencvs(width: int, height: int) -> None:
    image = noise(width, height)
    mine = reference.integrals(image, tilted=True)
    total, squares, tilted = cv2.integral3(image)
    assert np.array_equal(mine[0], total) and np.array_equal(mine[2], tilted)
    assert np.array_equal(mine[1], squares.astype(np.uint64).astype(np.uint32))


def test_sums_beyond_32_bits_wrap_and_differences_stay_right() -> None:
    image = np.full((300, 300), 255, np.uint8)  # squares sum to more than 2^32
    squares = reference.integrals(image, tilted=False)[1]
    assert 255**2 * 300 * 300 > 2**32
    a, b, c, d = (squares[y, x : x + 1] for y in (276, 300) for x in (276, 300))
    assert (a - b - c + d).tolist() == [255**2 * 24 * 24]


@pytest.mark.parametrize(("size", "to"), [((33, 47), (30, 43)), ((64, 64), (13, 20)), ((25, 31), (25, 31))])
def test_reduction_is_opencvs(size: tuple[int, int], to: tuple[int, int]) -> None:
    image = noise(*size)
    level = pyramid.Level(np.float32(1), *to, 1, 1, 1, 0, 0, 0, 0, 0)
    assert np.array_equal(pyramid.reduced(image, level), cv2.resize(image, to, interpolation=cv2.INTER_LINEAR_EXACT))


@pytest.mark.parametrize("most", [None, 158, 200, 300])
@pytest.mark.parametrize(("factor", "rule"), [(1.1, "opencv"), (1.37, "full"), (2.5, "opencv")])
def test_levels_and_windows_fill_the_atlas(factor: float, rule: Any, most: int | None) -> None:
    levels = pyramid.build(211, 157, (24, 20), factor, rule, most=most)
    used = np.zeros((len(levels.groups), levels.lines, levels.pitch), int)
    for group, lines in enumerate(levels.group_lines):
        for level in (levels.levels[number] for number in levels.groups[group]):
            used[group, level.y : level.y + level.height + 1, level.x : level.x + level.width + 1] += 1
        assert used[group, lines - 1].any() and not used[group, lines:].any()
    assert levels.lines <= (most or levels.lines)
    assert (len(levels.groups) > 1) is (most is not None and (factor, most) != (2.5, 300))
    assert used.max() == 1 and used.sum() == sum((level.width + 1) * (level.height + 1) for level in levels.levels)
    number, x, y = levels.locate(np.arange(levels.windows))
    for i, level in enumerate(levels.levels):
        here = number == i
        assert here.sum() == level.windows
        assert (x[here].max(), y[here].max()) <= (level.width - 24, level.height - 20)
        assert set(np.diff(np.unique(x[here]))) <= {level.step}
        assert level.width - 24 - x[here].max() < level.step and level.height - 20 - y[here].max() < level.step


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("neighbours", [0, 1, 3])
def test_grouping_is_opencvs(seed: int, neighbours: int) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 300, (6, 2))
    which, sides = rng.integers(0, 6, 150), rng.integers(20, 120, 6)
    side = sides[which] + rng.integers(-6, 7, 150)
    corners = centres[which] + rng.integers(-8, 9, (150, 2))
    given = np.column_stack([corners, side, side])
    expected = cv2.groupRectangles(given.tolist(), neighbours, 0.2)[0]
    assert boxes(grouping.group(given, neighbours)) == boxes(expected)


def test_grouping_of_nothing_is_nothing() -> None:
    assert grouping.group(np.empty((0, 4), np.int64), 3).shape == (0, 4)
    assert grouping.group(np.array([[1, 2, 30, 30]]), 3).shape == (0, 4)


def test_composed_frames_hold_the_faces_that_they_tell_of() -> None:
    one, same, other = (images.composite(300, 200, 2, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.pixels, same.pixels) and not np.array_equal(one.pixels, other.pixels)
    assert one.pixels.shape == (2, 200, 300) and one.pixels.dtype == np.uint8
    for faces in one.faces:
        assert len(faces) and (faces[:, :2] >= 0).all()
        assert (faces[:, 0] + faces[:, 2] <= 300).all() and (faces[:, 1] + faces[:, 3] <= 200).all()
        for i, (x, y, w, h) in enumerate(faces):
            for px, py, pw, ph in faces[:i]:
                assert x >= px + pw or px >= x + w or y >= py + ph or py >= y + h
    assert images.composite(20, 21, 1, 0).faces[0].shape == (0, 4)


def test_photographs_ship_in_packages() -> None:
    assert images.photograph("astronaut").shape == (512, 512) and images.photograph("grace_hopper").ndim == 2
    colour = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    assert np.array_equal(images.grey(colour), cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY))


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (np.zeros((4, 4), np.uint16), "expected 8-bit pixels, got uint16"), (np.zeros((4, 4)), "got float64"),
        (np.zeros((0, 4), np.uint8), "it is empty, 4 x 0"), (np.zeros((4, 4, 2), np.uint8), "or with 3 or 4 channels"),
        (np.zeros(4, np.uint8), r"expected shape \(height, width\)"),
    ],
)  # fmt: skip
def test_bad_images(image: np.ndarray, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        images.grey(image)


def test_bad_image_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.png"
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(path)
    with pytest.raises(UsageError, match=r"mine\.png: expected 8 bits per channel"):
        images.photograph(str(path))
    for content in (b"", b"not an image", path.read_bytes()[:40]):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=r"mine\.png: not a readable image"):
            images.photograph(str(path))


def test_an_image_may_state_any_size_and_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers alone: nothing is unpacked. Pillow warns of the first, refuses the last, and lets no other through."""
    path = tmp_path / "mine.png"
    for side, message in ((11_000, None), (12_000, r"expected at most 134217728 pixels, got 12000 x 12000"),
                          (60_000, "not a readable image .*decompression bomb")):  # fmt: skip
        chunk = b"IHDR" + side.to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
        end = b"\0\0\0\0IDAT" + zlib.crc32(b"IDAT").to_bytes(4, "big")
        path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\x0d" + chunk + zlib.crc32(chunk).to_bytes(4, "big") + end)
        with warnings.catch_warnings(action="error"), pytest.raises(UsageError, match=message or "truncated"):
            images.photograph(str(path))


def test_no_program_is_run_for_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow has Ghostscript, an interpreter, draw EPS."""
    path = tmp_path / "mine.png"
    Image.new("L", (4, 4)).save(path, "EPS")
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("a program was run"))
    with pytest.raises(UsageError, match=r"mine\.png: not a readable image of the formats BMP"):
        images.photograph(str(path))


def test_photographs_of_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match="ships in scikit-image"):
        images.photograph("astronaut")


@pytest.mark.parametrize(
    ("cls", "tunables"),
    [(cls, tunables) for cls in (peers.OpenCvOneThread, peers.OpenCvAllThreads) for tunables in forms(cls)],
)
def test_peers_pass_the_check(cls: type[Any], tunables: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"width": 97, "height": 81, "frames": 3, "cascade": "frontalface_alt", "scale_factor": 1.2}
    task = Faces(Faces.Parameters(**parameters), secrets.randbelow(2**31))
    monkeypatch.setattr(peers, "usable_cores", lambda: 2)
    peer = cls(Setup(Session(None, task, Path()), tunables, {}))  # type: ignore[arg-type]
    before = cv2.getNumThreads(), cv2.ipp.useIPP()
    peer.launch()
    assert (cv2.getNumThreads(), cv2.ipp.useIPP()) == before
    assert peer.at_once == (2 if tunables.get("threads") == "frames" else 1)
    verified = task.verify(peer.results(), cls.computes)
    assert verified.passed, verified
    assert peer.notes()["faces"] == len(peer.results()["faces"])


def test_opencvs_silent_fallback_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Faces(Faces.Parameters(width=32, height=32), 4)
    monkeypatch.setattr(cv2.ocl, "useOpenCL", lambda: True)  # it believes that there is a device
    monkeypatch.setattr(cv2.ocl, "setUseOpenCL", lambda on: None)
    monkeypatch.setattr(cv2, "UMat", lambda image: image)  # and takes the path of the CPU
    with pytest.raises(UnsupportedError, match="falls back to its CPU detector in silence"):
        peers.OpenCvOpenCl(Setup(Session(None, task, Path()), {}, {}))  # type: ignore[arg-type]
    monkeypatch.setattr(cv2.ocl, "useOpenCL", lambda: False)
    with pytest.raises(UnavailableError, match="OpenCV finds no OpenCL device"):
        peers.OpenCvOpenCl(Setup(Session(None, task, Path()), {}, {}))  # type: ignore[arg-type]


def test_opencv_drops_windows_beyond_its_list(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Faces(Faces.Parameters(width=97, height=81, frames=2, cascade="frontalface_alt"), 4)
    setup = Setup(Session(None, task, Path()), {}, {})  # type: ignore[arg-type]
    found = cv2.CascadeClassifier(task.cascade.name).detectMultiScale
    most = max(len(found(image, task.parameters.scale_factor, 0)) for image in task.scene.pixels)
    monkeypatch.setattr(cv2.ocl, "useOpenCL", lambda: True)
    monkeypatch.setattr(cv2.ocl, "setUseOpenCL", lambda on: None)
    monkeypatch.setattr(cv2, "UMat", lambda image: image)
    monkeypatch.setattr(peers.OpenCvOpenCl, "fell_back", lambda self: False)
    monkeypatch.setattr(peers, "LISTED", most + 1)
    peers.OpenCvOpenCl(setup)
    monkeypatch.setattr(peers, "LISTED", most)
    with pytest.raises(UnsupportedError, match=f"lists at most {most} windows of a frame; here more pass"):
        peers.OpenCvOpenCl(setup)


def test_opencv_is_not_imported_with_the_workload() -> None:
    code = (
        "import sys; from perfport import workload; workload.discover(); "
        "print([m for m in ('cv2', 'skimage') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_example_annotates_an_image(opencl_infos: Any, tmp_path: Path) -> None:
    face = images.crops()[0].repeat(3, axis=0).repeat(3, axis=1)
    image = np.full((90, 100), 128, np.uint8)
    image[5:80, 10:85] = face
    Image.fromarray(image).save(tmp_path / "in.png")
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "in.png"), "-o", str(tmp_path / "out.png")]
    command += ["--device", opencl_infos[0].id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 face" in done.stdout
    drawn = np.asarray(Image.open(tmp_path / "out.png"))
    assert drawn.shape == (90, 100, 3) and not np.array_equal(drawn[:, :, 0], image)
    bad = subprocess.run(
        [*command[:2], str(tmp_path / "none.png"), "-o", "x.png"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert bad.returncode == 2 and "none.png" in bad.stderr and "Traceback" not in bad.stderr


def test_discovered() -> None:
    found = workload.discover()["face_detection"]
    assert set(found.problems) == {"windows", "faces"} and found.published
