"""Problems of sparse_conv, and one checked execution of a variant on a device."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from perfport import workload
from perfport.backend import OpenDevice
from perfport.model.errors import UnavailableError, UnsupportedError
from perfport.workload import Peer, Session, build

SPARSE_CONV = workload.discover()["sparse_conv"]
PROBLEM = SPARSE_CONV.problems["sparse_conv"]
SMALL = {"channels": 3, "filters": 4, "kernel_height": 3, "kernel_width": 3, "height": 8, "width": 9}


def problem_of(seed: int | None = None, **parameters: Any) -> Any:
    """A problem from a fresh seed unless one is given."""
    return PROBLEM(PROBLEM.Parameters(**parameters), secrets.randbelow(2**31) if seed is None else seed)


def solve(device: OpenDevice, problem: Any, name: str, **tunables: Any) -> tuple[Any, dict[str, Any]]:
    """Build a variant, run it once on poisoned outputs, check it; return it with its notes."""
    cls = SPARSE_CONV.variants[problem.name][name]
    try:
        cls.require(device.info)
    except (UnsupportedError, UnavailableError) as error:
        pytest.skip(str(error))
    session = Session(device, problem, SPARSE_CONV.folder)
    chosen = {key: tunable.default_for(device.info) for key, tunable in cls.tunables.items()} | tunables
    try:
        built = build(cls, session, chosen, {})
        try:
            verification = built.execute()
            assert verification.passed, (problem.seed, problem.parameters, verification)
            traffic = built.variant.traffic()
            assert issubclass(cls, Peer) or (traffic is not None and traffic.flops >= problem.work().flops)
            return built.variant, built.variant.notes()
        finally:
            built.release()
    finally:
        session.close()
