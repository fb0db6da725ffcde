"""Kernel sources on the page: those of the shipped variants, as they are now; of others none."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.report.parts.ladder import ladders_of
from perfport.report.viewer.sources import sources

ROOT = Path(__file__).parents[3]


def test_files_of_shipped_variants_are_held_once(tmp_path: Path) -> None:
    names = {"workload": "svm_rbf", "problem": "rbf_rows", "ceilings": None}
    records = [data.record("row_major", rung=1, **names), data.record("column_major", rung=2, **names)]
    held = sources(ladders_of([data.store(tmp_path, [*records, data.record("elsewhere")])]))
    assert set(held["variants"]) == {"svm_rbf/rbf_rows/row_major", "svm_rbf/rbf_rows/column_major"}
    files = {name for listed in held["variants"].values() for name in listed}
    assert files == set(held["files"]) and files
    for name, text in held["files"].items():
        assert text == (ROOT / "workloads" / name).read_text()
