"""Devices of the literature: bounds by datasheet and by published ceilings, each said to be what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data
from report_page import tables

from perfport.machine.device_profile import load_profile
from perfport.measure.roofline import datasheet_ceilings
from perfport.model.work import Work
from perfport.report.parts.archival import archival_table
from perfport.report.parts.ladder import Ladder, ladders_of
from perfport.store.results import load_runs

COMMITTED = Path(__file__).parents[3] / "results" / "committed"
DATASHEET, PUBLISHED = "bound, GFLOP/s (modelled: datasheet)", "bound, GFLOP/s (modelled: published ceilings)"
BY_DATASHEET, BY_PUBLISHED = "bound by, datasheet", "bound by, published ceilings"


def ladder_of(folder: Path, work: Work, device: str = data.POCL) -> Ladder:
    """Return a ladder of one record with this work, done in 50 ms."""
    record = data.record("a", 0.05, rung=1, noise=0.0, work=work, ceilings=None, device=device)
    (ladder,) = ladders_of([data.store(folder, [record])])
    return ladder


def cell(page: str, device: str, column: str) -> str:
    """Return what a column of the table says of a device."""
    ((head, *rows),) = tables(page)
    (row,) = [dict(zip(head, row, strict=True)) for row in rows if row[0] == device]
    return row[column.replace("GFLOP/s", "Gop/s") if column not in row else column]


@pytest.mark.parametrize("workload", ["face_detection", "vocab_tree"])
@pytest.mark.parametrize("device", ["hd7970", "gtx680"])
def test_integer_problems_of_the_suite_have_bounds(workload: str, device: str) -> None:
    ceilings = datasheet_ceilings(load_profile(device))
    bounded = 0
    for ladder in ladders_of(load_runs([COMMITTED / f"h200-{workload}"])):
        work = next((row.record.work for row in ladder.measured if row.record.work), None)
        if work and work.integer_ops:
            bound = ladder.bound_under(ceilings)
            assert bound and bound.metric > 0, ladder.problem
            bounded += 1
    assert bounded


def test_a_multiply_add_is_two_operations(tmp_path: Path) -> None:
    """1e9 multiply-adds of 24 bits: 64 lanes of 32 CU at 925 MHz take 0.53 ms, whichever way they are counted."""
    ladder = ladder_of(tmp_path, Work(integer_ops=2e9, read_bytes=1.0))
    bound = ladder.bound_under(datasheet_ceilings(load_profile("hd7970")))
    seconds = 1e9 / (64 * 32 * 925e6)
    assert bound and bound.binding == "int24_mad" and bound.metric == pytest.approx(2e9 / seconds / 1e9)


def test_bounds_by_datasheet_and_by_published_ceilings_stand_side_by_side(tmp_path: Path) -> None:
    page = archival_table([ladder_of(tmp_path, data.WORK)])
    nbytes, flops = data.WORK.bytes, data.WORK.flops
    assert cell(page, "AMD Radeon HD 5870", DATASHEET) == f"{flops / (nbytes / 153.6e9) / 1e9:.0f}"
    assert cell(page, "AMD Radeon HD 5870", PUBLISHED) == f"{flops / (nbytes / 127.53e9) / 1e9:.0f}"
    assert cell(page, "AMD Radeon HD 5870", BY_PUBLISHED) == "`dram` (published)"
    assert "- AMD Radeon HD 5870, `dram_read`: 128 GB/s on Cypress, 20 compute units, clock not told; clpeak" in page
    # The copy was measured on an HD 7970, reads on one of another clock: that one is not used.
    assert cell(page, "AMD Radeon HD 7970", BY_PUBLISHED) == "`dram` (partly published)"
    assert "247 GB/s" not in page and "- AMD Radeon HD 7970, `dram_copy`: 211 GB/s on Radeon 7970; BabelStream" in page
    # Nobody measured a GTX 680.
    assert cell(page, "NVIDIA GeForce GTX 680", PUBLISHED) == "–"


def test_a_published_bound_that_the_datasheet_binds_says_so(tmp_path: Path) -> None:
    page = archival_table([ladder_of(tmp_path, Work(integer_ops=1e12, read_bytes=1.0))])
    assert cell(page, "AMD Radeon HD 7970", DATASHEET) == cell(page, "AMD Radeon HD 7970", PUBLISHED) == "3789"
    assert cell(page, "AMD Radeon HD 7970", BY_PUBLISHED) == "`int24_mad` (datasheet)"
    assert "<details>" not in page


def test_the_setting_is_that_of_a_gpu_where_there_is_one(tmp_path: Path) -> None:
    """A CPU has its inputs at hand: its record has no bytes to move from the host."""
    moved = Work(integer_ops=1e8, read_bytes=1e9, host_bytes=1e9)
    on_cpu = ladder_of(tmp_path / "cpu", moved.on("cpu"))
    on_gpu = ladder_of(tmp_path / "gpu", moved, data.GPU)
    assert on_cpu.merged and not on_gpu.merged
    page = archival_table([on_cpu, on_gpu])
    assert cell(page, "NVIDIA GeForce GTX 680", BY_DATASHEET) == "`h2d_pinned`"
    assert cell(archival_table([on_cpu]), "NVIDIA GeForce GTX 680", BY_DATASHEET) == "`dram`"


def test_a_metric_of_nothing_is_compared_with_nothing(tmp_path: Path) -> None:
    """A metric of operations, for a problem that only moves bytes."""
    page = archival_table([ladder_of(tmp_path, data.ONLY_BYTES)])
    assert cell(page, "AMD Radeon HD 7970", BY_DATASHEET) == "`dram`" and "over the datasheet's bound" not in page


def test_without_a_metric_there_is_no_table(tmp_path: Path) -> None:
    record = data.record("a", 0.05, rung=1).model_copy(update={"metric": None})
    assert archival_table(ladders_of([data.store(tmp_path, [record])])) == archival_table([]) == ""
