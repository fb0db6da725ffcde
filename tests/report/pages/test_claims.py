"""The page of claims: every claim with both numbers and the records."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from claim_data import (
    claim,
    record,
)

from perfport.judge.claims import (
    evaluate,
)
from perfport.report.pages.claims import summary, view
from perfport.report.parts.quantities import significant
from perfport.store.collection import Collection


def test_the_page_has_every_claim_with_both_numbers_and_the_records(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [record("slow", 0.05), record("fast", 0.02)])
    collection = Collection([run])
    shown = view(evaluate({"demo": [claim(published="3 | 4 times")]}, collection), collection)
    assert "**holds**" in shown.markdown and "3 | 4 times" in shown.markdown
    (row,) = shown.rows
    assert row["verdict"] == "holds" and row["subject"] == "fast" and row["against"] == "slow"
    for found in run.records:
        assert f"`{found.key}`" in shown.markdown and found.key in row["records"]
    assert row["low"] <= row["value"] <= row["high"]


def test_the_summary_says_which_claims_a_device_counts(tmp_path: Path) -> None:
    """Rows have sums of their own: where a workload did not run, its claims are in no column."""
    collection = Collection([data.store(tmp_path, data.ladder(data.POCL))])
    assert "A row counts the claims of the workloads that ran on the device." in summary([], collection)


def test_a_claim_about_gpus_shows_the_number_of_a_cpu_without_a_verdict(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [record("slow", 0.05), record("fast", 0.02), record("slow", device=data.INTEL)])
    collection = Collection([run])
    shown = view(evaluate({"demo": [claim(applies_to="gpu")]}, collection), collection).markdown
    assert "holds**" not in shown.partition("## `demo`")[2]
    (row,) = (line for line in shown.splitlines() if "`fast` 20" in line)
    assert "| not applicable | a claim about GPUs; the number here is 2." in row and "| 2." in row
    assert "Not applicable: a claim about GPUs (`opencl:intel:0`)." in shown and "Not measured:" not in shown


def test_the_share_of_our_bound_stands_beside_that_of_the_source(tmp_path: Path) -> None:
    one = record("fast", 0.02)
    assert one.problem_bound
    collection = Collection([data.store(tmp_path / "run", [one])])
    sheet = claim(compare="share", reference=None, share_of="datasheet_bound", at_least=0.1)
    shown = view(evaluate({"demo": [sheet]}, collection), collection)
    assert "| beside " in shown.markdown
    assert f"`share of the problem bound` {significant(one.problem_bound.share.value)} |" in shown.markdown
    (row,) = shown.rows
    assert (row["beside"], row["beside_value"]) == ("share of the problem bound", one.problem_bound.share.value)
    own = view(evaluate({"demo": [sheet.model_copy(update={"share_of": "problem_bound"})]}, collection), collection)
    assert "| beside " not in own.markdown
