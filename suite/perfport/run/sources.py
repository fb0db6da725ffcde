"""The code behind a result: which files a variant is made of, and whether they have changed since it was measured.

A variant's files are the modules of its workload that its class, its problem's class and their bases come from, with
what these import of the workload, and the kernels that any of them names. A change elsewhere in the workload leaves its
results as they are. Beside them stands what measures: `perfport.run.keys.harness_files`.

A run stores a digest of each (``code`` in its environment). Where a run has none, the history of the repository tells
which files differ from its commit.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..model.errors import PerfportError
from ..model.record import Identity
from ..store.results import Run
from ..workload import Variant, Workload, discover
from ..workload.source import INCLUDE
from .comparable import NEW, SHORT, comparable, comparable_file
from .keys import harness_digest, harness_files

KERNELS = (".cl", ".h", ".cu", ".cpp")
MEASURING, WORKLOAD = "measuring code", "workload"


class Age(StrEnum):
    """Whether a result is of the code as it is."""

    CURRENT = "current"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verdict:
    """A result's age; ``why`` names what has changed, or why nothing is known.

    A current one has a reason where a change is declared to be none for results.
    """

    age: Age
    why: str = ""


def _reachable(roots: Iterable[Path], used_by: Callable[[Path], Iterable[Path]]) -> frozenset[Path]:
    """Return what can be reached from some files by what each of them uses, the files themselves included."""
    reached: set[Path] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += used_by(path)
    return frozenset(reached)


class _Folder:
    """The modules and kernels of a workload's folder, and what each of them uses."""

    def __init__(self, folder: Path) -> None:
        self.modules = {path.resolve() for path in folder.rglob("*.py")}
        self.kernels = [path.resolve() for path in sorted(folder.rglob("*")) if path.suffix in KERNELS]
        self._uses: dict[Path, tuple[list[Path], list[Path]]] = {}  # by module; many variants share theirs

    def closure(self, roots: Iterable[Path]) -> frozenset[Path]:
        """Return the files that some modules of the folder rest on, themselves included."""
        modules = _reachable((path for path in roots if path in self.modules), lambda path: self._used_by(path)[0])
        named = (kernel for path in modules for kernel in self._used_by(path)[1])
        return modules | _reachable(named, lambda path: self._named(INCLUDE.findall(path.read_text())))

    def _used_by(self, path: Path) -> tuple[list[Path], list[Path]]:
        """Return the modules and the kernels that a module uses. Its syntax tree, which is large, is not kept."""
        if path not in self._uses:
            nodes = list(ast.walk(ast.parse(path.read_text())))
            texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
            modules = [*self._imported(path, imports), *self._started(path, texts)]
            self._uses[path] = modules, self._kernels_in(texts)
        return self._uses[path]

    def _imported(self, path: Path, imports: Iterable[ast.ImportFrom]) -> Iterator[Path]:
        for node in imports:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for target in (base, *(base / alias.name for alias in node.names)):
                for candidate in (target.with_suffix(".py"), target / "__init__.py"):
                    if candidate in self.modules:
                        yield candidate

    def _started(self, path: Path, texts: Iterable[str]) -> Iterator[Path]:
        """Yield the neighbours that a module starts as programs, by their names."""
        for text in texts:
            started = re.fullmatch(r"[\w.]*\.(\w+)", text)
            if started and (neighbour := path.with_name(f"{started[1]}.py")) in self.modules:
                yield neighbour

    def _kernels_in(self, texts: Iterable[str]) -> list[Path]:
        """Return the kernels that a module names; where it puts a name together, all with that ending."""
        names = [text for text in texts if text.endswith(KERNELS)]
        return [*self._named(names), *(kernel for kernel in self.kernels if kernel.suffix in names)]

    def _named(self, names: Iterable[str]) -> list[Path]:
        ends = {Path(name).name for name in names}
        return [kernel for kernel in self.kernels if kernel.name in ends]


@cache
def _read(folder: Path) -> _Folder:
    return _Folder(folder)


def variant_files(workload: Workload, variant: type[Variant]) -> frozenset[Path]:
    """Return the files of a workload that a variant is made of, kernels included."""
    return _variant_files(workload.folder, variant)


@cache
def _variant_files(folder: Path, variant: type[Variant]) -> frozenset[Path]:
    modules = {cls.__module__ for cls in (*variant.__mro__, *variant.problem.__mro__)}
    files_ = {Path(file).resolve() for name in modules if (file := getattr(sys.modules[name], "__file__", None))}
    return _read(folder).closure(sorted(files_))


@cache
def digest(paths: frozenset[Path]) -> str:
    """SHA-256 over the names and contents of files."""
    sha = hashlib.sha256()
    for path in sorted(paths):
        sha.update(path.name.encode() + b"\0" + path.read_bytes())
    return sha.hexdigest()


def describe(workloads: Mapping[str, Workload], identities: Iterable[Identity]) -> dict[str, Any]:
    """Return digests of the code that a run of some cases uses, for its environment file.

    ``files`` has a digest of each file by its name below the folder of the workload, which comes first;
    ``made_of`` says which of them each variant is made of.
    """
    variants = sorted({(i.workload, i.problem, i.variant) for i in identities})
    digests, made_of = {}, {}
    parts: dict[str, str] = {}
    for names in variants:
        workload = workloads[names[0]]
        own = variant_files(workload, workload.variant(*names[1:]))
        named = _digests(workload, own)
        digests["/".join(names)] = digest(own)
        made_of["/".join(names)] = sorted(named)
        parts |= named
    return {"measuring": harness_digest(), "variants": digests, "files": parts, "made_of": made_of}


def _digests(workload: Workload, own: Iterable[Path]) -> dict[str, str]:
    return {named_in(workload, path): digest(frozenset({path}))[:SHORT] for path in own}


def named_in(workload: Workload, path: Path) -> str:
    """Return how a file of a workload is called: ``NAME/kernels/rows.cl``."""
    return f"{workload.name}/{path.relative_to(workload.folder.resolve()).as_posix()}"


def age(run: Run, identity: Identity, workloads: Mapping[str, Workload] | None = None) -> Verdict:
    """Return whether a case of a run was measured with the code as it is.

    Parameters
    ----------
    run : Run
    identity : Identity
        Of the case.
    workloads : mapping, optional
        Those that there are, in place of the shipped ones, of which the case's is imported when it is first asked for.
    """
    if run.environment.get("imported"):
        return Verdict(Age.UNKNOWN, "measured elsewhere")
    name = f"{identity.workload}/{identity.problem}/{identity.variant}"
    workload = shipped(identity.workload) if workloads is None else workloads.get(identity.workload)
    if workload is None:
        return Verdict(Age.UNKNOWN, f"workload {identity.workload!r} is not here")
    variant = workload.variants.get(identity.problem, {}).get(identity.variant)
    if variant is None:
        return Verdict(Age.STALE, "there is no such variant any more")
    own = variant_files(workload, variant)
    if stored := run.environment.get("code"):
        if name not in stored["variants"]:
            return Verdict(Age.UNKNOWN, "the run does not say what this variant was made of")
        measuring, declared = _measuring(stored["measuring"], _devices(run, identity))
        files_changed, none = _changed_files(stored, name, workload, own)
        return _verdict([*measuring, *files_changed], [*declared, *none])
    commit = run.environment.get("commit") or {}
    changed = _changed_of(own, str(commit.get("hash") or ""), workload.folder)
    if changed is None:
        return Verdict(Age.UNKNOWN, "the run's commit is in no repository here")
    judged = _verdict(changed)
    if judged.age is Age.CURRENT and commit.get("dirty"):
        return Verdict(Age.UNKNOWN, "measured with uncommitted changes")
    return judged


@cache
def shipped(name: str) -> Workload | None:
    """Return a workload that ships or is installed; ``None`` where it is not here or does not import."""
    try:
        return discover(only=name).get(name)
    except PerfportError:
        return None


def _devices(run: Run, identity: Identity) -> frozenset[str]:
    """Return of what backend and kind the devices of a case are, ``backend/kind``."""
    known = [(run.environment.get("devices") or {}).get(each) or {} for each in identity.devices]
    return frozenset(f"{identity.backend}/{each.get('kind')}" for each in known)


def _measuring(stored: str, devices: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return whether the measuring code has changed since a digest of it, and what is declared to be no change."""
    present = harness_digest()
    chain = () if stored == present else comparable(present, devices).get(stored)
    return ([MEASURING], []) if chain is None else ([], [step.said for step in chain])


def _changed_files(
    stored: Mapping[str, Any], name: str, workload: Workload, own: frozenset[Path]
) -> tuple[list[str], list[str]]:
    """Return what has changed of the files of a variant since a run, and what is declared to be no change."""
    if stored["variants"][name] == digest(own):
        return [], []
    if name not in (stored.get("made_of") or {}):
        return [WORKLOAD], []
    before = {file: str(stored["files"].get(file)) for file in stored["made_of"][name]}
    present = _digests(workload, own)
    changed, declared = [], []
    for file in sorted(before.keys() | present.keys()):
        old, new = before.get(file, NEW), present.get(file, "gone")
        if old == new:
            continue
        short = file.removeprefix(f"{workload.name}/")
        chain = comparable_file(workload.folder, short, new, name.removeprefix(f"{workload.name}/")).get(old)
        if chain is None:
            changed.append(f"{short} ({old}..{new})")
        else:
            declared += [step.said for step in chain]
    return changed, declared


def _verdict(changed: Sequence[str], declared: Iterable[str] = ()) -> Verdict:
    if changed:
        return Verdict(Age.STALE, ", ".join(changed))
    return Verdict(Age.CURRENT, "; ".join(dict.fromkeys(declared)))


@cache
def _changed_of(own: frozenset[Path], commit: str, folder: Path) -> tuple[str, ...] | None:
    """Return what differs from a commit of what a variant is made of and measured by; ``None`` as `_changed_since`."""
    since = _changed_since(commit)
    if since is None:
        return None
    measuring = [MEASURING] if since & {path.resolve() for path in harness_files()} else []
    return *measuring, *(path.relative_to(folder.resolve()).as_posix() for path in sorted(since & own))


@cache
def _changed_since(commit: str) -> frozenset[Path] | None:
    """Return the files that differ from a commit; ``None`` where the package is in no repository that has it."""
    if not re.fullmatch(r"[0-9a-f]{7,64}", commit):
        return None
    here = Path(str(files("perfport"))).resolve()
    try:
        top, names = (
            subprocess.run(
                ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True, timeout=60
            ).stdout
            for arguments in (
                ("rev-parse", "--show-toplevel"),
                ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit, "--"),
            )
        )
    except (OSError, subprocess.SubprocessError):
        return None
    root = Path(top.strip()).resolve()
    return frozenset(root / name for name in names.split("\0") if name)
