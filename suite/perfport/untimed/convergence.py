"""Code convergence: the share of a kernel's source lines that is compiled on every backend, and between targets.

Which lines a target compiles follows from what it is given: each variant is set up on a device of that kind that
is not there, the kernel files and macros that it asks for are kept, and the preprocessor says which lines survive the
target's own conditions. A line is one with code after preprocessing; comments, blank lines, directives and the
dialect headers do not count. After S. L. Harrell et al., "Effective performance portability", P3HPC 2018.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from ..backend import Artifact
from ..backend.base import define_flags, feature_flags
from ..backend.offline import OfflineDevice, cuda_info, nvidia_opencl_info, opencl_info
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
    """How many source lines of a variant targets and backends compile.

    Attributes
    ----------
    workload, problem, variant : str
        Problem and variant are `ALL` for those of a whole problem or workload.
    lines : dict of int
        By target, how many lines it compiles; none where it cannot run the variant.
    common, total : int
        How many lines each backend compiles for one of its targets; how many any of them does.
    convergence : float, optional
        One less Harrell's code divergence: the mean over pairs of targets of the lines that both compile over those
        that one of them does. Of targets that compile any; none of less than two.
    """

    workload: str
    problem: str
    variant: str
    lines: dict[str, int]
    common: int
    total: int
    convergence: float | None

    @property
    def share(self) -> float:
        """Lines common to the backends over all."""
        return self.common / self.total


class _Listening(Session):
    """A session that keeps what would be built and compiles nothing."""

    def build(self, file: str, macros: Mapping[str, Any]) -> Artifact:
        source = self.source(file)
        flags = [*feature_flags(self.device.target), *define_flags(macros)]
        name = self.device.info.backend
        return Artifact(name, file, b"", tuple(flags), f"{file} {flags}", "source", listing={"source": source})


#: What GPUs of NVIDIA's are compiled for.
PROCESSOR = "sm_90"
#: Devices whose kernels differ in macros, or in their files. NVIDIA's OpenCL takes CUDA C++ as PTX, and is told from
#: other GPUs by what its compiler takes.
TARGETS: dict[str, DeviceInfo] = {
    "OpenCL, CPU": opencl_info("cpu"),
    "OpenCL, GPU": opencl_info("gpu"),
    "OpenCL, NVIDIA": nvidia_opencl_info(PROCESSOR),
    "CUDA": cuda_info(PROCESSOR),
}
Lines = dict[str, set[Line]]


def converge(workload: Workload) -> list[Convergence]:
    """Return the convergence of every variant that has kernels, of each problem, and of the whole workload."""
    known: dict[tuple[str, Compiled], frozenset[Line]] = {}
    convergences: list[Convergence] = []
    whole: Lines = {target: set() for target in TARGETS}
    for problem, variants in workload.variants.items():
        together: Lines = {target: set() for target in TARGETS}
        for name, variant in variants.items():
            if issubclass(variant, Peer):
                continue
            lines: Lines = {target: set() for target in TARGETS}
            for target, info in TARGETS.items():
                for compiled in _compiled(workload, problem, variant, info):
                    language = _language(compiled[0], info)
                    if (language, compiled) not in known:
                        known[language, compiled] = _surviving(language, compiled)
                    lines[target] |= known[language, compiled]
                together[target] |= lines[target]
                whole[target] |= lines[target]
            convergences.append(_count(workload.name, problem, name, lines))
        convergences.append(_count(workload.name, problem, ALL, together))
    convergences.append(_count(workload.name, ALL, ALL, whole))
    return [each for each in convergences if each.total]


def _count(workload: str, problem: str, variant: str, lines: Lines) -> Convergence:
    backends: dict[str, set[Line]] = {}
    for target, info in TARGETS.items():
        backends.setdefault(info.backend, set()).update(lines[target])
    pairs = list(combinations([held for held in lines.values() if held], 2))
    return Convergence(
        workload=workload, problem=problem, variant=variant, lines={name: len(held) for name, held in lines.items()},
        common=len(set.intersection(*backends.values())), total=len(set.union(*backends.values())),
        convergence=fmean(len(one & other) / len(one | other) for one, other in pairs) if pairs else None,
    )  # fmt: skip


def _language(file: str, info: DeviceInfo) -> str:
    """By whose dialect a file is compiled for a device."""
    return "cuda" if file.endswith(".cu") else info.backend


def _compiled(workload: Workload, problem: str, variant: type[Variant], info: DeviceInfo) -> set[Compiled]:
    """Return what a variant compiles for a target; nothing where it cannot run."""
    compiled: set[Compiled] = set()
    for artifact in _artifacts(workload, problem, variant, info):
        if "source" in artifact.listing and not artifact.name.endswith(".ptx"):  # what a variant writes is no source
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


def _surviving(language: str, compiled: Compiled) -> frozenset[Line]:
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
    for macro in (_OWN_MACRO[language], *macros):
        defined, _, value = macro.removeprefix("-D").partition("=")
        preprocessor.define(f"{defined} {value or 1}")
    dialect = Path(str(files("perfport.backend"))) / f"dialect_{language}.h"
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


#: By which kernels tell the dialects apart.
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
