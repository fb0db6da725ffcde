"""Ladders: names that tell rows apart, the best, and published figures beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data
from report_page import report, rows_of

from perfport.machine.device_profile import load_profile
from perfport.model.record import MetricValue, Status
from perfport.report.parts.ladder import ladders_of


def test_contended_and_modelled_are_never_best(tmp_path: Path) -> None:
    records = [
        data.record("slow", 0.05, rung=1),
        data.record("loaded", 0.01, rung=2, status=Status.CONTENDED),
        data.record("simulated", 0.001, rung=3, provenance="modelled"),
    ]
    (ladder,) = ladders_of([data.store(tmp_path / "results", records)])
    assert ladder.best and ladder.best.label == "slow"
    markdown = report(tmp_path, records)
    assert rows_of(markdown, "over previous rung", "loaded")[0]["time, ms"].endswith("‡")
    assert "‡ contended" in markdown
    assert "`simulated [modelled]`" in markdown
    assert rows_of(markdown, "over previous rung", "simulated [modelled]")[0]["time, ms"] == "–"


def test_published_share_of_its_own_bound_is_computed(demonstration: tuple[Path, str, list[Path]]) -> None:
    stated = rows_of(demonstration[1], "published on", "row_major")[0]
    assert stated["published"] == "33.7 GFLOP/s" and stated["share, published"] == "15.0 %"
    profile = load_profile("hd5870")
    assert profile.bandwidth and profile.fp32
    bound = max(data.WORK.bytes / profile.bandwidth, data.WORK.flops / profile.fp32)
    expected = 100 * 33.7e9 / (data.WORK.flops / bound)
    assert stated["share, modelled"] == f"{expected:.1f} %"
    assert stated["published on"] == profile.title
    other, unknown = rows_of(demonstration[1], "published on", "image")
    assert other["share, published"] == "–" and other["share, modelled"] != "–"
    assert unknown["published on"] == "no_such_device" and unknown["share, modelled"] == "–"
    assert "Catanzaro 2011, figure 7" in demonstration[1]


def test_published_times_are_shared_the_other_way_round(tmp_path: Path) -> None:
    entry = {"problem": "rows", "variant": "a", "device": "hd5870", "value": 10.0, "unit": "ms"}
    environment = data.environment()
    environment["workloads"]["demo"]["published"] = [entry]
    metric = MetricValue(tag="t", unit="ms", direction="lower", value=50.0, low=49, high=51)
    record = data.record("a", 0.05, rung=1, noise=0.0).model_copy(update={"metric": metric})
    (ladder,) = ladders_of([data.store(tmp_path / "results", [record], environment)])
    (figure,) = ladder.published
    assert figure.share == pytest.approx(data.WORK.bytes / 153.6e9 / 0.010)


def test_published_in_another_unit_gets_no_share(tmp_path: Path) -> None:
    environment = data.environment()
    environment["workloads"]["demo"]["published"] = [{**data.PUBLISHED[0], "unit": "GB/s"}]
    (ladder,) = ladders_of([data.store(tmp_path / "results", [data.record("row_major", rung=1)], environment)])
    assert [figure.share for figure in ladder.published] == [None]


def test_variants_in_several_settings_are_told_apart(tmp_path: Path) -> None:
    records = [data.record("a", 0.05 - 0.001 * i, rung=1, tunables={"width": i, "unroll": 1}) for i in (1, 2, 12)]
    (ladder,) = ladders_of([data.store(tmp_path / "results", records)])
    assert [row.label for row in ladder.rows] == ["a [width=1]", "a [width=2]", "a [width=12]"]
    assert ladder.first_rung and ladder.first_rung.label == "a [width=12]"
