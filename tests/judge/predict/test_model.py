"""Times carried over: each term by hand, and what must hold whatever the numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from predict_data import FAST, SLOW, device, source, streaming

from perfport.judge.predict.devices import Device, Origin, Relation, changed
from perfport.judge.predict.limits import Footprint
from perfport.judge.predict.model import (
    ASSUMED,
    FLOOR,
    ONE_WAVE,
    SPILLED,
    UNEXPLAINED,
    UNIFORM,
    Estimate,
    Pattern,
    Source,
    carry_over,
)
from perfport.model.work import Traffic

NEAR, SIBLING = device(), device("sibling", ceilings=SLOW)
EMPTY = FAST["empty_span"]


def carried(from_: Source, to: Device) -> Estimate:
    """Return the estimate, which there has to be."""
    found = carry_over(from_, to)
    assert found is not None
    return found


#: What 4 GB leave of 1.6 ms, of which DRAM takes 1 ms: their squares add up.
BESIDE = math.sqrt((1.6e-3 - EMPTY) ** 2 - 1e-3**2)


def test_a_sibling_takes_its_own_bound_and_what_is_not_explained_beside_it() -> None:
    # 4 GB: 1 ms here and 2 ms there; an empty execution on both; the rest stays.
    found = carried(source(1.6e-3, streaming(4e9), NEAR), SIBLING)
    assert found.seconds == pytest.approx(EMPTY + math.hypot(2e-3, BESIDE)) and found.binding == "dram"
    assert found.share == pytest.approx((1e-3 + EMPTY) / 1.6e-3)
    assert found.parts["what no ceiling explains may scale otherwise"] == pytest.approx(
        UNEXPLAINED * (BESIDE / 1.6e-3) ** 2
    )


def test_what_binds_little_changes_little() -> None:
    # A third of the time is DRAM's, beside something else: twice as slow a DRAM adds a sixth, not a third.
    found = carried(source(3e-3 + EMPTY, streaming(4e9), NEAR), SIBLING)
    assert found.seconds == pytest.approx(EMPTY + math.sqrt(12) * 1e-3)


def test_the_rest_goes_with_the_arithmetic_between_siblings() -> None:
    smaller = device("sibling", ceilings={**FAST, "fp32_fma": 25e12})
    assert carried(source(1.6e-3, streaming(4e9), NEAR), smaller).seconds == pytest.approx(
        EMPTY + math.hypot(1e-3, 2 * BESIDE)
    )


def test_units_and_clock_of_siblings_count_for_more_than_a_rate_that_power_limits() -> None:
    chip = {"compute_units": 100.0, "boost_clock": 2e9}
    own = device(hierarchy=chip)
    capped = {**FAST, "fp32_fma": 25e12}
    same = device("same", hierarchy=chip, ceilings=capped)
    half = device("half", hierarchy={**chip, "compute_units": 50.0}, ceilings=capped)
    work = source(10e-3, streaming(4e9), own)
    assert carried(work, same).seconds == pytest.approx(10e-3)
    beside = (10e-3 - EMPTY) ** 2 - 1e-6
    assert carried(work, half).seconds == pytest.approx(EMPTY + math.sqrt(1e-6 + 4 * beside))
    asked = changed(same, ["fp32_fma=5TFLOP/s"])  # nobody sets a rate for it to be passed over
    assert carried(work, asked).seconds == pytest.approx(EMPTY + math.sqrt(1e-6 + 100 * beside))


def test_a_time_below_what_is_explained_keeps_its_share() -> None:
    found = carried(source(0.9e-3, streaming(4e9), NEAR), SIBLING)
    assert found.seconds == pytest.approx(0.9e-3 * (2e-3 + EMPTY) / (1e-3 + EMPTY))


def test_launches_are_paid_one_by_one() -> None:
    late = device("sibling", ceilings={**FAST, "launch_latency": 11e-6})
    found = carried(source(2e-3, streaming(4e9), NEAR, launches=21), late)
    assert found.seconds == pytest.approx(2e-3 + 20 * 10e-6)


def test_an_empty_execution_that_only_one_side_knows_does_not_count() -> None:
    without = device(ceilings={name: value for name, value in FAST.items() if name != "empty_span"})
    slow = device("sibling", ceilings={**FAST, "empty_span": 1e-3})
    assert carried(source(2e-3, streaming(4e9), without), slow).seconds == pytest.approx(2e-3)


def test_nothing_is_carried_over_without_traffic_or_ceilings() -> None:
    assert carry_over(source(1e-3, None, NEAR), SIBLING) is None
    assert carry_over(source(1e-3, streaming(4e9), device(ceilings={})), SIBLING) is None


def far(**change: Any) -> Device:
    """Return a device of another architecture that is 4 times slower in DRAM, 10 times in arithmetic."""
    ceilings = {**FAST, "dram_read": 1e12, "dram_copy": 1e12, "fp32_fma": 5e12, **change.pop("ceilings", {})}
    return device(change.pop("name", "far"), family="6.1", runtime="", ceilings=ceilings, **change)


def ends(seconds: float, there: float, least: float, most: float) -> tuple[float, float]:
    """Return the shortest and the longest time where DRAM takes a quarter of what it takes there."""
    alone, beside = seconds - there / 4 - EMPTY, math.sqrt((seconds - EMPTY) ** 2 - (there / 4) ** 2)
    found = [
        EMPTY + each
        for scaling in (least, most)
        for each in (math.hypot(there, scaling * beside), there + scaling * alone)
    ]
    return min(found), max(found)


def test_another_architecture_leaves_open_how_the_rest_scales_and_overlaps() -> None:
    found = carried(source(10e-3, streaming(4e9), NEAR), far())
    short, long = ends(10e-3, 4e-3, 1.0, 10.0)  # waves where nothing is told of compute units; arithmetic
    assert found.relation is Relation.GENERATION
    assert found.seconds == pytest.approx(math.sqrt(short * long))
    assert found.parts["what no ceiling explains may scale otherwise"] == pytest.approx(
        UNIFORM / 2 * math.log(long / short)
    )


def test_waves_go_with_units_and_clock_and_short_times_with_the_clock_alone() -> None:
    own = device(hierarchy={"compute_units": 100.0, "boost_clock": 2e9})
    other = far(hierarchy={"compute_units": 20.0, "base_clock": 1e9}, ceilings={"fp32_fma": 5e12})
    long = carried(source(10e-3, streaming(4e9), own), other)
    assert long.seconds == pytest.approx(math.sqrt(math.prod(ends(10e-3, 4e-3, 4, 10))))
    brief = (ONE_WAVE - 1) * EMPTY
    short = carried(source(brief, streaming(4e7), own), other)
    assert short.seconds == pytest.approx(math.sqrt(math.prod(ends(brief, 4e-5, 2, 10))))


def test_between_vendors_terms_may_follow_one_another() -> None:
    amd = far(name="amd", vendor="amd")
    traffic = streaming(4e9, flops=5e9, l2_bytes=4e9)
    found = carried(source(1e-3 + EMPTY, traffic, NEAR), amd)
    terms = 4e-3, 1e-3, 0.5e-3, 4e9 / 30e12  # DRAM, arithmetic, second and first level
    assert found.relation is Relation.VENDOR and found.binding == "dram"
    assert found.seconds == pytest.approx(math.sqrt((EMPTY + 4e-3) * (EMPTY + sum(terms))))
    same_vendor = carried(source(1e-3 + EMPTY, traffic, NEAR), far())
    assert same_vendor.seconds == pytest.approx(EMPTY + 4e-3)


LINES = Pattern(4.0, {(64, 64): (60.0, 16.0)})
CACHE = {"resident_threads_per_cu": 10.0, "hardware_thread": 64.0, "memory_transaction": 64.0}


@pytest.mark.parametrize(("l1", "brought"), [(10 * 60 * 64, False), (10 * 60 * 64 - 1, True)])
def test_a_first_level_that_cannot_hold_the_lines_lets_each_access_through(l1: int, brought: bool) -> None:
    amd = far(name="amd", vendor="amd", hierarchy={**CACHE, "l1": float(l1)})
    found = carried(source(1e-3, streaming(4e9), NEAR, pattern=LINES), amd)
    assert ("l2_read" in found.explained.terms) == brought
    assert found.explained.serial == pytest.approx(4e-3 + 4e9 / 30e12 + 16 * 4e9 / 8e12)


def test_loads_are_fetches_where_a_device_states_their_rate() -> None:
    amd = far(name="amd", vendor="amd", ceilings={"fetch": 1e11})
    found = carried(source(1e-3, streaming(4e9), NEAR, pattern=LINES), amd)
    assert found.explained.terms["fetch"] == pytest.approx(1e9 / 1e11) and found.binding == "fetch"


def test_what_is_assumed_widens_by_its_share() -> None:
    traffic = streaming(4e9, l2_bytes=40e9)
    bare = {name: value for name, value in FAST.items() if name != "l2_read"}
    unknown = device("sibling", ceilings=bare)
    found = carried(source(6e-3, traffic, NEAR), unknown)
    part = next(value for name, value in found.parts.items() if "not known of the device: l2_read" in name)
    terms = 1e-3, 5e-3, 4e9 / 30e12
    assert part == pytest.approx(math.log(ASSUMED) * 5e-3 / sum(terms))
    assert not any("not known" in name for name in carried(source(6e-3, traffic, NEAR), SIBLING).parts)


def test_registers_that_may_be_spilled_leave_no_ground() -> None:
    limited = far(hierarchy={"max_registers_per_thread": 63.0})
    heavy = source(2e-3, streaming(4e9), NEAR, footprint=Footprint(registers=100))
    assert max(carried(heavy, limited).parts.values()) == pytest.approx(math.log(SPILLED))
    light = source(2e-3, streaming(4e9), NEAR, footprint=Footprint(registers=63))
    assert math.log(SPILLED) not in carried(light, limited).parts.values()


def test_fewer_hardware_threads_hide_less() -> None:
    full = {"hardware_thread": 32.0, "resident_threads_per_cu": 64.0, "registers": 65536.0}
    taken = Footprint(group=256, registers=64)
    own = device(hierarchy={**full, "registers": 131072.0})
    case = source(5e-3, streaming(4e9), own, footprint=taken)
    half = carried(case, far(hierarchy=full))
    whole = carried(case, far(hierarchy={**full, "registers": 131072.0}))
    assert half.seconds > whole.seconds and half.own > whole.own


def test_local_memory_that_nobody_tells_is_a_missing_fact_unless_the_simulator_ran_it() -> None:
    unknown = Footprint(dynamic_local=True)
    name = "how much local memory a work-group takes is not known"
    assert name in carried(source(2e-3, streaming(4e9), NEAR, footprint=unknown), far()).parts
    assert name not in carried(source(2e-3, streaming(4e9), NEAR, footprint=unknown), SIBLING).parts
    assert name not in carried(source(2e-3, streaming(4e9), NEAR, footprint=unknown, pattern=LINES), far()).parts


@given(
    seconds=st.floats(1e-5, 1.0), nbytes=st.floats(1e6, 1e12), ratio=st.floats(0.05, 20.0),
    other=st.sampled_from([SIBLING, far(), far(name="amd", vendor="amd"), far(name="cpu", kind="cpu")]),
)  # fmt: skip
def test_whatever_the_numbers(seconds: float, nbytes: float, ratio: float, other: Device) -> None:
    case = source(seconds, Traffic(dram_read=nbytes), NEAR)
    faster = {name: value.value for name, value in other.ceilings.items()}
    faster |= {name: max(1.0, ratio) * faster[name] for name in ("dram_read", "dram_copy")}
    found = carried(case, other)
    assert 0 < found.seconds < math.inf and found.own >= FLOOR
    quicker = carried(case, replace(other, ceilings=device(ceilings=faster).ceilings))
    assert quicker.seconds <= found.seconds * (1 + 1e-9)  # no device is slower for a faster memory


def test_one_and_the_same_ceilings_give_the_time_back() -> None:
    case = source(1.7e-3, streaming(4e9), NEAR)
    assert carried(case, device("twin")).seconds == pytest.approx(1.7e-3)
    assert carried(case, device("twin", origin=Origin.PUBLISHED)).seconds == pytest.approx(1.7e-3)
