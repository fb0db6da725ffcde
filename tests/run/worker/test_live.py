"""A case while it is measured: the worst verification counts, and what workers before have measured stays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import report_data as data

from perfport.model.record import Failure, Overheads, Record, Status
from perfport.model.work import Traffic
from perfport.run.cases import Case
from perfport.run.worker.live import Live
from perfport.workload import Variant


class Set:
    """What `Live` asks of a built variant."""

    def __init__(self, traffic: Traffic | None) -> None:
        self.variant = self
        self._traffic = traffic
        self.released = 0

    def launch(self) -> None: ...

    def traffic(self) -> Traffic | None:
        return self._traffic

    def notes(self) -> dict[str, Any]:
        return {"figure": 1}

    def release(self) -> None:
        self.released += 1


def live(*instances: Traffic | None, earlier: Record | None = None) -> Live:
    """A case on some instances."""
    record = data.record("a")
    case = Case(key=record.key, identity=record.identity, earlier=earlier)
    made = Live(case, type("V", (Variant,), {"host": True}), record)
    for name, traffic in zip("abc", instances, strict=False):
        made.add(name, cast(Any, Set(traffic)), cast(Any, None), lambda *_: None)
    return made


def test_the_worst_verification_counts() -> None:
    found = live(None)
    right, wrong = data.verification(True), data.verification(False)
    for error in right.outputs.values():
        error.relative_l2 = 10 * wrong.worst  # within a tolerance of its own
    found.record.verification = None
    for outcome, passed in ((right, True), (wrong, False), (right, False)):
        found.verified(outcome)
        assert found.record.verification and found.record.verification.passed is passed


def test_of_verifications_that_pass_the_less_exact_counts() -> None:
    found = live(None)
    found.record.verification = None
    for error, kept in ((1e-7, 1e-7), (1e-5, 1e-5), (1e-6, 1e-5)):
        outcome = data.verification(True)
        for output in outcome.outputs.values():
            output.relative_l2 = error
        found.verified(outcome)
        assert found.record.verification and found.record.verification.worst == kept


def test_code_is_named_by_the_first_digits_of_its_hashes() -> None:
    found = live(None, None)
    for built, digit in zip(found.instances.values(), "ba", strict=True):
        artifact = SimpleNamespace(source_hash=64 * digit, options=["-O2", digit])
        vars(built)["setup"] = SimpleNamespace(artifacts=[artifact, artifact], kernels=[])
    vars(found.first)["unit"] = "GB/s"
    found.describe()
    assert found.record.source_hash == f"{16 * 'a'}+{16 * 'b'}" and found.record.options == ["-O2", "a", "b"]


def test_traffic_is_the_mean_of_the_instances_or_unknown() -> None:
    found = live(Traffic(flops=2), Traffic(flops=8))
    found.account()
    assert (
        found.record.traffic and found.record.traffic.flops == pytest.approx(4) and found.record.extra == {"figure": 1}
    )
    found = live(Traffic(flops=2), None)
    found.account()
    assert found.record.traffic is None


def test_compared_executions_of_all_instances_and_workers_are_counted() -> None:
    for before, counted in ((None, 24), (20, 44)):
        earlier = data.record("a")
        earlier.verification = data.verification(True).model_copy(update={"executions": before})
        found = live(None, None, earlier=earlier)
        found.record.verification = data.verification(True)
        for audit, executions in zip(found.audits.values(), (20, 4), strict=True):
            audit.executions = executions
        found.account()
        assert found.record.verification and found.record.verification.executions == counted


def test_contention_of_an_earlier_worker_stays() -> None:
    assert live(None).contention() == ""
    earlier = data.record("a", status=Status.CONTENDED)
    earlier.failure = Failure(reason="somebody else")
    found = live(None, earlier=earlier)
    assert found.contention() == "somebody else"
    found.watch = cast(Any, type("W", (), {"reason": lambda self: "now"})())
    assert found.contention() == "now"


def test_samples_are_joined_to_those_of_the_worker_before() -> None:
    earlier = data.record("a")
    assert earlier.timing
    later = earlier.timing.model_copy(update={"rounds": [n + 100 for n in earlier.timing.rounds]})
    subject: Any = type("S", (), {"timing": lambda self, targets: later})()
    targets: Any = None
    assert live(None).timing(subject, targets) is later
    joined = live(None, earlier=earlier).timing(subject, targets)
    assert joined.rounds == [*earlier.timing.rounds, *later.rounds] and set(joined.workers) == {0, 1}


def test_the_sampler_s_subject_and_release() -> None:
    found = live(None, None)
    subject = found.subject()
    assert (subject.key, list(subject.instances), subject.rank) == (found.case.key, ["a", "b"], "wall")
    found.release()
    assert [cast(Any, built).released for built in found.instances.values()] == [1, 1]


def test_what_is_withdrawn_is_in_no_record_that_follows() -> None:
    found = live(None)
    before, kept = found.record, found.record.verification
    found.withdraw()
    assert before.timing and before.metric and before.problem_bound and before.overheads.compile_s
    after = found.record
    assert [after.timing, after.metric, after.problem_bound, after.variant_bound, after.datasheet_bound] == [None] * 5
    assert after.overheads == Overheads() and after.verification == kept and after.key == before.key
