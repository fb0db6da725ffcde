"""Findings: what looks slower or faster by more than its threshold; the judgement that they make together."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.model.record import Interval
from perfport.nightly.finding import ALARMS, Finding, Judgement, Outcome


@pytest.mark.parametrize(
    ("ratio", "suspected", "gained"),
    [
        (None, False, False),
        (0.9803, True, False),
        (0.9805, False, False),
        (1.0199, False, False),
        (1.02, False, False),
        (1.0201, False, True),
    ],
)
def test_more_than_the_threshold(ratio: float | None, suspected: bool, gained: bool) -> None:
    interval = Interval(value=ratio, low=ratio, high=ratio) if ratio else None
    found = Finding("[]", Outcome.CANNOT_TELL, ratio=interval, threshold=0.02)
    assert (found.suspected, found.gained) == (suspected, gained)


def test_a_judgement_gives_the_findings_of_some_outcomes(tmp_path: Path) -> None:
    findings = [Finding(f"[{number}]", outcome) for number, outcome in enumerate(Outcome)]
    judgement = Judgement(data.store(tmp_path / "run", [data.record("v")]), "run base", findings)
    assert [found.outcome for found in judgement.of(*ALARMS)] == list(ALARMS) == list(Outcome)[:4]
    assert judgement.of() == []


def test_a_finding_claims_nothing_before_it_is_judged(tmp_path: Path) -> None:
    found = Finding("[]", Outcome.CANNOT_TELL)
    assert (found.p_slower, found.p_faster, found.again, found.threshold) == (1.0, 1.0, 0, 0.0)
    judgement = Judgement(data.store(tmp_path / "run", [data.record("v")]), "run base", [found])
    assert judgement.remeasured is False and judgement.shifts == {}
