"""Frames of cases, samples and ceilings: made without any claim."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import report_data as data

from perfport.store.collection import Collection
from perfport.store.frames import CaseFrames


def test_one_row_for_each_case_sample_and_ceiling(tmp_path: Path) -> None:
    records = [data.record("a", 0.02, n=9), data.record("b", 0.01, clock="wall", n=7)]
    run = data.store(tmp_path / "run", records, data.environment((data.POCL,)))
    frames = CaseFrames(Collection([run]))
    assert list(frames.cases["variant"]) == ["a", "b"] and list(frames.cases["best"]) == [False, True]
    assert frames.samples.groupby("clock", observed=True).size().to_dict() == {"span": 9, "wall": 16}
    assert len(frames.instances) == 0 and frames.cases is frames.cases
    assert set(frames.ceilings["taken"]) == {"sweep", "before", "after"}


def test_frames_of_cases_need_no_claim() -> None:
    script = "import sys, perfport.store.frames; print([n for n in sys.modules if n.startswith('perfport.judge')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
