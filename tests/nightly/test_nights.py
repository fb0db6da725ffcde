"""Three weeks of nightly runs, each with the right exit code and a summary that says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nightly_weeks import WEEKS, Night, story

from perfport.model.device import DeviceInfo
from perfport.model.record import Record
from perfport.nightly.history import History

# On a machine that is busy with other tests.
pytestmark = [pytest.mark.any_device, pytest.mark.minutes, pytest.mark.timeout(600)]
GUIDE = Path(__file__).parents[2] / "docs" / "nightly.md"
SCRIPT = Path(__file__).parents[1] / "support" / "nightly_weeks.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the weeks are."""
    return tmp_path_factory.mktemp("weeks")


@pytest.fixture(scope="module")
def answers(folder: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str]) -> list[dict[str, Any]]:
    """What every command answered."""
    (folder / "device.json").write_text(opencl_infos[0].model_dump_json())
    command = [sys.executable, str(SCRIPT), str(folder), str(folder / "device.json")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=550, check=False, env=no_ceilings, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("number", "night"), list(enumerate(WEEKS, 1)), ids=[f"night{n}" for n in range(1, len(WEEKS) + 1)]
)
def test_a_night(answers: list[dict[str, Any]], folder: Path, number: int, night: Night) -> None:
    said = {answer["command"]: answer for answer in answers if answer["night"] == number}
    assert said["run"]["code"] == night.run, said["run"]["said"]
    told = said["run" if night.missing else "check"]["said"]
    assert all(word in " ".join(told.split()) for word in night.words), told
    if night.missing:
        assert "planted: no answer" in told and not (folder / f"night{number:02d}").exists()
        return
    assert said["check"]["code"] == night.check, told
    assert said["history add"]["code"] == 0 and "history/" in said["history add"]["said"]
    assert not night.accept or said["history accept"]["code"] == 0


def test_the_history_of_the_weeks(answers: list[dict[str, Any]], folder: Path) -> None:
    history = History(folder / "history")
    assert len(history.nights) == len(WEEKS) - 1 and not history.left_out and len(history.series) == 3
    (series,) = [one for one in history.series.values() if one.place.variant == "clock_a"]
    assert [event.change.kind for event in history.events(series)] == ["driver", "source", "source"]


def test_the_guide_tells_the_story_as_the_commands_did(answers: list[dict[str, Any]]) -> None:
    """``python tests/support/nightly_weeks.py FOLDER`` prints it again."""
    assert story(answers) in GUIDE.read_text()


def test_each_case_is_measured_by_fresh_workers(answers: list[dict[str, Any]], folder: Path) -> None:
    stored = [(folder / f"records{number}.jsonl").read_bytes() for number in range(3)]
    assert stored[1].startswith(stored[0]) and stored[2] == stored[1], (
        "more workers add, and a finished run does nothing"
    )
    lines = [Record.model_validate_json(line) for line in stored[1].splitlines()]
    assert len(lines) == 9, "each worker's result is stored when it is there"
    first = {record.key: record for record in lines[:3]}
    for record in lines[-3:]:
        assert record.timing and record.timing.workers == [0] * 3 + [1] * 3 + [2] * 3
        before = first[record.key].timing
        assert before and record.timing.wall[:3] == before.wall and len(set(record.timing.rounds)) == 9
