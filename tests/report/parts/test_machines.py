"""Machines and ceilings: what moved, what is above theory, what is old."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from report_page import report, rows_of, section, tables

from perfport.store.results import Run


def test_moved_probe_is_flagged_and_a_steady_one_is_not(tmp_path: Path) -> None:
    steady = report(tmp_path, [data.record("a")])
    assert "moved" not in section(steady, "Ceilings")
    probes = [data.probe(data.POCL, "before", 1.0), data.probe(data.POCL, "after", 0.85)]
    moved = section(report(tmp_path, [data.record("a")], probes=probes), "Ceilings")
    assert "**A ceiling moved by more than 10.0 %**" in moved and "**85.0 % moved**" in moved
    assert "`dram_read` after the run: 85.0 %" in moved


def test_ceilings_tell_shape_spread_age_and_datasheet(demonstration: tuple[Path, str, list[Path]]) -> None:
    found = section(demonstration[1], "Ceilings")
    row = rows_of(found, "datasheet", "dram_read")[0]
    assert row["measured"] == "**40.0 GB/s**" and row["datasheet"] == "80.0 GB/s"
    assert row["reached"] == "50.0 %" and row["95 % interval"] == "39.6 – 40.4 GB/s"
    assert "won by chunked 1, width 16; the worst of 2 shapes reached 12.0 %" in found
    assert "30 min before the run's start" in found
    for date, age in (("2026-11-01T12:00:00", "**20 days** before"), ("2026-11-21T12:04:00", "4.0 min after")):
        assert f"{age} the run's start" in old_age({data.POCL: data.ceilings(data.POCL, f"{date}+00:00")})
    assert rows_of(found, "theory", "launch_latency")[0]["measured"] == "**4.00 µs**"
    assert {row["ceiling"] for row in all_rows(found)} == {f"`{name}`" for name in data.CEILINGS | data.GPU_CEILINGS}


def test_every_nominal_ceiling_stands_beside_the_measured_one(tmp_path: Path) -> None:
    environment = data.environment()
    environment["profiles"][data.POCL]["nominal"] = {"local_read": 1400e9, "dram_read": 80e9}
    found = section(report(tmp_path, [data.record("a")], profiles=environment["profiles"]), "Ceilings")
    shown = {row["ceiling"]: (row["datasheet"], row["reached"]) for row in all_rows(found) if row["datasheet"] != "–"}
    assert shown["`local_read`"] == ("1.40 TB/s", "50.0 %") and shown["`dram_read`"] == ("80.0 GB/s", "50.0 %")


def all_rows(markdown: str) -> list[dict[str, str]]:
    """Return the rows of all tables of ceilings."""
    found = [table for table in tables(markdown) if table[0][0] == "ceiling"]
    return [dict(zip(head, row, strict=True)) for head, *rows in found for row in rows]


def test_ceilings_above_theory_are_flagged_and_the_fields_may_be_missing(tmp_path: Path) -> None:
    found = section(report(tmp_path, [data.record("a")]), "Ceilings")
    theories = {row["theory"] for row in rows_of(found, "theory", "fp32_fma")}
    assert theories == {"384 GFLOP/s **exceeded**", "66.9 TFLOP/s"}
    assert found.count("> **A ceiling is above its theory**: `fp32_fma`") == 2  # both CPUs, not the GPU
    bare = data.ceilings(data.POCL)
    for name in ("theory", "above_theory"):
        del bare["entries"]["fp32_fma"][name]
    found = old_age({data.POCL: bare})
    assert "theory" not in found.lower() and "`fp32_fma`" in found
    told = data.ceilings(data.POCL) | {"absent": {"dp4a": "the device has no such instruction"}}
    told["entries"]["fp32_fma"]["theory_basis"] = "2 cores x 16 lanes"
    found = old_age({data.POCL: told})
    assert (
        "`dp4a`: not measured: the device has no such instruction." in found and "Theory: 2 cores x 16 lanes." in found
    )


def test_disturbed_sweeps_and_ceilings_swept_again_are_told() -> None:
    first = {
        "run": "r",
        "date": "2026-11-20",
        "reason": "times exceed dram_read",
        "names": ["dram_read"],
        "outcome": "",
    }
    second = {**first, "reason": "a probe", "names": ["exp", "dp4a"], "outcome": "exp is as it was"}
    busy = {"fp32_fma": "other processes used 60% of the <processor>"}
    values = ({"fp32_fma": {"value": value, "low": value, "high": value}} for value in (2e9, 3e9))
    third = {**second, "outcome": "", **dict(zip(("before", "fresh"), values, strict=True))}
    told = data.ceilings(data.POCL) | {"contended": busy, "renewals": [first, second, third]}
    found = old_age({data.POCL: told})
    assert (
        "> **Others used what the device needs while ceilings were swept**: `fp32_fma` (other processes used 60%"
        in found
    )
    assert "<processor>" not in found
    assert "- 2026-11-20: `dram_read`, because times exceed dram_read; all were replaced." in found
    assert "- 2026-11-20: `exp`, `dp4a`, because a probe; exp is as it was." in found
    assert "all were replaced. Measured before and now: `fp32_fma` 2.00 GFLOP/s, then 3.00 GFLOP/s." in found
    assert "swept again" not in old_age({data.POCL: data.ceilings(data.POCL)})


def old_age(ceilings: dict[str, object]) -> str:
    """Return the ceilings section of a run with these ceilings."""
    from perfport.report.parts.machines import ceilings_section

    run = Run.__new__(Run)
    run.folder, run.records, run.environment = Path(), [], data.environment(ceilings=ceilings)
    return ceilings_section(run, set())


def test_environment_flags_dirty_commit_and_one_chip(tmp_path: Path) -> None:
    markdown = report(tmp_path, [data.record("a")])
    assert "`0123abcd`, **with uncommitted changes**" in markdown
    assert f"`{data.INTEL}`, `{data.POCL}` are **the same chip**" in markdown
    devices = {data.POCL: data.device(data.POCL), data.INTEL: data.device(data.INTEL, "another")}
    clean = report(tmp_path, [data.record("a")], devices=devices, commit={"hash": "0123abcd", "dirty": False})
    assert "uncommitted" not in clean and "same chip" not in clean
