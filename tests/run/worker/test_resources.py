"""What a worker keeps: workloads are imported once, devices opened once, the harness's kernels compiled once."""

from __future__ import annotations

from typing import Any

import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.machine import platforms
from perfport.run.worker import resources as module
from perfport.run.worker.resources import Resources


def test_a_workload_is_imported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "discover", lambda paths, only: asked.append((paths, only)) or {only: object()})
    kept = Resources("run", ["path"], lambda message: None)
    assert kept.workload("w") is kept.workload("w")
    kept.workload("other")
    assert asked == [(["path"], "w"), (["path"], "other")]


def test_a_device_is_opened_once_and_sees_its_own_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    monkeypatch.setattr(platforms, "use", used.append)
    monkeypatch.setattr(backend, "get", lambda name: type("B", (), {"open": staticmethod(lambda info: object())}))
    kept = Resources("run", [], lambda message: None)
    info: Any = type("I", (), {"id": "d", "runtime": "libocl.so", "backend": "opencl"})()
    assert kept.device(info) is kept.device(info)
    assert used == [["libocl.so"]]


def test_kernels_of_the_harness_are_compiled_once_for_each_device(opencl: OpenDevice) -> None:
    kept = Resources("run", [], lambda message: None)
    kept._devices[opencl.info.id] = opencl
    assert kept.contents(opencl.info) is kept.contents(opencl.info)
    assert kept.agreement(opencl.info) is kept.agreement(opencl.info)
