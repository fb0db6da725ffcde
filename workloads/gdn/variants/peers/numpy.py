"""NumPy on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfport.workload import HostPeer, version_of

from ... import reference
from ...problems import Backward, Forward, GammaGradient, Reduction, Step


class _Layer(HostPeer):
    """By images: channels x positions matrices, whose products are the BLAS library's."""

    title, rung = "NumPy in float32, by images", 1
    source = version_of("numpy")

    def images(self, name: str) -> list[np.ndarray]:
        """An array's images as (channels, positions); in NHWC these are transposed views."""
        array = getattr(self.data, name)
        if self.data.nhwc:
            return [array.reshape(-1, self.data.channels).T]
        return list(array.reshape(self.data.batch, self.data.channels, -1))

    def stacked(self, images: list[np.ndarray]) -> np.ndarray:
        """Images, laid out as the input."""
        maps = images[0].T if self.data.nhwc else np.stack(images)
        return maps.reshape(self.data.w.shape)

    def prepare(self) -> None:
        self.gamma, self.beta = self.data.gamma, self.data.beta
        self.w = self.images("w")
        if not isinstance(self.data, Forward):
            self.delta = self.images("delta")
        if isinstance(self.data, (Backward, GammaGradient)):
            self.d = self.images("d")

    def forward(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """u and D of each image."""
        d = [1 / np.sqrt(reference.pool(w, self.gamma, self.beta)) for w in self.w]
        return [w / x if self.data.inverse else w * x for w, x in zip(self.w, d, strict=True)], d

    def parameters(self, d: list[np.ndarray]) -> dict[str, Any]:
        """dgamma and dbeta: the images' own, summed."""
        parts = [
            reference.parameter_gradients(*image, self.data.inverse)
            for image in zip(self.delta, self.w, d, strict=True)
        ]
        return {"dgamma": sum(part[0] for part in parts), "dbeta": sum(part[1] for part in parts)}

    def gradients(self, d: list[np.ndarray]) -> dict[str, Any]:
        """All three."""
        dw = [
            reference.input_gradient(*image, self.gamma, self.data.inverse)
            for image in zip(self.delta, self.w, d, strict=True)
        ]
        return {"dw": self.stacked(dw), **self.parameters(d)}


class NumpyForward(_Layer):
    """Four array operations to an image."""

    problem, name = Forward, "numpy"

    def compute(self) -> Mapping[str, Any]:
        u, d = self.forward()
        return {"u": self.stacked(u), **({"d": self.stacked(d)} if self.data.training else {})}


class NumpyGammaGradient(_Layer):
    """One product to an image."""

    problem, name = GammaGradient, "numpy"

    def compute(self) -> Mapping[str, Any]:
        return {"dgamma": self.parameters(self.d)["dgamma"]}


class NumpyBackward(_Layer):
    """Two products to an image."""

    problem, name = Backward, "numpy"

    def compute(self) -> Mapping[str, Any]:
        return self.gradients(self.d)


class NumpyStep(_Layer):
    """Three products to an image."""

    problem, name = Step, "numpy"

    def compute(self) -> Mapping[str, Any]:
        u, d = self.forward()
        return {"u": self.stacked(u), **self.gradients(d)}


class NumpyReduction(HostPeer):
    """Pairwise sums of rows."""

    problem = Reduction
    name, title, rung = "numpy", "NumPy sum along rows, one core", 1
    source = version_of("numpy")

    def prepare(self) -> None:
        self.raw = self.data.rows(np.arange(self.data.vectors))

    def compute(self) -> Mapping[str, Any]:
        return {"sums": self.raw.sum(axis=1)}
