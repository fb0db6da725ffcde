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
from perfport.report.pages.claims import view
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
