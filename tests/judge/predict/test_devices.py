"""Devices of the model: what is known of profiles, what is assumed, and what a user may set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import report_data as data
from hypothesis import given
from hypothesis import strategies as st
from predict_data import FAST, device

from perfport.judge.predict.devices import (
    Origin,
    Relation,
    as_seen_from,
    changed,
    of_profile,
    place_of,
    quantity,
    realised,
    vendor_of,
)
from perfport.machine.device_profile import all_profiles
from perfport.model.errors import UsageError
from perfport.store.collection import Collection
from perfport.store.results import load_runs


def test_what_others_measured_stands_before_the_datasheet() -> None:
    profile, known = all_profiles()["gtx1080"], of_profile("gtx1080")
    assert known.ceilings["dram_read"].value == profile.published["dram_read"] < profile.nominal["dram_read"]
    assert known.origins["dram_read"] is Origin.PUBLISHED
    assert known.ceilings["exp"].value == profile.nominal["exp"] and known.origins["exp"] is Origin.DATASHEET


def test_a_read_goes_as_fast_as_the_fastest_stream_that_was_published() -> None:
    profile = all_profiles()["hd7970"]
    assert "dram_read" not in profile.published  # its board differs
    assert of_profile("hd7970").ceilings["dram_read"].value == profile.published["dram_triad"]


def test_the_latency_from_enqueueing_is_no_time_between_launches() -> None:
    assert "enqueue_latency" in all_profiles()["hd5870"].published
    assert not {"enqueue_latency", "launch_latency"} & of_profile("hd5870").ceilings.keys()


def test_capabilities_follow_vendor_and_compute_capability() -> None:
    assert "ptx" in of_profile("k40m").capabilities and "ptx" not in of_profile("hd5870").capabilities
    assert "mma" in of_profile("h200").capabilities and "mma" not in of_profile("gtx1080").capabilities
    assert "dp4a" in of_profile("gtx1080").capabilities and "dp4a" not in of_profile("k40m").capabilities


@pytest.mark.parametrize(
    ("change", "relation"),
    [
        ({}, None),
        ({"name": "other", "title": "other"}, Relation.SIBLING),
        ({"runtime": "opencl:nvidia"}, Relation.RUNTIME),
        ({"family": "6.1"}, Relation.GENERATION),
        ({"family": "6.1", "runtime": ""}, Relation.GENERATION),
        ({"vendor": "amd", "family": "GCN"}, Relation.VENDOR),
        ({"kind": "cpu"}, Relation.KIND),
    ],
)
def test_relations(change: dict[str, str], relation: Relation | None) -> None:
    assert device().relation(replace(device(), **change)) is relation  # type: ignore[arg-type]


def test_what_is_missing_is_assumed_and_marked() -> None:
    bare = {"dram_read": 1e12, "fp32_fma": 10e12, "local_read": 3e12}
    seen = as_seen_from(device("far", ceilings=bare, origin=Origin.PUBLISHED), device())
    assert seen.ceilings.keys() == FAST.keys()
    assert seen.ceilings["l2_read"].value == pytest.approx(8e12 * 1 / 4)  # with DRAM
    assert seen.ceilings["l1_read"].value == 3e12  # as local memory
    assert seen.ceilings["launch_latency"].value == FAST["launch_latency"]
    assert {name for name, origin in seen.origins.items() if origin is Origin.ASSUMED} == FAST.keys() - bare.keys()


def test_a_datasheet_is_taken_times_what_is_reached_of_it_elsewhere() -> None:
    share = realised()["dram_read"]
    assert 0.6 < share < 0.95
    told = device("far", ceilings={"dram_read": 1e12, "fp32_fma": 1e13}, origin=Origin.DATASHEET)
    assert as_seen_from(told, device()).ceilings["dram_read"].value == pytest.approx(share * 1e12)
    measured = device("far", ceilings={"dram_read": 1e12, "fp32_fma": 1e13})
    assert as_seen_from(measured, device()).ceilings["dram_read"].value == 1e12


def test_copies_go_with_reads_unless_they_are_set() -> None:
    faster = changed(device(), ["dram_read=8TB/s"])
    assert faster.ceilings["dram_read"].value == 8e12 and faster.ceilings["dram_copy"].value == 8e12
    assert faster.origins["dram_copy"] is Origin.SET and faster.origins["l2_read"] is Origin.MEASURED
    assert changed(device(), ["dram_read=8TB/s", "dram_copy=5TB/s"]).ceilings["dram_copy"].value == 5e12
    assert faster.relation(device()) is Relation.SIBLING and device().ceilings["dram_read"].value == 4e12
    assert changed(device(), []) == device()


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("dram_raed=8TB/s", "did you mean 'dram_read'"),
        ("dram_read", "expected NAME=VALUE"),
        ("dram_read=8", "in B/s, got '8'"),
        ("dram_read=8TFLOP/s", "in B/s"),
        ("dram_read=-8TB/s", "positive"),
        ("dram_read=0TB/s", "positive"),
        ("dram_read=1e-320B/s", "positive"),  # nothing can be divided by it
        ("dram_read=8XB/s", "in B/s"),
        ("dram_read=1.2.3TB/s", "in B/s"),
        ("dram_read=9e99TB/s", "in B/s"),
        ("launch_latency=2TB/s", "in s"),
    ],
)
def test_bad_settings_are_named(setting: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        changed(device(), [setting])
    assert f"--set {setting}" in str(raised.value)


@given(st.floats(1e-3, 1e3), st.sampled_from([("", 1.0), ("m", 1e-3), ("k", 1e3), ("G", 1e9), ("T", 1e12)]))
def test_prefixes(value: float, prefix: tuple[str, float]) -> None:
    assert quantity(f"{value!r} {prefix[0]}B/s", "B/s", "") == pytest.approx(value * prefix[1])


def test_a_time_may_be_set() -> None:
    assert changed(device(), ["launch_latency=2.5us"]).ceilings["launch_latency"].value == pytest.approx(2.5e-6)


@pytest.mark.parametrize(
    ("texts", "vendor"),
    [(("NVIDIA Corporation",), "nvidia"), (("Advanced Micro Devices, Inc.",), "amd"), (("GenuineIntel",), "intel")],
)
def test_vendors(texts: tuple[str, ...], vendor: str) -> None:
    assert vendor_of(*texts) == vendor


def test_a_cpu_of_more_cores_is_another_device(tmp_path: Path) -> None:
    """Virtual machines of two and of 32 cores name one processor: ceilings of the one are none of the other's."""
    for name, cores in (("a", 2), ("b", 32)):
        told = data.environment(host={"cpu": "one name", "cores": cores, "memory_bytes": 8 << 30})
        data.store(tmp_path / name, [data.record("a", device=data.POCL), data.record("a", device=data.GPU)], told)
    places = {place_of(case) for case in Collection(load_runs([tmp_path])).cases}
    assert len(places) == 3 and sum(runtime == "opencl:nvidia" for runtime, _ in places) == 1
