"""The portability page: the metric as text, and the lines of code that all backends compile."""

from __future__ import annotations

from perfport.model.record import Interval
from perfport.report.pages.portability import convergence_table, metric
from perfport.untimed.convergence import ALL, Convergence


def test_a_metric_has_its_interval_and_zero_has_none() -> None:
    assert metric(Interval(value=0.5, low=0.4, high=0.6)) == "50.0 % (40.0–60.0)"
    assert metric(Interval(value=0.0, low=0.0, high=0.0)) == "0" and metric(None) == "–"


def test_convergence_by_problem_leaves_variants_out() -> None:
    lines = {"opencl": 9, "cuda": 8}
    entries = [
        Convergence(workload="demo", problem=problem, variant=variant, lines=lines, common=7, total=10)
        for problem, variant in (("rows", "a"), ("rows", ALL), (ALL, ALL))
    ]
    whole, short = convergence_table(entries, variants=True), convergence_table(entries, variants=False)
    assert "`a`" in whole and "`a`" not in short and "70.0 %" in short
    assert convergence_table(entries[:1], variants=False) == ""
