"""Source generated for the weights at hand: literals, or values from constant memory, for every device."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Artifact, Traffic, Tunable, UnsupportedError, ceil_div

from ..source import Generator, Program, Shape
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
        "group": Tunable({"cpu": 1, "gpu": 128}, (1, 32, 64, 128, 256), "work-items per work-group"),
        "program": Tunable(2000, (1000, 2000, 4000, 8000), "multiply-adds of a program that is compiled at once"),
    }
    table: ClassVar[bool] = False

    def prepare(self) -> None:
        o, t = self.operator, self.tunables
        if t["width"] > 1 and "unaligned_vload" not in self.device.info.capabilities:
            raise UnsupportedError(f"vectors of {t['width']} at any address are not possible on {self.device.info.id}")
        statements = self.layer.nonzero * t["rows"]
        if statements > STATEMENT_LIMIT:
            raise UnsupportedError(
                f"the unrolled code of {self.layer.name} has {statements} multiply-adds, the limit is {STATEMENT_LIMIT}"
            )
        self.chunks, self.parts = ceil_div(o.out_width, t["width"]), ceil_div(o.out_height, t["rows"])
        self.items = self.batch * self.parts * self.chunks
        self.padded = Padded(self, self.parts * t["rows"], self.chunks * t["width"])
        self.ahead = [self.padded]
        limit = min(t["program"], CONSTANT_WORDS) if self.table else t["program"]
        started = time.perf_counter()
        generator = Generator(o, Shape(t["width"], t["rows"], t["filters"]), self.padded.offset, self.table)
        self.programs = generator.programs(self.layer.weights, limit)
        self.generate_s = time.perf_counter() - started
        started = time.perf_counter()
        artifacts = side_by_side(self._artifact, self.programs)
        self.setup.compile_s += time.perf_counter() - started
        self.kernels = self.load("sparse", artifacts)

    def _artifact(self, program: Program) -> Artifact:
        t, p = self.tunables, self.padded
        if self.table and program.values.size > CONSTANT_WORDS:
            raise UnsupportedError(
                f"{t['filters']} filters have {program.values.size} weights, a program {CONSTANT_WORDS} words of "
                "constants; lower the tunable filters"
            )
        macros = {
            **self.sizes, "WIDTH": t["width"], "ROWS": t["rows"], "ITEMS": self.items, "CHUNKS": self.chunks,
            "GROUP": t["group"], "PARTS": self.parts, "PLANE": p.plane, "LINE": p.line, "FIRST": program.first,
        }  # fmt: skip
        source = (constant_table(program.values) if self.table else "") + program.source
        return self.build("generated.cl", source, macros)

    def launch(self) -> None:
        group = self.tunables["group"]
        for kernel, program in zip(self.kernels, self.programs, strict=True):
            groups = (ceil_div(self.items, group), program.blocks)
            self.device.launch(kernel, groups, (group, 1), self.padded.buffer, self.result, np.int32(0))

    def traffic(self) -> Traffic:
        o, width, rows = self.operator, self.tunables["width"], self.tunables["rows"]
        vectors = float(self.items * width)
        loads = sum(program.loads for program in self.programs)
        read = vectors * rows * self.layer.nonzero * 4 if self.table else 0.0
        return Traffic(
            flops=2 * vectors * rows * self.layer.nonzero, global_read=4 * vectors * loads,
            constant_read=read / width / rows, global_write=self.output_bytes, dram_write=self.output_bytes,
            dram_read=4.0 * self.batch * o.channels * self.padded.plane,
        )  # fmt: skip

    def notes(self) -> dict[str, Any]:
        return {
            "programs": len(self.programs),
            "source_bytes": sum(len(program.source) for program in self.programs),
            "multiply_adds": sum(program.statements for program in self.programs),
            "multiply_adds_removed": (self.operator.weights - self.layer.nonzero) * self.tunables["rows"],
            "generate_s": self.generate_s,
            "index_bytes": 0,
        }


class ConstantSource(GeneratedSource):
    """The same code with the values read from constant memory, zeros skipped."""

    table = True
