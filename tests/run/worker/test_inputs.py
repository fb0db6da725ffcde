"""Inputs that variants share: exchanged for others at the same addresses, compared, and restored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfport.backend import OpenDevice
from perfport.measure.contents import Contents
from perfport.model.errors import RefusedError, UsageError
from perfport.run.worker.inputs import SharedInputs
from perfport.workload import Session, Setup, discover

FAULTY = Path(__file__).parents[2] / "data" / "faulty"


class Held:
    """Two sessions of one problem, on inputs 1 and 2, each with an input and a layout made of it."""

    def __init__(self, device: OpenDevice) -> None:
        faulty = discover([FAULTY])["faulty"]
        problem = faulty.problem("double")
        self.sessions = [Session(device, problem(problem.Parameters(n=3), seed), faulty.folder) for seed in (1, 2)]
        self.setups = [Setup(session, {}, {}) for session in self.sessions]
        for setup in self.setups:
            self.make(setup)
        self.contents = Contents(device)
        self.shared = SharedInputs(*self.sessions, self.contents)

    @staticmethod
    def make(setup: Setup) -> None:
        device, seed = setup.device, setup.problem.seed
        x = setup.input("x", lambda: device.upload(np.full(5, seed, np.uint16)))
        setup.layout("wide x", lambda: device.upload(device.read(x, np.uint16, (5,)).astype(np.uint64)))
        setup.input("on the host", lambda: np.zeros(3))

    def read(self, which: int = 0) -> list[int]:
        """The values of input and layout."""
        buffers = self.setups[which].inputs
        read = self.sessions[which].device.read
        kinds = {"input x": np.uint16, "layout wide x": np.uint64}
        return [value for key, kind in kinds.items() for value in set(read(buffers[key], kind, (5,)).tolist())]


@pytest.fixture
def held(device: OpenDevice) -> Iterator[Held]:
    made = Held(device)
    yield made
    made.contents.close()
    for session in made.sessions:
        session.close()


def test_others_come_to_the_same_buffers_and_go_again(held: Held) -> None:
    buffers = held.setups[0].inputs
    assert list(buffers) == ["input x", "layout wide x"]
    for drawn in (True, True, False, False, True, False):
        held.shared.hold(drawn)
        assert held.shared.held == drawn and held.shared.problem.seed == held.read()[0] == (2 if drawn else 1)
        assert held.read() == held.read(0)[:1] * 2 and held.setups[0].inputs == buffers


def test_work_space_that_is_shared_is_no_input(held: Held) -> None:
    setup = held.setups[0]
    work = setup.shared_scratch("products", lambda: setup.device.empty(8))
    assert work not in setup.inputs.values() and work in setup.work
    assert setup.shared_scratch("products", lambda: setup.device.empty(8)) is work


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("keys", [["input x"], ["layout wide x"], ["input x", "layout wide x"]])
def test_a_change_is_told_and_undone(held: Held, drawn: bool, keys: list[str]) -> None:
    used = held.setups[0].inputs
    for first in (False, True):
        held.shared.hold(first)
        held.shared.compare(used)
    held.shared.hold(drawn)
    for key in keys:
        held.sessions[0].device.write(used[key], np.ones(1, np.uint8) * 77)
    with pytest.raises(RefusedError, match=f"an execution changed {', '.join(keys)}, which"):
        held.shared.compare(used)
    assert not held.shared.held and (held.read(0), held.read(1)) == ([1, 1], [2, 2])
    for again in (False, True):
        held.shared.hold(again)
        held.shared.compare(used)


def test_what_a_variant_does_not_use_is_not_its_fault(held: Held) -> None:
    used = held.setups[0].inputs
    held.shared.compare(used)
    held.sessions[0].device.write(used["input x"], np.ones(1, np.uint8) * 77)
    held.shared.compare({"layout wide x": used["layout wide x"]})


@pytest.mark.parametrize("sizes", [(4, 8), (8, 4)])
def test_inputs_of_other_sizes_are_the_problems_mistake(held: Held, sizes: Any) -> None:
    told = r"Double\.redrawn: input list has {} bytes, and {} on other inputs".format(*sizes)
    for setup, nbytes in zip(held.setups, sizes, strict=True):
        setup.input("list", lambda setup=setup, nbytes=nbytes: setup.device.empty(nbytes))
    with pytest.raises(UsageError, match=told):
        held.shared.hold(True)
    assert not held.shared.held


def test_what_only_one_of_the_two_has_stays(held: Held) -> None:
    buffer = held.setups[0].input("more", lambda: held.sessions[0].device.upload(np.ones(4, np.uint8)))
    held.shared.hold(True)
    assert held.sessions[0].device.read(buffer, np.uint8, (4,)).tolist() == [1] * 4
