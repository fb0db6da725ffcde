"""Stored results as pandas DataFrames: what `perfport.load` returns, and what tables and their CSV are made of.

`SCHEMA` says of each frame which columns it has, of what type, in which unit and what they mean (docs/dataframes.md).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ..machine.device_profile import all_profiles
from ..model.errors import UsageError
from ..model.names import ROLES
from ..model.published import stated
from ..model.record import Bound, Record, Status, Timing
from ..run.experiment import NATIVE
from ..store.case import Case, Site
from ..store.collection import Collection
from ..store.ratios import is_measured, is_ranked
from ..store.results import Run, find_runs
from .claims import Claim, Judgement, Number, evaluate, ledger
from .claims import Verdict as ClaimVerdict

#: Columns that name one problem, setting, inputs and place: the rows that are ranked together.
LADDER = ["workload", "problem", "parameters", "precision", "inputs", "device", "devices"]
#: Columns that name a case.
CASE = ["run", "key"]


class Column(NamedTuple):
    """A column of a frame.

    Attributes
    ----------
    dtype : str
        As pandas calls it; ``time`` is ``datetime64`` in UTC.
    unit : str
        SI unit, ``1`` for a share, a column that holds the unit; empty for names.
    meaning : str
    values : tuple of str
        Of a category whose values have an order: all of them.
    """

    dtype: str
    unit: str
    meaning: str
    values: tuple[str, ...] = ()


def _bound(name: str, what: str) -> dict[str, Column]:
    return {
        f"{name}_bound": Column("float64", "s", f"least time that {what}"),
        f"{name}_binding": Column("category", "", "what sets that bound: a ceiling, or `dram`"),
        f"{name}_share": Column("float64", "1", "share of that bound reached; 1 is at the bound"),
        f"{name}_share_low": Column("float64", "1", "lower end of its 95 % interval"),
        f"{name}_share_high": Column("float64", "1", "upper end"),
    }


SCHEMA: dict[str, dict[str, Column]] = {
    "cases": {
        "run": Column("category", "", "name of the run's folder; with `key` it names the case"),
        "key": Column("string", "", "key of the record, as `perfport show` takes it"),
        "workload": Column("category", "", "workload"),
        "problem": Column("category", "", "problem of the workload"),
        "preset": Column("category", "", "preset of the problem, missing where none was named"),
        "parameters": Column("category", "", "all parameters of the problem, as JSON with sorted names"),
        "precision": Column("category", "", "precision class; classes are never ranked together"),
        "variant": Column("category", "", "variant"),
        "role": Column("category", "", "`rung`, `control`, `beyond` or `peer`, in this order", ROLES),
        "rung": Column("int64", "", "order within the role"),
        "tunables": Column("category", "", "all tunables of the variant, as JSON with sorted names"),
        "profile": Column("category", "", "device whose tuning parameters were compiled in; `native` for none"),
        "device": Column("category", "", "device, as reports name it where it is alone"),
        "devices": Column("int64", "1", "such devices that took part; bounds are of one, so cases of more have none"),
        "chip": Column("category", "", "chip of the device"),
        "kind": Column("category", "", "`cpu` or `gpu`"),
        "host": Column("category", "", "CPU of the host"),
        "backend": Column("category", "", "`opencl` or `cuda`"),
        "status": Column("category", "", "how the case ended", tuple(Status)),
        "reason": Column("string", "", "why it has no result, or a mark"),
        "later": Column("category", "", "how it ended in a later run, where it failed there", tuple(Status)),
        "provenance": Column("category", "", "`measured` in every row"),
        "ranked": Column("bool", "", "may be called best: measured, right, not contended"),
        "best": Column("bool", "", "fastest of its problem, setting, precision and device; peers do not count"),
        "clock": Column("category", "", "clock of `seconds`: `span` (device events) or `wall`"),
        "cache": Column("category", "", "`cold` or `warm`"),
        "samples": Column("Int64", "1", "number of samples"),
        "launches": Column("Int64", "1", "device activities of one execution"),
        "seconds": Column("float64", "s", "median time of one execution"),
        "seconds_low": Column("float64", "s", "lower end of its 95 % interval"),
        "seconds_high": Column("float64", "s", "upper end"),
        "target_met": Column("boolean", "", "whether the noise target of the measurement was met"),
        "metric": Column("category", "", "metric of the problem"),
        "value": Column("float64", "column `unit`", "value of the metric"),
        "value_low": Column("float64", "column `unit`", "lower end of its 95 % interval"),
        "value_high": Column("float64", "column `unit`", "upper end"),
        "unit": Column("category", "", "unit of the metric"),
        "direction": Column("category", "", "whether `higher` or `lower` is better"),
        **_bound("problem", "the measured ceilings allow for the useful work"),
        **_bound("variant", "the measured ceilings allow for the traffic of the variant"),
        **_bound("datasheet", "the ceilings of the data sheet allow for the useful work"),
        "useful_flops": Column("float64", "FLOP", "useful operations of one execution"),
        "useful_integer_ops": Column("float64", "operations", "useful integer operations"),
        "useful_read_bytes": Column("float64", "B", "compulsory bytes read"),
        "useful_write_bytes": Column("float64", "B", "compulsory bytes written"),
        "useful_host_bytes": Column("float64", "B", "compulsory bytes from host memory"),
        "compile_seconds": Column("float64", "s", "compiling and loading the kernels"),
        "upload_seconds": Column("float64", "s", "making or uploading the inputs"),
        "layout_seconds": Column("float64", "s", "re-laying out inputs for this variant"),
        "device_bytes": Column("Int64", "B", "device memory of the variant"),
        "verified": Column("boolean", "", "whether all outputs passed; missing where nothing was verified"),
        "max_abs": Column("float64", "of the output", "largest absolute error of any output"),
        "relative_l2": Column("float64", "1", "largest relative L2 error of any output"),
        "checked": Column("Int64", "1", "elements compared with the reference"),
        "total": Column("Int64", "1", "elements of the outputs"),
        "time": Column("time", "UTC", "end of sampling; without a result, when the case was begun or given up"),
        "inputs": Column("category", "", "seed of each timed instance of the inputs, as JSON by name"),
        "commit": Column("category", "", "commit of the suite, missing for an installed wheel"),
        "dirty": Column("boolean", "", "whether there were uncommitted changes"),
        "driver": Column("category", "", "driver of the device"),
        "source": Column("category", "", "section of the publication, or `beyond the source`"),
        "title": Column("string", "", "one line on the variant"),
    },
    "samples": {
        "run": Column("category", "", "run of the case"),
        "key": Column("string", "", "key of the case"),
        "clock": Column("category", "", "`span`, `busy` or `wall`"),
        "sample": Column("int64", "", "number of the sample on this clock, from 0"),
        "round": Column("Int64", "", "interleaving round; samples of one round were taken side by side"),
        "worker": Column("Int64", "", "number of the fresh worker that took it"),
        "seconds": Column("float64", "s", "time of one execution"),
    },
    "instances": {
        "run": Column("category", "", "run of the case"),
        "key": Column("string", "", "key of the case"),
        "instance": Column("category", "", "name of the instance"),
        "seed": Column("int64", "", "its seed"),
        "sample": Column("int64", "", "number of the sample, as on the clock that ranks the case"),
        "round": Column("Int64", "", "interleaving round"),
        "worker": Column("Int64", "", "number of the fresh worker that took it"),
        "seconds": Column("float64", "s", "time of one execution"),
    },
    "ceilings": {
        "run": Column("category", "", "run"),
        "device": Column("category", "", "device as in `cases`"),
        "chip": Column("category", "", "chip of the device"),
        "ceiling": Column("category", "", "name of the ceiling (docs/records.md)"),
        "taken": Column(
            "category", "", "`sweep`: measured for the run; `before`, `after`: probed around a group of cases",
            ("sweep", "before", "after"),
        ),
        "value": Column("float64", "column `unit`", "median of the best shape"),
        "low": Column("float64", "column `unit`", "lower end of its 95 % interval"),
        "high": Column("float64", "column `unit`", "upper end"),
        "unit": Column("category", "", "`B/s`, `FLOP/s`, `op/s` or `s`"),
        "direction": Column("category", "", "whether `higher` or `lower` is better"),
        "time": Column("time", "UTC", "when it was measured; of a sweep, when that ended"),
        "theory": Column("float64", "column `unit`", "what data sheet or clock allow, where known; of sweeps"),
        "spread": Column("float64", "1", "worst shape over best; of sweeps"),
        "samples": Column("Int64", "1", "samples of the best shape; of sweeps"),
        "shape": Column("category", "", "the best shape, as JSON with sorted names; of sweeps"),
    },
    "claims": {
        "workload": Column("category", "", "workload"),
        "claim": Column("category", "", "name of the claim within the workload"),
        "statement": Column("category", "", "what is claimed"),
        "source": Column("category", "", "where"),
        "published": Column("category", "", "the publication's own number"),
        "stated": Column("float64", "1", "gain that the source states, as a ratio"),
        "at_least": Column("float64", "as `value`", "threshold, missing where there is none"),
        "at_most": Column("float64", "as `value`", "threshold, missing where there is none"),
        "no_effect": Column("float64", "as `value`", "what `value` is without any effect, where known"),
        "judged_on": Column("category", "", "what was judged, where of another kind than what the source measured"),
        "device": Column("category", "", "device as in `cases`"),
        "chip": Column("category", "", "chip of the device"),
        "verdict": Column("category", "", "verdict on this device", tuple(ClaimVerdict)),
        "reason": Column("string", "", "why"),
        "settings": Column("int64", "1", "rows in `evidence`"),
    },
    "evidence": {
        "workload": Column("category", "", "workload of the claim"),
        "claim": Column("category", "", "name of the claim"),
        "device": Column("category", "", "device"),
        "setting": Column("category", "", "parameters that tell it from the claim's other settings"),
        "setting_verdict": Column("category", "", "verdict on this setting alone", tuple(ClaimVerdict)),
        "subject": Column("category", "", "what the first number is"),
        "subject_value": Column("float64", "column `subject_unit`", "the first number"),
        "subject_unit": Column("category", "", "its unit, empty for a pure number"),
        "against": Column("category", "", "what the second number is"),
        "against_value": Column("float64", "column `against_unit`", "the second number"),
        "against_unit": Column("category", "", "its unit, empty for a pure number"),
        "value": Column("float64", "1, or that of the figure", "what is compared with the threshold"),
        "low": Column("float64", "as `value`", "lower end of its 95 % interval"),
        "high": Column("float64", "as `value`", "upper end"),
        "records": Column("string", "", "keys of the records behind it, separated by spaces"),
    },
    "published": {
        "workload": Column("category", "", "workload"),
        "problem": Column("category", "", "problem"),
        "variant": Column("category", "", "variant, or what was measured"),
        "device": Column("category", "", "device profile, or what the publication calls the device"),
        "chip": Column("category", "", "title of that device"),
        "value": Column("float64", "column `unit`", "the figure as stated"),
        "range_end": Column("float64", "column `unit`", "upper end of a stated range"),
        "unit": Column("category", "", "unit"),
        "stated_share": Column("float64", "1", "share of its own bound as the publication states it"),
        "provenance": Column("category", "", "`published`; `preliminary` figures are published nowhere"),
        "source": Column("category", "", "publication and section"),
        "note": Column("string", "", "what a reader must know"),
    },
}  # fmt: skip


class Results:
    """The cases of some runs as DataFrames, each made when it is first asked for.

    Of several records of the same thing on one device the latest counts, as in all tables. ``SCHEMA`` and the
    ``attrs["units"]`` of each frame have the units.

    Attributes
    ----------
    collection : Collection
        The cases as objects.
    """

    def __init__(self, collection: Collection, claims: Mapping[str, Iterable[Claim]] | None = None) -> None:
        self.collection = collection
        self._ledger = claims

    @classmethod
    def load(cls, paths: str | Path | Iterable[str | Path]) -> Results:
        """Read stored runs; see `perfport.load`."""
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise UsageError("load: no path given; expected run folders, or folders of run folders")
        folders = {folder.resolve(): folder for path in given for folder in find_runs(path)}
        return cls(Collection([Run(folder) for folder in folders.values()]))

    def __repr__(self) -> str:
        held = self.collection
        return f"<Results: {len(held.cases)} cases on {len(held.places)} devices from {len(held.runs)} runs>"

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
            _frame("cases", rows),
            _expanded("parameters", [identity.parameters for identity in identities]),
            _expanded("tunables", [identity.tunables for identity in identities]),
        ]
        found = pd.concat(parts, axis="columns")
        found.attrs = parts[0].attrs
        return found

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
        return _frame("samples", self._timed(_samples))

    @cached_property
    def instances(self) -> pd.DataFrame:
        """One row for each sample of each instance of the inputs, of cases that are timed on several."""
        return _frame("instances", self._timed(_instances))

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
        return _frame("ceilings", rows)

    @cached_property
    def _judgements(self) -> list[Judgement]:
        return evaluate(ledger() if self._ledger is None else self._ledger, self.collection)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row for each claim of the publications and each device, with the verdict."""
        return claims(self._judgements, self.collection)

    @cached_property
    def evidence(self) -> pd.DataFrame:
        """One row for each setting that a claim was judged on, with the numbers behind the verdict."""
        return evidence(self._judgements, self.collection)

    @cached_property
    def published(self) -> pd.DataFrame:
        """One row for each published figure of the problems that ran; they are in no other frame."""
        held = {(case.subject.workload, case.subject.problem): case.run for case in self.collection.cases}
        rows = []
        for (workload, problem), run in sorted(held.items(), key=lambda item: item[0]):
            for entry in stated(workload, problem, run.environment):
                profile = all_profiles().get(str(entry.get("device")))
                title = profile.title if profile else entry.get("device")
                known = {"workload": workload, "problem": problem, "chip": title, "range_end": entry.get("high")}
                known |= {"stated_share": entry.get("share"), "provenance": entry.get("origin") or "published"}
                same = ("variant", "device", "value", "unit", "source", "note")
                rows.append({**known, **{name: entry.get(name) for name in same}})
        return _frame("published", rows)


def claims(judgements: Sequence[Judgement], collection: Collection) -> pd.DataFrame:
    """Return a row for each claim and device."""
    return _frame("claims", [
        {
            "workload": one.workload, "claim": one.claim.id, "statement": one.claim.statement,
            "source": one.claim.source, "published": one.claim.published, "stated": one.claim.stated,
            "at_least": _finite(one.claim.bounds[0]), "at_most": _finite(one.claim.bounds[1]),
            "no_effect": one.claim.neutral, "judged_on": one.judged_on or None,
            "device": collection.label(one.site), "chip": one.site.chip, "verdict": one.verdict.value,
            "reason": one.reason, "settings": len(one.evidence),
        }
        for one in judgements
    ])  # fmt: skip


def evidence(judgements: Sequence[Judgement], collection: Collection) -> pd.DataFrame:
    """Return a row for each setting that a claim was judged on, on each device."""
    return _frame("evidence", [
        {
            "workload": one.workload, "claim": one.claim.id, "device": collection.label(one.site),
            "setting": each.setting, "setting_verdict": each.verdict.value, **_numbers(each.numbers),
            "value": each.found.value, "low": each.found.low, "high": each.found.high, "records": " ".join(each.keys),
        }
        for one in judgements
        for each in one.evidence
    ])  # fmt: skip


def _numbers(numbers: Sequence[Number]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for side, number in zip(("subject", "against"), numbers, strict=False):
        found |= {side: number.what, f"{side}_value": number.value, f"{side}_unit": number.unit}
    return found


def _json(values: Any) -> str:
    return json.dumps(values, sort_keys=True)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    found: dict[str, Any] = {
        "clock": timing.rank, "cache": timing.cache, "samples": clock.n, "launches": timing.launches,
        "seconds": clock.median, "seconds_low": clock.ci_low, "seconds_high": clock.ci_high,
        "target_met": timing.target_met,
    }  # fmt: skip
    if metric:
        found |= {"metric": metric.tag, "unit": metric.unit, "direction": metric.direction}
        found |= {"value": metric.value, "value_low": metric.low, "value_high": metric.high}
    for name in ("problem", "variant", "datasheet") if bounded else ():
        bound: Bound | None = getattr(record, f"{name}_bound")
        if bound:
            found |= {f"{name}_bound": bound.seconds, f"{name}_binding": bound.binding}
            found |= {f"{name}_share": bound.share.value}
            found |= {f"{name}_share_low": bound.share.low, f"{name}_share_high": bound.share.high}
    if record.work:
        found |= {f"useful_{name}": value for name, value in record.work.model_dump().items()}
    return found


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


def _frame(name: str, rows: Sequence[Any]) -> pd.DataFrame:
    """Return rows, mappings or in the order of the columns, as a frame of the schema."""
    columns = SCHEMA[name]
    raw = pd.DataFrame(rows, columns=list(columns), dtype=object)
    found = pd.DataFrame({name: _typed(raw[name], column) for name, column in columns.items()})
    found.attrs["units"] = {name: column.unit for name, column in columns.items() if column.unit}
    return found


def _typed(values: pd.Series, column: Column) -> pd.Series:
    if column.dtype == "time":
        return pd.to_datetime(values, utc=True, format="ISO8601")
    if column.values:
        present = set(values.dropna())
        kept = [value for value in column.values if value in present]
        return values.astype(pd.CategoricalDtype(kept, ordered=True))
    return values.astype(column.dtype)  # type: ignore[call-overload]


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
