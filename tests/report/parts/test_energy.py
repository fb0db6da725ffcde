"""The table of energy: joules with their interval, work for each joule, and reasons in place of numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data
from report_page import report, rows_of

from perfport.model.record import Energy, Interval, MetricValue, Record, Status
from perfport.model.work import Work

HEADER, OPERATIONS, METRIC = "time in the loops", "useful operations per J", "metric per J"


def energy(joules: float = 0.02, domain: str = "whole GPU (NVML)") -> Energy:
    interval = Interval(value=joules, low=0.98 * joules, high=1.02 * joules)
    return Energy(
        joules=interval, domain=domain, seconds=5.0, executions=50, loops=5, update_s=0.1, idle_watts=70.0
    )  # fmt: skip


def metric(record: Record, unit: str, direction: str = "higher", seconds: float = 0.05) -> MetricValue:
    """A metric of 12 for each execution."""
    value = 12.0 / seconds
    return MetricValue.model_validate(
        {"tag": "demo", "unit": unit, "direction": direction, "value": value, "low": value, "high": value}
    )


def test_joules_power_and_work_for_each_joule(tmp_path: Path) -> None:
    slow, fast = data.record("slow", 0.1, rung=1, energy=energy(2e-3)), data.record("fast", 0.05, rung=2)
    fast.energy = energy(1e-3)
    markdown = report(tmp_path, [slow, fast])
    (row,) = rows_of(markdown, HEADER, "slow")
    assert row["mJ"] == "2.00 (1.96–2.04)" and row["at rest, W"] == "70.0"
    assert row["power, W"] == f"{2e-3 * 50 / 5:.4f}"
    assert row.get(OPERATIONS, "–") == "300 GFLOP/J", "6e8 FLOP by 2 mJ"
    assert (row["time in the loops"], row["executions"]) == ("100 ms", "50")
    assert "absent" not in row and row.get(METRIC, "–") == "–"
    (best,) = rows_of(markdown, HEADER, "fast")
    assert best["variant"] == "**`fast`**"
    assert "Of whole GPU (NVML), power at rest included" in markdown


@pytest.mark.parametrize(
    ("unit", "direction", "expected"),
    [
        ("Mpoints/s", "higher", "600 Mpoints/J"),
        ("GB/s", "higher", "600 GB/J"),
        ("GFLOP/s", "higher", "–"),
        ("s", "lower", "–"),
    ],
)
def test_a_metric_that_is_a_rate_is_told_for_each_joule(
    tmp_path: Path, unit: str, direction: str, expected: str
) -> None:
    record = data.record("v", 0.05, work=data.NO_FLOPS, energy=energy(0.02))
    assert record.timing
    record.metric = metric(record, unit, direction, record.timing.summary["span"].median)
    (row,) = rows_of(report(tmp_path, [record]), HEADER, "v")
    assert row.get(METRIC, "–") == expected
    assert row.get(OPERATIONS, "–") == "5.00 GOP/J"


def test_work_without_operations_has_none_for_a_joule(tmp_path: Path) -> None:
    record = data.record("v", 0.05, work=Work(read_bytes=4e8, write_bytes=4e8), energy=energy())
    (row,) = rows_of(report(tmp_path, [record]), HEADER, "v")
    assert row.get(OPERATIONS, "–") == "–"


def test_reasons_stand_beside_numbers_or_alone(tmp_path: Path) -> None:
    told, not_told = data.record("told", 0.1, rung=1, energy=energy()), data.record("not_told", 0.05, rung=2)
    not_told.energy = Energy(absent="the counter went back by 3 J")
    unasked = data.record("unasked", 0.07, rung=3)
    markdown = report(tmp_path, [told, not_told, unasked])
    assert rows_of(markdown, HEADER, "not_told")[0]["absent"] == "the counter went back by 3 J"
    assert rows_of(markdown, HEADER, "told")[0]["absent"] == "–" and not rows_of(markdown, HEADER, "unasked")
    told.energy = not_told.energy
    alone = report(tmp_path, [told, not_told])
    assert not rows_of(alone, HEADER, "told")
    assert "**Energy of one execution** (measured): absent (the counter went back by 3 J)." in alone
    unasked.energy = None
    assert "Energy" not in report(tmp_path, [unasked])


def test_cases_that_are_contended_have_their_mark(tmp_path: Path) -> None:
    record = data.record("v", 0.1, status=Status.CONTENDED, energy=energy())
    assert rows_of(report(tmp_path, [record]), HEADER, "v")[0]["mJ"].endswith("‡")
