"""The source's method: one PTX template for an operator, specialised for the weights, assembled, launched."""

from __future__ import annotations

import json
import time
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from perfport.backend import architecture
from perfport.backend.cuda import CudaBackend
from perfport.workload import Artifact, Traffic, Tunable, UnsupportedError, ceil_div

from ..cubin import machine_instructions
from ..ptx import Program
from ..specialise import specialise, value_map
from ..template import Shape, Template, cache_folder, compiled, filters_of, local_bytes
from ..weights import window_use
from .engine import Convolution, side_by_side

#: Multiply-adds in all of a layer's specialised code: what a few minutes assemble.
CODE_LIMIT = 400_000


class PtxTemplate(Convolution):
    """The template is compiled once per operator and shape; each slice of filters is a copy with its own weights."""

    NEEDS = ("ptx",)
    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "columns": Tunable(32, (4, 8, 16, 32, 64), "work-items of a group across"),
        "rows": Tunable(8, (1, 2, 4, 8, 16), "work-items of a group down"),
        "bn": Tunable(1, (1, 2), "images of a work-item"),
        "bh": Tunable(2, (1, 2, 4), "output rows of a work-item"),
        "bw": Tunable(1, (1, 2, 4), "output columns of a work-item"),
        "bk": Tunable(32, (4, 8, 16, 32), "filters of a work-item, or the next smaller divisor that a template holds"),
        "resident": Tunable(2, (1, 2, 3, 4), "work-groups that a compute unit must have registers for"),
    }
    prefetch: ClassVar[bool] = True
    in_constants: ClassVar[bool] = False

    def prepare(self) -> None:
        o, t = self.operator, self.tunables
        outputs = t["bn"] * t["bh"] * t["bw"]  # of a work-item for each filter
        code = self.layer.nonzero * outputs
        if code > CODE_LIMIT:
            raise UnsupportedError(
                f"the unrolled code of {self.layer.name} has {code} multiply-adds, the limit is {CODE_LIMIT}"
            )
        # Neither wider nor higher than the output.
        columns = min(t["columns"], 1 << (ceil_div(o.out_width, t["bw"]) - 1).bit_length())
        rows, filters = min(t["rows"], ceil_div(o.out_height, t["bh"])), filters_of(o, outputs, t["bk"])
        self.shape = Shape(columns, rows, t["bn"], t["bh"], t["bw"], filters, t["resident"], self.prefetch)
        self.target = architecture(self.device.target)
        self.template = compiled(o, self.shape, self.target)
        started = time.perf_counter()
        program, values, weights = Program.of(self.template.ptx), self.template.values, self.layer.weights
        self.slices = [
            specialise(program, value_map(values, weights[first : first + self.shape.filters]), self.in_constants)
            for first in range(0, o.filters, self.shape.filters)
        ]
        self.specialise_s = time.perf_counter() - started
        started = time.perf_counter()
        self.artifacts = side_by_side(self._assembled, [slice_.text for slice_ in self.slices])
        self.assemble_s = time.perf_counter() - started
        self.kernels = self.load("operator_template", self.artifacts)
        self.setup.compile_s += self.template.seconds + self.specialise_s + self.assemble_s

    def _assembled(self, text: str) -> Artifact:
        return self.assemble("generated.ptx", text, local_bytes(self.operator, self.shape))

    @cached_property
    def groups(self) -> int:
        """Work-groups of a launch."""
        return self.shape.tiles(self.operator).count * ceil_div(self.batch, self.shape.images)

    def launch(self) -> None:
        for number, kernel in enumerate(self.kernels):
            first = np.int32(number * self.shape.filters)
            self.device.launch(
                kernel, self.groups, self.shape.items, self.source, self.result, first, np.int32(self.batch),
                local_bytes=local_bytes(self.operator, self.shape),
            )  # fmt: skip

    def traffic(self) -> Traffic:
        o, s = self.operator, self.shape
        tiles, groups, slices = s.tiles(o), float(self.groups), len(self.slices)
        read = 4 * self.batch * o.channels * tiles.inside * slices
        apart = s.images * s.width  # outputs that share no input
        loads = 0.0
        for first in range(0, o.filters, s.filters):
            loads += apart * window_use(self.layer.weights[first : first + s.filters], s.height, o.stride).sum()
        return Traffic(
            flops=2 * groups * s.items * s.height * apart * self.layer.nonzero,
            local_write=4 * groups * slices * o.channels * s.images * tiles.input_size,
            local_read=4 * groups * s.items * loads,
            constant_read=4 * groups * s.items * self.layer.nonzero * self.in_constants,
            global_read=read, l2_bytes=read + self.output_bytes, global_write=self.output_bytes,
            dram_read=self.input_bytes * slices, dram_write=self.output_bytes,
        )  # fmt: skip

    def notes(self) -> dict[str, Any]:
        slices = self.slices
        return {
            "slices": len(slices),
            "ptx_instructions_dense": sum(slice_.instructions for slice_ in slices),
            "ptx_instructions_deleted": sum(slice_.deleted for slice_ in slices),
            "multiply_adds_deleted": sum(slice_.multiply_adds_deleted for slice_ in slices),
            "ptx_kib_dense": len(self.template.ptx) * len(slices) / 1024,
            "ptx_kib": sum(len(slice_.text) for slice_ in slices) / 1024,
            "template_s": self.template.seconds,
            "template_cached": self.template.cached,
            "specialise_s": self.specialise_s,
            "assemble_s": self.assemble_s,
            "index_bytes": 0,
            **self._machine_code(),
        }

    def _machine_code(self) -> dict[str, float]:
        """Of the machine code, where it is here: an OpenCL runtime keeps what it assembles."""
        cubins = [artifact.code for artifact in self.artifacts if artifact.form == "cubin"]
        if not cubins:
            return {}
        template = measured_template(self.template, self.target)
        dense = template["machine_instructions"] * len(cubins)
        return {
            "machine_instructions_dense": dense,
            "machine_instructions_deleted": dense - sum(machine_instructions(code) for code in cubins),
            "cubin_kib_dense": template["cubin_bytes"] * len(cubins) / 1024,
            "cubin_kib": sum(map(len, cubins)) / 1024,
        }


class PtxTemplateWithoutPrefetch(PtxTemplate):
    """The next tile is fetched when the present one is done."""

    prefetch = False


class PtxTemplateConstants(PtxTemplate):
    """Weights in constant memory, where the source's GPU has what its compiler calls immediates."""

    in_constants = True


def measured_template(template: Template, target: str) -> dict[str, int]:
    """Size of the template's own cubin and its machine instructions; assembled once, then kept beside the template."""
    path = cache_folder() / f"template-{template.key}.json"
    sizes = _kept_sizes(path)
    if sizes is None:
        code = CudaBackend().assemble("template.ptx", template.ptx, target).code
        sizes = {"cubin_bytes": len(code), "machine_instructions": machine_instructions(code)}
        path.write_text(json.dumps(sizes))
    return sizes


def _kept_sizes(path: Path) -> dict[str, int] | None:
    """What the cache says; ``None`` where it says nothing, or a kill or a full disk cut it off."""
    try:
        kept = json.loads(path.read_bytes())
        return {name: int(kept[name]) for name in ("cubin_bytes", "machine_instructions")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
