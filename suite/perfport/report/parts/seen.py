"""What stored counts tell the model of a case: traffic that counters saw, work-groups, patterns of access."""

from __future__ import annotations

from collections.abc import Iterator

from ...judge.predict import Counted, Pattern, Seen
from ...model.record import Record
from ...store.results import Run
from ...untimed.count import Count
from ...untimed.count.coalescing import DEFAULT_SHAPES
from .counted import Recount


def seen_by(recount: Recount) -> Counted:
    """Return what tells of a run's record what counts saw of it; see `perfport.judge.predict.Predictor`."""
    patterns: dict[int, Pattern] = {}

    def seen(run: Run, record: Record) -> Seen:
        counted, trace = recount(run, record), recount.traced(record)
        shown = counted.record if counted else record
        if trace is None:
            return Seen(shown)
        if id(trace) not in patterns:
            patterns[id(trace)] = pattern_of(trace)
        same = trace.identity.tunables == record.identity.tunables
        return Seen(shown, group_of(trace) if same else None, patterns[id(trace)])

    return seen


def group_of(trace: Count) -> int | None:
    """Return the work-items of the largest work-group that a variant launched in the simulator."""
    groups = [raw["work_items"] / raw["work_groups"] for raw in trace.raw.values() if raw.get("work_groups")]
    return round(max(groups)) if groups else None


def pattern_of(trace: Count) -> Pattern:
    """Return how a variant loads: bytes of a load, and the lines that an access touches, for each shape of hardware."""
    total = {name: sum(raw.get(name, 0.0) for raw in trace.raw.values()) for name in _LOADS}
    loads = total["global_loads"] + total["image_reads"]
    read = total["global_load_bytes"] + total["image_read_bytes"]
    return Pattern(read / loads if loads else None, dict(_lines(trace)))


_LOADS = ("global_loads", "global_load_bytes", "image_reads", "image_read_bytes")


def _lines(trace: Count) -> Iterator[tuple[tuple[int, int], tuple[float, float]]]:
    issued = sum(
        raw.get("global_load_bytes", 0.0) + raw.get("global_store_bytes", 0.0) for raw in trace.raw.values()
    )  # fmt: skip
    for shape in DEFAULT_SHAPES:
        whole = [each for each in trace.coalescing if each.shape == shape.name and each.place is None]
        accesses = sum(each.accesses for each in whole)
        lines = sum(each.accesses * each.lines for each in whole)
        if accesses and issued:
            yield (shape.width, shape.line), (lines / accesses, lines * shape.line / issued)
