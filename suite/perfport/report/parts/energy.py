"""The table of energy of a ladder: joules of one execution, and useful work for each joule."""

from __future__ import annotations

from ...model.record import Energy, Interval, Record
from ...store.ratios import time_of
from .ladder import Ladder, Row
from .markdown import NONE, join, table, text
from .marks import marks
from .quantities import interval, scaled, seconds, significant, time_scale

#: A metric in this unit for each second says as much as useful operations for each joule do.
OPERATIONS = "FLOP/s"


def energy_table(ladder: Ladder) -> str:
    """Return the energy of the ladder's cases, or why it is absent; empty where none was asked for."""
    shown = [(row, row.record.energy) for row in ladder.measured if row.record.energy]
    if not shown:
        return ""
    title = "**Energy of one execution** (measured)"
    known = [energy for _, energy in shown if energy.joules]
    reasons = list(dict.fromkeys(energy.absent for _, energy in shown if energy.absent))
    if not known and len(reasons) == 1:
        return f"{title}: absent ({text(str(reasons[0]), 200)})."
    factor, unit = time_scale([energy.joules.value for energy in known if energy.joules])
    rows = [_row(ladder, row, energy, factor) for row, energy in shown]
    headers = [
        "variant", f"{unit.removesuffix('s')}J", "power, W", "at rest, W", "useful operations per J", "metric per J",
        "time in the loops", "executions", "absent",
    ]  # fmt: skip
    domains = ", ".join(dict.fromkeys(text(str(energy.domain)) for energy in known))
    note = (
        f"Of {domains}, power at rest included; executions back to back, without the flush of caches between them."
        if known else ""
    )  # fmt: skip
    return join([title, table(headers, rows, "lrrrrrrrl"), note])


def _row(ladder: Ladder, row: Row, energy: Energy, factor: float) -> list[str]:
    name = f"**{row.name}**" if row is ladder.best else row.name
    if energy.joules is None or not energy.seconds or not energy.executions:
        return [name, *[NONE] * 7, text(str(energy.absent), 120)]
    joules = energy.joules
    told = Interval(value=joules.value * factor, low=joules.low * factor, high=joules.high * factor)
    return [
        name, interval(told) + marks(row), significant(energy.watts), significant(energy.idle_watts),
        _useful(row.record, joules.value), _metric(row.record, joules.value),
        seconds(energy.seconds / energy.executions, 3), str(energy.executions), NONE,
    ]  # fmt: skip


def _useful(record: Record, joules: float) -> str:
    """Useful operations of one execution for each joule: of floating point, or of integers where it has no other."""
    work = record.work
    if work is None or not (work.flops or work.integer_ops):
        return NONE
    return scaled(work.flops / joules, "FLOP/J") if work.flops else scaled(work.integer_ops / joules, "OP/J")


def _metric(record: Record, joules: float) -> str:
    """The metric for each joule, where it is a rate of something else than operations."""
    metric = record.metric
    if metric is None or metric.unit.endswith(OPERATIONS) or not metric.unit.endswith("/s"):
        return NONE
    amount = metric.value * time_of(record)
    return f"{significant(amount / joules)} {text(metric.unit.removesuffix('/s'))}/J"
