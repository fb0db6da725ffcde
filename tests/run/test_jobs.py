"""Shares of a plan and what folders say of them (`tests/security/test_slurm.py` has what somebody may put there)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfport.model.errors import UsageError
from perfport.run.jobs import Job, Outcome, Planned, Share, Stored, read


def test_a_job_says_how_it_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(Share, "run", lambda self: "no\nsuch device")
    share = Share(
        experiment=tmp_path, folder=tmp_path, devices=[], part=0, parts=1, seed=1, patterns=(), retry=(), workloads=[],
        command=[], outcome=tmp_path,
    )  # fmt: skip
    share()
    assert json.loads((tmp_path / "17.json").read_text()) == {"refused": "no such device", "error": ""}
    assert Outcome.read(tmp_path, "17") == Outcome(refused="no such device")

    def fails(self: Share) -> str:
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr(Share, "run", fails)
    with pytest.raises(RuntimeError):
        share()
    assert Outcome.read(tmp_path, "17") == Outcome(error="RuntimeError: out of luck")

    def stopped(self: Share) -> str:
        raise SystemExit(143)

    (tmp_path / "17.json").unlink()
    monkeypatch.setattr(Share, "run", stopped)
    with pytest.raises(SystemExit):
        share()
    assert Outcome.read(tmp_path, "17") is None, "Slurm says what became of it"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"refused": 7}', '{"refused": "' + "x" * 20_000 + '"}', "\\xff"])
def test_an_outcome_that_is_none_counts_for_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "1.json").write_text(content)
    assert Outcome.read(tmp_path, "1") is None and Outcome.read(tmp_path, "2") is None


def test_what_a_folder_says_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    stored = Stored(seed=7, jobs=[Job(partition="gpu", part=0, parts=1, ids=["12"], session="submitit-x_1")])
    file.write_text(stored.model_dump_json())
    assert read(file, Stored) == stored
    for content in ("", "{", "[]", '{"seed": 1, "jobs": [{"partition": "a", "part": 0, "parts": 1, "ids": ["../x"]}]}'):
        file.write_text(content)
        with pytest.raises(UsageError, match=r"jobs\.json"):
            read(file, Stored)
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none.json", list[Planned])


def test_folders_of_jobs_are_named_by_partition_and_number(tmp_path: Path) -> None:
    top = tmp_path / "out"
    folders = [Job(partition=name, part=1, parts=2).folder(top) for name in ("short", "Short", "../x", "/x", "a,b")]
    assert folders[0] == top / "jobs" / "out-short-2" and len(set(folders)) == 5
    assert {folder.parent for folder in folders} == {top / "jobs"}
