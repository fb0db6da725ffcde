"""Ladders and their cases as the page of a suite gets them: numbers, and why they are so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...judge.explain import Explanation, Gain, explain
from ...measure.intervals import Ratio
from ...model.names import seeds
from ...model.record import Bound, Interval, Summary
from ...store.comparable import is_peer
from ...store.ratios import Comparison, is_measured
from ..parts.explained import advice, own_marks
from ..parts.failures import reason
from ..parts.labels import label
from ..parts.ladder import Ladder, Row
from ..parts.marks import ABOVE, marks
from ..parts.matrix import Versus, without_peer
from ..parts.roofs import Roofs, measured_roofs, nominal_roofs, placed

#: Samples of a case that the page draws: of more, so many quantiles stand for them.
MOST_SAMPLES = 40


def ladder(of: Ladder, run: int, column: int) -> dict[str, Any]:
    """Return a ladder: where and what, its roofs, its cases.

    Parameters
    ----------
    of : Ladder
    run : int
        Number of its run among those of the page.
    column : int
        Number of its column of the matrix, -1 where it belongs to none.
    """
    roofs, at = _roofs(of)
    metric = next((row.record.metric for row in of.measured if row.record.metric), None)
    held = {
        "workload": of.workload, "problem": of.problem, "precision": of.precision, "preset": of.preset or "",
        "setting": of.setting, "parameters": of.parameters, "site": of.site, "host": of.where.host.name(),
        "chip": of.where.chip, "devices": of.where.count, "column": column, "run": run,
        "unit": metric.unit if metric else "", "direction": metric.direction if metric else "lower",
        "inputs": seeds(of.measured[0].record.inputs) if of.measured else "", "roofs": roofs,
        "cases": [_case(of, row, at.get(id(row))) for row in of.rows],
    }  # fmt: skip
    if of.best:
        above = ABOVE if _stale(of.best.record.problem_bound) else ""
        held["best"], held["marks"] = of.rows.index(of.best), (own_marks(of, of.best) + above).replace(" ", "")
    if of.best_peer:
        held["peer"], held["versus"] = of.rows.index(of.best_peer), _comparison(of.peer_comparison)
        held["wall"] = bool(of.peer_comparison and of.peer_comparison.mixed)
    if not of.peer_comparison:
        held["peerless"] = without_peer(of)
    return held


def less_precise(versus: Versus) -> dict[str, Any]:
    """Return a library of another precision class that stands for those of a ladder, of which none ran."""
    peer, compared = versus.peer, versus.compared
    return {
        "label": peer.label, "precision": versus.precision, "versus": _comparison(compared), "wall": compared.mixed,
        "marks": marks(peer).replace(" ", ""),
    }  # fmt: skip


def _case(of: Ladder, row: Row, at: Mapping[str, float] | None) -> dict[str, Any]:
    record, identity = row.record, row.record.identity
    held: dict[str, Any] = {
        "key": record.key, "variant": identity.variant, "label": row.label, "role": identity.role,
        "rung": identity.rung, "status": record.status.value,
    }  # fmt: skip
    if identity.tunables:
        held["tunables"] = identity.tunables
    if identity.profile:
        held["profile"] = identity.profile
    if check := record.verification:
        checked = sum(out.checked for out in check.outputs.values())
        held["verified"] = [check.passed, _short(check.worst), checked, sum(o.total for o in check.outputs.values())]
    if not is_measured(record) or record.timing is None:
        return held | {"reason": reason(record)[:300]}
    timing = record.timing
    summary, samples = timing.summary[timing.rank], getattr(timing, timing.rank)
    held |= {
        "time": _interval(timing.ranked), "n": summary.n, "clock": timing.rank, "cache": timing.cache,
        "launches": timing.launches, "kernels": list(timing.kernels),
        "samples": _quantiles(samples), "at": at, "noise": _noise(summary),
        "marks": (marks(row) + (ABOVE if _stale(record.problem_bound) else "")).replace(" ", ""),
        "metric": _short(record.metric.value) if record.metric else None,
        "share": _interval(record.problem_bound.share) if record.problem_bound else None,
        "first": _comparison(of.over_first(row)), "previous": _comparison(of.over_previous(row)),
        "over": _comparison(of.best_over(row)) if is_peer(row) and of.best else None,
        **_why(explain(row)),
    }  # fmt: skip
    return {name: value for name, value in held.items() if value not in (None, "", [], {})}


def _why(found: Explanation) -> dict[str, Any]:
    """What binds a case, what could be gained, and what to do next."""
    return {
        "binds": [[label(term.name), _short(term.share)] for term in found.terms[:4]],
        "approach": _gain(found.present), "perfect": _gain(found.perfect),
        "launched": _short(found.launches.share) if found.notable_launches and found.launches else None,
        "next": advice(found),
    }  # fmt: skip


def _gain(gain: Gain | None) -> list[Any] | None:
    return [_short(gain.factor.value), label(gain.by), _short(gain.seconds)] if gain else None


def _stale(bound: Bound | None) -> bool:
    return bool(bound and bound.stale)


def _comparison(found: Comparison | None) -> list[Any] | None:
    return [*_interval(found.ratio), found.verdict.value] if found else None


def _interval(of: Interval | Ratio) -> list[float]:
    return [_short(of.value), _short(of.low), _short(of.high)]


def _noise(summary: Summary) -> float:
    return _short(summary.half_width)


def _short(value: float) -> float:
    """A number with seven significant digits: the page shows four, and fewer here would round those another way."""
    return float(f"{value:.7g}")


def _quantiles(samples: Sequence[float]) -> list[float]:
    """Return the samples in order of size; of more than `MOST_SAMPLES` as many of them, evenly from least to most."""
    ordered = sorted(samples)
    most = min(len(ordered), MOST_SAMPLES)
    return [_short(ordered[i * (len(ordered) - 1) // max(most - 1, 1)]) for i in range(most)]


def _roofs(of: Ladder) -> tuple[dict[str, Any] | None, dict[int, dict[str, float]]]:
    """Return the roofs of a ladder, and by row the operations per byte at which it stands under each of them."""
    work = next((row.record.work for row in of.measured if row.record.work), None)
    if work is None or not (work.flops or work.integer_ops) or not work.bytes or of.several:
        return None, {}
    measured = measured_roofs(of, of.measured, work)
    if not (measured.slopes or measured.flats):
        return None, {}
    points = {id(row): placed(row, of, work, measured.slopes).intensities for row in of.measured}
    held = {
        "unit": "FLOP" if work.flops else "OP", "operations": work.flops or work.integer_ops,
        "intensity": _short(work.intensity), **_lines(measured), "nominal": _lines(nominal_roofs(of, work)),
    }  # fmt: skip
    return held, {row: {label(term): _short(at) for term, at in terms.items()} for row, terms in points.items()}


def _lines(roofs: Roofs) -> dict[str, Any]:
    return {
        "slopes": {label(name): _short(value) for name, value in roofs.slopes.items()},
        "flats": {label(name): _short(value) for name, value in roofs.flats.items()},
    }  # fmt: skip
