"""Reports: everything that a record says is shown and marked, nothing wrong is ranked, the same bytes every time."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import report_data as data

from perfport.machine.device_profile import load_profile
from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import SCHEMA_VERSION, Failure, Interval, MetricValue, Record, Status
from perfport.model.work import Traffic
from perfport.report.pages.run import glance, most_plotted, render, stored
from perfport.report.parts.failures import ORDER
from perfport.report.parts.ladder import ladders
from perfport.report.parts.markdown import code, details, excerpt, fence, table, text
from perfport.report.parts.quantities import column, interval, percent, scaled, seconds, significant, time_scale
from perfport.report.parts.rooflines import _point
from perfport.store.ratios import compare, time_of
from perfport.store.results import Run
from perfport.untimed.count import Count, Verdict


def report(tmp_path: Path, records: list[Record], **environment: object) -> str:
    """Store records, render them, and return the markdown."""
    run = data.store(tmp_path / "results", records, data.environment(**environment) if environment else None)
    render([run], tmp_path / "report.md")
    return (tmp_path / "report.md").read_text()


def section(markdown: str, title: str) -> str:
    """Return one second-level section."""
    return next(part for part in re.split(r"^## ", markdown, flags=re.M) if part.startswith(title))


def cells(line: str) -> list[str]:
    """Return the cells of a table row; an escaped pipe is no border."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(markdown: str) -> list[list[list[str]]]:
    """Return every table as rows of cells, the header first and without the rule below it."""
    outside = re.sub(r"^ *(`{3,}).*?^ *\1$", "", markdown, flags=re.M | re.S)
    found = re.findall(r"(?:^\|.*\|\n)+", outside + "\n", flags=re.M)
    return [[cells(row) for i, row in enumerate(block.splitlines()) if i != 1] for block in found]


def rows_of(markdown: str, header: str, name: str) -> list[dict[str, str]]:
    """Return the rows that name a variant, from tables that have a header which contains ``header``."""
    found = []
    for head, *rows in tables(markdown):
        if any(header in cell for cell in head):
            found += [dict(zip(head, row, strict=True)) for row in rows if any(f"`{name}`" in cell for cell in row)]
    return found


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[Path]]:
    """A report of everything: its folder, its markdown, the files written."""
    folder = tmp_path_factory.mktemp("demonstration")
    run = data.store(folder / "results", data.demonstration())
    files = render([run], folder / "my report.md")
    return folder, files[0].read_text(), files


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


def test_the_first_screen_has_a_line_for_each_workload(tmp_path: Path) -> None:
    markdown = report(tmp_path, several_workloads())
    assert markdown.index("| workload") < 200, "nothing but the title comes before"
    (head, demo, other, third), *_ = tables(markdown)
    demo_row, other_row, third_row = (dict(zip(head, row, strict=True)) for row in (demo, other, third))
    assert "device" not in head, "there is one"
    assert [row["workload"] for row in (demo_row, other_row, third_row)] == ["`demo`", "`other`", "`third`"]
    assert (demo_row["problems"], demo_row["cases"], demo_row["ladder"]) == ("2", "4/4 ok", "`rows`")
    assert demo_row["best variant"] == "`quick`" and re.fullmatch(r"(19|20)\.\d ms", demo_row["time"])
    assert re.fullmatch(r"\d\d\.\d %", demo_row["of bound"])
    assert re.fullmatch(r"(3\.9|4\.0)\d ×", demo_row["over first"])
    assert re.fullmatch(r"(1\.9|2\.0)\d × library", demo_row["over peer"])
    assert other_row["cases"] == "0/4 ok, 1 failed, 2 contended"
    assert other_row["best variant"] == "`quick`" and other_row["over peer"] == "–"
    assert other_row["time"].endswith("ms ‡") and "‡ contended" in markdown[: markdown.index("**Best variant**")]
    assert third_row["cases"] == "0/1 ok" and third_row["best variant"] == "`none has a result`"


def test_the_terminal_gets_the_same_lines(tmp_path: Path) -> None:
    run = data.store(tmp_path / "results", [*several_workloads(), data.record("slow", 0.03, rung=1, device=data.INTEL)])
    lines = glance([run]).splitlines()
    first = [line.split()[0] for line in lines if not line.startswith("-")]
    assert first == ["workload", "demo", "demo", "other", "third", "‡"], "and a note on the mark"
    assert data.INTEL in lines[2] and "is the first" in lines[2], "a line for each device, where there are several"


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


def test_plots_are_well_formed_and_undated(demonstration: tuple[Path, str, list[Path]]) -> None:
    for file in demonstration[2][1:]:
        root = ElementTree.fromstring(file.read_bytes())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert b"dc:date" not in file.read_bytes()


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


def test_a_variants_picture_is_shown(tmp_path: Path) -> None:
    picture = {"jpeg": base64.b64encode(b"\xff\xd8 pixels").decode(), "caption": "What was found: 3"}
    markdown = report(tmp_path, [data.record("fast", extra={"picture": picture}), data.record("slow", 0.2)])
    assert picture["jpeg"] not in markdown and "| picture" not in markdown
    (file,) = (tmp_path / "report").glob("*-fast.jpg")
    assert file.read_bytes() == b"\xff\xd8 pixels" and f"report/{file.name})" in markdown
    assert "What was found: 3 (measured by fast" in markdown


def test_order_of_records_changes_nothing_but_the_example(tmp_path: Path) -> None:
    records = data.demonstration()
    one = data.store(tmp_path / "x" / "results", records)
    other = data.store(tmp_path / "x" / "results2", [records[0], *reversed(records[1:])])
    other.folder = one.folder
    render([one], tmp_path / "a.md")
    render([other], tmp_path / "b.md")
    assert (tmp_path / "a.md").read_text().replace("](a/", "](b/") == (tmp_path / "b.md").read_text()


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


def test_speed_ups_have_base_interval_and_verdict(demonstration: tuple[Path, str, list[Path]]) -> None:
    rows = {name: rows_of(demonstration[1], "over previous rung", name)[0] for name in ("row_major", "vectorized")}
    assert rows["row_major"]["speed-up over first rung"] == "1 (base)"
    for header, ratio in (("speed-up over first rung", 60 / 21), ("over previous rung", 30 / 21)):
        value, low, high, verdict = re.match(
            r"([\d.]+) \(([\d.]+)–([\d.]+)\) (\w+)$", rows["vectorized"][header]
        ).groups()  # type: ignore[union-attr]
        assert float(value) == pytest.approx(ratio, rel=0.03)
        assert float(low) <= float(value) <= float(high) and verdict == "faster"


def test_previous_rung_skips_the_one_without_result(demonstration: tuple[Path, str, list[Path]]) -> None:
    # Rung 4 (image) is unsupported: rung 5 is compared with the faster of the two forms of rung 3.
    value = rows_of(demonstration[1], "over previous rung", "local_memory")[0]["over previous rung"]
    assert float(value.split()[0]) == pytest.approx(21 / 14, rel=0.03)


def test_controls_and_peers_have_no_previous_rung(demonstration: tuple[Path, str, list[Path]]) -> None:
    for name in ("row_major_float4", "host_loop", "numpy"):
        assert rows_of(demonstration[1], "over previous rung", name)[0]["over previous rung"] == "–"


def test_missing_first_rung_is_said(tmp_path: Path) -> None:
    records = [
        data.record("a", rung=1, status=Status.CRASHED), data.record("b", 0.03, rung=2), data.record("c", 0.02, rung=3)
    ]  # fmt: skip
    markdown = report(tmp_path, records)
    assert "**The first rung, `a`, has no result (crashed)**: speed-ups refer to `b`" in markdown


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


def test_contended_and_modelled_are_never_best(tmp_path: Path) -> None:
    records = [
        data.record("slow", 0.05, rung=1),
        data.record("loaded", 0.01, rung=2, status=Status.CONTENDED),
        data.record("simulated", 0.001, rung=3, provenance="modelled"),
    ]
    (ladder,) = ladders([data.store(tmp_path / "results", records)])
    assert ladder.best and ladder.best.label == "slow"
    markdown = report(tmp_path, records)
    assert rows_of(markdown, "over previous rung", "loaded")[0]["time, ms"].endswith("‡")
    assert "‡ contended" in markdown
    assert "`simulated [modelled]`" in markdown
    assert rows_of(markdown, "over previous rung", "simulated [modelled]")[0]["time, ms"] == "–"


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


def test_impossible_comes_before_wrong() -> None:
    assert ORDER[:2] == (Status.IMPOSSIBLE, Status.WRONG)
    assert set(ORDER) == {status for status in Status if not status.measured}


def test_problem_and_variant_bound_are_apart(demonstration: tuple[Path, str, list[Path]]) -> None:
    problem = rows_of(demonstration[1], "of problem bound (measured)", "row_major")[0]
    variant = rows_of(demonstration[1], "what binds it", "row_major")[0]
    assert "what binds it" not in problem and "share of problem bound (measured)" not in variant
    share = float(problem["share of problem bound (measured)"].split()[0])
    assert float(variant["DRAM"].strip("*")) == pytest.approx(4 * share, rel=0.01)
    assert (variant["what binds it"], variant["traffic"], problem["bound by"]) == ("DRAM", "modelled", "DRAM")


def test_terms_are_shares_of_the_measured_time_and_the_largest_is_bold(
    demonstration: tuple[Path, str, list[Path]],
) -> None:
    row = next(row for row in rows_of(demonstration[1], "what binds it", "row_major") if "local memory" in row)
    traffic = data.levels(dram_read=4, l2_bytes=6, global_read=24)
    time = time_of(next(r for r in data.gpu_ladder() if r.identity.variant == "row_major"))
    for header, nbytes in (("L2", traffic.l2_bytes), ("issued (L1)", traffic.issued_bytes)):
        assert nbytes
        ceiling = data.GPU_CEILINGS[{"L2": "l2_read", "issued (L1)": "l1_read"}[header]]
        assert float(row[header]) == pytest.approx(100 * nbytes / ceiling / time, abs=0.06), header
    assert row["local memory"] == "–" and row["DRAM"].startswith("**") and row["what binds it"] == "DRAM"
    assert [header for header in row if row[header].startswith("**")] == ["DRAM"]
    with_exp = rows_of(demonstration[1], "what binds it", "with_exp")[0]
    assert with_exp["special"] != "–" and with_exp["global atomics"] != "–", "the faster special ceiling"
    matrix = rows_of(demonstration[1], "what binds it", "matrix_units")[0]
    assert matrix["FP32 FMA"] == "–" and matrix["TF32 matrix"] != "–"
    assert not rows_of(demonstration[1], "what binds it", "no_model"), "no traffic, no variant bound"


def test_traffic_that_cannot_be_is_an_error_of_the_variant_bound_alone(tmp_path: Path) -> None:
    too_much = data.record("a", 0.03, rung=1, traffic=data.levels(dram_read=5))
    assert too_much.status == Status.OK
    markdown = report(tmp_path, [too_much])
    assert rows_of(markdown, "what binds it", "a")[0]["DRAM"].startswith("**ERROR: 16")
    assert "the traffic is less than modelled or counted" in markdown
    assert "ERROR" not in markdown.split("\n## ")[0]


def test_binding_table_of_a_cpu_has_no_issued_bytes(tmp_path: Path) -> None:
    traffic = data.levels(global_read=24, local_read=8)
    markdown = report(tmp_path, [data.record("a", rung=1, traffic=traffic)])
    row = rows_of(markdown, "what binds it", "a")[0]
    assert not {"issued (L1)", "local memory"} & set(row) and "DRAM" in row
    assert "merges the accesses of neighbouring work-items" in markdown and "Warm cache" not in markdown
    gpu = report(tmp_path, [data.record("a", 2e-4, rung=1, device=data.GPU, ceilings=data.GPU_CEILINGS)])
    assert "merges the accesses" not in gpu


def test_warm_cache_is_said_where_the_dram_term_is_left_out(tmp_path: Path) -> None:
    traffic = data.levels(l2_bytes=2)
    markdown = report(tmp_path, [data.record("a", 0.003, rung=1, cache="warm", traffic=traffic)])
    assert "Warm cache: the inputs lie in a cache at the start, so the DRAM term is left out" in markdown
    row = rows_of(markdown, "what binds it", "a")[0]
    assert "DRAM" not in row and row["what binds it"] == "L2"
    assert "Warm cache: DRAM bounds nothing" in markdown
    bytes_only = report(tmp_path, [data.record("a", 0.003, rung=1, cache="warm", work=data.ONLY_BYTES, traffic=None)])
    assert "without the DRAM term (warm cache) no measured ceiling applies" in bytes_only


def test_units_have_problem_bounds_of_their_own(demonstration: tuple[Path, str, list[Path]]) -> None:
    note = next(line for line in demonstration[1].splitlines() if "TF32 matrix" in line and "Problem bound" in line)
    assert "FP32 FMA 9.68 µs" in note and "TF32 matrix 1.43 µs" in note and "name another unit" in note


def drawn(folder: Path, part: str) -> list[str]:
    """Return all text of the one roofline whose file name contains ``part``."""
    (file,) = folder.glob(f"*{part}*roofline.svg")
    return [element.text or "" for element in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]


def test_roofline_has_the_levels_and_units_that_exist(demonstration: tuple[Path, str, list[Path]]) -> None:
    folder = demonstration[0] / "my report"
    gpu = drawn(folder, "tiles")
    for roof in ("DRAM 4.50 TB/s", "L2 7.50 TB/s", "issued (L1) 29.0 TB/s", "local memory 31.0 TB/s",
                 "FP32 FMA 62.0 TFLOP/s", "TF32 matrix 420 TFLOP/s", "compulsory 1.50 FLOP/B"):  # fmt: skip
        assert roof in gpu, roof
    assert not any("L3" in text or "INT32" in text or "dp4a" in text for text in gpu)
    cpu = drawn(folder, "rows-quick-opencl-pocl-0-fp32")
    assert "L3 90.0 GB/s" in cpu and "L2 300 GB/s" in cpu and not any("local memory" in text for text in cpu)
    assert "useful GFLOP/s (measured)" in cpu and "useful TFLOP/s (measured)" in gpu
    integer = drawn(folder, "argmin-quick-opencl-nvidia")
    assert "INT32 mad 33.0 Top/s" in integer and "dp4a 130 Top/s" in integer and "useful Top/s (measured)" in integer
    assert not any("FP32" in text or "FLOP" in text for text in integer)
    assert "dp4a" not in drawn(folder, "argmin-quick-opencl-pocl"), "no variant there names it"


def test_points_stand_at_useful_operations_per_byte_of_each_level(tmp_path: Path) -> None:
    (ladder,) = ladders([data.store(tmp_path / "results", data.gpu_ladder())])
    slopes = dict.fromkeys(("dram", "l2_read", "l1_read", "local_read"), 1e12)
    points = {row.label: _point(row, ladder, data.WORK, slopes) for row in ladder.measured}
    row = points["local_memory"]
    assert row.rate == pytest.approx(6e8 / time_of(row.row.record))
    expected = {"dram": 6e8 / (4e8 + 8e5), "l2_read": 1.5, "l1_read": 1.5, "local_read": 0.75}
    assert row.intensities == pytest.approx(expected)
    assert points["no_model"].intensities == {} and "local_read" not in points["vectorized"].intensities
    without_l2 = _point(row.row, ladder, data.WORK, {"dram": 1e12})
    assert set(without_l2.intensities) == {"dram"}, "a level without a roof has no point"


@pytest.mark.parametrize(("cache", "device", "levels"), [
    ("cold", data.GPU, {"dram", "l2_read", "l1_read", "local_read"}),
    ("warm", data.GPU, {"l2_read", "l1_read", "local_read"}),
    ("cold", data.POCL, {"dram", "l2_read"}), ("warm", data.POCL, {"l2_read"}),
])  # fmt: skip
def test_points_are_only_where_the_level_bounds(tmp_path: Path, cache: str, device: str, levels: set[str]) -> None:
    traffic = data.levels(l2_bytes=2, global_read=3, local_read=1)
    record = data.record("a", 0.03, rung=1, cache=cache, device=device, traffic=traffic)
    (ladder,) = ladders([data.store(tmp_path / "results", [record])])
    slopes = dict.fromkeys(("dram", "l3_read", "l2_read", "l1_read", "local_read"), 1e12)
    assert set(_point(ladder.rows[0], ladder, data.WORK, slopes).intensities) == levels


def test_no_point_lies_above_its_roof(tmp_path: Path) -> None:
    records = [r for r in data.gpu_ladder() if r.variant_bound and not r.variant_bound.stale]
    (ladder,) = ladders([data.store(tmp_path / "results", records)])
    slopes = {"dram": 4.5e12, "l2_read": 7.5e12, "l1_read": 29e12, "local_read": 31e12}
    for row in ladder.measured:
        point = _point(row, ladder, data.WORK, slopes)
        assert all(point.rate <= slopes[level] * x for level, x in point.intensities.items()), row.label


def hardware_counts() -> list[Count]:
    """Counts of the GPU's rungs by hardware: row_major moves twice the DRAM bytes that it declares."""
    first, second, *_ = data.gpu_ladder()
    assert first.traffic and second.traffic
    seen = Traffic(flops=6e8, dram_read=2 * 16e8, dram_write=1.6e6, l2_bytes=9e8, provenance="counted")
    off = second.traffic.model_copy(update={"flops": 5e8, "provenance": "counted"})
    return [data.count(first, seen), data.count(second, off)]


def counted_report(tmp_path: Path, folder: Path, records: list[Record]) -> str:
    """Render records and a folder of counts, found from their common parent."""
    data.store(tmp_path / "stored" / "run", records)
    runs, counted = stored([tmp_path / "stored", folder])
    assert len(runs) == 1 and len(counted) == 1
    render(runs, tmp_path / "report.md", counted)
    return (tmp_path / "report.md").read_text()


def test_counted_dram_bytes_replace_modelled_ones_in_the_variant_bound_alone(tmp_path: Path) -> None:
    records = data.gpu_ladder()
    plain = report(tmp_path, records)
    folder = data.store_counts(tmp_path / "counts", hardware_counts())
    markdown = counted_report(tmp_path, folder, records)
    before, after = (rows_of(m, "what binds it", "row_major")[0] for m in (plain, markdown))
    assert (before["traffic"], after["traffic"]) == ("modelled", "counted")
    shares = [float(re.sub(r"[^\d.]", "", row["DRAM"])) for row in (before, after)]
    assert shares[1] == pytest.approx(2 * shares[0], rel=0.01) and "ERROR" in after["DRAM"]
    seconds = time_of(records[0])
    assert float(after["L2"]) == pytest.approx(100 * 9e8 / 7.5e12 / seconds, abs=0.06)
    assert after["issued (L1)"] == before["issued (L1)"], "what hardware does not tell stays modelled"
    problem = [rows_of(m, "share of problem bound (measured)", "row_major")[0] for m in (plain, markdown)]
    assert problem[0] == problem[1]
    beside = rows_of(markdown, "DRAM bytes (modelled)", "row_major")[0]
    assert beside["DRAM bytes (counted)"] == "3.20 GB" and beside["DRAM bytes (modelled)"] == "1.60 GB"
    assert beside["counted / modelled"] == "2.00"
    assert "DRAM bytes (modelled)" not in plain and "Counted work" not in plain
    assert "(counted or modelled traffic)" in markdown
    assert rows_of(markdown, "what binds it", "vectorized")[0]["traffic"] == "modelled"


def test_counted_traffic_keeps_the_unit_and_gives_peers_a_bound(tmp_path: Path) -> None:
    records = [r for r in data.gpu_ladder() if r.identity.variant in ("matrix_units", "library")]
    seen = Traffic(dram_read=4.1e8, dram_write=1e6, l2_bytes=5e8, provenance="counted")
    folder = data.store_counts(tmp_path / "counts", [data.count(r, seen) for r in records])
    markdown = counted_report(tmp_path, folder, records)
    row = rows_of(markdown, "what binds it", "matrix_units")[0]
    assert row["TF32 matrix"] == "1.5" and "FP32 FMA" not in row
    assert rows_of(markdown, "what binds it", "library")[0]["what binds it"] == "DRAM"
    assert rows_of(markdown, "DRAM bytes (modelled)", "library")[0]["DRAM bytes (modelled)"] == "–"


@pytest.mark.parametrize("change", ["parameters", "tunables", "devices", "variant", "profile", "chip", "no dram"])
def test_counts_of_another_case_are_not_joined(tmp_path: Path, change: str) -> None:
    (first, *_) = hardware_counts()
    other: dict[str, object] = {
        "parameters": {"points": 7}, "tunables": {"width": 4}, "devices": [data.POCL], "variant": "x", "profile": "k40m"
    }  # fmt: skip
    if change in other:
        first.identity = first.identity.model_copy(update={change: other[change]})
    if change == "no dram":
        assert first.counted
        first.counted = first.counted.model_copy(update={"dram_read": 0.0, "dram_write": 0.0})
    chip = "NVIDIA A100" if change == "chip" else ""
    markdown = counted_report(tmp_path, data.store_counts(tmp_path / "counts", [first], chip), data.gpu_ladder())
    assert rows_of(markdown, "what binds it", "row_major")[0]["traffic"] == "modelled"
    assert "DRAM bytes (modelled)" not in markdown and "## Counted work" in markdown


def test_counted_work_shows_every_quantity_and_verdict(tmp_path: Path) -> None:
    failed = data.count(data.record("a|b", device=data.GPU), Traffic()).model_copy(
        update={"verdict": Verdict.FAILED, "counted": None, "quantities": {}, "reason": "the tool | died"}
    )
    first, second = hardware_counts()
    first.stalls = {"long_scoreboard": 0.5, "no_instruction": 0.3, "wait": 0.1, "barrier": 0.06, "drain": 0.04}
    folder = data.store_counts(tmp_path / "counts", [first, second, failed])
    found = section(counted_report(tmp_path, folder, data.gpu_ladder()), "Counted work")
    good, bad = (rows_of(found, "farthest from 1", name)[0] for name in ("row_major", "column_major"))
    assert good["verdict"] == "agrees" and good["farthest from 1"] == "flops 1.000"
    assert bad["verdict"] == "**deviates**" and bad["farthest from 1"] == "flops 1.200" and bad["tool"] == "ncu 1.0"
    rows = {row["quantity"]: row for row in rows_of(found, "quantity", "row_major")}
    assert rows["dram read"]["declared"] == "1.60 GB" and rows["dram read"]["counted"] == "3.20 GB"
    assert rows["dram read"]["ratio"] == "0.5000" and rows["dram read"]["verdict"] == "shown"
    assert rows["flops"]["declared"] == rows["flops"]["counted"] == "600 M"
    assert r"failed: the tool \| died" in found
    (waited,) = rows_of(found, "no instruction fetched", "row_major")
    assert waited["no instruction fetched"] == "30.0 %"
    assert waited["largest shares"] == "long scoreboard 50.0 %, no instruction 30.0 %, wait 10.0 %, barrier 6.0 %"


def test_a_path_with_neither_runs_nor_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results here"):
        stored([tmp_path])
    (tmp_path / "counts.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"environment\.json: cannot be read"):
        stored([tmp_path])


def test_peer_with_wall_alone_is_compared_by_wall(demonstration: tuple[Path, str, list[Path]]) -> None:
    row = rows_of(demonstration[1], "peer, time", "numpy")[0]
    assert row["clock"] == "wall"
    # the variant's wall time is 1.1 times its span in the synthetic data
    intel = 0.9
    assert float(row["`local_memory`, time"].split()[0]) == pytest.approx(14 * 1.1 * intel, rel=0.02)
    assert float(row["speed-up of the best variant"].split()[0]) == pytest.approx(90 / (14 * 1.1), rel=0.03)
    missing = rows_of(demonstration[1], "peer, time", "cdist")[0]
    assert missing["status"].startswith("**unavailable**: unavailable for a reason")


def test_no_common_clock_gives_no_ratio(tmp_path: Path) -> None:
    records = [data.record("device", 0.01, rung=1, clock="span"), data.record("peer", 0.1, role="peer", clock="wall")]
    markdown = report(tmp_path, records)
    row = rows_of(markdown, "peer, time", "peer")[0]
    assert row["status"] == "ok: no clock in common"
    assert "no clock in common" in markdown.split("\n## ")[0]


def test_samples_without_rounds_are_not_paired() -> None:
    base, other = data.record("a", 0.02), data.record("b", 0.01, n=9)
    assert base.timing and other.timing
    other.timing.rounds = []
    found = compare(base, other)
    assert found and found.ratio.value == pytest.approx(time_of(base) / time_of(other))


def test_precision_classes_never_share_a_table(demonstration: tuple[Path, str, list[Path]]) -> None:
    for head, *rows in tables(section(demonstration[1], "Results")):
        named = {cell.strip("*`") for row in rows for cell in row}
        assert not ("half" in named and "row_major" in named), head
    assert ", fp16" in demonstration[1] and ", fp32" in demonstration[1]


def test_layout_is_charged_in_full(tmp_path: Path) -> None:
    record = data.ladder(data.POCL)[1]
    row = rows_of(report(tmp_path, [record]), "incl. layout", "column_major")[0]
    assert float(row["GFLOP/s incl. layout"]) == pytest.approx(0.6 / (0.4 + 0.03), rel=0.01)
    lower = record.model_copy(
        update={"metric": MetricValue(tag="t", unit="ms", direction="lower", value=30, low=29, high=31)}
    )
    row = rows_of(report(tmp_path, [lower]), "incl. layout", "column_major")[0]
    assert float(row["ms incl. layout"]) == pytest.approx(430, rel=0.01)


def test_published_share_of_its_own_bound_is_computed(demonstration: tuple[Path, str, list[Path]]) -> None:
    stated = rows_of(demonstration[1], "published on", "row_major")[0]
    assert stated["published"] == "33.7 GFLOP/s" and stated["share, published"] == "15.0 %"
    profile = load_profile("hd5870")
    assert profile.bandwidth and profile.fp32
    bound = max(data.WORK.bytes / profile.bandwidth, data.WORK.flops / profile.fp32)
    expected = 100 * 33.7e9 / (data.WORK.flops / bound)
    assert stated["share, modelled"] == f"{expected:.1f} %"
    assert stated["published on"] == profile.title
    other, unknown = rows_of(demonstration[1], "published on", "image")
    assert other["share, published"] == "–" and other["share, modelled"] != "–"
    assert unknown["published on"] == "no_such_device" and unknown["share, modelled"] == "–"
    assert "Catanzaro 2011, figure 7" in demonstration[1]


def test_published_times_are_shared_the_other_way_round(tmp_path: Path) -> None:
    entry = {"problem": "rows", "variant": "a", "device": "hd5870", "value": 10.0, "unit": "ms"}
    environment = data.environment()
    environment["workloads"]["demo"]["published"] = [entry]
    metric = MetricValue(tag="t", unit="ms", direction="lower", value=50.0, low=49, high=51)
    record = data.record("a", 0.05, rung=1, noise=0.0).model_copy(update={"metric": metric})
    (ladder,) = ladders([data.store(tmp_path / "results", [record], environment)])
    (figure,) = ladder.published
    assert figure.share == pytest.approx(data.WORK.bytes / 153.6e9 / 0.010)


def test_published_in_another_unit_gets_no_share(tmp_path: Path) -> None:
    environment = data.environment()
    environment["workloads"]["demo"]["published"] = [{**data.PUBLISHED[0], "unit": "GB/s"}]
    (ladder,) = ladders([data.store(tmp_path / "results", [data.record("row_major", rung=1)], environment)])
    assert [figure.share for figure in ladder.published] == [None]


def test_missing_ceilings_are_said_and_give_no_share(tmp_path: Path) -> None:
    records = [data.record("a", rung=1, ceilings=None), data.record("b", 0.02, rung=2, ceilings=None)]
    markdown = report(tmp_path, records, ceilings={}, profiles={}, probes=[])
    assert f"**No measured ceilings for `{data.POCL}`**" in markdown
    assert "No problem bound: this device has no measured ceilings" in markdown
    assert not (tmp_path / "report").exists() and "](" not in markdown
    assert "faster" in rows_of(markdown, "over previous rung", "b")[0]["speed-up over first rung"]


def test_moved_probe_is_flagged_and_a_steady_one_is_not(tmp_path: Path) -> None:
    steady = report(tmp_path, [data.record("a")])
    assert "moved" not in section(steady, "Ceilings")
    probes = [data.probe(data.POCL, "before", 1.0), data.probe(data.POCL, "after", 0.85)]
    moved = section(report(tmp_path, [data.record("a")], probes=probes), "Ceilings")
    assert "**A ceiling moved by more than 10.0 %**" in moved and "**85.0 % moved**" in moved
    assert "`dram_read` after the run: 85.0 %" in moved


def test_ceilings_tell_shape_spread_age_and_datasheet(demonstration: tuple[Path, str, list[Path]]) -> None:
    found = section(demonstration[1], "Ceilings")
    row = rows_of(found, "datasheet", "dram_read")[0]
    assert row["measured"] == "**40.0 GB/s**" and row["datasheet"] == "80.0 GB/s"
    assert row["reached"] == "50.0 %" and row["95 % interval"] == "39.6 – 40.4 GB/s"
    assert "won by chunked 1, width 16; the worst of 2 shapes reached 12.0 %" in found
    assert "30 min before the run's start" in found
    for date, age in (("2026-11-01T12:00:00", "**20 days** before"), ("2026-11-21T12:04:00", "4.0 min after")):
        assert f"{age} the run's start" in old_age({data.POCL: data.ceilings(data.POCL, f"{date}+00:00")})
    assert rows_of(found, "theory", "launch_latency")[0]["measured"] == "**4.00 µs**"
    assert {row["ceiling"] for row in all_rows(found)} == {f"`{name}`" for name in data.CEILINGS | data.GPU_CEILINGS}


def all_rows(markdown: str) -> list[dict[str, str]]:
    """Return the rows of all tables of ceilings."""
    found = [table for table in tables(markdown) if table[0][0] == "ceiling"]
    return [dict(zip(head, row, strict=True)) for head, *rows in found for row in rows]


def test_ceilings_above_theory_are_flagged_and_the_fields_may_be_missing(tmp_path: Path) -> None:
    found = section(report(tmp_path, [data.record("a")]), "Ceilings")
    theories = {row["theory"] for row in rows_of(found, "theory", "fp32_fma")}
    assert theories == {"384 GFLOP/s **exceeded**", "66.9 TFLOP/s"}
    assert found.count("> **A ceiling is above its theory**: `fp32_fma`") == 2  # both CPUs, not the GPU
    bare = data.ceilings(data.POCL)
    for name in ("theory", "above_theory"):
        del bare["entries"]["fp32_fma"][name]
    found = old_age({data.POCL: bare})
    assert "theory" not in found.lower() and "`fp32_fma`" in found
    told = data.ceilings(data.POCL) | {"absent": {"dp4a": "the device has no such instruction"}}
    told["entries"]["fp32_fma"]["theory_basis"] = "2 cores x 16 lanes"
    found = old_age({data.POCL: told})
    assert (
        "`dp4a`: not measured: the device has no such instruction." in found and "Theory: 2 cores x 16 lanes." in found
    )


def old_age(ceilings: dict[str, object]) -> str:
    """Return the ceilings section of a run with these ceilings."""
    from perfport.report.parts.machines import ceilings_section

    run = Run.__new__(Run)
    run.folder, run.records, run.environment = Path(), [], data.environment(ceilings=ceilings)
    return ceilings_section(run, set())


def test_environment_flags_dirty_commit_and_one_chip(tmp_path: Path) -> None:
    markdown = report(tmp_path, [data.record("a")])
    assert "`0123abcd`, **with uncommitted changes**" in markdown
    assert f"`{data.INTEL}`, `{data.POCL}` are **the same chip**" in markdown
    devices = {data.POCL: data.device(data.POCL), data.INTEL: data.device(data.INTEL, "another")}
    clean = report(tmp_path, [data.record("a")], devices=devices, commit={"hash": "0123abcd", "dirty": False})
    assert "uncommitted" not in clean and "same chip" not in clean


def test_device_comparison_has_every_variant_and_device(demonstration: tuple[Path, str, list[Path]]) -> None:
    found = section(demonstration[1], "Comparison of devices")
    row = rows_of(found, data.POCL, "image")[0]
    assert row[f"`{data.POCL}`"] == row[f"`{data.INTEL}`"] == "unsupported"
    best = rows_of(found, data.POCL, "local_memory")[0]
    assert re.fullmatch(r"\*\*7\d\.\d % · 1[34]\.\d ms\*\*", best[f"`{data.POCL}`"])


def test_failures_hold_reason_log_and_command(demonstration: tuple[Path, str, list[Path]]) -> None:
    folder, markdown, _ = demonstration
    failures = section(markdown, "Failures")
    records = data.demonstration()
    for record in records:
        command = f"perfport show {record.key} --rerun --results {folder / 'results'}"
        assert (command in failures) == (not record.status.measured), record.identity.variant
    assert "does not compile: expected ';' | found ')'" in failures
    assert "relative L2 0.50" in failures
    log = failures[failures.index("<details>") : failures.index("</details>")]
    assert "lines left out" in log and "error | here" in log and log.count("````") == 2


def test_run_folder_with_a_space_is_quoted(tmp_path: Path) -> None:
    run = data.store(tmp_path / "my results", data.every_status())
    render([run], tmp_path / "report.md")
    assert f"--results '{tmp_path / 'my results'}'" in (tmp_path / "report.md").read_text()


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


def test_variants_in_several_settings_are_told_apart(tmp_path: Path) -> None:
    records = [data.record("a", 0.05 - 0.001 * i, rung=1, tunables={"width": i, "unroll": 1}) for i in (1, 2, 12)]
    (ladder,) = ladders([data.store(tmp_path / "results", records)])
    assert [row.label for row in ladder.rows] == ["a [width=1]", "a [width=2]", "a [width=12]"]
    assert ladder.first_rung and ladder.first_rung.label == "a [width=12]"


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


def test_ten_thousand_records(tmp_path: Path) -> None:
    templates = [data.record(f"v{i}", 0.05 / (1 + 0.1 * i), rung=i) for i in range(20)]
    records = []
    for number in range(500):
        for i, template in enumerate(templates):
            identity = template.identity.model_copy(update={"parameters": {"n": number}})
            records.append(template.model_copy(update={"identity": identity, "key": f"{number}-{i}"}))
    run = data.store(tmp_path / "results", records)
    files = render([run], tmp_path / "report.md")
    markdown = files[0].read_text()
    assert len(run.records) == 10_000 and "10000 cases: 10000 ok" in markdown
    assert len(files) == 1 + 2 * most_plotted(10_000)
    assert f"Plots are drawn for the first {most_plotted(10_000)} of 500 ladders" in markdown
    assert len(rows_of(markdown, "over previous rung", "v7")) == 500


def test_empty_run_and_bare_environment(tmp_path: Path) -> None:
    run = data.store(tmp_path / "results", [], {"schema_version": SCHEMA_VERSION})
    render([run], tmp_path / "report.md")
    assert "no cases" in (tmp_path / "report.md").read_text()
    bare = data.store(tmp_path / "bare", data.demonstration(), {"schema_version": SCHEMA_VERSION})
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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (1234.6, "1235"),
        (9.999, "10.00"),
        (0.01234, "0.0123"),
        (1.5e9, "1.50e+09"),
        (float("nan"), "–"),
        (None, "–"),
    ],
)
def test_significant_digits(value: float | None, expected: str) -> None:
    assert significant(value) == expected or (value == 9.999 and significant(value) in ("10.0", "10.00"))


def test_quantities_have_units_and_line_up() -> None:
    assert column([1.234, None, 56.78]) == ["1.23", "–", "56.78"]
    assert seconds(0.0123) == "12.30 ms" and seconds(None) == "–"
    assert time_scale([2e-6, 3e-6, 5.0]) == (1e6, "µs")
    assert scaled(40e9, "B/s") == "40.0 GB/s"
    assert percent(0.0012) == "0.12 %" and percent(0.5) == "50.0 %"
    assert interval(Interval(value=1.012, low=0.99, high=1.02)) == "1.01 (0.99–1.02)"


def test_markdown_escapes() -> None:
    assert text("a_b _c_ *d* <e>") == r"a_b \_c\_ \*d\* &lt;e>"
    assert code("a`b") == "``a`b``" and code("`a`") == "`` `a` ``" and code("") == "–"
    assert fence("```\nx").startswith("````text\n") and details("<b>", "x").count("&lt;b&gt;") == 1
    assert cells(table(["h|1", "h2"], [["a|b", ""], ["c", "d"]], "ll").splitlines()[2]) == [r"a\|b", "–"]
    assert excerpt("\n".join(map(str, range(100)))).splitlines()[12] == "… 70 lines left out …"
