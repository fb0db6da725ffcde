"""Counts from what a tool saw: status, verdict, tolerance."""

from __future__ import annotations

from typing import Any

import pytest

from perfport.model.record import Identity, Status
from perfport.model.work import Traffic
from perfport.untimed.child import CheckCase, Outcome
from perfport.untimed.count import Verdict
from perfport.untimed.count.cases import begun, complete
from perfport.untimed.count.simulated import Tally

IDENTITY = Identity(workload="w", problem="p", variant="v", devices=["cuda:nvidia:0"], backend="cuda")
FADD, XU = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "smsp__inst_executed_pipe_xu.sum"


def counted(flops: float, status: Status = Status.OK, **outcome: Any) -> Any:
    """The count of a case in which 1000 FLOP were seen, one special function of a warp among them."""
    declared = {"traffic": Traffic(flops=flops), **outcome}
    made = Outcome(case=CheckCase(variant="v"), status=status, reason="why", **declared)
    count = begun(IDENTITY, made, 1, "ncu", "2025.3")
    tally = Tally()
    tally.add("work", {FADD: 2000.0, XU: 1.0})
    complete(count, made, tally)
    return count


@pytest.mark.parametrize(
    ("count", "verdict"),
    [
        (counted(2000), Verdict.AGREES),
        (counted(1000), Verdict.AGREES),  # 1024 more may come of one special function of a warp
        (counted(900), Verdict.DEVIATES),
        (counted(2200), Verdict.DEVIATES),
        (counted(9, unit="dp4a"), Verdict.AGREES),  # on a unit that does no floating-point work it is shown alone
        (counted(0, traffic=None), Verdict.UNDECLARED),
        (counted(2000, Status.WRONG), Verdict.FAILED),
        (counted(2000, Status.UNSUPPORTED), Verdict.UNSUPPORTED),
    ],
)
def test_verdicts(count: Any, verdict: Verdict) -> None:
    assert count.verdict is verdict and count.reason == "why" and count.tool_version == "2025.3"
    assert (count.counted is None) == (count.status is not Status.OK)
