"""The portability metric: its properties, what counts as 0, what is left out, and what never enters."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from equal_variants import one_and_the_best_of_twenty
from hypothesis import given, settings
from hypothesis import strategies as st

from perfport.judge.portability import BEST, Portability, Rule, harmonic_mean, metric, portability
from perfport.model.record import Interval, Record, Status
from perfport.report.pages.portability import EXPORT, export, view
from perfport.report.parts.view import as_csv
from perfport.store.collection import Collection

CALM = settings(derandomize=True)
EFFICIENCY = st.floats(1e-6, 1.0)
EFFICIENCIES = st.lists(EFFICIENCY, min_size=1, max_size=20)


@CALM
@given(EFFICIENCIES)
def test_metric_lies_between_the_least_and_the_arithmetic_mean(values: list[float]) -> None:
    found = harmonic_mean(values)
    assert min(values) <= found <= max(values)
    assert found <= math.fsum(values) / len(values) * (1 + 1e-12)


@CALM
@given(EFFICIENCIES)
def test_metric_is_the_definition_of_the_source(values: list[float]) -> None:
    assert harmonic_mean(values) == pytest.approx(len(values) / math.fsum(1 / e for e in values), rel=1e-12)


@CALM
@given(EFFICIENCIES, st.randoms())
def test_order_of_platforms_changes_nothing(values: list[float], random: Any) -> None:
    other = list(values)
    random.shuffle(other)
    assert harmonic_mean(values) == pytest.approx(harmonic_mean(other), rel=1e-12)


@CALM
@given(EFFICIENCIES, st.integers(0, 20))
def test_one_platform_that_fails_makes_it_zero(values: list[float], place: int) -> None:
    assert harmonic_mean([*values[:place], 0.0, *values[place:]]) == 0.0


@CALM
@given(EFFICIENCY, st.integers(1, 20))
def test_equal_efficiencies_are_their_own_metric(value: float, n: int) -> None:
    assert harmonic_mean([value] * n) == pytest.approx(value, rel=1e-12)


@CALM
@given(EFFICIENCIES, st.data())
def test_a_better_platform_never_lowers_it(values: list[float], draw: st.DataObject) -> None:
    place = draw.draw(st.integers(0, len(values) - 1))
    better = [*values[:place], draw.draw(st.floats(values[place], 1.0)), *values[place + 1 :]]
    assert harmonic_mean(better) >= harmonic_mean(values) * (1 - 1e-12)


@CALM
@given(st.lists(st.tuples(EFFICIENCY, EFFICIENCY, EFFICIENCY).map(sorted), min_size=1, max_size=9))
def test_interval_holds_the_value(parts: list[list[float]]) -> None:
    found = metric([Interval(low=low, value=value, high=high) for low, value, high in parts])
    assert found and found.low <= found.value * (1 + 1e-12) and found.value <= found.high * (1 + 1e-12)


def test_ends_of_the_interval_come_from_ends() -> None:
    found = metric([Interval(value=0.5, low=0.4, high=0.6), Interval(value=0.8, low=0.6, high=0.9)])
    assert found and (found.low, found.high) == (pytest.approx(0.48), pytest.approx(0.72))


@CALM
@given(st.lists(EFFICIENCY, max_size=5), st.floats().filter(lambda e: not 0 <= e <= 1))
def test_what_is_no_efficiency_is_refused(values: list[float], bad: float) -> None:
    with pytest.raises(ValueError, match="not within 0 and 1"):
        harmonic_mean([*values, bad])


def test_no_platform_has_no_metric() -> None:
    with pytest.raises(ValueError, match="no platform"):
        harmonic_mean([])
    one, zero = Interval(value=1, low=1, high=1), Interval(value=0, low=0, high=0)
    assert metric([]) is None and metric([one, None]) is None
    assert metric([one, zero, None]) == zero  # a platform without ceilings cannot help one that fails


def over(folder: Path, records: list[Record], **environment: Any) -> tuple[dict[str, Portability], Collection]:
    """Return the metric over all sites by application, for records of one problem."""
    collection = Collection([data.store(folder / "run", records, data.environment(**environment))])
    return {one.application: one for one in portability(collection, collection.sites)}, collection


def test_both_efficiencies_and_the_best_on_each_platform(tmp_path: Path) -> None:
    records = [
        data.record("a", 0.02, device=data.POCL), data.record("b", 0.05, device=data.POCL),
        data.record("a", 0.06, device=data.INTEL), data.record("b", 0.03, device=data.INTEL),
        data.record("lib", 0.025, device=data.INTEL, role="peer"),
    ]  # fmt: skip
    found, _ = over(tmp_path, records)
    assert list(found) == ["a", "b", BEST]
    shares = {
        (r.identity.variant, r.identity.devices[0]): r.problem_bound.share.value for r in records if r.problem_bound
    }
    a = found["a"]
    assert a.architectural and a.by_application
    expected = 2 / (1 / shares["a", data.POCL] + 1 / shares["a", data.INTEL])
    assert a.architectural.value == pytest.approx(expected)
    assert a.by_application.value == pytest.approx(2 / (1 / 1.0 + 0.06 / 0.025), rel=0.02)  # the peer is best known
    best = found[BEST]
    assert best.architectural
    assert best.architectural.value == pytest.approx(2 / (1 / shares["a", data.POCL] + 1 / shares["b", data.INTEL]))


def test_a_contended_rival_is_not_the_best_known(tmp_path: Path) -> None:
    rival = data.record("b", 0.01).model_copy(update={"status": Status.CONTENDED})
    found, _ = over(tmp_path, [data.record("a", 0.02), rival])
    assert found["a"].by_application == Interval(value=1, low=1, high=1)


def test_a_contended_result_is_compared_with_what_was_not_disturbed(tmp_path: Path) -> None:
    """Where all was contended nothing is the best known: 1 for every variant would raise the metric."""
    slow = data.record("a", 0.04, device=data.INTEL).model_copy(update={"status": Status.CONTENDED})
    beside, _ = over(tmp_path / "beside", [data.record("a", 0.02), slow, data.record("b", 0.02, device=data.INTEL)])
    reached = beside["a"].by_application
    assert reached and reached.value == pytest.approx(2 / (1 + 0.04 / 0.02), rel=0.02)
    less = data.record("less", 0.02, device=data.INTEL, role="control")
    for k, others in enumerate([[], [less]]):
        alone, collection = over(tmp_path / f"alone{k}", [data.record("a", 0.02), slow, *others])
        (disturbed,) = (site for site in collection.sites if site.name == data.INTEL)
        for name in ("a", BEST):
            assert alone[name].left_out[disturbed] == "contended, and nothing undisturbed to compare with"
            assert [each.site.name for each in alone[name].efficiencies] == [data.POCL]


def test_a_contended_result_counts_by_its_fastest_and_never_as_the_best(tmp_path: Path) -> None:
    """Whatever their keys; just below the best it counts."""
    records = [data.record("a", 0.02), data.record("b", 0.02, device=data.INTEL)]
    times = {"0" * 16: 0.03, "f" * 16: 0.0202}
    for number, keys in enumerate((list(times), list(times)[::-1])):
        own = [
            data.record("a", seconds, device=data.INTEL, key=key, tunables={"n": n}, status=Status.CONTENDED, noise=0)
            for n, (key, seconds) in enumerate(zip(keys, times.values(), strict=True))
        ]
        found, _ = over(tmp_path / str(number), [*records, *own])
        assert [each.application.value for each in found["a"].efficiencies] == pytest.approx([0.99, 1], abs=0.01)


def test_a_contended_result_that_is_faster_than_what_was_not_is_left_out(tmp_path: Path) -> None:
    """One whose clocks agree on a disturbed machine alone may have hidden its work."""
    fast = data.record("a", 0.001, device=data.INTEL).model_copy(update={"status": Status.CONTENDED})
    found, collection = over(tmp_path, [data.record("a", 0.02), fast, data.record("b", 0.02, device=data.INTEL)])
    (disturbed,) = (site for site in collection.sites if site.name == data.INTEL)
    assert found["a"].left_out[disturbed] == "contended, and nothing undisturbed is faster"
    assert found["b"].by_application == Interval(value=1, low=1, high=1)
    best = {each.site.name: each.record.identity.variant for each in found[BEST].efficiencies}
    assert best == {data.POCL: "a", data.INTEL: "b"}


def test_a_rival_without_device_events_is_known_by_the_hosts_clock(tmp_path: Path) -> None:
    """Which is 1.1 times the kernels' own here; of both clocks' rivals the better one counts."""
    host = data.record("host", 0.012, clock="wall", role="peer")
    for rivals, share in (([], 0.012 / 0.022), ([data.record("b", 0.0105)], 0.0105 / 0.02)):
        found, _ = over(tmp_path / f"{len(rivals)}", [data.record("a", 0.02), host, *rivals])
        reached = found["a"].by_application
        assert reached and reached.value == pytest.approx(share, rel=0.02)


def test_a_control_arm_is_neither_best_known_nor_the_best(tmp_path: Path) -> None:
    records = [data.record("a", 0.02), data.record("less", 0.01, role="control")]
    found, _ = over(tmp_path, records)
    assert list(found) == ["a", "less", BEST]
    assert found["a"].by_application == found[BEST].by_application == Interval(value=1, low=1, high=1)
    assert found[BEST].architectural == found["a"].architectural


BAD = [status for status in Status if not status.measured and status is not Status.UNAVAILABLE]


@pytest.mark.parametrize("status", BAD)
def test_a_failure_counts_as_zero(tmp_path: Path, status: Status) -> None:
    bad = data.record("a", 0.02, device=data.INTEL, status=status)
    other = data.record("b", 0.02, device=data.INTEL)
    found, _ = over(tmp_path, [data.record("a", 0.02), bad, other])
    assert found["a"].architectural == found["a"].by_application == Interval(value=0, low=0, high=0)
    assert not found["a"].left_out


def test_a_platform_where_all_failed_counts(tmp_path: Path) -> None:
    """It has no setting of its own that ran, and takes that of the others."""
    bad = data.record("a", device=data.INTEL, status=Status.CRASHED)
    found, _ = over(tmp_path, [data.record("a", 0.02), bad])
    assert found["a"].architectural == found[BEST].architectural == Interval(value=0, low=0, high=0)
    assert len(found["a"].efficiencies) == 2


def test_unavailable_and_not_run_are_left_out_and_named(tmp_path: Path) -> None:
    missing = data.record("a", device=data.INTEL, status=Status.UNAVAILABLE)
    elsewhere = [
        data.record("b", 0.02, device=data.INTEL),
        data.record("b", 3e-4, device=data.GPU, ceilings=data.GPU_CEILINGS),
    ]
    found, collection = over(tmp_path, [data.record("a", 0.02), missing, *elsewhere])
    a = found["a"]
    assert [each.site.name for each in a.efficiencies] == [data.POCL] and a.architectural and a.architectural.value > 0
    assert {site.name: why for site, why in a.left_out.items()} == {
        data.INTEL: "unavailable for a reason", data.GPU: "not run",
    }  # fmt: skip
    shown = view(collection, collection.sites, "all").markdown
    assert f"Left out: `{data.GPU}`: not run" in shown or f"`{data.INTEL}`: unavailable for a reason" in shown


def test_distinct_chips_are_counted(tmp_path: Path) -> None:
    records = [data.record("a", 0.02, device=d) for d in (data.POCL, data.INTEL)] + [
        data.record("a", 3e-4, device=data.GPU, ceilings=data.GPU_CEILINGS)
    ]
    found, collection = over(tmp_path, records)
    assert len(found["a"].efficiencies) == 3 and found["a"].chips == 2
    assert "3 platforms, 2 distinct chips" in view(collection, collection.sites, "mine").markdown


@pytest.mark.parametrize("provenance", ["modelled", "published"])
def test_modelled_numbers_never_enter(tmp_path: Path, provenance: str) -> None:
    model = data.record("a", 0.02, device=data.INTEL, provenance=provenance)
    found, collection = over(tmp_path, [data.record("a", 0.02), model])
    assert [each.site.name for each in found["a"].efficiencies] == [data.POCL]
    assert [row["platform"] for row in export(collection, collection.sites)] == [data.POCL]


def test_a_share_above_the_bound_counts_as_one(tmp_path: Path) -> None:
    fast = data.record("a", 0.0100, noise=1e-4)
    assert fast.status is Status.OK and fast.problem_bound and fast.problem_bound.share.value > 1
    found, _ = over(tmp_path, [fast])
    assert found["a"].architectural and found["a"].architectural.value == 1.0


SMALL, LARGE = {"points": 10}, {"points": 99}


def at_sizes(*ran: tuple[str, dict[str, int]]) -> list[Record]:
    """Return a record for each device and setting: small ones under the preset `full`."""
    work = data.WORK.model_copy(update={"flops": 6e9})
    return [
        data.record("a", 0.02, device=device, parameters=SMALL, preset="full") if size is SMALL
        else data.record("a", 0.2, device=device, parameters=LARGE, preset="large", work=work)
        for device, size in ran
    ]  # fmt: skip


def chosen(
    folder: Path, records: list[Record], headline: dict[str, dict[str, int]] | None = None
) -> tuple[Rule, dict[str, str], str]:
    """Return by which rule the settings are chosen over all platforms, which they are, and what the page says."""
    problems = {"rows": {"title": "Rows", "headline": headline or {}, "defaults": {"dims": 7}}}
    found, collection = over(folder, records, workloads={"demo": {"problems": problems}})
    choice = found["a"].choice
    names = {site.name: collection.preset(subject) for site, subject in choice.settings.items()}
    return choice.rule, names, view(collection, collection.sites, "all").markdown


def test_the_setting_that_ran_everywhere_is_preferred(tmp_path: Path) -> None:
    both = at_sizes((data.POCL, SMALL), (data.INTEL, SMALL), (data.POCL, LARGE))
    rule, names, page = chosen(tmp_path / "1", both)
    assert rule is Rule.COMMON and set(names.values()) == {"full"}
    assert "Setting: full, the largest that ran everywhere." in page
    rule, names, page = chosen(tmp_path / "2", both[1:])
    assert rule is Rule.OWN and list(names.values()) == ["full", "large"]
    assert "No setting ran everywhere" in page and "○" not in page


def test_a_headline_size_that_all_platforms_share_comes_before_the_largest(tmp_path: Path) -> None:
    everything = at_sizes(*((device, size) for device in (data.POCL, data.INTEL) for size in (SMALL, LARGE)))
    sizes = {kind: {"points": 10, "dims": 7} for kind in ("cpu", "gpu")}
    rule, names, page = chosen(tmp_path / "1", everything, sizes)
    assert rule is Rule.HEADLINE and set(names.values()) == {"full"}
    assert "Setting: full, the headline size of every platform." in page
    rule, names, _ = chosen(tmp_path / "2", everything)
    assert rule is Rule.COMMON and set(names.values()) == {"large"}


def test_headline_sizes_of_two_classes_are_no_common_setting(tmp_path: Path) -> None:
    """Like is compared with like: the largest that both ran; without any, each platform is at its own size."""
    sizes = {"cpu": {"points": 10, "dims": 7}, "gpu": {"points": 99, "dims": 7}}
    each = at_sizes((data.POCL, SMALL), (data.GPU, LARGE))
    rule, names, _ = chosen(tmp_path / "1", [*each, *at_sizes((data.GPU, SMALL))], sizes)
    assert rule is Rule.COMMON and set(names.values()) == {"full"}
    rule, names, page = chosen(tmp_path / "2", each, sizes)
    assert rule is Rule.OWN and names == {data.POCL: "full", data.GPU: "large"} and "○" not in page
    rule, names, page = chosen(tmp_path / "3", at_sizes((data.POCL, LARGE), (data.GPU, SMALL)), sizes)
    assert rule is Rule.OWN and names == {data.POCL: "large", data.GPU: "full"}
    assert f"`{data.GPU}` full ○" in page and "○ not the headline size" in page


def test_a_platform_where_all_failed_changes_no_rule(tmp_path: Path) -> None:
    """It failed at its own size alone, which the page names beside that of the others."""
    failed = data.record("a", device=data.INTEL, parameters=LARGE, preset="large", status=Status.CRASHED)
    sizes = {kind: {"points": 10, "dims": 7} for kind in ("cpu", "gpu")}
    rule, names, page = chosen(tmp_path, [*at_sizes((data.POCL, SMALL)), failed], sizes)
    assert rule is Rule.HEADLINE and names == {data.POCL: "full", data.INTEL: "large"}
    shared = "Where anything succeeded, the setting is the headline size of every platform."
    assert f"Settings: `{data.INTEL}` large, `{data.POCL}` full. {shared}" in page


def test_parameters_of_another_device_are_no_setting_of_the_variant(tmp_path: Path) -> None:
    tuned = data.record("a", 0.011, profile="hd7970", key="0" * 16)
    found, _ = over(tmp_path, [data.record("a", 0.02), tuned])
    assert found["a"].efficiencies[0].record.identity.profile is None


def test_several_problems_in_one_call(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", data.demonstration())
    collection = Collection([run])
    found = portability(collection, collection.sites)
    assert {one.subject.problem for one in found} >= {"rows", "argmin", "copy", "tiles"}
    shown = view(collection, collection.sites, "all")
    assert len(shown.rows) == len(found) and shown.plots == [], "two chips make no cascade"
    rows = {row["application"]: row for row in shown.rows if row["problem"] == "rows" and row["precision"] == "fp32"}
    assert rows["image"]["PP architectural"] == 0  # unsupported


def test_export_has_the_columns_that_other_tools_read(tmp_path: Path) -> None:
    bad = data.record("b", device=data.INTEL, status=Status.TIMEOUT)
    records = [data.record("a", 0.02), data.record("a", 0.02, device=data.INTEL), bad]
    collection = Collection([data.store(tmp_path / "run", records)])
    lines = list(csv.DictReader(io.StringIO(as_csv(export(collection, collection.sites)))))
    assert tuple(lines[0]) == EXPORT == ("problem", "platform", "application", "fom", "arch eff", "app eff", "date")
    by = {(line["application"], line["platform"]): line for line in lines}
    failed = by["b", data.INTEL]
    assert failed["fom"] == "" and float(failed["arch eff"]) == float(failed["app eff"]) == 0
    record = records[0]
    assert record.metric and record.problem_bound
    assert float(by["a", data.POCL]["fom"]) == record.metric.value
    assert float(by["a", data.POCL]["arch eff"]) == record.problem_bound.share.value


def test_a_variant_is_as_good_as_the_luckiest_of_its_equals(tmp_path: Path) -> None:
    """Beside 20 equal settings of another variant its efficiency is not falsely below 1."""
    reached = []
    for number, records in enumerate(one_and_the_best_of_twenty(1)):
        by_name, _ = over(tmp_path / str(number), records)
        reached += [each.application for each in by_name["other"].efficiencies]
    assert len(reached) == 60 and sum(each.high < 1 for each in reached) <= 3
    assert sum(each.value == 1 for each in reached) >= 15


def on(cores: int, **change: Any) -> dict[str, Any]:
    """The environment of a run on a host of so many cores."""
    return data.environment(host={"cpu": "AMD EPYC 9999", "cores": cores, "memory_bytes": 8 << 30}, **change)


def on_hosts(folder: Path, device: str, *runs: tuple[int, list[str], str]) -> Collection:
    """Runs of one device: on hosts of so many cores, of such variants, at such a time."""
    return Collection([
        data.store(
            folder / str(number),
            [
                data.record(name, 0.02 + 0.01 * place, device=device, run=str(number)).model_copy(update={"time": time})
                for place, name in enumerate(names)
            ],
            on(cores),
        )
        for number, (cores, names, time) in enumerate(runs)
    ])  # fmt: skip


def test_a_gpu_on_several_hosts_is_one_platform(tmp_path: Path) -> None:
    """By the run of the ladder: a later one of a part would make the other variants seem to be missing."""
    whole, part = (16, ["a", "b"], "2026-11-25T00:00:00Z"), (8, ["a"], "2026-11-26T00:00:00Z")
    found = {each.application: each for each in portability(on_hosts(tmp_path, data.GPU, whole, part))}
    assert {site.host.cores for each in found.values() for site in each.choice.settings} == {16}
    assert all(len(each.efficiencies) == 1 and not each.left_out for each in found.values())
    assert set(found) == {"a", "b", BEST}


def test_a_device_that_did_not_try_the_problem_is_named(tmp_path: Path) -> None:
    runs = [
        data.store(tmp_path / str(number), [data.record("a", device=device, problem=problem)], data.environment())
        for number, (device, problem) in enumerate(((data.GPU, "rows"), (data.POCL, "rows"), (data.GPU, "argmin")))
    ]
    found = {(each.subject.problem, each.application): each for each in portability(Collection(runs))}
    assert not found["rows", "a"].left_out
    assert {site.devices: why for site, why in found["argmin", "a"].left_out.items()} == {(data.POCL,): "not run"}


def test_a_host_where_all_of_it_failed_counts_before_one_that_did_not_try(tmp_path: Path) -> None:
    failed = data.record("a", device=data.GPU, status=Status.CRASHED)
    runs = [
        data.store(
            tmp_path / str(cores),
            [record],
            on(cores),
        )
        for cores, record in ((8, failed), (16, data.record("a", device=data.GPU, problem="argmin")))
    ]
    runs.append(data.store(tmp_path / "cpu", [data.record("a", device=data.POCL)], data.environment()))
    found = {(each.subject.problem, each.application): each for each in portability(Collection(runs))}
    assert found["rows", "a"].architectural == Interval(value=0, low=0, high=0)


def test_two_interfaces_of_one_chip_are_two_platforms(tmp_path: Path) -> None:
    ids = (data.GPU, "cuda:nvidia:0")
    devices = {id_: data.device(data.GPU) | {"id": id_} for id_ in ids}
    records = [data.record("a", device=id_, ceilings=None) for id_ in ids]
    run = data.store(tmp_path / "run", records, data.environment(devices=devices))
    assert len(portability(Collection([run]))[0].efficiencies) == 2


def test_variants_that_are_gone_and_control_arms_do_not_count_for_a_host(tmp_path: Path) -> None:
    """The run of more names may be the older one, of code that is no more."""
    named = {"workload": "svm_rbf", "problem": "arg_extrema", "device": data.GPU, "preset": None}
    old = [("argminmax_fused", "rung"), ("gone", "rung"), ("gone_too", "rung"), ("argminmax_plain", "control")]
    new = [("argminmax_fused", "rung"), ("triton", "peer")]
    collection = Collection(
        [
            data.store(
                tmp_path / str(cores),
                [
                    data.record(name, 0.02, role=role, run=str(cores), parameters={"n": 5}, **named).model_copy(
                        update={"time": time}
                    )
                    for name, role in names
                ],
                on(cores),
            )
            for cores, names, time in ((16, old, "2026-11-27T00:00:00Z"), (8, new, "2026-11-26T00:00:00Z"))
        ]
    )
    (site,) = portability(collection)[0].choice.settings
    assert site.host.cores == 8, "two of today's, one of them a peer, are more than one"


def test_of_equal_runs_on_several_hosts_the_latest_counts(tmp_path: Path) -> None:
    early, late = (16, ["a", "b"], "2026-11-25T00:00:00Z"), (8, ["a", "b"], "2026-11-26T00:00:00Z")
    for number, runs in enumerate(((early, late), (late, early))):
        (site,) = portability(on_hosts(tmp_path / str(number), data.GPU, *runs))[0].choice.settings
        assert site.host.cores == 8


def test_the_host_with_the_headline_size_counts_though_fewer_variants_ran(tmp_path: Path) -> None:
    told = data.environment()["workloads"]
    told["demo"]["problems"]["rows"] |= {"headline": {"gpu": {"points": 4}}, "defaults": {}}
    collection = Collection([
        data.store(
            tmp_path / str(cores),
            [data.record(name, device=data.GPU, parameters={"points": points}, run=str(cores)) for name in names],
            on(cores, workloads=told),
        )
        for cores, points, names in ((16, 9, ["a", "b"]), (8, 4, ["a"]))
    ])  # fmt: skip
    (site,) = portability(collection)[0].choice.settings
    assert site.host.cores == 8


def test_a_cpu_with_other_cores_is_another_platform(tmp_path: Path) -> None:
    found = portability(
        on_hosts(tmp_path, data.POCL, (16, ["a"], "2026-11-25T00:00:00Z"), (2, ["a"], "2026-11-26T00:00:00Z"))
    )
    assert sorted(site.host.cores for site in found[0].choice.settings) == [2, 16]


def test_platforms_that_are_named_all_count(tmp_path: Path) -> None:
    collection = on_hosts(tmp_path, data.GPU, (16, ["a"], "2026-11-25T00:00:00Z"), (8, ["a"], "2026-11-26T00:00:00Z"))
    assert len(portability(collection, collection.places)[0].efficiencies) == 2
