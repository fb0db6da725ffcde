"""Progress: one plain line for each case where there is no terminal."""

from __future__ import annotations

import pytest
import report_data as data

from perfport.measure.sampling import Targets
from perfport.model.device import DeviceInfo
from perfport.model.record import Failure, Status
from perfport.run.cases import Case, Group
from perfport.run.progress import RunProgress


def group(workers: int = 1) -> Group:
    """A group of two cases."""
    records = [data.record("fast"), data.record("slow")]
    identity = records[0].identity
    return Group(
        device=DeviceInfo.model_validate(data.device(data.POCL)), workload=identity.workload, problem=identity.problem,
        preset="tiny", parameters=identity.parameters, inputs={"a": 1}, targets=Targets(), timeout=1, workers=workers,
        cases=[Case(key=record.key, identity=record.identity) for record in records],
    )  # fmt: skip


def test_a_line_for_each_case_with_time_metric_and_share(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(2) as progress:
        progress.group(group())
        progress.step(None, "opening the device")
        progress.record(data.record("fast", 0.01))
        progress.record(data.record("slow", 0.02))
    title, first, second = capsys.readouterr().err.splitlines()
    assert title.endswith(f"(tiny) on {data.POCL}: 2 cases")
    assert first.split()[:2] == ["fast", "ok"] and " ms  " in first and "of bound" in first
    assert "[1/2," in first and "[2/2," in second


def test_a_step_is_told_after_a_minute_without_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with RunProgress(2) as progress:
        progress.group(group())
        progress.step(None, "making inputs and references")
        now = 61.0
        progress.step(group().cases[0], "sampling")
        now = 100.0
        progress.step(group().cases[0], "verify again")
        progress.waiting()
        now = 122.0
        progress.waiting()
        progress.waiting()
    _, *told = capsys.readouterr().err.splitlines()
    assert told == ["  fast: sampling  [0/2, 61 s]", "  fast: verify again  [0/2, 122 s]"]


def test_a_failure_says_why_and_counts_for_all_its_workers(capsys: pytest.CaptureFixture[str]) -> None:
    failed = data.record("fast", status=Status.CRASHED)
    failed.failure = Failure(reason="[because]\nand more")
    with RunProgress(6) as progress:
        progress.group(group(workers=3))
        progress.record(failed)
        progress.record(data.record("slow"))
    _, first, why, second = capsys.readouterr().err.splitlines()
    assert "crashed  [3/6," in first and first.endswith(failed.key) and "[4/6," in second
    assert why == "    [because] and more"


def test_a_reason_is_told_once_in_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = ["needs cuda", "needs cuda", "needs cpu", "needs cuda"]
    with RunProgress(4) as progress:
        for reason in reasons:
            failed = data.record("fast", status=Status.UNSUPPORTED)
            failed.failure = Failure(reason=reason)
            progress.record(failed)
        progress.group(group())
        progress.record(failed)
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines[1:8:2] == ["needs cuda", "as above", "needs cpu", "needs cuda"] and lines[-1] == "needs cuda"


def test_a_case_that_is_run_again_without_the_others_is_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    """It counted for all its workers when it found no memory."""
    with RunProgress(4) as progress:
        for record in (data.record("fast", status=Status.OUT_OF_MEMORY), data.record("fast"), data.record("fast")):
            progress.group(group(workers=2))
            progress.record(record)
    assert capsys.readouterr().err.count("[2/4,") == 3


def test_measurements_of_further_workers_are_expected_beside_those_that_are_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with RunProgress(2) as progress:
        for _ in range(2):
            progress.group(group())
            progress.record(data.record("fast", status=Status.CONTENDED))
            progress.record(data.record("slow"))
            progress.expect(1)
    lines = capsys.readouterr().err.splitlines()
    assert [word for line in lines for word in line.split() if word[0] == "["][:3] == ["[1/2,", "[2/2,", "[3/3,"]


def test_a_kernel_that_does_not_compile_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    failed = data.record("fast", status=Status.COMPILE_ERROR)
    failed.failure = Failure(
        reason="a.cl does not compile", log="a.cl:3:1: \x1b[2Joops\n    line\n    ^\n\nthe whole log"
    )
    with RunProgress(2) as progress:
        progress.group(group())
        progress.record(failed)
    assert capsys.readouterr().err.splitlines()[2:] == [
        "    a.cl does not compile", "    a.cl:3:1: oops", "        line", "        ^"
    ]  # fmt: skip


def test_a_record_that_replaces_another_is_told_and_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    again = data.record("fast", status=Status.CONTENDED)
    with RunProgress(4) as progress:
        for _ in range(2):
            progress.group(group(workers=2))
            progress.record(data.record("fast"))
            progress.record(data.record("slow"))
            progress.record(again)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("[")[1].split(",")[0] for line in lines if "[" in line] == [
        "1/4",
        "2/4",
        "2/4",
        "3/4",
        "4/4",
        "4/4",
    ]
    assert lines[3].split()[1] == "contended"
