"""The process behind the loop, in this one: code that did not change is loaded once, and only what is used is kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import edited_workload as edited

from perfport.backend import OpenDevice
from perfport.backend.offline import cuda_info
from perfport.model.errors import UnavailableError
from perfport.model.record import Status
from perfport.run.messages import StepStarted
from perfport.untimed import show
from perfport.untimed.bench import Bench, Task, Version


def copied(own: Path, name: str) -> Version:
    """A state of the workload's folder."""
    return Version(Path(shutil.copytree(own, own.parent / name / own.name)), "the same")


def bench(own: Path, info: Any, sent: list[Any]) -> Bench:
    subject = show.find(edited.CASE, Path("nowhere"), "quick", [str(own)])
    return Bench(info, subject.identity, 1, sent.append)


def test_only_what_changed_is_compiled(opencl: OpenDevice, tmp_path: Path, monkeypatch: Any) -> None:
    own, sent, loaded = edited.write(tmp_path), [], []
    made = bench(own, opencl.info, sent)
    made._device = opencl
    load = opencl.load
    monkeypatch.setattr(opencl, "load", lambda artifact: loaded.append(artifact.name) or load(artifact))
    one = copied(own, "one")
    report = made.serve(Task(one))
    assert (report.status, report.rival_name) == (Status.OK, "other"), report.reason
    assert {step.key for step in sent if isinstance(step, StepStarted)} >= {None, "plain", "other", "now", "rival"}
    edited.save(own, "y[i] = 2.0f * x[i];")
    before = set(made._modules)
    del loaded[:]
    again = made.serve(Task(copied(own, "two"), one, "other"))
    assert again.status is Status.OK and again.before and loaded.count("scale.cl") == 1 and "other.cl" not in loaded
    assert len(made._loaded) == 1 and len(before - set(made._modules)) <= len(before)
    assert again.record and again.record.timing and len(again.record.timing.rounds) >= 7


def test_without_a_device_it_is_compiled_alone(tmp_path: Path, monkeypatch: Any) -> None:
    own = edited.write(tmp_path)
    made = bench(own, cuda_info("sm_90"), [])

    def missing() -> None:
        raise UnavailableError("planted: no compiler")

    monkeypatch.setattr("perfport.backend.nvrtc._library", missing)
    report = made.serve(Task(copied(own, "one")))
    assert (report.status, report.reason, report.record) == (Status.UNAVAILABLE, "planted: no compiler", None)
