"""Points of exhibits: the values of records, by panel and place on the axis; what is missing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
from claim_data import record

from perfport.judge.exhibits import Exhibit
from perfport.model.record import Record, Status
from perfport.report.parts.exhibit_points import Counter, Missing, Point, Points, points
from perfport.store.collection import Collection

RATES = {"number": "Figure 1", "title": "Rates", "kind": "curves", "problem": "rows", "x": "points"}


def gathered(folder: Path, shown: dict[str, Any], *records: Record, counted: Counter = lambda _: None) -> Points:
    """Return what records on one device have for an exhibit of the demonstration."""
    collection = Collection([data.store(folder / "run", list(records))])
    return points(Exhibit.model_validate({**RATES, **shown}), "demo", collection, collection.places[0], counted)


def at(variant: str, x: int, seconds: float, **change: Any) -> Record:
    return record(variant, seconds, parameters={"points": x, "dims": change.pop("dims", 10)}, noise=0.001, **change)


def test_points_are_the_metrics_of_records_with_the_bound_of_the_problem(tmp_path: Path) -> None:
    records = [at("a", x, s) for x, s in ((100, 0.05), (10, 0.06))]
    held = gathered(tmp_path, {"series": ["a"]}, *records)
    (panel,) = held.panels
    assert (held.xs, held.units, held.higher, held.missing) == ([10, 100], {"a": "GFLOP/s"}, True, [])
    metric, bound = records[0].metric, records[0].problem_bound
    assert metric and bound
    point = panel.curves["a"][100]
    assert (point.value.value, point.value.low, point.value.high) == (metric.value, metric.low, metric.high)
    assert point.bound == pytest.approx(0.6 / bound.seconds)  # 6e8 FLOP
    assert panel.bound(100) == point.bound and panel.bound(7) is None


def test_other_parameters_and_profiles_and_classes_are_panels(tmp_path: Path) -> None:
    records = [at("a", 1, 0.05, dims=dims) for dims in (16, 2)] + [at("a", 1, 0.05, profile="hd7970", dims=2)]
    held = gathered(tmp_path, {"series": ["a"], "profiles": [None, "hd7970"]}, *records)
    own = "the device's defaults"
    assert [panel.name for panel in held.panels] == [
        f"dims=2, profile={own}", "dims=2, profile=hd7970", f"dims=16, profile={own}",
    ]  # fmt: skip
    assert len(gathered(tmp_path / "own", {"series": ["a"]}, *records).panels) == 2
    both = [at("a", 1, 0.05), at("a", 1, 0.02, precision="fp16")]
    assert len(gathered(tmp_path / "classes", {"series": ["a"]}, *both).panels) == 2
    (one,) = gathered(tmp_path / "class", {"series": ["a"], "precision": "fp16"}, *both).panels
    assert one.curves["a"][1].record.identity.precision == "fp16"


def test_of_several_cases_at_one_place_the_fastest_counts(tmp_path: Path) -> None:
    records = [at("a", 1, s, tunables={"n": n}) for n, s in ((1, 0.05), (2, 0.03), (3, 0.07))]
    held = gathered(tmp_path, {"series": ["a", {"variant": "a", "tunables": {"n": 3}, "label": "three"}]}, *records)
    tunables = {title: of[1].record.identity.tunables["n"] for title, of in held.panels[0].curves.items()}
    assert tunables == {"a": 2, "three": 3}


def test_a_speed_up_is_over_the_reference_at_the_same_place(tmp_path: Path) -> None:
    records = [at("a", 1, 0.02), at("b", 1, 0.06), at("a", 2, 0.04), at("b", 2, 0.05), at("a", 3, 0.04)]
    held = gathered(tmp_path, {"series": [{"variant": "a", "over": {"variant": "b"}}]}, *records)
    (of,) = held.panels[0].curves.values()
    assert [round(of[x].value.value, 1) for x in held.xs] == [3.0, 1.2]
    assert held.units == {"a over b": "×"}
    assert held.missing == [Missing("a over b", "nothing to be over", [3])]
    bound = records[0].problem_bound
    assert bound and of[1].bound == pytest.approx(0.06 / bound.seconds, rel=0.01)


def test_over_several_references_there_is_no_one_bound(tmp_path: Path) -> None:
    over = [{"variant": "a", "over": {"variant": name}} for name in ("b", "c")]
    held = gathered(tmp_path, {"series": over}, at("a", 1, 0.02), at("b", 1, 0.06), at("c", 1, 0.04))
    assert held.panels[0].bound(1) is None


def test_a_reference_with_a_place_of_its_own_stands_there(tmp_path: Path) -> None:
    records = [record("a", 0.06 / n, tunables={"devices": n}, noise=0.001) for n in (1, 2)]
    over = {"variant": "a", "over": {"variant": "a", "tunables": {"devices": 1}}, "label": "over one"}
    held = gathered(tmp_path, {"x": "devices", "series": [over]}, *records)
    assert {x: round(p.value.value, 1) for x, p in held.panels[0].curves["over one"].items()} == {1: 1.0, 2: 2.0}
    assert held.panels[0].curves["over one"][2].bound is None  # of one device, and two took part


def test_the_best_is_the_fastest_contender(tmp_path: Path) -> None:
    records = [at("a", 1, 0.05), at("b", 1, 0.03, role="beyond"), at("c", 1, 0.02, role="peer")]
    held = gathered(tmp_path, {"series": [{"best": True}, "c"]}, *records)
    assert held.panels[0].curves["best variant"][1].record.identity.variant == "b"


def test_a_stand_in_is_taken_where_the_variant_has_no_result_and_is_named(tmp_path: Path) -> None:
    shown = {"series": [{"variant": "a", "instead": "b"}]}
    failed = at("a", 1, 0, status=Status.UNSUPPORTED)
    held = gathered(tmp_path / "failed", shown, failed, at("b", 1, 0.03))
    assert held.stand_ins == {"a": "b"} and held.panels[0].curves["a"][1].record.identity.variant == "b"
    assert gathered(tmp_path / "own", shown, at("a", 1, 0.05), at("b", 1, 0.03)).stand_ins == {}
    over = {"series": [{"variant": "c", "over": {"variant": "a", "instead": "b"}, "label": "gain"}]}
    held = gathered(tmp_path / "over", over, at("b", 1, 0.03), at("c", 1, 0.03))
    assert held.stand_ins == {"gain, over": "b"} and held.panels[0].curves["gain"][1].value.value == pytest.approx(
        1, 0.01
    )
    own = gathered(tmp_path / "own over", over, at("a", 1, 0.06), at("b", 1, 0.03), at("c", 1, 0.03))
    assert own.stand_ins == {} and own.panels[0].curves["gain"][1].value.value == pytest.approx(2, 0.01)


def test_figures_of_records_and_counts_by_their_path(tmp_path: Path) -> None:
    case = at("a", 1, 0.05, extra={"bytes": 3e6})
    counted = data.count(case, data.levels(dram_read=2))
    series = [
        {"variant": "a", "y": "extra.bytes", "label": "n", "unit": "B"}, {"variant": "a", "y": "time", "label": "t"},
        {"variant": "a", "y": "count.counted.dram_bytes/s", "label": "s", "unit": "B/s"},
        {"variant": "a", "y": "extra.none", "label": "none"},
    ]  # fmt: skip
    held = gathered(tmp_path, {"kind": "table", "series": series}, case, counted=lambda _: counted)
    curves = {title: of[1] for title, of in held.panels[0].curves.items()}
    assert case.timing
    time = case.timing.ranked
    assert (curves["n"].value.value, curves["t"].value) == (3e6, time)
    through = curves["s"].value
    assert through.value == pytest.approx((8e8 + 8e5) / time.value) and through.low < through.value < through.high
    assert held.units == {"n": "B", "t": "s", "s": "B/s"}
    assert held.missing == [Missing("none", "no number 'extra.none'", [])]
    bare = gathered(tmp_path / "bare", {"kind": "table", "series": series[2:3]}, case)
    assert bare.missing == [Missing("s", "not counted", [])] and bare.panels == []


def test_what_is_missing_is_said_with_its_reason_and_place(tmp_path: Path) -> None:
    records = [
        at("a", 1, 0.05), at("a", 2, 0.05), at("b", 1, 0.05), at("c", 1, 0, status=Status.UNSUPPORTED),
        at("c", 2, 0, status=Status.UNSUPPORTED), at("d", 1, 0.05), at("d", 2, 0.05, status=Status.CONTENDED),
    ]  # fmt: skip
    held = gathered(tmp_path, {"series": ["a", "b", "c", "d", "e"], "values": [1, 2, 4]}, *records)
    assert held.missing == [
        Missing("c", "unsupported: unsupported for a reason", []),
        Missing("d", "contended", [2]),
        Missing("e", "no such case in this run", []),
        Missing("a", "no such case in this run", [4]),
        Missing("b", "no such case in this run", [4, 2]),
        Missing("d", "no such case in this run", [4]),
    ]


def test_the_axis_is_in_the_order_of_the_source_and_may_be_of_several_parameters(tmp_path: Path) -> None:
    records = [record("a", parameters={"operator": name}) for name in ("x", "z", "y")]
    held = gathered(tmp_path, {"kind": "bars", "x": "operator", "values": ["z", "x"], "series": ["a"]}, *records)
    assert held.xs == ["z", "x", "y"]
    sizes = [record("a", parameters={"width": w, "height": h}) for w, h in ((640, 480), (64, 48))]
    held = gathered(tmp_path / "sizes", {"kind": "bars", "x": ["width", "height"], "series": ["a"]}, *sizes)
    assert held.xs == ["64 x 48", "640 x 480"]
    assert len(held.panels) == 1


def test_without_an_axis_each_series_has_one_point(tmp_path: Path) -> None:
    held = gathered(tmp_path, {"kind": "bars", "x": [], "series": ["a", "b"]}, at("a", 1, 0.05), at("b", 1, 0.04))
    assert held.xs == [""]
    assert all(isinstance(of[""], Point) for of in held.panels[0].curves.values())


def test_other_problems_devices_and_parameters_take_no_part(tmp_path: Path) -> None:
    records = [at("a", 1, 0.05, problem="copy"), at("a", 2, 0.05, device=data.INTEL), at("a", 3, 0.05, dims=7)]
    collection = Collection([data.store(tmp_path / "run", records)])
    shown = Exhibit.model_validate({**RATES, "series": ["a"], "parameters": {"dims": 10}})
    pocl = next(site for site in collection.places if site.name == data.POCL)
    assert points(shown, "demo", collection, pocl, lambda _: None).panels == []
