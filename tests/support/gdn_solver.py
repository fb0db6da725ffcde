"""Runs variants of gdn on the machine's devices, as the harness does."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from perfport import workload
from perfport.backend import OpenDevice
from perfport.workload import POISON, Session, Setup, UnsupportedError, Variant

GDN = workload.discover()["gdn"]


def problem_of(problem: str, seed: int | None = None, **parameters: Any) -> Any:
    """A problem from a fresh seed unless one is given."""
    cls = GDN.problems[problem]
    return cls(cls.Parameters(**parameters), secrets.randbelow(2**31) if seed is None else seed)


class Solver:
    """Runs variants as the harness does, outputs poisoned; keeps what each built."""

    def __init__(self, device: OpenDevice) -> None:
        self.device = device
        self.sessions: dict[int, Session] = {}
        self.variant: Any = None
        self.device_bytes = 0

    def __call__(self, problem: Any, name: str, **tunables: Any) -> dict[str, np.ndarray]:
        cls: type[Variant] = GDN.variants[problem.name][name]
        try:
            cls.require(self.device.info)
        except UnsupportedError as error:
            pytest.skip(str(error))
        session = self.sessions.setdefault(id(problem), Session(self.device, problem, GDN.folder))
        assert set(tunables) <= set(cls.tunables)
        chosen = {name: tunable.default_for(self.device.info) for name, tunable in cls.tunables.items()} | tunables
        setup = Setup(session, chosen, {})
        try:
            self.variant = cls(setup)
            self.device_bytes = setup.device_bytes
            for output in setup.outputs.values():
                self.device.fill(output.buffer, POISON)
            self.variant.launch()
            self.device.finish()
            assert self.variant.traffic() is not None
            return {name: self.device.read(o.buffer, o.dtype, o.shape) for name, o in setup.outputs.items()}
        finally:
            setup.release()


@pytest.fixture
def solve(device: OpenDevice) -> Iterator[Solver]:
    """A `Solver` on the device."""
    solver = Solver(device)
    yield solver
    for session in solver.sessions.values():
        session.close()


def right(problem: Any, outputs: dict[str, np.ndarray]) -> None:
    """Every output there is within the problem's tolerance."""
    checks = problem.check(outputs)
    assert checks and all(check.passed for check in checks.values()), (problem.seed, problem.parameters, checks)
