"""Layouts of mixed inputs: re-orderings and conversions pass, what is computed of several elements does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfport.backend import OpenDevice
from perfport.measure.contents import Contents
from perfport.model.errors import RefusedError
from perfport.run.worker.layouts import Layouts, blend
from perfport.workload import Session, Setup, discover

FAULTY = Path(__file__).parents[2] / "data" / "faulty"
N = 1003  # not a multiple of a run
Form = Callable[[np.ndarray], np.ndarray]

HONEST: dict[str, Form] = {
    "reversed": lambda x: x[::-1],
    "padded": lambda x: np.pad(x, (3, 14)),
    "twice": lambda x: np.repeat(x, 2),
    "wider": lambda x: x.astype(np.float64),
    "its upper half": lambda x: (x.view(np.uint32) >> 16).astype(np.uint16),
    "with places": lambda x: np.stack([x, np.arange(len(x), dtype=np.float32)], axis=1),
    "squares": lambda x: x * x,  # of one element: no re-ordering, and no more than a conversion
    "empty": lambda x: x[:0],
}
COMPUTED: dict[str, Form] = {
    "sums": np.cumsum,
    "differences from the last": lambda x: x - x[-17],
    "outer product": lambda x: np.outer(x[:60], x[:60]),
    "scaled by the largest": lambda x: x / np.abs(x).max() + x.mean(),
    "one sum among zeros": lambda x: np.r_[np.zeros(7, np.float32), x.sum()],
}


class Pair:
    """Two sessions of one problem on other inputs, and what looks at layouts of them."""

    def __init__(self, device: OpenDevice, form: Form, on_host: bool) -> None:
        self.device, self.form, self.on_host = device, form, on_host
        faulty = discover([FAULTY])["faulty"]
        cls = faulty.problem("double")
        self.built = 0
        self.sessions = []
        for seed in (1, 2):
            problem = cls(cls.Parameters(n=N), seed)
            problem.values = np.random.default_rng(seed).standard_normal(N).astype(np.float32)  # type: ignore[attr-defined]
            self.sessions.append(Session(device, problem, faulty.folder))
        self.own, self.theirs = (self.build(session) for session in self.sessions)
        self.contents = Contents(device)
        self.layouts = Layouts(*self.sessions, self.contents)

    def build(self, session: Session) -> Any:
        """A variant with a layout, made of the problem's array on the host or of what the device holds."""
        self.built += 1
        setup, device = Setup(session, {}, {}), session.device
        values = setup.problem.values
        x = setup.input("x", lambda: device.upload(values))

        def make() -> Any:
            return device.upload(self.form(values if self.on_host else device.read(x, np.float32, (N,))))

        setup.layout("other", make)
        return SimpleNamespace(setup=setup, release=lambda: None)

    def check(self) -> None:
        self.layouts.check(self.own, self.build)

    def close(self) -> None:
        self.contents.close()
        for session in self.sessions:
            session.close()


@pytest.fixture(params=[False, True], ids=["of the buffer", "of the array"])
def pair(request: Any, device: OpenDevice) -> Any:
    made: list[Pair] = []

    def of(form: Form) -> Pair:
        made.append(Pair(device, form, request.param))
        return made[0]

    before = device.allocated
    yield of
    for each in made:
        each.close()
    assert device.allocated == before


@pytest.mark.parametrize("name", HONEST)
def test_what_is_of_one_element_each_passes(pair: Any, name: str) -> None:
    pair(HONEST[name]).check()


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_of_several_is_refused(pair: Any, name: str) -> None:
    with pytest.raises(
        RefusedError, match=r"refused: layout other is computed and not re-ordered: .*, \d+ of its \d+ bytes"
    ):
        pair(COMPUTED[name]).check()


def test_a_layout_is_looked_at_once_and_one_that_was_refused_again(pair: Any) -> None:
    honest = pair(HONEST["reversed"])
    honest.check()
    honest.check()
    assert honest.built == 3, "two sessions, and one of mixed inputs"


def test_what_was_refused_is_refused_again(pair: Any) -> None:
    computed = pair(COMPUTED["sums"])
    for _ in range(2):
        with pytest.raises(RefusedError):
            computed.check()


@pytest.mark.parametrize(("sizes", "told"), [((9, 9, 8), "9, 9 and 8 bytes"), ((9, 9, 0), "9, 9 and no bytes")])
def test_a_layout_is_made_again_and_of_one_size(device: OpenDevice, sizes: tuple[int, int, int], told: str) -> None:
    """What is another thing on the third inputs is something else than a re-ordering of them."""
    made = Pair(device, HONEST["empty"], on_host=True)
    left = iter(sizes)

    def build(session: Session) -> Any:
        setup, size = Setup(session, {}, {}), next(left)
        if size:
            setup.layout("odd", lambda: device.upload(np.zeros(size, np.uint8)))
        return SimpleNamespace(setup=setup, release=lambda: None)

    own, _ = (build(session) for session in made.sessions)
    with pytest.raises(RefusedError, match=f"refused: layout odd has {told} on inputs of one size"):
        made.layouts.check(own, build)
    made.close()


def test_inputs_of_other_sizes_are_not_mixed(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, ...]] = []
    blend_, made = Contents.blend, Pair(device, HONEST["reversed"], on_host=False)

    def seen(contents: Contents, *buffers: Any) -> None:
        sizes.append(tuple(buffer.nbytes for buffer in buffers))
        blend_(contents, *buffers)

    monkeypatch.setattr(Contents, "blend", seen)
    for session, length in zip(made.sessions, (40, 16), strict=True):
        Setup(session, {}, {}).input("odd", lambda length=length: device.upload(np.ones(length, np.uint8)))
    made.check()
    made.close()
    assert sizes == [(4 * N,) * 3]


def test_without_other_inputs_nothing_is_looked_for(pair: Any) -> None:
    computed = pair(COMPUTED["sums"])
    Layouts(computed.sessions[0], None, computed.contents).check(computed.own, computed.build)
    assert computed.built == 2


KINDS = (np.uint8, np.uint16, np.float32, np.float64, np.complex128)


def test_a_blend_has_runs_of_either_array_and_all_else_of_the_one() -> None:
    def of(value: int) -> Any:
        arrays = {np.dtype(kind).name: np.full((3, 337), value, kind) for kind in KINDS}
        others = {
            "text": np.array([str(value) * 3] * 99),
            "longer": np.full(64 + value, value),
            "shorter": np.full(64 - value, value),
            "gone": None,
        }
        return SimpleNamespace(seed=value, **arrays, **others)

    one, other = of(1), of(2)
    one.gone = np.ones(64)
    made: Any = blend(one, other, 7)
    assert made.seed == 1 and set(made.text) == {"111"} and (made.gone == 1).all()
    assert (made.longer == 1).all() and (made.shorter == 1).all()
    for kind in KINDS:
        array, together = getattr(made, np.dtype(kind).name), 16 // np.dtype(kind).itemsize
        flat = array.reshape(-1)
        whole = len(flat) // together * together
        runs = flat[:whole].reshape(-1, together)
        assert (runs == runs[:, :1]).all() and (flat[whole:] == 1).all() and array.shape == (3, 337)
        assert 0.2 < (flat == 2).mean() < 0.8
        assert (getattr(one, np.dtype(kind).name) == 1).all(), "the one is as it was"
