"""Names are text in every page, plot, table and terminal: no markup, no script, no formula, no terminal escape."""

from __future__ import annotations

import ast
import base64
import copy
import csv
import hashlib
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pytest
import report_data as data
import yaml
from history_data import night
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from perfport.cli.output import print_rows
from perfport.interop import exports
from perfport.judge.claims import Claim, evaluate
from perfport.judge.compare import Pair
from perfport.measure.ceilings.clpeak import Peer
from perfport.measure.ceilings.survey import read
from perfport.model.record import Failure, Instance
from perfport.model.untrusted import cell, line, printable, say
from perfport.nightly import history as nights
from perfport.nightly.finding import Finding, Judgement, Outcome
from perfport.nightly.place import series_key
from perfport.report.pages import ceilings as ceilings_page
from perfport.report.pages import check as check_page
from perfport.report.pages import claims, compare, convergence, explain, history, portability, run, stale, suite, table
from perfport.report.pages.junit import junit
from perfport.report.parts import web
from perfport.report.parts.plots import style, svg
from perfport.report.parts.view import FORMATS, View, as_csv
from perfport.report.viewer.document import LIBRARIES
from perfport.run.progress import RunProgress
from perfport.store.collection import Collection
from perfport.store.results import Run
from perfport.untimed.convergence import Convergence

SUITE = Path(str(exports.__file__)).parents[1]
VENDOR = SUITE / "report" / "viewer" / "vendor"
#: All that pages are made of. An image is a plot in the text; ``input`` searches the history.
TAGS = {
    "html", "head", "meta", "title", "style", "body", "section", "div", "p", "h1", "h2", "h3", "h4", "h5", "table",
    "thead", "tbody", "tr", "th", "td", "code", "pre", "em", "strong", "a", "img", "ul", "ol", "li", "blockquote",
    "details", "summary", "hr", "br", "s",
}  # fmt: skip
CHARTS = {"article", "h2", "span", "label", "input", "svg", "path", "circle", "text", "script"}
#: Not the names of 5000 characters: pages shorten them.
SHORT = {key: name for key, name in hostile.NAMES.items() if not key.startswith("long")}


def claim(text: str) -> Claim:
    """Return a claim with a text wherever it has one."""
    return Claim.model_validate({
        "id": "a", "statement": text, "source": text, "published": text, "problem": "x", "compare": "figure",
        "subject": {"variant": "x"}, "figure": f"extra.{text}", "at_least": 1, "judged_on": text,
    })  # fmt: skip


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of all hostile names."""
    return hostile.run(tmp_path_factory.mktemp("run") / "run")


def views(held: Run) -> dict[str, View]:
    """Return what every command on results shows."""
    collection = Collection([held])
    every = " ".join(SHORT.values())
    ledger = {record.identity.workload: [_about(record.identity.workload)] for record in held.records[:6]}
    pairs = [
        Pair("runs", name, record, record, None) for name, record in zip(SHORT.values(), held.records, strict=False)
    ]
    findings = [
        Finding(series_key(held, record), outcome, record, why=every)
        for record, outcome in zip(held.records, list(Outcome) * 3, strict=False)
    ]
    lines = Convergence(
        workload=every, problem=every, variant=every, lines={every: 1}, common=1, total=2, convergence=1.0
    )
    return {
        "table": table.view(collection), "claims": claims.view(evaluate(ledger, collection), collection),
        "portability": portability.view(collection, collection.places, every), "stale": stale.view(collection, {}),
        "compare": compare.view("runs", every, every, pairs), "convergence": convergence.view([lines]),
        "check": check_page.view(Judgement(held, every, findings)),
        "explain --suite": explain.ranking(_bounded(held)),
        **{f"explain {record.key}": explain.view(_bounded(held), record.key) for record in held.records},
    }  # fmt: skip


def _bounded(held: Run) -> Collection:
    """Return the cases of a run with bounds, without which there are no tables of them."""
    whole, run = data.record("a", 0.06), copy.copy(held)
    parts = {name: getattr(whole, name) for name in ("ceilings", "problem_bound", "variant_bound")}
    run.records = [record.model_copy(update=parts) for record in held.records]
    return Collection([run])


def _about(name: str) -> Claim:
    return claim(name).model_copy(update={"problem": name})


def is_shown(content: str) -> None:
    """Assert that text has no character that steers, hides or reorders."""
    wrong = hostile.PRINTABLE.sub("", content)
    assert wrong == "", [hex(ord(character)) for character in wrong[:5]]


def is_page(content: str, tags: set[str] = TAGS) -> hostile.Page:
    """Assert that HTML is whole and holds nothing but text, tables and plots; returns it."""
    is_shown(content)
    page = hostile.Page(content)
    assert page.tags <= tags and page.scripted == [] and page.open == []
    assert all(re.match(r"#|data:image/|[\w./%-]+$", reference) for reference in page.references), page.references
    return page


def is_markdown(content: str) -> None:
    """Assert that markdown holds no HTML but folded logs, even to a reader that lets HTML pass, and no foreign link."""
    is_shown(content)
    page = hostile.github(content)
    assert page.tags <= TAGS and page.scripted == []
    assert all(re.fullmatch(r"[\w./%-]+", reference) for reference in page.references), page.references
    assert "heading" not in page.headings and "table" in page.tags


@given(st.text())
def test_printable_text_is_xml_and_steers_nothing(text: str) -> None:
    shown = printable(text)
    is_shown(shown)
    ElementTree.fromstring(f"<a>{shown.replace('&', '&amp;').replace('<', '&lt;')}</a>".encode())
    assert printable(shown) == shown and "\n" not in line(text) and len(line(text)) <= 300


def test_escapes_go_whole_and_lines_stay() -> None:
    assert printable(f"a{hostile.ESCAPE}b\x1b[1;31mc\x1b(B\n\td") == "abc\n\td"
    assert printable("open \x1b]0;never closed\nnext\r\nlast") == "open \nnext \nlast", "hides its own line alone"


def test_every_view_is_text_in_every_format(held: Run) -> None:
    for name, view in views(held).items():
        assert view.rows, name
        is_markdown(view.render("markdown"))
        page = is_page(view.render("html"))
        assert "default-src 'none'" in page.policy, name
        is_shown(view.render("csv"))
        json.loads(view.render("json"))
        assert view.render("json").isascii() and set(FORMATS) == {"markdown", "html", "csv", "json"}


def test_no_cell_of_a_csv_is_a_formula(held: Run) -> None:
    for view in views(held).values():
        content = view.render("csv")
        for row in csv.reader(io.StringIO(content)):
            assert not any(re.match(r"\s*[=+@-]", text) and not _is_number(text) for text in row), row
    assert cell("=1+1") == "'=1+1" and cell("-1") == "'-1" and cell(-1) == -1 and cell("\t=1") == "'\t=1"
    assert cell("\uff1d1") == "'\uff1d1" and cell("a=1") == "a=1"
    assert as_csv([{"=a": "x"}]).startswith("'=a")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_report_of_a_run_is_text(held: Run, tmp_path: Path) -> None:
    page, *plots = run.render([held], tmp_path / "report.md")
    is_markdown(page.read_text())
    assert plots == []


def test_the_rarer_parts_of_a_report_are_text(tmp_path: Path) -> None:
    """Terms of bounds, instances, kernels, outputs, ceilings with units and shapes, profiles, logs."""
    every = " ".join(SHORT.values())
    held = data.store(tmp_path / "run", [data.record("a", 0.05, rung=1), data.record("b", 0.04, role="peer")])
    for record in held.records:
        assert record.timing and record.variant_bound and record.problem_bound and record.verification
        for bound in (record.variant_bound, record.problem_bound):
            bound.terms, bound.binding = {every: 0.01, "dram": 0.001}, every
        instance = {"samples": record.timing.span, "summary": record.timing.summary["span"]}
        record.timing.instances = {name: Instance.model_validate(instance) for name in (every, "b")}
        record.identity.inputs = {every: 1, "b": 2}
        record.timing.kernels = {every: 0.01, "b": 0.02}
        record.verification.outputs = {every: next(iter(record.verification.outputs.values()))}
        record.failure = Failure(reason=every, log=f"{every}\n```\n</details>\n<script>")
        record.options, record.title, record.source = [every], every, every
    (entry, *_), of = [*data.ceilings(data.POCL)["entries"].values()], data.ceilings(data.POCL)
    hostile_entry = {**entry, "unit": every, "shape": {every: every}, "theory": 1e12, "theory_basis": every}
    of |= {"entries": {every: hostile_entry, "dram_read": entry}, "absent": {every: every}, "date": every}
    profile = {"name": every, "title": every, "bandwidth": 1e9, "fp32": 1e9}
    held.environment |= {"ceilings": {data.POCL: of, every: of}, "profiles": {data.POCL: profile}}
    page, *plots = run.render([held], tmp_path / "report.md")
    is_markdown(page.read_text())
    assert "By instance" in page.read_text() and "What binds each variant" in page.read_text()
    for plot in plots:
        ElementTree.parse(plot)


def test_the_page_of_ceilings_is_text(tmp_path: Path) -> None:
    committed = Path(__file__).parents[2] / "results" / "committed" / "ceilings"
    survey = next(survey for survey in read([committed]) if survey.ceilings.entries)
    every = " ".join(SHORT.values())
    first = next(iter(survey.ceilings.entries.values()))
    first = first.model_copy(update={"unit": every, "shape": {every: every}, "theory_basis": every})
    ceilings = survey.ceilings.model_copy(
        update={"entries": {**survey.ceilings.entries, "dram_read": first, every: first}, "absent": {every: every}}
    )
    changed = dict.fromkeys(("id", "chip", "platform", "platform_version", "name", "driver"), every)
    peer = Peer(program=every, version=every, status=every, reason=every)
    device = survey.device.model_copy(update=changed)
    survey = survey.model_copy(update={"device": device, "ceilings": ceilings, "peer": peer, "commit": {"hash": every}})
    page, *plots = ceilings_page.render([survey, survey], tmp_path / "out" / "ceilings.md")
    is_markdown(page.read_text())
    assert plots and all(plot.parent == tmp_path / "out" / "ceilings" for plot in plots)


def test_a_figure_is_xml_whatever_is_written_in_it() -> None:
    with style(), pytest.warns(UserWarning, match="missing from font"):
        figure = Figure()
        figure.text(0.1, 0.1, "a\x0b\x1b[2J]]><b>")
        drawn = svg(figure)
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.tag.endswith("}text")]
    assert texts == ["a ]]><b>"]


def test_tables_in_a_terminal_are_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A name with a line break is no row of its own."""
    name = f"a\nfaster   1000 ×{hostile.ESCAPE}"
    print_rows([{"name": name, "rate": 1.0}], as_json=False)
    held = hostile.run(tmp_path / "run", {"a": name})
    with RunProgress(1) as progress:
        progress.say(f"{hostile.ESCAPE}a")
        progress.record(held.records[0])
    for printed in (*capsys.readouterr(), run.glance([held])):
        is_shown(printed)
        assert not re.search("^faster *1000", printed, re.M), printed


def test_the_suite_report_is_text_and_every_page_can_be_reached(held: Run, tmp_path: Path) -> None:
    ledger = {name: [_about(name)] for name in list(SHORT.values())[:8]}
    files = suite.render(Collection([held]), ledger, [], tmp_path / "suite.md")
    reached = set()
    for file in files:
        if file.suffix == ".md":
            is_markdown(file.read_text())
            for target in hostile.github(file.read_text()).references:
                assert (file.parent / target).exists(), (file, target)
                reached.add((file.parent / target).resolve())
    assert {file.resolve() for file in files} - reached <= {tmp_path / "suite.md"}
    names = {case["variant"] for ladder in is_viewer(tmp_path / "suite.html")["ladders"] for case in ladder["cases"]}
    assert names == {printable(name) for name in hostile.NAMES.values()}


def is_viewer(file: Path) -> dict[str, Any]:
    """Assert that the suite's page is whole, runs its own scripts alone, and holds text; returns its data."""
    content = file.read_text()
    page = hostile.Page(content)
    assert page.scripted == [] and page.open == [] and page.references == []
    scripts = re.findall(r"<script>(.*?)</script>", content, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = page.policy.partition("script-src ")[2].split()
    assert allowed == [f"'sha256-{each}'" for each in hashes] and "default-src 'none'" in page.policy
    *libraries, own = scripts
    for library in libraries:
        assert library in {(VENDOR / name).read_text() for name in LIBRARIES}
        content = content.replace(library, "")
    is_shown(content)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", own)
    held = re.findall(r'<script type="application/json" id="data">(.*?)</script>', content, re.DOTALL)
    assert len(held) == 1 and "<" not in held[0]
    return dict(json.loads(held[0]))


def test_workloads_called_as_other_pages_keep_theirs(tmp_path: Path) -> None:
    """``claims``, ``predictions`` and the summary's own name are pages of the report, too."""
    names = {"claims": "claims", "suite": "suite", "html": "suite.html", "predictions": "predictions"}
    held = hostile.run(tmp_path / "run", names)
    files = suite.render(Collection([held]), {}, [], tmp_path / "out" / "suite.md")
    assert len({str(file).lower() for file in files}) == len(files)
    assert set(is_viewer(tmp_path / "out" / "suite.html")["workloads"]) == set(names.values())


def test_plots_are_valid_xml_with_names_as_text(tmp_path: Path) -> None:
    names = {key: hostile.NAMES[key] for key in ("script", "cdata", "control", "no xml", "escape", "bidi", "entity")}
    held = hostile.run(tmp_path / "run", names, plots=True)
    for record in held.records:
        record.identity.workload, record.identity.problem, record.identity.preset = "w", "p", "quick"
    files = [
        *run.render([held], tmp_path / "report.md"),
        *suite.render(Collection([held]), {}, [], tmp_path / "suite.md"),
    ]
    plots = [file for file in files if file.suffix == ".svg"]
    assert len(plots) >= 4
    for plot in plots:
        is_shown(plot.read_text())
        root = ElementTree.fromstring(plot.read_bytes())
        local = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert not local & {"script", "image", "a", "foreignObject"}
    shares = ElementTree.parse(next(file for file in plots if file.name.endswith("share.svg")))
    assert any("<script>alert(1)</script>" in (element.text or "") for element in shares.iter())


def test_junit_is_valid_xml_with_a_case_for_each(held: Run) -> None:
    findings = [
        Finding(series_key(held, record), Outcome.WRONG, record, why=name)
        for record, name in zip(held.records, hostile.NAMES.values(), strict=True)
    ]
    content = junit(Judgement(held, "base", findings))
    is_shown(content)
    root = ElementTree.fromstring(content.encode())
    cases = [(each.get("name"), each.get("classname")) for each in root.iter("testcase")]
    assert len(set(cases)) == 1 + len(hostile.NAMES), "and whether enough have a verdict"


def test_the_page_of_a_history_runs_its_own_script_alone(tmp_path: Path) -> None:
    for number in range(3):
        held = night(number, np.array([0.01] * 2), failed=(1,) if number == 2 else ())
        held.series = [_series(name) for name in ("<script>alert(1)</script>", f"a{hostile.ESCAPE}\"'\u202e")]
        held.driver = [f"{number} </title><script>alert(2)</script>\x00"] * 2
        held.started = f"2026-01-0{number + 1}<b>"
        nights.store(held, tmp_path / "nights")
    (tmp_path / "nights" / "<img src=x>.json").write_text("{")
    past = nights.History(tmp_path / "nights")
    content = history.page(past, list(past.series.values()))
    page = is_page(content, TAGS | CHARTS)
    (script,) = re.findall(r"<script>(.*?)</script>", content, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"script-src 'sha256-{digest}'" in page.policy and "'unsafe-inline'" not in page.policy.split("script-src")[1]
    )
    is_markdown(history.view(past, list(past.series.values())).markdown)


def _series(name: str) -> str:
    what = ["nightly", name, name, {name: name}, name, {name: name}, [name], [name], "opencl", name, name]
    return json.dumps(what, sort_keys=True, separators=(",", ":"))


def test_markdown_is_rendered_without_html_links_and_images_of_others() -> None:
    page = (
        "# A\n\n<script>alert(1)</script>\n\n<b onclick=x>b</b> [a](javascript:x) [b](data:text/html,x) [c](file:///x) "
        "[d](https://a.example) [e](b.md) [f](vbscript:x) ![g](javascript:x) <javascript:x> [h]( JaVaScRiPt:x)\n\n"
        "<details>\n<summary>log <i></summary>\n\nbody\n\n</details>\n\n- a\n\n  <details>\n  <summary>in</summary>\n\n"
        "  b\n\n  </details>\n\n<details open onclick=x>\n"
    )
    found = hostile.Page(web.document("T", page, []))
    assert found.tags <= TAGS and found.scripted == [] and "script" not in found.tags and "b" not in found.tags
    assert found.references == ["https://a.example", "b.md"]
    made = web.document("T", page, [])
    assert made.count("<details>") == made.count("</details>") == 2 and "<summary>log &lt;i&gt;</summary>" in made


def test_exported_names_are_lines_and_none_is_lost(held: Run, tmp_path: Path) -> None:
    assert len(exports.measured(held)) == len(hostile.NAMES)
    for name in exports.measured(held):
        is_shown(name)
        assert "\n" not in name and len(name) < 320
    for form in exports.OF_ONE_RUN:
        (file,) = exports.export([held], form, tmp_path / f"{form}.json")
        is_shown(_unescaped(json.loads(file.read_text()), form))
    out, configuration = exports.export([held, held], "otava", tmp_path / "otava.csv")
    header, *_ = csv.reader(io.StringIO(out.read_text()))
    is_shown(out.read_text())
    (test,) = yaml.safe_load(configuration.read_text())["tests"].values()
    assert list(test["metrics"]) == header[3:] and not any(name.startswith(("=", "@", "+", "-")) for name in header)
    (p3,) = exports.export([held], "p3", tmp_path / "p3.csv")
    is_shown(p3.read_text())


def _unescaped(content: object, form: str) -> str:
    """Return the names of an export, as its reader prints them."""
    assert isinstance(content, dict | list)
    entries = content if isinstance(content, list) else content["benchmarks"]
    return "\n".join(str((each.get("metadata") or each)["name"]) + str(each.get("group", "")) for each in entries)


@pytest.mark.parametrize(
    "command", ["report", "table", "explain", "compare", "check", "history", "stale", "validate", "export"]
)
def test_no_command_prints_an_escape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    """Also where it fails, and says which name is why."""
    name = " ".join(SHORT[key] for key in ("escape", "control", "bidi", "no xml"))
    runs = hostile.raw(tmp_path / "results" / "one", name)
    hostile.raw(tmp_path / "results" / "two", name)
    monkeypatch.chdir(tmp_path)
    words = {
        "report": [runs], "table": [runs.parent, "--format", "csv"], "explain": [name, runs],
        "compare": [runs, tmp_path / "results" / "two"],
        "check": [runs, "--baseline", tmp_path / "results" / "two"], "history": ["add", runs, "--into", "nights"],
        "stale": [runs], "validate": [runs.parent], "export": [runs, "--format", f"a{hostile.ESCAPE}", "-o", "x"],
    }[command]  # fmt: skip
    data.call(monkeypatch, command, *words)
    for stream in capfd.readouterr():
        is_shown(stream)


def test_everything_is_printed_by_one_function(capsys: pytest.CaptureFixture[str]) -> None:
    """What other processes read is no text for a terminal: results of children go through pipes."""
    say(f"a{hostile.ESCAPE}\u202eb", error=True)
    assert capsys.readouterr().err == "ab\n"
    pipes = {"machine/discovery.py", "machine/trials.py", "untimed/child.py", "model/untrusted.py"}
    calls = {
        str(path.relative_to(SUITE))
        for path in SUITE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id == "print"
    }
    assert calls == pipes
