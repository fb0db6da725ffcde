"""All that the page of a suite knows, as one JSON text: no other part of the page depends on the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...judge.explain import where_work_pays
from ...judge.predict import Prediction
from ...model.names import settings
from ...model.untrusted import printable
from ...nightly.history import History
from ...store.collection import Collection
from ...store.ratios import is_measured
from ..parts.labels import label
from ..parts.ladder import Ladder
from ..parts.material import Material, by_size
from ..parts.matrix import Column, Line, columns, lines
from . import answers
from .ladders import ladder, less_precise
from .modelled import modelled
from .sources import sources

#: Cases that the page holds: of more, those of the headline sizes, and then of the largest settings of each problem.
MOST_CASES = 4000


def content(
    material: Material,
    title: str,
    history: History | None = None,
    predicted: Sequence[Sequence[Sequence[Prediction]]] = (),
) -> dict[str, Any]:
    """Return the data of the page.

    Parameters
    ----------
    material : Material
    title : str
    history : History, optional
        Nights, for what changed since the last one.
    predicted : sequence, optional
        From `parts.modelled.settings_by_device`.
    """
    collection, listed = material.collection, lines(material)
    heads, held = columns(listed), _held(material)
    numbers = {id(each): number for number, each in enumerate(held)}
    runs = {id(run): number for number, run in enumerate(collection.runs)}
    places = {column: number for number, column in enumerate(heads)}
    published = sorted({device for line in listed for device in line.published})
    return {
        "title": title, "cases": len(collection.cases), "devices": len(collection.places),
        "measured": sum(is_measured(case.record) for case in collection.cases),
        "leftOut": len(collection.cases) - sum(len(each.rows) for each in held),
        "columns": [{"chip": c.chip, "platform": c.platform, "cpu": c.cpu} for c in heads], "archival": published,
        "workloads": {of.workload: str(of.about.get("title") or of.workload) for of in material.ladders},
        "rows": [_row(line, heads, numbers, material) for line in listed],
        "ladders": [ladder(each, runs[id(each.run)], places.get(Column.of(each.where), -1)) for each in held],
        "pays": _pays(material, numbers),
        "claims": answers.claims(material.judgements, collection),
        "portability": answers.portability(material.metrics, collection),
        "tuning": answers.tuning(material.tuned, collection),
        "modelled": [modelled(columns) for columns in predicted],
        "ceilings": answers.ceilings(material.ladders), "runs": answers.runs(collection),
        "history": answers.history(history),
        "converged": answers.converged(material.converged), "sources": sources(held), "failures": _failures(collection),
    }  # fmt: skip


def as_json(data: dict[str, Any]) -> str:
    """Return data as JSON that may stand in HTML: it closes no element, and holds what can be shown alone."""
    parts = (f"{_dumped(name)}:{_listed(value)}" for name, value in data.items())
    return f"{{{','.join(parts)}}}".replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _listed(value: Any) -> str:
    """Lists are dumped an entry at a time: what is shown is a copy, and of many results each copy counts."""
    return f"[{','.join(map(_dumped, value))}]" if isinstance(value, list) else _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(_shown(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(name): _shown(entry) for name, entry in value.items()}
    return [_shown(entry) for entry in value] if isinstance(value, list | tuple) else value


def _held(material: Material) -> list[Ladder]:
    """Return the ladders of the page in the order of tables."""
    kept: list[Ladder] = []
    cases = 0
    for each in [*material.first, *by_size(each for each in material.ladders if each not in material.first)]:
        if kept and cases + len(each.rows) > MOST_CASES:
            break
        kept.append(each)
        cases += len(each.rows)
    chosen = set(map(id, kept))
    return [each for each in material.ladders if id(each) in chosen]


def _row(line: Line, heads: Sequence[Column], numbers: dict[int, int], material: Material) -> dict[str, Any]:
    ladder = line.ladder
    cells: dict[int, dict[str, Any]] = {}
    for place, column in enumerate(heads):
        cell = line.cells.get(column)
        if cell and id(cell.ladder) in numbers:
            times = line.times_published(cell.ladder)
            cells[place] = {"ladder": numbers[id(cell.ladder)], "off": cell.off, "published": times}
            if cell.versus and cell.versus.precision != cell.ladder.precision:
                cells[place]["less"] = less_precise(cell.versus)
    figures = {
        device: {
            "value": figure.high or figure.value, "unit": figure.unit, "variant": figure.variant, "share": figure.share,
            "stated": figure.stated_share, "source": str(figure.entry.get("source") or ""),
            "note": str(figure.entry.get("note") or ""), "setting": settings(figure.parameters),
        }
        for device, figure in line.published.items()
    }  # fmt: skip
    return {
        "workload": ladder.workload, "problem": ladder.problem, "precision": ladder.precision,
        "title": str(ladder.info.get("title") or ladder.problem), "cells": cells, "published": figures,
    }  # fmt: skip


def _pays(material: Material, numbers: dict[int, int]) -> list[dict[str, Any]]:
    """Return problems and devices by how many times its bound the best time is, the most first."""
    return [
        {"ladder": numbers[id(of)], "saved": found.perfect.saved, "by": label(found.perfect.by)}
        for of, found in where_work_pays(material.first)
        if found.perfect and id(of) in numbers
    ]


def _failures(collection: Collection) -> dict[str, dict[str, int]]:
    """Return how many cases ended how, by workload."""
    counts: dict[str, dict[str, int]] = {}
    for case in collection.cases:
        held, status = counts.setdefault(case.subject.workload, {}), case.newest.status.value
        held[status] = held.get(status, 0) + 1
    return dict(sorted(counts.items()))
