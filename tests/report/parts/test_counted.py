"""Counted work: it replaces what was modelled, in the case that was counted and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import report_data as data
from report_page import report, rows_of, section

from perfport.model.errors import UsageError
from perfport.model.record import Record
from perfport.model.work import Traffic
from perfport.report.pages.run import render, stored
from perfport.store.ratios import time_of
from perfport.untimed.count import Count, Verdict


def hardware_counts() -> list[Count]:
    """Counts of the GPU's rungs by hardware: row_major moves twice the DRAM bytes that it declares."""
    first, second, *_ = data.gpu_ladder()
    assert first.traffic and second.traffic
    seen = Traffic(flops=6e8, dram_read=2 * 16e8, dram_write=1.6e6, l2_bytes=9e8, provenance="counted")
    off = second.traffic.model_copy(update={"flops": 5e8, "provenance": "counted"})
    return [data.count(first, seen), data.count(second, off)]


def counted_report(tmp_path: Path, folder: Path, records: list[Record]) -> str:
    """Render records and a folder of counts, found from their common parent."""
    data.store(tmp_path / "stored" / "run", records)
    runs, counted = stored([tmp_path / "stored", folder])
    assert len(runs) == 1 and len(counted) == 1
    render(runs, tmp_path / "report.md", counted)
    return (tmp_path / "report.md").read_text()


def test_counted_dram_bytes_replace_modelled_ones_in_the_variant_bound_alone(tmp_path: Path) -> None:
    records = data.gpu_ladder()
    plain = report(tmp_path, records)
    folder = data.store_counts(tmp_path / "counts", hardware_counts())
    markdown = counted_report(tmp_path, folder, records)
    before, after = (rows_of(m, "what binds it", "row_major")[0] for m in (plain, markdown))
    assert (before["traffic"], after["traffic"]) == ("modelled", "counted")
    shares = [float(re.sub(r"[^\d.]", "", row["DRAM"])) for row in (before, after)]
    assert shares[1] == pytest.approx(2 * shares[0], rel=0.01) and "ERROR" in after["DRAM"]
    seconds = time_of(records[0])
    assert float(after["L2"]) == pytest.approx(100 * 9e8 / 7.5e12 / seconds, abs=0.06)
    assert after["issued (L1)"] == before["issued (L1)"], "what hardware does not tell stays modelled"
    problem = [rows_of(m, "share of problem bound (measured)", "row_major")[0] for m in (plain, markdown)]
    assert problem[0] == problem[1]
    beside = rows_of(markdown, "DRAM bytes (modelled)", "row_major")[0]
    assert beside["DRAM bytes (counted)"] == "3.20 GB" and beside["DRAM bytes (modelled)"] == "1.60 GB"
    assert beside["counted / modelled"] == "2.00"
    assert "DRAM bytes (modelled)" not in plain and "Counted work" not in plain
    assert "(counted or modelled traffic)" in markdown
    assert rows_of(markdown, "what binds it", "vectorized")[0]["traffic"] == "modelled"


def test_counted_traffic_keeps_the_unit_and_gives_peers_a_bound(tmp_path: Path) -> None:
    records = [r for r in data.gpu_ladder() if r.identity.variant in ("matrix_units", "library")]
    seen = Traffic(dram_read=4.1e8, dram_write=1e6, l2_bytes=5e8, provenance="counted")
    folder = data.store_counts(tmp_path / "counts", [data.count(r, seen) for r in records])
    markdown = counted_report(tmp_path, folder, records)
    row = rows_of(markdown, "what binds it", "matrix_units")[0]
    assert row["TF32 matrix"] == "1.5" and "FP32 FMA" not in row
    assert rows_of(markdown, "what binds it", "library")[0]["what binds it"] == "DRAM"
    assert rows_of(markdown, "DRAM bytes (modelled)", "library")[0]["DRAM bytes (modelled)"] == "–"


@pytest.mark.parametrize("change", ["parameters", "tunables", "devices", "variant", "profile", "chip", "no dram"])
def test_counts_of_another_case_are_not_joined(tmp_path: Path, change: str) -> None:
    (first, *_) = hardware_counts()
    other: dict[str, object] = {
        "parameters": {"points": 7}, "tunables": {"width": 4}, "devices": [data.POCL], "variant": "x", "profile": "k40m"
    }  # fmt: skip
    if change in other:
        first.identity = first.identity.model_copy(update={change: other[change]})
    if change == "no dram":
        assert first.counted
        first.counted = first.counted.model_copy(update={"dram_read": 0.0, "dram_write": 0.0})
    chip = "NVIDIA A100" if change == "chip" else ""
    markdown = counted_report(tmp_path, data.store_counts(tmp_path / "counts", [first], chip), data.gpu_ladder())
    assert rows_of(markdown, "what binds it", "row_major")[0]["traffic"] == "modelled"
    assert "DRAM bytes (modelled)" not in markdown and "## Counted work" in markdown


def test_counted_work_shows_every_quantity_and_verdict(tmp_path: Path) -> None:
    failed = data.count(data.record("a|b", device=data.GPU), Traffic()).model_copy(
        update={"verdict": Verdict.FAILED, "counted": None, "quantities": {}, "reason": "the tool | died"}
    )
    first, second = hardware_counts()
    first.stalls = {"long_scoreboard": 0.5, "no_instruction": 0.3, "wait": 0.1, "barrier": 0.06, "drain": 0.04}
    first.raw = {"kernel": {"sm__cycles_active.sum": 8.0, "occupied_cycles": 3.0}}
    folder = data.store_counts(tmp_path / "counts", [first, second, failed])
    found = section(counted_report(tmp_path, folder, data.gpu_ladder()), "Counted work")
    good, bad = (rows_of(found, "farthest from 1", name)[0] for name in ("row_major", "column_major"))
    assert good["verdict"] == "agrees" and good["farthest from 1"] == "flops 1.000"
    assert bad["verdict"] == "**deviates**" and bad["farthest from 1"] == "flops 1.200" and bad["tool"] == "ncu 1.0"
    rows = {row["quantity"]: row for row in rows_of(found, "quantity", "row_major")}
    assert rows["dram read"]["declared"] == "1.60 GB" and rows["dram read"]["counted"] == "3.20 GB"
    assert rows["dram read"]["ratio"] == "0.5000" and rows["dram read"]["verdict"] == "shown"
    assert rows["flops"]["declared"] == rows["flops"]["counted"] == "600 M"
    assert r"failed: the tool \| died" in found
    (waited,) = rows_of(found, "no instruction fetched", "row_major")
    assert waited["no instruction fetched"] == "30.0 %" and waited["occupancy"] == "37.5 %"
    assert waited["largest shares"] == "long scoreboard 50.0 %, no instruction 30.0 %, wait 10.0 %, barrier 6.0 %"


def test_a_path_with_neither_runs_nor_counts_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(UsageError, match="no results here"):
        stored([tmp_path])
    (tmp_path / "counts.jsonl").write_text("")
    runs, (counts,) = stored([tmp_path])
    assert not runs and not counts.counts and not counts.chips
    assert f"left out: {tmp_path / 'environment.json'}: cannot be read" in caplog.text
