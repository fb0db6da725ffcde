"""The table of the forms of peers."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from report_page import tables

from perfport.model.record import Failure, Status
from perfport.report.parts.forms import forms_table
from perfport.report.parts.ladder import ladders_of
from perfport.report.parts.markdown import NONE


def test_each_form_has_its_time_and_how_far_it_is_from_the_fastest_of_its_peer(tmp_path: Path) -> None:
    missing = Failure(reason="no such module")
    records = [
        data.record("own", 0.001), data.record("arm", 0.001, role="control"),
        *(
            data.record("library", time, role="peer", tunables={"form": form}, noise=0.0)
            for form, time in (("slow", 0.04), ("quick", 0.02))
        ),
        data.record("other", 0.08, role="peer", tunables={"form": "only"}, rung=2),
        data.record("gone", role="peer", rung=3, status=Status.UNAVAILABLE, failure=missing),
    ]  # fmt: skip
    made = forms_table(ladders_of([data.store(tmp_path / "run", records)]))
    (head, *lines), *_ = tables(made)
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    assert [(row["peer"], row["form"]) for row in rows] == [
        ("`library`", "form=quick"), ("`library`", "form=slow"), ("`other`", "form=only"), ("`gone`", NONE),
    ]  # fmt: skip
    shares = [float(row["over its fastest form"]) for row in rows[:3]]
    assert shares[0] == shares[2] == 1 and 1.9 < shares[1] < 2.1
    assert rows[0]["time"].startswith("20") and "no such module" in rows[3]["time"]
