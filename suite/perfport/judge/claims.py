"""The claims ledger: what the publications claim, as data, and whether it holds on each device that was measured.

A claim is an entry of a workload's ``claims.yaml``: a statement, its source, what to compare and a threshold. The
evaluator is the same for all; it knows quantities of records, not workloads.

A claim is evaluated for each site and each setting that it selects. With the 95 % interval of the number compared, the
threshold, and the value that the number has where there is no effect (1 for a speed-up):

    holds        the whole interval meets the threshold
    smaller      it misses the threshold, and lies on the claimed side of no effect
    absent       it misses the threshold, and contains no effect or is within 2 % of it
    opposite     it misses the threshold, and lies on the other side of no effect
    cannot tell  the interval contains the threshold, or settings disagree
    not measured a side has no result that may be ranked

``combined`` says what several settings amount to.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from ..measure.intervals import SAME_WITHIN
from ..model import yamlfile
from ..model.errors import UsageError
from ..model.record import Interval, Record
from ..store.case import Case, Site
from ..store.collection import Collection
from ..store.comparable import fastest
from ..store.ratios import common_clock, compare, time_of
from ..workload.discovery import CLAIMS

Scalar = bool | int | float | str | None  # None: not set


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Range(_Model):
    """Numbers from ``min`` to ``max``, ends included, but for multiples of ``no_multiple_of``."""

    min: float = -math.inf
    max: float = math.inf
    no_multiple_of: int | None = Field(None, ge=2)

    def holds(self, value: Any) -> bool:
        """Whether a number lies within."""
        if not isinstance(value, int | float) or (self.no_multiple_of and value % self.no_multiple_of == 0):
            return False
        return self.min <= value <= self.max


Wanted = Scalar | Range | list[Scalar | Range]


def _matches(wanted: Wanted, value: Any) -> bool:
    if isinstance(wanted, Range):
        return wanted.holds(value)
    if isinstance(wanted, list):
        return any(_matches(one, value) for one in wanted)
    return bool(value == wanted)


class Selector(_Model):
    """Which records stand for one side. Of several that match in one setting, the fastest counts.

    ``instead``: variants that stand for it on a device where ``variant`` has no result; the judgement says so.

    ``parameters`` and ``tunables`` here are this side's own: the other side may differ in them. Where both sides are
    one variant of one profile, its other tunables must be the same. Unless a side names its ``precision``, all must be
    of one class; without ``profile`` only the variants' own parameters count.
    """

    variant: list[str]
    instead: list[str] = Field(default_factory=list)
    parameters: dict[str, Wanted] = Field(default_factory=dict)
    tunables: dict[str, Wanted] = Field(default_factory=dict)
    profile: str | None = None
    precision: str | None = None

    @field_validator("variant", "instead", mode="before")
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

    @property
    def variants(self) -> list[str]:
        """All variants that may stand for this side."""
        return [*self.variant, *self.instead]

    def takes(self, record: Record, parameters: Mapping[str, Wanted]) -> bool:
        """Whether a record of one of the variants is meant, given the claim's common parameters."""
        identity = record.identity
        given = ((identity.parameters, {**parameters, **self.parameters}), (identity.tunables, self.tunables))
        return (
            identity.variant in self.variants
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
        ``figure``: a number of the subject's record (``figure``, a dotted path), less that of ``base`` where there is
        one, over ``reference_figure`` of the reference where there is one.
        ``kernel_share``: share of the subject's busy time in the kernels named; with a reference, the time of these
        kernels in the reference over the subject's time, for a subject whose other kernels are a library's.
    over : str
        Of several settings, ``each`` is judged alone, or the ``mean`` over all of them.
    stated : float, optional
        A gain that the source states, as a ratio: 1.95 for "1.95 times". The threshold is half of the gain.
    at_least, at_most : float
        The threshold; both together are a range, which contains the neutral value.
    no_effect : float, optional
        What the number compared is where there is no effect, see ``neutral``.
    judged_on : str, optional
        What the claim is judged on here where that is of another kind than what the source measured.
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
    stated: float | None = Field(None, gt=1)
    at_least: float | None = None
    at_most: float | None = None
    no_effect: float | None = None
    judged_on: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Claim:
        needs = {
            "speedup": ["reference"], "share": [], "overhead": ["reference", "base"], "figure": ["figure"],
            "kernel_share": ["kernels"],
        }  # fmt: skip
        for name in needs[self.compare]:
            if not getattr(self, name):
                raise ValueError(f"compare: {self.compare} needs {name!r}")
        bounds = (self.at_least, self.at_most)
        if (self.stated is None) == (bounds == (None, None)):
            raise ValueError("expected 'stated', or 'at_least', 'at_most' or both")
        if self.stated is not None and self.compare not in ("speedup", "overhead"):
            raise ValueError("'stated' is a ratio of times, for compare: speedup or overhead")
        low, high = self.bounds
        if low > high:
            raise ValueError("'at_least' is above 'at_most'")
        if None not in bounds and self.neutral is not None and not low <= self.neutral <= high:
            raise ValueError(f"a range from 'at_least' to 'at_most' must contain no effect, {self.neutral:g}")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """From where to where the threshold is met."""
        low = 1 + (self.stated - 1) / 2 if self.stated is not None else self.at_least
        return -math.inf if low is None else low, math.inf if self.at_most is None else self.at_most

    @property
    def neutral(self) -> float | None:
        """What the number compared is where there is no effect; ``None``: the threshold alone parts right from wrong.

        1 for ratios of times and of figures, 0 for a share that is claimed to be high, 1 for one claimed to be low.
        """
        if self.no_effect is not None:
            return self.no_effect
        if self.compare == "share":
            return 0.0 if self.at_least is not None else 1.0
        ratio = self.reference is not None or self.reference_figure is not None
        return 1.0 if self.compare in ("speedup", "overhead") or (self.compare == "figure" and ratio) else None

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
            kernels = ", ".join(self.kernels)
            if reference:
                return f"time of {kernels} (as {reference} takes it) over time of {subject}"
            return f"share of the busy time of {subject} in {kernels}"
        under = " ".join(filter(None, (reference, self.reference_figure)))
        less = f" less that of {self.base.name}" if self.base else ""
        return f"{subject} {self.figure}{less}" + (f" over {under}" if under else "")

    @property
    def threshold(self) -> str:
        """The threshold in words."""
        low, high = self.bounds
        parts = [f"at least {low:.4g}"] if low > -math.inf else []
        parts += [f"at most {high:.4g}"] if high < math.inf else []
        half = f" (half of the gain of {self.stated:.4g})" if self.stated is not None else ""
        return " and ".join(parts) + half


class Verdict(StrEnum):
    """Outcome of a claim on one site."""

    HOLDS = "holds"
    SMALLER = "smaller"
    ABSENT = "absent"
    OPPOSITE = "opposite"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"


#: Verdicts of a threshold that is surely missed.
MISSED = frozenset({Verdict.SMALLER, Verdict.ABSENT, Verdict.OPPOSITE})
#: Verdicts that say how a claim came out.
DECIDED = MISSED | {Verdict.HOLDS}


class OpenInterval(Interval):
    """What is found of a claim, with no end where the data set none; nothing of the kind is stored."""

    model_config = ConfigDict(allow_inf_nan=True)


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
    """A claim on one site. ``stand_in``: the variants that were judged in place of those that the claim names."""

    workload: str
    claim: Claim
    site: Site
    verdict: Verdict
    reason: str
    evidence: tuple[Evidence, ...] = ()
    stand_in: str = ""

    @property
    def judged_on(self) -> str:
        """What the claim was judged on, where that is of another kind than what the source measured."""
        return "; ".join(filter(None, (self.claim.judged_on, self.stand_in)))


def read(file: Path) -> list[Claim]:
    """Read a file of claims.

    Raises
    ------
    UsageError
        If it is no list of claims; the text names file, entry and key.
    """
    content = yamlfile.read(file)
    try:
        found = TypeAdapter(list[Claim]).validate_python(content or [])
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
    """Judge every claim at every place of the collection that ran its workload, with however many devices.

    Of a workload that ran nowhere every place says so.
    """
    index: dict[tuple[Site, str, str, str], list[Case]] = {}
    for case in collection.cases:
        identity = case.record.identity
        index.setdefault((case.site.alone, identity.workload, identity.problem, identity.variant), []).append(case)
    ran = {(site, workload) for site, workload, *_ in index}
    return [
        _judge(workload, claim, site, index)
        for workload, listed in claims.items()
        for claim in listed
        for site in [site for site in collection.places if (site, workload) in ran] or collection.places
    ]


_Index = Mapping[tuple[Site, str, str, str], list[Case]]


class _Missing(Exception):
    """A side has no result; the text says why."""


def _judge(workload: str, claim: Claim, site: Site, index: _Index) -> Judgement:
    stand_ins: list[str] = []

    def cases(selector: Selector) -> list[Case]:
        def of(variants: list[str]) -> list[Case]:
            named = [index.get((site, workload, claim.problem, variant), []) for variant in variants]
            return [case for found in named for case in found if selector.takes(case.record, claim.parameters)]

        found, other = of(selector.variant), of(selector.instead)
        if not found and not other and any((site, workload, claim.problem, v) in index for v in selector.variants):
            raise _Missing(f"no record of {selector.name} in a setting that the claim is about")
        if fastest(found) or not fastest(other):
            return found
        stand_ins.append(f"{' or '.join(selector.instead)} in place of {' or '.join(selector.variant)}")
        return other

    sides = [side for side in (claim.subject, claim.reference, claim.base) if side]
    own = {name for side in sides for name in side.parameters}
    tunables = {name for side in sides for name in side.tunables}
    one = len(sides) > 1 and len({(*side.variants, side.profile) for side in sides}) == 1
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
    found = [each.found for each in evidence]
    mean = claim.over == "mean" and len(found) > 1
    verdict = combined(claim, [_mean(found)] if mean else found)
    reason = _reason(claim, [_mean(found)] if mean else found, verdict)
    if mean:
        reason = f"mean of {len(found)} settings: {reason}"
    return Judgement(workload, claim, site, verdict, reason, tuple(evidence), "; ".join(dict.fromkeys(stand_ins)))


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
    return Evidence(setting, numbers, found, judged(claim, found), tuple(record.key for record in records))


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
    value = large[0] / small[0] if small[0] else math.inf
    if small[1] > 0:
        ends = [one / other for one in large[1:] for other in small[1:]]
        return Interval(value=value, low=min(ends), high=max(ends)), numbers
    low = large[1] / small[2] if large[1] > 0 and small[2] > 0 else -math.inf  # overheads are not negative
    return OpenInterval(value=value, low=low, high=math.inf), numbers


def _number(record: Record, path: str) -> float:
    value: Any = record.model_dump()
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Missing(f"{record.identity.variant} has no number {path!r}")
    return float(value)


def _figure(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    assert claim.figure
    subject = records[0]
    value, what = _number(subject, claim.figure), subject.identity.variant
    if claim.base:
        base = records[-1]
        value, what = value - _number(base, claim.figure), f"{what} - {base.identity.variant}"
    numbers = [Number(f"{what} {claim.figure}", value)]
    if claim.reference_figure or claim.reference:
        other, path = records[1] if claim.reference else subject, claim.reference_figure or claim.figure
        under = _number(other, path)
        numbers.append(Number(f"{other.identity.variant} {path}", under))
        if not under:
            raise _Missing(f"{other.identity.variant}: {path} is 0")
        value /= under
    return Interval(value=value, low=value, high=value), tuple(numbers)


def _kernel_share(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    timing = records[-1].timing  # the reference's, where there is one
    kernels = timing.kernels if timing else {}
    total = sum(kernels.values())
    if not total:
        raise _Missing(f"{records[-1].identity.variant} has no time by kernel")
    some = sum(seconds for name, seconds in kernels.items() if name in claim.kernels)
    named = Number(", ".join(claim.kernels), some, "s")
    if not claim.reference:
        value = some / total
        return Interval(value=value, low=value, high=value), (named, Number("all kernels", total, "s"))
    subject = records[0]
    if common_clock(records) != "span":
        raise _Missing(f"{subject.identity.variant} and {records[-1].identity.variant} have no device times in common")
    assert subject.timing
    whole = subject.timing.summary["span"]
    found = Interval(value=some / whole.median, low=some / whole.ci_high, high=some / whole.ci_low)
    return found, (named, Number(subject.identity.variant, whole.median, "s"))


_MEASURES = {
    "speedup": _speedup, "share": _share, "overhead": _overhead, "figure": _figure, "kernel_share": _kernel_share,
}  # fmt: skip


def judged(claim: Claim, found: Interval) -> Verdict:
    """Return the verdict of one interval."""
    low, high = claim.bounds
    if low <= found.low and found.high <= high:
        return Verdict.HOLDS
    if found.high >= low and found.low <= high:
        return Verdict.CANNOT_TELL
    neutral = claim.neutral
    if neutral is None or low <= neutral <= high:  # no effect would meet the threshold: this is one, the other way
        return Verdict.OPPOSITE
    reach = SAME_WITHIN * abs(neutral)
    same = neutral - reach <= found.low and found.high <= neutral + reach
    if same or found.low <= neutral <= found.high:
        return Verdict.ABSENT
    return Verdict.SMALLER if _there(claim, found) else Verdict.OPPOSITE


def combined(claim: Claim, found: Sequence[Interval]) -> Verdict:
    """Return what the settings of a claim amount to.

    A verdict that all settings have stands. Where all miss the threshold, each in its way, there is no effect that they
    share: ``absent``. Where some miss it and others do not, the effect is ``smaller`` if it is there in all of them.
    Else settings disagree: ``cannot tell``.
    """
    verdicts = [judged(claim, each) for each in found]
    kinds = set(verdicts)
    if len(kinds) == 1:
        return verdicts[0]
    if kinds <= MISSED:
        return Verdict.ABSENT
    unsure = [each for each, verdict in zip(found, verdicts, strict=True) if verdict is Verdict.CANNOT_TELL]
    there = Verdict.SMALLER in kinds and not kinds & {Verdict.ABSENT, Verdict.OPPOSITE}
    return Verdict.SMALLER if there and all(_there(claim, each) for each in unsure) else Verdict.CANNOT_TELL


def _there(claim: Claim, found: Interval) -> bool:
    """Whether an interval lies wholly on the claimed side of no effect."""
    neutral = claim.neutral
    return neutral is not None and (found.low > neutral if claim.bounds[0] > neutral else found.high < neutral)


def _reason(claim: Claim, found: Sequence[Interval], verdict: Verdict) -> str:
    """Return why, in words and numbers."""
    if len(found) == 1:
        number = f"{_short(found[0].value)} ({_short(found[0].low)} to {_short(found[0].high)})"
    else:
        values = sorted(each.value for each in found)
        number = f"{_short(values[0])} to {_short(values[-1])} in {len(found)} settings"
    counts = Counter(judged(claim, each) for each in found)
    differ = ", ".join(f"{counts[v]} {v.value}" for v in Verdict if counts[v]) if len(counts) > 1 else ""
    if verdict is Verdict.CANNOT_TELL and not differ:
        return f"{number}: the interval contains the threshold, {claim.threshold}"
    if verdict is Verdict.CANNOT_TELL:
        return f"settings disagree ({differ}): {number}; {claim.threshold} is claimed"
    what = _SHARED if verdict is Verdict.ABSENT and differ else _MISS.get(verdict, "")
    return f"{what}{number}{f' ({differ})' if differ else ''}; {claim.threshold} is claimed"


_MISS = {
    Verdict.SMALLER: "the effect is smaller than claimed: ",
    Verdict.ABSENT: "no effect: ",
    Verdict.OPPOSITE: "the opposite: ",
}
_SHARED = "no effect that all settings share: "


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
