"""NumPy on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import HostPeer, Tunable, version_of

from ... import reference
from ...problems import Backward, Forward, GammaGradient, Reduction, Step


class _Layer(HostPeer):
    """By blocks of an image: channels x positions matrices, whose products are the BLAS library's."""

    title, rung = "NumPy in float32, by blocks of images", 1
    source = version_of("numpy")
    tunables: ClassVar = {
        "block": Tunable(1024, (256, 1024, 1 << 30), "positions taken at a time, at most those of an image")
    }

    def blocks(self, array: np.ndarray) -> list[np.ndarray]:
        """Views of an array laid out as the input, as (channels, positions)."""
        step, channels = self.setup.tunables["block"], self.data.channels
        if self.data.nhwc:
            images = [array.reshape(-1, channels).T]
        else:
            images = list(array.reshape(self.data.batch, channels, -1))
        return [image[:, at : at + step] for image in images for at in range(0, image.shape[1], step)]

    def joined(self, blocks: list[np.ndarray]) -> np.ndarray:
        """Blocks, laid out as the input."""
        maps = np.empty_like(self.data.w)
        for place, block in zip(self.blocks(maps), blocks, strict=True):
            place[...] = block
        return maps

    def prepare(self) -> None:
        self.gamma, self.beta = self.data.gamma, self.data.beta
        self.w = self.blocks(self.data.w)
        if not isinstance(self.data, Forward):
            self.delta = self.blocks(self.data.delta)
        if isinstance(self.data, (Backward, GammaGradient)):
            self.d = self.blocks(self.data.d)

    def forward(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """u and D of each block."""
        d = [1 / np.sqrt(reference.pool(w, self.gamma, self.beta)) for w in self.w]
        return [w / x if self.data.inverse else w * x for w, x in zip(self.w, d, strict=True)], d

    def parameters(self, d: list[np.ndarray]) -> dict[str, Any]:
        """dgamma and dbeta: the blocks' own, summed."""
        parts = [
            reference.parameter_gradients(*block, self.data.inverse)
            for block in zip(self.delta, self.w, d, strict=True)
        ]
        return {"dgamma": sum(part[0] for part in parts), "dbeta": sum(part[1] for part in parts)}

    def gradients(self, d: list[np.ndarray]) -> dict[str, Any]:
        """All three."""
        dw = [
            reference.input_gradient(*block, self.gamma, self.data.inverse)
            for block in zip(self.delta, self.w, d, strict=True)
        ]
        return {"dw": self.joined(dw), **self.parameters(d)}


class NumpyForward(_Layer):
    """Four array operations to a block."""

    problem, name = Forward, "numpy"

    def compute(self) -> Mapping[str, Any]:
        u, d = self.forward()
        return {"u": self.joined(u), **({"d": self.joined(d)} if self.data.training else {})}


class NumpyGammaGradient(_Layer):
    """One product to a block."""

    problem, name = GammaGradient, "numpy"

    def compute(self) -> Mapping[str, Any]:
        return {"dgamma": self.parameters(self.d)["dgamma"]}


class NumpyBackward(_Layer):
    """Two products to a block."""

    problem, name = Backward, "numpy"

    def compute(self) -> Mapping[str, Any]:
        return self.gradients(self.d)


class NumpyStep(_Layer):
    """Three products to a block."""

    problem, name = Step, "numpy"

    def compute(self) -> Mapping[str, Any]:
        u, d = self.forward()
        return {"u": self.joined(u), **self.gradients(d)}


class NumpyReduction(HostPeer):
    """On one core, or on all by the BLAS library."""

    problem = Reduction
    name, title, rung = "numpy", "NumPy, sums along rows", 1
    source = version_of("numpy")
    tunables: ClassVar = {"form": Tunable("product", ("sum", "product"), "pairwise, or product with a vector of ones")}

    def prepare(self) -> None:
        self.raw = self.data.rows(np.arange(self.data.vectors))
        self.ones = np.ones(self.data.positions, np.float32)

    def compute(self) -> Mapping[str, Any]:
        return {"sums": self.raw.sum(axis=1) if self.setup.tunables["form"] == "sum" else self.raw @ self.ones}
