"""Collections: the latest record of each thing on each site counts, and sites of several machines stay apart."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import report_data as data

from perfport.collection import Collection, Filter, fastest, find_site
from perfport.comparison import compare
from perfport.errors import UsageError
from perfport.record import Status
from perfport.results import Run

LATER = "2026-11-22T12:00:00+00:00"


def test_the_latest_record_counts_also_where_it_failed(tmp_path: Path) -> None:
    first = data.store(tmp_path / "1", [data.record("a", 0.02), data.record("b", 0.02)])
    again = data.record("a", status=Status.CRASHED, time=LATER)
    second = data.store(tmp_path / "2", [again])
    for runs in ([first, second], [second, first]):
        found = {case.record.identity.variant: case.record.status for case in Collection(runs).cases}
        assert found == {"a": Status.CRASHED, "b": Status.OK}


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


def test_the_fastest_is_ranked(tmp_path: Path) -> None:
    records = [data.record("a", 0.02), data.record("b", 0.01, status=Status.CONTENDED), data.record("c", 0.03)]
    best = fastest(Collection([data.store(tmp_path / "run", records)]).cases)
    assert best and best.record.identity.variant == "a"
    assert fastest([]) is None


def test_samples_of_two_runs_are_never_paired() -> None:
    """A common trend in both cancels only where they were taken side by side."""
    base, other = data.record("a", 0.02, noise=0.0), data.record("b", 0.02, noise=0.0)
    assert base.timing and other.timing
    trend = [0.02 + 0.001 * i for i in range(15)]
    for record in (base, other):
        assert record.timing
        record.timing.span = trend
    paired, apart = compare(base, other), compare(base, other.model_copy(update={"run": "another"}))
    assert paired and apart
    assert paired.ratio.high == 1.0 and apart.ratio.high > 1.3
    elsewhere = other.model_copy(deep=True)
    elsewhere.identity.parameters = {"points": 1}
    further = compare(base, elsewhere)
    assert further and further.ratio == apart.ratio
