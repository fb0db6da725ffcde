"""Ladders as the page gets them: the numbers are the records', shortened, and why they are so stands beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.report.parts.ladder import Ladder, ladders_of
from perfport.report.parts.quantities import significant
from perfport.report.viewer.ladders import MOST_SAMPLES, ladder
from perfport.store.ratios import time_of


def held(folder: Path, records: list[Any]) -> tuple[Ladder, dict[str, Any]]:
    """Return the one ladder of some records, and what the page gets of it."""
    (of,) = ladders_of([data.store(folder, records)])
    return of, ladder(of, 0, 0)


def test_numbers_are_those_of_the_records(tmp_path: Path) -> None:
    of, shown = held(tmp_path, data.gpu_ladder())
    for row, case in zip(of.rows, shown["cases"], strict=True):
        record = row.record
        assert case["key"] == record.key and case["role"] == record.identity.role
        if record.status.measured:
            assert record.timing and record.metric
            assert case["time"][0] == pytest.approx(time_of(record), rel=1e-4)
            assert case["metric"] == pytest.approx(record.metric.value, rel=1e-4)
            assert case["share"][0] == pytest.approx(record.problem_bound.share.value, rel=1e-4)  # type: ignore[union-attr]
            assert case["n"] == len(record.timing.span)
            assert [min(record.timing.span), max(record.timing.span)] == pytest.approx(
                [case["samples"][0], case["samples"][-1]], rel=1e-4
            )
    best = shown["cases"][shown["best"]]
    assert of.best and best["key"] == of.best.record.key and best["binds"] and best["next"]
    assert shown["versus"][3] == "faster" and shown["cases"][shown["peer"]]["variant"] == "library"


def test_a_best_variant_above_its_bound_has_the_mark_in_its_cell(tmp_path: Path) -> None:
    above = data.record("a", 0.02)
    assert above.problem_bound
    bound = above.problem_bound.model_copy(update={"stale": True})
    _, shown = held(tmp_path, [above.model_copy(update={"problem_bound": bound})])
    assert "†" in shown["marks"] and "†" in shown["cases"][0]["marks"]
    assert shown["peerless"] == "no peer"
    _, shown = held(tmp_path / "less", [data.record("less", role="control"), data.record("library", role="peer")])
    assert shown["peerless"] == "no variant beside the peers"


def test_numbers_are_rounded_on_the_page_as_in_markdown(tmp_path: Path) -> None:
    """Of five digits 3585.04 M windows/s were 3.585 G, and three of these are 3.58: 3.59 is right."""
    fast = data.record("a", 0.02)
    assert fast.metric
    metric = fast.metric.model_copy(update={"value": 3585.04, "low": 3585.0, "high": 3586.0})
    _, shown = held(tmp_path, [fast.model_copy(update={"metric": metric})])
    assert f"{shown['cases'][0]['metric'] / 1e3:.2f}" == significant(3.58504)


def test_points_stand_under_roofs_and_say_where_they_do_not(tmp_path: Path) -> None:
    _, shown = held(tmp_path, data.gpu_ladder())
    assert shown["roofs"]["slopes"]["DRAM"] > 0 and "FP32 FMA" in shown["roofs"]["flats"]
    at = {case["variant"]: case.get("at") for case in shown["cases"]}
    assert at["no_model"] is None and set(at["local_memory"] or ()) == {
        "DRAM", "L2", "issued (L1)", "local memory",
    }  # fmt: skip
    _, bytes_alone = held(tmp_path / "copy", [data.record("copy", work=data.ONLY_BYTES)])
    assert bytes_alone["roofs"] is None


def test_of_many_samples_quantiles_stand(tmp_path: Path) -> None:
    _, shown = held(tmp_path, [data.record("a", n=500)])
    (case,) = shown["cases"]
    assert len(case["samples"]) == MOST_SAMPLES and case["samples"] == sorted(case["samples"]) and case["n"] == 500


def test_what_has_no_result_has_its_reason(tmp_path: Path) -> None:
    _, shown = held(tmp_path, data.every_status())
    assert all(case["reason"] for case in shown["cases"]) and "best" not in shown
