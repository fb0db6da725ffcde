"""Variants of `faces`: detection and grouping on the device; the host clips and sorts the faces."""

from __future__ import annotations

import base64
import io
from typing import Any, ClassVar

import numpy as np
from PIL import Image, ImageDraw

from perfport.model.work import Traffic
from perfport.workload import Setup, Variant

from ..problems import Faces
from .detector import Detector, Techniques
from .groups import Groups
from .windows import SOURCE, Compacted, PerScale, Tuned

PICTURE_PIXELS = 512 * 1024  # of a frame that a record may hold


class _Faces(Variant):
    """Ranked by wall time, because the host takes part."""

    problem = Faces
    needs = ("fp64",)
    source = SOURCE
    host_driven = True

    def __init__(self, setup: Setup) -> None:
        self.data: Faces = setup.problem
        found = setup.scratch(4 * self.data.parameters.capacity)
        self.detector = Detector(setup, self.chosen(setup), found, setup.scratch(4))
        self.groups = Groups(setup, found, self.detector.count) if self.data.parameters.neighbours else None
        self.faces = np.empty((0, 5), np.int64)

    def chosen(self, setup: Setup) -> Techniques:
        """The techniques that this variant uses."""
        return Tuned.selected(setup)

    def launch(self) -> None:
        self.enqueue()
        if self.groups:
            self.faces = self.data.clipped(self.groups.read())
        else:
            self.faces = self.data.grouped(self.detector.passing())

    def enqueue(self) -> None:
        """Enqueue what the device does."""
        self.detector.launch()
        if self.groups:
            self.groups.launch()

    def results(self) -> dict[str, np.ndarray]:
        return {"faces": self.faces}

    def traffic(self) -> Traffic:
        if self.groups:
            return Traffic.total(self.detector.traffic(), self.groups.traffic())
        return self.detector.traffic()

    def notes(self) -> dict[str, Any]:
        """Device seconds by kernel in one more execution (the time split), and figures of an instrumented build."""
        times = self.detector.device.timed(self.enqueue, split=True)
        return {
            "faces": len(self.faces), "pasted_faces_found": _found(self.data, self.faces),
            "kernel_seconds": times.kernels, **self.detector.instrumented(),
        }  # fmt: skip


class FacesPerScale(_Faces):
    """The first rung, as a whole detector."""

    name, title, rung = "per_scale", "one launch per level, one work-item per window", 1
    tunables: ClassVar = PerScale.tunables

    def chosen(self, setup: Setup) -> Techniques:
        return PerScale.techniques


class FacesTuned(_Faces):
    """The last rung, as a whole detector."""

    name, title, rung = "tuned", "all techniques of the source", 8
    tunables: ClassVar = Tuned.tunables


class FacesCompacted(_Faces):
    """Beyond the source, as a whole detector."""

    name, title, role, rung = (
        "compacted",
        "large batches, survivors packed, a node loaded once for several",
        "beyond",
        9,
    )
    source = "beyond the source"
    tunables: ClassVar = Compacted.tunables

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


def _found(problem: Faces, faces: np.ndarray) -> str:
    """How many of the pasted faces have a detected face over them: centres closer than a quarter of the pasted side."""
    found = total = 0
    for frame, pasted in enumerate(problem.scene.faces):
        centres = faces[faces[:, 0] == frame][:, 1:3] + faces[faces[:, 0] == frame][:, 3:5] / 2
        for x, y, w, h in pasted:
            total += 1
            found += bool((np.abs(centres - (x + w / 2, y + h / 2)) <= w / 4).all(axis=1).any())
    return f"{found} of {total}"
