"""What a variant is built with: inputs made once, layouts charged, kernels loaded once, outputs poisoned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.model.errors import PerfportError
from perfport.workload import POISON, OutputError, Session, Setup, discover

DATA = Path(__file__).parents[1] / "data"


class Buffer:
    """Host memory, as a device's buffer."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.bytes, self.freed = nbytes, np.zeros(nbytes, np.uint8), 0

    def free(self) -> None:
        self.freed += 1


class Memory(OfflineDevice):
    """A device that has memory and nothing else."""

    def empty(self, nbytes: int) -> Any:
        return Buffer(nbytes)

    def fill(self, buffer: Any, byte: int) -> None:
        buffer.bytes[:] = byte

    def read(self, buffer: Any, dtype: Any, shape: Any) -> np.ndarray:
        return buffer.bytes.view(dtype).reshape(shape)


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
    session.device.load = lambda artifact: loads.append(artifact.source_hash) or module  # type: ignore[method-assign]
    modules: dict[str, Any] = {}
    setups = [Setup(session, {}, {}, modules) for _ in range(2)]
    assert [setup.load("main", lambda: artifact) for setup in setups] == ["main", "main"] and loads == ["h"]
    assert [setup.artifacts for setup in setups] == [[artifact]] * 2


def test_outputs_are_poisoned_verified_counted_and_released(session: Session) -> None:
    setup = Setup(session, {}, {})
    out: Any = setup.output("out", np.float32, (2, 3))
    scratch: Any = setup.scratch(16)
    assert (out.nbytes, setup.device_bytes) == (24, 40)
    setup.poison()
    assert set(out.bytes) == {POISON} and not scratch.bytes.any()
    passing = OutputError(max_abs=0, relative_l2=0, checked=6, total=6, tolerance={}, passed=True)
    seen: dict[str, np.ndarray] = {}
    setup.problem.check = lambda outputs: seen.update(outputs) or {"out": passing}
    outcome = setup.verify({"more": np.zeros(1)})
    assert set(seen) == {"out", "more"} and seen["out"].shape == (2, 3) and np.isnan(seen["out"]).all()
    assert outcome.passed and outcome.seed == 1
    setup.release()
    setup.release()
    assert (out.freed, scratch.freed) == (1, 1)


def test_no_output_is_no_result(session: Session) -> None:
    setup = Setup(session, {}, {})
    setup.problem.check = lambda outputs: {}
    with pytest.raises(PerfportError, match="no output to verify"):
        setup.verify({})
