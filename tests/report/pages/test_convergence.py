"""The view of code convergence: a row for each, with the lines of each backend."""

from __future__ import annotations

from perfport.report.pages.convergence import view
from perfport.untimed.convergence import ALL, Convergence


def test_rows_and_table() -> None:
    lines = {"OpenCL, CPU": 8, "CUDA": 6}
    common = {"lines": lines, "common": 5, "total": 10}
    made = [
        Convergence(workload="w", problem="p", variant=name, convergence=held, **common)
        for name, held in (("v", 0.4), (ALL, None))
    ]
    shown = view(made)
    assert [(row["variant"], row["lines OpenCL, CPU"], row["lines CUDA"], row["common"]) for row in shown.rows] == [
        ("v", 8, 6, 5), (ALL, 8, 6, 5),
    ]  # fmt: skip
    by_variant, of_all = (line for line in shown.markdown.splitlines() if "| 10 |" in " ".join(line.split()))
    assert "`v`" in by_variant and "50.0 %" in by_variant and "40.0 %" in by_variant
    assert "50.0 %" in of_all and "–" in of_all
