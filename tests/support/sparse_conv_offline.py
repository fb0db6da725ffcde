"""Code of sparse_conv for CUDA without a GPU: masked weights, and variants built for a target that is not here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfport import backend, workload
from perfport.backend.cuda import CudaBackend
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.model.errors import UnavailableError
from perfport.workload import Session, Setup

SPARSE_CONV = workload.discover()["sparse_conv"]
TARGET = "sm_90"
SEED = 5
MASKS = ("random", "all", "none", "filter", "channel")


def require_compilers() -> None:
    """Skip, visibly, without NVRTC or nvJitLink."""
    try:
        made = backend.get("cuda").build("probe.cu", "__kernel void k(__global float *x) {}", {}, TARGET)
        CudaBackend().assemble("probe", made.listing["ptx"], TARGET)
    except UnavailableError as error:
        pytest.skip(str(error))


def masked(shape: tuple[int, ...], mask: str, rng: np.random.Generator) -> np.ndarray:
    """Random weights under a mask; ``filter`` and ``channel`` leave a whole one without weights."""
    weights = rng.standard_normal(shape).astype(np.float32)
    keep = {"all": np.ones(shape), "none": np.zeros(shape)}.get(mask, rng.random(shape) < rng.random())
    if mask == "filter":
        keep[rng.integers(shape[0])] = 0
    elif mask == "channel":
        keep[:, rng.integers(shape[1])] = 0
    return np.where(keep, weights, np.float32(0))


def offline(
    name: str, target: str = TARGET, tunables: dict[str, int] | None = None, timed: bool = True, **parameters: Any
) -> tuple[Any, Setup]:
    """A variant built for a target that is not here."""
    cls, info = SPARSE_CONV.variant("sparse_conv", name), cuda_info(target)
    cls.require(info)
    problem = SPARSE_CONV.problems["sparse_conv"]
    made = problem(problem.Parameters(**parameters), SEED)
    chosen = {key: tunable.default_for(info) for key, tunable in cls.tunables.items()} | (tunables or {})
    session = Session(OfflineDevice(info), made, SPARSE_CONV.folder, timed)  # type: ignore[arg-type]
    setup = Setup(session, chosen, {})
    return cls(setup), setup
