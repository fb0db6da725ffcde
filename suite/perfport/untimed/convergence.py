"""Code convergence: the share of a kernel's source lines that is compiled on every backend.

Which lines a backend compiles follows from what it is given: each variant is set up on a device of that backend that
is not there, the kernel files and macros that it asks for are kept, and the preprocessor says which lines survive the
backend's own conditions. A line is one with code after preprocessing; comments, blank lines, directives and the
dialect headers do not count. After S. L. Harrell et al., "Effective performance portability", P3HPC 2018 (code
divergence: the distance between the sets of lines), here as |lines common to all| / |lines of any|.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..backend import Artifact
from ..backend.base import define_flags
from ..backend.offline import OfflineDevice, cuda_info
from ..model import schema
from ..model.device import DeviceInfo
from ..model.errors import PerfportError
from ..model.files import read_json, write
from ..workload import Peer, Session, Setup, Variant, Workload

#: The name of a stored convergence among results.
FILE = "convergence.json"
ALL = "*"
Line = tuple[str, int]
#: File, source without the dialect, macros as compiler options.
Compiled = tuple[str, str, tuple[str, ...]]


class Convergence(schema.Model):
    """How many source lines of a variant each backend compiles, how many all of them, and how many some of them.

    ``problem`` and ``variant`` are `ALL` for those of a whole problem or workload. A backend that cannot run a variant
    compiles no line of it.
    """

    workload: str
    problem: str
    variant: str
    lines: dict[str, int]
    common: int
    total: int

    @property
    def share(self) -> float:
        """Common lines over all."""
        return self.common / self.total


class _Listening(Session):
    """A session that keeps what would be built and compiles nothing."""

    def build(self, file: str, macros: Mapping[str, Any]) -> Artifact:
        source = self.source(file)
        flags = define_flags(macros)
        name = self.device.info.backend
        return Artifact(name, file, b"", tuple(flags), f"{file} {flags}", "source", listing={"source": source})


def opencl_info(kind: str) -> DeviceInfo:
    """Describe an OpenCL device that can do all that the dialect asks for."""
    return DeviceInfo.model_validate({
        "id": f"opencl:offline-{kind}:0", "backend": "opencl", "platform": "OpenCL (not compiled)", "name": kind,
        "chip": kind, "kind": kind, "compute_units": 1, "memory_bytes": 1 << 40, "max_alloc_bytes": 1 << 40,
        "local_memory_bytes": 48 << 10, "max_work_group": 1024, "hardware_thread": None if kind == "cpu" else 32,
        "image2d_max_width": 1 << 16, "image2d_max_height": 1 << 16,
        "capabilities": ["opencl", "images", "fp64", "unaligned_vload"],
    })  # fmt: skip


#: Each backend's devices: kernels for CPUs and for GPUs may differ in their macros.
DEVICES: dict[str, list[DeviceInfo]] = {
    "opencl": [opencl_info("gpu"), opencl_info("cpu")],
    "cuda": [cuda_info("sm_90")],
}


def converge(workload: Workload) -> list[Convergence]:
    """Return the convergence of every variant that has kernels, of each problem, and of the whole workload."""
    known: dict[tuple[str, Compiled], frozenset[Line]] = {}
    convergences: list[Convergence] = []
    whole: dict[str, set[Line]] = {backend: set() for backend in DEVICES}
    for problem, variants in workload.variants.items():
        together: dict[str, set[Line]] = {backend: set() for backend in DEVICES}
        for name, variant in variants.items():
            if issubclass(variant, Peer):
                continue
            lines: dict[str, set[Line]] = {backend: set() for backend in DEVICES}
            for backend in DEVICES:
                for compiled in _compiled(workload, problem, variant, backend):
                    if (backend, compiled) not in known:
                        known[backend, compiled] = _surviving(backend, compiled)
                    lines[backend] |= known[backend, compiled]
                together[backend] |= lines[backend]
                whole[backend] |= lines[backend]
            convergences.append(_count(workload.name, problem, name, lines))
        convergences.append(_count(workload.name, problem, ALL, together))
    convergences.append(_count(workload.name, ALL, ALL, whole))
    return [each for each in convergences if each.total]


def _count(workload: str, problem: str, variant: str, lines: Mapping[str, set[Line]]) -> Convergence:
    return Convergence(
        workload=workload, problem=problem, variant=variant, lines={name: len(held) for name, held in lines.items()},
        common=len(set.intersection(*lines.values())), total=len(set.union(*lines.values())),
    )  # fmt: skip


def _compiled(workload: Workload, problem: str, variant: type[Variant], backend: str) -> set[Compiled]:
    """Return what a variant compiles for a backend; nothing where it cannot run."""
    compiled: set[Compiled] = set()
    for info in DEVICES[backend]:
        for artifact in _artifacts(workload, problem, variant, info):
            if "source" in artifact.listing:
                source = artifact.listing["source"].rpartition(f'#line 1 "{artifact.name}"\n')[2]
                macros = tuple(flag for flag in artifact.options if flag.startswith("-D"))
                compiled.add((artifact.name, source, macros))
    return compiled


def _artifacts(workload: Workload, problem: str, variant: type[Variant], info: DeviceInfo) -> list[Artifact]:
    """Set a variant up at the first of the problem's check sizes that it takes; nothing where it takes none."""
    cls = workload.problem(problem)
    tunables = {name: tunable.default_for(info) for name, tunable in variant.tunables.items()}
    for size in cls.check_sizes:
        device: Any = OfflineDevice(info)
        session = _Listening(device, cls(cls.Parameters.model_validate(size), 1), workload.folder)
        setup = Setup(session, tunables, {})
        try:
            variant.require(info)
            variant(setup)
        except PerfportError:
            continue
        return setup.artifacts
    return []


def _surviving(backend: str, compiled: Compiled) -> frozenset[Line]:
    """Return the lines with code after preprocessing."""
    from pcpp import Preprocessor
    from pcpp.preprocessor import Action, OutputDirective

    class Conditions(Preprocessor):
        """Expands macros in conditions alone: nested macros of unrolled loops would take minutes.

        Leaves out system headers, which are not of the suite.
        """

        evaluating = False

        def evalexpr(self, tokens: Any) -> Any:
            self.evaluating = True
            try:
                return super().evalexpr(tokens)
            finally:
                self.evaluating = False

        def expand_macros(self, tokens: Any, expanding_from: Any = ()) -> Any:
            return super().expand_macros(tokens, list(expanding_from)) if self.evaluating else tokens

        def on_include_not_found(self, *args: Any) -> None:
            raise OutputDirective(Action.IgnoreAndRemove)

    name, source, macros = compiled
    preprocessor = Conditions()
    for macro in (_OWN_MACRO[backend], *macros):
        preprocessor.define(macro.removeprefix("-D").replace("=", " ", 1))
    dialect = Path(str(files("perfport.backend"))) / f"dialect_{backend}.h"
    preprocessor.parse(dialect.read_text(), dialect.name)
    preprocessor.write(io.StringIO())
    places, text = _placed(name, source)
    preprocessor.parse(text, name)
    surviving = set()
    while token := preprocessor.token():
        if token.value.strip():
            surviving.add(places[token.lineno - 1])
    return frozenset(surviving)


def _placed(name: str, source: str) -> tuple[list[Line], str]:
    """Return file and line of each line of a source, by its ``#line`` directives, and the source without these."""
    places, lines, file, number = [], [], name, 1
    for line in source.splitlines():
        directive = re.fullmatch(r'#line (\d+) "([^"]+)"', line)
        places.append((file, number))
        lines.append("" if directive else line)
        number += 1
        if directive:
            file, number = directive[2], int(directive[1])
    return places, "\n".join(lines) + "\n"


#: By which kernels tell the backends apart.
_OWN_MACRO = {"opencl": "__OPENCL_C_VERSION__=120", "cuda": "__CUDACC__=1"}


def store(convergences: Sequence[Convergence], file: Path) -> None:
    """Write convergences as JSON. Raises `InfrastructureError` if the file cannot be written."""
    write(file, json.dumps([each.model_dump() for each in convergences], indent=1) + "\n")


def read(file: Path) -> list[Convergence]:
    """Read what `store` wrote.

    Raises
    ------
    UsageError
        If it is something else.
    """
    return schema.validate(list[Convergence], read_json(file), str(file))
