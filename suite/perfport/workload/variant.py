"""A variant: one way to solve a problem on a device."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ..model.device import DeviceInfo
from ..model.errors import UnavailableError, UnsupportedError, nearest
from ..model.work import Traffic
from .problem import Problem, unstated
from .setup import Setup
from .step import Step, total_traffic

Role = Literal["rung", "control", "beyond", "peer"]
ROLES = get_args(Role)


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


class Variant(ABC):
    """One way to solve a problem on a device. Building an instance compiles and allocates; `launch` enqueues.

    An instance has ``steps``, which an execution runs in turn, or methods `launch` and `traffic` of its own.

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
        Precision class; classes are never ranked together, and each has tolerances of its own.
    computes : str
        Which of the problem's results (`Problem.results`), where it has several.
    unit : str, optional
        The ceiling that its operations go under in its own bound, where that is not ``fp32_fma`` (floating point) or
        32-bit integer arithmetic: ``tf32_mma``, ``bf16_mma``, ``dp4a``, ``int8_mma``. An instance sets it where the
        device decides.
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
    computes: ClassVar[str] = ""
    unit: str | None = None
    host_driven: ClassVar[bool] = False
    host: ClassVar[bool] = False
    steps: Sequence[Step] = ()

    @abstractmethod
    def __init__(self, setup: Setup) -> None: ...

    def launch(self) -> None:
        """Enqueue one execution on the device's own queue (or perform it, where ``host``)."""
        for step in self.steps:
            step.launch()

    def traffic(self) -> Traffic | None:
        """Modelled bytes and operations of the last execution; asked for after at least one."""
        return total_traffic(self.steps)

    def results(self) -> dict[str, np.ndarray]:
        """Outputs that are not in a buffer of `Setup.output`."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Further figures of the last execution, kept in the record's ``extra``."""
        return {}

    @classmethod
    def mistakes(cls) -> Iterator[str]:
        """Yield what is wrong with the class as its author wrote it: member, what is expected, what is there."""
        yield from unstated(cls)
        if cls.launch is Variant.launch and not _has_steps(cls):
            yield "launch: expected a method of this name, or steps, got neither"
        if cls.role not in ROLES:
            yield f"role: expected one of {', '.join(ROLES)}, got {cls.role!r}{nearest(str(cls.role), ROLES)}"
        if not isinstance(cls.rung, int):
            yield f"rung: expected an integer, got {cls.rung!r}"
        problem = getattr(cls, "problem", None)
        if not (isinstance(problem, type) and issubclass(problem, Problem)):
            yield f"problem: expected a Problem class, got {problem!r}"
        elif cls.precision not in problem.results.get(cls.computes, ()):
            known = "; ".join(f"{name!r}: {', '.join(classes)}" for name, classes in problem.results.items())
            yield f"computes, precision: expected some of {known}, got {cls.computes!r}, {cls.precision!r}"
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


def _has_steps(cls: type[Variant]) -> bool:
    """Whether a class, or one that it derives from, sets ``steps``."""
    own = cls.__mro__[: cls.__mro__.index(Variant)]
    methods = [method for base in own for method in vars(base).values() if hasattr(method, "__code__")]
    return any("steps" in vars(base) for base in own) or any("steps" in method.__code__.co_names for method in methods)
