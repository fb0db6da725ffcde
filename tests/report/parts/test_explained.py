"""The line that says why a case is not faster, for every kind of case; the ranking of a suite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hostile
import pytest
import report_data as data
from report_page import report, tables

from perfport.judge.explain import explain
from perfport.model.record import Bound, Interval, Record, Status
from perfport.model.work import Traffic, Work
from perfport.report.parts.explained import advice, best_line, sentence, where_work_pays_table
from perfport.report.parts.ladder import Ladder, Row, collected
from perfport.report.selection import counted_cases
from perfport.store.collection import Collection
from perfport.store.ratios import time_of

WIDE = Traffic(flops=6e8, dram_read=16e8, dram_write=8e5)
COMPUTE = Work(flops=6e10, read_bytes=4e8, write_bytes=8e5)
ONE_TERM = Traffic(dram_read=4e8)


def ladders(folder: Path, *records: Record) -> list[Ladder]:
    """Return the ladders of records."""
    return collected(Collection([data.store(folder / "run", list(records))]))


def row(folder: Path, record: Record) -> Row:
    """Return a record as a row of tables."""
    (ladder,) = ladders(folder, record)
    return ladder.rows[0]


def latency(record: Record, name: str = "steps") -> Record:
    """Return a record that a chain of steps binds, with three quarters of its time."""
    seconds = 0.75 * time_of(record)
    share = Interval(value=0.75, low=0.74, high=0.76)
    bound = Bound(
        seconds=seconds, low=seconds, high=seconds, binding=name, terms={name: seconds, "dram": 0.1 * seconds},
        share=share,
    )  # fmt: skip
    return record.model_copy(update={"problem_bound": bound, "variant_bound": bound})


LINES: dict[str, tuple[Record, str]] = {
    "memory": (
        data.record("a", 0.06, traffic=WIDE, noise=0.0),
        "DRAM binds: 66.7 % of the time (modelled); next FP32 FMA, 2.5 %, 26.7 × below. This approach could be 1.50 × "
        "as fast at most, a perfect kernel (bound by DRAM) would be 5.98 (5.98–5.98) × as fast, which saves 50.0 ms.",
    ),
    "arithmetic": (
        data.record("a", 0.2, work=COMPUTE, noise=0.0),
        "FP32 FMA binds: 75.0 % of the time (modelled); next DRAM, 5.0 %, 15.0 × below. This approach could be 1.33 × "
        "as fast at most, a perfect kernel (bound by FP32 FMA) would be 1.33 (1.33–1.33) × as fast, which saves "
        "50.0 ms.",
    ),
    "steps": (
        latency(data.record("a", 0.05, noise=0.0)),
        "Bound by latency: dependent steps take 75.0 % of the time (modelled); next DRAM, 7.5 %, 10.0 × below. This "
        "approach could be 1.33 × as fast at most, a perfect kernel (bound by latency, dependent steps) would be 1.33 "
        "(1.32–1.35) × as fast, which saves 12.5 ms.",
    ),
    "no ceiling": (
        data.record("a", 0.5, traffic=ONE_TERM, noise=0.0),
        "No ceiling explains the time: the largest term, DRAM, is 2.0 % of it (modelled); no other ceiling has a term. "
        "This approach could be 50.0 × as fast at most, a perfect kernel (bound by DRAM) would be 49.9 (49.9–49.9) × "
        "as fast, which saves 490 ms.",
    ),
    "no traffic": (
        data.record("a", 0.06, traffic=None, noise=0.0),
        "A perfect kernel (bound by DRAM) would be 5.98 (5.98–5.98) × as fast, which saves 50.0 ms. The variant does "
        "not state what traffic it causes, so what binds it is not known.",
    ),
    "no bound": (
        data.record("a", ceilings=None),
        "No ceilings were measured on this device, so there are no bounds.",
    ),
    "wrong": (data.record("a", status=Status.WRONG), "Wrong: there is no time to explain."),
    "impossible": (
        data.record("a", 0.004),
        "Impossible: faster than its problem bound allows, so the declared work, the clock or a ceiling is wrong.",
    ),
    "at the bound": (
        data.record("a", 0.01, noise=0.0),
        "DRAM binds: 100.3 % † of the time (modelled); next FP32 FMA, 15.0 %, 6.69 × below. This approach is at its "
        "bound, a perfect kernel (bound by DRAM) would gain nothing, 0.997 (0.997–0.997) × †.",
    ),
    "bound too high": (
        data.record("a", 0.06, traffic=Traffic(dram_read=64e8), noise=0.0),
        "**ERROR**: DRAM alone needs 266.7 % of the time: the modelled traffic or the ceiling is wrong, and what binds "
        "is not known. A perfect kernel (bound by DRAM) would be 5.98 (5.98–5.98) × as fast, which saves 50.0 ms.",
    ),
    "several devices": (
        data.record("a", tunables={"devices": 2}),
        "Several devices took part, and bounds are made of the ceilings of one.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_the_line_of_each_kind_of_case(tmp_path: Path, kind: str) -> None:
    record, line = LINES[kind]
    assert sentence(row(tmp_path, record)) == line


def test_notable_launches_are_in_the_line(tmp_path: Path) -> None:
    record = data.record("a", 1e-3, device=data.GPU, ceilings=data.GPU_CEILINGS, noise=0.0)
    assert record.timing and "aunches" not in sentence(row(tmp_path, record))
    many = record.model_copy(update={"timing": record.timing.model_copy(update={"launches": 100})})
    assert "Launches alone take 25.0 % of it at least." in sentence(row(tmp_path / "many", many))


RAW = {
    "kernel": {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 4e7, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 1e7,
        "sm__cycles_active.sum": 1e6, "occupied_cycles": 3e5,
    }
}  # fmt: skip


def counted(folder: Path, **change: Any) -> str:
    """Return the line of a case that hardware counters saw, which issued half of the bytes of its sectors."""
    record = data.record("a", 2e-3, device=data.GPU, ceilings=data.GPU_CEILINGS, traffic=data.levels(global_read=2))
    seen = Traffic(dram_read=8e8, dram_write=0.0, l2_bytes=9e8, provenance="counted")
    stalls = {"long_scoreboard": 0.5, "wait": 0.3, "barrier": 0.2}
    count = data.count(record, seen).model_copy(update={"raw": RAW, "stalls": stalls, **change})
    data.store(folder / "run", [record])
    data.store_counts(folder / "counts", [count])
    (ladder,) = collected(*counted_cases([folder]))
    return sentence(ladder.rows[0])


def test_hardware_counters_tell_waits_occupancy_and_sectors_in_excess(tmp_path: Path) -> None:
    line = counted(tmp_path)
    assert "is 8.9 % of it (counted)" in line
    assert "Warps waited for (counted): long scoreboard 50.0 %, wait 30.0 %. Occupancy 30.0 % (counted)." in line
    assert "50.0 % of the bytes in sectors of global memory are in excess" in line  # 5e7 of 32 bytes, 8e8 asked for


def test_counters_that_are_not_there_are_not_told(tmp_path: Path) -> None:
    line = counted(tmp_path, raw={}, stalls={})
    assert "(counted)" in line and not re.search("aited|ccupancy|excess", line)
    few = {"kernel": {**RAW["kernel"], "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 1e7}}
    assert "excess" not in counted(tmp_path / "few", raw=few)


def test_of_several_counts_the_latest_that_tells_waits(tmp_path: Path) -> None:
    record = data.record("a", 2e-3, device=data.GPU, ceilings=data.GPU_CEILINGS)
    seen = [Traffic(dram_read=nbytes, provenance="counted") for nbytes in (4e8, 8e8)]
    first, second = (data.count(record, traffic) for traffic in seen)
    first = first.model_copy(update={"stalls": {"wait": 1.0}})
    data.store(tmp_path / "run", [record])
    data.store_counts(tmp_path / "counts", [first, second])
    (ladder,) = collected(*counted_cases([tmp_path]))
    assert ladder.rows[0].record.traffic and ladder.rows[0].record.traffic.dram_read == 8e8
    assert "Warps waited for (counted): wait 100.0 %." in sentence(ladder.rows[0])


def test_a_report_of_a_run_says_it_of_every_best_variant(tmp_path: Path) -> None:
    records = [data.record("slow", 0.06, rung=1), data.record("fast", 0.03, rung=2), data.record("lib", role="peer")]
    page = report(tmp_path, records)
    (line,) = re.findall(r"^\*\*Why .*$", page, re.M)
    assert line.startswith("**Why `fast` is not faster**: No ceiling explains the time: the largest term, DRAM, is 33.")
    (ladder,) = ladders(tmp_path, data.record("lib", role="peer"))
    assert best_line(ladder) == ""


def test_a_contended_best_is_marked(tmp_path: Path) -> None:
    (ladder,) = ladders(tmp_path, data.record("a", 0.06, status=Status.CONTENDED))
    assert best_line(ladder).startswith("**Why `a` is not faster** ‡: ")


def ranked(folder: Path, *records: Record) -> tuple[list[dict[str, str]], str]:
    """Return the rows of the ranking, and what stands around its table."""
    page = where_work_pays_table(ladders(folder, *records))
    (rows,) = tables(page)
    return [dict(zip(rows[0], cells, strict=True)) for cells in rows[1:]], page


def test_the_ranking_is_by_what_a_perfect_kernel_would_gain(tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"noise": 0.0}
    rows, page = ranked(
        tmp_path,
        data.record("near", 0.02, problem="near", **quiet), data.record("slow", 0.9, problem="far", **quiet),
        data.record("fast", 0.5, problem="far", **quiet),
        data.record("busy", 0.1, problem="busy", status=Status.CONTENDED, **quiet),
        data.record("ahead", 0.3, problem="far", status=Status.CONTENDED, **quiet),
        data.record("silent", 0.05, problem="silent", traffic=None, **quiet),
        data.record("unbounded", 0.7, problem="zero", ceilings=None, **quiet),
    )  # fmt: skip
    assert [row["best variant"] for row in rows] == ["`fast`", "`busy`", "`silent`", "`near`"]
    far, busy, silent, _ = rows
    assert (far["over the bound"], far["saved"], far["bound by"]) == ("49.9 (49.9–49.9) ×", "490 ms", "DRAM")
    assert (far["this approach"], far["what binds it"]) == ("49.9 ×", "none; largest DRAM 2.0 %")
    assert far["time"] == "500 ms ¤" and busy["time"] == "100 ms ‡"
    assert (silent["this approach"], silent["what binds it"]) == ("–", "–")
    assert "¤ a variant that took less time was contended" in page and "‡ contended" in page
    assert "Not ranked: `demo/zero` on `opencl:pocl:0`: no ceilings were measured" in page
    assert "launches" not in rows[0], "no launches are notable here"


def test_without_any_bound_there_is_no_ranking(tmp_path: Path) -> None:
    page = where_work_pays_table(ladders(tmp_path, data.record("a", ceilings=None)))
    assert "Not ranked: `demo/rows`" in page and "|" not in page


def test_hostile_names_of_terms_are_text(tmp_path: Path) -> None:
    """A record names its ceilings: they are data."""
    for number, name in enumerate(hostile.NAMES.values()):
        if len(name) < 1000:
            page = sentence(row(tmp_path / str(number), latency(data.record("a", 0.05), name)))
            assert hostile.PRINTABLE.sub("", page) == ""
            assert hostile.github(page).tags <= {"p", "strong", "code"} and "\n" not in page


ADVICE: dict[str, tuple[Record, str]] = {
    "at the bound": (data.record("a", 0.0102, noise=0.0), "At the problem bound: nothing worth having is left."),
    "its own traffic": (
        data.record("a", 0.042, traffic=WIDE, noise=0.0), "At the bound of its own traffic (DRAM): move fewer bytes",
    ),
    "below its ceiling": (
        data.record("a", 0.06, traffic=WIDE, noise=0.0), "DRAM binds at 66.7 % of its ceiling: use it better",
    ),
    "nothing explains it": (data.record("a", 0.5, traffic=WIDE, noise=0.0), "No ceiling explains the time"),
    "a chain": (latency(data.record("a", 0.05, noise=0.0)), "Latency binds (dependent steps): shorten the chain"),
    "no traffic": (data.record("a", 0.05, traffic=None), "The variant does not state what traffic it causes"),
    "no ceilings": (data.record("a", 0.05, ceilings=None), "No ceilings were measured on this device"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ADVICE)
def test_what_to_do_next_follows_from_what_binds(tmp_path: Path, kind: str) -> None:
    record, said = ADVICE[kind]
    assert advice(explain(row(tmp_path, record))).startswith(said)


def test_a_ranking_may_be_cut_and_says_so(tmp_path: Path) -> None:
    listed = ladders(tmp_path, *(data.record("a", 0.05, problem=f"p{n}", key=f"{n}") for n in range(5)))
    assert "The first 2 of 5; `perfport explain --suite` has all." in where_work_pays_table(listed, 2)
    assert "The first" not in where_work_pays_table(listed, 5)
