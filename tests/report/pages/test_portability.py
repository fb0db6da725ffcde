"""The portability page: the metric as text, and the lines of code that all backends compile."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.judge.portability import portability
from perfport.model.record import Interval
from perfport.report.pages.portability import cascade, convergence_table, metric
from perfport.store.collection import Collection
from perfport.untimed.convergence import ALL, Convergence


def test_a_metric_has_its_interval_and_zero_has_none() -> None:
    assert metric(Interval(value=0.5, low=0.4, high=0.6)) == "50.0 % (40.0–60.0)"
    assert metric(Interval(value=0.0, low=0.0, high=0.0)) == "0" and metric(None) == "–"


def test_convergence_by_problem_leaves_variants_out() -> None:
    lines = {"opencl": 9, "cuda": 8}
    entries = [
        Convergence(workload="demo", problem=problem, variant=variant, lines=lines, common=7, total=10, convergence=0.6)
        for problem, variant in (("rows", "a"), ("rows", ALL), (ALL, ALL))
    ]
    whole, short = convergence_table(entries, variants=True), convergence_table(entries, variants=False)
    assert "`a`" in whole and "`a`" not in short and "70.0 %" in short
    assert convergence_table(entries[:1], variants=False) == ""


def test_a_cascade_takes_three_chips(tmp_path: Path) -> None:
    ids = (data.POCL, data.INTEL, data.GPU)
    records = [data.record("a", 0.02, device=id_) for id_ in ids]
    for number, chips in enumerate((("x", "x", "y"), ("x", "y", "z"))):
        devices = {id_: data.device(id_, chip=chip) for id_, chip in zip(ids, chips, strict=True)}
        run = data.store(tmp_path / str(number), records, data.environment(devices=devices))
        collection = Collection([run])
        metrics = portability(collection, collection.places)
        assert (cascade(metrics) is not None) == (len(set(chips)) == 3)
