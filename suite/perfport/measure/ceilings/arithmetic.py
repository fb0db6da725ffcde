"""Arithmetic rates: independent chains of a recurrence without a closed form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bench import Bench
from .kind import Execution, Rate, Shape, grid


@dataclass(frozen=True)
class Chains(Rate):
    """Chains of one recurrence of ``arithmetic.cl``.

    Attributes
    ----------
    macro : str
        Names the recurrence.
    operations : int
        What one step of one lane counts.
    constants : tuple
        Values of a and c.
    variants : mapping
        Axes of the recurrence's forms, macro -> values.
    vectors : bool
        Whether it exists for vectors; where not, a CPU's compiler makes them of neighbouring work-items.
    """

    macro: str
    operations: int
    constants: tuple[Any, Any]
    variants: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    vectors: bool = True

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return chains and widths: a CPU has few wide work-items, a GPU many narrow ones."""
        units = bench.info.compute_units
        if bench.cpu:
            wide = self.vectors
            chains: tuple[int, ...] = (8, 12, 16) if wide else (4, 16)
            widths: tuple[int, ...] = (16,) if wide else (1,)
            group = 1 if wide else 64
            full_widths: tuple[int, ...] = (1, 4, 8, 16) if wide else (1,)
            unroll: tuple[int, ...] = (0,)
        else:
            # Vectors of integers and of special functions exist in OpenCL alone, and are but chains to a GPU.
            fused = self.macro == "FMA"
            chains, widths, group = (1, 4, 8), (1, 4) if fused else (1,), 256
            full_widths = (1, 4, 8, 16) if fused else (1,)
            unroll = (0, 32) if fused else (0,)  # without it, counting the steps costs 1 to 2 %
        if full:
            chains, widths = (1, 2, 4, 8, 12, 16), full_widths
        yield from grid(
            chains=chains, width=widths, unroll=unroll, group=(group,), groups=(16 * units,),
            **{name.lower(): values for name, values in self.variants.items()},
        )  # fmt: skip

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``128 scale`` steps of every chain."""
        width, groups, group = shape["width"], shape["groups"], shape["group"]
        kind = np.float32 if isinstance(self.constants[0], float) else np.uint32
        macros: dict[str, int | str] = {
            "VECTOR": "float" if kind is np.float32 else "uint", "WIDTH": width, "CHAINS": shape["chains"],
            "UNROLL": shape["unroll"], "QUADRATIC": 0, "NATIVE": 0, self.macro: 1,
            **{name: shape[name.lower()] for name in self.variants},
        }  # fmt: skip
        kernel = bench.kernel("arithmetic.cl", "recurrences", macros)
        steps = 128 * scale
        a, c = self.constants
        if shape.get("quadratic"):
            c = -0.7  # x x - 0.7 stays bounded: its 2-cycle near 0 attracts
        args = (bench.out(groups * group * width), kind(a), kind(c), np.int32(steps))
        return Execution(
            lambda: bench.device.launch(kernel, groups, group, *args),
            float(self.operations * shape["chains"] * width * steps * groups * group),
        )
