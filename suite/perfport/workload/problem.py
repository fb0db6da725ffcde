"""A problem of a workload: inputs, reference, tolerance, useful work, figure of merit."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from ..model.errors import nearest
from ..model.record import OutputError, Verification
from ..model.work import Work
from .outputs import Output, flaws

#: Classes of device that a problem states a headline size for.
CLASSES = ("cpu", "gpu")


@dataclass(frozen=True)
class Metric:
    """A figure of merit: dotted tag, unit, which direction is better, and what it means."""

    tag: str
    unit: str
    direction: Literal["higher", "lower"]
    description: str


def unstated(cls: type) -> Iterator[str]:
    """Yield what every class has to state and this one does not: its name, and the methods that are asked of it."""
    name = getattr(cls, "name", None)
    if not name or not isinstance(name, str):
        yield f"name: expected a text, got {name!r}"
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
    headline : dict of str to str
        The preset at which summaries show the problem, for each class of device: ``{"cpu": "full", "gpu": "large"}``.
        Without it a device is shown at the largest setting that ran there.
    check_sizes : tuple of dict
        Parameters small enough for a simulator and odd enough to meet every edge; at least two that differ in each
        dimension, so that the scaling of declared work is checked.
    metric : Metric
    figures : dict
        Tables of reports: names of figures (`Variant.notes`) by title.
    results : dict of str to tuple of str
        What variants may compute (`Variant.computes`), and in which precision classes: each has outputs and tolerances
        of its own.
    inputs_by_buffers : bool
        Whether all that the seed decides reaches kernels by the buffers of `Setup.input` and `Setup.layout`, of sizes
        that it does not decide. Executions are then verified, and timed, on inputs that the variant was not built on:
        others are copied into these buffers. Not so where kernel arguments, generated code, launches or
        `Variant.results` rest on values of the data; there `redrawn` says what else can change.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    headline: ClassVar[Mapping[str, str]] = {}
    check_sizes: ClassVar[tuple[dict[str, Any], ...]] = ()
    metric: ClassVar[Metric]
    figures: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    results: ClassVar[Mapping[str, tuple[str, ...]]] = {"": ("fp32",)}
    inputs_by_buffers: ClassVar[bool] = False
    Parameters: ClassVar[type[BaseModel]]

    def __init__(self, parameters: Any, seed: int) -> None:
        self.parameters = parameters
        self.seed = seed

    def redrawn(self, seed: int) -> Problem | None:
        """Return this problem with other values in the buffers of its inputs and layouts, and all else equal.

        Executions are then verified on inputs that the variant was not built on where not `inputs_by_buffers`, too:
        kernel arguments, generated code and sizes are those of this problem. None where no inputs can change alone.
        """
        return None

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
        yield from unstated(cls)
        if not isinstance(metric := getattr(cls, "metric", None), Metric):
            yield f"metric: expected a Metric, got {metric!r}"
        elif metric.direction not in ("higher", "lower"):
            yield f"metric: direction: expected 'higher' or 'lower', got {metric.direction!r}"
        parameters = getattr(cls, "Parameters", None)
        if not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
            yield f"Parameters: expected a pydantic model, got {parameters!r}"
            return
        yield from cls._headline_mistakes()
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

    @classmethod
    def _headline_mistakes(cls) -> Iterator[str]:
        if not isinstance(cls.headline, Mapping):
            yield f"headline: expected a preset for each class of device, got {cls.headline!r}"
            return
        for kind in (kind for kind in cls.headline if kind not in CLASSES):
            yield f"headline: expected presets for {' and '.join(map(repr, CLASSES))}, got one for {kind!r}"
        for kind in (kind for kind in CLASSES if cls.headline and kind not in cls.headline):
            yield f"headline: expected a preset for {kind!r}, too, got {dict(cls.headline)!r}"
        for kind, preset in cls.headline.items():
            if preset not in [*cls.presets]:
                meant = nearest(str(preset), cls.presets)
                yield f"headline[{kind!r}]: expected a preset ({', '.join(cls.presets)}), got {preset!r}{meant}"

    @classmethod
    def sizes(cls) -> dict[str, dict[str, Any]]:
        """Return by what stored parameters are told to be of the headline size, as JSON has it.

        Returns
        -------
        dict
            ``headline``: all parameters of that size by class of device. ``defaults``: those that need not be given.
        """
        fields = cls.Parameters.model_fields.items()
        defaults = {
            name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()
        }
        headline = {kind: {**defaults, **cls.presets[preset]} for kind, preset in cls.headline.items()}
        sizes = {"headline": headline, "defaults": defaults}
        return dict(from_json(to_json(sizes, inf_nan_mode="strings", fallback=str)))

    @abstractmethod
    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        """State what every correct method has to do in one execution for one of `results`, in this precision class."""

    @abstractmethod
    def metric_value(self, seconds: float) -> float:
        """The metric for one execution that takes ``seconds``."""

    @abstractmethod
    def outputs(self, computes: str = "", precision: str = "fp32", /) -> dict[str, Output]:
        """Declare what a variant has to leave that computes this in this precision class (`results`)."""

    @abstractmethod
    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        """Compare outputs, in the form that is declared, with the float64 reference; an entry for each output given."""

    def verify(self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32") -> Verification:
        """Judge everything that a variant left: each output there, none besides, of its form, and right."""
        errors = flaws(self.outputs(computes, precision), outputs) or self.check(outputs, computes, precision)
        if errors and all(error.mismatch and error.mismatch.first.expected is None for error in errors.values()):
            with contextlib.suppress(Exception):  # that they are not finite is known; a check need not take such values
                found = self.check(outputs, computes, precision)
                for name in errors.keys() & found.keys():
                    known = found[name].mismatch or errors[name].mismatch
                    errors[name] = errors[name].model_copy(update={"mismatch": known})
        passed = bool(errors) and all(error.passed for error in errors.values())
        return Verification(passed=passed, seed=self.seed, outputs=errors)
