"""Rates of matrix units, by mma.sync and, where the device has it, by wgmma."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .bench import Bench
from .kind import Execution, Rate, Shape, grid

OPERANDS = ("tf32", "bf16", "int8")
DEPTH = {"tf32": 8, "bf16": 16, "int8": 32}  # k of both instructions: 32 bytes
SLICES = 4
WORDS = 12288  # of operands in wgmma's shared memory, the larger of the two kernels' needs


def operands(kind: str, words: int, seed: int = 0) -> np.ndarray:
    """Return pseudo-random operands, none of them zero (matrix units draw less power on zeros), as 32-bit words."""
    rng = np.random.default_rng(seed)
    if kind == "int8":
        return rng.integers(1, 127, 4 * words).astype(np.int8).view(np.uint32)
    values = rng.normal(size=2 * words).astype(np.float32)
    if kind == "tf32":
        return values[:words].view(np.uint32)
    return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)


@dataclass(frozen=True)
class MatrixRate(Rate):
    """Products of small matrices whose operands are of one type, accumulated in 32 bits."""

    operand: str

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return wgmma by one or two warpgroups, and mma.sync on several independent tiles."""
        units = bench.info.compute_units
        if "wgmma" in bench.info.capabilities:
            yield from grid(path=("wgmma",), group=(128, 256), groups=(units, 2 * units))
        chains = (1, 2, 4, 8, 12, 16) if full else (4, 8)
        yield from grid(path=("mma",), chains=chains, group=(256, 512) if full else (256,), groups=(8 * units,))

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``32 scale`` steps of every warp or warpgroup."""
        groups, group, steps = shape["groups"], shape["group"], 32 * scale
        macros: dict[str, int | str] = {"OPERAND": OPERANDS.index(self.operand)}
        depth = DEPTH[self.operand]
        if shape["path"] == "wgmma":
            kernel = bench.kernel("matrix.cu", "wgmma", {**macros, "GROUP": group}, "a")
            operations = 2.0 * 64 * 256 * depth * SLICES * (group // 128)
        else:
            chains = shape["chains"]
            kernel = bench.kernel("matrix.cu", "mma", {**macros, "CHAINS": chains})
            operations = 2.0 * 16 * 8 * depth * chains * (group // 32)
        args = (self._operands(bench), bench.out(groups * group), np.int32(steps))
        return Execution(lambda: bench.device.launch(kernel, groups, group, *args), operations * steps * groups)

    def _operands(self, bench: Bench) -> object:
        name = f"operands {self.operand}"
        if not bench.has(name):
            bench.device.write(bench.buffer(name, 4 * WORDS), operands(self.operand, WORDS))
        return bench.buffer(name, 4 * WORDS)
