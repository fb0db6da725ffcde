"""Work and traffic of several instances of the inputs as one."""

from __future__ import annotations

from statistics import geometric_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfport.measure.roofline import problem_bound
from perfport.model.record import Interval
from perfport.model.work import Traffic, Work, mean_of

AMOUNT = st.one_of(st.just(0.0), st.floats(1.0, 1e12))
WORKS = st.lists(
    st.builds(
        Work, flops=AMOUNT, integer_ops=AMOUNT, read_bytes=AMOUNT, write_bytes=AMOUNT, load_bytes=AMOUNT,
        barriers=st.sampled_from([0.0, 1.0, 900.0]),
        float_units=st.fixed_dictionaries({"fp32_fma": st.floats(0.2, 2), "tf32_mma": st.floats(0.2, 20)}),
    ), min_size=1, max_size=4,
)  # fmt: skip
CEILINGS = {
    name: Interval(value=value, low=value, high=value)
    for name, value in {
        "fp32_fma": 1e12,
        "tf32_mma": 9e12,
        "l1_read": 4e12,
        "launch_latency": 1e-6,
        "empty_span": 3e-6,
        "int32_logic": 1e12,
        "int32_mad": 1e12,
        "dram_copy": 1e11,
        "dram_read": 1e11,
    }.items()
}


def seconds(work: Work) -> float:
    """The problem bound of a work."""
    taken = Interval(value=1.0, low=1.0, high=1.0)
    bound = problem_bound(work, CEILINGS, taken)
    return bound.seconds if bound else 0.0


@given(WORKS)
def test_no_mean_of_times_can_be_below_the_bound_of_the_mean_work(works: list[Work]) -> None:
    each = [seconds(work) for work in works]
    mean = geometric_mean(each) if all(each) else 0.0
    assert seconds(mean_of(works)) <= mean * (1 + 1e-9)


def test_where_one_resource_binds_all_the_bound_is_the_mean_of_the_bounds() -> None:
    works = [Work(flops=1.0, read_bytes=size) for size in (1e9, 2e9, 4e9)]
    assert (
        seconds(mean_of(works))
        == pytest.approx(seconds(works[1]))
        == pytest.approx(geometric_mean(map(seconds, works)))
    )


def test_what_is_unknown_or_nothing_in_one_is_so_in_the_mean() -> None:
    mean = mean_of([Traffic(flops=2.0, dram_read=8.0, l2_bytes=3.0), Traffic(flops=8.0, local_read=5.0)])
    assert (mean.flops, mean.dram_read, mean.local_read, mean.l2_bytes) == (4.0, 0.0, 0.0, None)
    assert mean.provenance == "modelled"
    one = Traffic(flops=3.0, l2_bytes=None)
    assert mean_of([one]) is one


def test_nothing_is_done_or_moved_unless_stated() -> None:
    assert set(Work().model_dump(exclude={"launches", "float_units", "integer_units"}).values()) == {0.0}
    assert Work().launches == 1
    assert set(Traffic().model_dump(exclude={"l2_bytes", "provenance"}).values()) == {0.0}
    assert Traffic().l2_bytes is None and Traffic().provenance == "modelled"


def test_a_host_has_its_bytes_already_and_no_device_has() -> None:
    work = Work(flops=1.0, host_bytes=5.0)
    assert work.on("cpu") == Work(flops=1.0, launches=0)
    assert work.on("gpu") == work.on("accelerator") == work


def test_traffic_of_several_launches_adds_up() -> None:
    names = [name for name in Traffic.model_fields if name not in ("l2_bytes", "provenance")]
    one = Traffic(**{name: float(number) for number, name in enumerate(names, 1)}, l2_bytes=3.0, provenance="counted")
    assert Traffic.total(one, one, one) == Traffic(**{name: 3.0 * number for number, name in enumerate(names, 1)})


def test_bytes_by_level_and_intensity() -> None:
    work = Work(flops=12.0, integer_ops=20.0, read_bytes=3.0, write_bytes=1.0, host_bytes=7.0)
    assert (work.bytes, work.intensity) == (4.0, 3.0)
    assert Work(integer_ops=20.0, write_bytes=4.0).intensity == 5.0 and Work(flops=1.0).intensity == float("inf")
    traffic = Traffic(
        dram_read=1.0, dram_write=2.0, global_read=4.0, global_write=8.0, constant_read=16.0, image_read=32.0,
        image_write=64.0, local_read=128.0, local_write=256.0, global_atomics=512.0, local_atomics=1024.0,
    )  # fmt: skip
    assert (traffic.dram_bytes, traffic.issued_bytes, traffic.local_bytes) == (3.0, 124.0, 384.0)
