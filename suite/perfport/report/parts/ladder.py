"""Ladders: the records of one problem on one device, in the order of the source, and how they compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...machine.device_profile import all_profiles
from ...measure.roofline import INTEGER_CEILINGS, datasheet_ceilings, problem_bound
from ...model.names import order, place, plain, setting, settings
from ...model.published import stated
from ...model.record import Interval, Record
from ...model.work import Traffic
from ...run.sources import Age, age
from ...store.case import Case, cases_of
from ...store.collection import Collection
from ...store.comparable import Comparable, comparable
from ...store.ratios import time_of
from ...store.results import Run
from ...untimed.count import Count
from .markdown import code, middle, text

#: The figure in a record's ``extra`` that is shown as an image.
PICTURE = "picture"
BOUNDS = ("problem_bound", "variant_bound", "datasheet_bound")


@dataclass(frozen=True)
class Counted:
    """A record with the traffic that hardware counters saw, and the count that tells most of the case."""

    record: Record
    count: Count


#: Returns what was counted of a run's record, or nothing.
Recount = Callable[[Run, Record], Counted | None]


@dataclass(frozen=True)
class Row(Case):
    """A case with the name that tells it from the others of its ladder.

    Where the record's traffic is ``counted``, ``modelled`` is what the variant's own model says, if it has one, and
    ``count`` is what hardware counters told of the case.
    """

    label: str = ""
    modelled: Traffic | None = None
    count: Count | None = None

    @property
    def name(self) -> str:
        """The label as tables of a ladder show it, in markdown."""
        return code(middle(self.label, 60))

    @cached_property
    def age(self) -> Age:
        """Whether it was measured with the code as it is."""
        return age(self.run, self.record.identity).age


@dataclass(frozen=True)
class ModelledBound:
    """The bound of a problem on a device that nothing was measured on.

    Attributes
    ----------
    metric : float
        In units of the problem's metric.
    binding : str
        What binds: ``dram``, or the name of a ceiling.
    """

    metric: float
    binding: str


class Ladder(Comparable[Row]):
    """Comparable cases as tables show them.

    Bounds are made of the ceilings of one device: where several took part, the rows have none.

    Parameters
    ----------
    cases : sequence of Case
        Those of one subject on one site.
    site : str
        The site's name within the report: the device's id, preceded by the run's label where there are several runs.
    place : str
        The same, whatever number of devices took part.
    recount : Recount, optional

    Attributes
    ----------
    run : Run
        Whose environment the ladder is shown with.
    """

    def __init__(self, cases: Sequence[Case], site: str, place: str, recount: Recount | None = None) -> None:
        super().__init__(_rows(cases, recount))
        first = self.rows[0].record.identity
        self.run, self.site, self.place = self.rows[0].run, site, place
        self.workload, self.problem = first.workload, first.problem
        self.preset, self.parameters, self.precision = first.preset, first.parameters, first.precision
        self.devices = first.devices  # as the run calls them

    @property
    def heading(self) -> tuple[str, str, str, str]:
        """What is solved, wherever: workload, problem, preset and parameters, precision."""
        return (self.workload, self.problem, self.setting, self.precision)

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
        largest: dict[str, Interval] = {}
        for row in self.measured:
            for name, ceiling in row.record.ceilings.items():
                if name not in largest or ceiling.value > largest[name].value:
                    largest[name] = ceiling
        return largest

    @property
    def about(self) -> dict[str, Any]:
        """What the environment says of the workload."""
        return dict((self.run.environment.get("workloads") or {}).get(self.workload) or {})

    @property
    def info(self) -> dict[str, Any]:
        """What the environment says of this problem."""
        return dict((self.about.get("problems") or {}).get(self.problem) or {})

    @property
    def workload_title(self) -> str:
        """The workload's title, as headings have it."""
        return f"{text(self.about.get('title') or self.workload)} ({code(self.workload)})"

    @property
    def problem_title(self) -> str:
        """The problem's title, as headings have it."""
        return text(self.info.get("title") or self.problem)

    @cached_property
    def published(self) -> list[Published]:
        """What the publication states for this problem."""
        return [Published(entry, self) for entry in stated(self.workload, self.problem, self.run.environment)]

    def bound_under(self, ceilings: dict[str, Interval]) -> ModelledBound | None:
        """The problem's bound under the ceilings of a device of the literature, at this ladder's parameters.

        Parameters
        ----------
        ceilings : dict
            From `datasheet_ceilings` or `published_ceilings`, SI units per second.
        """
        for row in self.measured:
            record = row.record
            if record.metric is None or record.work is None:
                continue
            time = time_of(record)
            bound = problem_bound(record.work, ceilings, Interval(value=time, low=time, high=time))
            # Without the arithmetic ceiling the bound of a compute-bound problem would be too loose to quote.
            loose = record.work.flops and "fp32_fma" not in ceilings
            loose = loose or (record.work.integer_ops and not ceilings.keys() & set(INTEGER_CEILINGS))
            if bound is None or loose or not bound.seconds:
                return None
            ratio = time / bound.seconds
            value = record.metric.value
            metric = value * ratio if record.metric.direction == "higher" else value / ratio
            return ModelledBound(metric, bound.binding)
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
        self.parameters: dict[str, Any] = entry.get("parameters") or {}
        profile = all_profiles().get(str(entry.get("device")))
        self.title = profile.title if profile else str(entry.get("device"))
        self.share: float | None = None
        metric = next((row.record.metric for row in ladder.measured if row.record.metric), None)
        bound = ladder.bound_under(datasheet_ceilings(profile)) if profile and self.fits(ladder) else None
        if bound and metric and metric.unit == self.unit and self.value:
            self.share = self.value / bound.metric if metric.direction == "higher" else bound.metric / self.value

    def fits(self, ladder: Ladder) -> bool:
        """Whether the figure may be set against results of a ladder: it is of no certain setting, or of that one."""
        return all(ladder.parameters.get(name) == value for name, value in self.parameters.items())


def _rows(cases: Sequence[Case], recount: Recount | None) -> list[Row]:
    ordered = sorted(cases, key=lambda case: order(case.record))
    rows = []
    for case, label in zip(ordered, _labels([case.record for case in ordered]), strict=True):
        counted = recount(case.run, case.record) if recount else None
        shown = counted.record if counted else case.record
        if case.site.several:
            shown = shown.model_copy(update=dict.fromkeys(BOUNDS))
        modelled = case.record.traffic if counted else None
        count = counted.count if counted else None
        rows.append(Row(case.run, shown, case.site, case.subject, case.later, label, modelled, count))
    return rows


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


def ladders_of(runs: list[Run], recount: Recount | None = None) -> list[Ladder]:
    """Return every ladder of the runs, each run's own, by workload, problem, parameters, precision, run and device.

    What was imported beside one of the runs stands in that run's ladders.

    ``recount`` puts what hardware counters saw in place of what was modelled.
    """
    listed = []
    own = {run.name for run in runs if not run.beside}
    for run, label in zip(runs, run_labels(runs), strict=True):
        if run.beside in own:
            continue
        before = f"{label} " if label else ""
        for same in comparable(cases_of(run, *(other for other in runs if other.beside == run.name))):
            site = same.where
            listed.append(Ladder(same.rows, before + site.name, before + site.alone.name, recount))
    return sorted(listed, key=lambda ladder: place(ladder.rows[0].record.identity))


def collected(collection: Collection, recount: Recount | None = None) -> list[Ladder]:
    """Return the ladders of a collection, in the order of tables; ``recount`` as for `ladders_of`."""
    return [
        Ladder(same.rows, collection.label(same.where), collection.label(same.where.alone), recount)
        for same in collection.comparable
    ]
