"""Several devices: a ladder of their own without bounds of one, and a table of what more of them give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.interop.exports import export
from perfport.model.record import Record, Status
from perfport.report.pages.run import render
from perfport.report.pages.suite import render as render_suite
from perfport.report.parts.ladder import collected, ladders_of
from perfport.report.parts.material import headline
from perfport.report.parts.quantities import interval, percent
from perfport.report.parts.scaling import scaling_section
from perfport.store.collection import Collection
from perfport.store.ratios import compare
from perfport.store.results import Run


def spread(devices: int, seconds: float = 0.05, **change: Any) -> Record:
    """Return a record by so many devices."""
    tunables = {"devices": devices, **change.pop("tunables", {})}
    return data.record("spread", seconds, rung=7, tunables=tunables, **change)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """One variant by one device, one by one, two and four, and four by two parts of the memory."""
    records = [
        data.record("alone", 0.06, rung=1), spread(1, 0.08), spread(2, 0.05), spread(4, 0.03),
        spread(8, status=Status.UNSUPPORTED),
    ]  # fmt: skip
    return data.store(tmp_path / "results", records, data.environment((data.POCL,)))


def test_several_devices_have_ladders_of_their_own(run: Run) -> None:
    found = {ladder.site: ladder for ladder in ladders_of([run])}
    more = [f"{data.POCL} + {n} more" for n in (1, 3, 7)]
    assert list(found) == [data.POCL, *more]
    assert [row.record.identity.variant for row in found[data.POCL].rows] == ["alone", "spread"]
    assert all(row.record.problem_bound for row in found[data.POCL].rows)
    for site in more:
        assert all(row.record.problem_bound is None and row.record.variant_bound is None for row in found[site].rows)
        assert {ladder.place for ladder in found.values()} == {data.POCL}


def test_the_table_has_time_speed_up_and_efficiency_with_intervals(run: Run) -> None:
    (_, table) = list(scaling_section(ladders_of([run])))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "`spread`" in line]
    assert [row[1] for row in rows] == ["1", "2", "4"] and rows[0][3:] == ["1 (base)", "100.0 %"]
    by = {record.identity.device_count: record for record in run.records if record.identity.variant == "spread"}
    for row, devices in ((rows[1], 2), (rows[2], 4)):
        gain = compare(by[1], by[devices])
        assert gain and row[3] == interval(gain.ratio)
        assert row[4].startswith(percent(gain.ratio.value / devices))
        assert f"({percent(gain.ratio.low / devices, unit=False)}–" in row[4]


def test_only_equal_cases_are_compared(tmp_path: Path) -> None:
    """Other tunables, another setting or another host are no scaling."""
    one = data.store(tmp_path / "1", [spread(1, tunables={"places": 2}), spread(2, tunables={"places": 8})])
    two = data.store(tmp_path / "2", [spread(1), spread(2, parameters={"points": 1})])
    assert not list(scaling_section(ladders_of([one]))) and not list(scaling_section(ladders_of([two])))


def test_both_reports_have_the_table(run: Run, tmp_path: Path) -> None:
    page = render([run], tmp_path / "run.md")[0].read_text()
    assert "## Several devices" in page and f"on `{data.POCL}`" in page
    files = {file.name: file for file in render_suite(Collection([run]), {}, [], tmp_path / "suite" / "suite.md")}
    assert "<summary>Several devices</summary>" in files["demo.md"].read_text()
    summary = files["suite.md"].read_text()
    assert f"{len(run.records)} cases on 1 device:" in summary and "see scaling" in summary
    alone = data.store(tmp_path / "alone", [data.record("alone")])
    assert "Several devices" not in render([alone], tmp_path / "alone.md")[0].read_text()


def test_several_devices_change_no_headline_of_single_ones(tmp_path: Path) -> None:
    """Four devices ran the large setting alone: one of them stands at the headline size all the same."""
    small, large = {"points": 1000, "dims": 1000}, {"points": 100_000, "dims": 1000}
    work = data.WORK.model_copy(update={"flops": 6e6})
    records = [
        data.record("a", parameters=small, preset="quick", work=work, ceilings=None),
        data.record("a", parameters=small, preset="quick", work=work, ceilings=None, device=data.INTEL),
        data.record("a", parameters=large, preset="full"), spread(4, parameters=large, preset="full"),
    ]  # fmt: skip
    workloads = {"demo": {"problems": {"rows": {"headline": {"cpu": small, "gpu": large}}}}}
    collection = Collection([data.store(tmp_path / "run", records, data.environment(workloads=workloads))])
    first = headline(collection, collected(collection))
    assert [ladder.site for ladder, off in first.items() if off] == [f"{data.POCL} + 3 more"]
    assert {ladder.site: ladder.preset for ladder in first} == {
        data.POCL: "quick", data.INTEL: "quick", f"{data.POCL} + 3 more": "full",
    }  # fmt: skip


def test_platforms_are_single_devices(run: Run, tmp_path: Path) -> None:
    """Efficiencies are shares of one device's bound: no platform of the metric is several of them."""
    collection = Collection([run])
    assert [collection.label(place) for place in collection.places] == [data.POCL]
    page = render_suite(collection, {}, [], tmp_path / "suite.md")[0].read_text()
    carries = page[page.index("<summary>What carries over") : page.index("<summary>What ran")]
    assert "`demo/rows` | fp32        |           1 |" in carries
    (table,) = export([run], "p3", tmp_path / "p3.csv")
    assert "more" not in table.read_text()
