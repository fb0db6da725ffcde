"""Across settings: speed-ups over each peer, break-even along an axis, declared figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.record import Record, Status
from perfport.report.pages.run import render
from perfport.report.parts.sweeps import break_even

FIGURES = {
    "sparse": {"title": "Demo", "problems": {"rows": {"title": "Rows", "figures": {"Sizes": ["bytes", "kept"]}}}}
}


def at(sparsity: float, own: float, peer: float, **library: Any) -> list[Record]:
    """One setting: two own variants and two peers, one of them of another class."""

    def made(variant: str, seconds: float, **given: Any) -> Record:
        key = f"{data.hash_of(f'{variant} {sparsity}'):012x}"
        parameters = {"sparsity": sparsity, "n": 7}
        shared = {"workload": "sparse", "problem": "rows", "parameters": parameters, "ceilings": None}
        return data.record(variant, seconds, key=key, **shared, **given)

    return [
        made("first", 10 * own, role="rung", rung=1),
        made("second", own, role="rung", rung=2, extra={"bytes": int(100 * sparsity)}),
        made("library", peer, role="peer", rung=1, **library),
        made("library_tf32", own / 4, role="peer", rung=2, precision="tf32"),
    ]


def page(tmp_path: Path, records: list[Record]) -> str:
    render([data.store(tmp_path / "run", records, data.environment(workloads=FIGURES))], tmp_path / "page.md")
    return (tmp_path / "page.md").read_text()


def lines(markdown: str, title: str) -> list[list[str]]:
    """Cells of the table below a title in bold."""
    after = markdown.partition(f"**{title}")[2].split("\n\n")[1]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in after.splitlines()]


def test_speed_ups_over_each_peer_by_setting(tmp_path: Path) -> None:
    records = [*at(0.5, 0.04, 0.02), *at(0.7, 0.02, 0.02 * 1.5), *at(0.9, 0.01, 0.08)]
    markdown = page(tmp_path, records)
    head, _, *rows, mean = lines(markdown, "Speed-up over each peer")
    assert head == ["setting", "best variant", "time", "over `library`", "over `library_tf32` (tf32)"]
    assert [row[0] for row in rows] == ["sparsity=0.5", "sparsity=0.7", "sparsity=0.9"]
    assert all(row[1] == "`second`" for row in rows)
    found = [float(row[3].strip("*")) for row in rows]
    assert found == pytest.approx([0.5, 1.5, 8], rel=0.02) and rows[0][3].startswith("**")
    assert float(mean[3]) == pytest.approx((found[0] * found[1] * found[2]) ** (1 / 3), rel=0.01)
    assert all(float(row[4].strip("*")) == pytest.approx(0.25, rel=0.02) and row[4].startswith("**") for row in rows)


def test_break_even_lies_between_the_settings_around_it(tmp_path: Path) -> None:
    records = [*at(0.5, 0.04, 0.02), *at(0.7, 0.02, 0.04), *at(0.9, 0.01, 0.08)]
    rows = lines(page(tmp_path, records), "Break-even")[2:]
    ends = {peer: row[-1] for row in rows for peer in row[-2].split(", ")}
    start = re.fullmatch(r"faster from ([\d.]+) on", ends["`library`"])
    assert start and float(start.group(1)) == pytest.approx(0.6, abs=0.01)
    assert ends["`library_tf32` (tf32)"] == "slower from 0.500 to 0.900"


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1, 2.0), (2, 3.0), (3, 1.5)], "faster from 1.00 to 3.00"),
        ([(1, 4.0), (2, 0.25), (4, 4.0)], "slower from 1.50 on, faster from 3.00 on"),
        ([(0, 0.5), (1, 1.0), (2, 2.0)], "faster from 1.00 on"),
    ],
)
def test_break_even(points: list[tuple[float, float]], expected: str) -> None:
    assert break_even(points) == expected


def test_a_less_exact_class_has_peers_of_its_own(tmp_path: Path) -> None:
    records = [*at(0.5, 0.04, 0.02), *at(0.9, 0.01, 0.08)]
    own = [
        data.record(
            "rounded", 0.003, role="beyond", rung=3, precision="tf32", key=f"{data.hash_of(str(sparsity)):012x}",
            workload="sparse", problem="rows", parameters={"sparsity": sparsity, "n": 7}, ceilings=None,
        )
        for sparsity in (0.5, 0.9)
    ]  # fmt: skip
    markdown = page(tmp_path, [*records, *own])
    _, _, less_exact = markdown.partition("**Speed-up over each peer**, tf32")
    head, *_ = less_exact.partition("\n\n")[2].splitlines()
    assert "over `library_tf32`" in head and "`library`" not in head and "(tf32)" not in head


def test_wrong_results_and_single_settings_are_left_out(tmp_path: Path) -> None:
    assert "Across settings" not in page(tmp_path / "one", [r for r in at(0.5, 0.04, 0.02) if not r.extra])
    records = [*at(0.5, 0.04, 0.02, status=Status.WRONG), *at(0.9, 0.01, 0.08)]
    head, _, *rows = lines(page(tmp_path / "two", records), "Speed-up over each peer")
    over = [row[head.index("over `library`")] for row in rows]
    assert over[0] == "–" and float(over[1]) == pytest.approx(8, rel=0.02) == float(over[2])


def test_declared_figures_have_a_table(tmp_path: Path) -> None:
    head, _, *rows = lines(page(tmp_path, [*at(0.5, 0.04, 0.02), *at(0.9, 0.01, 0.08)]), "Sizes")
    assert head == ["setting", "variant", "bytes"]  # nothing was kept
    assert rows == [["sparsity=0.5", "`second`", "50"], ["sparsity=0.9", "`second`", "90"]]
