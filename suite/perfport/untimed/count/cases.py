"""From an executed case and what a tool saw of it to its count."""

from __future__ import annotations

from datetime import UTC, datetime

from ...model.record import Identity, Status
from ...model.work import Traffic
from ..child import Outcome
from . import profiled
from .counts import Comparison, Count, Verdict, compare, overall
from .simulated import Tally


def begun(identity: Identity, outcome: Outcome, seed: int, tool: str, version: str) -> Count:
    """Return the count of a case, without any quantity yet."""
    unsupported = outcome.status in (Status.UNSUPPORTED, Status.UNAVAILABLE)
    return Count(
        identity=identity, time=datetime.now(UTC).isoformat(timespec="seconds"), seed=seed, tool=tool,
        tool_version=version, status=outcome.status, reason=outcome.reason, declared=outcome.traffic,
        verdict=Verdict.UNSUPPORTED if unsupported else Verdict.FAILED,
    )  # fmt: skip


def complete(count: Count, outcome: Outcome, tally: Tally) -> None:
    """Fill in what Nsight Compute saw of a case, held to what the variant declares."""
    if count.status is not Status.OK:
        return
    count.stalls = profiled.stalls(tally)
    declared, counted = outcome.traffic or Traffic(), profiled.traffic(tally)
    judged = ("flops",) if outcome.traffic and outcome.unit in profiled.FLOATING_UNITS else ()
    shown = tuple(name for name in profiled.COUNTED if name not in judged)
    expansion = {"flops": profiled.expanded_flops(tally)}
    fill(count, tally, counted, compare(declared, counted, judged, shown, expansion))


def fill(count: Count, tally: Tally, counted: Traffic, quantities: dict[str, Comparison]) -> None:
    """Fill in what a tool counted, and how that compares."""
    count.counted, count.quantities = counted, quantities
    count.launches, count.raw, count.unknown = tally.launches, tally.raw, tally.unknown
    count.coalescing = tally.coalescing
    count.verdict = overall(quantities) if count.declared else Verdict.UNDECLARED
