"""How workloads are found.

A workload is a package: modules that define `Problem` and `Variant` subclasses (any module of the package may;
nothing is listed by hand) and a ``kernels`` folder. The harness knows none of them by name.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ..model.errors import UsageError, nearest
from ..model.published import FILE as PUBLISHED
from ..model.published import Figure, of_workload
from .problem import Problem
from .variant import ROLES, Variant

ENTRY_POINTS = "perfport.workloads"
CLAIMS = "claims.yaml"


@dataclass
class Workload:
    """A workload found on the path: its problems and variants by name, its folder, published results."""

    name: str
    title: str
    folder: Path
    problems: dict[str, type[Problem]] = field(default_factory=dict)
    variants: dict[str, dict[str, type[Variant]]] = field(default_factory=dict)

    @cached_property
    def published(self) -> list[Figure]:
        """Figures that others published, read when they are first asked for."""
        return of_workload(self.name, self.folder)

    def problem(self, name: str) -> type[Problem]:
        """Return a problem class. Raises `UsageError` with the nearest name."""
        return _get(self.problems, name, f"workload {self.name!r} has no problem")

    def variant(self, problem: str, name: str) -> type[Variant]:
        """Return a variant class. Raises `UsageError` with the nearest name."""
        return _get(self.variants[problem], name, f"problem {self.name}/{problem} has no variant")

    def source_digest(self) -> str:
        """SHA-256 over every code and data file of the folder: what a change of the workload changes.

        Published figures and claims are left out: they judge results and change none.
        """
        digest = hashlib.sha256()
        for path in code_files(self.folder):
            digest.update(str(path.relative_to(self.folder)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()


def code_files(folder: Path) -> list[Path]:
    """Return the files of code and data of a workload's folder, sorted; not what only judges or describes results."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (".py", ".cl", ".h", ".cu", ".yaml")
        and path.name not in (PUBLISHED, CLAIMS)
        and "__pycache__" not in path.parts
    )


def load_copy(folder: Path, package: str) -> Workload:
    """Import a copy of a workload's folder as a package of this name: versions of one workload stand side by side.

    Raises
    ------
    UsageError
        Where it does not import, or states something that is no workload.
    """
    return _collect(folder.name, lambda: _import_folder(folder, package))


def _get(named: Mapping[str, Any], name: str, complaint: str) -> Any:
    if name not in named:
        raise UsageError(f"{complaint} {name!r}{nearest(name, named)}; it has: {', '.join(named)}")
    return named[name]


def discover(paths: Sequence[Path | str] = (), only: str = "") -> dict[str, Workload]:
    """Find workloads: those shipped, those of the entry-point group ``perfport.workloads``, and those in ``paths``.

    Parameters
    ----------
    paths : sequence of path
        Folders that are workload packages, or hold such folders.
    only : str, optional
        Import this one alone: a child that runs one workload starts in half the time.

    Raises
    ------
    UsageError
        For a path without workloads, two workloads of one name, or one that does not import.
    """
    shipped = importlib.import_module("perfport.workloads")
    packages: dict[str, Callable[[], ModuleType]] = {}
    for folder in map(Path, shipped.__path__):
        for package in sorted(folder.glob("*/__init__.py")):
            name = package.parent.name
            packages[name] = lambda name=name: importlib.import_module(f"{shipped.__name__}.{name}")  # type: ignore[misc]
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        packages[point.name] = point.load
    for path in map(Path, paths):
        own = [path] if (path / "__init__.py").exists() else sorted(p.parent for p in path.glob("*/__init__.py"))
        if not own:
            raise UsageError(f"--workloads {path}: no workload package here (a folder with __init__.py)")
        for folder in own:
            if folder.name in packages:
                raise UsageError(f"--workloads {path}: a workload named {folder.name!r} exists already")
            packages[folder.name] = lambda folder=folder: _import_folder(folder)  # type: ignore[misc]
    return {name: _collect(name, load) for name, load in packages.items() if only in ("", name)}


def _import_folder(folder: Path, package: str = "") -> ModuleType:
    name = package or f"perfport_external_{folder.name}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _collect(name: str, load: Callable[[], ModuleType]) -> Workload:
    try:
        package = load()
        modules = [package]
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            modules.append(importlib.import_module(found.name))
    except (Exception, SystemExit) as error:
        _fail_import(name, error)
    folder = Path(next(iter(package.__path__)))
    workload = Workload(name, (package.__doc__ or name).strip().splitlines()[0], folder)
    classes = {cls for module in modules for cls in vars(module).values() if inspect.isclass(cls)}
    own = sorted(
        (cls for cls in classes if cls.__module__.startswith(package.__name__) and _is_meant(cls)),
        key=lambda cls: cls.__name__,
    )
    problems: list[type[Problem]] = [cls for cls in own if issubclass(cls, Problem)]
    variants: list[type[Variant]] = [cls for cls in own if issubclass(cls, Variant)]
    mistakes = [f"{_place(cls)}: {text}" for known in (problems, variants) for cls in known for text in cls.mistakes()]
    for problem in filter(lambda cls: cls.name, problems):
        if (other := workload.problems.setdefault(problem.name, problem)) is not problem:
            mistakes.append(f"{_place(problem)}: name: {problem.name!r} is also that of {_place(other)}")
    workload.variants = {problem: {} for problem in workload.problems}
    if not mistakes:
        for variant in sorted(variants, key=lambda cls: (ROLES.index(cls.role), cls.rung, cls.name)):
            known = workload.variants.get(variant.problem.name)
            if known is None:
                expected, given = ", ".join(workload.problems), variant.problem.name
                mistakes.append(
                    f"{_place(variant)}: problem: expected one of this workload ({expected}), got {given!r}"
                )
            elif (rival := known.setdefault(variant.name, variant)) is not variant:
                mistakes.append(
                    f"{_place(variant)}: name: {variant.name!r} is also that of {_place(rival)}, of the same problem"
                )
    if mistakes:
        raise UsageError("\n".join(f"workload {name!r}: {mistake}" for mistake in mistakes))
    return workload


def _is_meant(cls: type) -> bool:
    """Whether a class states a problem or a variant; one without a name that others derive from is their base."""
    return issubclass(cls, Problem | Variant) and bool(
        cls.name or not (inspect.isabstract(cls) or cls.__subclasses__())
    )


def _place(cls: type) -> str:
    """File, line and name of a class."""
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}: class {cls.__name__}"
    except (OSError, TypeError):  # made by code
        return f"{cls.__module__}: class {cls.__name__}"


def _fail_import(name: str, error: BaseException) -> NoReturn:
    """Say where the import of a workload fails: at its own line that is the last on the way there."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    files = [frame for frame in frames if not frame[0].startswith("<")]
    own = [frame for frame in files if name in Path(frame[0]).parts]
    where, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (own or files)[-1]
    raise UsageError(f"workload {name!r} does not import: {where}:{line}: {type(error).__name__}: {error}") from error
