"""The record: everything about one case in one JSON object (schema version 2, see docs/records.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .work import Traffic, Work

SCHEMA_VERSION = 2
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


Provenance = Literal["measured", "published", "modelled"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Interval(_Model):
    """A value with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class Identity(_Model):
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


class Summary(_Model):
    """Distribution of one clock over the samples, in seconds."""

    median: float
    ci_low: float
    ci_high: float
    q1: float
    q3: float
    minimum: float
    maximum: float
    n: int
    outliers: int

    @property
    def half_width(self) -> float:
        """Half of the 95 % confidence interval of the median, relative to the median."""
        return (self.ci_high - self.ci_low) / 2 / self.median if self.median else 0.0


class Instance(_Model):
    """One instance of a case's inputs: samples on the clock that ranks, in seconds, one for each round of the case."""

    samples: list[float]
    summary: Summary


class Timing(_Model):
    """Samples of one case. ``span``, ``busy`` and ``wall`` are seconds per execution, one entry per sample.

    ``rank`` names the clock that rankings use: ``span`` (device events), or ``wall`` for host-driven
    variants and for peers without device events. ``rounds[i]`` is the interleaving round of sample ``i``:
    samples of two cases with the same round were taken side by side. ``workers[i]`` is the number of the fresh worker
    that took sample ``i``; empty where one worker took all. A case that is timed on several instances of its inputs has
    the geometric mean over them as its sample of a round, and each one apart in ``instances``, by name.
    """

    rank: Literal["span", "wall"]
    cache: Literal["cold", "warm"]
    launches: int
    rounds: list[int]
    workers: list[int] = Field(default_factory=list)
    span: list[float] = Field(default_factory=list)
    busy: list[float] = Field(default_factory=list)
    wall: list[float] = Field(default_factory=list)
    kernels: dict[str, float] = Field(default_factory=dict, description="busy seconds per kernel, one execution")
    summary: dict[Literal["span", "busy", "wall"], Summary]
    instances: dict[str, Instance] = Field(default_factory=dict)
    target: float
    target_met: bool


class Overheads(_Model):
    """What was paid outside the timed window, in seconds; ``None`` where it does not apply."""

    compile_s: float | None = None
    upload_s: float | None = None
    layout_s: float | None = None
    device_bytes: int | None = None


class OutputError(_Model):
    """Error of one output against the float64 reference."""

    max_abs: float
    relative_l2: float
    checked: int = Field(description="number of elements compared")
    total: int = Field(description="number of elements of the output")
    tolerance: dict[str, float]
    passed: bool
    detail: str | None = None


class Verification(_Model):
    """Outcome of all outputs of a case, on inputs drawn from ``seed``: the worst of all verifications of the case."""

    passed: bool
    seed: int
    outputs: dict[str, OutputError]

    @property
    def complaint(self) -> str:
        """What is wrong with the outputs that do not pass; empty if all do."""
        return "; ".join(
            f"{name}: max abs error {error.max_abs:.3g}, relative L2 {error.relative_l2:.3g}, "
            f"tolerance {error.tolerance}" + (f" ({error.detail})" if error.detail else "")
            for name, error in self.outputs.items()
            if not error.passed
        )

    @property
    def worst(self) -> float:
        """The largest relative L2 error over the outputs."""
        return max((o.relative_l2 for o in self.outputs.values()), default=0.0)


class MetricValue(_Model):
    """The problem's metric for this case, with the interval that the timing's interval gives."""

    tag: str
    unit: str
    direction: Literal["higher", "lower"]
    value: float
    low: float
    high: float


class Bound(_Model):
    """A lower bound on time and how much of it the case reaches (1.0 = at the bound).

    ``terms`` holds the seconds that each resource alone would need, by the name of its ceiling (``dram`` for memory);
    ``binding`` names the largest.
    """

    seconds: float
    binding: str
    terms: dict[str, float]
    share: Interval
    stale: bool = False


class Failure(_Model):
    """Why a case has no result: one line for tables, a log for its author, the command that runs it again."""

    reason: str
    log: str = ""


class Record(_Model):
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
