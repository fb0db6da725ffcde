"""Merging of jobs' run folders: each case once, lost ones named, machines with equal device ids apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.record import Record, Status
from perfport.run.merge import Part, merge, write
from perfport.run.plan import Case
from perfport.store.environment import ENVIRONMENT
from perfport.store.results import EXPERIMENT, Run

LATER = "2026-11-22T12:00:00+00:00"


def part(top: Path, name: str, stored: list[Record] | None, planned: list[Record] | None = None, **other: Any) -> Part:
    """A job's part with a run folder, or without one for None; planned is what was stored, unless given."""
    folder = top / "jobs" / name
    if stored is not None:
        data.store(folder, stored, data.environment((data.POCL,), run=name, broken_devices={}, **other))
    cases = [Case(key=record.key, identity=record.identity) for record in planned or stored or []]
    return Part("cpu", folder, cases, f"Slurm job 7 ended CANCELLED on {name}")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The folder of a run."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / EXPERIMENT).write_text("name: demo\n")
    return tmp_path / "out"


def test_of_several_records_the_measured_and_latest_counts(top: Path) -> None:
    old, new = data.record("a", 0.02), data.record("a", 0.03, time=LATER)
    measured, failed = data.record("b", 0.02), data.record("b", status=Status.CRASHED, time=LATER)
    merged = merge([part(top, "n1", [old, measured]), part(top, "n2", [new, failed])], seed=7)
    assert [[(record.identity.variant, record.time) for record in records] for records in merged.records] == [
        [("b", measured.time)],
        [("a", LATER)],
    ]
    assert merged.duplicates == [old.key, measured.key] and merged.lost == [[], []]


def test_a_case_that_nobody_stored_is_named(top: Path) -> None:
    a, b, c = (data.record(name, 0.02) for name in "abc")
    parts = [part(top, "n1", [a], [a, b]), part(top, "n2", None, [b, c])]
    merged = merge(parts, seed=7)
    assert [[record.identity.variant for record in lost] for lost in merged.lost] == [["b"], ["c"]], "b once"
    lost = merged.lost[1][0]
    assert lost.status is Status.CRASHED and lost.key == c.key
    assert lost.failure and lost.failure.reason == "lost: Slurm job 7 ended CANCELLED on n2"
    (folder,) = write(top, parts, merged)
    assert folder.name == "out-cpu"
    assert sorted(record.identity.variant for record in Run(folder).records) == ["a", "b", "c"]


def test_one_stored_elsewhere_is_not_lost(top: Path) -> None:
    a, b = data.record("a", 0.02), data.record("b", 0.02)
    merged = merge([part(top, "n1", [a], [a, b]), part(top, "n2", [b])], seed=7)
    assert merged.lost == [[], []] and merged.duplicates == []


def test_the_environments_are_joined(top: Path) -> None:
    parts = [part(top, "n1", [data.record("a")], started=LATER), part(top, "n2", [data.record("b")])]
    (folder,) = write(top, parts, merge(parts, seed=7))
    environment = Run(folder).environment
    assert environment["run"] == "out-cpu" and environment["started"] < LATER
    assert len(environment["probes"]) == 4 and set(environment["devices"]) == {data.POCL}


def test_other_chips_under_the_same_ids_stay_apart(top: Path) -> None:
    devices = {data.POCL: data.device(data.POCL, "another chip")}
    parts = [part(top, "n1", [data.record("a")]), part(top, "n2", [data.record("b", key="0b")], devices=devices)]
    folders = write(top, parts, merge(parts, seed=7))
    assert [folder.name for folder in folders] == ["out-cpu", "out-cpu-2"]
    assert [[record.identity.variant for record in Run(folder).records] for folder in folders] == [["a"], ["b"]]


def test_merging_again_gives_the_same(top: Path) -> None:
    parts = [part(top, "n1", [data.record("a")]), part(top, "n2", [data.record("b")])]
    texts = []
    for _ in range(2):
        (folder,) = write(top, parts, merge(parts, seed=7))
        texts.append((folder / "records.jsonl").read_text())
    assert texts[0] == texts[1]


def test_parts_of_two_hosts_stay_apart(top: Path) -> None:
    """Equal devices of nodes of other sizes are no one place."""
    small, large = ({"cpu": "c", "cores": cores, "memory_bytes": 1 << 34} for cores in (8, 64))
    parts = [
        part(top, "n1", [data.record("a")], host=small),
        part(top, "n2", [data.record("b")], host=large),
        part(top, "n3", [data.record("c")], host=small),
    ]
    folders = write(top, parts, merge(parts, seed=7))
    held = [[record.identity.variant for record in Run(folder).records] for folder in folders]
    assert held == [["a", "c"], ["b"]]


def test_merged_runs_say_what_their_parts_say(top: Path) -> None:
    def said(name: str) -> dict[str, Any]:
        code = {"measuring": "m", "variants": {f"demo/rows/{name}": f"digest of {name}"}}
        return {"code": code, "defaults": {data.POCL: {f"demo/rows/{name}": {"group": 1}}}}

    stored = {name: data.record(name) for name in "ab"}
    parts = [part(top, f"n{name}", [record], **said(name)) for name, record in stored.items()]
    parts.append(part(top, "n3", None, [data.record("c")]))
    (folder,) = write(top, parts, merge(parts, seed=7))
    run = Run(folder)
    assert run.planned == len(run.records) == 3 and not run.incomplete
    assert run.environment["code"]["variants"] == {f"demo/rows/{name}": f"digest of {name}" for name in "ab"}
    assert set(run.environment["defaults"][data.POCL]) == {"demo/rows/a", "demo/rows/b"}


def test_a_part_that_does_not_say_where_it_ran_loses_no_record(top: Path) -> None:
    a, b, c = (data.record(name, 0.02) for name in "abc")
    parts = [part(top, "n1", [a]), part(top, "n2", [b])]
    for lost in (parts[0], parts[1]):
        (lost.folder / ENVIRONMENT).write_text("{")
    alone = [Part(each.pool, each.folder, each.planned, each.fate) for each in parts]
    (folder,) = write(top, alone, merge(alone, seed=7))
    assert {record.identity.variant for record in Run(folder).records} == {"a", "b"}
    assert Run(folder).environment == {"schema_version": 2, "run": "out-cpu", "planned": 2}
    beside = [*alone, part(top, "n3", [c])]
    (folder,) = write(top, beside, merge(beside, seed=7))
    assert {record.identity.variant for record in Run(folder).records} == {"a", "b", "c"}
    assert set(Run(folder).environment["devices"]) == {data.POCL}


@pytest.mark.parametrize("field", ["devices", "probes", "started", "ceilings", "host", "profiles", "workloads"])
def test_environments_that_lack_a_field_are_joined(top: Path, field: str) -> None:
    content = data.environment((data.POCL,), run="n2")
    del content[field]
    parts = [part(top, "n1", [data.record("a")]), part(top, "n2", [data.record("b", key="0b")])]
    data.store(parts[1].folder, [data.record("b", key="0b")], content)
    parts[1] = Part("cpu", parts[1].folder, parts[1].planned, "done")
    for order in (parts, parts[::-1]):
        folders = write(top, order, merge(order, seed=7))
        assert len(folders) == (2 if field == "host" else 1)
        assert sum(len(Run(folder).records) for folder in folders) == 2
