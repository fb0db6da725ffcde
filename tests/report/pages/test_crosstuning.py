"""The cross-tuning page: slowdowns by profile and device, and a heat map where there is any."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.judge.crosstuning import slowdowns
from perfport.model.record import Record
from perfport.report.pages.crosstuning import heat_map, largest, view
from perfport.store.collection import Collection


def test_a_map_without_a_number_is_none() -> None:
    assert heat_map("n", "t", ["native"], ["a"], [[None]]) is None
    plot = heat_map("n-m", "t", ["native", "hd7970"], ["a"], [[1.0], [None]])
    assert plot and plot.name == "n-m.svg" and b"no result" in plot.content and b"1.00" in plot.content


def test_each_device_is_shown_at_its_largest_setting(tmp_path: Path) -> None:
    def record(points: int, device: str, profile: str | None) -> Record:
        name = f"{data.hash_of(f'{points}{device}{profile}'):016x}"
        work = data.WORK.model_copy(update={"flops": 1e8 * points})
        return data.record(
            "local_memory", device=device, profile=profile, key=name, parameters={"n": points}, work=work, ceilings=None
        )

    cells = [(1, data.POCL), (1, data.INTEL), (2, data.POCL)]
    records = [record(*cell, profile) for cell in cells for profile in (None, "hd7970")]
    held = Collection([data.store(tmp_path / "run", records)])
    shown = largest(slowdowns(held), held)
    places = {(one.subject.values["n"], one.site.name) for one in shown}
    assert places == {(2, data.POCL), (1, data.INTEL)} and len(slowdowns(held)) == 6


def test_settings_of_one_preset_have_a_matrix_and_a_plot_each(tmp_path: Path) -> None:
    def record(points: int, precision: str, profile: str | None) -> Record:
        name = f"{data.hash_of(f'{points}{precision}{profile}'):016x}"
        return data.record(
            "local_memory", profile=profile, key=name, parameters={"n": points}, precision=precision, ceilings=None
        )

    records = [record(n, kind, who) for n in (1, 2) for kind in ("fp32", "tf32") for who in (None, "hd7970")]
    made = view(Collection([data.store(tmp_path / "run", records)]))
    headings = [line for line in made.markdown.splitlines() if line.startswith("## ")]
    assert headings == [
        f"## `demo/rows`, quick, n={n}, {kind}: `local_memory`" for n in (1, 2) for kind in ("fp32", "tf32")
    ]
    assert len({plot.name for plot in made.plots}) == 4
