"""Reports: everything that a record says is shown and marked, nothing wrong is ranked, the same bytes every time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import report_data as data
from report_page import report, rows_of, section, tables

from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import Failure, Record, Status
from perfport.report.pages.run import Counts, render, sources
from perfport.report.parts.results import MOST_LADDERS, most_plotted
from perfport.store.environment import ENVIRONMENT_VERSION
from perfport.store.ratios import compare
from perfport.store.results import Run


def test_files_are_the_markdown_and_plots_beside_it(demonstration: tuple[Path, str, list[Path]]) -> None:
    folder, _, files = demonstration
    assert files[0] == folder / "my report.md"
    assert {f.parent for f in files[1:]} == {folder / "my report"}
    assert sorted(f.name for f in files[1:]) == sorted(f.name for f in (folder / "my report").iterdir())
    # rows on three devices, in fp16 and warm, argmin on two: a roofline and a share chart each; copy: shares alone
    assert len(files) == 1 + 3 * 2 + 2 + 2 + 2 * 2 + 1
    assert sum("argmin" in f.name and "roofline" in f.name for f in files) == 2
    assert not any("copy" in f.name and "roofline" in f.name for f in files)


def test_every_link_resolves_and_every_plot_is_linked(demonstration: tuple[Path, str, list[Path]]) -> None:
    folder, markdown, files = demonstration
    links = re.findall(r"\]\(([^)]*)\)", markdown)
    assert links
    assert {folder / unquote(link) for link in links} == set(files[1:])


def test_tables_are_rectangular(demonstration: tuple[Path, str, list[Path]]) -> None:
    found = tables(demonstration[1])
    assert len(found) > 20
    for head, *rows in found:
        assert rows and all(len(row) == len(head) for row in rows), head


def test_raw_tables_are_narrow_enough_to_read(demonstration: tuple[Path, str, list[Path]]) -> None:
    assert max(len(line) for line in demonstration[1].splitlines() if line.startswith("|")) <= 165


def test_same_results_same_bytes(tmp_path: Path) -> None:
    run = data.store(tmp_path / "results", data.demonstration())
    first = render([run], tmp_path / "a" / "report.md")
    second = render([Run(tmp_path / "results")], tmp_path / "b" / "report.md")
    assert [f.relative_to(tmp_path / "a") for f in first] == [f.relative_to(tmp_path / "b") for f in second]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))


def test_order_of_records_changes_nothing_but_the_example(tmp_path: Path) -> None:
    records = data.demonstration()
    one = data.store(tmp_path / "x" / "results", records)
    other = data.store(tmp_path / "x" / "results2", [records[0], *reversed(records[1:])])
    other.folder = one.folder
    render([one], tmp_path / "a.md")
    render([other], tmp_path / "b.md")
    assert (tmp_path / "a.md").read_text().replace("](a/", "](b/") == (tmp_path / "b.md").read_text()


def test_wrong_is_never_ranked_nor_compared(tmp_path: Path) -> None:
    wrong = data.record("cheat", 1e-6, rung=1, status=Status.WRONG)
    peer = data.record("bad_peer", 1e-6, role="peer", status=Status.WRONG)
    markdown = report(tmp_path, [wrong, peer, *data.ladder(data.POCL)])
    top = markdown.split("\n## ")[0]
    assert "`cheat`" not in top and "`bad_peer`" not in top and "`local_memory`" in top
    row = rows_of(markdown, "over previous rung", "cheat")[0]
    assert row["status"] == "**wrong**"
    assert {row[h] for h in row if h not in ("role", "variant", "status")} == {"–"}
    assert rows_of(markdown, "over previous rung", "row_major")[0]["speed-up over first rung"] == "1 (base)"
    assert rows_of(markdown, "peer, time", "bad_peer")[0]["speed-up of the best variant"] == "–"
    assert not rows_of(markdown, "share of problem bound", "cheat")
    assert "2 case(s) gave wrong results" in top
    assert compare(wrong, data.record("a")) is None and compare(data.record("a"), wrong) is None
    roofline = next((tmp_path / "report").glob("*roofline.svg")).read_text()
    assert "local_memory" in roofline and "cheat" not in roofline


def test_footnotes_only_where_their_marks_are(tmp_path: Path) -> None:
    markdown = report(tmp_path, [data.record("a", rung=1), data.record("b", rung=2)])
    assert not any(mark in markdown for mark in "†‡§")


def test_stale_share_is_marked_and_impossible_case_is_loud_and_never_ranked(tmp_path: Path) -> None:
    records = [data.record("stale", 0.00995, rung=1), data.record("cheat", 0.004, rung=2)]
    records += [data.record("bad_peer", 0.004, role="peer"), data.record("lost", rung=3, status=Status.CRASHED)]
    assert [r.status.value for r in records] == ["ok", "impossible", "impossible", "crashed"]
    stale = records[0].problem_bound
    assert stale and stale.stale and stale.share.low <= 1.02
    markdown = report(tmp_path, records)
    shares = {n: rows_of(markdown, "of problem bound (measured)", n)[0] for n in ("stale", "cheat")}
    header = "share of problem bound (measured)"
    assert shares["stale"][header].endswith("†") and "ERROR" not in shares["stale"][header]
    assert shares["cheat"][header].startswith("**ERROR: 25")
    assert "† above the measured bound" in markdown
    top = markdown.split("\n## ")[0]
    assert "**2 impossible**" in top and "`demo/rows cheat`" in top
    assert "> **ERROR: 2 impossible case(s), faster than the problem bound allows**" in top
    assert rows_of(top, "best variant", "stale") and not rows_of(top, "best variant", "cheat")
    assert not rows_of(top, "best peer", "bad_peer")
    row = rows_of(markdown, "share of problem bound", "stale")[0]
    assert row["speed-up over first rung"] == "is the first rung"
    row = rows_of(markdown, "role", "cheat")[0]
    assert row["status"] == "**impossible**"
    assert {row[h] for h in row if h not in ("role", "variant", "status")} == {"–"}
    assert compare(records[0], records[1]) is None
    failures = section(markdown, "Failures")
    assert failures.index("### impossible (2)") < failures.index("> **ERROR") < failures.index("### crashed (1)")
    roofline, bars = ((tmp_path / "report").glob(f"*{kind}.svg") for kind in ("roofline", "share"))
    assert ">IMPOSSIBLE<" in next(bars).read_text() and "cheat" not in next(roofline).read_text()


def test_missing_ceilings_are_said_and_give_no_share(tmp_path: Path) -> None:
    records = [data.record("a", rung=1, ceilings=None), data.record("b", 0.02, rung=2, ceilings=None)]
    markdown = report(tmp_path, records, ceilings={}, profiles={}, probes=[])
    assert f"**No measured ceilings for `{data.POCL}`**" in markdown
    assert "No problem bound: this device has no measured ceilings" in markdown
    assert not (tmp_path / "report").exists() and "](" not in markdown
    assert "faster" in rows_of(markdown, "over previous rung", "b")[0]["speed-up over first rung"]


def test_reproduction_is_complete(demonstration: tuple[Path, str, list[Path]]) -> None:
    found = section(demonstration[1], "How to reproduce")
    assert "perfport run demo.yaml --out 'a folder'" in found and "ab" * 32 in found and "seed `7`" in found


NASTY = "a|b `c` *d* _e_ [f](g) <script>alert(1)</script>\n## heading\n\x1b[31mred\x1b[0m & &lt;"


def test_hostile_text_breaks_nothing(tmp_path: Path) -> None:
    records = [
        data.record(
            "bad", rung=1, status=Status.CRASHED, failure=Failure(reason=NASTY, log=f"~~~\n```\n{NASTY}\n</details>")
        ),
        data.record("pipe|name`tick", 0.03, rung=2, extra={NASTY: NASTY}),
        data.record("fine", 0.02, rung=3),
        data.record("sp|lit", role="peer", status=Status.UNAVAILABLE, failure=Failure(reason=NASTY)),
    ]
    environment = data.environment()
    environment["experiment"]["title"] = NASTY
    environment["host"]["cpu"] = NASTY
    environment["workloads"]["demo"]["title"] = NASTY
    run = data.store(tmp_path / "results", records, environment)
    render([run], tmp_path / "report.md")
    markdown = (tmp_path / "report.md").read_text()
    for head, *rows in tables(markdown):
        assert all(len(row) == len(head) for row in rows), (head, rows)
    outside = re.sub(r"^ *(`{3,})\w*\n.*?^ *\1$", "", markdown, flags=re.M | re.S)
    assert "<script>" not in outside and "\x1b" not in markdown
    assert not re.search(r"^## heading", outside, flags=re.M)
    assert section(outside, "Failures").count("</details>") == 1
    assert not re.search(r"(?<!\\)\]\(g\)", outside)
    for plot in (tmp_path / "report").iterdir():
        ElementTree.parse(plot)


def test_runs_are_kept_apart(tmp_path: Path) -> None:
    one = data.store(tmp_path / "one", data.ladder(data.POCL))
    two = data.store(tmp_path / "two", data.ladder(data.POCL, 2.0), data.environment(run="other"))
    render([one, two], tmp_path / "report.md")
    markdown = (tmp_path / "report.md").read_text()
    assert f"`R1 {data.POCL}`" in markdown and f"`R2 {data.POCL}`" in markdown
    assert len(list((tmp_path / "report").glob("*.svg"))) == 4
    row = rows_of(section(markdown, "Comparison of devices"), data.POCL, "row_major")[0]
    assert row[f"`R1 {data.POCL}`"] != row[f"`R2 {data.POCL}`"]


def test_large_plots_and_reports_say_what_they_leave_out(tmp_path: Path) -> None:
    records = [data.record(f"v{i}", 0.02 + 0.001 * i, rung=i) for i in range(40)]
    markdown = report(tmp_path, records)
    assert "The 24 fastest of 40 cases are drawn" in markdown
    share = next((tmp_path / "report").glob("*share.svg")).read_text()
    assert ">v0<" in share and ">v39<" not in share


@pytest.mark.minutes
def test_ten_thousand_records(tmp_path: Path) -> None:
    templates = [data.record(f"v{i}", 0.05 / (1 + 0.1 * i), rung=i) for i in range(20)]
    records = []
    for number in range(500):
        for i, template in enumerate(templates):
            identity = template.identity.model_copy(update={"parameters": {"n": number}})
            records.append(template.model_copy(update={"identity": identity, "key": f"{number}-{i}"}))
    run = data.store(tmp_path / "results", records)
    files = render([run], tmp_path / "report.md")
    pages = [file for file in files if file.suffix == ".md"]
    markdown = "".join(page.read_text() for page in pages)
    assert len(pages) > 5 and all(page.read_text().count("\n") < 2000 for page in pages)
    assert "(report/demo-rows.md)" in files[0].read_text()
    assert len(run.records) == 10_000 and "10000 cases: 10000 ok" in markdown
    plotted = most_plotted(20 * MOST_LADDERS)
    assert sum("curve" not in file.name for file in files if file.suffix == ".svg") == 2 * plotted
    assert f"Plots are drawn for the first {plotted} of {MOST_LADDERS} ladders" in markdown
    assert f"Of 500 ladders the {MOST_LADDERS} at the largest settings of each problem have tables here" in markdown
    assert len(rows_of(markdown, "over previous rung", "v7")) == MOST_LADDERS
    assert len(rows_of(markdown.split("## Environment")[0], "share of problem bound", "demo/rows")) == 500


def test_empty_run_and_bare_environment(tmp_path: Path) -> None:
    run = data.store(tmp_path / "results", [], {"schema_version": ENVIRONMENT_VERSION})
    render([run], tmp_path / "report.md")
    assert "no cases" in (tmp_path / "report.md").read_text()
    bare = data.store(tmp_path / "bare", data.demonstration(), {"schema_version": ENVIRONMENT_VERSION})
    render([bare], tmp_path / "bare.md")
    assert "`local_memory`" in (tmp_path / "bare.md").read_text()


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        render([], tmp_path / "report.md")


def test_unwritable_destination_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = data.store(tmp_path / "results", [data.record("a")])
    with pytest.raises(InfrastructureError, match=r"report\.md"):
        render([run], tmp_path / "file" / "report.md")


FOLLOWING = """
name: paper
report: {path: reports/paper.md, follows: svm_rbf}
experiments: [{workload: svm_rbf, problem: rbf_rows, presets: [paper]}]
"""


def rbf_rows(variant: str, seconds: float, points: int, **change: Any) -> Record:
    """Return a record of the SVM study's rows."""
    return data.record(
        variant, seconds, workload="svm_rbf", problem="rbf_rows", parameters={"points": points, "dims": 1000},
        key=f"{variant}-{points}", **change,
    )  # fmt: skip


def test_a_run_of_a_paper_follows_it_and_has_its_results_on_pages_of_their_own(tmp_path: Path) -> None:
    records = [rbf_rows(name, s, x) for name, s in (("row_major", 0.06), ("column_major", 0.03)) for x in (100, 9000)]
    run = data.store(tmp_path / "run", records)
    (run.folder / "experiment.yaml").write_text(FOLLOWING)
    page, *files = render([run], tmp_path / "paper.md")
    markdown = page.read_text()
    headings = re.findall(r"^## (.*)", markdown, re.M)
    assert headings[:4] == ["Figure 2: Naive kernel", "Figure 5: Data layout", "Figure 6: Vectorization",
                            "Figure 7: Images, with and without their filling"]  # fmt: skip
    assert headings.index("Figure 8: Local memory") < headings.index("Results") < headings.index("How to reproduce")
    assert "[Rows" not in markdown and "Each problem has a page of its own." in markdown
    assert (tmp_path / "paper" / "svm_rbf-rbf_rows.md").exists()
    links = {tmp_path / unquote(link) for link in re.findall(r"\]\(([^)#]*)\)", markdown) if "://" not in link}
    assert links <= set(files)


def test_counts_given_to_a_report_reach_its_exhibits(tmp_path: Path) -> None:
    case = data.record(
        "generated_ptx", workload="sparse_conv", problem="sparse_conv", device=data.GPU, ceilings=data.GPU_CEILINGS,
        parameters={"operator": "vgg-conv1", "batch": 64, "sparsity": 0.9},
    )  # fmt: skip
    run = data.store(tmp_path / "run", [case])
    (run.folder / "experiment.yaml").write_text(FOLLOWING.replace("svm_rbf", "sparse_conv").replace("rbf_rows", "x"))
    count = data.count(case, data.levels(dram_read=2)).model_copy(update={"stalls": {"no_instruction": 0.25}})
    counts = Counts(data.store_counts(tmp_path / "counts", [count]))
    markdown = render([run], tmp_path / "paper.md", [counts])[0].read_text()
    (table,) = tables(section(markdown, "Table 5"))
    assert table[1] == ["vgg-conv1", "0.2500"]
    assert "not counted" not in section(markdown, "Figure 10")


def test_a_run_without_an_experiment_file_follows_nothing(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [rbf_rows("row_major", 0.06, 100)])
    assert sources([run]) == []
    (run.folder / "experiment.yaml").write_text("name: [")
    assert sources([run]) == []
    (run.folder / "experiment.yaml").write_text(FOLLOWING)
    assert [source.workload for source in sources([run, run])] == ["svm_rbf"]
