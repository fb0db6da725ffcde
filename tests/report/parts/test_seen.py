"""What stored counts tell the model: traffic of hardware counters, work-groups and patterns of the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.model.record import Status
from perfport.report.parts.counted import Counts, Recount
from perfport.report.parts.seen import group_of, pattern_of, seen_by
from perfport.untimed.count import Count
from perfport.untimed.count.coalescing import AccessPattern

RAW = {
    "rows": {"global_loads": 30.0, "global_load_bytes": 240.0, "global_store_bytes": 16.0, "image_reads": 10.0,
             "image_read_bytes": 160.0, "work_items": 512.0, "work_groups": 4.0},
    "clear": {"work_items": 256.0, "work_groups": 1.0},
}  # fmt: skip


def trace(**change: object) -> Count:
    """Return a traced count: of 32-wide threads 10 accesses of 3 lines and 10 of 1, and the places they are at."""
    wide = {"shape": "32 x 128 B", "kernel": "rows", "accesses": 10, "ideal": 1.0}
    patterns = [
        AccessPattern(**wide, argument="a", lines=3.0), AccessPattern(**wide, argument="b", lines=1.0),
        AccessPattern(**wide, argument="a", lines=3.0, place="rows.cl:1:1", store=False),
    ]  # fmt: skip
    identity = data.record("v", tunables={"group": 64}).identity.model_copy(update={"preset": None})
    told = {"identity": identity, "time": "", "seed": 1, "tool": "oclgrind", "tool_version": "1", "status": Status.OK}
    return Count.model_validate({**told, "raw": RAW, "coalescing": patterns, **change})


def test_pattern_by_hand() -> None:
    found = pattern_of(trace())
    assert found.bytes_per_load == (240 + 160) / 40
    assert found.lines == {(32, 128): (2.0, pytest.approx(40 * 128 / 256))}  # places are parts of their buffer
    assert pattern_of(trace(raw={}, coalescing=[])).bytes_per_load is None


def test_the_largest_group_of_any_kernel() -> None:
    assert group_of(trace()) == 256 and group_of(trace(raw={})) is None


def test_a_trace_tells_of_a_variant_at_any_size_and_of_groups_at_equal_tunables(tmp_path: Path) -> None:
    folder = data.store_counts(tmp_path / "counts", [trace()])
    seen = seen_by(Recount([Counts(folder)]))
    run = data.store(tmp_path / "run", [data.record("v", tunables={"group": 64})])
    (same,) = run.records
    other = data.record("v", tunables={"group": 128}, parameters={"points": 7})
    assert seen(run, same).group == 256 and seen(run, other).group is None
    assert seen(run, same).pattern == seen(run, other).pattern != seen(run, data.record("w")).pattern
    assert seen(run, data.record("w")).record.identity.variant == "w"
