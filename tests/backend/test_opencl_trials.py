"""Trials: right where the dialect does without what they try, wrong where a kernel is, and code that NVIDIA takes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import nvidia_opencl
import pytest

from perfport.backend import OpenDevice, assembler, opencl_trials
from perfport.backend.base import FEATURES
from perfport.backend.opencl_trials import TRIALS, Assembled, Feature, Limit, Trial, gives, trials
from perfport.model.errors import CompileError

FEATURE_TRIALS = [trial for trial in TRIALS if isinstance(trial, Feature)]
ASSEMBLED = [trial for trial in TRIALS if isinstance(trial, Assembled)]


def name_of(trial: Trial) -> str:
    return f"{trial.name}={trial.value}"


def test_every_feature_of_the_dialect_is_tried() -> None:
    assert [trial.name for trial in FEATURE_TRIALS] == list(FEATURES)


@pytest.mark.parametrize("trial", FEATURE_TRIALS, ids=name_of)
def test_without_the_feature_the_numbers_are_right(trial: Feature, opencl: OpenDevice) -> None:
    device: Any = opencl
    assert gives(device, trial.artifact(None), trial.expected)


@pytest.mark.parametrize("trial", FEATURE_TRIALS, ids=name_of)
def test_a_wrong_number_is_seen(trial: Feature, opencl: OpenDevice) -> None:
    device: Any = opencl
    wrong = replace(trial, source=trial.source.replace("out[4", "if (get_global_id(0) != 77) out[4").replace(
        "i, out);", "i, out + 4 * (i == 77));"))  # fmt: skip
    assert wrong.source != trial.source and not gives(device, wrong.artifact(None), wrong.expected)


@pytest.mark.parametrize("trial", [Limit("full_groups", 384), Limit("local_memory_bytes", 16 << 10)], ids=name_of)
def test_limits_within_which_a_device_works(trial: Limit, opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    device: Any = opencl
    assert trial.works(device)
    source = "perfport.backend.opencl_trials.EXCHANGE"
    from perfport.backend.opencl_trials import EXCHANGE

    monkeypatch.setattr(source, EXCHANGE.replace("barrier(CLK_LOCAL_MEM_FENCE);", "box[SIZE - 1] = 0;"))
    assert not trial.works(device)


def test_a_feature_that_the_compiler_does_not_take_is_an_error(opencl: OpenDevice) -> None:
    device: Any = opencl
    unknown = replace(FEATURE_TRIALS[0], source="__kernel void trial() { planted(); }")
    with pytest.raises(CompileError):
        unknown.works(device)


@pytest.mark.parametrize("trial", ASSEMBLED, ids=name_of)
def test_ptx_that_is_tried_assembles(trial: Assembled) -> None:
    pytest.importorskip("cupy")
    text = trial.artifact("9.0").code.decode()
    assert text.count(".ptr .global") == 2 and ".extern" not in text
    assembler.assemble("trial.ptx", text, [f"-arch=sm_90{trial.suffix}"])


def test_a_product_of_a_warpgroup_is_tried_by_one() -> None:
    """Each instruction of wgmma is for 128 work-items; the kernel without it is that of mma."""
    (wgmma,) = (trial for trial in ASSEMBLED if trial.name == "wgmma")
    text = wgmma.artifact("9.0").code.decode()
    assert opencl_trials.GROUP == 128 and "%r1, 128, %r0" in text and ".target sm_90a" in text
    assert "wgmma.mma_async" in text and not re.search(r"^\s*mma\.sync", text, re.M)


def test_what_is_tried_where() -> None:
    def names(capability: str) -> set[str]:
        return {trial.name for trial in trials(nvidia_opencl.untried(capability))}

    everywhere = {*FEATURES, "ptx", "full_groups", "local_memory_bytes"}
    assert names("9.0") == {*everywhere, "mma", "wgmma"}
    assert names("8.6") == {*everywhere, "mma"} and names("7.0") == everywhere
    small = nvidia_opencl.untried().model_copy(update={"max_work_group": 512, "local_memory_bytes": 99 << 10})
    assert [trial.value for trial in trials(small) if trial.name == "full_groups"] == [512, 384]
    assert min(trial.value for trial in trials(small) if trial.name == "local_memory_bytes") == 162 << 10


@pytest.mark.skipif(bool(nvidia_opencl.MISSING), reason=nvidia_opencl.MISSING)
@pytest.mark.parametrize("trial", FEATURE_TRIALS, ids=name_of)
def test_the_feature_is_in_the_code(trial: Feature) -> None:
    instruction = {"dp4a": "dp4a.u32.u32", "warp_sync": "bar.warp.sync", "wide_loads": "st.global.v4"}[trial.name]
    with_it, without = trial.artifact(f"{trial.name}+"), trial.artifact(None)
    assert instruction in nvidia_opencl.ptx(with_it.code, with_it.options)
    assert instruction not in nvidia_opencl.ptx(without.code, without.options)
