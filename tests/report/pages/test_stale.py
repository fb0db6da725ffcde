"""The page of ages: results by what has changed since; cases without a result are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.model.record import Status
from perfport.report.pages import stale
from perfport.run.sources import Age, Verdict
from perfport.store.collection import Collection


def test_ages_are_counted_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = {"a": Verdict(Age.STALE, "a.cl"), "b": Verdict(Age.CURRENT, ""), "c": Verdict(Age.UNKNOWN, "no history")}
    monkeypatch.setattr(stale, "age", lambda run, identity, workloads=None: verdicts[identity.variant])
    records = [data.record(name) for name in verdicts] + [data.record("bad", status=Status.CRASHED)]
    held = Collection([data.store(tmp_path / "run", records)])
    shown = stale.view(held)
    assert "1 of 3 results were measured with code that has changed since." in shown.markdown
    assert {row["variant"]: row["age"] for row in shown.rows} == {"a": Age.STALE, "b": Age.CURRENT, "c": Age.UNKNOWN}
    assert "a.cl" in shown.markdown and stale.ages(held, held.runs[0]) == "1 of 3"
