"""What a device refuses while an execution is enqueued, on the host, and when results are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from perfport.model.errors import RefusedError
from perfport.workload.guarded import TRANSFERS, GuardedDevice


class Device:
    """Answers every method with its name and arguments."""

    info = "info"

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: (name, args, named)


def test_everything_passes_while_a_variant_is_built() -> None:
    device = GuardedDevice(Device())  # type: ignore[arg-type]
    assert device.info == "info" and device.phase == "build"
    for name in (*TRANSFERS, "launch", "finish"):
        assert getattr(device, name)(1, a=2) == (name, (1,), {"a": 2})


@pytest.mark.parametrize(
    ("phase", "refused"),
    [("launch", set(TRANSFERS)), ("launch on the host", {"launch"}), ("results", {"launch"})],
)
def test_each_phase_refuses_its_own(phase: Any, refused: set[str]) -> None:
    device = GuardedDevice(Device())  # type: ignore[arg-type]
    kept = {name: getattr(device, name) for name in (*TRANSFERS, "launch", "finish")}  # as a variant may keep them
    with device.during(phase):
        for name, method in kept.items():
            if name in refused:
                with pytest.raises(RefusedError, match=rf"refused: device\.{name} in {phase}: "):
                    method()
            else:
                assert method() == (name, (), {})
    assert device.phase == "build" and kept["read"]() == ("read", (), {})


def test_a_launch_on_another_queue_is_refused_in_an_execution_alone() -> None:
    device = GuardedDevice(Device())  # type: ignore[arg-type]
    assert device.launch(queue="other") == ("launch", (), {"queue": "other"})
    with device.during("launch"), pytest.raises(RefusedError, match=r"refused: device\.launch on another queue"):
        device.launch(queue="other")
    with pytest.raises(ValueError, match="planted"), device.during("launch"):
        raise ValueError("planted")
    assert device.phase == "build"


def test_a_device_is_not_changed() -> None:
    device = GuardedDevice(Device())  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match=r"refused: device\.finish is set"):
        device.finish = lambda: None
