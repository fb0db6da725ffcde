"""Bounds by arithmetic that can be done by hand, and what shares of them may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfport.ceilings import Ceiling, Ceilings
from perfport.profile import load_profile
from perfport.record import Interval
from perfport.roofline import datasheet_ceilings, measured_ceilings, memory_seconds, problem_bound, variant_bound
from perfport.work import Traffic, Work


def exact(value: float) -> Interval:
    return Interval(value=value, low=value, high=value)


CEILINGS = {"dram_read": exact(40e9), "dram_copy": exact(30e9), "fp32_fma": exact(400e9)}
positive = st.floats(1e-6, 1e12)


def test_a_copy_takes_what_the_copy_ceiling_says() -> None:
    n = 3e9
    assert memory_seconds(n, n, CEILINGS) == pytest.approx(2 * n / 30e9)
    assert memory_seconds(n, 0, CEILINGS) == pytest.approx(n / 40e9)


def test_writes_are_never_taken_to_be_faster_than_reads() -> None:
    fast_copy = {**CEILINGS, "dram_copy": exact(90e9)}
    assert memory_seconds(0, 4e9, fast_copy) == pytest.approx(4e9 / 40e9)
    assert memory_seconds(4e9, 4e9, {"dram_read": exact(40e9)}) == pytest.approx(0.2)
    assert memory_seconds(1, 1, {"fp32_fma": exact(1)}) is None


@pytest.mark.parametrize(
    ("work", "binding", "seconds"),
    [
        (Work(flops=4e9, read_bytes=4e9), "dram", 0.1),
        (Work(flops=80e9, read_bytes=4e9), "fp32", 0.2),
        (Work(read_bytes=4e9), "dram", 0.1),
    ],
)
def test_the_larger_term_binds(work: Work, binding: str, seconds: float) -> None:
    bound = problem_bound(work, CEILINGS, exact(0.4))
    assert bound and bound.binding == binding
    assert bound.seconds == pytest.approx(seconds) == pytest.approx(max(bound.terms.values()))
    assert bound.share.value == pytest.approx(seconds / 0.4) and not bound.stale


def test_no_ceilings_no_bound() -> None:
    assert problem_bound(Work(flops=1, read_bytes=1), {}, exact(1)) is None
    assert variant_bound(Traffic(flops=1), {"dram_copy": exact(1)}, exact(1)) is None


def test_the_variant_bound_counts_what_the_variant_moves_and_the_problem_bound_does_not() -> None:
    work, twice = Work(read_bytes=4e9), Traffic(dram_read=8e9)
    time = exact(0.4)
    problem, variant = problem_bound(work, CEILINGS, time), variant_bound(twice, CEILINGS, time)
    assert problem and variant and variant.seconds == 2 * problem.seconds
    assert variant.share.value == 2 * problem.share.value, "needless bytes are not credited by the problem bound"


@given(positive, positive, st.floats(1, 2), st.floats(1, 2))
def test_shares_widen_with_their_sources(nbytes: float, seconds: float, noise: float, spread: float) -> None:
    time = Interval(value=seconds, low=seconds / noise, high=seconds * noise)
    ceilings = {"dram_read": Interval(value=1e9, low=1e9 / spread, high=1e9 * spread)}
    bound = problem_bound(Work(read_bytes=nbytes), ceilings, time)
    assert bound
    assert bound.share.low * (1 - 1e-9) <= bound.share.value <= bound.share.high * (1 + 1e-9)
    assert bound.share.high / bound.share.low == pytest.approx((noise * spread) ** 2)


def test_above_the_bound_is_marked_stale() -> None:
    bound = problem_bound(Work(read_bytes=4e9), CEILINGS, exact(0.08))
    assert bound and bound.stale and bound.share.value == pytest.approx(1.25)


def ceilings(value: float, low: float, high: float) -> Ceilings:
    entry = Ceiling(value=value, low=low, high=high, unit="B/s")
    return Ceilings(device="d", driver="1", date="", entries={"dram_read": entry})


def test_a_probe_widens_the_ceiling_and_never_lowers_it() -> None:
    known = ceilings(100, 98, 102)
    assert measured_ceilings(known)["dram_read"] == Interval(value=100, low=98, high=102)
    slow, fast = ceilings(60, 58, 62), ceilings(120, 115, 125)
    assert measured_ceilings(known, slow)["dram_read"] == Interval(value=100, low=58, high=102)
    assert measured_ceilings(known, fast)["dram_read"] == Interval(value=120, low=98, high=125)


def test_datasheet_ceilings() -> None:
    profile = load_profile("hd7970")
    found = datasheet_ceilings(profile)
    assert profile.bandwidth and found["dram_read"].value == found["dram_copy"].value == profile.bandwidth
    assert found["fp32_fma"].value == profile.fp32
    assert datasheet_ceilings(load_profile("generic_cpu")) == {}
