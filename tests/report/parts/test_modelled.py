"""Which predictions a suite shows: settings at which problems stand on GPUs, on each device that tells something."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from predict_data import two_devices

from perfport.judge.predict import Predictor, targets
from perfport.report.parts.modelled import SHOWN, settings_by_device
from perfport.store.collection import Collection


def test_a_setting_has_every_profile_and_the_live_devices_with_a_number(tmp_path: Path) -> None:
    predictor = Predictor(two_devices(tmp_path))
    held = settings_by_device(predictor)
    profiles = {device.name for device in targets(predictor) if not device.runtime}
    assert held and profiles
    for columns in held:
        assert {column[0].device.name for column in columns if not column[0].device.runtime} == profiles
        live = [column for column in columns if column[0].device.runtime]
        assert live and all(any(each.outcome in SHOWN for each in column) for column in live)
        assert len({tuple(each.key for each in column) for column in columns}) == 1, "the same cases on each device"


def test_what_cpus_alone_ran_is_not_shown(tmp_path: Path) -> None:
    """Profiles are of GPUs, and no live pair tells how wide an interval from a CPU to one of them is."""
    run = data.store(tmp_path / "run", [data.record("a", device=data.POCL), data.record("b", device=data.POCL)])
    assert settings_by_device(Predictor(Collection([run]))) == []
