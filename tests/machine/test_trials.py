"""Trials in child processes: one that crashes or hangs is wrong, and the others are made all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import nvidia_opencl
import pytest

from perfport.backend.base import target_of
from perfport.backend.offline import cuda_info
from perfport.machine import trials
from perfport.model.device import DeviceInfo

#: What a child would be: `main` with planted trials, each of which works, does not, or takes the process along.
PLANTED = """
import os, signal, sys, time
from types import SimpleNamespace
from perfport import backend
from perfport.backend import opencl_trials
from perfport.machine import trials
from perfport.model.device import DeviceInfo
from perfport.model.errors import CompileError

def refused(): raise CompileError("planted")
def lost(): raise RuntimeError("planted: out of resources")
OUTCOMES = {
    "dp4a": lambda: True, "warp_sync": lambda: os.kill(os.getpid(), signal.SIGSEGV), "wide_loads": refused,
    "ptx": lambda: True, "mma": lost, "wgmma": lambda: HANGS and time.sleep(60), "full_groups": lambda: True,
    "local_memory_bytes": lambda: True,
}
HANGS = HANGS_HERE
class Trial(SimpleNamespace):
    def works(self, device): return OUTCOMES[self.name]()
given = opencl_trials.trials
opencl_trials.trials = lambda info: [Trial(name=trial.name, value=trial.value) for trial in given(info)]
backend.get = lambda name: SimpleNamespace(open=lambda info: None)
# python -m MODULE INFO NAMES...
with open(CALLS, "a") as calls: calls.write(" ".join(sys.argv[4:]) + "\\n")
trials.main(DeviceInfo.model_validate_json(sys.argv[3]), sys.argv[4:])
"""


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Let children run a script; the file of their arguments."""
    program, child, calls = folder / "planted.py", folder / "child.sh", folder / "calls"
    program.write_text(script.replace("CALLS", repr(str(calls))))
    child.write_text(f'#!/bin/sh\nexec {sys.executable} {program} "$@"\n')
    child.chmod(0o755)
    monkeypatch.setattr(trials.sys, "executable", str(child))
    return calls


def test_outcomes_become_capabilities_limits_and_a_target() -> None:
    info = nvidia_opencl.untried()
    assert trials.with_outcomes(info, {}) == info and target_of(info) is None
    some = trials.with_outcomes(info, {"dp4a": 1, "full_groups": 768, "local_memory_bytes": 162 << 10})
    assert (some.max_work_group, some.local_memory_bytes) == (768, 162 << 10)
    assert set(some.capabilities) == {*info.capabilities, "dp4a", "full_groups"} and target_of(some) == "dp4a+"
    every = nvidia_opencl.tried()
    assert "unaligned_vload" not in every.capabilities and every.local_memory_bytes == 227 << 10
    assert target_of(every) == "dp4a+warp_sync+wide_loads+sm_90"


@pytest.mark.parametrize("hangs", [False, True])
def test_what_ends_its_process_is_wrong_and_the_rest_is_tried(
    hangs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hangs:
        monkeypatch.setattr(trials, "TIMEOUT_S", 10.0)
    calls = planted(tmp_path, monkeypatch, PLANTED.replace("HANGS_HERE", str(hangs)))
    info = nvidia_opencl.untried()
    found = trials.tried(info)
    assert set(found.capabilities) == {*info.capabilities, "dp4a", "ptx", "full_groups"}
    assert (found.max_work_group, found.local_memory_bytes) == (1024, 227 << 10)
    processes = calls.read_text().splitlines()
    assert len(processes) == 3 + hangs and processes[:2] == ["", "dp4a=1=1 warp_sync=1=0"], "nothing is tried twice"


@pytest.mark.parametrize(
    "script", ["raise SystemExit(9)", "print('TRY other=1')\nprint('RIGHT dp4a=1')", "while 1: pass"]
)
def test_a_child_that_says_nothing_of_use(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "TIMEOUT_S", 2.0)
    planted(tmp_path, monkeypatch, script)
    info = nvidia_opencl.untried()
    assert trials.tried(info) == info


def test_nothing_is_started_where_nothing_is_tried(
    opencl_infos: list[DeviceInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials.subprocess, "run", lambda *args, **options: pytest.fail("a process"))
    others = [info for info in opencl_infos if not info.compute_capability]
    others.append(cuda_info("sm_90"))
    assert [trials.tried(info) for info in others] == others
