"""The claims ledger: what the publications claim, as data, and whether it holds on each device that was measured.

A claim is an entry of a workload's ``claims.yaml``: a statement, its source, what to compare and a threshold. The
evaluator is the same for all; it knows quantities of records, not workloads.

A claim is evaluated for each site and each setting that it selects. With an interval for the number compared:

    holds        the whole interval meets the threshold
    reversed     the whole interval misses it
    cannot tell  the interval holds the threshold, or settings disagree
    not measured a side has no result that may be ranked
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from .collection import Case, Collection, Site, fastest
from .comparison import common_clock, compare, time_of
from .errors import UsageError
from .record import Interval, Record
from .statistics import SAME_WITHIN
from .workload import CLAIMS

Scalar = bool | int | float | str | None  # None: not set


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Range(_Model):
    """Numbers from ``min`` to ``max``, ends included."""

    min: float = -math.inf
    max: float = math.inf

    def holds(self, value: Any) -> bool:
        """Whether a number lies within."""
        return isinstance(value, int | float) and self.min <= value <= self.max


Wanted = Scalar | Range | list[Scalar | Range]


def _matches(wanted: Wanted, value: Any) -> bool:
    if isinstance(wanted, Range):
        return wanted.holds(value)
    if isinstance(wanted, list):
        return any(_matches(one, value) for one in wanted)
    return bool(value == wanted)


class Selector(_Model):
    """Which records stand for one side. Of several that match in one setting, the fastest counts.

    ``parameters`` and ``tunables`` here are this side's own: the other side may differ in them. Where both sides are
    one variant of one profile, its other tunables must be the same. Unless a side names its ``precision``, all must be
    of one class; without ``profile`` only the variants' own parameters count.
    """

    variant: list[str]
    parameters: dict[str, Wanted] = Field(default_factory=dict)
    tunables: dict[str, Wanted] = Field(default_factory=dict)
    profile: str | None = None
    precision: str | None = None

    @field_validator("variant", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @property
    def name(self) -> str:
        """How the side is called in tables."""
        more: Mapping[str, Any] = {**self.parameters, **self.tunables}
        named = [f"{key}={value}" for key, value in more.items() if not isinstance(value, Range)]
        named += [f"profile {self.profile}"] if self.profile else []
        return " or ".join(self.variant) + (f" [{', '.join(named)}]" if named else "")

    def takes(self, record: Record, parameters: Mapping[str, Wanted]) -> bool:
        """Whether a record is meant, given the claim's common parameters."""
        identity = record.identity
        given = ((identity.parameters, {**parameters, **self.parameters}), (identity.tunables, self.tunables))
        return (
            identity.variant in self.variant
            and identity.profile == self.profile
            and self.precision in (None, identity.precision)
            and all(_matches(w, values.get(name)) for values, wanted in given for name, w in wanted.items())
        )


class Claim(_Model):
    """One checkable statement of a publication.

    Attributes
    ----------
    id : str
        Unique within the workload.
    statement, source : str
        What is claimed, in words, and where.
    published : str, optional
        The publication's own number and device.
    compare : str
        ``speedup``: time of the reference over time of the subject.
        ``share``: the subject's share of the problem bound.
        ``overhead``: what the reference takes beyond ``base``, over what the subject takes beyond it.
        ``figure``: a number of the subject's record (``figure``, a dotted path), over ``reference_figure`` of the
        reference where there is one.
        ``kernel_share``: share of the subject's busy time in the kernels named.
    over : str
        Of several settings, ``each`` is judged alone, or the ``mean`` over all of them.
    at_least, at_most : float
        The threshold; both together are a range.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    statement: str
    source: str
    published: str | None = None
    problem: str
    parameters: dict[str, Wanted] = Field(default_factory=dict)
    compare: Literal["speedup", "share", "overhead", "figure", "kernel_share"]
    subject: Selector
    reference: Selector | None = None
    base: Selector | None = None
    figure: str | None = None
    reference_figure: str | None = None
    kernels: list[str] = Field(default_factory=list)
    over: Literal["each", "mean"] = "each"
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _whole(self) -> Claim:
        needs = {
            "speedup": ["reference"], "share": [], "overhead": ["reference", "base"], "figure": ["figure"],
            "kernel_share": ["kernels"],
        }  # fmt: skip
        for name in needs[self.compare]:
            if not getattr(self, name):
                raise ValueError(f"compare: {self.compare} needs {name!r}")
        if self.at_least is None and self.at_most is None:
            raise ValueError("expected 'at_least', 'at_most' or both")
        return self

    @property
    def quantity(self) -> str:
        """What is compared with the threshold, in words."""
        subject, reference = self.subject.name, self.reference.name if self.reference else ""
        if self.compare == "speedup":
            return f"time of {reference} over time of {subject}"
        if self.compare == "share":
            return f"share of the problem bound that {subject} reaches"
        if self.compare == "overhead" and self.base:
            return f"what {reference} takes beyond {self.base.name} over what {subject} takes beyond it"
        if self.compare == "kernel_share":
            return f"share of the busy time of {subject} in {', '.join(self.kernels)}"
        under = " ".join(filter(None, (reference, self.reference_figure)))
        return f"{subject} {self.figure}" + (f" over {under}" if under else "")

    @property
    def threshold(self) -> str:
        """The threshold in words."""
        parts = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        parts += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(parts)


class Verdict(StrEnum):
    """Outcome of a claim on one site."""

    HOLDS = "holds"
    REVERSED = "reversed"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"


class Number(NamedTuple):
    """One of the two numbers of a comparison: what it is, its value and unit (empty for a pure number)."""

    what: str
    value: float
    unit: str = ""


@dataclass(frozen=True)
class Evidence:
    """One setting of a claim on one site: the two numbers, what they amount to, and the records they come from."""

    setting: str
    numbers: tuple[Number, ...]
    found: Interval
    verdict: Verdict
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Judgement:
    """A claim on one site."""

    workload: str
    claim: Claim
    site: Site
    verdict: Verdict
    reason: str
    evidence: tuple[Evidence, ...] = ()


def read(file: Path) -> list[Claim]:
    """Read a file of claims.

    Raises
    ------
    UsageError
        If it is no list of claims; the text names file, entry and key.
    """
    try:
        found = TypeAdapter(list[Claim]).validate_python(yaml.safe_load(file.read_text(encoding="utf-8")) or [])
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"{file}: not a readable YAML file: {error}") from None
    except ValidationError as error:
        first: Any = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = first["ctx"]["error"] if first["type"] == "value_error" else first["msg"]
        raise UsageError(f"{file}: {where}: {what}, got {first['input']!r}") from None
    names = [claim.id for claim in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{file}: two claims have the id {name!r}")
    return found


def ledger(paths: Sequence[Path] = ()) -> dict[str, list[Claim]]:
    """Return the claims by workload: those that ship, and those of further workload folders.

    No workload is imported for it.
    """
    folders = [Path(folder) for folder in import_module("perfport.workloads").__path__]
    found: dict[str, list[Claim]] = {}
    for path in [*folders, *paths]:
        for file in sorted([*path.glob(CLAIMS), *path.glob(f"*/{CLAIMS}")]):
            found[file.parent.name] = read(file)
    return dict(sorted(found.items()))


def evaluate(claims: Mapping[str, Iterable[Claim]], collection: Collection) -> list[Judgement]:
    """Judge every claim at every place of the collection, whatever number of devices took part there."""
    index: dict[tuple[Site, str, str, str], list[Case]] = {}
    for case in collection.cases:
        identity = case.record.identity
        index.setdefault((case.site.alone, identity.workload, identity.problem, identity.variant), []).append(case)
    return [
        _judge(workload, claim, site, index)
        for workload, listed in claims.items()
        for claim in listed
        for site in collection.places
    ]


_Index = Mapping[tuple[Site, str, str, str], list[Case]]


class _Missing(Exception):
    """A side has no result; the text says why."""


def _judge(workload: str, claim: Claim, site: Site, index: _Index) -> Judgement:
    def cases(selector: Selector) -> list[Case]:
        named = [index.get((site, workload, claim.problem, variant), []) for variant in selector.variant]
        return [case for found in named for case in found if selector.takes(case.record, claim.parameters)]

    sides = [side for side in (claim.subject, claim.reference, claim.base) if side]
    own = {name for side in sides for name in side.parameters}
    tunables = {name for side in sides for name in side.tunables}
    one = len(sides) > 1 and len({(*side.variant, side.profile) for side in sides}) == 1
    same = tunables if one else None
    free = any(side.precision for side in sides)
    try:
        settings = [_by_setting(side, cases(side), own, same, free) for side in sides]
        common = [key for key in settings[0] if all(key in other for other in settings[1:])]
        if not common:
            raise _Missing("the sides were measured in no common setting")
        evidence = []
        for key in sorted(common):
            evidence.append(_evidence(claim, key, [setting[key] for setting in settings]))
    except _Missing as missing:
        return Judgement(workload, claim, site, Verdict.NOT_MEASURED, str(missing))
    if claim.over == "mean" and len(evidence) > 1:
        mean = _mean([e.found for e in evidence])
        verdict = _verdict(claim, mean)
        reason = f"mean of {len(evidence)} settings: {_reason(claim, [mean], verdict)}"
        return Judgement(workload, claim, site, verdict, reason, tuple(evidence))
    verdicts = {e.verdict for e in evidence}
    if len(verdicts) == 1:
        (verdict,) = verdicts
        reason = _reason(claim, [e.found for e in evidence], verdict)
    else:
        verdict = Verdict.CANNOT_TELL
        counts = {v: sum(e.verdict == v for e in evidence) for v in Verdict}
        parts = [f"{count} {v.value}" for v, count in counts.items() if count]
        reason = f"settings disagree: {', '.join(parts)} of {len(evidence)}"
    return Judgement(workload, claim, site, verdict, reason, tuple(evidence))


def _mean(found: list[Interval]) -> Interval:
    """Return the arithmetic mean, with the mean of the ends: wider than the 95 % interval of the mean."""
    n = len(found)
    return Interval(
        value=sum(i.value for i in found) / n, low=sum(i.low for i in found) / n, high=sum(i.high for i in found) / n
    )


def _by_setting(side: Selector, cases: list[Case], own: set[str], same: set[str] | None, free: bool) -> dict[str, Case]:
    """Return the fastest ranked case of each setting: parameters that no side has of its own, and precision.

    Where both sides are one variant, ``same`` is a set, and a setting also has the tunables that are not in it.
    ``free``: the sides say of which precision class they are.
    """
    if not cases:
        raise _Missing(f"no record of {side.name}")
    groups: dict[str, list[Case]] = {}
    for case in cases:
        identity = case.record.identity
        shared = {name: value for name, value in identity.parameters.items() if name not in own}
        if same is not None:
            shared |= {name: value for name, value in identity.tunables.items() if name not in same}
        precision = "" if free else identity.precision
        groups.setdefault(json.dumps([shared, precision], sort_keys=True), []).append(case)
    found = {key: best for key, group in groups.items() if (best := fastest(group))}
    if not found:
        record = cases[0].record
        why = record.failure.reason if record.failure else ""
        raise _Missing(f"{side.name} is {record.status.value}" + (f": {why}" if why else ""))
    return found


def _evidence(claim: Claim, key: str, cases: list[Case]) -> Evidence:
    records = [case.record for case in cases]
    found, numbers = _MEASURES[claim.compare](claim, records)
    parameters, _ = json.loads(key)
    setting = ", ".join(f"{name}={value}" for name, value in sorted(parameters.items()))
    return Evidence(setting, numbers, found, _verdict(claim, found), tuple(record.key for record in records))


def _time(record: Record, others: Iterable[Record]) -> Number:
    return Number(record.identity.variant, time_of(record, common_clock([record, *others])), "s")


def _speedup(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    subject, reference = records
    compared = compare(reference, subject)
    if compared is None:
        raise _Missing(f"{subject.identity.variant} and {reference.identity.variant} have no clock in common")
    return compared.ratio, (_time(subject, [reference]), _time(reference, [subject]))


def _share(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    bound = records[0].problem_bound
    if bound is None:
        raise _Missing(f"{records[0].identity.variant} has no problem bound: no ceilings were measured")
    return bound.share, (_time(records[0], []), Number("bound", bound.seconds, "s"))


def _overhead(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    """What the reference adds to the base over what the subject adds; the ends from the ends of the three medians."""
    clock = common_clock(records)
    if clock is None:
        raise _Missing("the sides have no clock in common")
    subject, reference, base = (record.timing.summary[clock] for record in records if record.timing)
    small = (subject.median - base.median, subject.ci_low - base.ci_high, subject.ci_high - base.ci_low)
    large = (reference.median - base.median, reference.ci_low - base.ci_high, reference.ci_high - base.ci_low)
    names = [record.identity.variant for record in records]
    numbers = (Number(f"{names[0]} - {names[2]}", small[0], "s"), Number(f"{names[1]} - {names[2]}", large[0], "s"))
    high = large[2] / small[1] if small[1] > 0 else math.inf
    low = large[1] / small[2] if small[2] > 0 else -math.inf
    return Interval(value=large[0] / small[0] if small[0] else math.inf, low=low, high=high), numbers


def _number(record: Record, path: str) -> float:
    value: Any = record.model_dump()
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Missing(f"{record.identity.variant} has no number {path!r}")
    return float(value)


def _figure(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    assert claim.figure
    value = _number(records[0], claim.figure)
    numbers = [Number(f"{records[0].identity.variant} {claim.figure}", value)]
    if claim.reference_figure or claim.reference:
        other, path = records[-1], claim.reference_figure or claim.figure
        under = _number(other, path)
        numbers.append(Number(f"{other.identity.variant} {path}", under))
        if not under:
            raise _Missing(f"{other.identity.variant}: {path} is 0")
        value /= under
    return Interval(value=value, low=value, high=value), tuple(numbers)


def _kernel_share(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    timing = records[0].timing
    kernels = timing.kernels if timing else {}
    total = sum(kernels.values())
    if not total:
        raise _Missing(f"{records[0].identity.variant} has no time by kernel")
    some = sum(seconds for name, seconds in kernels.items() if name in claim.kernels)
    value = some / total
    numbers = (Number(", ".join(claim.kernels), some, "s"), Number("all kernels", total, "s"))
    return Interval(value=value, low=value, high=value), numbers


_MEASURES = {
    "speedup": _speedup, "share": _share, "overhead": _overhead, "figure": _figure, "kernel_share": _kernel_share,
}  # fmt: skip


def _verdict(claim: Claim, found: Interval) -> Verdict:
    low = -math.inf if claim.at_least is None else claim.at_least
    high = math.inf if claim.at_most is None else claim.at_most
    if low <= found.low and found.high <= high:
        return Verdict.HOLDS
    if found.high < low or found.low > high:
        return Verdict.REVERSED
    return Verdict.CANNOT_TELL


def _reason(claim: Claim, found: Sequence[Interval], verdict: Verdict) -> str:
    """Return why, for settings that all have this verdict."""
    if len(found) == 1:
        number = f"{found[0].value:.3g} ({found[0].low:.3g} to {found[0].high:.3g})"
    else:
        values = sorted(each.value for each in found)
        number = f"{values[0]:.3g} to {values[-1]:.3g} in {len(found)} settings"
    if verdict is Verdict.HOLDS:
        return f"{number}; {claim.threshold} is claimed"
    if verdict is Verdict.CANNOT_TELL:
        return f"{number}: the interval holds the threshold, {claim.threshold}"
    return f"{_miss(claim, found)}{number}; {claim.threshold} is claimed"


def _miss(claim: Claim, found: Sequence[Interval]) -> str:
    """Return how a claimed speed-up is missed: less of it, none, or the opposite."""
    if claim.compare != "speedup" or claim.at_least is None or claim.at_most is not None or claim.at_least < 1:
        return ""
    if all(each.low > 1 for each in found) and any(each.high > 1 + SAME_WITHIN for each in found):
        return "the subject is faster, but by less: "
    if all(each.high < 1 for each in found) and any(each.low < 1 - SAME_WITHIN for each in found):
        return "the subject is slower: "
    same = all(each.low >= 1 - SAME_WITHIN and each.high <= 1 + SAME_WITHIN for each in found)
    return "no difference: " if same else "no clear gain: "
