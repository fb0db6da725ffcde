"""Triton: the forward pass as a tiled product with what is before and after it fused, in FP32 and in TF32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from perfport.workload import TorchCudaPeer, Tunable, ceil_div, version_of

from ...problems import Forward
from .. import inputs


class TritonForward(TorchCudaPeer):
    """One kernel; products of FP32 as three of TF32, or by FP32 units."""

    problem = Forward
    name, title, rung = "triton", "Triton, one fused kernel, three TF32 products", 8
    modules = ("cupy", "torch", "triton")
    source = version_of("triton")
    TILES: ClassVar = {
        "out": Tunable(64, (64, 128), "channels of a tile"),
        "positions": Tunable(128, (64, 128), "positions of a tile"),
        "warps": Tunable(4, (4, 8), "warps of a block"),
        "stages": Tunable(3, (3, 4), "tiles in flight"),
    }
    tunables: ClassVar = {**TILES, "product": Tunable("tf32x3", ("tf32x3", "ieee"), "how FP32 is multiplied")}

    def prepare(self) -> None:
        from ...triton_kernels import forward

        data, chosen = self.data, self.setup.tunables
        self.kernel = forward.forward
        w, gamma, beta = (
            self.tensor(inputs.array(self.setup, name), getattr(data, name).shape) for name in ("w", "gamma", "beta")
        )
        self.maps = {name: self.torch.empty_like(w) for name in (("u", "d") if data.training else ("u",))}
        if data.nhwc:
            images, pixels, strides = 1, data.positions, (0, 1, data.channels)
        else:
            images, pixels = data.batch, data.pixels
            strides = (data.channels * pixels, pixels, 1)
        self.grid = (ceil_div(pixels, chosen["positions"]), ceil_div(data.channels, chosen["out"]), images)
        self.arguments = (
            w, gamma, beta, self.maps["u"], self.maps.get("d", self.maps["u"]), data.channels, pixels, *strides
        )  # fmt: skip

    def compute(self) -> Mapping[str, Any]:
        chosen = self.setup.tunables
        self.kernel[self.grid](
            *self.arguments, OUT=chosen["out"], POSITIONS=chosen["positions"], IN=32,
            PRODUCT=chosen.get("product", "tf32"), INVERSE=self.data.inverse, TRAINING=self.data.training,
            num_warps=chosen["warps"], num_stages=chosen["stages"],
        )  # fmt: skip
        return self.maps


class TritonForwardTf32(TritonForward):
    """The same with one product in TF32."""

    name, title, rung = "triton_tf32", "Triton, one fused kernel, TF32", 9
    precision, unit = "tf32", "tf32_mma"
    tunables = TritonForward.TILES
