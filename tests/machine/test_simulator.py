"""Oclgrind as a device: where it is, what limits it gets, and what is said where it is missing or broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfport.machine import simulator
from perfport.machine.device_profile import load_profile
from perfport.model.errors import InfrastructureError, UnavailableError


def test_the_runtime_lies_beside_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime = tmp_path / "lib" / "oclgrind" / simulator.RUNTIME
    runtime.parent.mkdir(parents=True)
    runtime.write_text("")
    monkeypatch.setattr(simulator.shutil, "which", lambda name: str(tmp_path / "bin" / "oclgrind"))
    assert simulator.library() == str(runtime)


def test_what_is_not_installed_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator.shutil, "which", lambda name: None)
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(UnavailableError, match=r"Oclgrind is not installed .*apt-get install oclgrind"):
        simulator.library()


def test_limits_of_a_profile() -> None:
    limits = simulator.limits(load_profile("hd5870"))
    assert limits == {"OCLGRIND_MAX_WGSIZE": "256", "OCLGRIND_LOCAL_MEM_SIZE": "32768"}


@pytest.mark.parametrize("healthy", [True, False])
def test_the_device_is_asked_in_a_child(monkeypatch: pytest.MonkeyPatch, healthy: bool) -> None:
    asked: list[Any] = []
    info = type("I", (), {"healthy": healthy, "reason": "planted"})()
    monkeypatch.setattr(simulator, "library", lambda: "libocl.so")
    monkeypatch.setattr(simulator, "ask_child", lambda *given: asked.append(given) or [info])
    if healthy:
        assert simulator.find({"A": "b"}) is info
    else:
        with pytest.raises(InfrastructureError, match="Oclgrind: planted"):
            simulator.find({"A": "b"})
    assert asked == [("opencl", "oclgrind", "libocl.so", {"A": "b"})]
