"""The page of a judged run: the verdict first, alarms next, everything else folded."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.model.record import Interval
from perfport.nightly.finding import Colour, Finding, Judgement, Outcome
from perfport.nightly.night import Change
from perfport.nightly.place import series_key
from perfport.report.pages.check import headline, view
from perfport.run.experiment import EventColours


def judged(folder: Path, *outcomes: Outcome) -> Judgement:
    """A judgement with a case of each outcome."""
    run = data.store(folder, [data.record(f"v{number}") for number in range(len(outcomes))])
    findings = [
        Finding(series_key(run, record), outcome, record, why=f"because of {record.identity.variant} <b>")
        for record, outcome in zip(run.records, outcomes, strict=True)
    ]
    return Judgement(run, "run base", findings)


def test_alarms_are_counted_and_stand_first(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", Outcome.SAME, Outcome.SLOWER, Outcome.WRONG, Outcome.SLOWER)
    assert headline(judgement) == "Red: 1 wrong, 2 slower, of 4 cases"
    shown = view(judgement)
    assert shown.markdown.startswith("# Red: 1 wrong, 2 slower") and "compared with run base" in shown.markdown
    assert shown.markdown.index("## Alarms") < shown.markdown.index("because of v2") < shown.markdown.index("Same: 1")
    assert "<b>" not in shown.markdown.replace("<details>", ""), "texts of records are no markup"
    assert [row["outcome"] for row in shown.rows] == ["same", "slower", "wrong", "slower"]


def test_what_the_experiment_makes_green_is_listed_all_the_same(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", Outcome.SLOWER, Outcome.SUSPECTED, Outcome.SAME)
    for finding in judgement.findings[:2]:
        finding.events, finding.colours = [Change("driver", "580", "590")], EventColours(driver=Colour.GREEN)
    shown = view(judgement).markdown
    assert "no alarm by the experiment" in shown and "because of v0" in shown and "because of v1" in shown


def test_green_says_how_many_were_judged(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", Outcome.SAME, Outcome.CANNOT_TELL, Outcome.FASTER)
    assert headline(judgement) == "Green: no regression found; 2 of 3 cases are the same or faster"
    assert "## Alarms" not in view(judgement).markdown
    judgement.findings[1].outcome = Outcome.ACCEPTED
    assert headline(judgement).endswith("faster, 1 at a level that is accepted")


def test_yellow_says_what_is_missing_or_suspected(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "a", Outcome.SAME, Outcome.CANNOT_TELL, Outcome.FASTER)
    judgement.min_judged = 0.8
    assert headline(judgement) == (
        "Yellow: no regression found, but only 2 of 3 cases could be judged (1 with too little to compare with); "
        "80% are needed"
    )
    judgement.findings[0].outcome = Outcome.SUSPECTED
    assert headline(judgement) == "Yellow: 1 suspected and not cleared, of 3 cases"
    page = view(judgement).markdown
    assert "## Yellow" in page and "Only 1 of 3 cases could be judged" in page


SOURCE, DRIVER = Change("source", "a1b2", "c3d4", ("w/<b>.cl",)), Change("driver", "580", "590")


def test_slower_cases_are_counted_by_what_changed(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", *[Outcome.SLOWER] * 4, Outcome.SAME)
    for finding, events in zip(judgement.findings, ([SOURCE], [SOURCE], [DRIVER], []), strict=False):
        finding.events = events
    said = "Red: 2 slower since source changed (a1b2..c3d4: w/<b>.cl), 1 slower, of 5 cases; besides 1 slower since"
    assert headline(judgement) == f"{said} driver 580 -> 590"
    page = view(judgement)
    assert page.markdown.index("## Alarms") < page.markdown.index("## Yellow") and "<b>" not in page.markdown
    assert [row["colour"] for row in page.rows] == ["red", "red", "yellow", "red", "green"]
    assert page.rows[2]["since"] == "driver 580 -> 590"
    judgement.findings = judgement.findings[2:3]
    assert headline(judgement).startswith("Yellow: 1 slower since driver 580")


def test_a_headline_names_a_few_events(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", *[Outcome.SLOWER] * 5, Outcome.WRONG)
    for number, finding in enumerate(judgement.findings[:4]):
        finding.events = [Change("source", "a1b2", "c3d4", (f"{number}.cl",))]
    assert headline(judgement) == "Red: 1 wrong, 4 slower since 4 different events, 1 slower, of 6 cases"
    judgement.findings[3].events = judgement.findings[2].events
    assert headline(judgement).count("c3d4: ") == 3


def test_the_machine_is_not_blamed_where_cases_share_a_changed_file(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", *[Outcome.SLOWER] * 6)
    for finding in judgement.findings:
        finding.ratio = Interval(value=0.9, low=0.89, high=0.91)
    assert "more likely the machine" in view(judgement).markdown
    for finding in judgement.findings[:5]:
        finding.events = [SOURCE]
    page = view(judgement).markdown
    assert "machine than the code" not in page and "(5 cases)" in page


def test_a_shift_of_the_machine_is_said_once(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "tonight", *[Outcome.SAME] * 6)
    for finding in judgement.findings:
        finding.ratio = Interval(value=1.1, low=1.0, high=1.2)
    assert "the median of 6 cases takes -9.1 % time" in view(judgement).markdown
    site = judgement.findings[0].place.site
    shifted = view(Judgement(judgement.run, "run base", judgement.findings, shifts={site: 0.026})).markdown
    assert f"On `{site}` all cases together take +2.6 % time: a change of the machine" in shifted
    assert "the median of" not in shifted and shifted.count("2.6 %") == 1
