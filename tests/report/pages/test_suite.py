"""The suite report and the views behind it: byte-identical, self-contained, every number traceable to a record."""

from __future__ import annotations

import csv
import html
import html.parser
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import unquote

import history_data
import numpy as np
import pytest
import report_data as data

from perfport.judge.claims import Claim, Verdict
from perfport.judge.frames import Results
from perfport.judge.portability import portability
from perfport.model.errors import UsageError
from perfport.model.record import Record
from perfport.report.pages import table
from perfport.report.pages.suite import _carries, render
from perfport.report.parts.view import FORMATS
from perfport.store.collection import Collection
from perfport.store.ratios import time_of
from perfport.store.results import Run
from perfport.untimed import convergence
from perfport.untimed.convergence import Convergence

CLAIM = Claim.model_validate({
    "id": "local", "statement": "It is faster.", "source": "s", "problem": "rows", "compare": "speedup",
    "subject": {"variant": "local_memory"}, "reference": {"variant": "row_major"}, "at_least": 2,
})  # fmt: skip
CONVERGED = [
    Convergence(workload="demo", problem=p, variant="*", lines={"CUDA": 8}, common=7, total=10, convergence=None)
    for p in ("rows", "*")
]


def records() -> list[Record]:
    """Return the demonstration, with another device's parameters for one variant."""
    other = {"profile": "hd7970", "key": "f" * 16}
    return [*data.demonstration(), data.record("local_memory", 0.03, rung=5, **other)]


def made(folder: Path, run: Path | None = None) -> list[Path]:
    """Store the demonstration and write its report; returns the files."""
    found = Run(run) if run else data.store(folder / "results", records())
    return render(Collection([found]), {"demo": [CLAIM]}, CONVERGED, folder / "out" / "suite.md")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Path]]:
    """A report: its folder and its files by name."""
    folder = tmp_path_factory.mktemp("suite")
    return folder / "out", {file.name: file for file in made(folder)}


def test_summary_pages_claims_and_one_html_file(report: tuple[Path, dict[str, Path]]) -> None:
    folder, files = report
    assert {"suite.md", "demo.md", "claims.md", "suite.html", "overview.svg"} <= set(files)
    assert files["demo.md"].parent == folder / "suite"
    summary = files["suite.md"].read_text()
    order = ["What is best where", "In short", "Where work pays most", "Which claims hold", "What failed", "More"]
    places = [summary.index(f"## {title}") for title in order]
    assert places == sorted(places)
    folded = re.findall("<summary>(.*)</summary>", summary[places[-1] :])
    assert [title.split(":")[0] for title in folded] == [
        "Shares of the bound as a plot", "What carries over between devices", "Code convergence", "What ran",
        "Where the sources are inconsistent", "Provenance",
    ]  # fmt: skip
    for verdict in Verdict:
        assert re.search(rf"^- Claims, each on each device: .*\b\d+ {verdict.value}", summary, re.MULTILINE), verdict
    verdicts = summary[places[order.index("Which claims hold")] : places[order.index("What failed")]]
    assert all(f" {verdict.value} |" in verdicts for verdict in Verdict) and "| holds wherever judged " in verdicts
    assert "ERROR" in summary and "wrong" in summary  # alarms come first
    assert summary.index("> **ERROR") < places[0]


def test_what_is_not_judged_on_a_device_does_not_differ_there(tmp_path: Path) -> None:
    """A claim about GPUs has the GPU's verdict alone, beside two CPUs; what is true by construction has a column."""
    on_gpu = [
        data.record(name, seconds, device=data.GPU) for name, seconds in (("row_major", 0.06), ("local_memory", 0.014))
    ]
    run = data.store(tmp_path / "results", [*records(), *on_gpu])
    claims = [
        CLAIM.model_copy(update={"id": "about_gpus", "applies_to": ["gpu"]}),
        CLAIM.model_copy(update={"id": "must", "by_construction": "so built", "at_least": 0.1}),
    ]
    render(Collection([run]), {"demo": claims}, CONVERGED, tmp_path / "suite.md")
    lines = (tmp_path / "suite.md").read_text().splitlines()
    (header,) = (line for line in lines if "| holds wherever judged" in line)
    (row,) = (line for line in lines if "`about_gpus`" in line and "`must`" in line)
    cells = dict(zip(*([cell.strip() for cell in line.split("|")] for line in (header, row)), strict=True))
    assert cells["holds wherever judged"] == "`about_gpus`" and cells["by construction"] == "`must`"
    assert cells["differs or cannot be told"] == "0"


def test_same_results_same_bytes(tmp_path: Path) -> None:
    first = made(tmp_path / "a")
    second = made(tmp_path / "b", tmp_path / "a" / "results")
    assert [f.relative_to(tmp_path / "a") for f in first] == [f.relative_to(tmp_path / "b") for f in second]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))


def test_order_within_sets_of_a_process_changes_nothing(tmp_path: Path) -> None:
    data.store(tmp_path / "results" / "run", records())
    outputs = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        command = [
            sys.executable,
            "-m",
            "perfport.cli",
            "report",
            "--suite",
            tmp_path / "results",
            "-o",
            out / "suite.md",
        ]
        subprocess.run(
            command, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, timeout=240
        )
        outputs.append({file.relative_to(out): file.read_bytes() for file in out.rglob("*") if file.is_file()})
    assert outputs[0] == outputs[1] and len(outputs[0]) > 5


def test_every_link_of_every_page_resolves(report: tuple[Path, dict[str, Path]]) -> None:
    for file in report[1].values():
        if file.suffix == ".md":
            links = re.findall(r"\]\(([^)]*)\)", file.read_text())
            assert all((file.parent / unquote(link)).exists() for link in links), file


def test_every_plot_is_well_formed_and_linked(report: tuple[Path, dict[str, Path]]) -> None:
    pages = "".join(file.read_text() for file in report[1].values() if file.suffix == ".md")
    plots = [file for file in report[1].values() if file.suffix == ".svg"]
    assert {"demo-rows-shares.svg", "demo-rows-roofline.svg", "overview.svg"} <= {plot.name for plot in plots}
    assert not any("cascade" in plot.name for plot in plots), "of two chips"
    assert any("tuning" in plot.name for plot in plots)
    for plot in plots:
        ElementTree.fromstring(plot.read_bytes())
        assert plot.name in pages and b"mathdefault" not in plot.read_bytes()


class _Page(html.parser.HTMLParser):
    """Collects what a page refers to, and how its elements nest."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.references += [named[name] for name in ("src", "href") if name in named]
        self.ids |= {named["id"]} if "id" in named else set()
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_whole_and_fetches_nothing(report: tuple[Path, dict[str, Path]]) -> None:
    """What it shows of these results is tested with its parts (`tests/report/viewer`)."""
    content = report[1]["suite.html"].read_text()
    page = _Page()
    page.feed(content)
    assert page.open == [] and page.references == [] and page.ids == {"top", "main", "data"}
    assert "default-src 'none'" in html.unescape(content[:2000]) and 'name="viewport"' in content
    held = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', content, re.DOTALL)[0])
    keys = {case["key"] for ladder in held["ladders"] for case in ladder["cases"]}
    assert keys == {record.key for record in records()}


def test_text_of_records_cannot_break_the_page(tmp_path: Path) -> None:
    bad = data.record("</script><script>alert(1)</script> | `x`", 0.02, preset="a|b<i>")
    run = data.store(tmp_path / "results", [bad])
    files = render(Collection([run]), {}, [], tmp_path / "suite.md")
    content = files[-1].read_text()
    assert files[-1].suffix == ".html" and "<script>alert" not in content and "<i>" not in content
    page = _Page()
    page.feed(content)
    assert page.open == []


def test_every_measured_row_leads_to_its_record(tmp_path: Path) -> None:
    run = data.store(tmp_path / "results", records())
    by_key = {record.key: record for record in run.records}
    rows = table.rows(Results(Collection([run])))
    measured = [row for row in rows if row["provenance"] == "measured"]
    assert len(measured) == len(by_key)
    for row in measured:
        record = by_key[row["key"]]
        assert row["status"] == record.status.value and row["variant"] == record.identity.variant
        if row["seconds"] is not None:
            assert row["seconds"] == time_of(record) and row["seconds_low"] <= row["seconds"] <= row["seconds_high"]
            assert record.problem_bound is None or row["problem_share"] == record.problem_bound.share.value
    published = [row for row in rows if row["provenance"] == "published"]
    assert {row["variant"] for row in published} == {"row_major", "image"} and all(row["source"] for row in published)


def test_archival_devices_stand_beside_measured_ones(tmp_path: Path) -> None:
    shown = table.view(Collection([data.store(tmp_path / "results", data.ladder(data.POCL))]))
    line = next(row for row in shown.markdown.splitlines() if row.startswith("| AMD Radeon HD 5870"))
    bound = 6e8 / (data.WORK.bytes / 153.6e9) / 1e9
    assert f"{bound:.0f}" in line and "`image`" in line and f"{115.6 / bound:.1%}".replace("%", " %") in line
    assert "(modelled: datasheet)" in shown.markdown and "(modelled: published ceilings)" in shown.markdown
    assert "(published)" in shown.markdown and "(measured)" in shown.markdown


def test_of_many_settings_a_page_shows_some_and_says_so(tmp_path: Path) -> None:
    many = [
        data.record(name, t, parameters={"points": n}, preset=None, key=f"{name}{n}")
        for n in range(1, 9)
        for name, t in (("a", 0.02), ("b", 0.03))
    ]
    run = data.store(tmp_path / "results", many)
    render(Collection([run]), {}, [], tmp_path / "suite.md")
    page = (tmp_path / "suite" / "demo.md").read_text()
    assert "4 further settings: `perfport table --workload demo --problem rows`" in page
    assert page.count("Useful work of one execution") == table.MOST_SETTINGS + 1  # and of the problem above them


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("command", ["table", "crosstuning", "portability", "claims"])
def test_commands_answer_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, form: str
) -> None:
    data.store(
        tmp_path / "run",
        [data.record("local_memory", 0.02), data.record("local_memory", 0.03, profile="hd7970", key="0" * 16)],
    )
    assert data.call(monkeypatch, command, tmp_path, "--format", form) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)
    elif form == "csv":
        assert len(list(csv.DictReader(io.StringIO(out)))) >= 1
    else:
        assert out.startswith("# " if form == "markdown" else "<!DOCTYPE html>")


def test_markdown_of_a_view_refers_to_its_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = (data.POCL, data.INTEL, data.GPU)
    environment = data.environment(devices={id_: data.device(id_, chip=f"chip {id_}") for id_ in ids})
    data.store(tmp_path / "run", [data.record("a", 0.02, device=id_) for id_ in ids], environment)
    out = tmp_path / "pp.md"
    assert data.call(monkeypatch, "portability", tmp_path, "-o", out) == 0
    links = re.findall(r"!\[[^]]*\]\(([^)]*)\)", out.read_text())
    assert links and all((tmp_path / link).exists() for link in links)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("table", "--format", "pdf"), "--format: 'pdf' is not one of"),
        (("table", "--variant", "nothing"), "--variant: no variant in"),
        (("portability", "--platforms", "mine"), "--platforms: expected NAME=DEVICE"),
        (("portability", "--platforms", "mine=opencl:pocl:7"), "no results on 'opencl:pocl:7'"),
    ],
)
def test_bad_arguments_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: tuple[str, ...],
    complaint: str,
) -> None:  # fmt: skip
    data.store(tmp_path / "run", [data.record("a", 0.02)])
    assert data.call(monkeypatch, args[0], tmp_path, *args[1:]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("name", ["claims.md", "predictions.md", "suite.html"])
def test_the_summary_takes_the_name_of_no_file_beside_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"^--output: .*{name}: a file of this name is written beside"):
        render(Collection([data.store(tmp_path / "run", records())]), {}, [], tmp_path / "out" / name)
    assert not (tmp_path / "out").exists()


def test_headline_rows_are_at_the_size_of_the_class_or_marked(tmp_path: Path) -> None:
    """A GPU that ran the CPU's size, too, is at its own; what has no result of its size says which setting it is at."""
    small, middle, large = ({"points": n, "dims": 7} for n in (10, 20, 30))
    ran = [(data.POCL, small, 1e6), (data.POCL, middle, 2e6), (data.GPU, small, 1e6), (data.GPU, large, 3e6)]
    ran += [(data.INTEL, middle, 2e6)]
    records = [
        data.record(
            "a", 0.05, device=device, parameters=size, preset=None, ceilings=None,
            work=data.WORK.model_copy(update={"flops": flops}), key=f"{device}{flops}",
        )
        for device, size, flops in ran
    ]  # fmt: skip
    about = {"demo": {"title": "Demo", "problems": {"rows": {"headline": {"cpu": small, "gpu": large}}}}}
    run = data.store(tmp_path / "results", records, data.environment(workloads=about))
    render(Collection([run]), {}, [], tmp_path / "suite.md")
    summary = (tmp_path / "suite.md").read_text()
    lines = [line.split("|") for line in summary.splitlines() if line.startswith("| `demo/rows`") and " `a` " in line]
    settings = {cells[3].strip(" `"): cells[2].strip() for cells in lines if "○" in cells[2] or "points" in cells[2]}
    assert settings == {
        data.POCL: "no preset: dims=7, points=10", data.GPU: "no preset: dims=7, points=30",
        data.INTEL: "no preset: dims=7, points=20 ○",
    }  # fmt: skip
    assert "○ not the headline size" in summary
    page = (tmp_path / "suite" / "demo.md").read_text()
    every = page[page.index("<summary>Best variants") : page.index("## ")]
    assert "○" not in every, "a table of all settings marks none"


def test_the_command_finds_stored_convergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.store(tmp_path / "results" / "run", data.ladder(data.POCL))
    convergence.store(CONVERGED, tmp_path / "results" / convergence.FILE)
    out = tmp_path / "suite.md"
    assert data.call(monkeypatch, "report", "--suite", tmp_path / "results", "-o", out) == 0
    assert "70.0 %" in out.read_text()


def test_a_named_platform_set_and_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.store(tmp_path / "run", [data.record("a", 0.02), data.record("a", 0.02, device=data.INTEL)])
    out, exported = tmp_path / "pp.json", tmp_path / "pp.csv"
    args = ("--platforms", f"mine={data.POCL}", "--export", exported, "--format", "json", "-o", out)
    assert data.call(monkeypatch, "portability", tmp_path, *args) == 0
    found = json.loads(out.read_text())
    assert {(row["platform set"], row["platforms"]) for row in found} == {("mine", 1)}
    assert [row["platform"] for row in csv.DictReader(exported.open())] == [data.POCL]


def test_the_nights_of_a_history_are_in_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.store(tmp_path / "run", [data.record("a", 0.02)])
    for number in range(3):
        history_data.write_night(tmp_path / "nights", number, np.array([0.01]))
    out = tmp_path / "out" / "suite.md"
    assert (
        data.call(monkeypatch, "report", "--suite", tmp_path / "run", "-o", out, "--history", tmp_path / "nights") == 0
    )
    held = re.findall(r'id="data">(.*?)</script>', out.with_suffix(".html").read_text(), re.DOTALL)
    assert len(json.loads(held[0])["history"]["nights"]) == 3
    assert data.call(monkeypatch, "report", tmp_path / "run", "-o", out, "--history", tmp_path / "nights") == 2
    assert data.call(monkeypatch, "report", "--suite", tmp_path / "run", "-o", out, "--history", tmp_path / "no") == 2


def test_the_most_portable_variant_is_known_on_most_platforms(tmp_path: Path) -> None:
    """One that is newer than a platform's results may be it; one that is known on few of them may not."""
    seconds = {
        "old": {data.POCL: 0.4, data.INTEL: 0.4, data.GPU: 0.1}, "newer": {data.POCL: 0.02, data.INTEL: 0.02},
        "single": {data.POCL: 0.01},
    }  # fmt: skip
    records = [
        data.record(variant, time, device=device, **({"ceilings": data.GPU_CEILINGS} if device == data.GPU else {}))
        for variant, times in seconds.items()
        for device, time in times.items()
    ]
    devices = (data.POCL, data.INTEL, data.GPU)
    collection = Collection([data.store(tmp_path / "run", records, data.environment(devices))])
    shown = "\n".join(_carries(portability(collection), collection))
    (line,) = [line for line in shown.splitlines() if line.startswith("| `demo/")]
    assert [cell.strip() for cell in line.split("|")[3:7]] == ["3", "2", "`newer`", "2"], line
