"""Bounds by arithmetic that can be done by hand, and what shares of them may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
import report_data as data
from hypothesis import given
from hypothesis import strategies as st

from perfport.machine.device_profile import load_profile
from perfport.measure.ceilings import Ceiling, Ceilings
from perfport.measure.roofline import (
    DRAM,
    datasheet_ceilings,
    impossible,
    measured_ceilings,
    memory_seconds,
    moved,
    place,
    problem_bound,
    published_ceilings,
    required,
    variant_bound,
)
from perfport.model.record import Interval, Record
from perfport.model.work import Traffic, Work
from perfport.store.reading import read_records

ROOT = Path(__file__).parents[2]


def exact(value: float) -> Interval:
    return Interval(value=value, low=value, high=value)


CEILINGS = {"dram_read": exact(40e9), "dram_copy": exact(30e9), "fp32_fma": exact(400e9)}
ALL = {
    **CEILINGS, "tf32_mma": exact(4e12), "bf16_mma": exact(8e12), "int32_mad": exact(200e9),
    "int32_logic": exact(100e9),
    "dp4a": exact(800e9), "int8_mma": exact(16e12), "exp": exact(5e9), "rsqrt": exact(10e9), "l1_read": exact(900e9),
    "l2_read": exact(300e9), "l3_read": exact(90e9), "local_read": exact(600e9), "local_conflict": exact(20e9),
    "constant_read": exact(500e9), "atomic_global_one": exact(1e7), "atomic_global_many": exact(1e9),
    "atomic_local_one": exact(1e8), "atomic_local_many": exact(4e9), "launch_latency": exact(4e-6),
}  # fmt: skip
EVERYTHING = Traffic(
    flops=400e9, special_ops=20e9, integer_ops=100e9, dram_read=40e9, dram_write=0.0, l2_bytes=600e9, global_read=500e9,
    global_write=100e9, constant_read=150e9, image_read=140e9, image_write=10e9, local_read=500e9, local_write=100e9,
    global_atomics=3e9, local_atomics=2e9,
)  # fmt: skip
positive = st.floats(1e-6, 1e12)


def moving(read: float, write: float, ceilings: dict[str, Interval]) -> float:
    """Return the seconds that bytes take, at exact ceilings."""
    taken = memory_seconds(read, write, ceilings)
    assert taken and taken.low == taken.value == taken.high
    return taken.value


def test_a_copy_takes_what_the_copy_ceiling_says() -> None:
    n = 3e9
    assert moving(n, n, CEILINGS) == pytest.approx(2 * n / 30e9)
    assert moving(n, 0, CEILINGS) == pytest.approx(n / 40e9)


def test_writes_are_never_taken_to_be_faster_than_reads() -> None:
    fast_copy = {**CEILINGS, "dram_copy": exact(90e9)}
    assert moving(0, 4e9, fast_copy) == pytest.approx(4e9 / 40e9)
    assert moving(4e9, 4e9, {"dram_read": exact(40e9)}) == pytest.approx(0.2)
    assert memory_seconds(1, 1, {"fp32_fma": exact(1)}) is None


RATE = st.tuples(st.floats(1e9, 1e12), st.floats(1, 2), st.floats(1, 2)).map(
    lambda drawn: Interval(value=drawn[0], low=drawn[0] / drawn[1], high=drawn[0] * drawn[2])
)


@given(st.floats(0, 1e12), st.floats(0, 1e12), RATE, RATE, st.floats(0, 1), st.floats(0, 1))
def test_no_pair_of_ceilings_within_their_intervals_gives_a_time_outside_that_of_memory(
    read: float, write: float, reading: Interval, copying: Interval, one: float, other: float
) -> None:
    taken = memory_seconds(read, write, {"dram_read": reading, "dram_copy": copying})
    some = {
        "dram_read": exact(reading.low + one * (reading.high - reading.low)),
        "dram_copy": exact(copying.low + other * (copying.high - copying.low)),
    }
    assert taken and taken.low * (1 - 1e-9) <= moving(read, write, some) <= taken.high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("work", "binding", "seconds"),
    [
        (Work(flops=4e9, read_bytes=4e9), "dram", 0.1),
        (Work(flops=80e9, read_bytes=4e9), "fp32_fma", 0.2),
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
def test_the_share_has_the_interval_of_the_time_and_the_bound_that_of_the_ceilings(
    nbytes: float, seconds: float, noise: float, spread: float
) -> None:
    time = Interval(value=seconds, low=seconds / noise, high=seconds * noise)
    ceilings = {"dram_read": Interval(value=1e9, low=1e9 / spread, high=1e9 * spread)}
    bound = problem_bound(Work(read_bytes=nbytes), ceilings, time)
    assert bound
    assert bound.share.high / bound.share.low == pytest.approx(noise**2)
    assert (bound.low, bound.high) == (pytest.approx(bound.seconds / spread), pytest.approx(bound.seconds * spread))
    assert bound.share.value == pytest.approx(bound.seconds / seconds)


@given(
    st.dictionaries(st.sampled_from(["fp32_fma", "tf32_mma", "bf16_mma"]), st.floats(0.1, 9), min_size=1),
    st.lists(st.tuples(positive, st.floats(1, 2)), min_size=3, max_size=3), positive,
)  # fmt: skip
def test_operations_take_the_fastest_of_the_units_that_can_do_them(
    units: dict[str, float], rates: list[tuple[float, float]], flops: float
) -> None:
    known = {
        name: Interval(value=rate, low=rate / spread, high=rate * spread)
        for name, (rate, spread) in zip(("fp32_fma", "tf32_mma", "bf16_mma"), rates, strict=True)
    }
    bound = problem_bound(Work(flops=flops, float_units=units), known, exact(1.0))
    assert bound and bound.terms == {bound.binding: bound.seconds}
    for end, limit in (("value", bound.seconds), ("high", bound.low), ("low", bound.high)):
        fastest = min(flops * times / getattr(known[name], end) for name, times in units.items())
        assert limit == pytest.approx(fastest), "also at the ends, where another unit may be the fastest"


def test_a_product_in_three_parts_counts_three_times() -> None:
    work = Work(flops=4e12, float_units={"fp32_fma": 1.0, "tf32_mma": 3.0})
    bound = problem_bound(work, ALL, exact(4.0))
    assert bound and bound.binding == "tf32_mma" and bound.seconds == pytest.approx(3.0)
    without = {name: ceiling for name, ceiling in ALL.items() if name != "tf32_mma"}
    bound = problem_bound(work, without, exact(20.0))
    assert bound and bound.binding == "fp32_fma" and bound.seconds == pytest.approx(10.0)


def test_the_faster_of_two_variants_has_the_higher_share() -> None:
    work = Work(flops=4e11, float_units={"fp32_fma": 1.0, "tf32_mma": 3.0}, read_bytes=1e9)
    shares = [problem_bound(work, ALL, exact(time)).share.value for time in (0.5, 1.0, 3.0)]  # type: ignore[union-attr]
    assert shares == sorted(shares, reverse=True) and shares[0] == 6 * shares[2]


def test_loads_take_the_faster_of_the_on_chip_memories() -> None:
    bound = problem_bound(Work(load_bytes=9e11), ALL, exact(2.0))
    assert bound and bound.binding == "l1_read" and bound.seconds == pytest.approx(1.0)
    slow = {**ALL, "l1_read": exact(300e9)}
    bound = problem_bound(Work(load_bytes=9e11), slow, exact(2.0))
    assert bound and bound.binding == "local_read" and bound.seconds == pytest.approx(1.5)


@pytest.mark.parametrize(("known", "launches", "barriers", "seconds"), [
    ({"launch_latency": 4e-6}, 1, 10, 40e-6), ({"launch_latency": 4e-6, "grid_barrier": 1e-6}, 1, 10, 10e-6),
    ({"launch_latency": 4e-6, "grid_barrier": 9e-6, "empty_span": 5e-6}, 1, 10, 45e-6),
    ({"launch_latency": 4e-6, "empty_span": 5e-6}, 1, 0, 5e-6), ({"launch_latency": 4e-6}, 1, 0, None),
    ({"launch_latency": 4e-6, "empty_span": 5e-6}, 0, 0, None), ({}, 1, 10, None),
])  # fmt: skip
def test_a_chain_takes_a_launch_and_a_barrier_or_another_launch_for_each_further_step(
    known: dict[str, float], launches: int, barriers: int, seconds: float | None
) -> None:
    named = {name: exact(value) for name, value in known.items()}
    bound = problem_bound(Work(launches=launches, barriers=barriers), named, exact(1.0))
    assert (bound and bound.terms) == (None if seconds is None else {"steps": pytest.approx(seconds)})


@pytest.mark.parametrize(("work", "cold", "expected"), [
    (Work(read_bytes=1), True, {"dram_read", "dram_copy", "empty_span"}),
    (Work(flops=1, launches=0, float_units={"fp32_fma": 1, "tf32_mma": 3}), False, {"fp32_fma", "tf32_mma"}),
    (Work(integer_ops=1, host_bytes=1, launches=0), False, {*Work().integer_units, "h2d_pinned"}),
    (Work(load_bytes=1, barriers=2), False, {"l1_read", "local_read", "empty_span", "grid_barrier", "launch_latency"}),
])  # fmt: skip
def test_what_a_bound_may_rest_on_is_named(work: Work, cold: bool, expected: set[str]) -> None:
    assert required(work, cold) == expected


@given(st.data())
def test_a_bound_rests_on_nothing_else(draw: st.DataObject) -> None:
    fields = ("flops", "integer_ops", "read_bytes", "write_bytes", "host_bytes", "load_bytes", "launches", "barriers")
    work = Work(**{name: draw.draw(st.sampled_from([0.0, 1.0, 7.0])) for name in fields})  # type: ignore[arg-type]
    cold = draw.draw(st.booleans())
    known = {**ALL, "h2d_pinned": exact(1e9), "empty_span": exact(5e-6), "grid_barrier": exact(1e-6)}
    named = {name: known[name] for name in required(work, cold) & known.keys()}
    assert problem_bound(work, known, exact(1.0), cold) == problem_bound(work, named, exact(1.0), cold)


def test_above_the_bound_is_marked_stale() -> None:
    bound = problem_bound(Work(read_bytes=4e9), CEILINGS, exact(0.08))
    assert bound and bound.stale and bound.share.value == pytest.approx(1.25)


def terms(traffic: Traffic, ceilings: dict[str, Interval] = ALL, **how: object) -> dict[str, float]:
    """Return the terms of a variant bound at a time of one second."""
    bound = variant_bound(traffic, ceilings, exact(1.0), **how)  # type: ignore[arg-type]
    return bound.terms if bound else {}


def test_every_quantity_goes_under_the_ceiling_of_its_name() -> None:
    assert terms(EVERYTHING) == pytest.approx({
        "dram": 1.0, "l2_read": 2.0, "l1_read": 1.0, "local_read": 1.0, "fp32_fma": 1.0, "int32_mad": 0.5, "rsqrt": 2.0,
        "atomic_global_many": 3.0, "atomic_local_many": 0.5,
    })  # fmt: skip
    bound = variant_bound(EVERYTHING, ALL, exact(6.0))
    assert bound and bound.binding == "atomic_global_many" and bound.seconds == 3.0
    assert bound.share.value == 0.5 and not bound.stale


def test_quantities_that_are_zero_or_unknown_have_no_term() -> None:
    assert terms(Traffic(flops=1e9)) == {"fp32_fma": pytest.approx(1 / 400), "dram": 0.0}
    assert "l2_read" not in terms(Traffic(dram_read=1e9, l2_bytes=None))


@pytest.mark.parametrize("lost", ["fp32_fma", "l1_read", "l2_read", "local_read", "atomic_global_many"])
def test_a_missing_ceiling_leaves_out_its_term_alone(lost: str) -> None:
    rest = {name: ceiling for name, ceiling in ALL.items() if name != lost}
    assert terms(EVERYTHING, rest) == {name: t for name, t in terms(EVERYTHING).items() if name != lost}


def test_without_any_ceiling_of_its_quantities_a_variant_has_no_bound() -> None:
    assert variant_bound(Traffic(special_ops=1e9), {"fp32_fma": exact(1)}, exact(1)) is None
    assert problem_bound(Work(integer_ops=1e9), {"fp32_fma": exact(1)}, exact(1)) is None


@pytest.mark.parametrize(("known", "name", "seconds"), [
    (("int32_mad", "int32_logic"), "int32_mad", 0.5),
    (("int32_logic",), "int32_logic", 1.0),
    (("int32_mad",), "int32_mad", 0.5),
])  # fmt: skip
def test_integer_operations_go_under_the_faster_of_two(known: tuple[str, ...], name: str, seconds: float) -> None:
    ceilings = {key: ALL[key] for key in known}
    assert terms(Traffic(integer_ops=100e9), ceilings) == {name: pytest.approx(seconds)}
    bound = problem_bound(Work(integer_ops=100e9), ceilings, exact(2.0))
    assert bound and bound.terms == {name: pytest.approx(seconds)} and bound.binding == name
    swapped = {"int32_mad": exact(100e9), "int32_logic": exact(200e9)}
    assert set(terms(Traffic(integer_ops=1e9), swapped)) == {"int32_logic"}


def test_special_functions_go_under_the_faster_of_two() -> None:
    assert terms(Traffic(special_ops=1e9), {"exp": exact(5e9), "rsqrt": exact(10e9)}) == {"rsqrt": pytest.approx(0.1)}
    assert terms(Traffic(special_ops=1e9), {"exp": exact(20e9), "rsqrt": exact(10e9)}) == {"exp": pytest.approx(0.05)}
    assert terms(Traffic(special_ops=1e9), {"exp": exact(5e9)}) == {"exp": pytest.approx(0.2)}


@pytest.mark.parametrize(("unit", "replaced", "kept"), [
    ("tf32_mma", "fp32_fma", "int32_mad"), ("bf16_mma", "fp32_fma", "int32_mad"),
    ("dp4a", "int32_mad", "fp32_fma"), ("int8_mma", "int32_mad", "fp32_fma"), ("int32_logic", "int32_mad", "fp32_fma"),
])  # fmt: skip
def test_a_named_unit_takes_the_operations_of_its_kind(unit: str, replaced: str, kept: str) -> None:
    default, named = terms(EVERYTHING), terms(EVERYTHING, unit=unit)
    amount = EVERYTHING.flops if replaced == "fp32_fma" else EVERYTHING.integer_ops
    assert replaced not in named and named[unit] == pytest.approx(amount / ALL[unit].value)
    assert named[kept] == default[kept]
    assert {n: t for n, t in named.items() if n != unit} == {n: t for n, t in default.items() if n != replaced}


def test_a_floating_unit_does_integer_operations_where_there_are_no_others() -> None:
    bound = variant_bound(Traffic(integer_ops=4e12), ALL, exact(2.0), unit="tf32_mma")
    assert bound and bound.terms == {"tf32_mma": pytest.approx(1.0), "dram": 0.0} and bound.share.value == 0.5


def test_what_begins_in_host_memory_goes_over_the_link() -> None:
    work, link = Work(integer_ops=2e9, read_bytes=4e9, host_bytes=5e9), {**ALL, "h2d_pinned": exact(10e9)}
    for cold in (True, False):
        bound = problem_bound(work, link, exact(1.0), cold=cold)
        assert bound and bound.binding == "h2d_pinned" and bound.seconds == pytest.approx(0.5)
    assert work.on("gpu") == work and work.on("cpu") == Work(integer_ops=2e9, read_bytes=4e9, launches=0)
    near = problem_bound(work.on("cpu"), link, exact(1.0))
    assert near and "h2d_pinned" not in near.terms and near.binding == "dram"


def test_a_unit_without_ceiling_bounds_nothing() -> None:
    ceilings = {name: ceiling for name, ceiling in ALL.items() if name != "tf32_mma"}
    assert not {"tf32_mma", "fp32_fma"} & set(terms(EVERYTHING, ceilings, unit="tf32_mma"))


def test_merged_accesses_leave_out_issued_and_local_bytes() -> None:
    default, merged = terms(EVERYTHING), terms(EVERYTHING, merged=True)
    assert set(default) - set(merged) == {"l1_read", "local_read"}
    assert merged == {name: default[name] for name in merged}


def test_from_a_warm_cache_dram_is_no_bound() -> None:
    default, warm = terms(EVERYTHING), terms(EVERYTHING, cold=False)
    assert set(default) - set(warm) == {"dram"} and warm == {name: default[name] for name in warm}
    assert problem_bound(Work(read_bytes=1e9), ALL, exact(1.0), cold=False) is None
    bound = problem_bound(Work(flops=4e9, read_bytes=1e12), ALL, exact(1.0), cold=False)
    assert bound and set(bound.terms) == {"fp32_fma"} and bound.seconds == pytest.approx(0.01)


@pytest.mark.parametrize(("cache", "cold"), [("cold", True), ("warm", False)])
def test_a_record_is_placed_by_the_cache_that_it_was_timed_with(cache: Literal["cold", "warm"], cold: bool) -> None:
    record = data.record("a")
    assert record.timing
    record.timing.cache = cache
    record.work, record.traffic, record.ceilings = Work(flops=4e9, read_bytes=1e12), EVERYTHING, dict(ALL)
    place(record, ALL, merged=False)
    bounds = record.problem_bound, record.datasheet_bound, record.variant_bound
    assert [bound and DRAM in bound.terms for bound in bounds] == [cold] * 3


def test_the_problem_bound_has_no_term_of_what_a_variant_causes() -> None:
    bound = problem_bound(Work(flops=4e9, integer_ops=4e9, read_bytes=4e9, write_bytes=4e9), ALL, exact(1.0))
    assert bound and set(bound.terms) == {"fp32_fma", "int32_mad", "dram"}


@pytest.mark.parametrize("binding", ["dram", "fp32_fma", "l2_read", "local_read", "atomic_local_many"])
def test_the_bound_has_the_interval_of_the_ceiling_that_binds(binding: str) -> None:
    amounts = {
        "dram": Traffic(dram_read=400e9), "fp32_fma": Traffic(flops=4e12), "l2_read": Traffic(l2_bytes=3e12),
        "local_read": Traffic(local_read=6e12), "atomic_local_many": Traffic(local_atomics=4e10),
    }  # fmt: skip
    key = "dram_read" if binding == "dram" else binding
    value = ALL[key].value
    wide = {**ALL, key: Interval(value=value, low=0.8 * value, high=1.25 * value)}
    bound = variant_bound(amounts[binding], wide, exact(20.0))
    assert bound and bound.binding == binding and bound.share.value == pytest.approx(0.5)
    assert (bound.low, bound.high) == (pytest.approx(8.0), pytest.approx(12.5)), "of times of 10 s"
    assert bound.share.low == bound.share.value == bound.share.high, "the time is exact"


def test_what_does_not_bind_may_bind_at_the_end_of_an_interval() -> None:
    wide = {**CEILINGS, "fp32_fma": Interval(value=400e9, low=200e9, high=800e9)}
    bound = problem_bound(Work(flops=30e9, read_bytes=4e9), wide, exact(1.0))
    assert bound and (bound.binding, bound.seconds) == (DRAM, pytest.approx(0.1))
    assert (bound.low, bound.high) == (pytest.approx(0.1), pytest.approx(0.15))


def test_both_ceilings_of_memory_have_intervals() -> None:
    wide = {"dram_read": exact(40e9), "dram_copy": Interval(value=30e9, low=25e9, high=32e9)}
    bound = problem_bound(Work(read_bytes=3e9, write_bytes=3e9), wide, exact(1.0))
    assert bound and bound.seconds == pytest.approx(0.2)
    assert (bound.low, bound.high) == (pytest.approx(6 / 32), pytest.approx(6 / 25))


def test_counted_and_modelled_traffic_bound_alike() -> None:
    counted = EVERYTHING.model_copy(update={"provenance": "counted"})
    assert terms(counted) == terms(EVERYTHING)


def test_levels_add_up_what_work_items_issue() -> None:
    assert EVERYTHING.issued_bytes == 900e9, "global, constant and image accesses; neither local memory nor atomics"
    assert EVERYTHING.local_bytes == 600e9 and EVERYTHING.dram_bytes == 40e9


def test_integer_intensity_counts_where_there_are_no_flops() -> None:
    assert Work(integer_ops=8.0, read_bytes=2.0, write_bytes=2.0).intensity == 2.0
    assert Work(flops=4.0, integer_ops=8.0, read_bytes=4.0).intensity == 1.0


def ceilings(value: float, low: float, high: float) -> Ceilings:
    entry = Ceiling(value=value, low=low, high=high, unit="B/s")
    return Ceilings(device="d", driver="1", date="", entries={"dram_read": entry})


def test_a_probe_widens_the_ceiling_and_never_lowers_it() -> None:
    known = ceilings(100, 98, 102)
    assert measured_ceilings(known)["dram_read"] == Interval(value=100, low=98, high=102)
    slow, fast = ceilings(92, 90, 94), ceilings(108, 105, 111)
    assert measured_ceilings(known, slow)["dram_read"] == Interval(value=100, low=90, high=102 * 100 / 92)
    assert measured_ceilings(known, fast)["dram_read"] == Interval(value=108, low=98, high=111 * 1.08)


def test_the_better_of_two_latencies_is_the_shorter() -> None:
    entries = [
        Ceiling(value=value, low=0.99 * value, high=1.01 * value, unit="s", direction="lower") for value in (1.0, 1.05)
    ]
    known, now = (Ceilings(device="d", driver="1", date="", entries={"launch_latency": each}) for each in entries)
    for first, second in ((known, now), (now, known)):
        found = measured_ceilings(first, second)["launch_latency"]
        assert found.value == 1.0 and found.low == pytest.approx(0.99 / 1.05) and found.high == pytest.approx(1.0605)


@pytest.mark.parametrize("value", [43, 80, 89.9, 110.1, 229])
def test_a_probe_that_moved_neither_widens_nor_raises_the_ceiling(value: float) -> None:
    known, now = ceilings(100, 98, 102), ceilings(value, 0.9 * value, 1.1 * value)
    assert moved(known, now) == {"dram_read": pytest.approx(value / 100)}
    assert measured_ceilings(known, now) == measured_ceilings(known)
    assert not moved(known, ceilings(91, 80, 99)) and not moved(known, ceilings(109, 80, 120))


def test_the_committed_probe_of_43_percent_excuses_no_time_above_the_bound() -> None:
    """A committed run holds a stored ceiling of 390.8 GFLOP/s and a probe of 168.1 before a group."""
    told = json.loads((ROOT / "results" / "committed" / "cpu-gdn" / "environment.json").read_text())
    known = Ceilings.model_validate(told["ceilings"]["opencl:intel:0"])
    stored = known.entries["fp32_fma"]
    probes = [p["entries"] for p in told["probes"] if (p["device"], p["when"]) == ("opencl:intel:0", "before")]
    values = {"fp32_fma": stored.model_copy(update=probes[0]["fp32_fma"])}
    assert (round(stored.value / 1e9, 1), round(values["fp32_fma"].value / 1e9, 1)) == (390.8, 168.1)
    now = known.model_copy(update={"entries": values})
    assert moved(known, now) == {"fp32_fma": pytest.approx(0.43, abs=0.005)}
    work = Work(flops=stored.value)
    for share in (2.29, 1.1):
        bound = problem_bound(work, measured_ceilings(known, now), exact(1 / share))
        assert bound and bound.binding == "fp32_fma" and impossible(bound), share
    below = problem_bound(work, measured_ceilings(known, now), exact(1.0))
    assert below and not impossible(below)


def test_a_time_between_two_moments_of_a_noisy_ceiling_is_not_impossible() -> None:
    """As on a shared server: stored 26.2 GB/s, probed 24.5, and 28 GB/s read between this probe and the next."""
    now = measured_ceilings(ceilings(26.23e9, 26.1e9, 26.35e9), ceilings(24.53e9, 24.34e9, 24.72e9))
    bound = problem_bound(Work(read_bytes=64e6), now, Interval(value=2.288e-3, low=2.178e-3, high=2.385e-3))
    assert bound and bound.stale and bound.share.value > 1.02 and not impossible(bound)
    quiet = measured_ceilings(ceilings(26.23e9, 26.1e9, 26.35e9), ceilings(26.2e9, 26.1e9, 26.3e9))
    bound = problem_bound(Work(read_bytes=64e6), quiet, Interval(value=2.2e-3, low=2.19e-3, high=2.21e-3))
    assert bound and impossible(bound)


@pytest.mark.parametrize("path", sorted((ROOT / "results" / "committed").glob("*/records.jsonl")), ids=str)
def test_of_two_committed_results_the_faster_has_the_higher_share(path: Path) -> None:
    """Of one problem, device and class in a run; by more than ceilings differ that were probed for different groups."""
    alike: dict[str, list[Record]] = {}
    for record in read_records(path):
        if record.timing and record.problem_bound:
            i = record.identity
            what = [i.problem, i.parameters, i.devices, i.precision, record.timing.cache, record.work.model_dump()]  # type: ignore[union-attr]
            alike.setdefault(json.dumps(what, sort_keys=True), []).append(record)
    for records in alike.values():
        bounds = [(record.timing.ranked.value, record.problem_bound) for record in records]  # type: ignore[union-attr]
        seconds = [bound.seconds for _, bound in bounds if bound]
        assert max(seconds) <= 1.12 * min(seconds), "one bound, but for what probes of ceilings say"
        for time, bound in bounds:
            for longer, other in bounds:
                assert not (bound and other) or longer < 1.12 * time or other.share.value < bound.share.value


def test_no_committed_result_is_impossible() -> None:
    for path in (ROOT / "results" / "committed").glob("*/records.jsonl"):
        assert not [record.key for record in read_records(path) if impossible(record.problem_bound)]


def test_datasheet_ceilings() -> None:
    profile = load_profile("hd7970")
    found = datasheet_ceilings(profile)
    assert {name: entry.value for name, entry in found.items()} == profile.nominal
    assert all(entry.low == entry.value == entry.high for entry in found.values())
    assert datasheet_ceilings(load_profile("generic_cpu")) == {}


def test_published_measurements_stand_over_the_datasheet_and_other_boards_are_left_out() -> None:
    profile = load_profile("hd7970")
    best, nominal = published_ceilings(profile), datasheet_ceilings(profile)
    assert best["dram_copy"].value == 211.122e9 < nominal["dram_copy"].value
    # Measured at another clock than this board's: the nominal ones stay.
    assert all(best[name] == nominal[name] for name in ("dram_read", "fp32_fma", "int32_mad", "int32_logic"))
    unmeasured = load_profile("gtx680")
    assert published_ceilings(unmeasured) == datasheet_ceilings(unmeasured)


def test_an_enqueue_latency_is_no_launch_latency() -> None:
    """It holds the driver's way to the device, which launches that are queued ahead do not wait for."""
    profile = load_profile("hd7970")
    assert profile.published["enqueue_latency"] == 35.82e-6
    assert "launch_latency" not in published_ceilings(profile)


@pytest.mark.parametrize(
    ("device", "binding", "rate"),
    [
        ("hd5870", "int24_mad", 2176e9),
        ("hd7970", "int24_mad", 3788.8e9),
        ("gtx680", "int32_logic", 1354.24e9),
        ("jetson_tx2", "int16_mad", 665.6e9),
        ("h200", "int32_mad", 33454.08e9),
    ],
)
def test_integer_work_goes_under_the_fastest_nominal_ceiling(device: str, binding: str, rate: float) -> None:
    """A multiply-add is 2 operations, of the ceiling as of the work: none of these does more per second."""
    for ceilings in (datasheet_ceilings(load_profile(device)), published_ceilings(load_profile(device))):
        bound = problem_bound(Work(integer_ops=1e12, read_bytes=1.0), ceilings, exact(10.0))
        assert bound and bound.binding == binding and bound.seconds == pytest.approx(1e12 / rate)


def test_host_bytes_go_under_the_nominal_link() -> None:
    link = problem_bound(
        Work(host_bytes=15.754e9, read_bytes=1.0), datasheet_ceilings(load_profile("gtx680")), exact(2.0)
    )
    assert link and link.binding == "h2d_pinned" and link.seconds == pytest.approx(1.0)
    shared = problem_bound(
        Work(host_bytes=1e9, read_bytes=1.0), datasheet_ceilings(load_profile("jetson_tx2")), exact(1.0)
    )
    assert shared and shared.terms.keys() == {"dram"}


@pytest.mark.parametrize(("low", "error"), [(1.015, False), (1.025, True)])
def test_two_percent_above_the_bound_are_allowed(low: float, error: bool) -> None:
    """Ceilings are measured to about one percent: a share of 1.01 is theirs, one of 1.03 is a fault of the variant."""
    bound = problem_bound(Work(read_bytes=4e9), CEILINGS, exact(0.1 / low))
    assert bound and bound.share.low == pytest.approx(low)
    assert impossible(bound) is error and not impossible(None)


@pytest.mark.parametrize(("low", "high", "error"), [(1.0, 1.0, True), (0.96, 1.0, False), (1.0, 1.04, False)])
def test_neither_the_time_nor_a_ceiling_may_explain_what_is_impossible(low: float, high: float, error: bool) -> None:
    """A time of 95 % of the bound: none, if the bound may be 4 % lower, or the time 4 % longer."""
    known = {"dram_read": Interval(value=40e9, low=40e9, high=40e9 / low)}
    bound = problem_bound(Work(read_bytes=4e9), known, Interval(value=0.095, low=0.095, high=0.095 * high))
    assert impossible(bound) is error


@pytest.mark.parametrize("tight", [0.9, 1.1])
def test_a_bound_that_is_ten_percent_too_tight_is_seen(tight: float) -> None:
    """A work that declares 10 % more than is needed makes a method at the bound impossible; 10 % less do not."""
    at_bound = exact(0.1)
    bound = problem_bound(Work(read_bytes=4e9 * tight), CEILINGS, at_bound)
    assert impossible(bound) is (tight > 1)


def test_a_ceiling_is_stale_by_the_share_itself_and_not_by_its_interval() -> None:
    noisy = Interval(value=0.101, low=0.09, high=0.11)
    bound = problem_bound(Work(read_bytes=4e9), CEILINGS, noisy)
    assert bound and bound.share.high > 1 > bound.share.value and not bound.stale
