"""The page of a comparison: what became of each case, the worse ones first."""

from __future__ import annotations

import re

import pytest
import report_data as data

from perfport.judge.compare import OWN, Kind, Pair
from perfport.model.record import Record, Status
from perfport.report.pages.compare import outcome, view
from perfport.store.ratios import compare


def pair(a: Record | None, b: Record | None, kind: Kind = "runs", name: str = "case") -> Pair:
    """Return two records as a pair."""
    return Pair(kind, name, a, b, compare(a, b) if a and b else None)


GOOD = data.record("a", 0.02, noise=0.001)


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        (data.record("a", 0.04, noise=0.001), "slower"), (data.record("a", 0.01, noise=0.001), "faster"),
        (GOOD, "same"), (data.record("a", status=Status.WRONG), "wrong"),
        (data.record("a", status=Status.CRASHED), "crashed"), (None, "missing in B"),
        (data.record("a", inputs={"a": 7}), "other inputs: seed 0; seed 7"),
    ],
)  # fmt: skip
def test_outcomes(b: Record | None, expected: str) -> None:
    assert outcome(pair(GOOD, b)).startswith(expected)


def test_what_one_side_need_not_have() -> None:
    assert outcome(pair(None, GOOD)) == "new in B" and outcome(pair(GOOD, None, "devices")) == "not in B"
    assert outcome(pair(data.record("a", status=Status.CRASHED), GOOD)) == "no result in A"


def test_worse_cases_come_first_and_every_row_names_its_records() -> None:
    slower = data.record("a", 0.04, noise=0.001)
    shown = view(
        "runs", "x", "y", [pair(GOOD, GOOD, name="1"), pair(GOOD, slower, name="2"), pair(GOOD, None, name="3")]
    )
    assert [row["case"] for row in shown.rows] == ["3", "2", "1"]
    assert shown.rows[1]["A record"] == GOOD.key and shown.rows[1]["ratio"] == pytest.approx(0.5, rel=0.01)
    assert "A: `x`, B: `y`. 1 missing in B, 1 same, 1 slower." in shown.markdown


def test_the_mean_is_geometric_and_tells_tuned_pairs_apart() -> None:
    twice, half, third = (data.record("a", seconds, noise=0.001) for seconds in (0.01, 0.04, 0.06))
    pairs = [pair(GOOD, other, "devices", str(n)) for n, other in enumerate((twice, half, twice, half, None))]
    own = [pair(GOOD, third, "devices", name + OWN) for name in ("p", "q")]
    shown = view("devices", "x", "y", [*pairs, *own]).markdown
    found = re.search(r"Geometric mean of B over A: (\S+) over 4 pairs; (\S+) over 2 pairs with tunables", shown)
    assert found and [float(mean) for mean in found.groups()] == pytest.approx([1, 1 / 3], rel=0.01)
    assert "Geometric mean" not in view("devices", "x", "y", pairs[:1]).markdown, "of one pair there is nothing to tell"
