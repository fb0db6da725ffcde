"""Columns: a frame has the types and units that its columns state, also where it has no row."""

from __future__ import annotations

import pytest

from perfport.store.columns import CASE, LADDER, SCHEMA, Column, frame_of

COLUMNS = {
    "name": Column("category", "", "a name", ("late", "early", "never")), "count": Column("Int64", "1", "a number"),
    "seconds": Column("float64", "s", "a time"), "at": Column("time", "UTC", "when"),
}  # fmt: skip


@pytest.mark.parametrize(
    "rows", [[], [{"name": "early", "seconds": 1.5}, {"name": "late", "at": "2026-11-21T12:00:00Z"}]]
)
def test_types_units_and_order_of_categories(rows: list[dict[str, object]]) -> None:
    frame = frame_of(COLUMNS, rows)
    assert [str(dtype) for dtype in frame.dtypes][:3] == ["category", "Int64", "float64"]
    assert str(frame["at"].dtype.tz) == "UTC" and frame.attrs["units"] == {"count": "1", "seconds": "s", "at": "UTC"}
    assert list(frame["name"].cat.categories) == [n for n in ("late", "early") if any(n in r.values() for r in rows)]
    assert len(frame) == len(rows) and frame["count"].isna().all()


@pytest.mark.filterwarnings("error")
def test_a_value_that_no_version_of_ours_wrote_is_kept_behind_the_others() -> None:
    frame = frame_of(COLUMNS, [{"name": "zebra"}, {"name": "early"}, {}, {"name": "ant"}])
    assert list(frame["name"].cat.categories) == ["early", "ant", "zebra"]
    assert list(frame["name"].dropna()) == ["zebra", "early", "ant"]


def test_what_names_a_case_and_a_ladder_are_columns() -> None:
    assert {*CASE, *LADDER} <= set(SCHEMA["cases"]) and all(
        set(CASE) <= set(SCHEMA[n]) for n in ("samples", "instances")
    )
