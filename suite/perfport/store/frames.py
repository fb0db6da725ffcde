"""Cases, samples and ceilings as pandas DataFrames; `judge.frames` adds those of claims and published figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from ..model.names import NATIVE
from ..model.record import Bound, Record, Timing
from .case import Case, Site
from .collection import Collection
from .columns import SCHEMA, frame_of
from .ratios import is_measured, is_ranked


class CaseFrames:
    """The cases of a collection as DataFrames, each made when it is first asked for.

    Attributes
    ----------
    collection : Collection
        The cases as objects.
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    @cached_property
    def cases(self) -> pd.DataFrame:
        """One row for each case, failures included, in the order of tables.

        Beside the columns of the schema there is one for each parameter and tunable, ``parameters.NAME`` and
        ``tunables.NAME``, missing where a case has none of that name.
        """
        cases = [case for group in self.collection.comparable for case in group.rows]
        best = {id(group.best) for group in self.collection.comparable}
        rows = [{**self._case(case), "best": id(case) in best} for case in cases]
        identities = [case.record.identity for case in cases]
        parts = [
            frame_of(SCHEMA["cases"], rows),
            _expanded("parameters", [identity.parameters for identity in identities]),
            _expanded("tunables", [identity.tunables for identity in identities]),
        ]
        frame = pd.concat(parts, axis="columns")
        frame.attrs = parts[0].attrs
        return frame

    def _case(self, case: Case) -> dict[str, Any]:
        record, environment, identity = case.record, case.run.environment, case.record.identity
        commit = environment.get("commit") or {}
        device = (environment.get("devices") or {}).get(identity.devices[0]) or {}
        over, check = record.overheads, record.verification
        outputs = list(check.outputs.values()) if check else []
        return {
            "run": self._runs[id(case.run)], "key": record.key, "workload": identity.workload,
            "problem": identity.problem, "preset": identity.preset, "parameters": _json(identity.parameters),
            "precision": identity.precision, "variant": identity.variant, "role": identity.role, "rung": identity.rung,
            "tunables": _json(identity.tunables), "profile": identity.profile or NATIVE,
            "device": self._labels[case.site], "devices": case.site.count, "chip": case.site.chip,
            "kind": case.site.kind or None, "host": case.site.host.cpu or None, "backend": identity.backend,
            "status": record.status.value, "reason": _reason(record),
            "later": case.later.status.value if case.later else None, "provenance": record.provenance,
            "ranked": is_ranked(record), **_results(record, not case.site.several),
            "compile_seconds": over.compile_s, "upload_seconds": over.upload_s, "layout_seconds": over.layout_s,
            "device_bytes": over.device_bytes, "verified": check.passed if check else None,
            "max_abs": max((out.max_abs for out in outputs), default=None),
            "relative_l2": max((out.relative_l2 for out in outputs), default=None),
            "checked": sum(out.checked for out in outputs) if outputs else None,
            "total": sum(out.total for out in outputs) if outputs else None,
            "time": record.time, "inputs": _json(record.inputs), "commit": commit.get("hash"),
            "dirty": commit.get("dirty"), "driver": device.get("driver"), "source": record.source or None,
            "title": record.title or None,
        }  # fmt: skip

    @cached_property
    def _runs(self) -> dict[int, str]:
        """A distinct name for each run: its folder's, or the whole path where folders have one name."""
        names = [run.folder.resolve().name for run in self.collection.runs]
        alone = {name for name in names if names.count(name) == 1}
        named = zip(self.collection.runs, names, strict=True)
        return {id(run): name if name in alone else str(run.folder) for run, name in named}

    @cached_property
    def _labels(self) -> dict[Site, str]:
        return {site: self.collection.label(site.alone) for site in self.collection.sites}

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row for each sample of the cases that have a result, on every clock that was read."""
        return frame_of(SCHEMA["samples"], self._timed(_samples))

    @cached_property
    def instances(self) -> pd.DataFrame:
        """One row for each sample of each instance of the inputs, of cases that are timed on several."""
        return frame_of(SCHEMA["instances"], self._timed(_instances))

    def _timed(self, samples: Callable[[Record], Iterable[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        measured = [case for group in self.collection.comparable for case in group.measured]
        return [(self._runs[id(c.run)], c.record.key, *sample) for c in measured for sample in samples(c.record)]

    @cached_property
    def ceilings(self) -> pd.DataFrame:
        """One row for each ceiling of each device in each run, as swept and as probed around groups of cases."""
        labels: dict[tuple[int, str], tuple[str, str]] = {}
        for case in self.collection.cases:
            for id_ in case.record.identity.devices:
                labels[id(case.run), id_] = (self._labels[case.site], case.site.chip)
        rows = []
        for run in self.collection.runs:
            for id_, entry in _ceilings(run.environment):
                known = (run.environment.get("devices") or {}).get(id_) or {}
                device, chip = labels.get((id(run), id_), (id_, known.get("chip")))
                rows.append({"run": self._runs[id(run)], "device": device, "chip": chip, **entry})
        return frame_of(SCHEMA["ceilings"], rows)


def _json(values: Any) -> str:
    return json.dumps(values, sort_keys=True)


def _reason(record: Record) -> str | None:
    if record.failure and record.failure.reason:
        return record.failure.reason
    return (record.verification.complaint if record.verification else "") or None


def _results(record: Record, bounded: bool) -> dict[str, Any]:
    """Times and what follows from them: nothing unless they are results of a measurement."""
    timing, metric = record.timing, record.metric
    if timing is None or not is_measured(record):
        return {}
    clock = timing.summary[timing.rank]
    columns: dict[str, Any] = {
        "clock": timing.rank, "cache": timing.cache, "samples": clock.n, "launches": timing.launches,
        "effective_samples": clock.effective, "seconds": clock.median, "seconds_low": clock.ci_low,
        "seconds_high": clock.ci_high, "confidence": clock.confidence, "target_met": timing.target_met,
    }  # fmt: skip
    if metric:
        columns |= {"metric": metric.tag, "unit": metric.unit, "direction": metric.direction}
        columns |= {"value": metric.value, "value_low": metric.low, "value_high": metric.high}
    for name in ("problem", "variant", "datasheet") if bounded else ():
        bound: Bound | None = getattr(record, f"{name}_bound")
        if bound:
            columns |= {f"{name}_bound": bound.seconds, f"{name}_binding": bound.binding}
            columns |= {f"{name}_share": bound.share.value}
            columns |= {f"{name}_share_low": bound.share.low, f"{name}_share_high": bound.share.high}
    if energy := record.energy:
        columns |= {"energy_domain": energy.domain, "energy_absent": energy.absent, "idle_watts": energy.idle_watts}
        if energy.joules:
            columns |= {"joules": energy.joules.value, "watts": energy.watts}
            columns |= {"joules_low": energy.joules.low, "joules_high": energy.joules.high}
    if record.work:
        columns |= {f"useful_{name}": value for name, value in record.work.model_dump().items()}
    return columns


def _samples(record: Record) -> Iterator[tuple[Any, ...]]:
    """Clock, number, round, worker and seconds of each sample."""
    assert record.timing
    for clock in record.timing.summary:
        for sample in _numbered(record.timing, getattr(record.timing, clock)):
            yield clock, *sample


def _instances(record: Record) -> Iterator[tuple[Any, ...]]:
    """Name and seed of the instance, number, round, worker and seconds of each sample."""
    assert record.timing
    for name, instance in record.timing.instances.items():
        for sample in _numbered(record.timing, instance.samples):
            yield name, record.inputs[name], *sample


def _numbered(timing: Timing, values: Sequence[float]) -> Iterator[tuple[int, int | None, int | None, float]]:
    """Number, round, worker and seconds; neither round nor worker where executions of its own were timed."""
    workers = timing.workers or [0] * len(timing.rounds)
    beside = len(values) == len(timing.rounds)
    for number, seconds in enumerate(values):
        where = (timing.rounds[number], workers[number]) if beside else (None, None)
        yield number, *where, seconds


def _ceilings(environment: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    swept = environment.get("ceilings") or {}
    same = ("value", "low", "high", "unit", "direction", "theory", "spread", "samples")
    for device, held in swept.items():
        for name, entry in held["entries"].items():
            known = {each: entry.get(each) for each in same} | {"shape": _json(entry.get("shape") or {})}
            yield device, {"ceiling": name, "taken": "sweep", "time": held.get("date"), **known}
    for probe in environment.get("probes") or []:
        entries = (swept.get(probe["device"]) or {}).get("entries") or {}
        for name, entry in probe["entries"].items():
            known = {each: entry.get(each) for each in ("value", "low", "high")}
            known |= {each: (entries.get(name) or {}).get(each) for each in ("unit", "direction")}
            yield probe["device"], {"ceiling": name, "taken": probe["when"], "time": probe["date"], **known}


def _expanded(prefix: str, values: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return a column for each name that occurs, by name; what is no number is text, lists as JSON."""
    columns = {}
    for name in sorted({name for each in values for name in each}):
        own = [each.get(name) for each in values]
        types = {type(value) for value in own if value is not None}
        if types <= {bool}:
            dtype = "boolean"
        elif types <= {int}:
            dtype = "Int64"
        elif types <= {int, float}:
            dtype = "float64"
        else:
            dtype = "category"
            own = [value if value is None or isinstance(value, str) else _json(value) for value in own]
        columns[f"{prefix}.{name}"] = pd.Series(own, dtype=object).astype(dtype)  # type: ignore[call-overload]
    return pd.DataFrame(columns, index=range(len(values)))
