"""Why a case is not faster: what binds it, and what a perfect kernel and the present approach could gain at most.

Everything follows from what the record holds. The *variant bound* says what binds the work that the variant causes, and
so how far the present approach can go; the *problem bound* is what a perfect kernel would need, whatever its approach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..measure.roofline import impossible
from ..model.record import Bound, Interval, Record, Status
from ..store.case import Case
from ..store.comparable import Comparable, leading
from ..store.ratios import is_measured, time_of

#: Launches are said from this share of the time on: below, they explain nothing.
NOTABLE = 0.05
#: Where the largest term of a variant bound is below this share of the time, no ceiling explains the time by itself.
EXPLAINED = 0.5
#: Terms of a bound that are a chain of dependent steps, and no amount of work: what they bind is bound by latency.
LATENCY = ("steps", "grid_barrier", "launch_latency")

C = TypeVar("C", bound=Case)
G = TypeVar("G", bound=Comparable[Any])


@dataclass(frozen=True)
class Term:
    """What one ceiling alone needs for the work of a case, in seconds, and as a share of its measured time."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Gain:
    """What lies between a measured time and a bound.

    Attributes
    ----------
    by : str
        The term that binds.
    seconds : float
        The bound.
    factor : Interval
        How many times the bound the time is: the inverse of the share, with the ends of its interval.
    saved : float
        Seconds of one execution beyond the bound, 0 where the time is below it.
    impossible : bool
        Whether the time is below the bound by more than any interval allows: the bound is wrong.
    """

    by: str
    seconds: float
    factor: Interval
    saved: float
    impossible: bool

    @classmethod
    def of(cls, bound: Bound | None, time: float) -> Gain | None:
        """Return what a bound leaves to gain; ``None`` without a bound, or where its share can be zero."""
        if bound is None or min(bound.share.low, bound.share.value) <= 0:
            return None
        share = bound.share
        factor = Interval(value=1 / share.value, low=1 / share.high, high=1 / share.low)
        return cls(bound.binding, bound.seconds, factor, max(0.0, time - bound.seconds), impossible(bound))

    @property
    def latency(self) -> bool:
        """Whether a chain of dependent steps binds."""
        return self.by in LATENCY

    @property
    def nothing(self) -> bool:
        """Whether the time is at the bound already, or below it within its uncertainty."""
        return self.factor.value <= 1


@dataclass(frozen=True)
class Explanation:
    """What a record says of why its time is not less.

    Attributes
    ----------
    time : float or None
        Seconds of one execution; ``None`` without a result.
    terms : tuple of Term
        Those of the variant bound, the binding one first; empty without such a bound.
    present, perfect : Gain or None
        What this approach could gain (variant bound), and what a perfect kernel could (problem bound).
    launches : Term or None
        The launches of one execution, each taken to last as long as an empty one; ``None`` where it is not known.
    unknown : tuple of str
        Why what is missing is missing.
    """

    time: float | None
    terms: tuple[Term, ...] = ()
    present: Gain | None = None
    perfect: Gain | None = None
    launches: Term | None = None
    unknown: tuple[str, ...] = ()

    @property
    def notable_launches(self) -> Term | None:
        """The launches where they are a notable part of the time."""
        return self.launches if self.launches and self.launches.share >= NOTABLE else None

    @property
    def unexplained(self) -> bool:
        """Whether no ceiling explains the time: the largest term is far below it."""
        return bool(self.terms) and self.terms[0].share < EXPLAINED


def explain(case: Case) -> Explanation:
    """Return what a case's record says of its time."""
    return explain_record(case.record, case.site.several)


def explain_record(record: Record, several: bool = False) -> Explanation:
    """Return what a record says of its time; bounds are of one device, so cases of ``several`` have none."""
    if not is_measured(record):
        return Explanation(None, unknown=(_without_result(record),))
    time = time_of(record)
    bound = None if several else record.variant_bound
    terms = sorted(bound.terms.items(), key=lambda term: (term[0] != bound.binding, -term[1], term[0])) if bound else []
    return Explanation(
        time, tuple(Term(name, seconds, seconds / time) for name, seconds in terms if time),
        Gain.of(bound, time), None if several else Gain.of(record.problem_bound, time),
        _launches(record, time), tuple(_missing(record, several)),
    )  # fmt: skip


def _without_result(record: Record) -> str:
    if record.status is Status.IMPOSSIBLE:
        return "impossible: faster than its problem bound allows, so the declared work, the clock or a ceiling is wrong"
    reason = f" ({record.failure.reason})" if record.failure and record.failure.reason else ""
    return f"{record.status.value}{reason}: there is no time to explain"


def _launches(record: Record, time: float) -> Term | None:
    """The least time that the record's launches take: each as long as an empty kernel of many that are queued."""
    latency = record.ceilings.get("launch_latency")
    number = record.timing.launches if record.timing else 0
    if latency is None or not number or not time:
        return None
    seconds = number * latency.value
    return Term("launch_latency", seconds, seconds / time)


def _missing(record: Record, several: bool) -> Iterable[str]:
    if several:
        yield "several devices took part, and bounds are made of the ceilings of one"
        return
    if not record.ceilings:
        yield "no ceilings were measured on this device, so there are no bounds"
        return
    if record.problem_bound is None:
        yield "no measured ceiling applies to the problem, so what a perfect kernel would gain is not known"
    if record.traffic is None:
        yield "the variant does not state what traffic it causes, so what binds it is not known"
    elif record.variant_bound is None:
        yield "no measured ceiling applies to the variant's traffic, so what binds it is not known"


def leader(group: Comparable[C]) -> C | None:
    """Return the best own variant of a group, or the fastest contended one where none may be ranked."""
    return group.best or leading(group.contenders)


def where_work_pays(groups: Iterable[G]) -> list[tuple[G, Explanation]]:
    """Return groups by how many times its problem bound the time of their `leader` is, the most first.

    Those without a problem bound come last, in the order given; those without any result are left out.
    """
    found = [(group, explain(case)) for group in groups if (case := leader(group)) is not None]
    return sorted(found, key=lambda pair: -pair[1].perfect.factor.value if pair[1].perfect else 0.0)


def find_case(cases: Iterable[C], name: str) -> list[C]:
    """Return the cases that are meant: by a record's key, by its beginning, or by ``workload/problem/variant``."""
    cases = list(cases)
    exact = [case for case in cases if case.record.key == name]
    if exact:
        return exact
    named = [case for case in cases if "/".join(case.names[:3]) == name]
    return named or [case for case in cases if name and case.record.key.startswith(name)]
