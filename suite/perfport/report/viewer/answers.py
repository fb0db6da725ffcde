"""What was concluded of a suite, as its page gets it: claims, portability, cross-tuning, ceilings, runs, history."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...judge.claims import Judgement, OpenInterval
from ...judge.crosstuning import Slowdown
from ...judge.portability import Portability
from ...model.record import Interval
from ...nightly.history import History
from ...store.case import Host
from ...store.collection import Collection
from ...store.results import Run
from ...untimed.convergence import ALL, Convergence
from ..parts.labels import label, ordered
from ..parts.ladder import Ladder
from ..parts.tracks import Track, track

#: Series of a history that the page draws, those with the largest change first.
MOST_SERIES = 200
#: Nights of a series that the page has, the latest.
MOST_NIGHTS = 120


def claims(judgements: Sequence[Judgement], collection: Collection) -> list[dict[str, Any]]:
    """Return each claim with its verdict, number and threshold on every device."""
    listed = []
    for (workload, _), same in groupby(judgements, key=lambda each: (each.workload, each.claim.id)):
        held = list(same)
        claim = held[0].claim
        low, high = claim.bounds
        listed.append({
            "workload": workload, "id": claim.id, "problem": claim.problem, "statement": claim.statement,
            "source": claim.source, "published": claim.published or "", "compared": claim.quantity,
            "low": _finite(low), "high": _finite(high), "stated": claim.stated, "threshold": claim.threshold,
            "verdicts": [_verdict(each, collection) for each in held],
        })  # fmt: skip
    return listed


def _verdict(judgement: Judgement, collection: Collection) -> dict[str, Any]:
    evidence = [[each.setting, *_some(each.interval), list(each.keys)] for each in judgement.evidence]
    return {
        "device": collection.label(judgement.site), "chip": judgement.site.chip, "verdict": judgement.verdict.value,
        "reason": judgement.reason, "on": judgement.judged_on, "evidence": evidence,
    }  # fmt: skip


def portability(metrics: Sequence[Portability], collection: Collection) -> list[dict[str, Any]]:
    """Return each application of each problem: its metric, and its efficiency on every platform."""
    return [
        {
            "workload": each.subject.workload, "problem": each.subject.problem, "precision": each.subject.precision,
            "application": each.application, "chips": each.chips,
            "architectural": _interval(each.architectural), "applied": _interval(each.by_application),
            "platforms": [
                [collection.label(e.site), e.status.value, _number(e.architectural.value if e.architectural else None),
                 _number(e.application.value)]
                for e in each.efficiencies
            ],
            "left": [[collection.label(site), why] for site, why in each.left_out.items()],
        }
        for each in metrics
    ]  # fmt: skip


def tuning(tuned: Sequence[Slowdown], collection: Collection) -> list[dict[str, Any]]:
    """Return each slowdown by another device's parameters."""
    return [
        {
            "workload": each.subject.workload, "problem": each.subject.problem, "variant": each.variant,
            "setting": collection.preset(each.subject), "device": collection.label(each.site),
            "profile": each.profile, "status": each.status.value, "slowdown": _interval(each.ratio),
            "key": each.record.key,
        }
        for each in tuned
    ]  # fmt: skip


def ceilings(ladders: Iterable[Ladder]) -> list[dict[str, Any]]:
    """Return what was measured as ceiling of each device, the largest over its runs, with the term's name."""
    largest: dict[str, dict[str, Interval]] = {}
    for ladder in ladders:
        if not ladder.several:
            held = largest.setdefault(ladder.site, {})
            for name, ceiling in ladder.ceilings.items():
                if name not in held or ceiling.value > held[name].value:
                    held[name] = ceiling
    return [
        {"device": site, "entries": [[label(name), name, *_some(held[name])] for name in ordered(held)]}
        for site, held in sorted(largest.items())
        if held
    ]


def runs(collection: Collection) -> list[dict[str, Any]]:
    """Return where each run comes from."""
    return [_run(run) for run in collection.runs]


def _run(run: Run) -> dict[str, Any]:
    environment, host = run.environment, Host.of(run.environment)
    commit, versions = environment.get("commit") or {}, environment.get("versions") or {}
    return {
        "name": run.folder.name, "folder": str(run.folder), "started": str(environment.get("started") or ""),
        "host": f"{host.cpu}, {host.cores} cores, {host.memory} GiB",
        "commit": str(commit.get("hash") or "")[:12] + ("-dirty" if commit.get("dirty") else ""),
        "version": str(versions.get("perfport") or ""), "records": len(run.records),
    }  # fmt: skip


def converged(entries: Iterable[Convergence]) -> list[dict[str, Any]]:
    """Return the share of source lines that every backend compiles, by problem."""
    return [
        {"workload": each.workload, "problem": each.problem, "share": _number(each.share)}
        for each in entries
        if each.problem != ALL and each.variant == ALL
    ]


def history(held: History | None) -> dict[str, Any] | None:
    """Return the series of a history, those of the last night with the largest change first; ``None`` without one."""
    if held is None:
        return None
    last = len(held.nights) - 1
    tracks = [track(held, series) for series in held.series.values()]
    tracks.sort(key=lambda of: (int(of.nights[-1]) != last, _change(of)))
    nights = [[night.started[:16].replace("T", " "), night.commit[:12], night.name] for night in held.nights]
    return {"nights": nights, "of": len(tracks), "series": [_series(each) for each in tracks[:MOST_SERIES]]}


def _change(of: Track) -> float:
    return -abs(math.log(of.change)) if math.isfinite(of.change) and of.change > 0 else 1.0


def _series(of: Track) -> dict[str, Any]:
    place = of.series.place
    columns = {name: _numbers(getattr(of, name)) for name in ("time", "low", "high", "bound")}
    return {
        "name": place.title, "device": place.site, "change": _number(of.change),
        "nights": of.nights[-MOST_NIGHTS:].tolist(), "status": of.status[-MOST_NIGHTS:], **columns,
        "events": [[event.night, event.what] for event in of.events],
    }  # fmt: skip


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(value) for value in values[-MOST_NIGHTS:].tolist()]


def _number(value: float | None) -> float | None:
    """A number with five significant digits, ``None`` where it is none: JSON has no infinity."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _interval(of: Interval | OpenInterval | None) -> list[float | None] | None:
    return _some(of) if of else None


def _some(of: Interval | OpenInterval) -> list[float | None]:
    return [_number(of.value), _number(of.low), _number(of.high)]
