"""What a variant is built with: inputs made once, layouts charged, kernels loaded once, outputs poisoned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_device import Buffer, Memory

from perfport.backend.offline import cuda_info
from perfport.workload import Session, Setup, discover

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def session() -> Session:
    """A problem of the faulty workload on such a device."""
    faulty = discover([DATA / "faulty"])["faulty"]
    problem = faulty.problem("double")
    return Session(Memory(cuda_info("sm_90")), problem(problem.Parameters(n=3), 1), faulty.folder)


def test_a_session_makes_inputs_once_and_charges_layouts_to_each(session: Session) -> None:
    made: list[str] = []
    setups = [Setup(session, {}, {}) for _ in range(2)]
    values = [setup.input("x", lambda: made.append("x") or object()) for setup in setups]
    layouts = [setup.layout("x", lambda: made.append("layout") or object()) for setup in setups]
    assert made == ["x", "layout"] and values[0] is values[1] and layouts[0] is layouts[1] is not values[0]
    assert setups[0].layout_s == setups[1].layout_s and setups[0].layout_s is not None
    assert Setup(session, {}, {}).layout_s is None


def test_images_and_host_arrays_are_no_buffers(session: Session) -> None:
    setups = [Setup(session, {}, {}) for _ in range(3)]
    for setup in setups:
        setup.input("x", lambda: Buffer(8))
    setups[1].layout("image", lambda: [object()])
    setups[2].input("on the host", lambda: np.zeros(3))
    assert [setup.by_buffers for setup in setups] == [True, False, False]


def test_a_closed_session_gives_its_buffers_back(session: Session) -> None:
    buffer = Setup(session, {}, {}).input("x", lambda: Buffer(8))
    session.close()
    assert buffer.freed == 1 and session.shared("input x", lambda: None)[0] is None, "made anew"


def test_tunables_and_profiles_are_macros(session: Session) -> None:
    setup = Setup(session, {"group": 64}, {"pitch": 4})
    seen: list[Any] = []
    session.build = lambda file, macros: seen.append((file, macros)) or "artifact"  # type: ignore[method-assign]
    setup.load = lambda name, make: make()  # type: ignore[method-assign]
    setup.kernel("k.cl", "main", PITCH=8)
    assert seen == [("k.cl", {"PITCH": 8, "GROUP": 64})], "what the variant says comes last"


def test_code_is_loaded_once_for_all_instances(session: Session) -> None:
    loads: list[str] = []
    artifact: Any = type("A", (), {"source_hash": "h"})()
    module = type("M", (), {"kernel": lambda self, name: name})()
    vars(session.device)["load"] = lambda artifact: loads.append(artifact.source_hash) or module
    modules: dict[str, Any] = {}
    setups = [Setup(session, {}, {}, modules) for _ in range(2)]
    assert [setup.load("main", lambda: artifact) for setup in setups] == ["main", "main"] and loads == ["h"]
    assert [setup.artifacts for setup in setups] == [[artifact]] * 2


def test_buffers_are_counted_and_released(session: Session) -> None:
    setup = Setup(session, {}, {})
    out: Any = setup.output("out", np.float32, (2, 3))
    scratch: Any = setup.scratch(16)
    assert (out.nbytes, setup.device_bytes) == (24, 40)
    setup.release()
    setup.release()
    assert (out.freed, scratch.freed) == (1, 1)


def test_a_buffer_with_room_is_read_as_the_output_that_is_declared(session: Session) -> None:
    setup = Setup(session, {}, {})
    out: Any = setup.output("out", np.float32, 5, room=8)
    assert out.nbytes == 32 and setup.outputs["out"].shape == (5,)
    assert setup.output("more", np.float32, 5, room=2).nbytes == 20
