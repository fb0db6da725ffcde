"""What an engine is: a way to make the three fused products, each with the traffic that it causes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from perfport.workload import Buffer, DeviceInfo, Enqueue, Setup, Tunable


class Engine(ABC):
    """Makes the steps of one problem on one device. ``d`` is D = z^(-1/2), (channels x positions) words.

    Class attributes
    ----------------
    TUNABLES, INPUT_TUNABLES, GAMMA_TUNABLES : dict of str to Tunable
        Of the products over positions, of that for the input's gradient alone, and of dgamma's.
    name, title, rung, needs, unit, precision
        Of its variants, as of `Variant`; name and title say ``{problem}`` and ``{what}``, as of `fused.PROBLEMS`.
    """

    TUNABLES: ClassVar[dict[str, Tunable]]
    INPUT_TUNABLES: ClassVar[dict[str, Tunable]] = {}
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]]
    name: ClassVar[str]
    title: ClassVar[str]
    rung: ClassVar[int]
    needs: ClassVar[tuple[str, ...]] = ()
    unit: str | None = None
    precision: ClassVar[str] = "fp32"

    def __init__(self, setup: Setup) -> None:
        self.setup, self.device, self.tunables = setup, setup.device, setup.tunables
        self.data = setup.problem
        self.channels: int = self.data.channels
        self.positions: int = self.data.positions
        # One image of all positions is the same memory as images of channel vectors.
        self.pixels: int = self.positions if self.data.nhwc else self.data.pixels
        self.batch: int = 1 if self.data.nhwc else self.data.batch
        self.macros = {"NHWC": int(self.data.nhwc), "INVERSE": int(self.data.inverse)}

    @classmethod  # noqa: B027 -- most ask for nothing more
    def require(cls, info: DeviceInfo) -> None:
        """Raise `UnsupportedError` on a device that has what the engine needs, but not enough of it."""

    @abstractmethod
    def forward(self, u: Buffer, save: Buffer | None) -> Enqueue:
        """u, and D where there is a buffer to save it in."""

    @abstractmethod
    def input_gradient(self, d: Buffer, dw: Buffer) -> Enqueue:
        """dL/dw."""

    @abstractmethod
    def parameter_gradients(self, d: Buffer, dgamma: Buffer, dbeta: Buffer | None) -> Enqueue:
        """dL/dgamma, and dL/dbeta where there is a buffer for it."""
