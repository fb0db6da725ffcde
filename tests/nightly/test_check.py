"""`perfport check`: verdicts, what is worse than slow, what is no alarm, thresholds, exit codes, summary and JUnit."""

from __future__ import annotations

import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_data as data
import yaml

from perfport.measure.intervals import summarise
from perfport.model.errors import UnavailableError
from perfport.model.record import Failure, Record, Status, Timing
from perfport.nightly import changepoints
from perfport.nightly.base import AgainstNights, AgainstRun, in_line
from perfport.nightly.check import judge, suspects
from perfport.nightly.finding import Finding, Judgement, Outcome
from perfport.nightly.history import History, add
from perfport.store.results import Run

VARIANTS = [f"v{number}" for number in range(8)]


def case(
    variant: str, seconds: float = 0.05, seed: int = 0, workers: int = 3, noise: float = 0.003, **change: Any
) -> Record:
    """Return a record by so many workers, whose medians scatter by ``noise``."""
    record = data.record(variant, seconds, clock="span", **change)
    if record.timing is None:
        return record
    rng = np.random.default_rng([seed, data.hash_of(variant) % 1000])
    levels = seconds * np.exp(noise * rng.standard_normal(workers))
    span = [float(level * (1 + 0.001 * x)) for level in levels for x in rng.standard_normal(7)]
    blocks = [number for number in range(workers) for _ in range(7)]
    timing = {
        **record.timing.model_dump(), "span": span, "rounds": list(range(len(span))), "workers": blocks,
        "summary": {"span": summarise(span, blocks).model_dump()},
    }  # fmt: skip
    return record.model_copy(update={"timing": Timing.model_validate(timing)})


def store(
    folder: Path,
    records: list[Record],
    night: int = 0,
    check: dict[str, Any] | None = None,
    driver: str = "3.1",
    **keys: Any,
) -> Run:
    """Write a run with its experiment file."""
    content = data.environment((data.POCL,), run=folder.name, started=f"2026-11-{1 + night:02d}T02:00:00+00:00")
    content["devices"][data.POCL]["driver"] = driver
    study = {"workload": "demo", "problem": "rows", "presets": ["quick"]}
    definition = {"name": "demo", "workers": 3, "experiments": [{**study, **(check or {})}], **keys}
    run = data.store(folder, [r.model_copy(update={"run": folder.name}) for r in records], content)
    (folder / "experiment.yaml").write_text(yaml.safe_dump(definition))
    return run


def runs(tmp_path: Path, now: dict[str, Any], **keys: Any) -> tuple[Run, Run]:
    """A base run and one in which some variants differ: seconds, a record, or ``None`` for none."""
    base = store(tmp_path / "base", [case(variant, seed=1) for variant in VARIANTS])
    records = []
    for variant in [*VARIANTS, *(name for name in now if name not in VARIANTS)]:
        given = now.get(variant, 0.05)
        if given is not None:
            records.append(given if isinstance(given, Record) else case(variant, given, seed=2))
    return base, store(tmp_path / "now", records, 1, **keys)


def outcomes(judgement: Judgement) -> dict[str, Outcome]:
    """The outcome of each variant."""
    return {found.place.variant: found.outcome for found in judgement.findings}


def finding(judgement: Judgement, variant: str) -> Finding:
    """The finding of a variant."""
    return next(found for found in judgement.findings if found.place.variant == variant)


def test_faster_slower_same(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v1": 0.0525, "v2": 0.04, "v3": 0.0505})
    judgement = judge(run, AgainstRun(base, run))
    found = outcomes(judgement)
    assert (found["v1"], found["v2"]) == (Outcome.SLOWER, Outcome.FASTER)
    assert {found[name] for name in ("v0", "v3", "v4", "v5", "v6", "v7")} == {Outcome.SAME}
    assert judgement.findings[0].place.variant == "v1", "the worst first"
    slower = finding(judgement, "v1")
    assert slower.ratio and slower.ratio.low < 1 / 1.05 < slower.ratio.high < 1
    assert slower.before == pytest.approx(0.05, rel=0.01) and slower.now == pytest.approx(0.0525, rel=0.01)


@pytest.mark.parametrize("nights", [False, True])
def test_other_inputs_are_said_and_not_judged(tmp_path: Path, nights: bool) -> None:
    """For work that depends on its data, other inputs are other work: five times slower means nothing."""

    def drawn(record: Record, seed: int) -> Record:
        inputs = {"a": seed, "b": seed + 1000}
        return record.model_copy(update={"identity": record.identity.model_copy(update={"inputs": inputs})})

    earlier = [
        store(tmp_path / f"n{i}", [drawn(case(v, seed=i), 1) for v in VARIANTS], i + 1)
        for i in range(4 if nights else 1)
    ]
    tonight = [drawn(case(v, 0.25, seed=9), 4 if v in VARIANTS[:2] else 1) for v in VARIANTS]
    run = store(tmp_path / "now", tonight, 9)
    history = tmp_path / "history"
    for one in earlier:
        add(one, history)
    against = AgainstNights(History(history), run, 7) if nights else AgainstRun(earlier[0], run)
    judgement = judge(run, against)
    found = outcomes(judgement)
    assert {found[v] for v in VARIANTS[:2]} == {Outcome.CHANGED} and {found[v] for v in VARIANTS[2:]} == {
        Outcome.SLOWER
    }
    assert finding(judgement, "v0").why == "inputs of seeds 4, 1004, before of seeds 1, 1001: not compared"


@pytest.mark.parametrize("before", [{}, {"a": 1}])
def test_nights_on_other_inputs_have_not_vanished(tmp_path: Path, before: dict[str, int]) -> None:
    """Also on the second night on new inputs, when their series is in the history."""

    def night(number: int, inputs: dict[str, int]) -> Run:
        records = [case(v, seed=number) for v in VARIANTS]
        made = [r.model_copy(update={"identity": r.identity.model_copy(update={"inputs": inputs})}) for r in records]
        return store(tmp_path / f"n{number}", made, number)

    history = tmp_path / "history"
    for number in (1, 2, 3):
        add(night(number, before), history)
    add(night(4, {"a": 9}), history)
    judgement = judge(run := night(5, {"a": 9}), AgainstNights(History(history), run, 7))
    assert set(outcomes(judgement).values()) == {Outcome.CANNOT_TELL} and not judgement.of(Outcome.VANISHED)


def test_worse_than_slow_comes_first(tmp_path: Path) -> None:
    now = {
        "v1": data.record("v1", status=Status.CRASHED), "v2": data.record("v2", status=Status.WRONG), "v3": None,
        "v4": data.record("v4", status=Status.UNAVAILABLE), "v5": 0.09, "new": 0.05,
    }  # fmt: skip
    base, run = runs(tmp_path, now)
    judgement = judge(run, AgainstRun(base, run))
    listed = [(found.place.variant, found.outcome.value) for found in judgement.findings[:5]]
    assert listed == [("v2", "wrong"), ("v3", "vanished"), ("v1", "failed"), ("v4", "failed"), ("v5", "slower")]
    assert outcomes(judgement)["new"] is Outcome.NEW


def test_what_failed_before_is_no_new_alarm_but_wrong_is(tmp_path: Path) -> None:
    bad = [data.record("v0", status=Status.CRASHED), data.record("v1", status=Status.WRONG)]
    base = store(tmp_path / "base", [*bad, *(case(v, seed=1) for v in VARIANTS[2:])])
    run = store(tmp_path / "now", [*bad, *(case(v, seed=2) for v in VARIANTS[2:])], 1)
    found = outcomes(judge(run, AgainstRun(base, run)))
    assert (found["v0"], found["v1"]) == (Outcome.NO_RESULT, Outcome.WRONG)


def test_a_case_that_left_the_experiment_has_not_vanished(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v3": None}, check={"variants": [v for v in VARIANTS if v != "v3"]})
    judgement = judge(run, AgainstRun(base, run))
    assert finding(judgement, "v3").why == "no longer in the experiment"
    assert outcomes(judgement)["v3"] is Outcome.NO_RESULT


def test_another_default_is_a_new_series(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v3": case("v3", 0.08, tunables={"group": 128})})
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v3"] is Outcome.CHANGED and not judgement.of(Outcome.VANISHED)


def test_thresholds_of_the_experiment_and_of_an_entry(tmp_path: Path) -> None:
    for name, keys in (("a", {"check": {"check": {"threshold": 0.2}}}), ("b", {})):
        base, run = runs(tmp_path / name, {"v1": 0.055}, **keys)
        slower = judge(run, AgainstRun(base, run)).of(Outcome.SLOWER)
        assert bool(slower) == (name == "b")


def test_fewer_than_three_workers_are_no_verdict(tmp_path: Path) -> None:
    base = store(tmp_path / "base", [case(v, seed=1, workers=1) for v in VARIANTS])
    run = store(tmp_path / "now", [case(v, 0.1, seed=2) for v in VARIANTS], 1)
    judgement = judge(run, AgainstRun(base, run))
    assert set(outcomes(judgement).values()) == {Outcome.CANNOT_TELL}
    assert "1 fresh workers; 3 on each side are needed" in judgement.findings[0].why


def test_contended_is_no_verdict(tmp_path: Path) -> None:
    slow = case("v1", 0.2).model_copy(update={"status": Status.CONTENDED, "failure": Failure(reason="others")})
    base, run = runs(tmp_path, {"v1": slow})
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v1"] is Outcome.CANNOT_TELL and "contended: others" in finding(judgement, "v1").why


def test_what_is_measured_again_counts_together(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v1": case("v1", 0.0515, noise=0.01, seed=5)})
    against = AgainstRun(base, run)
    wanted = suspects(judge(run, against), 5)
    assert [record.identity.variant for record in wanted] == ["v1"]
    (key,) = [record.key for record in wanted]
    calm = judge(run, against, {key: case("v1", 0.05, seed=6, workers=5)})
    assert not calm.of(Outcome.SLOWER) and finding(calm, "v1").again == 5 and not suspects(calm, 5)
    real = judge(run, against, {key: case("v1", 0.0525, seed=7, workers=5)})
    assert outcomes(real)["v1"] is Outcome.SLOWER and "5 workers measured it again" in finding(real, "v1").why
    wrong = judge(run, against, {key: data.record("v1", status=Status.WRONG)})
    assert outcomes(wrong)["v1"] is Outcome.WRONG


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """A history of nine nights, the fifth of which was slow for ``v2``."""
    for number in range(9):
        slow = 0.07 if number == 4 else 0.05
        records = [case(v, slow if v == "v2" else 0.05, seed=number) for v in VARIANTS]
        add(store(tmp_path / f"night{number}", records, number), tmp_path / "history")
    return tmp_path / "history"


def tonight(tmp_path: Path, now: dict[str, float], driver: str = "3.1", **keys: Any) -> Run:
    """The tenth night."""
    records = [case(v, now.get(v, 0.05), seed=20) for v in VARIANTS if now.get(v, 0.05)]
    return store(tmp_path / "tonight", records, 10, driver=driver, **keys)


def test_against_nights(nights: Path, tmp_path: Path) -> None:
    run = tonight(tmp_path, {"v1": 0.0525, "v2": 0.0525, "v3": 0.045, "v4": 0})
    judgement = judge(run, AgainstNights(History(nights), run, 7))
    found = outcomes(judgement)
    assert (found["v1"], found["v2"], found["v3"]) == (Outcome.SLOWER, Outcome.SLOWER, Outcome.FASTER)
    assert finding(judgement, "v2").why == "compared with 6 nights (1 out of line)", "one bad night moves no base"
    assert found["v4"] is Outcome.VANISHED and found["v5"] is Outcome.SAME


def test_a_new_driver_is_an_event_and_no_alarm(nights: Path, tmp_path: Path) -> None:
    run = tonight(tmp_path, dict.fromkeys(VARIANTS, 0.08), driver="4.0")
    judgement = judge(run, AgainstNights(History(nights), run, 7))
    assert set(outcomes(judgement).values()) == {Outcome.CHANGED}
    assert "driver changed from 3.1" in judgement.findings[0].why
    add(run, nights)
    later = store(tmp_path / "later", [case(v, 0.08, seed=21) for v in VARIANTS], 11, driver="4.0")
    judgement = judge(later, AgainstNights(History(nights), later, 7))
    assert set(outcomes(judgement).values()) == {Outcome.CANNOT_TELL}
    assert "1 night of this series; 3 are needed" in judgement.findings[0].why


def test_other_settings_and_other_experiments_are_other_series(nights: Path, tmp_path: Path) -> None:
    run = tonight(tmp_path, {"v1": 0.08}, measurement={"min_samples": 9})
    judgement = judge(run, AgainstNights(History(nights), run, 7))
    assert set(outcomes(judgement).values()) == {Outcome.CHANGED}
    assert "min_samples: 7 to min_samples: 9" in judgement.findings[0].why
    held = History(nights)
    for night in held.nights:
        night.experiment = "weekly"
    assert set(outcomes(judge(run, AgainstNights(held, run, 7))).values()) == {Outcome.NEW}


def test_the_first_night_is_green(tmp_path: Path) -> None:
    run = tonight(tmp_path, {})
    (tmp_path / "none").mkdir()
    judgement = judge(run, AgainstNights(History(tmp_path / "none"), run, 7))
    assert set(outcomes(judgement).values()) == {Outcome.NEW}


def test_nights_out_of_line() -> None:
    assert in_line([0.0, 0.01, 0.5, 0.0, 0.01], 0.02) == [0.0, 0.01, 0.0, 0.01]
    assert in_line([0.0, 0.01, 0.03, 0.0, 0.01], 0.05) == [0.0, 0.01, 0.03, 0.0, 0.01]
    assert in_line([0.0, 0.0, 0.0, 0.5], 0.02) == [0.0, 0.0, 0.0, 0.5], "too few to tell"
    shifted = [0.0] * 3 + [0.1] * 4
    assert in_line(shifted, 0.02) == [0.1] * 4, "what most nights are is the base"


def test_a_creeping_change_is_seen_by_its_change_point(tmp_path: Path) -> None:
    """The last three nights are as slow as this one: only the level before the change tells."""
    for number in range(20):
        records = [case(v, 0.055 if v == "v2" and number >= 16 else 0.05, seed=number) for v in VARIANTS]
        add(store(tmp_path / f"night{number}", records, number), tmp_path / "history")
    run = store(tmp_path / "tonight", [case(v, 0.055 if v == "v2" else 0.05, seed=30) for v in VARIANTS], 24)
    history = History(tmp_path / "history")
    assert outcomes(judge(run, AgainstNights(history, run, 4)))["v2"] is Outcome.SAME

    def detector(logs: Any, threshold: float) -> list[int]:
        jumps = np.abs(np.diff(logs))
        return [int(jumps.argmax()) + 1] if jumps.max() > math.log1p(0.05) else []

    judgement = judge(run, AgainstNights(history, run, 5, detector))
    assert outcomes(judgement)["v2"] is Outcome.SLOWER and "before a change point" in finding(judgement, "v2").why
    assert len(judgement.of(Outcome.SLOWER)) == 1 and len(judgement.findings) == len(VARIANTS)


def test_otava_finds_a_step_and_needs_enough_nights() -> None:
    pytest.importorskip("otava", reason="the extra otava is not installed")
    rng = np.random.default_rng(1)
    logs = list(0.003 * rng.standard_normal(30) + np.where(np.arange(30) < 20, 0.0, 0.05))
    assert changepoints.change_points(logs, 0.02) == [20]
    assert changepoints.change_points(logs, 0.2) == []
    assert changepoints.change_points(logs[17:26], 0.02) == [], "nine values are too few"


def test_without_otava_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "otava.analysis", None)
    with pytest.raises(UnavailableError, match=r"perfport\[otava\]"):
        changepoints.change_points([0.0] * 20, 0.02)


@pytest.mark.parametrize(
    ("now", "code", "headline"),
    [
        ({}, 0, "Green: no regression found; 8 of 8 cases are the same or faster"),
        ({"v1": 0.06}, 5, "Red: 1 slower, of 8 cases"),
        ({"v1": 0.06, "v3": None}, 4, "Red: 1 vanished, 1 slower, of 8 cases"),
        ({"v1": data.record("v1", status=Status.TIMEOUT)}, 4, "Red: 1 newly failing, of 8 cases"),
        (
            {"v1": data.record("v1", status=Status.WRONG), "v3": None, "v2": 0.07},
            3,
            "Red: 1 wrong, 1 vanished, 1 slower",
        ),
    ],
)
def test_exit_codes_and_headlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, now: dict[str, Any], code: int, headline: str
) -> None:
    runs(tmp_path, now)
    arguments = ("check", tmp_path / "now", "--baseline", tmp_path / "base")
    assert data.call(monkeypatch, *arguments, "--junit", tmp_path / "j.xml", "-o", tmp_path / "s.md") == code
    told = capsys.readouterr()
    assert headline in told.err and (tmp_path / "s.md").read_text().startswith(f"# {headline}")
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert len(suite) == int(suite.get("tests", 0)) == 8
    failed = [one.get("type") for one in suite.iter("failure")]
    assert len(failed) == int(suite.get("failures", 0)) and (code == 0) == (not failed)


def test_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    runs(tmp_path, {})
    now, base = tmp_path / "now", tmp_path / "base"
    for arguments, said in (
        ([now], "either --baseline RUN or --history"),
        ([now, "--baseline", base, "--history", tmp_path], "either --baseline RUN or --history"),
        ([now, "--baseline", base, "--change-points"], "--change-points needs --history"),
        ([tmp_path / "none", "--baseline", base], "cannot be read"),
        ([now, "--history", tmp_path / "h", "--last", "2"], ""),
    ):
        assert data.call(monkeypatch, "check", *arguments) == 2
        assert said in capsys.readouterr().err


def test_the_summary_says_what_a_stranger_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    runs(tmp_path, dict.fromkeys(VARIANTS, 0.06))
    assert data.call(monkeypatch, "check", tmp_path / "now", "--baseline", tmp_path / "base") == 5
    page = capsys.readouterr().out
    assert "## Alarms" in page and "| slower" in page and "50.0" in page and "ms" in page
    assert "more likely the machine than the code" in page
    assert data.call(monkeypatch, "check", tmp_path / "now", "--baseline", tmp_path / "base", "--format", "json") == 5
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 8 and {row["outcome"] for row in rows} == {"slower"} and rows[0]["p slower"] < 1e-3
