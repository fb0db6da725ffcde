"""The comparison of variants and devices: the settings that stand for a problem, and those that a page shows."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.report.pages.table import (
    MOST_SETTINGS,
    archival_table,
    best_dots,
    chosen_settings,
    headline,
    labels,
    share_dots,
    view,
)
from perfport.report.parts.ladder import collected
from perfport.store.collection import Collection


def sized(points: int, device: str = data.POCL, seconds: float = 0.05) -> list[data.Record]:
    """Return two records at a setting whose useful work grows with it."""
    work = data.WORK.model_copy(update={"flops": float(points), "read_bytes": 1e6})
    change = {"parameters": {"points": points}, "preset": None, "device": device, "work": work, "ceilings": None}
    named = ((name, f"{data.hash_of(f'{name}{points}{device}'):016x}") for name in ("a", "b"))
    return [data.record(name, seconds, key=key, **change) for name, key in named]


SMALL, BIG, BEYOND = ({"points": points} for points in (2, 4, 9))


def collection(folder: Path, cpu: dict[str, int] = SMALL, gpu: dict[str, int] = BIG) -> Collection:
    """Five settings on a CPU and a GPU, the two smallest of them on another CPU too, and what the problem declares."""
    records = [record for points in range(1, 6) for device in (data.POCL, data.GPU) for record in sized(points, device)]
    records += [record for points in (1, 2) for record in sized(points, data.INTEL)]
    declared = {"rows": {"title": "Rows", "headline": {"cpu": cpu, "gpu": gpu}}}
    about = {"demo": {"title": "Demonstration", "problems": declared, "published": data.PUBLISHED}}
    return Collection([data.store(folder / "run", records, data.environment(workloads=about))])


def test_a_problem_stands_at_the_headline_size_of_each_class(tmp_path: Path) -> None:
    held = collection(tmp_path)
    first = headline(held, collected(held))
    assert {(ladder.site, ladder.parameters["points"], off) for ladder, off in first.items()} == {
        (data.INTEL, 2, False), (data.POCL, 2, False), (data.GPU, 4, False),
    }  # fmt: skip


def test_a_device_without_a_result_of_that_size_stands_at_its_largest(tmp_path: Path) -> None:
    held = collection(tmp_path, cpu=BIG, gpu=BEYOND)
    first = headline(held, collected(held))
    assert {(ladder.site, ladder.parameters["points"], off) for ladder, off in first.items()} == {
        (data.INTEL, 2, True), (data.POCL, 4, False), (data.GPU, 5, True),
    }  # fmt: skip


def test_a_page_shows_those_settings_and_then_the_largest(tmp_path: Path) -> None:
    held = collection(tmp_path)
    ladders = collected(held)
    shown = chosen_settings(ladders, headline(held, ladders))
    assert [same[0].parameters["points"] for same in shown] == [4, 2, 5, 3] and len(shown) == MOST_SETTINGS


def test_of_several_inputs_a_summary_shows_those_of_the_latest_result(tmp_path: Path) -> None:
    late = data.record("a", key="f" * 16, time="2099-01-01T00:00:00.000+00:00").model_copy(update={"seed": 9})
    held = Collection([data.store(tmp_path / "1", [data.record("a")]), data.store(tmp_path / "2", [late])])
    ladders = collected(held)
    assert len(ladders) == 2
    assert [ladder.subject.inputs for ladder in headline(held, ladders)] == ["seed 9"]


def test_archival_devices_are_beside_the_size_of_a_gpu(tmp_path: Path) -> None:
    """Also where the ladder of a CPU comes first."""
    sizes = [(data.POCL, data.CEILINGS, 1000, 0.05), (data.GPU, data.GPU_CEILINGS, 100_000, 3e-4)]
    records = [
        data.record("a", seconds, device=device, parameters={"points": n}, preset=None, ceilings=ceilings)
        for device, ceilings, n, seconds in sizes
    ]
    held = Collection([data.store(tmp_path, records)])
    ladders = collected(held)
    assert [ladder.site for ladder in ladders] == [data.POCL, data.GPU]
    note = archival_table(ladders)
    assert "datasheets give at no preset: points=100000" in note and f"best on `{data.GPU}` over the datasheet" in note


def test_without_bounds_there_is_nothing_to_draw(tmp_path: Path) -> None:
    held = collection(tmp_path)
    ladders = collected(held)
    assert share_dots(held, ladders, "n", "t") is best_dots(held, ladders, "n") is None
    bounded = Collection([data.store(tmp_path / "b", [data.record("a")])])
    plot = best_dots(bounded, collected(bounded), "n")
    assert plot and plot.name == "n.svg" and labels(bounded) == [data.POCL]


def test_rows_have_every_case_and_the_published_figures(tmp_path: Path) -> None:
    held = collection(tmp_path)
    rows = view(held).rows
    assert sum(row["provenance"] == "measured" for row in rows) == len(held.cases) == 24
    assert sum(row["provenance"] == "published" for row in rows) == len(data.PUBLISHED)
