"""Comparable cases: which are ranked together, which is the fastest, and how many times faster one is than another.

Tables, data frames, claims and metrics all ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from ..model.names import order, place
from ..model.record import Record
from .case import Case, Site, Subject
from .crossfit import compare_best
from .ratios import Clock, Comparison, common_clock, compare, is_measured, is_ranked, time_of

C = TypeVar("C", bound=Case)


def fastest(cases: Iterable[C]) -> C | None:
    """Return the fastest of the cases that may be ranked, ``None`` where there is none.

    All are ranked on one clock where they have one in common, else each on its own. Of equal times the first in the
    order of tables counts.
    """
    ranked = [case for case in cases if is_ranked(case.record)]
    clock = common_clock(case.record for case in ranked)
    least = min((time_of(case.record, clock) for case in ranked), default=None)
    equal = [case for case in ranked if time_of(case.record, clock) == least]
    return min(equal, key=lambda case: order(case.record), default=None)


def fastest_first(cases: Sequence[C]) -> list[C]:
    """Return the cases that may be ranked: that of `fastest`, then the others in their order."""
    best = fastest(cases)
    return [best, *(case for case in cases if case is not best and is_ranked(case.record))] if best else []


def leading(cases: Iterable[C]) -> C | None:
    """Return the fastest case that may be ranked, or else the fastest of the contended ones, each on its own clock."""
    measured = [case for case in cases if is_measured(case.record)]
    return min(measured, key=lambda case: (not is_ranked(case.record), time_of(case.record)), default=None)


def is_peer(case: Case) -> bool:
    """Whether the case is a library's or a host's, beside which the variants stand."""
    return case.record.identity.role == "peer"


def is_control(case: Case) -> bool:
    """Whether the case is a control arm: it shows what a technique is worth, and may compute something else by less."""
    return case.record.identity.role == "control"


class Comparable(Generic[C]):
    """Cases of one problem with one setting, inputs, precision class and site: those that are ranked together.

    Speed-ups refer to rungs; each rung is represented by its fastest case (`leading`).

    Attributes
    ----------
    rows : list of Case
        In the order of tables: by role, rung and name. At least one.
    """

    def __init__(self, cases: Iterable[C]) -> None:
        self.rows = sorted(cases, key=lambda case: order(case.record))
        self._compared: dict[tuple[int, int], Comparison | None] = {}

    @property
    def subject(self) -> Subject:
        """What is solved."""
        return self.rows[0].subject

    @property
    def where(self) -> Site:
        """Where it is solved."""
        return self.rows[0].site

    @property
    def several(self) -> bool:
        """Whether more devices took part than have ids: bounds and other variants' times are of one."""
        return self.where.several

    @cached_property
    def measured(self) -> list[C]:
        """Cases with timings that may be shown as results."""
        return [row for row in self.rows if is_measured(row.record)]

    @cached_property
    def variants(self) -> list[C]:
        """Measured cases but for peers."""
        return [row for row in self.measured if not is_peer(row)]

    @cached_property
    def contenders(self) -> list[C]:
        """Measured variants but for control arms: of these one is the best."""
        return [row for row in self.variants if not is_control(row)]

    @cached_property
    def peers(self) -> list[C]:
        """Measured cases of peers."""
        return [row for row in self.measured if is_peer(row)]

    @cached_property
    def clock(self) -> Clock | None:
        """The clock on which all ranked variants (peers aside) can be compared; ``None``: each by its own."""
        return common_clock(row.record for row in self.variants if is_ranked(row.record))

    @cached_property
    def best(self) -> C | None:
        """The fastest variant that is ``ok``; peers, control arms, ``wrong`` and ``contended`` ones do not count."""
        return fastest(self.contenders)

    @cached_property
    def best_peer(self) -> C | None:
        """The fastest peer that is ``ok``."""
        return fastest(self.peers)

    @cached_property
    def peer_comparison(self) -> Comparison | None:
        """How many times faster the best variant is than the best peer, neither chosen by the samples compared."""
        return self._best_over([peer.record for peer in self.peers if is_ranked(peer.record)])

    def best_over(self, base: C) -> Comparison | None:
        """How many times faster the best variant is than a case, chosen by other samples than those compared."""
        return self._best_over([base.record]) if is_ranked(base.record) else None

    def _best_over(self, bases: list[Record]) -> Comparison | None:
        ranked = [row.record for row in self.contenders if is_ranked(row.record)]
        return compare_best(bases, ranked) if bases and ranked else None

    @cached_property
    def _rungs(self) -> dict[int, C]:
        """The case that represents each rung that has a result."""
        rungs: dict[int, list[C]] = {}
        for row in self.measured:
            if row.record.identity.role == "rung":
                rungs.setdefault(row.record.identity.rung, []).append(row)
        return {rung: best for rung, cases in sorted(rungs.items()) if (best := leading(cases))}

    @property
    def first_rung(self) -> C | None:
        """The case that speed-ups refer to: of the lowest rung that has a result."""
        return next(iter(self._rungs.values()), None)

    @property
    def missing_first(self) -> C | None:
        """The lowest rung's case where that rung has no result, so that speed-ups refer to a later rung."""
        lowest, base = self.rows[0], self.first_rung  # rungs come first, where there are any
        return lowest if base and _rung(lowest) < _rung(base) else None

    def over_first(self, row: C) -> Comparison | None:
        """Speed-up over the first rung, ``None`` for that rung itself and for peers; of the best `best_over`."""
        base = self.first_rung
        if base is None or base is row or is_peer(row):
            return None
        return (self.best_over(base) if row is self.best else None) or self._compare(base, row)

    def over_previous(self, row: C) -> Comparison | None:
        """Speed-up of a rung over the next lower rung that has a result; ``None`` for other roles."""
        if row.record.identity.role != "rung":
            return None
        lower = [base for rung, base in self._rungs.items() if rung < _rung(row)]
        return self._compare(lower[-1], row) if lower else None

    def _compare(self, base: C, row: C) -> Comparison | None:
        key = (id(base), id(row))
        if key not in self._compared:
            self._compared[key] = compare(base.record, row.record)
        return self._compared[key]


def comparable(cases: Iterable[C]) -> list[Comparable[C]]:
    """Return cases by what is ranked together, in the order of tables."""
    groups: dict[tuple[Subject, Site], list[C]] = {}
    for case in cases:
        groups.setdefault((case.subject, case.site), []).append(case)
    return sorted(map(Comparable, groups.values()), key=_order)


def _order(cases: Comparable[Any]) -> tuple[Any, ...]:
    return (*place(cases.rows[0].record.identity), cases.subject.inputs, cases.where)


def _rung(case: Case) -> int:
    return case.record.identity.rung
