"""The view of code convergence: a row for each, with the lines of each backend."""

from __future__ import annotations

from perfport.report.pages.convergence import view
from perfport.untimed.convergence import ALL, Convergence


def test_rows_and_table() -> None:
    lines = {"opencl": 8, "cuda": 6}
    made = [
        Convergence(workload="w", problem="p", variant=name, lines=lines, common=5, total=10) for name in ("v", ALL)
    ]
    shown = view(made)
    assert [(row["variant"], row["lines opencl"], row["lines cuda"], row["common"]) for row in shown.rows] == [
        ("v", 8, 6, 5), (ALL, 8, 6, 5),
    ]  # fmt: skip
    assert "50.0 %" in shown.markdown and "`v`" in shown.markdown
