"""The problems: all windows that pass the cascade, and the faces in frames."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perfport.workload import Metric, Output, OutputError, Problem, UsageError, Work, compare_exact

from . import cascade, grouping, images, pyramid, reference
from .cascade import known
from .pyramid import StepRule

#: Faces by the windows that OpenCV's detectors visit: on CPUs, and by OpenCL, where flat windows are evaluated too.
OPENCV, OPENCV_OPENCL = "OpenCV", "OpenCV OpenCL"
PLANES = 3  # of the atlas at most: sums, sums of squares, tilted sums
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 96, "height": 80},
    "quick": {"width": 640, "height": 480},
    "hd": {"width": 1280, "height": 720},
    "full": {"width": 1920, "height": 1080},
    "full_step1": {"width": 1920, "height": 1080, "step": "full"},
    "batch": {"width": 1920, "height": 1080, "frames": 32, "scenes": 4},
    "large": {"width": 3840, "height": 2160},
    "paper": {"width": 640, "height": 480, "cascade": "frontalface_alt"},
    "astronaut": {"source": "astronaut"},
    "grace_hopper": {"source": "grace_hopper"},
}
# Lists that just hold all windows: a simulator that looks for races pays for every byte of every buffer at each launch.
CHECK_SIZES: tuple[dict[str, Any], ...] = (
    {"width": 33, "height": 30, "cascade": "frontalface_alt", "scale_factor": 1.15, "capacity": 71},
    {
        "width": 37, "height": 32, "cascade": "frontalface_alt", "scale_factor": 1.3, "step": "full", "capacity": 291,
    },
    {"width": 24, "height": 24, "capacity": 1},
    {"width": 31, "height": 29, "cascade": "frontalface_alt2", "scale_factor": 1.3, "frames": 2, "capacity": 79},
    {"width": 31, "height": 28, "cascade": "lefteye_2splits", "scale_factor": 1.3, "capacity": 37},
    {
        "width": 37, "height": 33, "cascade": "frontalface_alt", "scale_factor": 1.15, "frames": 2, "capacity": 238,
        "atlas_words": 3 * 64 * 34,
    },
    {"width": 29, "height": 27, "source": "equal", "cascade": "frontalface_alt", "scale_factor": 1.3, "capacity": 31},
    {"width": 29, "height": 27, "source": "extreme", "cascade": "frontalface_alt", "scale_factor": 1.3, "capacity": 31},
)  # fmt: skip


class Scene(BaseModel):
    """Frames, cascade and pyramid.

    ``source``: ``composite`` (of ``width``, ``height``, ``frames``), a photograph's name, or the path of an image; to
    verify with, ``equal`` (grey) and ``extreme`` (black and white at random) in place of ``composite``.
    ``scenes``: how many of the frames differ, if not all; the others repeat them in turn.
    ``cascade``: a stock name or the path of an XML file. ``step``: windows 2 pixels apart below scale 2, as OpenCV
    has it, or always 1 (``full``). ``capacity``: passing windows that the list holds. ``atlas_words``: 32-bit words
    that the integral images of a frame may take at a time, by default what offsets address; levels beyond wait for the
    next group.
    """

    model_config = ConfigDict(extra="forbid")

    source: images.Source = "composite"
    width: int | None = Field(None, ge=1, le=32_768)
    height: int | None = Field(None, ge=1, le=32_768)
    frames: int = Field(1, ge=1, le=1024)
    scenes: int | None = Field(None, ge=1, le=1024)
    cascade: Annotated[str, AfterValidator(known)] = "frontalface_default"
    scale_factor: float = Field(1.1, ge=1.01, le=100)
    step: StepRule = "opencv"
    capacity: int = Field(1 << 18, ge=1, lt=2**28)
    atlas_words: int = Field(2**31 - 1, ge=1, lt=2**31)


class _Frames(Problem):
    """Frames through a pyramid and a cascade."""

    inputs_by_buffers = True
    presets = PRESETS
    check_sizes = CHECK_SIZES

    Parameters = Scene

    def __init__(self, parameters: Scene, seed: int) -> None:
        super().__init__(parameters, seed)
        self.cascade = cascade.load(parameters.cascade)
        self.scene = self._scene(parameters, seed)
        window = self.cascade.width, self.cascade.height
        self.frames, self.height, self.width = self.scene.pixels.shape
        if self.width < window[0] or self.height < window[1]:
            raise UsageError(
                f"source: the image of {self.width} x {self.height} is smaller than the detection window of "
                f"{window[0]} x {window[1]}"
            )
        most = parameters.atlas_words // (PLANES * pyramid.atlas_pitch(self.width))
        if most <= self.height:
            raise UsageError(
                f"atlas_words: the integral images of {self.width} x {self.height} pixels take more than "
                f"{parameters.atlas_words} words"
            )
        self.pyramid = pyramid.build(
            self.width, self.height, window, parameters.scale_factor, parameters.step, most=most
        )
        if self.windows >= 2**31:
            raise UsageError(
                f"width, height, frames: {self.frames} of {self.width} x {self.height} have too many windows for "
                "32-bit numbers"
            )

    @classmethod
    def data_decide_time(cls, parameters: Scene) -> bool:
        return parameters.source in images.MADE  # how far windows get depends on what the frames show

    def _scene(self, parameters: Scene, seed: int) -> images.Frames:
        if parameters.source not in images.MADE:
            if parameters.width or parameters.height or parameters.frames != 1 or parameters.scenes:
                given = f"given by the image {parameters.source!r}, which is one frame"
                raise UsageError(f"width, height, frames, scenes: {given}")
            return images.Frames(images.photograph(parameters.source)[None], [np.empty((0, 4), np.int64)])
        if parameters.width is None or parameters.height is None:
            raise UsageError(f"width, height: {parameters.source} frames need both")
        if parameters.width * parameters.height * parameters.frames >= 2**31:
            raise UsageError("width, height, frames: expected less than 2^31 pixels in all")
        scenes = min(parameters.scenes or parameters.frames, parameters.frames)
        made = images.MADE[parameters.source](parameters.width, parameters.height, scenes, seed)
        if scenes == parameters.frames:
            return made
        turn = np.arange(parameters.frames) % scenes
        return images.Frames(made.pixels[turn], [made.faces[scene] for scene in turn])

    @property
    def windows(self) -> int:
        """Windows of all frames."""
        return self.frames * self.pyramid.windows

    @property
    def tilted(self) -> bool:
        """Whether the cascade needs tilted integral images."""
        return bool(self.cascade.tilted.any())

    @cached_property
    def reference(self) -> reference.Detection:
        """Passing windows of all frames, and what finding them takes."""
        return reference.detect(self.cascade, self.pyramid, self.scene.pixels)

    def work(self, *which: str) -> Work:
        """Useful operations, from the reference's counts.

        A pixel of a level takes 8 integer operations to interpolate (3 along each axis, 2 to round) and 5 for the two
        integral images (4 more for tilted ones); a window 9 for sums and variance; a feature 3 per rectangle, a
        multiply-add for each but the first, which is a multiplication, and one FP32 product; a tree one addition. Bytes
        are those of the frames and of the list of passing windows; the cascade is left out. What is loaded are the
        corners that rectangles do not share, and 8 words for each window's sums: no two windows, and no two features of
        a window, have their corners at the same places often enough for registers.
        """
        detection, per_stage = self.reference, np.diff(self.cascade.stage_first)
        counts = detection.counts
        features = 5 * counts.rectangles.sum() - counts.nodes.sum() + (counts.entered[:-1] * per_stage).sum()
        pixels = self.frames * self.pyramid.pixels * (13 + 4 * self.tilted)
        return Work(
            flops=float(counts.nodes.sum()),
            integer_ops=float(pixels + 9 * counts.windows + features),
            read_bytes=float(self.scene.pixels.nbytes),
            write_bytes=4.0 * len(detection.windows),
            load_bytes=4.0 * float(counts.corners.sum() + 8 * counts.windows),
        )


class Windows(_Frames):
    """Numbers of all windows that pass all stages: pyramid, integral images and detection, without grouping."""

    name = "windows"
    title = "Windows that pass a cascade of Haar features"
    metric = Metric("face.windows", "Mwindows/s", "higher", "windows of all levels, by whatever work each one needs")
    headline = {"cpu": "quick", "gpu": "large"}
    figures: ClassVar[dict[str, tuple[str, ...]]] = {
        "Load imbalance and queues": (
            "work_groups", "batches", "batches_per_group", "busy_slots", "windows_max_over_mean",
            "features_max_over_mean", "atomics", "queue_bytes",
        ),
    }  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.windows / seconds / 1e6

    def outputs(self, *which: str) -> dict[str, Output]:
        return {
            "windows": Output(np.uint32, (self.parameters.capacity,), partial=True), "count": Output(np.uint32, (1,))
        }  # fmt: skip

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        expected = self.reference.windows
        count = int(outputs["count"][0])
        capacity = self.parameters.capacity
        if capacity < count <= self.windows:
            raise UsageError(f"capacity: {count} windows pass, the list holds {capacity}")
        passing = np.sort(outputs["windows"][: min(count, capacity)].astype(np.int64))
        errors = {
            "count": compare_exact(np.array([count]), np.array([len(expected)])),
            "windows": compare_exact(passing, expected),
        }
        if not errors["windows"].passed:
            errors["windows"].detail = f"missing {_some(expected, passing)}; in excess {_some(passing, expected)}"
        return errors


class Faces(_Frames):
    """Grouped rectangles of each frame, in host memory at the end: what a user asks a detector for."""

    name = "faces"
    title = "Faces in frames"
    metric = Metric("face.frames", "frames/s", "higher", "frames on the device to grouped rectangles on the host")
    headline = {"cpu": "full", "gpu": "large"}
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32",), OPENCV: ("fp32",), OPENCV_OPENCL: ("fp32",)}

    class Parameters(Scene):
        """As for windows. ``neighbours``: a face needs more windows than this; 0 does not group."""

        neighbours: int = Field(3, ge=0, le=1000)

    def metric_value(self, seconds: float) -> float:
        return self.frames / seconds

    def grouped(self, windows: np.ndarray, levels: pyramid.Pyramid | None = None) -> np.ndarray:
        """Group passing windows, by their numbers, into faces.

        Parameters
        ----------
        windows : int64
        levels : Pyramid, optional
            What the numbers refer to; the problem's own pyramid unless given.

        Returns
        -------
        int64, shape (faces, 5)
            Frame, x, y, width, height; in ascending order.
        """
        levels = levels or self.pyramid
        frame, inside = np.divmod(windows, levels.windows)
        boxes = [
            grouping.group(levels.boxes(inside[frame == n]), self.parameters.neighbours) for n in range(self.frames)
        ]
        frames = np.repeat(np.arange(self.frames), [len(of_frame) for of_frame in boxes])
        return self.clipped(np.concatenate([frames[:, None], np.concatenate(boxes)], axis=1))

    def clipped(self, faces: np.ndarray) -> np.ndarray:
        """Cut faces (frame, x, y, width, height) off at the edges of the frames, and sort them."""
        boxes, inside = grouping.clip(faces[:, 1:], self.width, self.height)
        return _ordered(np.concatenate([faces[:, :1], boxes], axis=1)[inside])

    @cached_property
    def _opencv_pyramid(self) -> pyramid.Pyramid:
        return pyramid.build(self.width, self.height, self.pyramid.window, self.parameters.scale_factor, "opencv")

    def _expected(self, computes: str) -> np.ndarray:
        if not computes:
            return self.grouped(self.reference.windows)
        levels = self._opencv_pyramid
        found = self.reference
        if self.parameters.step != "opencv":
            found = reference.detect(self.cascade, levels, self.scene.pixels)
        if computes == OPENCV:
            frames = np.split(found.outcome, self.frames)
            visits = [reference.opencv_visits(self.cascade, levels, outcome) for outcome in frames]
            windows = np.concatenate([f * levels.windows + visited for f, visited in enumerate(visits)])
        else:
            flat = reference.detect(self.cascade, levels, self.scene.pixels, flat=True)
            windows = np.union1d(found.windows, flat.windows)
        return self.grouped(windows, levels)

    @cached_property
    def _references(self) -> dict[str, np.ndarray]:
        return {}

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"faces": Output(np.int64, (None, 5))}

    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        if computes not in self._references:
            self._references[computes] = self._expected(computes)
        return {name: compare_exact(_ordered(value), self._references[computes]) for name, value in outputs.items()}


def _ordered(faces: np.ndarray) -> np.ndarray:
    return faces[np.lexsort(faces.T[::-1])]


def _some(these: np.ndarray, those: np.ndarray) -> str:
    """How many numbers are in one list alone, and the first of them."""
    only = np.setdiff1d(these, those)
    return f"{len(only)} ({', '.join(map(str, only[:4]))})" if len(only) else "0"
