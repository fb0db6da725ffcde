"""Comparable cases: which are ranked together, which is the fastest, and over what speed-ups are."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.model.record import Record, Status
from perfport.store.case import Case, cases_of
from perfport.store.comparable import Comparable, comparable, fastest, leading
from perfport.store.ratios import compare


def cases(folder: Path, *records: Record) -> list[Case]:
    """Return the records of a run as cases."""
    return cases_of(data.store(folder / "run", list(records)))


def only(folder: Path, *records: Record) -> Comparable[Case]:
    """Return the only comparable cases of some records."""
    (found,) = comparable(cases(folder, *records))
    return found


def name(case: Case | None) -> str:
    """Return the name of a case's variant, empty for none."""
    return case.record.identity.variant if case else ""


def test_the_fastest_is_ranked(tmp_path: Path) -> None:
    busy = data.record("b", 0.01, status=Status.CONTENDED)
    some = cases(tmp_path, data.record("a", 0.02), busy, data.record("c", 0.03), data.record("d", status=Status.WRONG))
    assert name(fastest(some)) == name(leading(some)) == "a"
    assert fastest([]) is leading([]) is None
    assert fastest(some[1:2]) is None and name(leading(some[1:2])) == "b", "a contended case is ahead of none"
    assert leading(some[3:]) is None


def test_a_control_arm_is_never_the_best(tmp_path: Path) -> None:
    records = [data.record("first", 0.04), data.record("rung", 0.02, rung=2), data.record("library", 0.03, role="peer")]
    without, beside = (
        only(tmp_path / str(len(some)), *some)
        for some in (records, [*records, data.record("less", 0.01, role="control")])
    )
    assert name(beside.best) == name(without.best) == "rung" and name(beside.best_peer) == "library"
    assert beside.peer_comparison == without.peer_comparison is not None
    assert beside.first_rung and without.first_rung
    assert beside.best_over(beside.first_rung) == without.best_over(without.first_rung)


def test_of_equal_times_the_first_of_the_table_counts(tmp_path: Path) -> None:
    """Whatever the order of the records, and whatever their keys."""
    later = data.record("z", 0.02, rung=2, key="0" * 16)
    earlier = data.record("a", 0.02, rung=1, key="f" * 16).model_copy(update={"timing": later.timing})
    for order in ([later, earlier], [earlier, later]):
        assert name(fastest(cases(tmp_path / order[0].key, *order))) == "a"


def test_times_are_ranked_on_one_clock(tmp_path: Path) -> None:
    """A host's variant has no device events: then all are ranked by wall time, which is 1.1 times the other here."""
    host = data.record("host", 0.0210, clock="wall", noise=0.0)
    some = only(tmp_path, data.record("kernel", 0.0200, noise=0.0), host)
    assert some.clock == "wall" and name(some.best) == "host"
    assert only(tmp_path / "x", data.record("kernel", 0.02)).clock == "span"


def test_where_the_fastest_result_has_no_clock_of_a_peer_its_variant_is_compared_by_another(tmp_path: Path) -> None:
    """A run without libraries takes no wall times; the peers of another run would seem not to have run."""
    peer = data.record("library", 0.0600, role="peer", clock="wall", noise=0.0)
    fast = data.record("kernel", 0.0200, clock="span", tunables={"group": 1}, noise=0.0)
    rival = data.record("other", 0.0202, noise=0.0)
    alone = only(tmp_path / "alone", peer, fast, rival)
    assert name(alone.best) == "kernel" and alone.peer_comparison is None, "of another variant it tells nothing"
    again = data.record("kernel", 0.0210, tunables={"group": 2}, noise=0.0)
    some = only(tmp_path / "some", peer, fast, rival, again)
    assert some.best and some.best.record is not again and some.peer_comparison
    assert some.peer_comparison.ratio.value == pytest.approx(0.06 / (1.1 * 0.021)) and some.peer_comparison.mixed
    assert some.best_peer and some.best_over(some.best_peer) == some.peer_comparison


@pytest.mark.parametrize(
    "other",
    [{"problem": "x"}, {"parameters": {"n": 1}}, {"precision": "fp16"}, {"device": data.GPU}, {"inputs": {"a": 5}},
     {"tunables": {"devices": 2}}],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_what_differs_in_one_of_these_is_not_comparable(tmp_path: Path, other: dict[str, object]) -> None:
    one, two = data.record("a", ceilings=None), data.record("b", ceilings=None, **other)
    assert [len(same.rows) for same in comparable(cases(tmp_path, one, two))] == [1, 1]


def test_more_devices_than_have_ids_are_several(tmp_path: Path) -> None:
    for count in (1, 2):
        (some,) = comparable(cases(tmp_path / str(count), data.record("a", tunables={"devices": count})))
        assert some.several == (count == 2)


def test_presets_of_equal_parameters_are_comparable(tmp_path: Path) -> None:
    assert len(only(tmp_path, data.record("a"), data.record("b", preset="large")).rows) == 2


def test_speed_ups_refer_to_the_first_rung_with_a_result(tmp_path: Path) -> None:
    some = only(
        tmp_path, data.record("lost", rung=1, status=Status.CRASHED), data.record("base", 0.05, rung=2),
        data.record("busy", 0.01, rung=3, status=Status.CONTENDED), data.record("calm", 0.04, rung=3),
        data.record("last", 0.02, rung=4), data.record("arm", 0.03, role="control"),
        data.record("library", 0.01, role="peer"), data.record("slow library", 0.09, role="peer"),
    )  # fmt: skip
    row = {name(case): case for case in some.rows}
    assert (name(some.first_rung), name(some.missing_first)) == ("base", "lost")
    assert (name(some.best), name(some.best_peer)) == ("last", "library")
    assert some.peer_comparison == compare(row["library"].record, row["last"].record)
    assert some.over_previous(row["last"]) == compare(row["calm"].record, row["last"].record)
    assert some.over_previous(row["calm"]) == compare(row["base"].record, row["calm"].record)
    assert some.over_previous(row["base"]) is None
    assert some.over_first(row["arm"]) == compare(row["base"].record, row["arm"].record)
    assert some.over_first(row["base"]) is some.over_first(row["library"]) is some.over_previous(row["arm"]) is None


def test_no_rung_is_missing_where_the_lowest_has_a_result(tmp_path: Path) -> None:
    lost = data.record("a lost setting", rung=1, status=Status.CRASHED)
    some = only(tmp_path / "rungs", lost, data.record("base", rung=1))
    assert name(some.first_rung) == "base" and some.missing_first is None
    without = only(tmp_path / "peer", data.record("library", role="peer"))
    assert without.first_rung is without.missing_first is None


def test_presets_are_ordered_by_the_first_row(tmp_path: Path) -> None:
    same = [data.record("a"), data.record("b", preset="large", rung=2)]
    some = comparable(cases(tmp_path, data.record("c", preset="full", parameters={"n": 1}), *same))
    assert [[name(row) for row in rows.rows] for rows in some] == [["a", "b"], ["c"]]


def test_the_order_is_that_of_tables(tmp_path: Path) -> None:
    records = [
        data.record("a", problem="z"), data.record("b", preset="large", parameters={"n": 2}),
        data.record("p", role="peer"),
        data.record("second", rung=2), data.record("first", rung=1), data.record("h", precision="fp16"),
    ]  # fmt: skip
    for given in (records, records[::-1]):
        some = comparable(cases(tmp_path / given[0].key, *given))
        assert [[name(row) for row in same.rows] for same in some] == [["first", "second", "p"], ["h"], ["b"], ["a"]]
