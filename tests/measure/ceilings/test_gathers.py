"""Random reads: the host computes what the device adds up, and what does not read is no ceiling."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
from ceilings_bench import made, some

from perfport.measure.ceilings import KINDS, sweeping
from perfport.measure.ceilings import bench as bench_module
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.caches import Level
from perfport.measure.ceilings.gathers import Gather, sums, words
from perfport.measure.ceilings.kind import NoCeilingError

NAMES = ("gather_local", "gather_l1", "gather_l2")
LEVELS = {1: Level(32 << 10, False), 2: Level(1 << 20, False)}


@pytest.fixture(autouse=True)
def known_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfport.measure.ceilings.gathers.levels", lambda info: LEVELS)


def gather(name: str) -> Gather:
    kind = KINDS[name]
    assert isinstance(kind, Gather)
    return kind


def test_sums_of_a_work_item_by_hand() -> None:
    """One work-item, step by step in plain integers."""
    table, number, total = words(64), 0x9E3779B9 * 8 % 2**32, 0
    for _ in range(5):
        number ^= (number << 13) % 2**32
        number ^= number >> 17
        number ^= (number << 5) % 2**32
        total += sum(int(table[(number ^ 0x9E3779B9 * u % 2**32) % 64]) for u in range(3))
    assert sums(table, np.array([7], np.uint32), 5, 3).tolist() == [total % 2**32]


def test_places_have_no_pattern() -> None:
    """Places of neighbouring work-items meet in a bank, one of 32, as often as places drawn at random do."""
    own, lanes = np.arange(32, dtype=np.uint32), np.arange(1 << 15, dtype=np.uint32)  # words that are their own places
    banks = (sums(own, lanes, 9, 1) - sums(own, lanes, 8, 1)).reshape(-1, 32) % np.uint32(32)  # of the ninth step
    worst = np.array([np.bincount(warp, minlength=32).max() for warp in banks])
    drawn = np.random.default_rng(1).integers(0, 32, banks.shape)
    expected = np.array([np.bincount(warp, minlength=32).max() for warp in drawn])
    assert worst.mean() == pytest.approx(expected.mean(), rel=0.03) and worst.mean() > 3


@pytest.mark.parametrize("name", NAMES)
def test_every_word_that_is_counted_was_read(bench: Bench, name: str) -> None:
    for shape in some(bench, name, full=True):
        chosen = gather(name).execution(bench, shape, 2)
        assert chosen.amount == 32 * shape["unroll"] * shape["groups"] * shape["group"], shape
        assert chosen.seconds(bench.device) > 0, shape


def test_tables_fit_their_level(bench: Bench) -> None:
    sizes = {name: {shape["table_bytes"] for shape in gather(name).shapes(bench, False)} for name in NAMES}
    assert sizes == {"gather_local": {16 << 10}, "gather_l1": {16 << 10, 8 << 10}, "gather_l2": {512 << 10, 256 << 10}}


@pytest.mark.parametrize(
    ("fault", "instead"),
    [("sum += (table)[", "sum += ("), ("s < steps", "s < steps / 2"), ("out[get_global_id(0)] = sum;", "")],
)
@pytest.mark.parametrize("name", NAMES[:2])
def test_a_kernel_that_does_not_read_is_no_ceiling(
    bench: Bench, name: str, fault: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a compiler that saw through the kernel would leave: no reads, fewer of them, or nothing at all."""

    class Spoilt:
        def __truediv__(self, file: str) -> Spoilt:
            return self

        def read_text(self) -> str:
            source = (files("perfport.measure.kernels") / "gather.cl").read_text()
            assert fault in source
            return source.replace(fault, instead).replace("& mask];", "& mask);" if "(table)" in fault else "& mask];")

    shape = next(iter(gather(name).shapes(bench, False)))
    gather(name).execution(bench, shape, 1).seconds(bench.device)  # leaves sums that are right
    monkeypatch.setattr(bench_module, "files", lambda package: Spoilt())
    bench._kernels.clear()
    with pytest.raises(NoCeilingError, match="sums are not the host's"):
        gather(name).execution(bench, shape, 1).seconds(bench.device)
    entry, reason = sweeping._measure(bench, gather(name), False)
    assert entry is None and "sums are not the host's" in reason


def test_a_level_that_does_not_show_has_no_gathers(bench: Bench) -> None:
    first = made(100.0, unit="op/s")
    shows = {"l1_read": made(1.0), "l2_read": made(1.0)}
    assert gather("gather_l1").absent(bench, first, {"l2_read": made(1.0)}) == (
        "the level does not show: there is no l1_read"
    )
    assert gather("gather_l1").absent(bench, first, {**shows, "gather_l2": made(95.0)}) == (
        "the level behind it is as fast"
    )
    assert not gather("gather_l1").absent(bench, first, {**shows, "gather_l2": made(50.0)})
    assert not gather("gather_local").absent(bench, first, {})
