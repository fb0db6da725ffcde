"""The results of a run by problem: what a page has room for, and names that no two files share."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.report.parts.ladder import ladders_of
from perfport.report.parts.plots import Plot
from perfport.report.parts.results import most_plotted, results, tabulated


def test_each_problem_has_its_blocks_and_a_file_of_its_own(tmp_path: Path) -> None:
    ladders = ladders_of([data.store(tmp_path, data.demonstration())])
    found, plots = results(ladders, 0)
    assert [problem.file for problem in found] == sorted({f"demo-{ladder.problem}.md" for ladder in ladders})
    assert sum(problem.ladders for problem in found) == len(ladders)
    assert plots == [block for problem in found for block in problem.blocks if isinstance(block, Plot)]
    assert len({plot.name for plot in plots}) == len(plots)
    rows = next(problem for problem in found if problem.file == "demo-rows.md")
    assert "](folder/demo-rows" in rows.markdown("folder") and "](demo-rows" in rows.markdown("")


def test_headings_and_files_carry_the_setting(tmp_path: Path) -> None:
    records = [
        data.record("a", parameters={"points": n}, preset=preset, key=f"{preset}{n}")
        for preset, n in (("quick", 1), ("quick", 2), ("large", 3))
    ]
    found, plots = results(ladders_of([data.store(tmp_path, records)]), 0)
    headings = [block for block in found[0].blocks if isinstance(block, str) and block.startswith("#### ")]
    assert headings == ["#### `rows`, quick: points=1", "#### `rows`, quick: points=2", "#### `rows`, large"]
    assert any(plot.name.startswith("demo-rows-quick-points-2-") for plot in plots)


def test_of_a_problem_without_operations_the_missing_roofline_is_explained(tmp_path: Path) -> None:
    run = data.store(tmp_path, [data.record("copy", work=data.ONLY_BYTES)])
    found, _ = results(ladders_of([run]), 0)
    assert "No roofline: the problem counts no operations: it moves bytes alone." in found[0].blocks


def test_what_has_no_room_is_said(tmp_path: Path) -> None:
    ladders = ladders_of([data.store(tmp_path, data.ladder(data.POCL))])
    found, _ = results(ladders, 7)
    assert "Of 8 ladders the 1 at the largest settings" in found[0].markdown("")
    assert tabulated(ladders) == ladders and most_plotted(0) == 24 and most_plotted(10**6) == 8
