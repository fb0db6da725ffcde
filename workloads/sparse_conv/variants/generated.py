"""Source generated for the weights at hand: literals, or values from constant memory, for every device."""

from __future__ import annotations

import time
from itertools import product
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Artifact, Traffic, Tunable, UnsupportedError, ceil_div

from ..source import Generator, Program, Shape, Strip, strips
from .direct import CONSTANT_WORDS, constant_table
from .engine import Convolution, Padded, side_by_side

#: Multiply-adds in all of a layer's generated source. Compilers take minutes beyond.
STATEMENT_LIMIT = 60_000


class GeneratedSource(Convolution):
    """Weights as literals."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "width": Tunable({"cpu": 16, "gpu": 1}, (1, 4, 8, 16), "outputs of a vector"),
        "rows": Tunable(2, (1, 2, 3, 4), "output rows of a work-item"),
        "filters": Tunable({"cpu": 8, "gpu": 16}, (1, 2, 4, 8, 16, 32, 64), "filters of a work-item"),
        "tail": Tunable(0, (0, 1), "1: columns behind the last whole vector by the narrowest that holds them"),
        "group": Tunable({"cpu": 1, "gpu": 128}, (1, 32, 64, 128, 256), "work-items per work-group"),
        "program": Tunable(2000, (1000, 2000, 4000, 8000), "multiply-adds of a program that is compiled at once"),
    }
    table: ClassVar[bool] = False

    def prepare(self) -> None:
        o, t = self.operator, self.tunables
        if t["width"] > 1 and "unaligned_vload" not in self.device.info.capabilities:
            raise UnsupportedError(f"vectors of {t['width']} at any address are not possible on {self.device.info.id}")
        self.strips = strips(o.out_width, t["width"], t["tail"])
        statements = self.layer.nonzero * t["rows"] * len(self.strips)
        if statements > STATEMENT_LIMIT:
            raise UnsupportedError(
                f"the unrolled code of {self.layer.name} has {statements} multiply-adds, the limit is {STATEMENT_LIMIT}"
            )
        self.parts = ceil_div(o.out_height, t["rows"])
        self.padded = Padded(self, self.parts * t["rows"], self.strips[-1].end)
        self.ahead = [self.padded]
        limit = min(t["program"], CONSTANT_WORDS) if self.table else t["program"]
        started = time.perf_counter()
        generator = Generator(o, Shape(t["width"], t["rows"], t["filters"]), self.padded.offset, self.table)
        self.programs = generator.programs(self.layer.weights, limit)
        self.generate_s = time.perf_counter() - started
        started = time.perf_counter()
        self.compiled = list(product(self.strips, self.programs))
        artifacts = side_by_side(self._artifact, *zip(*self.compiled, strict=True))
        self.setup.compile_s += time.perf_counter() - started
        self.kernels = self.load("sparse", artifacts)

    def _items(self, strip: Strip) -> int:
        """Work-items of each block of filters."""
        return self.batch * self.parts * strip.chunks

    def _artifact(self, strip: Strip, program: Program) -> Artifact:
        t, p = self.tunables, self.padded
        if self.table and program.values.size > CONSTANT_WORDS:
            raise UnsupportedError(
                f"{t['filters']} filters have {program.values.size} weights, a program {CONSTANT_WORDS} words of "
                "constants; lower the tunable filters"
            )
        macros = {
            **self.sizes, "WIDTH": strip.width, "LEFT": strip.left, "CHUNKS": strip.chunks, "ROWS": t["rows"],
            "PARTS": self.parts, "ITEMS": self._items(strip), "GROUP": t["group"], "PLANE": p.plane, "LINE": p.line,
            "FIRST": program.first,
        }  # fmt: skip
        source = (constant_table(program.values) if self.table else "") + program.source
        return self.build("generated.cl", source, macros)

    def launch(self) -> None:
        group = self.tunables["group"]
        for kernel, (strip, program) in zip(self.kernels, self.compiled, strict=True):
            groups = (ceil_div(self._items(strip), group), program.blocks)
            self.device.launch(kernel, groups, (group, 1), self.padded.buffer, self.result, np.int32(0))

    def traffic(self) -> Traffic:
        o, rows = self.operator, self.tunables["rows"]
        items = float(sum(self._items(strip) for strip in self.strips))
        outputs = float(sum(self._items(strip) * strip.width for strip in self.strips))
        loads = sum(program.loads for program in self.programs)
        read = 4 * items * self.layer.nonzero if self.table else 0.0
        return Traffic(
            flops=2 * outputs * rows * self.layer.nonzero, global_read=4 * outputs * loads,
            constant_read=read, global_write=self.output_bytes, dram_write=self.output_bytes,
            dram_read=4.0 * self.batch * o.channels * self.padded.plane,
        )  # fmt: skip

    def notes(self) -> dict[str, Any]:
        zeros = self.operator.weights - self.layer.nonzero
        return {
            "programs": len(self.compiled),
            "source_bytes": sum(len(program.source) for _, program in self.compiled),
            "multiply_adds": sum(program.statements for _, program in self.compiled),
            "multiply_adds_removed": zeros * self.tunables["rows"] * len(self.strips),
            "generate_s": self.generate_s,
            "index_bytes": 0,
        }


class ConstantSource(GeneratedSource):
    """The same code with the values read from constant memory, zeros skipped."""

    table = True
