"""Experiment definitions: YAML in, validated `Experiment` out, errors that name file, key and what is allowed."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from ..measure.sampling import Targets
from ..model import schema
from ..model.errors import UsageError, nearest
from ..model.files import read
from ..model.names import NATIVE
from ..model.published import exhibits_file
from ..model.record import Identity
from ..model.schema import Finite
from .executor import Executor, Names


class Colour(StrEnum):
    """Of a night: no alarm; nothing that can be relied on; an alarm."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


MAX_INSTANCES = 26  # they are named by a letter


class EventColours(Finite):
    """``check.events``: the colour of a night in which a case is slower since an event, by the kind of the event.

    ``red`` and ``yellow`` are the colours of `perfport check`; with ``green`` a slower case is told, and no more.

    Attributes
    ----------
    source : str
        The project changed its own files.
    driver, software, settings : str
        It did not: another driver, other packages or another host, other measurement settings.
    """

    source: Colour = Colour.RED
    driver: Colour = Colour.YELLOW
    software: Colour = Colour.YELLOW
    settings: Colour = Colour.YELLOW


class CaseCheck(Finite):
    """``check`` of an entry: what `perfport check` holds its cases to.

    Attributes
    ----------
    threshold : float
        Change of a case's time, relative, that is too small to matter. A case is slower if it is so by more than this.
    events : EventColours
    """

    threshold: float = Field(0.02, gt=0, lt=10)
    events: EventColours = Field(default_factory=EventColours)


class CheckOptions(CaseCheck):
    """``check`` of an experiment, for all of its entries that do not say otherwise.

    Attributes
    ----------
    min_judged : float
        Share of the cases that must have a verdict; with fewer the night is yellow.
    """

    min_judged: float = Field(0.8, ge=0, le=1)


class Span(Finite):
    """An axis by its ends, both of which are among its values: ``{from: 1000, to: 1_000_000, steps: 10, scale: log}``.

    Attributes
    ----------
    start, to : int or float
        Where both are integers all values are: rounded, and equal ones once. ``start`` is ``from`` in a file.
    steps : int
        How many values.
    scale : str
        ``linear``: equal differences; ``log``: equal ratios.
    """

    start: int | float = Field(alias="from")
    to: int | float
    steps: int = Field(ge=2, le=1000)
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if self.to <= self.start:
            raise ValueError(f"expected 'to' above 'from', got {self.to} and {self.start}")
        if self.scale == "log" and self.start <= 0:
            raise ValueError(f"expected 'from' above 0 on a logarithmic scale, got {self.start}")
        return self

    def values(self) -> list[int] | list[float]:
        """Return the values in ascending order."""
        spread = np.geomspace if self.scale == "log" else np.linspace
        values = spread(self.start, self.to, self.steps)
        if isinstance(self.start, int) and isinstance(self.to, int):
            return [int(value) for value in np.unique(np.rint(values).astype(np.int64))]
        return [float(f"{value:.12g}") for value in values]  # 0.3, not 0.30000000000000004: it names a case


def _spread(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        return Span.model_validate(value).values()
    except ValidationError as error:
        raise ValueError(schema.explain(error, Span)) from None


class TuneOptions(Finite):
    """``tune``: what `perfport tune` searches for.

    Attributes
    ----------
    variants : list of str, optional
        Of those that the entries have; default: every one with tunables that is no peer.
    objective : str
        ``mean``: the weighted geometric mean, over the presets, of the time over the best known at that preset;
        ``worst``: the largest of these.
    presets : dict of str to float, optional
        Weight of each preset; default: the presets of the entries, or the headline size, with equal weights.
    budget : float
        Seconds of searching on each device; measuring the best again is not part of it.
    seed : int
        Of the search.
    """

    variants: Names | None = None
    objective: Literal["mean", "worst"] = "mean"
    presets: Annotated[dict[str, Annotated[float, Field(gt=0, lt=1e6)]], Field(min_length=1)] | None = None
    budget: float = Field(600.0, gt=0, lt=1e7)
    seed: int = Field(1, ge=0, lt=2**31)


class Study(Finite):
    """One entry of ``experiments``: a problem of a workload, and the axes of its matrix.

    Attributes
    ----------
    workload, problem : str
    presets : list of str
        Parameter sets of the problem by name.
    parameters : dict
        Explicit parameters, over those of the preset; a list of values is an axis, and so is a `Span`.
    variants : list of str, optional
        Default: all, peers included.
    profiles : list of str, optional
        ``native`` (the code's own defaults) or device profiles whose tuning parameters are compiled in. Default: the
        device's defaults, which are those of the profile that names it where it was tuned, and else the code's.
    tunables : dict
        Values by tunable name; each is an axis for the variants that have it.
    devices : list of str, optional
        Selectors; only on those of the experiment's devices that one of them names. Default: on all.
    instances : int, optional
        As of the experiment, for this entry alone.
    count : bool, optional
        As of the experiment, for this entry alone.
    """

    workload: str
    problem: str
    presets: Names | None = None
    parameters: dict[str, Annotated[Any, BeforeValidator(_spread)]] = Field(default_factory=dict)
    variants: Names | None = None
    profiles: Names | None = None
    tunables: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    devices: Names | None = None
    measurement: dict[str, Any] = Field(default_factory=dict)
    timeout: float | None = Field(None, gt=0)
    instances: int | None = Field(None, ge=1, le=MAX_INSTANCES)
    count: bool | None = None
    check: CaseCheck | None = None

    def holds(self, identity: Identity) -> bool:
        """Whether a case of this identity is one of the entry's."""
        chosen = (
            (self.presets, identity.preset), (self.variants, identity.variant),
            (self.profiles or [NATIVE], identity.profile or NATIVE),
        )  # fmt: skip
        axes = [(value if isinstance(value, list) else [value], name) for name, value in self.parameters.items()]
        return (
            (self.workload, self.problem) == (identity.workload, identity.problem)
            and all(names is None or name in names for names, name in chosen)
            and all(identity.parameters.get(name) in values for values, name in axes)
            and all(
                identity.tunables[name] in values for name, values in self.tunables.items() if name in identity.tunables
            )
        )


class ReportOptions(Finite):
    """``report``: the markdown file for the report, below the current folder; ``path: null`` writes none.

    ``follows`` names the workload whose publication the report follows, table by table and figure by figure.
    """

    path: str | None = None
    follows: str | None = None

    @field_validator("follows")
    @classmethod
    def _there(cls, follows: str | None) -> str | None:
        if follows is not None:
            try:
                exhibits_file(follows)
            except UsageError as error:
                raise ValueError(str(error)) from None
        return follows

    @field_validator("path")
    @classmethod
    def _below(cls, path: str | None) -> str | None:
        given = PurePosixPath(path or "report.md")
        if given.is_absolute() or ".." in given.parts or given.suffix != ".md" or not str(given).isprintable():
            raise ValueError("expected a markdown file below the current folder, as in 'reports/name.md'")
        return path


class Experiment(Finite):
    """An experiment file.

    Attributes
    ----------
    devices : list of str
        Selectors: ``all``, ``cpu``, ``gpu``, a backend, a platform's short name or a device id.
    executor : Executor
        Where the cases run.
    measurement : Targets
        Measurement targets; a study may override single keys.
    workers : int
        Fresh workers, one after the other, that measure each case; the targets hold for each of them.
    timeout : float
        Seconds that one step of a case (compile, verify, one sample) may take.
    seed : int
        Of the inputs that are timed. They stay the same from run to run: times of other inputs are other quantities.
        Verification draws inputs of its own, anew every time.
    instances : int
        How many instances of the inputs are timed where the data decide the time (`perfport.workload.Problem`).
    count : bool
        Count each case, too, after all are timed: in untimed executions, by the profiler of the device's vendor.
    check : CheckOptions
        For `perfport check`; an entry may have its own.
    tune : TuneOptions
        For `perfport tune`.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    title: str = ""
    devices: Names = Field(default_factory=lambda: ["all"])
    executor: Executor = Field(default_factory=Executor)
    measurement: Targets = Field(default_factory=Targets)
    workers: int = Field(1, ge=1, le=100)
    timeout: float = Field(120.0, gt=0)
    seed: int = Field(1, ge=0, lt=2**31)
    instances: int = Field(3, ge=1, le=MAX_INSTANCES)
    count: bool = False
    experiments: Annotated[list[Study], Field(min_length=1)]
    report: ReportOptions = Field(default_factory=ReportOptions)
    check: CheckOptions = Field(default_factory=CheckOptions)
    tune: TuneOptions = Field(default_factory=TuneOptions)

    @model_validator(mode="after")
    def _counted_here(self) -> Self:
        if self.counting and self.executor.kind != "local":
            raise ValueError(
                "'count' belongs to 'executor: {kind: local}'; on a cluster, use 'perfport count' on a node"
            )
        return self

    @property
    def counting(self) -> bool:
        """Whether any of its cases is to be counted."""
        return any(map(self._counts, self.experiments))

    def counts(self, identity: Identity) -> bool:
        """Whether a case of this identity is to be counted: one of the entries that hold it says so."""
        return any(self._counts(study) for study in self.experiments if study.holds(identity))

    def _counts(self, study: Study) -> bool:
        return self.count if study.count is None else study.count

    def study(self, identity: Identity) -> Study | None:
        """Return the first entry that holds a case of this identity."""
        return next((study for study in self.experiments if study.holds(identity)), None)

    def checked(self, identity: Identity) -> CaseCheck:
        """Return what a case of this identity is held to: what its entry says, before what the experiment says."""
        study = self.study(identity)
        own = study.check if study else None
        return self.check.model_copy(update={name: getattr(own, name) for name in own.model_fields_set} if own else {})


def find(name: str | Path) -> Path:
    """Return the file of an experiment: a path, or the name of one that ships with the suite.

    Raises
    ------
    UsageError
        If there is neither.
    """
    path = Path(name)
    if path.exists():
        return path
    shipped = {file.name[:-5]: file for file in files("perfport.experiments").iterdir() if file.name.endswith(".yaml")}
    if str(name) in shipped:
        return Path(str(shipped[str(name)]))
    raise UsageError(
        f"{name}: no such file, nor an experiment that ships with perfport{nearest(str(name), shipped)}; "
        f"those are: {', '.join(sorted(shipped))}"
    )


def load(path: Path) -> Experiment:
    """Read and validate an experiment file.

    Raises
    ------
    UsageError
        Naming file, key path, what is allowed and the nearest valid name.
    """
    return schema.validate(Experiment, schema.read(path), str(path))


def digest(path: Path) -> str:
    """SHA-256 of the file, kept with the results."""
    return hashlib.sha256(read(path)).hexdigest()
