"""Bandwidth of local memory, without bank conflicts and with the worst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .bench import Bench
from .kind import Execution, Rate, Shape, grid

BANKS = 32  # or a divisor of the device's number: then, too, a stride of so many words meets one bank
TILE = 1024  # vectors


@dataclass(frozen=True)
class LocalRead(Rate):
    """Reads of local memory, neighbouring work-items ``stride`` vectors apart."""

    stride: int

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return widths, sizes of the work-group and reads in flight."""
        units = bench.info.compute_units
        conflict = self.stride > 1
        if bench.cpu:
            widths: tuple[int, ...] = (1,) if conflict else (4, 16)
            sizes: tuple[int, ...] = (64,) if conflict else (1,)
            groups = 4 * units
        else:
            widths, sizes, groups = (1,) if conflict else (1, 4), (256, 512), 8 * units
        if full and not conflict:
            widths = (1, 4, 8, 16) if bench.cpu else (1, 4)
        return grid(width=widths, unroll=(4, 8) if full or not conflict else (4,), group=sizes, groups=(groups,))

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``64 scale`` steps of every work-item."""
        width, groups, group, unroll = shape["width"], shape["groups"], shape["group"], shape["unroll"]
        tile = TILE // 4 if width > 4 else TILE
        macros: dict[str, int | str] = {
            "VECTOR": "float", "WIDTH": width, "UNROLL": unroll, "TILE": tile, "STRIDE": self.stride,
            "HOP": 1 if self.stride > 1 else BANKS // min(width, 4),
        }  # fmt: skip
        kernel = bench.kernel("local.cl", "local_read", macros)
        steps = 64 * scale
        args = (bench.buffer("tile", 4 * 16 * 2 * TILE), bench.out(groups * group), np.uint32(steps))
        return Execution(
            lambda: bench.device.launch(kernel, groups, group, *args),
            float(steps * unroll * 4 * width * groups * group),
        )
