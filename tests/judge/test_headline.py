"""At which setting a problem stands on a device: its declared size for the class, or else the largest that ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.judge.headline import standing
from perfport.model.record import Record, Status
from perfport.run.sources import shipped
from perfport.store.collection import Collection

#: The problem's declaration, as a run stores it: every parameter that has a default is in both.
SIZES = {
    "headline": {"cpu": {"points": 2, "dims": 7}, "gpu": {"points": 4, "dims": 7}},
    "defaults": {"dims": 7},
}


def sized(points: int, device: str = data.POCL, **change: Any) -> Record:
    """Return a record whose useful work grows with its parameter."""
    work = data.WORK.model_copy(update={"flops": float(points), "read_bytes": 1e6})
    fixed: dict[str, Any] = {"parameters": {"points": points}, "preset": None, "work": work, "ceilings": None}
    return data.record("a", **{"key": f"{points}{device}", **fixed, "device": device, **change})


def stands(folder: Path, records: list[Record], sizes: dict[str, Any] = SIZES) -> dict[str, tuple[int, bool | None]]:
    """Return where the problem stands by device, and whether that is the headline size."""
    workloads = {"demo": {"problems": {"rows": {"title": "Rows", **sizes}}}}
    collection = Collection([data.store(folder / "run", records, data.environment(workloads=workloads))])
    ((_, subjects),) = collection.families.items()
    found = standing(collection, subjects, collection.sites)
    return {site.name: (each.subject.values["points"], each.headline) for site, each in found.items()}


def test_each_class_of_device_stands_at_its_own_size(tmp_path: Path) -> None:
    """Everything ran everywhere, and no GPU is shown at the CPU's size, nor at the largest."""
    records = [sized(points, device) for points in range(1, 6) for device in (data.POCL, data.GPU)]
    assert stands(tmp_path, records) == {data.POCL: (2, True), data.GPU: (4, True)}


def test_a_size_without_a_result_gives_way_to_the_largest_that_ran(tmp_path: Path) -> None:
    """A failure, a peer and a control arm are no results of it."""
    records = [
        sized(1, data.GPU), sized(3, data.GPU), sized(5, data.GPU, status=Status.CRASHED),
        sized(4, data.GPU, status=Status.CRASHED),
        data.record("lib", role="peer", parameters={"points": 4}, device=data.GPU, ceilings=None),
        data.record("less", role="control", parameters={"points": 4}, device=data.GPU, ceilings=None),
    ]  # fmt: skip
    assert stands(tmp_path, records) == {data.GPU: (3, False)}


@pytest.mark.parametrize("seed", [9, 0])
def test_of_several_inputs_those_of_the_latest_result_stand(tmp_path: Path, seed: int) -> None:
    records = [sized(2), sized(2, key="f" * 16).model_copy(update={"seed": 9})]
    records[seed == 9].time = "2099-01-01T00:00:00.000+00:00"
    collection = Collection([data.store(tmp_path / "run", records)])
    (chosen,) = standing(collection, sorted(collection.subjects), collection.sites).values()
    assert chosen.subject.inputs == f"seed {seed}"


@pytest.mark.parametrize("later", ["written out", "left to the default"])
def test_a_default_that_is_written_out_makes_no_other_size(tmp_path: Path, later: str) -> None:
    """An old run that says ``dims: 7`` is no reason to show its times in place of those of a new one."""
    records = [sized(4, data.GPU), sized(4, data.GPU, parameters={"points": 4, "dims": 7}, key="e" * 16)]
    records[later == "written out"].time = "2099-01-01T00:00:00.000+00:00"
    workloads = {"demo": {"problems": {"rows": {"title": "Rows", **SIZES}}}}
    collection = Collection([data.store(tmp_path / "run", records, data.environment(workloads=workloads))])
    ((_, subjects),) = collection.families.items()
    (chosen,) = standing(collection, subjects, collection.sites).values()
    assert chosen.headline and ("dims" in chosen.subject.values) == (later == "written out")


def test_where_nothing_succeeded_the_failures_at_the_size_stand(tmp_path: Path) -> None:
    failed = [sized(points, status=Status.CRASHED) for points in (1, 2, 3)]
    assert stands(tmp_path / "1", failed) == {data.POCL: (2, True)}
    assert stands(tmp_path / "2", failed[2:]) == {data.POCL: (3, False)}


def test_without_a_declaration_the_largest_that_ran_stands_unmarked(tmp_path: Path) -> None:
    records = [sized(1), sized(3), sized(2, data.GPU)]
    assert stands(tmp_path, records, {}) == {data.POCL: (3, None), data.GPU: (2, None)}


def test_parameters_that_were_changed_are_not_the_presets(tmp_path: Path) -> None:
    """A study of other dimensions at that preset has its name; a default that was given is the preset all the same."""
    other = sized(2, parameters={"points": 2, "dims": 8}, preset="full", key="other")
    assert stands(tmp_path / "1", [sized(1), other])[data.POCL][1] is False
    stated = sized(2, parameters={"points": 2, "dims": 7}, preset="full", key="stated")
    assert stands(tmp_path / "2", [sized(3), stated]) == {data.POCL: (2, True)}


def test_an_accelerator_is_as_a_gpu(tmp_path: Path) -> None:
    environment = data.environment(workloads={"demo": {"problems": {"rows": SIZES}}})
    environment["devices"][data.GPU]["kind"] = "accelerator"
    collection = Collection([data.store(tmp_path, [sized(4, data.GPU), sized(5, data.GPU)], environment)])
    ((site, found),) = standing(collection, [*collection.subjects], collection.sites).items()
    assert (site.kind, found.subject.values, found.headline) == ("accelerator", {"points": 4}, True)


def test_the_latest_run_tells_of_a_workload_that_is_not_here(tmp_path: Path) -> None:
    def run(day: int, points: int) -> Any:
        declared = {"headline": {"cpu": {"points": points}, "gpu": {"points": 9}}}
        environment = data.environment(
            started=f"2026-11-2{day}T12:00:00+00:00", workloads={"demo": {"problems": {"rows": declared}}}
        )
        return data.store(tmp_path / f"{9 - day}", [sized(day)], environment)

    collection = Collection([run(2, 2), run(1, 1)])
    (found,) = standing(collection, [*collection.subjects], collection.sites).values()
    assert (found.subject.values["points"], found.headline) == (2, True)


@pytest.mark.parametrize("stored", [{}, {"headline": {"gpu": {"points": 1000, "dims": 1000}}}])
def test_a_workload_that_ships_is_asked_as_it_is_now(tmp_path: Path, stored: dict[str, Any]) -> None:
    svm = shipped("svm_rbf")
    assert svm
    presets = svm.problem("rbf_rows").presets
    records = [
        data.record("a", workload="svm_rbf", problem="rbf_rows", preset=name, parameters=presets[name], device=device)
        for name in ("quick", "full", "large")
        for device in (data.POCL, data.GPU)
    ]
    environment = data.environment(workloads={"svm_rbf": {"problems": {"rbf_rows": stored}}})
    collection = Collection([data.store(tmp_path, records, environment)])
    found = standing(collection, [*collection.subjects], collection.sites)
    assert {site.name: each.subject.values for site, each in found.items()} == {
        data.POCL: presets["full"], data.GPU: presets["large"],
    }  # fmt: skip
