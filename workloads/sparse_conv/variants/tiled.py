"""Code for today's GPUs, written as PTX from the weights: see `..tiled` for what it does, `..choice` for its shape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from perfport.backend import architecture
from perfport.measure.cache import CacheFlush
from perfport.workload import Artifact, Traffic, Tunable, UnsupportedError

from ..choice import Device, Search, estimate, inputs_read
from ..cubin import machine_instructions
from ..tiled import NAME, generate
from ..tiling import Tiling
from .engine import Convolution, side_by_side
from .ptx import CODE_LIMIT

EXECUTIONS = 4  # by which a tiling is timed
PATIENCE_S = 6.0  # for assembling: after that, neighbours of the fastest tiling are not tried any more


@dataclass(frozen=True)
class _Candidate:
    """A tiling with its code, and the seconds of an execution (0 where it is not timed)."""

    seconds: float
    tiling: Tiling
    text: str
    artifact: Artifact


class Tiled(Convolution):
    """One kernel; a work-group branches to the code of its slice of filters."""

    NEEDS = ("ptx",)
    CAPABILITY = (8, 0)  # asynchronous copies
    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "columns": Tunable(
            0, (0, 8, 14, 16, 28, 32, 56, 64, 112), "work-items of a group across; 0: chosen by the model"
        ),
        "rows": Tunable(0, (0, 1, 2, 4, 7, 8, 14, 16, 20, 28), "work-items of a group down; 0: chosen"),
        "height": Tunable(0, (0, 1, 2, 4), "output rows of a work-item; 0: chosen"),
        "filters": Tunable(0, (0, 4, 8, 10, 16, 20, 25, 32, 50, 64, 128), "filters of a slice; 0: chosen"),
        "block": Tunable(0, (0, 1, 2, 3, 4, 5, 8), "channels staged at once, or the next smaller divisor; 0: chosen"),
        "stages": Tunable(0, (0, 2, 3, 4), "blocks in local memory; 0: chosen"),
        "resident": Tunable(
            0, (0, 1, 2, 3, 4, 6, 8), "work-groups with registers on a compute unit; 0: as many as fit"
        ),
        "pinned": Tunable(2, (0, 1, 2), "1: a compute unit keeps to the code of one slice, 0: it does not, 2: chosen"),
        "measured": Tunable(
            16, (1, 4, 8, 12, 16), "tilings timed ahead: the model's first, then by halves neighbours of the fastest"
        ),
    }

    def prepare(self) -> None:
        o, info = self.operator, self.device.info
        if 4 * o.outputs >= 2**31:
            raise UnsupportedError(f"the output of an image has {4 * o.outputs} bytes, the code counts to {2**31}")
        self.limits = Device(info.compute_units, info.local_memory_bytes)
        self.counters = self.setup.upload(np.zeros(o.filters + 1, np.uint32))  # each execution leaves them so
        self.took = dict.fromkeys(("choose_s", "generate_s", "assemble_s", "measure_s"), 0.0)
        self.best = self._fastest(self.tunables["measured"] if self.setup.session.timed else 1)
        self.tiling = self.best.tiling
        self.kernel: Any = self.setup.load(NAME, lambda: self.best.artifact)
        self.setup.compile_s += sum(self.took.values())

    def _fastest(self, count: int) -> _Candidate:
        """The fastest of some tilings and of neighbours of what was the fastest before; of one, that one untimed."""
        fixed = {name: value for name, value in self.tunables.items() if name != "measured"}
        search = Search(self.operator, self.layer.weights, self.batch, self.limits, fixed)
        with closing(CacheFlush(self.device)) if count > 1 else nullcontext() as flush:
            with self._watch("choose_s"):
                tilings = search.shortlist(count)
            if not tilings:
                fits = f"fits the registers and local memory of {self.device.info.id}"
                raise UnsupportedError(f"no tiling with {fixed} {fits}")
            candidates = self._make(tilings, flush)
            best, asked = min(candidates, key=attrgetter("seconds")), None
            while best is not asked and self.took["assemble_s"] < PATIENCE_S:
                asked = best
                with self._watch("choose_s"):
                    tried = [candidate.tiling for candidate in candidates]
                    tilings = search.neighbours(asked.tiling, tried, count // 2)
                candidates += self._make(tilings, flush)
                best = min(candidates, key=attrgetter("seconds"))
        return best

    def _make(self, chosen: list[Tiling], flush: CacheFlush | None) -> list[_Candidate]:
        """Generate, assemble and time some tilings; those with too much code are left out."""
        tilings = [tiling for tiling in chosen if self.layer.nonzero * tiling.height <= CODE_LIMIT]
        if chosen and not tilings:
            raise UnsupportedError(
                f"the unrolled code of {self.layer.name} has {self.layer.nonzero} multiply-adds or more, "
                f"the limit is {CODE_LIMIT}"
            )
        with self._watch("generate_s"):
            target = architecture(self.device.target)
            texts = [generate(tiling, self.layer.weights, self.batch, target) for tiling in tilings]
        with self._watch("assemble_s"):
            artifacts = side_by_side(self._assembled, tilings, texts)
        with self._watch("measure_s"):
            seconds = [self._time(*of, flush) if flush else 0.0 for of in zip(tilings, artifacts, strict=True)]
        return [_Candidate(*of) for of in zip(seconds, tilings, texts, artifacts, strict=True)]

    @contextmanager
    def _watch(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.took[what] += time.perf_counter() - started

    def _assembled(self, tiling: Tiling, text: str) -> Artifact:
        return self.assemble("tiled.ptx", text, tiling.local_bytes)

    def _time(self, tiling: Tiling, artifact: Artifact, flush: CacheFlush) -> float:
        """Seconds of a tiling from a cold cache, the least of a few executions: code comes from memory, too."""
        kernel = self.device.load(artifact).kernel(NAME)
        return min(self.device.timed(lambda: self._launch(kernel, tiling), flush).span for _ in range(EXECUTIONS))

    def launch(self) -> None:
        self._launch(self.kernel, self.tiling)

    def _launch(self, kernel: Any, t: Tiling) -> None:
        buffers = [self.source, self.result, *[self.counters] * t.pinned]
        groups = t.groups(self.batch, self.limits.compute_units)
        self.device.launch(kernel, groups, t.items, *buffers, local_bytes=t.local_bytes)

    def _reads(self) -> int:
        t = self.tiling
        slices = range(0, self.operator.filters, t.filters)
        return sum(inputs_read(self.layer.weights[first : first + t.filters], t) for first in slices)

    def traffic(self) -> Traffic:
        t, o = self.tiling, self.operator
        tiles = float(t.tiles(self.batch))
        staged = 4 * tiles * t.slices * o.channels * t.window_rows * t.copies * t.vector
        inside = min(1.0, o.height / (t.down * t.rows * t.height * o.stride)) * min(
            1.0, o.width / (t.across * t.columns * o.stride)
        )
        read = staged * inside
        return Traffic(
            flops=2 * tiles * t.items * t.height * self.layer.nonzero, local_write=staged,
            local_read=4 * tiles * t.items * t.load * self._reads(), global_read=read, global_write=self.output_bytes,
            l2_bytes=read + self.output_bytes, dram_read=self.input_bytes, dram_write=self.output_bytes,
        )  # fmt: skip

    def notes(self) -> dict[str, Any]:
        t = self.tiling
        model = estimate(t, self.layer.weights, self.batch, self.limits)
        return {
            "columns": t.columns, "rows": t.rows, "height": t.height, "filters": t.filters, "block": t.block,
            "stages": t.stages, "resident": t.resident, "slices": t.slices, "pinned": t.pinned,
            "groups": t.groups(self.batch, self.limits.compute_units), "local_bytes": t.local_bytes,
            "model_cycles": model.cycles, "model_issue": model.issue, "model_local": model.local,
            "model_l2": model.l2, "model_fetch": model.fetch, "slice_code_bytes": model.code_bytes,
            **self.took,
            "ptx_kib": len(self.best.text) / 1024, "index_bytes": 0, **self._machine_code(),
        }  # fmt: skip

    def _machine_code(self) -> dict[str, float]:
        """Of the machine code, where it is here: an OpenCL runtime keeps what it assembles."""
        code = self.best.artifact.code
        if self.best.artifact.form != "cubin":
            return {}
        return {"cubin_kib": len(code) / 1024, "machine_instructions": machine_instructions(code)}
