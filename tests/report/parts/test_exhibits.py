"""Sections of exhibits: known crossovers, published beside measured, verdicts, what is missing; names are text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
from claim_data import claim, record
from report_page import tables

from perfport.judge.exhibits import Source
from perfport.model import published
from perfport.model.record import Record, Status
from perfport.report.parts import exhibits
from perfport.report.parts.exhibits import Followed
from perfport.store.collection import Collection

RATES = {"number": "Figure 5", "title": "Rates", "kind": "curves", "problem": "rows", "x": "points"}
#: The ratio of b to a is 1/4, 1/2, 2, 4: they pass each other at 2000, halfway between 1000 and 4000 on a log axis.
PASSING = [
    (name, x, 0.05 * ratio**exponent)
    for x, ratio in ((100, 4.0), (1000, 2.0), (4000, 0.5), (40_000, 0.25))
    for name, exponent in (("a", 0), ("b", 1))
]


@pytest.fixture(autouse=True)
def demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration has a claim and published figures."""
    figures = (
        published.Figure(
            problem="rows", variant="a", device="hd5870", value=33.7, unit="GFLOP/s", share=0.15, source="p"
        ),
        published.Figure(
            problem="rows", variant="b", device="<i>", value=2, high=3, unit="times a", source="p", note="x"
        ),
    )
    monkeypatch.setattr(published, "figures", lambda name: figures)
    ours = claim(subject={"variant": "b"}, reference={"variant": "a"}, published="1.5 *times*")
    monkeypatch.setattr(exhibits, "ledger", lambda: {"demo": [ours]})


def follow(folder: Path, records: list[Record], *listed: dict[str, Any], **environment: Any) -> tuple[str, Followed]:
    """Return the sections of a source, and what they were made by."""
    run = data.store(folder / "run", records, data.environment(**environment))
    source = Source.model_validate({"workload": "demo", "citation": "A *paper*", "exhibits": list(listed)})
    followed = Followed(source, Collection([run]), lambda _: None, "plots")
    return "\n\n".join(filter(None, followed.blocks())), followed


def passing(**change: Any) -> list[Record]:
    return [record(n, s, parameters={"points": x}, noise=1e-4, **change) for n, x, s in PASSING]


def test_a_known_crossover_is_named(tmp_path: Path) -> None:
    page, followed = follow(tmp_path, passing(), {**RATES, "series": ["a", "b"]})
    assert "- `b` overtakes `a` between points = 1,000 and 4,000 (interpolated: 2000)" in page
    assert [plot.name for plot in followed.plots] == ["01-figure-5-opencl-pocl-0.svg"]
    assert "](plots/01-figure-5-opencl-pocl-0.svg)" in page


def test_a_speed_up_says_where_it_breaks_even(tmp_path: Path) -> None:
    over = [{"variant": "b", "over": {"variant": "a"}}, {"variant": "a", "over": {"variant": "a"}}]
    page, _ = follow(tmp_path, passing(), {**RATES, "series": over})
    (row,) = [rows[1] for rows in tables(page) if rows[0] == ["`b over a`", "`a over a`"]]
    assert row == ["faster from 2000 on (1,000 to 4,000)", "the intervals decide nothing"]


def test_the_sections_are_in_the_order_of_the_source_with_what_the_page_shows(tmp_path: Path) -> None:
    shown = {**RATES, "series": ["a", "b"], "claims": ["one"], "published": [{"variant": "a"}, {"variant": "b"}]}
    ratios = {
        "number": "Table 2",
        "title": "Ratios",
        "kind": "ratios",
        "claims": ["one"],
        "note": "No cell *survives*.",
    }
    page, _ = follow(tmp_path, passing(), ratios, shown)
    headings = [line for line in page.splitlines() if line.startswith("##")]
    assert headings == ["## Table 2: Ratios", "## Figure 5: Rates", "### `opencl:pocl:0`, AMD EPYC 9999"]
    assert "A \\*paper\\*" in page and "No cell \\*survives\\*." in page


def test_published_values_stand_beside_what_was_measured(tmp_path: Path) -> None:
    series = ["a", {"variant": "b", "label": "bee"}]
    shown = {**RATES, "series": series, "published": [{"variant": "a"}, {"variant": "b", "series": "bee"}]}
    page, _ = follow(tmp_path, passing(), shown)
    (head, first, second) = next(rows for rows in tables(page) if rows[0][0] == "published")
    assert head[:6] == ["published", "device", "value", "unit", "share of its bound", "here, `opencl:pocl:0`"]
    assert first[:6] == ["`a`", "AMD Radeon HD 5870", "33.7", "GFLOP/s", "15.0 %", "12.0 at 40,000"]
    assert second[:6] == ["`bee`", "&lt;i>", "2.00 to 3.00", "times a", "–", "48.0 at 40,000"]


def test_the_claims_carry_published_and_measured_numbers_and_the_verdict(tmp_path: Path) -> None:
    page, _ = follow(tmp_path, passing(), {**RATES, "series": ["a"], "claims": ["one"]})
    (row,) = next(rows[1:] for rows in tables(page) if rows[0][0] == "claim")
    assert row == [
        "`one`: It is faster.", "1.5 \\*times\\*", "`opencl:pocl:0`", "0.250 to 4.00, geometric mean 1.00", "4",
        "**cannot tell**",
    ]  # fmt: skip
    alone, _ = follow(tmp_path / "alone", passing()[:2], {**RATES, "series": ["a"], "claims": ["one"]})
    assert "| 0.250 (0.250–0.250) |" in alone and "**opposite**" in alone
    none, _ = follow(tmp_path / "none", passing()[:1], {**RATES, "series": ["a"], "claims": ["one"]})
    assert "not measured" in none and "no record of b" in none


def test_claims_that_no_figure_carries_stand_at_the_end(tmp_path: Path) -> None:
    page, _ = follow(tmp_path, passing(), {**RATES, "series": ["a"]})
    assert "`one`: It is faster." in page.partition("## Claims of the text")[2]
    carried, _ = follow(tmp_path / "carried", passing(), {**RATES, "series": ["a"], "claims": ["one"]})
    assert "## Claims of the text" not in carried


def test_every_point_is_in_the_table_with_its_marks(tmp_path: Path) -> None:
    records = [record("a", 0.05, parameters={"points": x}, noise=0.2) for x in (1000, 2000)]
    page, _ = follow(tmp_path, records, {**RATES, "series": ["a"]})
    rows = next(rows for rows in tables(page) if "points" in rows[0])
    assert rows[0] == ["points", "`a`, GFLOP/s", "problem bound, GFLOP/s"]
    assert [row[0] for row in rows[1:]] == ["1,000", "2,000"] and all(row[1].endswith("§") for row in rows[1:])
    assert "§ the noise target was not met" in page


def test_what_is_not_in_the_run_is_said(tmp_path: Path) -> None:
    failed = [record("c", status=Status.UNSUPPORTED, parameters={"points": 100})]
    shown = {**RATES, "series": ["a", "c", {"variant": "d", "instead": "b"}, "e"], "values": [7]}
    page, _ = follow(tmp_path, passing() + failed, shown)
    assert "*In place of `d`:* `b`." in page
    assert "`c`: unsupported: unsupported for a reason" in page
    assert "`a`, `d`: no such case in this run at points = 7" in page
    assert "`e`: no such case in this run" in page
    other, _ = follow(tmp_path / "other", passing(), {**RATES, "problem": "sums", "series": ["a"]})
    assert "*Not in this run:* `demo/sums`, on any device." in other


def test_a_table_has_figures_of_records_and_no_plot(tmp_path: Path) -> None:
    case = record("a", parameters={"points": 5}, extra={"loads": 160, "share": 0.12345})
    series = [{"variant": "a", "y": f"extra.{name}", "label": name, "unit": "B"} for name in ("loads", "share")]
    page, followed = follow(tmp_path, [case], {**RATES, "kind": "table", "series": series})
    rows = next(rows for rows in tables(page) if "points" in rows[0])
    assert rows == [["points", "`loads`, B", "`share`, B"], ["5", "160", "0.1235"]]
    assert followed.plots == []


def test_each_device_has_its_own_plot_and_tables(tmp_path: Path) -> None:
    both = passing() + passing(device=data.GPU, ceilings=data.GPU_CEILINGS)
    page, followed = follow(tmp_path, both, {**RATES, "series": ["a", "b"], "published": [{"variant": "a"}]})
    assert page.count("### `opencl:") == len(followed.plots) == 2
    assert "here, `opencl:nvidia:0`" in page and "here, `opencl:pocl:0`" in page


def test_markup_in_the_names_of_records_is_text(tmp_path: Path) -> None:
    hostile = "<script>*x*|`"
    records = [
        record("a", parameters={"points": 100, "name": hostile}),
        record("a", parameters={"points": 100, "name": "b"}),
    ]
    devices = {data.POCL: {**data.device(data.POCL), "chip": "<b>chip</b>"}}
    page, followed = follow(
        tmp_path, records, {**RATES, "series": [{"variant": "a", "label": hostile}]}, devices=devices
    )
    assert "<script>" not in page.replace("`` <script>*x*\\|` ``", "").replace("``<script>*x*|` ``", "")
    assert "&lt;script>\\*x\\*" in page and "<b>chip" not in page and "&lt;b>chip&lt;/b>" in page
    assert all(b"<script>" not in plot.content for plot in followed.plots)
