"""Collections: the latest record of each thing on each site counts, and sites of several machines stay apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.errors import UsageError
from perfport.model.record import Record, Status
from perfport.report.parts.ladder import collected
from perfport.store.case import Host
from perfport.store.collection import Collection, Filter, find_site
from perfport.store.ratios import time_of
from perfport.store.results import Run

LATER = "2026-11-22T12:00:00+00:00"


def test_a_failure_never_replaces_a_result(tmp_path: Path) -> None:
    """What a device lacks on another day is not of interest; what the code does wrong stays beside the result."""
    bad = [status for status in Status if not status.measured]
    first = data.store(tmp_path / "1", [*(data.record(status.value, 0.02) for status in bad), data.record("b", 0.02)])
    second = data.store(tmp_path / "2", [data.record(status.value, status=status, time=LATER) for status in bad])
    for runs in ([first, second], [second, first]):
        cases = {case.record.identity.variant: case for case in Collection(runs).cases}
        assert {case.record.status for case in cases.values()} == {Status.OK}
        known = {name: case.later.status if case.later else None for name, case in cases.items()}
        lacking = (Status.UNSUPPORTED, Status.UNAVAILABLE)
        assert known == {"b": None, **{s.value: None if s in lacking else s for s in bad}}
        assert all(case.newest.status is (known[name] or Status.OK) for name, case in cases.items())


def test_no_ladder_mixes_inputs(tmp_path: Path) -> None:
    """Equal settings on other inputs are other quantities: neither replaces the other, none is ranked above it."""
    old = data.store(
        tmp_path / "1", [data.record(v, t).model_copy(update={"seed": 9}) for v, t in (("a", 2), ("b", 1))]
    )
    new = data.store(tmp_path / "2", [data.record("a", 0.5, time=LATER)])
    found = Collection([old, new])
    assert {(s.inputs, len(cases)) for s, cases in found.subjects.items()} == {("seed 9", 2), ("seed 0", 1)}
    assert {found.preset(subject) for subject in found.subjects} == {"quick, seed 9", "quick, seed 0"}
    assert sorted(len(ladder.rows) for ladder in collected(found)) == [1, 2]
    alone = Collection([old])
    assert {subject.inputs for subject in alone.subjects} == {""}, "said only where there is something to tell apart"


def test_current_are_the_inputs_of_the_latest_result(tmp_path: Path) -> None:
    """A contended time, or a failure, on other inputs replaces no result; what other places solved stays."""
    old = data.store(tmp_path / "1", [data.record("a"), data.record("b"), data.record("a", device=data.GPU)])
    for status, current in ((Status.OK, 9), (Status.CONTENDED, 0), (Status.CRASHED, 0)):
        later = data.record("a", time=LATER, status=status).model_copy(update={"seed": 9})
        found = Collection([old, data.store(tmp_path / status.value, [later])])
        assert len(found.cases) == 4
        assert {c.record.seed for c in found.current if c.site.name == data.POCL} == {current}
        assert [c.record.seed for c in found.current if c.site.name == data.GPU] == [0]


def test_an_earlier_failure_is_forgotten(tmp_path: Path) -> None:
    first = data.store(tmp_path / "1", [data.record("a", status=Status.WRONG)])
    second = data.store(tmp_path / "2", [data.record("a", 0.02, time=LATER)])
    (case,) = Collection([first, second]).cases
    assert case.record.status is Status.OK and case.later is None


def test_of_failures_the_latest_counts(tmp_path: Path) -> None:
    first = data.store(tmp_path / "1", [data.record("a", status=Status.WRONG)])
    second = data.store(tmp_path / "2", [data.record("a", status=Status.UNSUPPORTED, time=LATER)])
    for runs in ([first, second], [second, first]):
        (case,) = Collection(runs).cases
        assert case.record.status is Status.UNSUPPORTED and case.later is None


def test_a_contended_result_does_not_replace_an_undisturbed_one(tmp_path: Path) -> None:
    first = data.store(tmp_path / "1", [data.record("a", 0.02)])
    second = data.store(tmp_path / "2", [data.record("a", 0.05, status=Status.CONTENDED, time=LATER)])
    third = data.store(tmp_path / "3", [data.record("a", 0.03, time="2026-11-22T13:00:00+00:00")])
    assert [case.record.status for case in Collection([first, second]).cases] == [Status.OK]
    assert [round(time_of(case.record), 2) for case in Collection([third, second, first]).cases] == [0.03]


def on_host(cores: int, memory: int = 8 << 30, cpu: str = "AMD EPYC 9999") -> dict[str, object]:
    """Return the environment of a run on such a machine."""
    return data.environment(host={"cpu": cpu, "cores": cores, "memory_bytes": memory})


def test_no_ladder_mixes_hosts_or_numbers_of_devices(tmp_path: Path) -> None:
    """Four devices were measured on one host; the host of two cannot, later, and replaces nothing."""

    def build(devices: int, seconds: float = 0.05, **change: Any) -> Record:
        return data.record("spread", seconds, tunables={"devices": devices}, ceilings=None, **change)

    four = [data.record("alone", 0.32, ceilings=None), build(1, 0.47), build(2, 0.35), build(4, 0.27)]
    two = [build(1, 0.5, time=LATER), build(2, 0.39, time=LATER)]
    two.append(build(4, status=Status.UNSUPPORTED, time=LATER))
    runs = [data.store(tmp_path / "4", four, on_host(64)), data.store(tmp_path / "2", two, on_host(32))]
    found = Collection(runs)
    names = [f"{data.POCL}{more}" for more in ("", " + 1 more", " + 3 more")]
    assert sorted(map(found.label, found.sites)) == sorted(
        f"{name} ({cores}-core host)" for cores in (32, 64) for name in names
    )
    assert [found.label(place) for place in found.places] == [f"{data.POCL} ({c}-core host)" for c in (32, 64)]
    best = {ladder.site: ladder.best and round(time_of(ladder.best.record), 2) for ladder in collected(found)}
    assert best[f"{data.POCL} + 3 more (64-core host)"] == 0.27
    assert best[f"{data.POCL} + 3 more (32-core host)"] is None
    assert best[f"{data.POCL} (64-core host)"] == 0.32 and best[f"{data.POCL} + 1 more (32-core host)"] == 0.39
    for ladder in collected(found):
        assert len({row.record.identity.device_count for row in ladder.rows}) == 1
        assert len({Host.of(row.run.environment) for row in ladder.rows}) == 1


def test_names_of_places_fit_a_list_with_commas(tmp_path: Path) -> None:
    """As in ``--platforms NAME=DEVICE,DEVICE``."""
    one, two = on_host(8, 16 << 30, "a"), on_host(8, 32 << 30, "b")
    found = Collection([data.store(tmp_path / str(n), [data.record("a")], on) for n, on in enumerate((one, two))])
    labels = [found.label(site) for site in found.sites]
    assert labels == [f"{data.POCL} (8-core host; 16 GiB)", f"{data.POCL} (8-core host; 32 GiB)"]
    assert [find_site(found, label) for label in ",".join(labels).split(",")] == found.sites


def test_a_filter_renames_nothing(tmp_path: Path) -> None:
    runs = [data.store(tmp_path / str(n), [data.record("a" * n)], on_host(8 * n)) for n in (1, 2)]
    chosen = Collection(runs, Filter(variant="aa"))
    assert [chosen.label(site) for site in chosen.sites] == [f"{data.POCL} (16-core host)"]
    assert find_site(chosen, data.POCL) == find_site(chosen, f"{data.POCL} (16-core host)") == chosen.sites[0]


def test_equal_devices_of_one_host_are_one(tmp_path: Path) -> None:
    def run(name: str, number: int, cores: int) -> Run:
        id_ = f"cuda:nvidia:{number}"
        content = {**on_host(cores), "devices": {id_: data.device(id_, "H200")}}
        return data.store(tmp_path / name, [data.record("a", device=id_, ceilings=None)], content)

    same = Collection([run("1", 0, 32), run("2", 1, 32)])
    assert [same.label(site) for site in same.sites] == ["cuda:nvidia:0"] and len(same.cases) == 1
    other = Collection([run("3", 0, 32), run("4", 1, 16)])
    assert [other.label(site) for site in other.sites] == ["cuda:nvidia:0", "cuda:nvidia:1"]


def test_equal_device_ids_on_two_machines_are_two_sites(tmp_path: Path) -> None:
    other = data.environment(devices={data.POCL: data.device(data.POCL, "another chip")})
    runs = [data.store(tmp_path / "1", [data.record("a")]), data.store(tmp_path / "2", [data.record("a")], other)]
    found = Collection(runs)
    assert sorted(map(found.label, found.sites)) == [f"{data.POCL} (AMD EPYC 9999)", f"{data.POCL} (another chip)"]
    with pytest.raises(UsageError, match="on several machines"):
        find_site(found, data.POCL)
    assert find_site(found, f"{data.POCL} (another chip)").chip == "another chip"
    with pytest.raises(UsageError, match="no results on 'opencl:pocl:1'"):
        find_site(found, "opencl:pocl:1")


def test_the_number_of_a_device_is_counted_among_its_like_of_a_run(tmp_path: Path) -> None:
    def run(name: str, *numbers: int) -> Run:
        ids = [f"cuda:nvidia:{number}" for number in numbers]
        known = {id_: data.device(id_, "T4" if id_.endswith(":7") else "H200") for id_ in ids}
        records = [data.record("a", device=id_, ceilings=None) for id_ in ids]
        return data.store(tmp_path / name, records, data.environment(devices=known))

    def sites(*runs: Run) -> list[str]:
        return [f"{site.name} {site.chip}" for site in Collection(runs).sites]

    one, both, two, further = run("1", 1), run("2", 0, 10), run("3", 2), run("4", 7)
    assert sites(one) == ["cuda:nvidia:1 H200"] and sites(one, two) == ["cuda:nvidia:1 H200"]
    assert sites(two, both, one) == ["cuda:nvidia:0 H200", "cuda:nvidia:10 H200"]
    assert sites(one, both, further) == ["cuda:nvidia:0 H200", "cuda:nvidia:10 H200", "cuda:nvidia:7 T4"]


def test_filters_take_parts_of_names(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", data.demonstration())

    def left(**chosen: str) -> int:
        return len(Collection([run], Filter(**chosen)).cases)

    whole = left()
    assert whole == len(run.records)
    assert 0 < left(device="H200") < whole and left(device="H200") == left(device=data.GPU)
    assert left(variant="row_major", problem="rows") == 4
    assert left(precision="fp16") == 2 and left(workload="nothing") == 0
