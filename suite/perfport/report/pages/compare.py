"""The view of `perfport compare`: ratio with interval and verdict for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...judge.compare import Kind, Pair
from ...model.arithmetic import geometric_mean
from ...model.names import seeds
from ...model.record import Record
from ...store.ratios import is_measured, time_of
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.quantities import seconds, significant
from ..parts.summary import ratio
from ..parts.view import View


def view(kind: Kind, a: str, b: str, pairs: Sequence[Pair]) -> View:
    """Return the comparison: how many cases came out how, then every case, slower ones first."""
    ordered = sorted(pairs, key=lambda pair: (not pair.wrong, not pair.lost, not pair.slower, pair.name))
    counts = Counter(outcome(pair) for pair in pairs)
    title = f"Comparison of two {kind}"
    head = (
        f"A: {code(a)}, B: {code(b)}. " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) + "."
    )
    listed = [
        [code(middle(pair.name, 110)), _time(pair.a), _time(pair.b), ratio(pair.comparison), outcome(pair)]
        for pair in ordered
    ]
    note = "Ratio: how many times faster B is, with its 95 % interval (measured)."
    headers = ["case", "A", "B", "B over A", "outcome"]
    parts = [f"# {title}", head, _means(pairs), table(headers, listed, "lrrrl"), note]
    return View(title, join(parts), _rows(ordered))


def _means(pairs: Sequence[Pair]) -> str:
    """Return the geometric means of the ratios: of equal tunables, and of those that each device has for itself."""
    told = []
    for own, what in ((False, ""), (True, " with tunables that each device has for itself")):
        ratios = [pair.comparison.ratio.value for pair in pairs if pair.comparison and pair.own == own]
        if len(ratios) > 1:
            told.append(f"{significant(geometric_mean(ratios), 4)} over {len(ratios)} pairs{what}")
    return f"Geometric mean of B over A: {'; '.join(told)}." if told else ""


def outcome(pair: Pair) -> str:
    """Return what became of a case, from the second side's point of view."""
    if pair.wrong or pair.lost:
        return pair.b.status.value if pair.b else "missing in B"
    if pair.comparison:
        return pair.comparison.verdict.value
    if pair.a is None:
        return "new in B"
    if pair.b is None or not is_measured(pair.b):
        return pair.b.status.value if pair.b else "not in B"
    if not is_measured(pair.a):
        return "no result in A"
    if pair.a.inputs != pair.b.inputs:
        return f"other inputs: {seeds(pair.a.inputs)}; {seeds(pair.b.inputs)}"
    return "no clock in common"


def _time(record: Record | None) -> str:
    if record is None:
        return NONE
    return seconds(time_of(record)) if is_measured(record) else text(record.status.value)


def _rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    listed = []
    for pair in pairs:
        row: dict[str, Any] = {"case": pair.name, "outcome": outcome(pair), "own tunables": pair.own}
        for side, record in (("A", pair.a), ("B", pair.b)):
            row[f"{side} status"] = record.status.value if record else None
            row[f"{side} seconds"] = time_of(record) if record and is_measured(record) else None
            row[f"{side} record"] = record.key if record else None
        ratio = pair.comparison.ratio if pair.comparison else None
        row |= {"ratio": ratio.value if ratio else None, "low": ratio.low if ratio else None}
        listed.append(row | {"high": ratio.high if ratio else None})
    return listed
