"""Findings: what looks slower or faster by more than its threshold; the judgement that they make together."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.model.record import Interval, Status
from perfport.nightly.finding import ALARMS, Finding, Judgement, Outcome
from perfport.nightly.night import Change
from perfport.run.experiment import EventColours


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


SOURCE, DRIVER = Change("source", "a", "b"), Change("driver", "580", "590")


@pytest.mark.parametrize(
    ("outcome", "events", "colours", "colour"),
    [
        (Outcome.SLOWER, [], {}, "red"),
        (Outcome.SLOWER, [SOURCE], {}, "red"),
        (Outcome.SLOWER, [DRIVER], {}, "yellow"),
        (Outcome.SLOWER, [DRIVER, SOURCE], {}, "red"),
        (Outcome.SLOWER, [DRIVER], {"driver": "red"}, "red"),
        (Outcome.SLOWER, [SOURCE], {"source": "green"}, "green"),
        (Outcome.SUSPECTED, [], {}, "yellow"),
        (Outcome.SUSPECTED, [SOURCE], {}, "yellow"),
        (Outcome.SUSPECTED, [SOURCE], {"source": "green"}, "green"),
        (Outcome.WRONG, [DRIVER], {}, "red"),
        (Outcome.VANISHED, [], {}, "red"),
        (Outcome.FAILED, [DRIVER], {"driver": "green"}, "red"),
        (Outcome.FASTER, [SOURCE], {}, "green"),
        (Outcome.CANNOT_TELL, [], {}, "green"),
    ],
)
def test_what_a_case_makes_of_the_night(
    outcome: Outcome, events: list[Change], colours: dict[str, str], colour: str
) -> None:
    found = Finding("[]", outcome, events=events, colours=EventColours.model_validate(colours))
    assert found.colour == colour


@pytest.mark.parametrize(
    ("outcomes", "least", "colour", "said"),
    [
        ([Outcome.SAME] * 4 + [Outcome.CANNOT_TELL], 0.8, "green", ""),
        ([Outcome.SAME] * 3 + [Outcome.CANNOT_TELL] * 2, 0.8, "yellow", "3 of 5 cases could be judged (2 with too"),
        ([Outcome.SAME] * 3 + [Outcome.CANNOT_TELL] * 2, 0.6, "green", ""),
        ([Outcome.SAME, Outcome.NO_RESULT, Outcome.NO_RESULT], 0.8, "green", ""),
        ([Outcome.SAME, Outcome.ACCEPTED, Outcome.FASTER], 1.0, "green", ""),
        ([Outcome.NEW] * 3, 0.8, "yellow", "0 of 3 cases could be judged (3 new); 80% are needed"),
        ([Outcome.NO_RESULT], 0.8, "yellow", "0 of 0 cases"),
        ([], 0.8, "yellow", "0 of 0 cases"),
        ([Outcome.SLOWER, *[Outcome.CHANGED] * 4], 0.8, "red", "1 of 5 cases could be judged (4 new series)"),
    ],
)
def test_a_night_of_which_too_little_is_known_is_yellow(
    tmp_path: Path, outcomes: list[Outcome], least: float, colour: str, said: str
) -> None:
    run = data.store(tmp_path / "run", [data.record("v")])
    judgement = Judgement(run, "run base", [Finding("[]", outcome) for outcome in outcomes], min_judged=least)
    assert judgement.colour == colour
    assert judgement.undecided.startswith(said) if said else not judgement.undecided


def test_contended_cases_are_told_as_such(tmp_path: Path) -> None:
    loud = data.record("v").model_copy(update={"status": Status.CONTENDED})
    ratio = Interval(value=1.0, low=0.9, high=1.1)
    findings = [Finding("[]", Outcome.CANNOT_TELL, loud)] * 2 + [Finding("[]", Outcome.CANNOT_TELL, ratio=ratio)]
    judgement = Judgement(data.store(tmp_path / "run", [loud]), "run base", findings, min_judged=0.5)
    assert judgement.undecided == "0 of 3 cases could be judged (2 contended, 1 too noisy); 50% are needed"


def test_a_finding_claims_nothing_before_it_is_judged(tmp_path: Path) -> None:
    found = Finding("[]", Outcome.CANNOT_TELL)
    assert (found.p_slower, found.p_faster, found.again, found.threshold) == (1.0, 1.0, 0, 0.0)
    judgement = Judgement(data.store(tmp_path / "run", [data.record("v")]), "run base", [found])
    assert judgement.remeasured is False and judgement.shifts == {}
