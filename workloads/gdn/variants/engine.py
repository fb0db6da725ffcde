"""What an engine is: a way to make the three fused products, each with the traffic that it causes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from perfport.backend import Buffer
from perfport.model.work import Traffic
from perfport.workload import Setup


@dataclass(frozen=True)
class Pass:
    """Launches that make one product, and their traffic."""

    launch: Callable[[], None]
    traffic: Traffic


class Engine(ABC):
    """Makes the passes of one problem on one device. ``d`` is D = z^(-1/2), (channels x positions) words."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.device, self.tunables = setup, setup.device, setup.tunables
        self.data = setup.problem
        self.channels: int = self.data.channels
        self.positions: int = self.data.positions
        # One image of all positions is the same memory as images of channel vectors.
        self.pixels: int = self.positions if self.data.nhwc else self.data.pixels
        self.batch: int = 1 if self.data.nhwc else self.data.batch
        self.macros = {"NHWC": int(self.data.nhwc), "INVERSE": int(self.data.inverse)}

    @property
    def term_flops(self) -> int:
        """Operations of one t."""
        return 3 if self.data.inverse else 5

    @abstractmethod
    def forward(self, u: Buffer, save: Buffer | None) -> Pass:
        """u, and D where there is a buffer to save it in."""

    @abstractmethod
    def input_gradient(self, d: Buffer, dw: Buffer) -> Pass:
        """dL/dw."""

    @abstractmethod
    def parameter_gradients(self, d: Buffer, dgamma: Buffer, dbeta: Buffer | None) -> Pass:
        """dL/dgamma, and dL/dbeta where there is a buffer for it."""
