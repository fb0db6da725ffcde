"""The cross-tuning page: slowdowns by profile and device, and a heat map where there is any."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.judge.crosstuning import slowdowns
from perfport.model.record import Record
from perfport.report.pages.crosstuning import heat_map, largest
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
