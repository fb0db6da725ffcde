"""Keys of series: what makes two measurements comparable, and what a place is called."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.nightly.place import Place, experiment_name, series_key


def test_a_key_says_all_that_two_measurements_must_share(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [data.record("v")])
    (record,) = run.records
    place = Place.of(series_key(run, record))
    assert (place.experiment, place.workload, place.problem) == (experiment_name(run), "demo", "rows")
    assert (place.variant, place.devices, place.inputs) == ("v", record.identity.devices, record.inputs)
    assert Place.of(series_key(run, record, "other")).experiment == "other"
    assert place.names == ("demo", "rows", "v", place.site, "fp32")


def test_what_is_left_out_of_a_looser_key() -> None:
    values = ["nightly", "w", "p", {"n": 3}, "v", {"group": 64}, ["d"], ["chip"], "opencl", None, "fp32", {"a": 1}]
    place = Place(*values)  # type: ignore[arg-type]

    def changed(at: int, value: object) -> Place:
        return Place(*[value if number == at else held for number, held in enumerate(values)])  # type: ignore[arg-type]

    redrawn, other_chip, other_size = changed(11, {"a": 2}), changed(7, ["chip 2"]), changed(3, {"n": 4})
    assert place.drawn == redrawn.drawn != other_chip.drawn
    assert place.loose == redrawn.loose == other_chip.loose != other_size.loose
    assert place.title == "w/p v n=3 [group=64]" and place.site == "d (chip)"
    assert changed(9, "hd7970").title == "w/p v n=3 [group=64] profile hd7970"
    assert changed(10, "int8").title == "w/p v n=3 [group=64] int8"
