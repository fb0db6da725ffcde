"""The tables of a ladder: speed-ups with base and verdict, overheads, peers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import report_data as data
from report_page import report, rows_of, section, tables

from perfport.model.record import MetricValue, Status


def test_speed_ups_have_base_interval_and_verdict(demonstration: tuple[Path, str, list[Path]]) -> None:
    rows = {name: rows_of(demonstration[1], "over previous rung", name)[0] for name in ("row_major", "vectorized")}
    assert rows["row_major"]["speed-up over first rung"] == "1 (base)"
    for header, ratio in (("speed-up over first rung", 60 / 21), ("over previous rung", 30 / 21)):
        value, low, high, verdict = re.match(
            r"([\d.]+) \(([\d.]+)–([\d.]+)\) (\w+)$", rows["vectorized"][header]
        ).groups()  # type: ignore[union-attr]
        assert float(value) == pytest.approx(ratio, rel=0.03)
        assert float(low) <= float(value) <= float(high) and verdict == "faster"


def test_previous_rung_skips_the_one_without_result(demonstration: tuple[Path, str, list[Path]]) -> None:
    # Rung 4 (image) is unsupported: rung 5 is compared with the faster of the two forms of rung 3.
    value = rows_of(demonstration[1], "over previous rung", "local_memory")[0]["over previous rung"]
    assert float(value.split()[0]) == pytest.approx(21 / 14, rel=0.03)


def test_controls_and_peers_have_no_previous_rung(demonstration: tuple[Path, str, list[Path]]) -> None:
    for name in ("row_major_float4", "host_loop", "numpy"):
        assert rows_of(demonstration[1], "over previous rung", name)[0]["over previous rung"] == "–"


def test_missing_first_rung_is_said(tmp_path: Path) -> None:
    records = [
        data.record("a", rung=1, status=Status.CRASHED), data.record("b", 0.03, rung=2), data.record("c", 0.02, rung=3)
    ]  # fmt: skip
    markdown = report(tmp_path, records)
    assert "**The first rung, `a`, has no result (crashed)**: speed-ups refer to `b`" in markdown


def test_peer_with_wall_alone_is_compared_by_wall(demonstration: tuple[Path, str, list[Path]]) -> None:
    row = rows_of(demonstration[1], "peer, time", "numpy")[0]
    assert row["clock"] == "wall"
    # the variant's wall time is 1.1 times its span in the synthetic data
    intel = 0.9
    assert float(row["`local_memory`, time"].split()[0]) == pytest.approx(14 * 1.1 * intel, rel=0.02)
    assert float(row["speed-up of the best variant"].split()[0]) == pytest.approx(90 / (14 * 1.1), rel=0.03)
    missing = rows_of(demonstration[1], "peer, time", "cdist")[0]
    assert missing["status"].startswith("**unavailable**: unavailable for a reason")


def test_no_common_clock_gives_no_ratio(tmp_path: Path) -> None:
    records = [data.record("device", 0.01, rung=1, clock="span"), data.record("peer", 0.1, role="peer", clock="wall")]
    markdown = report(tmp_path, records)
    row = rows_of(markdown, "peer, time", "peer")[0]
    assert row["status"] == "ok: no clock in common"
    assert "no clock in common" in markdown.split("\n## ")[0]


def test_precision_classes_never_share_a_table(demonstration: tuple[Path, str, list[Path]]) -> None:
    for head, *rows in tables(section(demonstration[1], "Results")):
        named = {cell.strip("*`") for row in rows for cell in row}
        assert not ("half" in named and "row_major" in named), head
    assert ", fp16" in demonstration[1] and ", fp32" in demonstration[1]


def test_layout_is_charged_in_full(tmp_path: Path) -> None:
    record = data.ladder(data.POCL)[1]
    row = rows_of(report(tmp_path, [record]), "incl. layout", "column_major")[0]
    assert float(row["GFLOP/s incl. layout"]) == pytest.approx(0.6 / (0.4 + 0.03), rel=0.01)
    lower = record.model_copy(
        update={"metric": MetricValue(tag="t", unit="ms", direction="lower", value=30, low=29, high=31)}
    )
    row = rows_of(report(tmp_path, [lower]), "incl. layout", "column_major")[0]
    assert float(row["ms incl. layout"]) == pytest.approx(430, rel=0.01)


def test_device_comparison_has_every_variant_and_device(demonstration: tuple[Path, str, list[Path]]) -> None:
    found = section(demonstration[1], "Comparison of devices")
    row = rows_of(found, data.POCL, "image")[0]
    assert row[f"`{data.POCL}`"] == row[f"`{data.INTEL}`"] == "unsupported"
    best = rows_of(found, data.POCL, "local_memory")[0]
    assert re.fullmatch(r"\*\*7\d\.\d % · 1[34]\.\d ms\*\*", best[f"`{data.POCL}`"])
