"""Findings as JUnit: what a test report of a CI system reads."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from junitparser import Failure, JUnitXml, Skipped

from perfport.model.record import Interval
from perfport.nightly.finding import Finding, Judgement, Outcome
from perfport.nightly.night import Change
from perfport.nightly.place import series_key
from perfport.report.pages.junit import junit


def finding(judged: data.Run, outcome: Outcome, **fields: object) -> Finding:
    """A finding on the only case of a run."""
    return Finding(series_key(judged, judged.records[0]), outcome, judged.records[0], **fields)  # type: ignore[arg-type]


def test_alarms_are_failures_and_cases_without_a_verdict_are_skipped(tmp_path: Path) -> None:
    run = data.store(tmp_path / "tonight", [data.record("a")])
    ratio = Interval(value=0.5, low=0.4, high=0.6)
    findings = [
        finding(run, Outcome.WRONG, why="wrong: \x1b[1moff\nby one"),
        finding(run, Outcome.SLOWER, why="slow", ratio=ratio, before=1e-6, now=2e-6, threshold=0.02),
        finding(run, Outcome.SAME, now=2e-6),
        finding(run, Outcome.FASTER),
        finding(run, Outcome.CANNOT_TELL, why="too <noisy>"),
        finding(run, Outcome.NEW),
    ]
    written = junit(Judgement(run, "run base", findings))
    assert 'time="0.000002000"' in written, "a decimal: the schema has no exponents"
    report = JUnitXml.fromstring(written.encode())
    (suite,) = report
    assert suite.name == f"perfport check {run.name}"
    for totals in (report, suite):
        assert (totals.tests, totals.failures, totals.errors, totals.skipped) == (7, 2, 0, 2)
    enough, wrong, slower, same, faster, noisy, new = suite
    assert enough.name == "enough cases have a verdict" and not enough.result
    assert wrong.classname == "demo.rows" and wrong.name.startswith("demo/rows a ") and wrong.name.endswith(")")
    (failure,) = wrong.result
    assert isinstance(failure, Failure) and failure.type == "wrong" and failure.message == "wrong: wrong: off by one"
    (failure,) = slower.result
    assert failure.text == "before 1.000 µs, now 2.000 µs, times faster 0.500 (0.400–0.600), threshold 0.02"
    assert slower.time == 2e-6 and not same.result and not faster.result
    assert [type(case.result[0]) for case in (noisy, new)] == [Skipped, Skipped]
    assert noisy.result[0].message == "cannot tell: too <noisy>"


def test_what_is_yellow_is_skipped_and_says_so(tmp_path: Path) -> None:
    """Readers of JUnit know no third colour but that."""
    run = data.store(tmp_path / "tonight", [data.record("a")])
    findings = [
        finding(run, Outcome.SLOWER, why="since driver 580 -> 590", events=[Change("driver", "580", "590")]),
        finding(run, Outcome.SUSPECTED, why="perhaps"),
        finding(run, Outcome.SLOWER, why="since source changed", events=[Change("source", "a", "b")]),
        finding(run, Outcome.CANNOT_TELL, why="loud"),
    ]
    (suite,) = JUnitXml.fromstring(junit(Judgement(run, "run base", findings, min_judged=0.8)).encode())
    enough, driver, suspected, source, noisy = suite
    said = [case.result[0].message for case in (enough, driver, suspected)]
    assert said[0].startswith("yellow: 2 of 4 cases could be judged")
    assert said[1:] == ["yellow: slower: since driver 580 -> 590", "yellow: suspected: perhaps"]
    assert isinstance(source.result[0], Failure) and noisy.result[0].message == "cannot tell: loud"
