"""What a variant takes, and which limit of another device it does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import report_data as data
from predict_data import device

from perfport.judge.predict.devices import of_profile
from perfport.judge.predict.limits import (
    Footprint,
    footprint,
    occupancy,
    registers_short,
    resident,
    unsupported,
)
from perfport.model.record import Identity
from perfport.model.work import Traffic

SMALL = Footprint(group=256, registers=32, local=1000, device_bytes=10**8)
HD5870, GTX1080 = of_profile("hd5870"), of_profile("gtx1080")


def identity(**change: Any) -> Identity:
    """Return the identity of a variant that ships."""
    fields = {"workload": "svm_rbf", "problem": "rbf_rows", "variant": "row_major", "devices": ["x"], "backend": "cuda"}
    return Identity(**{**fields, **change})


@pytest.mark.parametrize(
    ("taken", "complaint"),
    [
        (SMALL, None),
        (replace(SMALL, group=512), "work-groups of 512, at most 256"),
        (replace(SMALL, local=40_000), "40000 B of local memory, has 32768"),
        (replace(SMALL, device_bytes=2 * 10**9), "2.00 GB of device memory, has 1.07"),
        (replace(SMALL, registers=1024), "no work-group fits"),
    ],
)
def test_limits_of_an_hd_5870(taken: Footprint, complaint: str | None) -> None:
    found = unsupported(identity(), None, taken, HD5870)
    assert (found is None) if complaint is None else (found is not None and complaint in found)


@pytest.mark.parametrize(
    ("problem", "variant", "workload", "complaint"),
    [
        ("sparse_conv", "generated_ptx", "sparse_conv", "needs ptx"),
        ("rbf_rows", "image", "svm_rbf", None),
        ("rbf_rows", "numpy", "svm_rbf", "needs cpu"),
        ("rbf_rows", "no_such", "svm_rbf", None),
        ("rbf_rows", "row_major", "no_such", None),
    ],
)
def test_what_variants_need(problem: str, variant: str, workload: str, complaint: str | None) -> None:
    which = identity(problem=problem, variant=variant, workload=workload)
    assert unsupported(which, None, SMALL, HD5870) == complaint


def test_images_are_asked_of_the_device() -> None:
    without = replace(GTX1080, capabilities=GTX1080.capabilities - {"images"})
    assert unsupported(identity(variant="image"), None, SMALL, without) == "needs images"


def test_matrix_units_must_be_known_and_not_assumed() -> None:
    assert unsupported(identity(), "tf32_mma", SMALL, GTX1080) == "needs matrix units (tf32_mma)"
    assert unsupported(identity(), "tf32_mma", SMALL, of_profile("h200")) is None
    assert unsupported(identity(), "dp4a", SMALL, of_profile("k40m")) is None  # arithmetic in its place


def test_occupancy_by_hand() -> None:
    # 64 warps and 65536 registers: 8 groups of 8 warps fill it; 64 registers leave 4; 96 KB leave 3 groups of 32 KB.
    assert occupancy(Footprint(group=256), GTX1080) == 1.0
    assert occupancy(Footprint(group=256, registers=64), GTX1080) == 0.5
    assert occupancy(Footprint(group=256, registers=64, local=32 << 10), GTX1080) == pytest.approx(3 * 8 / 64)
    assert resident(Footprint(group=32), GTX1080) == 32  # not more groups than a compute unit holds
    assert occupancy(Footprint(), GTX1080) is None and occupancy(SMALL, device()) is None


def test_registers_that_may_be_spilled() -> None:
    gtx680, hd7970 = of_profile("gtx680"), of_profile("hd7970")
    assert registers_short(Footprint(registers=63), gtx680) == ""
    assert "at most 63" in registers_short(Footprint(registers=64), gtx680)
    assert "compiler of its time" in registers_short(Footprint(registers=65), hd7970)
    assert registers_short(Footprint(registers=64), hd7970) == registers_short(Footprint(registers=200), GTX1080) == ""
    assert registers_short(Footprint(registers=255), device()) == ""  # a live device compiled it itself


def test_what_a_record_tells() -> None:
    resources = {"a": {"registers": 20, "local_bytes": 100}, "b": {"registers": 40, "local_bytes": 0}}
    record = data.record("v", device=data.GPU, ceilings=None, tunables={"work_group": 128})
    told = footprint(record.model_copy(update={"resources": resources}), None, 300)
    assert (told.group, told.registers, told.local, told.dynamic_local) == (128, 40, 300, False)
    assert footprint(record, 512, None).group == 512  # counted before stated
    uses = record.model_copy(update={"traffic": Traffic(local_read=1.0)})
    assert footprint(uses, None, None).dynamic_local and not footprint(uses, None, 8).dynamic_local
