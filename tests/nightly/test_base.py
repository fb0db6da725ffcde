"""What a run is held to: nights in line, conditions that changed, levels before a change point."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_data import VARIANTS, case, finding, outcomes, store

from perfport.nightly.base import AgainstNights, in_line
from perfport.nightly.check import judge
from perfport.nightly.finding import Outcome
from perfport.nightly.history import History, add
from perfport.store.results import Run


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
