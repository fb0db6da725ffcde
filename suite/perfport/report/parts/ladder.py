"""Ladders: the records of one problem on one device, in the order of the source, and how they compare."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...machine.device_profile import DeviceProfile, all_profiles
from ...measure.roofline import INTEGER_CEILINGS, datasheet_ceilings, problem_bound
from ...model.names import order, place, plain, seeds, setting, settings
from ...model.published import stated
from ...model.record import Interval, Record
from ...model.work import Traffic
from ...run.sources import Age, age
from ...store.collection import Case, devices_name
from ...store.ratios import Clock, Comparison, common_clock, compare, is_measured, is_ranked, time_of
from ...store.results import Run

#: The figure in a record's ``extra`` that is shown as an image.
PICTURE = "picture"
BOUNDS = ("problem_bound", "variant_bound", "datasheet_bound")
Recount = Callable[[Run, Record], Record | None]


@dataclass(frozen=True)
class Row:
    """A record with the name that tells it from the others of its ladder.

    Where the record's traffic is ``counted``, ``modelled`` is what the variant's own model says, if it has one.
    ``later`` is the record of a later run in which the same case failed.
    """

    record: Record
    label: str
    run: Run
    modelled: Traffic | None = None
    later: Record | None = None

    @cached_property
    def age(self) -> Age:
        """Whether it was measured with the code as it is."""
        return age(self.run, self.record.identity).age


class Ladder:
    """The records of one problem (one set of parameters, one precision class) on one device.

    Bounds are made of the ceilings of one device: where several took part, the rows have none.

    Parameters
    ----------
    run : Run
        Whose environment the ladder is shown with.
    run_label : str
    records : list of Record
    recount : Recount, optional
    cases : mapping of int to Case, optional
        Those of the records by their ``id``, where they come from several runs.

    Attributes
    ----------
    rows : list of Row
        By role, rung and name.
    site : str
        The device's name within the report: its id, preceded by the run's label where there are several runs.
    place : str
        The same, whatever number of devices took part.
    """

    def __init__(
        self,
        run: Run,
        run_label: str,
        records: list[Record],
        recount: Recount | None,
        cases: Mapping[int, Case] | None = None,
    ) -> None:
        first = records[0].identity
        self.run = run
        self.workload, self.problem = first.workload, first.problem
        self.preset, self.parameters, self.precision = first.preset, first.parameters, first.precision
        self.devices = tuple(first.devices)
        self.count = first.device_count
        self.site, self.place = (
            (f"{run_label} " if run_label else "") + devices_name(self.devices, count) for count in (self.count, 0)
        )
        self._compared: dict[tuple[int, int], Comparison | None] = {}
        ordered = sorted(records, key=order)
        self.rows = []
        for record, label in zip(ordered, _labels(ordered), strict=True):
            case = (cases or {}).get(id(record))
            known: dict[str, Any] = {"run": case.run if case else run, "later": case.later if case else None}
            counted = recount(run, record) if recount else None
            shown = counted or record
            if self.several:
                shown = shown.model_copy(update=dict.fromkeys(BOUNDS))
            self.rows.append(Row(shown, label, modelled=record.traffic if counted else None, **known))

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """What is solved, wherever: workload, problem, preset and parameters, precision."""
        return (self.workload, self.problem, self.setting, self.precision)

    @property
    def several(self) -> bool:
        """Whether more devices took part than have ids: bounds and other variants' times are of one."""
        return self.count > len(self.devices)

    @property
    def setting(self) -> str:
        """Preset and parameters as text."""
        return setting(self.preset, self.parameters)

    @property
    def merged(self) -> bool:
        """Whether the device's compiler merges accesses of neighbouring work-items: see `roofline.variant_bound`."""
        devices = self.run.environment.get("devices") or {}
        return any((devices.get(id_) or {}).get("kind") == "cpu" for id_ in self.devices)

    @cached_property
    def ceilings(self) -> dict[str, Interval]:
        """The ceilings that the ladder's bounds use; of one that moved within the run, the largest value."""
        found: dict[str, Interval] = {}
        for row in self.measured:
            for name, ceiling in row.record.ceilings.items():
                if name not in found or ceiling.value > found[name].value:
                    found[name] = ceiling
        return found

    @property
    def info(self) -> dict[str, Any]:
        """What the environment says of this problem."""
        workload = (self.run.environment.get("workloads") or {}).get(self.workload) or {}
        return dict((workload.get("problems") or {}).get(self.problem) or {})

    @cached_property
    def measured(self) -> list[Row]:
        """Rows with timings that may be shown as results."""
        return [row for row in self.rows if is_measured(row.record)]

    @cached_property
    def clock(self) -> Clock | None:
        """The clock on which all ranked variants (peers aside) can be compared; ``None``: each by its own."""
        return common_clock(r.record for r in self.measured if is_ranked(r.record) and r.record.identity.role != "peer")

    def _fastest(self, rows: list[Row], clock: Clock | None) -> Row | None:
        rows = [row for row in rows if is_ranked(row.record)]
        return min(rows, key=lambda row: time_of(row.record, clock), default=None)

    @cached_property
    def best(self) -> Row | None:
        """The fastest variant that is ``ok``; peers, ``wrong`` and ``contended`` ones do not count."""
        return self._fastest([row for row in self.measured if row.record.identity.role != "peer"], self.clock)

    @cached_property
    def best_peer(self) -> Row | None:
        """The fastest peer that is ``ok``."""
        peers = [row for row in self.measured if row.record.identity.role == "peer" and is_ranked(row.record)]
        return self._fastest(peers, common_clock(row.record for row in peers))

    @cached_property
    def peer_comparison(self) -> Comparison | None:
        """How many times faster the best variant is than the best peer."""
        return compare(self.best_peer.record, self.best.record) if self.best and self.best_peer else None

    @cached_property
    def _rungs(self) -> dict[int, Row]:
        """The row that stands for each rung: its fastest ``ok`` one, else its fastest contended one."""
        found: dict[int, Row] = {}
        for row in self.measured:
            identity = row.record.identity
            if identity.role != "rung":
                continue
            held = found.get(identity.rung)
            if held is None or _preference(row) < _preference(held):
                found[identity.rung] = row
        return dict(sorted(found.items()))

    @property
    def first_rung(self) -> Row | None:
        """The row that speed-ups refer to: of the lowest rung that has a result."""
        return next(iter(self._rungs.values()), None)

    @property
    def missing_first(self) -> Row | None:
        """The lowest rung's row where that rung has no result, so that speed-ups refer to a later one."""
        lowest = min((row for row in self.rows if row.record.identity.role == "rung"), key=_rung, default=None)
        base = self.first_rung
        return lowest if lowest and base and _rung(lowest) < _rung(base) else None

    def over_first(self, row: Row) -> Comparison | None:
        """Speed-up over the first rung, ``None`` for that rung itself and for peers."""
        base = self.first_rung
        if base is None or base is row or row.record.identity.role == "peer":
            return None
        return self._compare(base, row)

    def over_previous(self, row: Row) -> Comparison | None:
        """Speed-up of a rung over the next lower rung that has a result; ``None`` for other roles."""
        if row.record.identity.role != "rung":
            return None
        lower = [base for rung, base in self._rungs.items() if rung < _rung(row)]
        return self._compare(lower[-1], row) if lower else None

    def _compare(self, base: Row, row: Row) -> Comparison | None:
        key = (id(base), id(row))
        if key not in self._compared:
            self._compared[key] = compare(base.record, row.record)
        return self._compared[key]

    @cached_property
    def published(self) -> list[Published]:
        """What the publication states for this problem."""
        return [Published(entry, self) for entry in stated(self.workload, self.problem, self.run.environment)]

    def bound_metric(self, profile: DeviceProfile) -> float | None:
        """The problem's bound on a device of the literature, in units of the metric, at this ladder's parameters."""
        for row in self.measured:
            record = row.record
            if record.metric is None or record.work is None:
                continue
            time = time_of(record)
            ceilings = datasheet_ceilings(profile)
            bound = problem_bound(record.work, ceilings, Interval(value=time, low=time, high=time))
            # Without the arithmetic ceiling the bound of a compute-bound problem would be too loose to quote.
            loose = record.work.flops and "fp32_fma" not in ceilings
            loose = loose or (record.work.integer_ops and not ceilings.keys() & set(INTEGER_CEILINGS))
            if bound is None or loose or not bound.seconds:
                return None
            ratio = time / bound.seconds
            return record.metric.value * ratio if record.metric.direction == "higher" else record.metric.value / ratio
        return None


class Published:
    """One published figure beside a ladder.

    Attributes
    ----------
    entry : dict
        As the workload states it.
    title : str
        The device's title.
    share : float or None
        Share of that device's own problem bound: computed from its datasheet, hence modelled.
    """

    def __init__(self, entry: dict[str, Any], ladder: Ladder) -> None:
        self.entry = entry
        self.variant = str(entry.get("variant"))
        self.value = float(entry["value"])
        self.high: float | None = entry.get("high")
        self.unit = str(entry.get("unit") or "")
        self.stated_share: float | None = entry.get("share")
        profile = all_profiles().get(str(entry.get("device")))
        self.title = profile.title if profile else str(entry.get("device"))
        self.share: float | None = None
        metric = next((row.record.metric for row in ladder.measured if row.record.metric), None)
        if profile and metric and metric.unit == self.unit and (bound := ladder.bound_metric(profile)) and self.value:
            self.share = self.value / bound if metric.direction == "higher" else bound / self.value


def _rung(row: Row) -> int:
    return row.record.identity.rung


def _preference(row: Row) -> tuple[bool, float]:
    return (not is_ranked(row.record), time_of(row.record))


def _labels(records: list[Record]) -> list[str]:
    """Name each record by its variant, and by what differs where a variant occurs more than once."""
    families: dict[str, list[Record]] = {}
    for record in records:
        families.setdefault(record.identity.variant, []).append(record)
    varying: dict[str, set[str]] = {}
    for variant, family in families.items():
        names = {name for record in family for name in record.identity.tunables}
        seen = {n: {plain(r.identity.tunables.get(n)) for r in family} for n in names}
        varying[variant] = {name for name, values in seen.items() if len(values) > 1}
    profiles = len({record.identity.profile for record in records}) > 1
    labels = []
    for record in records:
        identity = record.identity
        parts = [settings({k: v for k, v in identity.tunables.items() if k in varying[identity.variant]})]
        if profiles and identity.profile:
            parts.append(f"profile {identity.profile}")
        if record.provenance != "measured":
            parts.append(record.provenance)
        labels.append(f"{identity.variant} [{'; '.join(filter(None, parts))}]" if any(parts) else identity.variant)
    counts = Counter(labels)
    return [f"{label} #{r.key[:8]}" if counts[label] > 1 else label for r, label in zip(records, labels, strict=True)]


def run_labels(runs: list[Run]) -> list[str]:
    """Return a short label per run, empty where there is only one."""
    return [f"R{number}" for number in range(1, len(runs) + 1)] if len(runs) > 1 else [""]


def ladders(runs: list[Run], recount: Recount | None = None) -> list[Ladder]:
    """Return every ladder of the runs, by workload, problem, parameters, precision, run and device.

    ``recount`` returns a run's record with counted traffic in place of the modelled one, or nothing.
    """
    found: list[tuple[Any, Ladder]] = []
    for number, (run, label) in enumerate(zip(runs, run_labels(runs), strict=True)):
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in run.records:
            identity = record.identity
            parameters = json.dumps(identity.parameters, sort_keys=True)
            setting = (identity.preset, parameters, identity.precision, seeds(record.inputs))
            key = (identity.workload, identity.problem, *setting, *identity.devices, identity.device_count)
            groups.setdefault(key, []).append(record)
        for records in groups.values():
            ladder = Ladder(run, label, records, recount)
            found.append(((*place(records[0].identity), number, ladder.devices, ladder.count), ladder))
    return [ladder for _, ladder in sorted(found, key=lambda pair: pair[0])]
