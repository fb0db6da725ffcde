"""What a record says of its time: what binds, what could be gained, what is not known; and where work pays most."""

from __future__ import annotations

from typing import Any

import pytest
import report_data as data

from perfport.judge.explain import EXPLAINED, NOTABLE, Gain, explain, find_case, leader, where_work_pays
from perfport.model.record import Bound, Interval, Record, Status
from perfport.model.work import Traffic, Work
from perfport.store.case import Case, Site, Subject
from perfport.store.comparable import comparable
from perfport.store.ratios import time_of

COMPUTE = Work(flops=6e10, read_bytes=4e8, write_bytes=8e5)


def case(record: Record, count: int = 1) -> Case:
    """Return a record as a case of its own; ``count`` devices took part."""
    devices = tuple(record.identity.devices)
    return Case(None, record, Site(devices, ("chip",) * len(devices), count=count), Subject.of(record))  # type: ignore[arg-type]


def bounded(record: Record, **terms: float) -> Record:
    """Return a record whose bounds have these terms in seconds, the first binding; the interval is 10 % wide."""
    binding = next(iter(terms))
    share = terms[binding] / time_of(record)
    interval = Interval(value=share, low=0.9 * share, high=1.1 * share)
    seconds = terms[binding]
    bound = Bound(
        seconds=seconds, low=seconds, high=seconds, binding=binding, terms=terms, share=interval, stale=share > 1,
    )  # fmt: skip
    return record.model_copy(update={"problem_bound": bound, "variant_bound": bound})


def test_memory_binds_and_the_next_ceiling_is_below_it() -> None:
    traffic = Traffic(flops=6e8, dram_read=16e8, dram_write=8e5)
    found = explain(case(data.record("a", 0.06, traffic=traffic, noise=0.0)))
    assert [term.name for term in found.terms] == ["dram", "fp32_fma"]
    assert found.terms[0].seconds == pytest.approx(16e8 / 40e9, rel=0.01)
    assert found.terms[0].share == pytest.approx(0.04 / 0.06, rel=0.01)
    assert found.terms[1].seconds == pytest.approx(6e8 / 400e9)
    assert found.present and found.perfect and found.unknown == () and not found.unexplained
    assert found.present.factor.value == pytest.approx(0.06 / 0.04, rel=0.01)
    assert found.perfect.factor.value == pytest.approx(0.06 / 0.01, rel=0.01)  # a quarter of the bytes is compulsory
    assert found.perfect.saved == pytest.approx(0.06 - found.perfect.seconds)
    noisy = explain(case(data.record("a", 0.06, noise=0.01))).perfect
    assert noisy and noisy.factor.low < noisy.factor.value < noisy.factor.high


def test_arithmetic_binds() -> None:
    found = explain(case(data.record("a", 0.2, work=COMPUTE)))
    assert found.terms[0].name == "fp32_fma" and found.perfect and found.perfect.by == "fp32_fma"
    assert not found.perfect.latency


@pytest.mark.parametrize("name", ["steps", "grid_barrier"])
def test_a_chain_of_steps_is_latency(name: str) -> None:
    found = explain(case(bounded(data.record("a", 0.05), **{name: 0.03, "dram": 0.001})))
    assert found.present and found.perfect and found.present.latency and found.perfect.latency
    assert found.terms[0].name == name


def test_of_equal_terms_the_binding_one_is_first() -> None:
    found = explain(case(bounded(data.record("a", 0.05), l2_read=0.03, dram=0.03)))
    assert [term.name for term in found.terms] == ["l2_read", "dram"]


def test_a_time_far_above_every_term_is_not_explained() -> None:
    below, above = (explain(case(bounded(data.record("a", 1.0, noise=0.0), dram=EXPLAINED + d))) for d in (-0.01, 0.01))
    assert below.unexplained and not above.unexplained


def test_launches_are_said_where_they_are_a_notable_part() -> None:
    record = data.record("a", 1e-3, device=data.GPU, ceilings=data.GPU_CEILINGS, noise=0.0)
    assert record.timing
    for launches, notable in ((1, False), (19, False), (21, True)):
        timing = record.timing.model_copy(update={"launches": launches})
        found = explain(case(record.model_copy(update={"timing": timing})))
        assert found.launches and found.launches.share == pytest.approx(launches * 2.5e-6 / 1e-3)
        assert (found.notable_launches is not None) is notable is (found.launches.share >= NOTABLE)
    timing = record.timing.model_copy(update={"launches": 0})
    assert explain(case(record.model_copy(update={"timing": timing}))).launches is None
    assert explain(case(data.record("a", ceilings=None))).launches is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"traffic": None}, "does not state what traffic"),
        ({"ceilings": None}, "no ceilings were measured"),
        ({"ceilings": {"local_read": 7e11}}, "what a perfect kernel would gain is not known"),
        ({"ceilings": {"local_read": 7e11}}, "what binds it is not known"),
        ({"status": Status.WRONG}, "wrong: there is no time"),
        ({"status": Status.CRASHED}, "crashed (crashed for a reason): there is no time"),
        ({"seconds": 0.004}, "impossible: faster than its problem bound allows"),
    ],
)
def test_what_is_not_known_is_said(change: dict[str, Any], said: str) -> None:
    found = explain(case(data.record("a", **change)))
    assert any(said in reason for reason in found.unknown), found.unknown
    assert found.terms == () and found.present is None
    assert (found.perfect is None) is ("traffic" not in change)


def test_several_devices_have_no_bounds() -> None:
    found = explain(case(data.record("a"), count=2))
    assert (found.terms, found.present, found.perfect) == ((), None, None) and found.time
    assert "several devices" in found.unknown[0]
    assert explain(case(data.record("a"))).perfect


def test_a_contended_time_is_explained() -> None:
    assert explain(case(data.record("a", status=Status.CONTENDED))).perfect


def test_a_bound_above_the_time_leaves_nothing_to_gain() -> None:
    at = Gain.of(bounded(data.record("a", 0.05, noise=0.0), dram=0.0505).problem_bound, 0.05)
    assert at and at.nothing and at.saved == 0 and not at.impossible and at.factor.low < at.factor.value < 1
    far = Gain.of(bounded(data.record("a", 0.05, noise=0.0), dram=0.1).problem_bound, 0.05)
    assert far and far.impossible
    below = Gain.of(bounded(data.record("a", 0.05, noise=0.0), dram=0.0495).problem_bound, 0.05)
    assert below and not below.nothing and below.saved == pytest.approx(0.0005)


@pytest.mark.parametrize("low", [0.0, -0.1])
def test_a_share_that_can_be_zero_says_nothing(low: float) -> None:
    share = Interval(value=0.0, low=low, high=0.1)
    bound = Bound(seconds=0.0, low=0.0, high=0.0, binding="dram", terms={"dram": 0.0}, share=share)
    assert Gain.of(bound, 0.05) is None and Gain.of(None, 0.05) is None


def test_the_most_is_to_be_gained_first() -> None:
    """By the best own variant of each problem, no peer or control arm; a contended one where there is no other."""
    groups = comparable(
        map(
            case,
            [
                data.record("near", 0.012, problem="near"),
                data.record("far", 0.5, problem="far"), data.record("farther", 0.9, problem="far"),
                data.record("library", 9.0, problem="far", role="peer"),
                data.record("arm", 8.0, problem="far", role="control"),
                data.record("busy", 0.1, problem="busy", status=Status.CONTENDED),
                data.record("unbounded", 7.0, problem="a", ceilings=None),
                data.record("broken", problem="broken", status=Status.CRASHED),
                data.record("only_peer", problem="peers", role="peer"),
            ],
        )
    )  # fmt: skip
    ranked = where_work_pays(groups)
    leaders = [leader(group) for group, _ in ranked]
    assert [each.record.identity.variant for each in leaders if each] == ["far", "busy", "near", "unbounded"]
    factors = [found.perfect.factor.value for _, found in ranked if found.perfect]
    assert len(factors) == 3 and factors == sorted(factors, reverse=True)


def test_cases_go_by_key_by_its_beginning_or_by_name() -> None:
    cases = [case(data.record(name, key=key)) for name, key in (("a", "abcd"), ("b", "abce"), ("c", "abc"))]
    assert [each.record.key for each in find_case(cases, "abc")] == ["abc"], "a whole key is no beginning"
    assert [each.record.key for each in find_case(cases, "ab")] == ["abcd", "abce", "abc"]
    assert [each.record.key for each in find_case(cases, "demo/rows/b")] == ["abce"]
    assert find_case(cases, "demo/rows") == find_case(cases, "") == find_case(cases, "x") == []
