"""Plots of exhibits: every series, the published values and the bound are drawn; names are text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from claim_data import record
from report_page import words

from perfport.judge.exhibits import Exhibit
from perfport.report.parts.exhibit_plots import MOST_PANELS, Drawing, Level, bars, curves, logarithmic
from perfport.report.parts.exhibit_points import Points, points
from perfport.store.collection import Collection

RATES = {
    "number": "Figure 1",
    "title": "Rates",
    "kind": "curves",
    "problem": "rows",
    "x": "points",
    "series": ["a", "b"],
}
PUBLISHED = Level("a", "Some GPU", 33.0, 44.0)
DRAWING = Drawing("name", "A title", "points", "GFLOP/s", [PUBLISHED], False)
HOSTILE = "<b>&amp; $x$ \x1b[31m"


def held(folder: Path, dims: int = 1, **shown: Any) -> Points:
    """Return two curves of three points each in so many panels."""
    records = [
        record(name, seconds * x**0.2, parameters={"points": x, "dims": d})
        for name, seconds in (("a", 0.05), ("b", 0.03))
        for x in (10, 100, 1000)
        for d in range(dims)
    ]
    collection = Collection([data.store(folder / "run", records)])
    exhibit = Exhibit.model_validate({**RATES, **shown})
    return points(exhibit, "demo", collection, collection.places[0], lambda _: None)


def test_curves_name_their_series_the_published_values_and_the_bound(tmp_path: Path) -> None:
    plot = curves(held(tmp_path), DRAWING)
    assert {"a", "b", "a, Some GPU (published)", "problem bound", "points"} <= set(words(plot))
    assert "GFLOP/s, higher is better" in words(plot)
    assert (plot.name, plot.alt) == ("name.svg", "A title")
    assert plot.caption == (
        "Measured, with 95 % intervals. Dashed, black: the problem bound. Dotted, or hatched in outline: published."
    )


def test_the_same_points_give_the_same_bytes(tmp_path: Path) -> None:
    both = held(tmp_path)
    assert curves(both, DRAWING).content == curves(both, DRAWING).content


def test_panels_beyond_the_room_are_said(tmp_path: Path) -> None:
    plot = curves(held(tmp_path, MOST_PANELS + 2), DRAWING)
    assert plot.caption.endswith("2 settings more are in the table alone.")
    assert {f"dims={number}" for number in range(MOST_PANELS)} <= set(words(plot))


def test_bars_stand_in_groups_with_the_published_ones_behind_or_one_for_each_series(tmp_path: Path) -> None:
    grouped = words(bars(held(tmp_path, kind="bars"), DRAWING))
    assert {"10", "100", "1000", "published", "a", "b"} <= set(grouped)
    single = words(bars(held(tmp_path / "single", kind="bars", x=[], parameters={"points": 10}), DRAWING))
    assert {"a", "b", "published"} <= set(single) and "1000" not in single


def test_a_speed_up_is_called_so(tmp_path: Path) -> None:
    over = [{"variant": "b", "over": {"variant": "a"}}]
    plot = bars(held(tmp_path, kind="bars", series=over), replace(DRAWING, unit="×", even=True, levels=[]))
    assert "speed-up, higher is better" in words(plot) and "published" not in plot.caption


@pytest.mark.parametrize("draw", [curves, bars])
def test_names_with_markup_are_shown_as_text(tmp_path: Path, draw: Any) -> None:
    series = [{"variant": "a", "label": HOSTILE}, "b"]
    plot = draw(held(tmp_path, series=series), replace(DRAWING, axis=HOSTILE, levels=[]))
    assert {"<b>&amp; $x$"} <= set(words(plot)) and b"\x1b" not in plot.content


def test_an_axis_over_many_decades_is_logarithmic() -> None:
    assert logarithmic([10, 1000]) and not logarithmic([10, 100]) and not logarithmic([0.0, 1000])
    assert not logarithmic(["a", "b"]) and not logarithmic([10])
