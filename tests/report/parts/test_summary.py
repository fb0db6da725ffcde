"""The top of a report: what ran, what came of it, the best everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from report_page import report, rows_of, tables

from perfport.model.record import Record, Status
from perfport.model.work import Work
from perfport.report.pages.run import glance


def several_workloads() -> list[Record]:
    """Two workloads: one with two problems and a peer, one where the machine was busy and a case failed."""
    busy: dict[str, Any] = {"workload": "other", "problem": "one", "status": Status.CONTENDED}
    return [
        data.record("slow", 0.08, rung=1), data.record("quick", 0.02, rung=2),
        data.record("library", 0.04, role="peer"),
        data.record("only", 0.05, problem="short", rung=1),
        data.record("slow", 0.08, rung=1, **busy), data.record("quick", 0.02, rung=2, **busy),
        data.record("lost", workload="other", problem="one", rung=3, status=Status.CRASHED),
        data.record("elsewhere", workload="other", problem="one", rung=4, status=Status.UNSUPPORTED),
        data.record("nothing", workload="third", problem="any", rung=1, status=Status.UNAVAILABLE),
    ]  # fmt: skip


def test_a_class_of_peers_and_control_arms_has_no_best_variant(tmp_path: Path) -> None:
    records = [data.record("own", 0.02), data.record("library", 0.04, role="peer", precision="fp16")]
    markdown = report(tmp_path, [*records, data.record("arm", 0.03, role="control", precision="fp16")])
    assert "none is ok" not in markdown


def test_the_first_screen_has_a_line_for_each_workload(tmp_path: Path) -> None:
    markdown = report(tmp_path, several_workloads())
    assert markdown.index("| workload") < 200, "nothing but the title comes before"
    (head, demo, other, third), *_ = tables(markdown)
    demo_row, other_row, third_row = (dict(zip(head, row, strict=True)) for row in (demo, other, third))
    assert "device" not in head, "there is one"
    assert [row["workload"] for row in (demo_row, other_row, third_row)] == ["`demo`", "`other`", "`third`"]
    assert (demo_row["cases"], demo_row["ladder"], demo_row["setting"]) == ("4/4 ok", "`rows`", "quick")
    assert demo_row["best variant"] == "`quick`" and re.fullmatch(r"(19|20)\.\d ms", demo_row["time"])
    assert re.fullmatch(r"\d\d\.\d %", demo_row["of bound"])
    assert re.fullmatch(r"(3\.9|4\.0)\d ×", demo_row["over first"])
    assert re.fullmatch(r"(1\.9|2\.0)\d × library", demo_row["over peer"])
    assert other_row["cases"] == "0/4 ok, 1 failed, 2 contended"
    assert other_row["best variant"] == "`quick`" and other_row["over peer"] == "–"
    assert other_row["time"].endswith("ms ‡") and "‡ contended" in markdown[: markdown.index("**Best variant**")]
    assert third_row["cases"] == "0/1 ok" and third_row["best variant"] == "`none has a result`"


def test_the_first_screen_is_at_the_largest_setting_of_the_longest_ladder(tmp_path: Path) -> None:
    """Along an axis all settings have as many rungs: the smallest, which came first, stood for the study, unnamed."""
    axis = [
        data.record(
            name, seconds * points, parameters={"points": points}, rung=rung, key=f"{points + rung:012x}",
            work=Work(read_bytes=4000.0 * points),
        )
        for points in (1000, 70000, 4000)
        for rung, (name, seconds) in enumerate((("slow", 2e-6), ("quick", 1e-6)), 1)
    ]  # fmt: skip
    short = [data.record("only", 0.05, problem="short", parameters={"points": 900000}, rung=1)]
    run = data.store(tmp_path / "results", [*axis, *short])
    line = glance([run]).splitlines()[2]
    assert "points=70000" in line and re.search(r"quick +(69|70)\.\d ms", line), line


def test_the_terminal_gets_the_same_lines(tmp_path: Path) -> None:
    run = data.store(tmp_path / "results", [*several_workloads(), data.record("slow", 0.03, rung=1, device=data.INTEL)])
    lines = glance([run]).splitlines()
    first = [line.split()[0] for line in lines if not line.startswith("-")]
    assert first == ["workload", "demo", "demo", "other", "third", "‡"], "and a note on the mark"
    assert data.INTEL in lines[2] and "is the first" in lines[2], "a line for each device, where there are several"


def test_summary_counts_every_status(demonstration: tuple[Path, str, list[Path]]) -> None:
    records = data.demonstration()
    top = demonstration[1].split("\n## ")[0]
    assert f"{len(records)} cases" in top
    for status in Status:
        assert re.search(rf"\b{sum(r.status == status for r in records)} {status.value}\b", top)


def test_summary_names_the_best_and_what_it_beats(demonstration: tuple[Path, str, list[Path]]) -> None:
    top = demonstration[1].split("\n## ")[0]
    best = rows_of(top, "best variant", "local_memory")
    assert {row["device"] for row in best} == {f"`{data.POCL}`", f"`{data.INTEL}`"}
    against = rows_of(top, "best peer", "numpy")
    assert all(row["beats it?"] == "yes" and "(wall)" in row["speed-up over the peer"] for row in against)


@pytest.mark.parametrize(("status", "listed"), [(Status.UNSUPPORTED, False), (Status.CRASHED, True)])
def test_a_class_that_cannot_run_here_is_not_in_the_summary(tmp_path: Path, status: Status, listed: bool) -> None:
    rounded = data.record("rounded", precision="tf32", rung=1, status=status)
    top = report(tmp_path, [data.record("plain", rung=1), rounded]).split("\n## ")[0]
    assert ("none is ok" in top) == ("| tf32 " in top) == listed
