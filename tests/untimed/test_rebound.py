"""Bounds of stored records, computed again: those of the version before, of problems that changed, of none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfport.model.errors import UsageError
from perfport.model.record import Record, Status
from perfport.model.work import Work
from perfport.store.reading import read_records
from perfport.store.results import RECORDS, Run
from perfport.untimed.rebound import BOUNDS, rebound
from perfport.workload import discover

RUN = Path(__file__).parents[2] / "results" / "committed" / "cpu-gdn"
SMALL = "gdn_reduction"  # its work is computed at once


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of some committed records, at today's version."""
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    lines = [line for line in (RUN / RECORDS).read_text().splitlines() if f'"problem":"{SMALL}"' in line]
    (folder / RECORDS).write_text("".join(f"{line}\n" for line in lines))
    return folder


def edited(run: Path, **changes: Any) -> None:
    """Change keys of every record; a value of ``None`` takes the key away."""
    contents = [json.loads(line) for line in (run / RECORDS).read_text().splitlines()]
    for content in contents:
        content.update(changes)
        for name in [name for name, value in changes.items() if value is None]:
            content.pop(name)
    (run / RECORDS).write_text("".join(f"{json.dumps(content)}\n" for content in contents))


def old_bound(seconds: float) -> dict[str, Any]:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    return {"seconds": seconds, "binding": "dram", "terms": {"dram": seconds}, "share": share}


def test_records_of_the_version_before_become_ones_of_today(run: Path) -> None:
    edited(run, schema_version=2, problem_bound=old_bound(1.0), variant_bound=old_bound(1.0))
    with pytest.raises(UsageError, match=r"schema version 2; this version of perfport reads 3 \(perfport rebound"):
        Run(run)
    assert not rebound(run, discover(only="gdn"))
    held = Run(run).records
    measured = [record for record in held if record.timing]
    assert measured
    for record in measured:
        assert record.timing and record.problem_bound and record.work
        assert record.problem_bound.share.value == pytest.approx(
            record.problem_bound.seconds / record.timing.ranked.value
        )
        assert record.problem_bound.seconds < 0.1 and record.work.float_units == {"fp32_fma": 1.0}


def test_nothing_else_is_changed_and_doing_it_twice_changes_nothing(run: Path) -> None:
    edited(run, schema_version=3, **dict.fromkeys(BOUNDS))
    without = [*BOUNDS, "work"]
    before = [record.model_dump(exclude=set(without)) for record in read_records(run / RECORDS)]
    rebound(run, discover(only="gdn"))
    once = (run / RECORDS).read_bytes()
    assert [record.model_dump(exclude=set(without)) for record in read_records(run / RECORDS)] == before
    rebound(run, discover(only="gdn"))
    assert (run / RECORDS).read_bytes() == once


@pytest.mark.parametrize(("change", "reason"), [
    ({"workload": "gone"}, "gone: there is no such workload here"), ({"variant": "gone"}, "no variant 'gone'"),
    ({"problem": "gone"}, "no problem 'gone'"), ({"parameters": {"channels": 0}}, "gdn/gdn_reduction: channels: "),
])  # fmt: skip
def test_what_cannot_be_made_here_has_no_bound_and_a_reason(run: Path, change: dict[str, Any], reason: str) -> None:
    first = json.loads((run / RECORDS).read_text().splitlines()[0])
    edited(run, schema_version=3, identity={**first["identity"], **change}, **dict.fromkeys(BOUNDS))
    reasons = rebound(run, discover(only="gdn"))
    held: list[Record] = list(read_records(run / RECORDS))
    assert len(reasons) == 1 and reason in next(iter(reasons)) and reasons.total() == len(held)
    assert all(record.problem_bound is None and record.timing for record in held if record.status is Status.OK)


def test_a_time_below_todays_bound_becomes_impossible(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited(run, schema_version=3, **dict.fromkeys(BOUNDS))
    workloads = discover(only="gdn")
    problem = workloads["gdn"].problem(SMALL)
    monkeypatch.setattr(problem, "work", lambda self, *which: Work(read_bytes=1e13))
    rebound(run, workloads)
    statuses = {record.status for record in read_records(run / RECORDS) if record.timing}
    assert statuses == {Status.IMPOSSIBLE}


def test_a_line_that_is_no_record_leaves_the_file_as_it_is(run: Path) -> None:
    edited(run, schema_version=3, **dict.fromkeys(BOUNDS))
    with (run / RECORDS).open("a") as file:
        file.write('{"schema_version": 3}\n')
    before = (run / RECORDS).read_bytes()
    with pytest.raises(UsageError, match="11: key: field required"):
        rebound(run, discover(only="gdn"))
    assert (run / RECORDS).read_bytes() == before
