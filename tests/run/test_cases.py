"""Which cases of a plan are left, what rounds their samples get, and the records of cases."""

from __future__ import annotations

import re

import pytest
import report_data as data

from perfport.measure.repeats import workers_of
from perfport.measure.sampling import Targets
from perfport.model.device import DeviceInfo
from perfport.model.record import RETRY, Failure, Record, Status
from perfport.run.cases import Case, Group, measurements, pending, rounds_after, undisturbed

NAMES = ("fast", "slow", "other", "last")


def record(variant: str, status: Status = Status.OK, rounds: range = range(20), workers: int = 1) -> Record:
    """A record with samples in some rounds, of one worker or several."""
    made = data.record(variant, status=status)
    if made.timing:
        made.timing.rounds = list(rounds)
        made.timing.workers = [i % workers for i in range(len(rounds))] if workers > 1 else []
    return made


def group(workers: int = 1, first_round: int = 0) -> Group:
    """The four cases in one group."""
    identities = [record(name) for name in NAMES]
    first = identities[0].identity
    return Group(
        device=DeviceInfo.model_validate(data.device(first.devices[0])), workload=first.workload, problem=first.problem,
        preset=first.preset, parameters=first.parameters, inputs={"a": 7}, targets=Targets(), timeout=1,
        workers=workers, first_round=first_round, cases=[Case(key=r.key, identity=r.identity) for r in identities],
    )  # fmt: skip


def test_pending_keeps_order_and_drops_empty_groups() -> None:
    whole = group()
    done = [record("fast"), record("slow", Status.CRASHED), record("other", Status.WRONG), record("last")]
    assert pending([whole], done) == []
    (left,) = pending([whole], done, RETRY["failed"])
    assert [case.identity.variant for case in left.cases] == ["slow", "other"]
    (left,) = pending([whole], done[3:])
    assert left.cases == whole.cases[:3]


def test_what_fewer_workers_measured_than_wanted_is_left_with_its_samples() -> None:
    done = [record("fast", workers=2), record("slow"), record("other", Status.CRASHED)]
    (left,) = pending([group(workers=2)], done)
    assert [(case.identity.variant, case.earlier) for case in left.cases] == [("slow", done[1]), ("last", None)]


def test_what_a_killed_run_left_contended_goes_on_from_its_quiet_workers() -> None:
    """In a new process: partly measured at once, what all workers measured where it is asked for."""
    contended = Status.CONTENDED
    quiet = [record(name, rounds=range(6), workers=2) for name in ("fast", "slow")]
    done = [*quiet, record("fast", contended, workers=3), record("slow", contended, workers=3)]
    (left,) = pending([group(workers=4)], done)
    assert [case.earlier for case in left.cases] == [*quiet, None, None]
    done += [record("other", workers=3), record("last", workers=3)]
    assert pending([group(workers=3)], done) == []
    (left,) = pending([group(workers=3)], done, RETRY["contended"])
    assert [(case.identity.variant, case.earlier) for case in left.cases] == [("fast", quiet[0]), ("slow", quiet[1])]
    assert measurements([left]) == 2


def test_only_what_quiet_workers_measured_is_undisturbed() -> None:
    one, two = record("fast"), record("fast", workers=2)
    late = record("fast", Status.CONTENDED)
    assert undisturbed([one, two]) == {one.key: two}
    assert undisturbed([one, record("fast", Status.CONTENDED, workers=2)]) == {one.key: one}
    assert undisturbed([one, late]) == {}, "a probe after the group took it back"
    assert undisturbed([one, two, late]) == {}
    assert undisturbed([one, record("fast", Status.WRONG)]) == {}, "nothing is kept of what was wrong once"
    impossible = record("fast", workers=2).model_copy(update={"status": Status.IMPOSSIBLE})
    assert workers_of(impossible) == 2 and undisturbed([one, impossible]) == {}


def test_what_is_measured_later_shares_no_round_with_what_is_stored() -> None:
    """Samples of a contended case that is measured again hours later are not paired with those of that day."""
    done = [
        record("fast", rounds=range(12)),
        record("slow", Status.CONTENDED, range(30)),
        record("other"),
        record("last"),
    ]
    (left,) = pending([group()], done, RETRY["contended"])
    assert [case.identity.variant for case in left.cases] == ["slow"] and left.first_round == 30
    (left,) = pending([group(first_round=40)], done, RETRY["contended"])
    assert left.first_round == 40
    (left,) = pending([group()], [])
    assert left.first_round == 0


def test_rounds_go_on_beside_cases_that_are_not_planned_now() -> None:
    done = [record("elsewhere", rounds=range(25)), record("slow", Status.CONTENDED, range(9))]
    (left,) = pending([group()], done, RETRY["contended"])
    assert left.first_round == 25
    other = done[0].model_copy(update={"identity": done[0].identity.model_copy(update={"problem": "another"})})
    (left,) = pending([group()], [other, done[1]], RETRY["contended"])
    assert left.first_round == 9, "samples of another problem are never beside these"


def test_a_place_is_the_same_for_a_plan_and_for_records_on_disk() -> None:
    planned = group().model_copy(update={"parameters": {"classes": (1, 2)}})
    identity = record("fast").identity.model_copy(update={"parameters": {"classes": [1, 2]}})
    stored = record("fast", rounds=range(3)).model_copy(update={"identity": identity})
    assert rounds_after([stored]) == {planned.place: 3}


def test_a_record_of_a_case_says_when_and_why() -> None:
    case = group().cases[0]
    made = case.record("run", 7, Status.CRASHED, failure=Failure(reason="because"))
    assert (made.key, made.run, made.seed, made.status) == (case.key, "run", 7, Status.CRASHED)
    assert made.failure and made.failure.reason == "because" and made.identity == case.identity
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", made.time)


@pytest.mark.parametrize(("preset", "expected"), [("tiny", "(tiny)"), (None, "points=")])
def test_titles(preset: str | None, expected: str) -> None:
    assert expected in group().model_copy(update={"preset": preset}).title
