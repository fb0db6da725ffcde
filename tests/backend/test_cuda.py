"""CUDA without a GPU: every kernel and every variant compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import pytest

from perfport import backend, workload
from perfport.backend import nvrtc
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.model.errors import UnavailableError, UnsupportedError
from perfport.workload import Peer, Session, Setup

#: Pascal is for the compiler of CUDA 12 (``tox -e cuda12``), which CUDA 13 no longer compiles for.
TARGETS = ("sm_61", "sm_75", "sm_90")
VARIANTS = [
    (one.name, problem, variant)
    for one in workload.discover().values()
    for problem, variants in one.variants.items()
    for variant, cls in variants.items()
    if not issubclass(cls, Peer)
]


@pytest.fixture(scope="module", autouse=True)
def compiled_once() -> Iterator[None]:
    """Skip the module, visibly, without the compiler's wheel. What several variants share is compiled once."""
    try:
        backend.get("cuda").build("probe.cu", "__kernel void k(__global float *x) {}", {})
    except UnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvrtc, "_compile", cache(nvrtc._compile))
        yield


def entries(ptx: str) -> set[str]:
    """Names of the kernels in PTX."""
    return set(re.findall(r"\.entry (\w+)", ptx))


def skip_what_is_too_old(target: str) -> None:
    """Skip Pascal for a newer compiler than that of CUDA 12."""
    if target == "sm_61" and not nvrtc.version().startswith("nvrtc 12"):
        pytest.skip(f"{nvrtc.version()} does not compile for {target}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("workload_name", "problem", "variant"), VARIANTS)
def test_every_variant_compiles(workload_name: str, problem: str, variant: str, target: str) -> None:
    skip_what_is_too_old(target)
    found = workload.discover()[workload_name]
    cls, info = found.variant(problem, variant), cuda_info(target)
    try:
        cls.require(info)
    except (UnsupportedError, UnavailableError) as error:
        pytest.skip(str(error))
    chosen = found.problem(problem)
    device = OfflineDevice(info)
    try:
        made = chosen(chosen.Parameters.model_validate(chosen.presets["tiny"]), 1)
    except UnavailableError as error:
        pytest.skip(str(error))
    setup = Setup(
        Session(device, made, found.folder),  # type: ignore[arg-type]
        {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}, {},
    )  # fmt: skip
    cls(setup)
    assert setup.artifacts and all(f"-arch={target}" in artifact.options for artifact in setup.artifacts)
    compiled = {name for artifact in device.artifacts for name in entries(artifact.listing["ptx"])}
    assert {kernel.name for kernel in setup.kernels} <= compiled
    assert all(f".target {target}" in artifact.listing["ptx"] and artifact.code for artifact in device.artifacts)


@pytest.mark.parametrize("target", TARGETS)
def test_the_flush_compiles(target: str) -> None:
    skip_what_is_too_old(target)
    text = (files("perfport.measure.kernels") / "flush.cl").read_text()
    assert entries(backend.get("cuda").build("flush.cl", text, {}, target).listing["ptx"]) == {"flush"}
