"""Variants of `faces`: detection and grouping on the device; the host clips and sorts the faces."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from perfport.workload import Buffer, Setup

from ..problems import Faces
from . import instrumented
from .compacted import Compacted
from .groups import Groups
from .windows import Detecting, PerScale, Tuned

PICTURE_PIXELS = 512 * 1024  # of a frame that a record may hold


class _Faces(Detecting):
    """Ranked by wall time, because the host takes part."""

    problem = Faces
    host_driven = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.data: Faces = setup.problem
        self.groups = Groups(setup, self.detector.passing) if self.data.parameters.neighbours else None
        self.steps = (*self.steps, *([self.groups] if self.groups else []))
        self.faces = np.empty((0, 5), np.int64)

    def lists(self, setup: Setup, capacity: int) -> tuple[Buffer, Buffer]:
        """They stay on the device."""
        return setup.scratch(4 * capacity), setup.scratch(4)

    def launch(self) -> None:
        super().launch()
        if self.groups:
            self.faces = self.data.clipped(self.groups.read())
        else:
            self.faces = self.data.grouped(self.detector.passing.read(self.detector.device))

    def results(self) -> dict[str, np.ndarray]:
        return {"faces": self.faces}

    def notes(self) -> dict[str, Any]:
        """Device seconds by kernel in one more execution (the time split), and figures of an instrumented build."""
        times = self.detector.device.timed(super().launch, split=True)
        return {
            "faces": len(self.faces), "pasted_faces_found": _covered(self.data, self.faces),
            "kernel_seconds": times.kernels, **instrumented.figures(self.detector),
        }  # fmt: skip


class FacesPerScale(_Faces, PerScale):
    """The first rung, as a whole detector."""


class FacesTuned(_Faces, Tuned):
    """The last rung, as a whole detector."""

    title = "all techniques of the source"


class FacesCompacted(_Faces, Compacted):
    """Beyond the source, as a whole detector."""

    def notes(self) -> dict[str, Any]:
        """Further the first frame with its faces, where it is small enough for a report."""
        if self.data.width * self.data.height > PICTURE_PIXELS:
            return super().notes()
        return {**super().notes(), "picture": _picture(self.data, self.faces)}


def _picture(problem: Faces, faces: np.ndarray) -> dict[str, str]:
    """The first frame with a frame around each face that was found."""
    first = faces[faces[:, 0] == 0][:, 1:].tolist()
    image = Image.fromarray(problem.scene.pixels[0]).convert("RGB")
    draw = ImageDraw.Draw(image)
    for x, y, width, height in first:
        draw.rectangle((x, y, x + width - 1, y + height - 1), outline=(255, 90, 0), width=max(2, width // 40))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=80)
    caption = f"Faces found in {problem.parameters.source}: {len(first)}"
    return {"jpeg": base64.b64encode(written.getvalue()).decode(), "caption": caption}


def _covered(problem: Faces, faces: np.ndarray) -> str:
    """How many of the pasted faces have a detected face over them: centres closer than a quarter of the pasted side."""
    covered = total = 0
    for frame, pasted in enumerate(problem.scene.faces):
        centres = faces[faces[:, 0] == frame][:, 1:3] + faces[faces[:, 0] == frame][:, 3:5] / 2
        for x, y, w, h in pasted:
            total += 1
            covered += bool((np.abs(centres - (x + w / 2, y + h / 2)) <= w / 4).all(axis=1).any())
    return f"{covered} of {total}"
