"""Accepted levels: a file that reads like what it says, and the nights before are no base any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import history_data
import numpy as np
import pytest
import report_data as data
import yaml
from check_data import VARIANTS, case, finding, outcomes, store

from perfport.model.errors import InfrastructureError, UsageError
from perfport.nightly.accepted import FILE, Accepted, accept
from perfport.nightly.base import AgainstNights
from perfport.nightly.check import judge
from perfport.nightly.finding import Colour, Judgement, Outcome
from perfport.nightly.history import History, add
from perfport.nightly.history import store as save
from perfport.store.results import Run


def night(folder: Path, number: int, slow: float = 1.0, driver: str = "3.1") -> Run:
    """A night in which ``v1`` takes so many times as long."""
    records = [case(v, 0.05 * (slow if v == "v1" else 1), seed=number) for v in VARIANTS]
    return store(folder / f"n{number}", records, number, driver=driver)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five nights, and one with a new driver that made ``v1`` slower."""
    for number in range(5):
        add(night(tmp_path, number), tmp_path / "h")
    add(night(tmp_path, 5, 1.1, "4.0"), tmp_path / "h")
    return tmp_path


def judged(folder: Path, run: Run) -> Judgement:
    return judge(run, AgainstNights(History(folder / "h"), run, 7, None, Accepted(folder / "h" / FILE)))


def test_an_accepted_level_is_the_base_from_its_first_night(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    tonight = night(folder, 6, 1.1, "4.0")
    before = judged(folder, tonight)
    assert [found.place.variant for found in before.of(Outcome.SLOWER)] == ["v1"] and before.colour is Colour.YELLOW
    assert finding(before, "v1").why.startswith("since driver 3.1 -> 4.0")
    arguments = ("accept", " v1 ", "--in", folder / "h", "--reason", "fixes a race: issue 7")
    assert data.call(monkeypatch, "history", *arguments) == 0
    assert "accepted: demo/rows v1" in capsys.readouterr().out
    (entry,) = yaml.safe_load((folder / "h" / FILE).read_text())["levels"]
    assert entry["since"] == "2026-11-06T02:00:00+00:00" and entry["reason"] == "fixes a race: issue 7"
    assert entry["event"].startswith("driver 3.1") and entry["change"].startswith("+10")
    after = judged(folder, tonight)
    assert not after.of(Outcome.SLOWER) and after.colour is Colour.GREEN
    assert "1 night of the level accepted since 2026-11-06" in finding(after, "v1").why
    assert outcomes(after)["v1"] in (Outcome.SAME, Outcome.CANNOT_TELL)
    worse = judged(folder, night(folder, 7, 1.25, "4.0"))
    assert outcomes(worse)["v1"] is Outcome.SLOWER and worse.colour is Colour.RED, (
        "one night tells what is slower still"
    )
    assert data.call(monkeypatch, "history", *arguments) == 0
    assert len(Accepted(folder / "h" / FILE).entries) == 1, "the same again adds nothing"


def test_an_event_is_accepted_for_all_of_its_cases(folder: Path) -> None:
    history, file = History(folder / "h"), folder / "reviewed" / "levels.yaml"
    entries = accept(history, list(history.series.values()), Accepted(file), event="-> 4.0")
    assert len(entries) == len(VARIANTS) == len(Accepted(file).entries)
    with pytest.raises(UsageError, match=r"no event of these cases contains 'c3d4'; their latest are: driver 3.1"):
        accept(history, list(history.series.values()), Accepted(file), event="c3d4")


def test_a_level_of_which_there_is_no_night_is_accepted_and_not_judged(tmp_path: Path) -> None:
    for number in range(2):
        add(night(tmp_path, number), tmp_path / "h")
    run = night(tmp_path, 2, 1.1, "4.0")
    add(run, tmp_path / "h")
    history = History(tmp_path / "h")
    accept(history, list(history.series.values()), Accepted(tmp_path / "h" / FILE), event="4.0")
    judgement = judged(tmp_path, run)
    assert set(outcomes(judgement).values()) == {Outcome.ACCEPTED} and judgement.colour is Colour.GREEN
    assert "0 nights of the level accepted since 2026-11-03" in judgement.findings[0].why


def test_without_an_event_the_latest_night_begins_the_level(tmp_path: Path) -> None:
    for number in range(4):
        add(night(tmp_path, number, 1.1 if number == 3 else 1.0), tmp_path / "h")
    history = History(tmp_path / "h")
    (series,) = (each for each in history.series.values() if each.place.variant == "v1")
    (entry,) = accept(history, [series], Accepted(tmp_path / "h" / FILE))
    assert entry.since.startswith("2026-11-04") and entry.event == ""
    judgement = judged(tmp_path, night(tmp_path, 4, 1.1))
    assert not judgement.of(Outcome.SLOWER) and "accepted since 2026-11-04" in finding(judgement, "v1").why


def test_a_change_without_an_event_after_one_is_accepted_from_its_night(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver changed in the sixth night; in the eighth ``v1`` is slower again, and nothing says why."""
    add(night(folder, 6, 1.1, "4.0"), folder / "h")
    eighth = night(folder, 7, 1.25, "4.0")
    latest = ("accept", " v1 ", "--in", folder / "h")
    assert data.call(monkeypatch, "history", *latest) == 0
    assert judged(folder, eighth).colour is Colour.RED, "the level of the driver is another"
    add(eighth, folder / "h")
    assert data.call(monkeypatch, "history", *latest, "--since", "2026-11-08") == 0
    entry = Accepted(folder / "h" / FILE).entries[-1]
    assert entry.since.startswith("2026-11-08") and entry.event == "" and entry.change.startswith("+")
    after = judged(folder, night(folder, 8, 1.25, "4.0"))
    assert not after.of(Outcome.SLOWER) and "accepted since 2026-11-08" in finding(after, "v1").why


def test_a_night_without_a_date_begins_no_level(tmp_path: Path) -> None:
    held = history_data.night(0, np.array([0.05]))
    held.started = ""
    save(held, tmp_path / "h")
    history = History(tmp_path / "h")
    with pytest.raises(UsageError, match="night nightly-0: since"):
        accept(history, list(history.series.values()), Accepted(tmp_path / FILE))


def test_the_file_is_read_strictly(tmp_path: Path) -> None:
    file = tmp_path / FILE
    assert Accepted(file).entries == []
    good = {"case": "c", "device": "d", "experiment": "e", "since": "2026-11-04T02:00:00+00:00"}
    for content, complaint in (
        ({"perfport_accepted": 2}, "perfport_accepted"),
        ({"perfport_accepted": 1, "levels": [{**good, "sinse": ""}]}, "sinse"),
        ({"perfport_accepted": 1, "levels": [{**good, "since": "yesterday"}]}, "since"),
        ([], "accepted.yaml"),
    ):
        file.write_text(yaml.safe_dump(content))
        with pytest.raises(UsageError, match=complaint):
            Accepted(file)


def test_a_file_that_cannot_be_written_is_named(folder: Path) -> None:
    (folder / "file").write_text("")
    history = History(folder / "h")
    with pytest.raises(InfrastructureError, match=r"levels.yaml: cannot be written"):
        accept(history, list(history.series.values()), Accepted(folder / "file" / "levels.yaml"))


def test_usage(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for arguments, said in (
        ([], "give a case, or --event"),
        (["nothing"], "no case's name contains 'nothing'"),
        (["v1", "--event", "x"], "no event of these cases contains 'x'"),
        (["v1", "--event", "x", "--since", "2026-11-06"], "not both"),
        (["v1", "--since", "9 Nov"], "--since: expected a date, or date and time"),
        (["v1", "--since", "2026-12-01"], "no night of these cases began on 2026-12-01 or later"),
    ):
        assert data.call(monkeypatch, "history", "accept", *arguments, "--in", folder / "h") == 2
        assert said in capsys.readouterr().err
    for said in ("accepted: demo/rows v1", "holds these levels already"):
        assert data.call(monkeypatch, "history", "accept", "v1", "--in", folder / "h") == 0
        assert said in capsys.readouterr().out
    (folder / "new").mkdir()
    (folder / "new" / "damaged.json").write_text("{")
    assert data.call(monkeypatch, "history", "accept", "--event", "4.0", "--in", folder / "new") == 2
    told = capsys.readouterr().err
    assert "left out:" in told and "damaged.json" in told and "holds no case yet" in told
