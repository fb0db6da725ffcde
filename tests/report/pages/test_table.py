"""The comparison of variants and devices: the settings that stand for a problem, and those that a page shows."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.report.pages.table import MOST_SETTINGS, best_dots, chosen_settings, headline, labels, share_dots, view
from perfport.report.parts.ladder import collected
from perfport.store.collection import Collection


def sized(points: int, device: str = data.POCL, seconds: float = 0.05) -> list[data.Record]:
    """Return two records at a setting whose useful work grows with it."""
    work = data.WORK.model_copy(update={"flops": float(points), "read_bytes": 1e6})
    change = {"parameters": {"points": points}, "preset": None, "device": device, "work": work, "ceilings": None}
    named = ((name, f"{data.hash_of(f'{name}{points}{device}'):016x}") for name in ("a", "b"))
    return [data.record(name, seconds, key=key, **change) for name, key in named]


def collection(folder: Path) -> Collection:
    """Five settings on one device, the two smallest of them on another too."""
    records = [record for points in range(1, 6) for record in sized(points)]
    records += [record for points in (1, 2) for record in sized(points, data.INTEL)]
    return Collection([data.store(folder / "run", records)])


def test_the_largest_setting_that_ran_everywhere_stands_for_a_problem(tmp_path: Path) -> None:
    held = collection(tmp_path)
    first = headline(held, collected(held))
    assert [(ladder.site, ladder.parameters) for ladder in first] == [
        (data.INTEL, {"points": 2}), (data.POCL, {"points": 2}),
    ]  # fmt: skip


def test_a_page_shows_that_setting_and_then_the_largest(tmp_path: Path) -> None:
    held = collection(tmp_path)
    ladders = collected(held)
    shown = chosen_settings(ladders, headline(held, ladders))
    assert [same[0].parameters["points"] for same in shown] == [2, 5, 4, 3] and len(shown) == MOST_SETTINGS


def test_without_bounds_there_is_nothing_to_draw(tmp_path: Path) -> None:
    held = collection(tmp_path)
    ladders = collected(held)
    assert share_dots(held, ladders, "n", "t") is best_dots(held, ladders, "n") is None
    bounded = Collection([data.store(tmp_path / "b", [data.record("a")])])
    plot = best_dots(bounded, collected(bounded), "n")
    assert plot and plot.name == "n.svg" and labels(bounded) == [data.POCL]


def test_rows_have_every_case_and_the_published_figures(tmp_path: Path) -> None:
    held = collection(tmp_path)
    rows = view(held).rows
    assert sum(row["provenance"] == "measured" for row in rows) == len(held.cases) == 14
    assert sum(row["provenance"] == "published" for row in rows) == len(data.PUBLISHED)
