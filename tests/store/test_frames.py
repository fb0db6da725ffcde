"""Frames of cases, samples and ceilings: made without any claim."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import report_data as data

from perfport.model.record import Energy, Interval
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


def test_energy_has_columns_where_it_was_asked_for(tmp_path: Path) -> None:
    told, absent, unasked = data.record("told"), data.record("absent"), data.record("unasked")
    told.energy = Energy(
        joules=Interval(value=2.0, low=1.9, high=2.2), domain="whole GPU (NVML)", seconds=5.0, executions=10, loops=5,
        update_s=0.1, idle_watts=70.0,
    )  # fmt: skip
    absent.energy = Energy(absent="no counter")
    run = data.store(tmp_path / "run", [told, absent, unasked], data.environment((data.POCL,)))
    frame = CaseFrames(Collection([run])).cases.set_index("variant")
    row = frame.loc["told"]
    assert (row["joules"], row["joules_low"], row["joules_high"], row["watts"]) == (2.0, 1.9, 2.2, 4.0)
    assert (row["idle_watts"], row["energy_domain"]) == (70.0, "whole GPU (NVML)")
    assert frame["joules"].isna().to_dict() == {"told": False, "absent": True, "unasked": True}
    assert frame["energy_absent"].dropna().to_dict() == {"absent": "no counter"}


def test_frames_of_cases_need_no_claim() -> None:
    script = "import sys, perfport.store.frames; print([n for n in sys.modules if n.startswith('perfport.judge')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
