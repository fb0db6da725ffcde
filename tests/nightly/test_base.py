"""What a run is held to: nights in line, conditions that changed, levels before a change point."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_data as data
from check_data import VARIANTS, case, finding, outcomes, store

from perfport.model.record import Status
from perfport.nightly.base import AgainstNights, AgainstRun, in_line
from perfport.nightly.check import judge
from perfport.nightly.finding import Colour, Outcome
from perfport.nightly.history import History, add
from perfport.nightly.night import night
from perfport.store.results import Run


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """A history of nine nights, the fifth of which was slow for ``v2``."""
    for number in range(9):
        slow = 0.07 if number == 4 else 0.05
        records = [case(v, slow if v == "v2" else 0.05, seed=number) for v in VARIANTS]
        records = [record.model_copy(update={"source_hash": "cafe"}) for record in records]
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


def test_a_new_driver_is_an_event_and_judged(nights: Path, tmp_path: Path) -> None:
    """What the project did not change is yellow, night after night, until it is accepted."""
    run = tonight(tmp_path, dict.fromkeys(VARIANTS[:6], 0.08), driver="4.0")
    judgement = judge(run, AgainstNights(History(nights), run, 7))
    found = outcomes(judgement)
    assert {found[v] for v in VARIANTS[:6]} == {Outcome.SLOWER} and judgement.colour is Colour.YELLOW
    assert {found[v] for v in VARIANTS[6:]} == {Outcome.SAME}, "the new driver leaves them as they were"
    assert finding(judgement, "v0").why.startswith("since driver 3.1 -> 4.0") and not any(judgement.shifts.values())
    for number in range(3):
        add(run, nights)
        run = store(tmp_path / f"later{number}", run.records, 11 + number, driver="4.0")
        judgement = judge(run, AgainstNights(History(nights), run, 7))
        assert len(judgement.of(Outcome.SLOWER)) == 6 and judgement.colour is Colour.YELLOW
        assert finding(judgement, "v2").why.startswith("since driver") and not finding(judgement, "v7").events


def test_a_changed_source_is_red_or_as_the_experiment_has_it(nights: Path, tmp_path: Path) -> None:
    records = [case(v, 0.06 if v == "v1" else 0.05, seed=20) for v in VARIANTS]
    for number, record in enumerate(records[:4]):
        records[number] = record.model_copy(update={"source_hash": "feed"})
    for check, colour in (({}, "red"), ({"events": {"source": "yellow"}}, "yellow"), ({"threshold": 0.3}, "green")):
        run = store(tmp_path / colour, records, 10, {"check": check})
        judgement = judge(run, AgainstNights(History(nights), run, 7))
        assert judgement.colour == colour and outcomes(judgement)["v0"] is Outcome.SAME
        assert finding(judgement, "v1").why.startswith("since source changed") or colour == "green"


def test_with_what_code_suspects_are_measured_in_turn(nights: Path, tmp_path: Path) -> None:
    """Of nights only where the source changed: by the commit of the last night at the level."""
    records = [case(v, 0.06, seed=20) for v in VARIANTS]
    records[1] = records[1].model_copy(update={"source_hash": "feed"})
    run = store(tmp_path / "tonight", records, 10)
    against = AgainstNights(History(nights), run, 7)
    for commit, code, why in (
        ("ab" * 20, "ab" * 20, ""),
        ("ab" * 20 + "-dirty", "", "the night before the source changed was measured with uncommitted changes"),
        ("--output=x", "", "the night before the source changed names no commit of its code"),
    ):
        against.history.nights[-1].commit = commit
        judgement = judge(run, against)
        wanted = [found.record for found in judgement.findings if found.record]
        codes = {each.records[0].identity.variant: each for each in against.codes(judgement.findings, wanted, [])}
        changed = codes.pop("v1")
        assert (changed.commit, changed.why, len(changed.records)) == (code, why, 1)
        assert [(each.commit, each.why, len(each.records)) for each in codes.values()] == [("", "", 7)]


def test_other_settings_are_an_event_and_other_experiments_other_series(nights: Path, tmp_path: Path) -> None:
    run = tonight(tmp_path, {"v1": 0.08}, measurement={"min_samples": 9})
    judgement = judge(run, AgainstNights(History(nights), run, 7))
    assert outcomes(judgement)["v1"] is Outcome.SLOWER and judgement.colour is Colour.YELLOW
    assert "min_samples: 7 -> min_samples: 9" in finding(judgement, "v1").why
    held = History(nights)
    for each in held.nights:
        each.experiment = "weekly"
    assert set(outcomes(judge(run, AgainstNights(held, run, 7))).values()) == {Outcome.NEW}


def test_the_first_night_has_nothing_to_be_held_to(tmp_path: Path) -> None:
    run = tonight(tmp_path, {})
    (tmp_path / "none").mkdir()
    judgement = judge(run, AgainstNights(History(tmp_path / "none"), run, 7))
    assert set(outcomes(judgement).values()) == {Outcome.NEW} and judgement.colour is Colour.YELLOW


def test_nights_out_of_line() -> None:
    assert in_line([0.0, 0.01, 0.5, 0.0, 0.01], 0.02) == [0.0, 0.01, 0.0, 0.01]
    assert in_line([0.0, 0.01, 0.03, 0.0, 0.01], 0.05) == [0.0, 0.01, 0.03, 0.0, 0.01]
    assert in_line([0.0, 0.0, 0.0, 0.5], 0.02) == [0.0, 0.0, 0.0, 0.5], "too few to tell"
    shifted = [0.0] * 3 + [0.1] * 4
    assert in_line(shifted, 0.02) == [0.1] * 4, "what most nights are is the base"


@pytest.mark.parametrize(("fence", "kept"), [(1.1, 4), (0.9, 5)])
def test_a_night_is_out_of_line_beyond_four_scaled_deviations(fence: float, kept: int) -> None:
    """Where nights scatter: the fence is 4 * 1.4826 times the median deviation, here 0.02, and wider than 2 %."""
    far = fence * 4 * 1.4826 * 0.02
    assert len(in_line([-0.02, 0.02, 0.0, -0.02, far], 0.02)) == kept


@pytest.mark.parametrize(("far", "kept"), [(0.019, 5), (0.021, 4)])
def test_a_night_within_the_threshold_is_in_line(far: float, kept: int) -> None:
    """Where nights agree: what is too small to matter is no bad night."""
    assert len(in_line([0.0, 1e-4, 0.0, 1e-4, far], 0.02)) == kept


def test_a_night_that_was_slow_as_a_whole_moves_no_base(tmp_path: Path) -> None:
    for number, machine in enumerate([1.0, 1.05, 0.97, 1.0]):
        records = [case(v, 0.05 * machine, seed=number) for v in VARIANTS]
        add(store(tmp_path / f"n{number}", records, number), tmp_path / "h")
    run = store(tmp_path / "now", [case(v, 0.0525 if v == "v1" else 0.05, seed=9) for v in VARIANTS], 9)
    judgement = judge(run, AgainstNights(History(tmp_path / "h"), run, 7))
    assert [found.place.variant for found in judgement.of(Outcome.SLOWER)] == ["v1"]
    assert len(judgement.of(Outcome.SAME)) == len(VARIANTS) - 1


def test_a_run_that_is_in_the_history_is_not_its_own_base(nights: Path, tmp_path: Path) -> None:
    run = tonight(tmp_path, {"v1": 0.0525})
    add(run, nights)
    against = AgainstNights(History(nights), run, 20)
    judgement = judge(run, against)
    assert against.what == "the last 9 nights" and finding(judgement, "v1").why == "compared with 9 nights"
    assert outcomes(judgement)["v1"] is Outcome.SLOWER
    first = AgainstNights(History(nights), store(tmp_path / "first", [case("v0")], 0), 7)
    assert first.what == "the last 1 night", "nights that began later are no base"
    alone = store(tmp_path / "alone", [case(v) for v in VARIANTS], 2)
    add(alone, tmp_path / "own")
    assert set(outcomes(judge(alone, AgainstNights(History(tmp_path / "own"), alone, 7))).values()) == {Outcome.NEW}


def test_nights_whose_folders_have_one_name_are_nights(tmp_path: Path) -> None:
    """As those of a job that writes into the same folder every night."""
    for number in range(4):
        run = store(tmp_path / str(number) / "nightly", [case("v1", seed=number)], number)
        judgement = judge(run, AgainstNights(History(add(run, tmp_path / "history").parent), run, 7))
    assert finding(judgement, "v1").why == "compared with 3 nights"
    assert outcomes(judgement) == {"v1": Outcome.SAME}


def test_a_contended_base_is_doubted(tmp_path: Path) -> None:
    loud = case("v1", seed=1).model_copy(update={"status": Status.CONTENDED})
    base = store(tmp_path / "base", [loud, *(case(v, seed=1) for v in VARIANTS if v != "v1")])
    run = store(tmp_path / "now", [case(v, 0.06 if v == "v1" else 0.05, seed=2) for v in VARIANTS], 1)
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v1"] is Outcome.CANNOT_TELL
    assert finding(judgement, "v1").why == "contended in run base" and not judgement.of(Outcome.SLOWER)


@pytest.mark.parametrize(("last", "seen"), [(3, False), (4, True)])
def test_a_change_point_counts_while_it_is_among_the_last_nights(tmp_path: Path, last: int, seen: bool) -> None:
    for number in range(12):
        records = [case(v, seed=number) for v in VARIANTS]
        add(store(tmp_path / f"n{number}", records, number), tmp_path / "h")
    run = store(tmp_path / "now", [case(v, seed=30) for v in VARIANTS], 20)
    against = AgainstNights(History(tmp_path / "h"), run, last, lambda logs, threshold: [3, 9])
    level = against.steps(night(run), 2, 0.0, 0.02)
    assert (level is not None) is seen
    if level:
        assert len(level.logs) == 6 and level.what == "6 nights before a change point, 3 nights ago"


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


def test_what_the_base_has_no_result_of_is_new(tmp_path: Path) -> None:
    """A run as the base, and nights."""
    for number in range(3):
        records = [data.record("v0", status=Status.CRASHED), *(case(v, seed=number) for v in VARIANTS[1:])]
        base = store(tmp_path / f"n{number}", records, number)
        add(base, tmp_path / "h")
    run = store(tmp_path / "now", [case(v, seed=9) for v in VARIANTS], 9)
    for against in (AgainstRun(base, run), AgainstNights(History(tmp_path / "h"), run, 7)):
        judgement = judge(run, against)
        assert outcomes(judgement)["v0"] is Outcome.NEW
        assert finding(judgement, "v0").why == f"no result in {against.what}"
        assert not judgement.of(Outcome.VANISHED, Outcome.CANNOT_TELL)


@pytest.mark.parametrize(("begins", "told"), [([2, 5], True), ([3, 5], False)])
def test_three_nights_make_the_level_before_a_change_point(tmp_path: Path, begins: list[int], told: bool) -> None:
    for number in range(8):
        records = [case(v, 0.055 if number >= 5 else 0.05, seed=number) for v in VARIANTS[:4]]
        add(store(tmp_path / f"n{number}", records, number), tmp_path / "h")
    run = store(tmp_path / "now", [case(v, 0.055, seed=9) for v in VARIANTS[:4]], 9)
    judgement = judge(run, AgainstNights(History(tmp_path / "h"), run, 4, lambda logs, threshold: begins))
    assert bool(judgement.of(Outcome.SLOWER)) is told
