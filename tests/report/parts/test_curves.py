"""Curves: axes that vary alone, peers dashed, the place where one is overtaken."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import report_data as data

from perfport.model.record import Record
from perfport.report.parts.curves import curve_plots
from perfport.report.parts.ladder import Ladder, ladders_of


def at(value: float, own: float, peer: float, **more: Any) -> list[Record]:
    """One setting: a variant and a peer."""
    given: dict[str, Any] = {"parameters": {"sparsity": value, "n": 7, **more}, "ceilings": None, "clock": "span"}
    key = f"{value}{more}"
    return [
        data.record("own", own, key=f"own{key}", rung=1, **given),
        data.record("library", peer, key=f"library{key}", role="peer", **given),
    ]


def ladders(folder: Path, records: list[Record]) -> list[Ladder]:
    """Return the ladders of some records."""
    return ladders_of([data.store(folder, records)])


def test_the_place_where_a_peer_is_overtaken_is_told(tmp_path: Path) -> None:
    records = [*at(0.0, 0.040, 0.010), *at(0.5, 0.020, 0.010), *at(1.0, 0.005, 0.010)]
    (plot,) = curve_plots(ladders(tmp_path, records), "p")
    overtaken = re.search(r"own overtakes library at sparsity = (\d+\.\d+)", plot.caption)
    assert overtaken and 0.7 < float(overtaken[1]) < 0.8, "the ratio is 1/2 at 0.5 and 2 at 1: 1 in the middle"
    assert b"library (peer)" in plot.content and b"stroke-dasharray" in plot.content
    assert "sparsity" in plot.name and "n=7" in plot.caption


def test_fewer_than_three_values_or_several_axes_at_once_are_no_curve(tmp_path: Path) -> None:
    two = [*at(0.0, 0.04, 0.01), *at(0.5, 0.02, 0.01)]
    assert curve_plots(ladders(tmp_path / "two", two), "p") == []
    diagonal = [record for n in range(3) for record in at(n / 2, 0.02, 0.01, batch=n)]
    assert curve_plots(ladders(tmp_path / "diagonal", diagonal), "p") == []


def test_a_tunable_is_an_axis_too(tmp_path: Path) -> None:
    records = [data.record("own", 0.02 + 0.001 * n, tunables={"group": 2**n}, key=f"{n}") for n in range(6)]
    (plot,) = curve_plots(ladders(tmp_path, records), "p")
    assert "group" in plot.name and "Curves over group" in plot.caption
    assert curve_plots(ladders(tmp_path, records), "p") == [plot], "the same every time"
