"""The record: everything about one case in one JSON object (schema version 3, see docs/records.md)."""

from __future__ import annotations

import itertools
import math
import sys
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from .mismatch import Mismatch
from .schema import Model
from .work import Traffic, Work

SCHEMA_VERSION = 3
#: Of intervals of medians, and of what follows from them.
CONFIDENCE = 0.95
#: The tunable by which a variant that takes further devices by itself says how many take part.
DEVICES = "devices"


class Status(StrEnum):
    """How a case ended. Only ``ok`` is ranked; ``contended`` is shown with its mark.

    ``impossible`` is a time below the problem bound by more than any interval allows: the declared work, the clock or
    the ceiling is wrong, and so is every figure that follows from them.
    """

    OK = "ok"
    WRONG = "wrong"
    COMPILE_ERROR = "compile_error"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CONTENDED = "contended"
    IMPOSSIBLE = "impossible"

    @property
    def measured(self) -> bool:
        """Whether a record of this status carries timings that may be shown as results."""
        return self in (Status.OK, Status.CONTENDED)

    @property
    def failed(self) -> bool:
        """Whether ``--retry failed`` runs the case again."""
        return self in (
            Status.WRONG, Status.COMPILE_ERROR, Status.CRASHED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.IMPOSSIBLE,
        )  # fmt: skip


#: What ``--retry`` runs again, by its argument.
RETRY = {
    "failed": frozenset(status for status in Status if status.failed),
    "contended": frozenset({Status.CONTENDED}),
}

#: Intervals and quantiles come in order up to rounding, relative.
ROUNDING = 1e-9

Seconds = Annotated[float, Field(ge=0)]


def _finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN: an error that is one of them is held as the largest float."""
    return sys.float_info.max if isinstance(value, float) and not math.isfinite(value) else value


Error = Annotated[float, BeforeValidator(_finite), Field(ge=0)]
Provenance = Literal["measured", "published", "modelled"]


class _Part(Model):
    model_config = ConfigDict(allow_inf_nan=False)

    def _rising(self, *names: str) -> None:
        """Raise `ValueError` if a field is below the one before it by more than rounding explains."""
        for lower, upper in itertools.pairwise(names):
            low, high = getattr(self, lower), getattr(self, upper)
            if low > high + ROUNDING * abs(high):
                raise ValueError(f"expected {' <= '.join(names)}, got {lower} {low:g} above {upper} {high:g}")


class Interval(_Part):
    """A value with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.value <= self.high:  # most are, and there are hundreds in a record
            self._rising("low", "value", "high")
        return self


class Identity(_Part):
    """What was run. Two records with equal identities are measurements of the same thing."""

    workload: str
    problem: str
    preset: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    variant: str
    role: Literal["rung", "control", "beyond", "peer"] = "rung"
    rung: int = 0
    tunables: dict[str, Any] = Field(default_factory=dict)
    devices: list[str]
    backend: str
    profile: str | None = None
    precision: str = "fp32"
    inputs: dict[str, int] = Field(
        default_factory=dict, description="seed of each timed instance of the inputs, by the instance's name"
    )

    @property
    def device_count(self) -> int:
        """How many devices took part: as many as have ids, or what the tunable `DEVICES` says, if that is more."""
        said = self.tunables.get(DEVICES)
        return max(len(self.devices), said if isinstance(said, int) else 0)


class Summary(_Part):
    """Distribution of one clock over the samples, in seconds.

    ``autocorrelation`` is that of neighbouring samples and ``effective`` the number of independent samples that they
    amount to; neither is known of few samples, nor in records from before it was estimated.
    """

    median: Seconds
    ci_low: Seconds
    ci_high: Seconds
    q1: Seconds
    q3: Seconds
    minimum: Seconds
    maximum: Seconds
    n: int = Field(ge=1)
    outliers: int = Field(ge=0)
    autocorrelation: float | None = Field(None, ge=-1, le=1)
    effective: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        self._rising("ci_low", "median", "ci_high")
        self._rising("minimum", "q1", "median", "q3", "maximum")
        self._rising("outliers", "n")
        return self

    @property
    def confidence(self) -> float:
        """How likely the interval holds the median: of few samples minimum and maximum, which enclose it less often."""
        return min(CONFIDENCE, 1 - 2.0 ** (1 - self.n))

    def within(self, target: float) -> bool:
        """Whether half of the 95 % interval, relative to the median, is at most a target: never of too few samples."""
        return self.confidence >= CONFIDENCE and self.half_width <= target

    @property
    def half_width(self) -> float:
        """Half of the confidence interval of the median, relative to the median."""
        return (self.ci_high - self.ci_low) / 2 / self.median if self.median else 0.0


class Instance(_Part):
    """One instance of a case's inputs: samples on the clock that ranks, in seconds, one for each round of the case."""

    samples: list[Seconds]
    summary: Summary


class Timing(_Part):
    """Samples of one case. ``span``, ``busy`` and ``wall`` are seconds per execution, one entry per sample.

    ``rank`` names the clock that rankings use: ``span`` (device events), or ``wall`` for host-driven
    variants and for peers without device events. ``rounds[i]`` is the interleaving round of sample ``i``:
    samples of two cases with the same round were taken side by side. ``workers[i]`` is the number of the fresh worker
    that took sample ``i``; empty where one worker took all. A case that is timed on several instances of its inputs has
    the geometric mean over them as its sample of a round, and each one apart in ``instances``, by name. From a cold
    cache ``flushed_bytes`` were streamed ahead of each sample.
    """

    rank: Literal["span", "wall"]
    cache: Literal["cold", "warm"]
    flushed_bytes: int | None = Field(None, ge=1)
    launches: int = Field(ge=0)
    rounds: list[int]
    workers: list[int] = Field(default_factory=list)
    span: list[Seconds] = Field(default_factory=list)
    busy: list[Seconds] = Field(default_factory=list)
    wall: list[Seconds] = Field(default_factory=list)
    kernels: dict[str, Seconds] = Field(default_factory=dict, description="busy seconds per kernel, one execution")
    summary: dict[Literal["span", "busy", "wall"], Summary]
    instances: dict[str, Instance] = Field(default_factory=dict)
    target: float = Field(gt=0)
    target_met: bool

    @property
    def ranked(self) -> Interval:
        """The time that rankings use: median and 95 % interval of the clock ``rank``, in seconds."""
        chosen = self.summary[self.rank]
        return Interval(value=chosen.median, low=chosen.ci_low, high=chosen.ci_high)

    @model_validator(mode="after")
    def _counted(self) -> Self:
        for clock in ("span", "busy", "wall"):
            samples, summary = len(getattr(self, clock)), self.summary.get(clock)
            if samples != (expected := summary.n if summary else 0):
                raise ValueError(f"{clock}: expected {expected} samples, as in its summary, got {samples}")
        if self.rank not in self.summary:
            raise ValueError(f"rank: expected a clock with samples, got {self.rank!r}")
        expected = len(getattr(self, self.rank))
        if len(self.rounds) != expected or len(self.workers) not in (0, expected):
            raise ValueError(
                f"rounds and workers: expected one entry for each of {expected} samples, "
                f"got {len(self.rounds)} and {len(self.workers)}"
            )
        for name, instance in self.instances.items():
            if not len(instance.samples) == instance.summary.n == expected:
                raise ValueError(f"instances.{name}: expected {expected} samples, got {len(instance.samples)}")
        return self


class Overheads(_Part):
    """What was paid outside the timed window, in seconds and bytes; ``None`` where it does not apply."""

    compile_s: Seconds | None = None
    upload_s: Seconds | None = None
    layout_s: Seconds | None = None
    device_bytes: int | None = Field(None, ge=0)
    wall_s: Seconds | None = None


class OutputError(_Part):
    """Error of one output against the float64 reference. What is not finite is held as the largest float."""

    max_abs: Error
    relative_l2: Error
    checked: int = Field(ge=0, description="number of elements compared")
    total: int = Field(ge=0, description="number of elements of the output")
    tolerance: dict[str, float]
    passed: bool
    detail: str | None = None
    mismatch: Mismatch | None = Field(default=None, description="which elements are off, of an output of arrays")


class Verification(_Part):
    """Outcome of all outputs of a case, on inputs drawn from ``seed``: the worst of all verifications of the case.

    ``executions``: how many executions were compared in all, by every worker; None in records from before it was told.
    """

    passed: bool
    seed: int
    outputs: dict[str, OutputError]
    executions: int | None = Field(None, ge=1)

    @property
    def complaint(self) -> str:
        """What is wrong with the outputs that do not pass; empty if all do."""
        return "; ".join(
            f"{name}: "
            + (f"{error.mismatch}; " if error.mismatch else "")
            + f"max abs error {error.max_abs:.3g}, relative L2 {error.relative_l2:.3g}, "
            f"tolerance {error.tolerance}" + (f" ({error.detail})" if error.detail else "")
            for name, error in self.outputs.items()
            if not error.passed
        )

    @property
    def worst(self) -> float:
        """The largest relative L2 error over the outputs."""
        return max((o.relative_l2 for o in self.outputs.values()), default=0.0)


class MetricValue(_Part):
    """The problem's metric for this case, with the interval that the timing's interval gives."""

    tag: str
    unit: str
    direction: Literal["higher", "lower"]
    value: float
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        self._rising("low", "value", "high")
        return self


class Bound(_Part):
    """A lower bound on time and how much of it the case reaches (1.0 = at the bound).

    ``terms`` holds the seconds that each resource alone would need, by the name of its ceiling (``dram`` for memory,
    ``steps`` for a chain of dependent steps); ``binding`` names the largest. ``low`` and ``high`` are the bound at the
    upper and lower ends of the ceilings' intervals; the interval of ``share`` is that of the time alone.
    """

    seconds: Seconds
    low: Seconds
    high: Seconds
    binding: str
    terms: dict[str, Seconds]
    share: Interval
    stale: bool = False

    @model_validator(mode="after")
    def _bound(self) -> Self:
        self._rising("low", "seconds", "high")
        if self.binding not in self.terms:
            raise ValueError(f"binding: expected one of the terms {', '.join(self.terms)}, got {self.binding!r}")
        return self


class Energy(_Part):
    """Energy of one execution, from a counter over loops of executions, or why there is none (docs/measurement.md).

    ``joules`` is of one execution, ``seconds`` and ``executions`` of all ``loops`` together. ``update_s`` is the time
    between two updates of the counter, ``idle_watts`` the power of the same ``domain`` at rest, before the loops.
    """

    joules: Interval | None = None
    domain: str | None = None
    seconds: float | None = Field(None, gt=0)
    executions: int | None = Field(None, ge=1)
    loops: int | None = Field(None, ge=3)
    update_s: float | None = Field(None, gt=0)
    idle_watts: float | None = Field(None, gt=0)
    absent: str | None = Field(None, min_length=1, description="why there is no number")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        told = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if told != ["absent"] and told != [name for name in type(self).model_fields if name != "absent"]:
            raise ValueError(f"expected 'absent' alone, or all but it, got {', '.join(told) or 'nothing'}")
        if self.joules and self.joules.low <= 0:
            raise ValueError(f"joules: expected a lower end above 0, got {self.joules.low:g}")
        return self

    @property
    def watts(self) -> float | None:
        """Mean power of the loops, in W."""
        if self.joules is None or self.seconds is None or self.executions is None:
            return None
        return self.joules.value * self.executions / self.seconds


class Failure(_Part):
    """Why a case has no result: one line for tables, a log for its author."""

    reason: str
    log: str = ""


class Record(_Part):
    """Everything about one case. See docs/records.md for the meaning of each field."""

    schema_version: int = SCHEMA_VERSION
    key: str
    run: str
    time: str
    provenance: Provenance = "measured"
    status: Status
    identity: Identity
    title: str = ""
    unit: str | None = Field(default=None, description="ceiling that its operations go under, where it names one")
    source: str = Field(default="", description="section of the publication, or 'beyond the source'")
    seed: int = Field(default=0, description="of the timed inputs; further instances have theirs in the identity")
    metric: MetricValue | None = None
    timing: Timing | None = None
    overheads: Overheads = Field(default_factory=Overheads)
    verification: Verification | None = None
    work: Work | None = None
    traffic: Traffic | None = None
    problem_bound: Bound | None = None
    datasheet_bound: Bound | None = None
    variant_bound: Bound | None = None
    ceilings: dict[str, Interval] = Field(default_factory=dict)
    energy: Energy | None = None
    failure: Failure | None = None
    source_hash: str = ""
    options: list[str] = Field(default_factory=list)
    clocks: dict[str, Any] = Field(default_factory=dict)
    resources: dict[str, Any] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, int]:
        """Seeds of the timed inputs by instance, also of a record from before instances had names."""
        return self.identity.inputs or {"a": self.seed}
