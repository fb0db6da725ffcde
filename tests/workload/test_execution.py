"""Running a variant once: order of what happens, statuses of errors, buffers given back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from memory_device import Memory

from perfport.backend.offline import cuda_info
from perfport.model.errors import (
    CompileError,
    DeviceMemoryError,
    InfrastructureError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
from perfport.model.record import Status
from perfport.workload import Built, Peer, Session, Variant, build, discover
from perfport.workload.execution import status_of

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CompileError("c"), Status.COMPILE_ERROR), (UnsupportedError("u"), Status.UNSUPPORTED),
        (UnavailableError("u"), Status.UNAVAILABLE), (DeviceMemoryError("m"), Status.OUT_OF_MEMORY),
        (RefusedError("r"), Status.WRONG),
        (MemoryError(), Status.OUT_OF_MEMORY), (UsageError("u"), Status.UNSUPPORTED),
        (InfrastructureError("i"), Status.CRASHED), (ValueError("v"), Status.CRASHED),
        (type("OutOfMemoryError", (RuntimeError,), {})("torch"), Status.OUT_OF_MEMORY),
        (RuntimeError("torch"), Status.CRASHED),
    ],
)  # fmt: skip
def test_each_error_has_its_status(error: Exception, status: Status) -> None:
    assert status_of(error) is status


class Doubles(Variant):
    """Leaves 2 x in a buffer, and a number otherwise; says what happens to it."""

    name, host_driven = "doubles", True

    def __init__(self, setup: Any) -> None:
        self.order: list[str] = []
        self.device, self.y = setup.device, setup.output("y", np.float32, 2)
        self.number = np.full(3, 2.0)

    def launch(self) -> None:
        self.order.append("launch")
        assert np.isnan(self.device.read(self.y, np.float32, (2,))).all(), "poisoned"
        self.y.bytes[:] = np.full(2, 2, np.float32).view(np.uint8)

    def results(self) -> dict[str, np.ndarray]:
        self.order.append("results")
        self.y.bytes[:] = 0  # too late
        return {"number": self.number}


def doubles(session: Session, cls: type[Variant] = Doubles) -> Built:
    """The variant, built; the problem tells what it is given."""
    built = build(cls, session, {}, {})
    built.setup.problem.verify = lambda outputs, *which: (outputs, *which)
    return built


def test_outputs_are_poisoned_before_the_launch_and_read_after_it(session: Session) -> None:
    built = doubles(session)
    order = cast(Doubles, built.variant).order

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        order.append("in")
        yield
        order.append("out")

    outputs, *which = cast(Any, built.execute(around))
    assert order == ["in", "launch", "out", "results"] and which == ["", "fp32"]
    assert outputs["y"].tolist() == [2, 2] and outputs["number"].tolist() == [2, 2, 2]
    built.setup.outputs.clear()
    built.poison()
    assert np.isnan(cast(Any, built.variant).number).all(), "what an execution handed over is of no use to the next"
    assert set(built.setup.buffers[0].bytes) == {0xFF}, "the buffers that it was built with"


def test_scratch_is_poisoned_where_that_is_asked_for_and_tables_never(session: Session) -> None:
    built = doubles(session)
    setup: Any = built.setup
    scratch, table = setup.scratch(4), setup.upload(np.arange(4, dtype=np.uint8))
    built.poison()
    assert not scratch.bytes.any()
    built.poison(scratch=True)
    assert set(scratch.bytes) == {0xFF} and table.bytes.tolist() == [0, 1, 2, 3]
    assert setup.device_bytes == 16 and setup.buffers[1:] == [scratch, table]


@pytest.mark.parametrize(("cls", "phase"), [(Doubles, "results"), (type("Library", (Doubles, Peer), {}), "build")])
def test_a_library_alone_may_still_work_when_results_are_asked_for(
    session: Session, cls: type[Variant], phase: str
) -> None:
    seen: list[str] = []
    asks = type("Asks", (cls,), {"results": lambda self: seen.append(self.device.phase) or {}})
    doubles(session, asks).execute()
    assert seen == [phase]


def test_results_may_not_name_a_buffer(session: Session) -> None:
    both = type("Both", (Doubles,), {"results": lambda self: {"y": np.zeros(2, np.float32)}})
    with pytest.raises(RefusedError, match=r"results\(\) gives y, which is read from a buffer"):
        doubles(session, both).execute()


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"host_driven": False}, "launch"), ({}, "build"), ({"host": True}, "launch on the host"),
        ({"__bases__": (Peer,), "host_driven": False}, "build"),
    ],
)  # fmt: skip
def test_what_an_execution_may_do(session: Session, changes: dict[str, Any], phase: str) -> None:
    bases = (Doubles, *changes.get("__bases__", ()))
    made = type("Made", bases, {key: value for key, value in changes.items() if key != "__bases__"})
    assert doubles(session, made).phase == phase


class Greedy(Variant):
    """Allocates and then fails."""

    name = "greedy"
    freed: list[str] = []

    def __init__(self, setup: Any) -> None:
        setup.buffers.append(type("B", (), {"free": lambda self: Greedy.freed.append("freed")})())
        assert setup.tunables == {"a": 1} and setup.profile == {"P": 2}
        raise DeviceMemoryError("planted")


@pytest.fixture
def session() -> Session:
    """A problem of the faulty workload, on a device that has memory."""
    faulty = discover([DATA / "faulty"])["faulty"]
    problem = faulty.problem("double")
    return Session(Memory(cuda_info("sm_90")), problem(problem.Parameters(n=3), 1), faulty.folder)  # type: ignore[arg-type]


def test_a_variant_that_cannot_be_built_gives_its_buffers_back(session: Session) -> None:
    with pytest.raises(DeviceMemoryError, match="planted"):
        build(Greedy, session, {"a": 1}, {"p": 2})
    assert Greedy.freed == ["freed"]


def test_pools_are_emptied_before_a_variant_is_built(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    device = vars(session.device)["_device"]
    monkeypatch.setattr(device, "trim", lambda: happened.append("trimmed"))
    monkeypatch.setattr(device, "empty", lambda nbytes: happened.append("allocated"))
    greedy = type("Greedy", (Variant,), {"__init__": lambda self, setup: setup.device.empty(1)})
    build(greedy, session, {}, {})
    assert happened == ["trimmed", "allocated"]


def test_what_the_device_lacks_is_known_before_anything_is_built(session: Session) -> None:
    needy = type("Needy", (Greedy,), {"needs": ("teleport",)})
    with pytest.raises(UnsupportedError, match="needs teleport"):
        build(needy, session, {}, {})
