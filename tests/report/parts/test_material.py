"""What a suite report is made of: headline ladders, and which others come first where not all have room."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.report.parts.ladder import collected
from perfport.report.parts.material import Material, by_size, headline
from perfport.store.collection import Collection


def collection(folder: Path) -> Collection:
    """Return two problems at several sizes."""
    records = [
        data.record(
            "a", problem=problem, parameters={"points": n}, preset=None, key=f"{problem}{n}", ceilings=None,
            work=data.WORK.model_copy(update={"flops": n * 1e6}),
        )
        for problem, sizes in (("rows", (1, 2, 3)), ("argmin", (5,)))
        for n in sizes
    ]  # fmt: skip
    return Collection([data.store(folder, records)])


def test_of_every_problem_the_largest_come_first(tmp_path: Path) -> None:
    ordered = by_size(collected(collection(tmp_path)))
    assert [(ladder.problem, ladder.parameters["points"]) for ladder in ordered] == [
        ("argmin", 5), ("rows", 3), ("rows", 2), ("rows", 1),
    ]  # fmt: skip


def test_without_a_headline_size_the_largest_stands(tmp_path: Path) -> None:
    held = collection(tmp_path)
    first = headline(held, collected(held))
    assert {(ladder.problem, ladder.parameters["points"]) for ladder in first} == {("argmin", 5), ("rows", 3)}
    assert not any(first.values())
    made = Material.of(held, {}, [])
    assert made.off == [] and {ladder.problem for ladder in made.only("demo").ladders} == {"rows", "argmin"}
