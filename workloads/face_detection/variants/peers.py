"""Peers: OpenCV's own detector on the same frames, cascade and parameters."""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from perfport.workload import HostPeer, Tunable, UnavailableError, UnsupportedError, usable_cores, version_of

from ..problems import OPENCV, OPENCV_OPENCL, Faces

#: One stage of one stump, which about half of all windows on noise pass.
PROBE = """<?xml version="1.0"?>
<opencv_storage><cascade type_id="opencv-cascade-classifier">
<stageType>BOOST</stageType><featureType>HAAR</featureType><height>20</height><width>20</width>
<stageParams><maxWeakCount>1</maxWeakCount></stageParams><featureParams><maxCatCount>0</maxCatCount></featureParams>
<stageNum>1</stageNum><stages><_><maxWeakCount>1</maxWeakCount><stageThreshold>0.</stageThreshold><weakClassifiers>
<_><internalNodes>0 -1 0 0.</internalNodes><leafValues>-1. 1.</leafValues></_></weakClassifiers></_></stages>
<features><_><rects><_>4 4 12 6 -1.</_><_>4 4 6 6 2.</_></rects><tilted>0</tilted></_></features>
</cascade></opencv_storage>
"""

#: OpenCV's OpenCL detector lists so many windows of a frame, and drops the others without a word (MAX_FACES in its
#: cascadedetect.hpp).
LISTED = 10_000

IPP = Tunable(1, (0, 1), "Intel's primitives within OpenCV")


class _OpenCv(HostPeer):
    """``detectMultiScale`` frame by frame. It visits fewer windows than the device variants with the same step."""

    problem = Faces
    needs: ClassVar[tuple[str, ...]] = ()  # beside a GPU too: what a user would run without it
    modules: ClassVar[tuple[str, ...]] = ("cv2",)
    source = version_of("opencv-python-headless", "opencv-python")
    threads: ClassVar[int | None] = None
    computes = OPENCV

    def prepare(self) -> None:
        import cv2

        if not hasattr(cv2, "CascadeClassifier"):
            raise UnavailableError(f"OpenCV {cv2.__version__} has no CascadeClassifier; versions 4 have it")
        self.cv2: Any = cv2
        self.own = threading.local()  # a classifier serves one thread at a time
        self.own.classifier = self.opened()
        self.pool = ThreadPoolExecutor(self.at_once)
        self.frames = [self.prepared(image) for image in self.data.scene.pixels]

    @property
    def at_once(self) -> int:
        """Frames that are detected at a time, each by one thread; 1: all threads share one."""
        return usable_cores() if self.setup.tunables.get("threads") == "frames" else 1

    def opened(self) -> Any:
        """Load the cascade."""
        classifier = self.cv2.CascadeClassifier(self.data.cascade.name)
        if classifier.empty():
            raise UnsupportedError(f"OpenCV does not load {self.data.cascade.name}")
        return classifier

    def prepared(self, image: np.ndarray) -> Any:
        """A frame as the detector takes it."""
        return image

    def compute(self) -> dict[str, np.ndarray]:
        ipp = self.cv2.ipp
        before = self.cv2.getNumThreads(), ipp.useIPP()
        self.cv2.setNumThreads(1 if self.at_once > 1 else self.threads or usable_cores())
        ipp.setUseIPP(bool(self.setup.tunables.get("ipp", before[1])))
        try:
            return {"faces": self.detected(self.data.parameters.neighbours)}
        finally:
            self.cv2.setNumThreads(before[0])
            ipp.setUseIPP(before[1])

    def detected(self, neighbours: int) -> np.ndarray:
        """Detect in all frames: rows of frame, x, y, width, height."""

        def boxes(frame: Any) -> np.ndarray:
            if not hasattr(self.own, "classifier"):
                self.own.classifier = self.opened()
            faces = self.own.classifier.detectMultiScale(frame, self.data.parameters.scale_factor, neighbours)
            return np.array(faces, np.int64).reshape(-1, 4)

        each = (self.pool.map if self.at_once > 1 else map)(boxes, self.frames)
        return np.concatenate([np.insert(faces, 0, number, axis=1) for number, faces in enumerate(each)])

    def notes(self) -> dict[str, Any]:
        return {"faces": len(self.outputs["faces"]), "threads": self.threads or usable_cores()}


class OpenCvOneThread(_OpenCv):
    """The CPU detector on one core."""

    name, title, rung = "opencv_1", "OpenCV detectMultiScale, one thread", 1
    threads = 1
    tunables: ClassVar = {"ipp": IPP}


class OpenCvAllThreads(_OpenCv):
    """The CPU detector on all cores."""

    name, title, rung = "opencv_all", "OpenCV detectMultiScale, all threads", 2
    tunables: ClassVar = {
        "ipp": IPP,
        "threads": Tunable("frame", ("frame", "frames"), "threads share each frame, or each takes whole ones"),
    }


class OpenCvOpenCl(_OpenCv):
    """OpenCV's OpenCL kernel. It has neither the skip rule nor the test for flat windows, so its windows differ.

    On devices of other vendors, and on some errors, OpenCV runs its CPU detector in silence. That shows in the windows.
    """

    name, title, rung = "opencv_opencl", "OpenCV detectMultiScale on its own OpenCL device", 3
    computes = OPENCV_OPENCL

    def prepare(self) -> None:
        super().prepare()
        if self.fell_back():
            device = self.cv2.ocl.Device_getDefault().name() or "none"
            raise UnsupportedError(f"OpenCV falls back to its CPU detector in silence (its OpenCL device: {device})")
        found = self.own.classifier.detectMultiScale
        if any(len(found(frame, self.data.parameters.scale_factor, 0)) >= LISTED for frame in self.frames):
            raise UnsupportedError(
                f"OpenCV's OpenCL detector lists at most {LISTED} windows of a frame; here more pass"
            )

    def opened(self) -> Any:
        self.cv2.ocl.setUseOpenCL(True)
        if not self.cv2.ocl.useOpenCL():
            raise UnavailableError("OpenCV finds no OpenCL device")
        return super().opened()

    def prepared(self, image: np.ndarray) -> Any:
        return self.cv2.UMat(image)

    def launch(self) -> None:
        super().launch()
        self.cv2.ocl.finish()

    def fell_back(self) -> bool:
        """Whether the CPU detector runs: then a cascade of one stage has windows left out next to those that fail."""
        noise = np.random.default_rng(0).integers(0, 256, (96, 96), np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "probe.xml"
            path.write_text(PROBE)
            classifier = self.cv2.CascadeClassifier(str(path))
            gpu, cpu = (len(classifier.detectMultiScale(image, 1.5, 0)) for image in (self.cv2.UMat(noise), noise))
        return gpu == cpu
