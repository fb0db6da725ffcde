"""Every variant's code for NVIDIA's OpenCL, with all that trials can show, compiled and assembled without it."""

from __future__ import annotations

from functools import cache
from typing import Any

import nvidia_opencl
import pytest

from perfport import workload
from perfport.backend import Artifact, assembler
from perfport.backend.offline import OfflineDevice
from perfport.model.errors import UnavailableError, UnsupportedError
from perfport.workload import Peer, Session, Setup

VARIANTS = [
    (one.name, problem, variant)
    for one in workload.discover().values()
    for problem, variants in one.variants.items()
    for variant, cls in variants.items()
    if not issubclass(cls, Peer)
]
INFO = nvidia_opencl.tried()


@cache
def assembled(text: str) -> None:
    """Assemble once what several variants share."""
    assembler.assemble("trial.ptx", text, ["-arch=sm_90"])


def built(workload_name: str, problem: str, variant: str) -> list[Artifact]:
    found = workload.discover()[workload_name]
    cls, chosen = found.variant(problem, variant), found.problem(problem)
    try:
        cls.require(INFO)
        made = chosen(chosen.Parameters.model_validate(chosen.presets["tiny"]), 1)
        device: Any = OfflineDevice(INFO)
        tunables = {name: tunable.default_for(INFO) for name, tunable in cls.tunables.items()}
        setup = Setup(Session(device, made, found.folder), tunables, {})
        cls(setup)
    except (UnsupportedError, UnavailableError) as error:
        pytest.skip(str(error))
    return setup.artifacts


@pytest.mark.parametrize(("workload_name", "problem", "variant"), VARIANTS)
def test_what_was_cuda_c_or_generated_is_ptx_for_opencl(workload_name: str, problem: str, variant: str) -> None:
    pytest.importorskip("cupy")
    texts = [made.code.decode() for made in built(workload_name, problem, variant) if made.form == "ptx"]
    for text in texts:
        assert ".extern .shared" not in text and ".param .u64 .ptr .global" in text
        assembled(text)
    if "ptx" in workload.discover()[workload_name].variant(problem, variant).needs:
        assert texts


@pytest.mark.skipif(bool(nvidia_opencl.MISSING), reason=nvidia_opencl.MISSING)
@pytest.mark.parametrize(("workload_name", "problem", "variant"), VARIANTS)
def test_opencl_c_compiles_with_what_trials_can_show(workload_name: str, problem: str, variant: str) -> None:
    pytest.importorskip("cupy")
    for made in built(workload_name, problem, variant):
        if made.form == "source":
            text = nvidia_opencl.ptx(made.code, made.options)
            if "ocl_image" not in text:  # functions of images are the runtime's own
                assembled(text)
