"""What a workload is made of, and how workloads are found.

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
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, NoReturn, get_args

import numpy as np
from pydantic import BaseModel, ValidationError

from . import backend
from .backend import Artifact, Buffer, Kernel, Module, OpenDevice
from .device import DeviceInfo
from .errors import PerfportError, UnavailableError, UnsupportedError, UsageError, nearest
from .published import FILE as PUBLISHED
from .published import Figure, of_workload
from .record import OutputError, Verification
from .work import Traffic, Work

ENTRY_POINTS = "perfport.workloads"
Role = Literal["rung", "control", "beyond", "peer"]
ROLES = get_args(Role)
CLAIMS = "claims.yaml"
POISON = 0xFF  # NaN as float32 and float64, the largest unsigned integer, -1


@dataclass(frozen=True)
class Metric:
    """A figure of merit: dotted tag, unit, which direction is better, and what it means."""

    tag: str
    unit: str
    direction: Literal["higher", "lower"]
    description: str


def _unstated(cls: type[Problem | Variant]) -> Iterator[str]:
    """Yield what every class has to state and this one does not: its name, and the methods that are asked of it."""
    if not cls.name or not isinstance(cls.name, str):
        yield f"name: expected a text, got {cls.name!r}"
    methods: Iterable[str] = vars(cls).get("__abstractmethods__", ())
    for method in sorted(methods):
        yield f"{method}: expected a method of this name, got none"


class Problem(ABC):
    """One problem of a workload at one set of parameters: inputs, reference, tolerance, useful work.

    Class attributes
    ----------------
    name : str
        Unique within the workload.
    Parameters : pydantic model
        The parameters with their defaults; bad values raise errors that name the key.
    presets : dict
        Parameters by preset name: ``tiny``, ``quick``, ``full``, ``large``, ``paper``.
    check_sizes : tuple of dict
        Parameters small enough for a simulator and odd enough to meet every edge; at least two that differ in each
        dimension, so that the scaling of declared work is checked.
    metric : Metric
    figures : dict
        Tables of reports: names of figures (`Variant.notes`) by title.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    check_sizes: ClassVar[tuple[dict[str, Any], ...]] = ()
    metric: ClassVar[Metric]
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    Parameters: ClassVar[type[BaseModel]]

    def __init__(self, parameters: Any, seed: int) -> None:
        self.parameters = parameters
        self.seed = seed

    @classmethod
    def data_decide_time(cls, parameters: Any) -> bool:
        """Whether at these parameters other inputs are other work, so that several instances of them are timed.

        Such are the pattern of pruned weights, the windows that pass a cascade, the iterations until an optimum; not so
        where the seed draws values alone, or where data are read from a file.
        """
        return False

    @classmethod
    def mistakes(cls) -> Iterator[str]:
        """Yield what is wrong with the class as its author wrote it: member, what is expected, what is there."""
        yield from _unstated(cls)
        if not isinstance(metric := getattr(cls, "metric", None), Metric):
            yield f"metric: expected a Metric, got {metric!r}"
        elif metric.direction not in ("higher", "lower"):
            yield f"metric: direction: expected 'higher' or 'lower', got {metric.direction!r}"
        parameters = getattr(cls, "Parameters", None)
        if not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
            yield f"Parameters: expected a pydantic model, got {parameters!r}"
            return
        if not cls.presets:
            yield "presets: expected parameters by the name of a preset, got none"
        sizes = {
            **{f"presets[{name!r}]": values for name, values in cls.presets.items()},
            **{f"check_sizes[{number}]": values for number, values in enumerate(cls.check_sizes)},
        }
        distinct = set()
        for where, values in sizes.items():
            try:
                made = parameters.model_validate(values)
            except ValidationError as error:
                first = error.errors()[0]
                yield f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r}"
                return
            if where.startswith("check_sizes"):
                distinct.add(made.model_dump_json())
        if len(distinct) < 2:
            yield f"check_sizes: expected at least two different ones, got {list(cls.check_sizes)}"

    @abstractmethod
    def work(self) -> Work:
        """Useful operations and compulsory bytes of one execution."""

    @abstractmethod
    def metric_value(self, seconds: float) -> float:
        """The metric for one execution that takes ``seconds``."""

    @abstractmethod
    def check(self, outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
        """Compare outputs with the float64 reference; one entry for each output given."""


@dataclass(frozen=True)
class Tunable:
    """A compile-time parameter of a variant: its default and the values it may take.

    ``default`` may differ by kind of device (``{"cpu": 1, "gpu": 256}``).
    """

    default: Any
    values: tuple[Any, ...]
    description: str = ""

    def default_for(self, info: DeviceInfo) -> Any:
        """The default on a device."""
        if isinstance(self.default, dict):
            return self.default["cpu" if info.kind == "cpu" else "gpu"]
        return self.default


class Session:
    """A device and one problem on it: what the cases of a group share.

    Inputs and re-laid-out copies of them are made once, on first use, and timed.

    Attributes
    ----------
    device : OpenDevice
    problem : Problem
    folder : Path
        Of the workload.
    timed : bool
        Whether the time of an execution means anything; under a sanitizer it does not, and no variant measures ahead.
    artifacts : dict
        What was compiled so far. Sessions of one problem with other inputs may have it in common.
    """

    def __init__(
        self,
        device: OpenDevice,
        problem: Problem,
        folder: Path,
        timed: bool = True,
        artifacts: dict[str, Artifact] | None = None,
    ) -> None:
        self.device = device
        self.problem = problem
        self.folder = folder
        self.timed = timed
        self.artifacts = {} if artifacts is None else artifacts
        self._shared: dict[str, tuple[Any, float]] = {}

    def shared(self, key: str, make: Callable[[], Any]) -> tuple[Any, float]:
        """Return what ``make`` returned for this key, and the seconds that making it took."""
        if key not in self._shared:
            self.device.finish()
            started = time.perf_counter()
            value = make()
            self.device.finish()
            self._shared[key] = (value, time.perf_counter() - started)
        return self._shared[key]

    def close(self) -> None:
        """Give the shared buffers back."""
        for value, _ in self._shared.values():
            if hasattr(value, "free"):
                value.free()
        self._shared.clear()

    def build(self, file: str, macros: Mapping[str, Any]) -> Artifact:
        """Compile a kernel file of the workload for this device, once per set of macros."""
        path = self.folder / "kernels" / file
        key = f"{path} {sorted(macros.items())}"
        if key not in self.artifacts:
            builder = backend.get(self.device.info.backend)
            self.artifacts[key] = builder.build(file, path.read_text(), macros, self.device.target)
        return self.artifacts[key]


@dataclass
class Output:
    """A device buffer that the harness poisons before each check and compares afterwards."""

    buffer: Buffer
    dtype: Any
    shape: tuple[int, ...]


class Setup:
    """What a variant builds itself with: kernels, shared inputs, outputs; and the account of what that cost.

    Attributes
    ----------
    device : OpenDevice
    problem : Problem
    tunables : dict
        Chosen value of each tunable of the variant.
    profile : dict
        The device profile's parameters for this workload, by macro name.
    compile_s, input_s, layout_s : float
        Seconds spent compiling, making or uploading inputs, and re-laying them out for this variant.
    modules : dict
        Loaded code by the hash of its source. Setups of one case on other inputs may have it in common.
    """

    def __init__(
        self,
        session: Session,
        tunables: dict[str, Any],
        macros: Mapping[str, Any],
        modules: dict[str, Module] | None = None,
    ) -> None:
        self.session = session
        self.device = session.device
        self.problem: Any = session.problem
        self.tunables = tunables
        self.profile = {key.upper(): value for key, value in macros.items()}
        self.artifacts: list[Artifact] = []
        self.kernels: list[Kernel] = []
        self.modules = {} if modules is None else modules
        self.outputs: dict[str, Output] = {}
        self.buffers: list[Buffer] = []
        self._used: dict[str, int] = {}
        self._own_bytes = 0
        self.compile_s = 0.0
        self.layout_s: float | None = None
        self.input_s: float | None = None

    def kernel(self, file: str, name: str, **macros: Any) -> Kernel:
        """Compile and load a kernel; tunables and the profile's parameters are macros already, in upper case."""
        named = {**self.profile, **{key.upper(): value for key, value in self.tunables.items()}, **macros}
        return self.load(name, lambda: self.session.build(file, named))

    def load(self, name: str, make: Callable[[], Artifact]) -> Kernel:
        """Load a kernel from an artifact that ``make`` builds; for code that a variant generates."""
        started = time.perf_counter()
        artifact = make()
        if artifact.source_hash not in self.modules:  # OpenCL runtimes compile at every load
            self.modules[artifact.source_hash] = self.device.load(artifact)
        loaded = self.modules[artifact.source_hash].kernel(name)
        self.compile_s += time.perf_counter() - started
        self.artifacts.append(artifact)
        self.kernels.append(loaded)
        return loaded

    def _shared(self, key: str, make: Callable[[], Any]) -> tuple[Any, float]:
        value, seconds = self.session.shared(key, make)
        self._used[key] = getattr(value, "nbytes", 0)
        return value, seconds

    @property
    def device_bytes(self) -> int:
        """Device memory of this variant: its own buffers and the shared ones that it uses."""
        return sum(self._used.values()) + self._own_bytes

    def input(self, key: str, make: Callable[[], Any]) -> Any:
        """Return an input as the problem states it, made once for all variants."""
        value, seconds = self._shared(f"input {key}", make)
        self.input_s = (self.input_s or 0.0) + seconds
        return value

    def layout(self, key: str, make: Callable[[], Any]) -> Any:
        """Return a re-laid-out input, made once for all variants; its cost is charged to each of them."""
        value, seconds = self._shared(f"layout {key}", make)
        self.layout_s = (self.layout_s or 0.0) + seconds
        return value

    def output(self, name: str, dtype: Any, shape: int | tuple[int, ...]) -> Buffer:
        """Allocate an output under the name that the problem's reference has for it."""
        shape = (shape,) if isinstance(shape, int) else shape
        buffer = self.scratch(int(np.prod(shape)) * np.dtype(dtype).itemsize)
        self.outputs[name] = Output(buffer, dtype, shape)
        return buffer

    def scratch(self, nbytes: int) -> Buffer:
        """Allocate a buffer that lives as long as the variant."""
        buffer = self.device.empty(nbytes)
        self.buffers.append(buffer)
        self._own_bytes += nbytes
        return buffer

    def poison(self) -> None:
        """Fill every output, so that what an execution does not write shows."""
        for output in self.outputs.values():
            self.device.fill(output.buffer, POISON)

    def verify(self, variant: Variant) -> Verification:
        """Compare what the last execution left in the outputs with the reference.

        Raises `PerfportError` for a variant without any output.
        """
        outputs = {name: self.device.read(o.buffer, o.dtype, o.shape) for name, o in self.outputs.items()}
        errors = self.problem.check({**outputs, **variant.results()})
        if not errors:
            raise PerfportError(f"variant {variant.name} produced no output to verify")
        passed = all(error.passed for error in errors.values())
        return Verification(passed=passed, seed=self.problem.seed, outputs=errors)

    def release(self) -> None:
        """Give the variant's own buffers back."""
        while self.buffers:
            self.buffers.pop().free()


class Variant(ABC):
    """One way to solve a problem on a device. Building an instance compiles and allocates; `launch` enqueues.

    Class attributes
    ----------------
    problem : type of Problem
    name, title : str
    role : str
        ``rung`` of the ladder, ``control`` arm, ``beyond`` the source, or ``peer``.
    rung : int
        Order within the problem's tables.
    source : str
        Section of the publication.
    needs : tuple of str
        Capabilities that the device must have (``images``, ``cuda``, ``cpu``, ``gpu``, ``opencl``).
    modules : tuple of str
        Python modules that must be importable.
    tunables : dict of str to Tunable
    precision : str
        Precision class; classes are never ranked together.
    unit : str, optional
        The ceiling that its operations go under, where that is not ``fp32_fma`` (floating point) or 32-bit integer
        arithmetic: ``tf32_mma``, ``bf16_mma``, ``dp4a``, ``int8_mma``.
    fewer_operations : bool
        May do fewer operations than the problem counts, as Winograd's and FFT's convolutions do: held to the bound of
        bytes alone.
    host_driven : bool
        Reads back within an execution: ranked by wall time.
    host : bool
        Runs without device events (a peer on the host).
    """

    problem: ClassVar[type[Problem]]
    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    role: ClassVar[Role] = "rung"
    rung: ClassVar[int] = 0
    source: ClassVar[str] = "beyond the source"
    needs: ClassVar[tuple[str, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    tunables: ClassVar[dict[str, Tunable]] = {}
    precision: ClassVar[str] = "fp32"
    unit: ClassVar[str | None] = None
    fewer_operations: ClassVar[bool] = False
    host_driven: ClassVar[bool] = False
    host: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, setup: Setup) -> None: ...

    @abstractmethod
    def launch(self) -> None:
        """Enqueue one execution on the device's own queue (or perform it, where ``host``)."""

    def traffic(self) -> Traffic | None:
        """Modelled bytes and operations of the last execution; asked for after at least one."""
        return None

    def results(self) -> dict[str, np.ndarray]:
        """Outputs that are not in a buffer of `Setup.output`."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Further figures of the last execution, kept in the record's ``extra``."""
        return {}

    @classmethod
    def mistakes(cls) -> Iterator[str]:
        """Yield what is wrong with the class as its author wrote it: member, what is expected, what is there."""
        yield from _unstated(cls)
        if cls.role not in ROLES:
            yield f"role: expected one of {', '.join(ROLES)}, got {cls.role!r}{nearest(str(cls.role), ROLES)}"
        if not isinstance(cls.rung, int):
            yield f"rung: expected an integer, got {cls.rung!r}"
        problem = getattr(cls, "problem", None)
        if not (isinstance(problem, type) and issubclass(problem, Problem)):
            yield f"problem: expected a Problem class, got {problem!r}"
        for name, tunable in cls.tunables.items():
            if not isinstance(tunable, Tunable):
                yield f"tunables[{name!r}]: expected a Tunable, got {tunable!r}"

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        """Raise `UnsupportedError` or `UnavailableError` where this variant cannot run."""
        have = {*info.capabilities, info.kind}
        if missing := [need for need in cls.needs if need not in have]:
            raise UnsupportedError(f"needs {', '.join(missing)}, which {info.id} does not have")
        for module in cls.modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise UnavailableError(f"Python module {module!r} cannot be imported ({error})") from None


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
        for path in sorted(self.folder.rglob("*")):
            if path.name in (PUBLISHED, CLAIMS):
                continue
            if path.suffix in (".py", ".cl", ".h", ".cu", ".yaml") and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(self.folder)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()


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


def _import_folder(folder: Path) -> ModuleType:
    name = f"perfport_external_{folder.name}"
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
