"""Numbers that texts quote are those of the records; those of the project's own texts are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_data as data
from equal_variants import one_and_the_best_of_twenty

from perfport.model.record import Status
from perfport.report.parts.sweeps import crossings
from perfport.report.quotes import TEXTS, UNMEASURED, Quotes, texts
from perfport.run.sources import _changed_since
from perfport.store.ratios import compare

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "results" / "committed"
USUAL = [str(path.relative_to(ROOT)) for pattern in TEXTS for path in sorted(ROOT.glob(pattern))]


@pytest.fixture
def quotes(tmp_path: Path) -> Quotes:
    """A run of a ladder at three settings, and one of another device's parameters."""
    records = [
        data.record("slow", 0.02, preset="quick", tunables={"group": 32}, key="1", ceilings=None),
        data.record("slow", 0.01, preset="quick", tunables={"group": 64}, key="2", ceilings=None),
        data.record("slow", 0.005, preset="quick", tunables={"group": 32}, profile="hd7970", key="3", ceilings=None),
        data.record(
            "fast", 0.004, preset="quick", key="4", extra={"parts": {"a": 1.5, "b": 2.0}}, role="beyond", ceilings=None
        ),
        data.record("gone", preset="quick", status=Status.CRASHED, key="5"),
    ]
    for n, (slow, fast) in {1: (0.01, 0.02), 2: (0.02, 0.02), 4: (0.04, 0.02)}.items():
        common: dict[str, Any] = {"preset": "many", "parameters": {"n": n}, "ceilings": None}
        records += [data.record("slow", slow, key=f"s{n}", role="peer", **common)]
        records += [data.record("fast", fast, key=f"f{n}", role="beyond", **common)]
    data.store(tmp_path / "run", records, data.environment(defaults={data.POCL: {"demo/rows/slow": {"group": 32}}}))
    return Quotes(tmp_path)


def value(quotes: Quotes, queries: str) -> list[float]:
    """Return what queries ask for, in whole units of their scale times 10."""
    return [round(number, 1) for number in quotes.values("run", queries)]


def median(quotes: Quotes, key: str) -> float:
    """Return a record's time in milliseconds."""
    (found,) = (record for record in quotes.run("run").records if record.key == key)
    assert found.timing
    return round(1e3 * found.timing.summary["span"].median, 1)


def test_a_query_names_a_case(quotes: Quotes) -> None:
    assert value(quotes, "rows quick fast") == [median(quotes, "4")]
    assert value(quotes, "rows quick slow") == [median(quotes, "2")], "of several the fastest"
    assert value(quotes, "rows quick slow group=32; group=64; group= fast") == [
        median(quotes, key) for key in ("1", "2", "4")
    ]
    assert value(quotes, "rows quick slow tunables=default; tunables= profile=hd7970") == [
        median(quotes, "1"),
        median(quotes, "3"),
    ]
    assert value(quotes, "rows quick fast unit=us")[0] == pytest.approx(1e3 * median(quotes, "4"), rel=0.01)
    assert value(quotes, "rows many fast n=2; n=4") == [median(quotes, "f2"), median(quotes, "f4")]
    assert value(quotes, "problem=rows preset=quick role=own device=opencl:pocl:0") == [median(quotes, "4")]
    assert value(quotes, "rows quick fast value=extra.parts.a; value=extra.parts.a+extra.parts.b") == [1.5, 3.5]
    assert value(quotes, "rows quick fast value=extra.parts.b unit=% over value=extra.parts.a") == [133.3]


def test_ratios_are_those_of_reports(quotes: Quotes) -> None:
    by = {record.key: record for record in quotes.run("run").records}
    found = [compare(by[f"s{n}"], by[f"f{n}"]) for n in (1, 2, 4)]
    ratios = [one.ratio.value for one in found if one]
    slow_over_fast = "rows many slow over fast"
    assert quotes.values("run", f"min {slow_over_fast}; max {slow_over_fast}; n=4 {slow_over_fast}") == [
        min(ratios), max(ratios), ratios[2],
    ]  # fmt: skip
    (mean,) = quotes.values("run", f"gmean {slow_over_fast}")
    assert mean == pytest.approx((ratios[0] * ratios[1] * ratios[2]) ** (1 / 3))
    (at,) = quotes.values("run", f"along=n {slow_over_fast}")
    assert at == [where for where, up in crossings(list(zip((1, 2, 4), ratios, strict=True))) if up][-1]


def test_own_are_neither_peers_nor_control_arms(tmp_path: Path) -> None:
    times = {"rung": 0.03, "beyond": 0.02, "control": 0.01, "peer": 0.005}
    records = [data.record(role, time, role=role, preset="quick", key=role) for role, time in times.items()]
    data.store(tmp_path / "run", records)
    quotes = Quotes(tmp_path)
    assert value(quotes, "problem=rows preset=quick role=own") == [median(quotes, "beyond")]
    assert value(quotes, "problem=rows preset=quick role=control") == [median(quotes, "control")]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("rows quick nosuch", "no such measured case"),
        ("rows quick gone", "no such measured case"),
        ("rows many fast", "several settings"),
        ("rows quick fast nosuch=1", "no such measured case"),
        ("rows quick fast unit=parsecs", "unit: 'parsecs' is not one of"),
        ("rows quick fast value=extra.nothing", "has no number 'extra.nothing'"),
        ("a b c d", "at most 3 bare words"),
        ("rows quick fast over slow over fast", "'over' parts two sides"),
        ("rows many fast over slow along=n n=4", "never becomes the faster one along n"),
        ("run=other rows quick fast", "no run 'other'"),
    ],
)
def test_a_query_without_an_answer_is_a_complaint(quotes: Quotes, query: str, says: str) -> None:
    (complaint,) = quotes.check(f"**1 ms** <!-- from run: {query} -->").complaints
    assert "line 1" in complaint and says in complaint


def test_wrong_numbers_are_named_and_mended_in_the_digits_that_they_have(quotes: Quotes) -> None:
    slow, fast = median(quotes, "1"), median(quotes, "4")
    comment = "<!-- from run: rows quick slow group=32; group= fast -->"
    right = f"| a | **{slow:.1f} ms**, before 7; **{fast:.0f}** {comment} b |"
    assert quotes.check(right).complaints == [] and quotes.check(right).text == right
    wrong = right.replace(f"{slow:.1f}", "99.9")
    checked = quotes.check(f"text\n{wrong}")
    assert checked.complaints == [f"line 2: 99.9 is {slow:.1f} in the records"]
    assert checked.text == f"text\n{right}"


def test_two_comments_on_a_line_have_the_numbers_before_them(quotes: Quotes) -> None:
    line = "**1.0** <!-- from run: rows quick fast --> and **2.0** <!-- from run: rows quick slow group=32 -->"
    mended = quotes.check(line).text
    assert mended.startswith(f"**{median(quotes, '4'):.1f}**") and f"and **{median(quotes, '1'):.1f}**" in mended


def test_numbers_and_queries_are_as_many(quotes: Quotes) -> None:
    (complaint,) = quotes.check("**1, 2 ms** <!-- from run: rows quick fast -->").complaints
    assert "2 bold numbers, 1 queries" in complaint


def test_a_performance_log_has_no_bold_number_without_its_source(quotes: Quotes) -> None:
    text = "## Design\n\n**16-bit** numbers\n\n## Performance log\n\n**Bold** words, **3 ms**\n\n## Rest\n\n**4**"
    (complaint,) = quotes.check(text).complaints
    assert complaint.startswith("line 7: bold numbers of which no comment says where they come from")


def test_a_table_of_best_variants_is_made_anew(quotes: Quotes) -> None:
    text = "a\n\n<!-- best run problem=rows preset=quick -->\n\nold\n\n<!-- end -->\n\nb"
    checked = quotes.check(text)
    assert checked.complaints == ["best run problem=rows preset=quick: the table is not what the records give"]
    assert "`fast` (beyond)" in checked.text and "old" not in checked.text and "many" not in checked.text
    again = quotes.check(checked.text)
    assert again.complaints == [] and again.text == checked.text
    assert "no case with problem=nothing" in quotes.check(text.replace("problem=rows", "problem=nothing")).complaints[0]


def test_a_table_of_forms_is_made_of_the_peers(quotes: Quotes) -> None:
    text = "<!-- peers run problem=rows preset=many -->\n\nold\n\n<!-- end -->"
    checked = quotes.check(text)
    assert checked.complaints == ["peers run problem=rows preset=many: the table is not what the records give"]
    assert checked.text.count("`slow`") == 3 and "fast`" not in checked.text and "old" not in checked.text
    assert quotes.check(checked.text).complaints == []


def test_a_table_may_wait_for_its_run(quotes: Quotes) -> None:
    text = f"<!-- peers later problem=rows -->\n\n{UNMEASURED}\n\n<!-- end -->"
    assert quotes.check(text).complaints == [] and quotes.check(text).text == text
    assert quotes.check(text.replace(UNMEASURED, "1 ms")).complaints == [
        f"peers later: no run 'later' in {quotes.results}"
    ]
    (complaint,) = quotes.check(text.replace("later", "run")).complaints
    assert complaint == "peers run problem=rows: the table is not what the records give", "it is there now"
    other = text.replace("later problem=rows", "run problem=another")
    assert quotes.check(other).complaints == [], "the run is there, and none of its cases are of that problem"
    assert quotes.check(other.replace(UNMEASURED, "1 ms")).complaints == ["peers run: no case with problem=another"]


def test_the_command_names_and_mends(
    quotes: Quotes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.md"
    file.write_text("**99.9 ms** <!-- from run: rows quick fast -->\n")
    command = ("quotes", file, "--results", tmp_path)
    assert data.call(monkeypatch, *command) == 3
    assert f"{file}: line 1: 99.9 is" in capsys.readouterr().out
    assert data.call(monkeypatch, *command, "--write") == 0
    assert data.call(monkeypatch, *command) == 0
    assert "99.9" not in file.read_text()
    assert data.call(monkeypatch, "quotes", tmp_path / "none.md") == 2


def test_the_ratio_of_the_luckiest_of_equal_settings_is_not_quoted(tmp_path: Path) -> None:
    quoted = []
    for number, records in enumerate(one_and_the_best_of_twenty(3)):
        data.store(tmp_path / f"run{number}", records, data.environment())
        quoted += Quotes(tmp_path).values(f"run{number}", "variant=other over variant=tuned")
    logs = np.log(quoted)
    assert len(quoted) == 60 and abs(np.mean(logs)) < 3 * np.std(logs) / np.sqrt(60)


@pytest.mark.parametrize("file", USUAL)
def test_committed_texts_quote_the_committed_records(file: str) -> None:
    content = (ROOT / file).read_text()
    checked = Quotes(COMMITTED).check(content)
    complaints = checked.complaints
    if _changed_since(_commit()) is None:  # without the history marks of age are not known
        complaints = [each for each in complaints if not each.startswith("best ")]
    assert not complaints, "\n".join([*complaints, "perfport quotes --write mends them"])
    quotes = "<!-- from " in content or "<!-- best " in content
    assert quotes or Path(file).parts[0] == "docs", "a README quotes what it says was measured"


def _commit() -> str:
    return str(data.Run(COMMITTED / "h200-svm_rbf").environment["commit"]["hash"])


def test_the_usual_texts_are_readmes_and_docs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    assert {"README.md", "docs/standing.md", "workloads/gdn/README.md"} <= {str(path) for path in texts([])}
    monkeypatch.chdir(tmp_path)
    assert texts([]) == []
