"""Stored runs as files that other benchmark tools read (docs/integrations.md).

All of them know a benchmark by its name (`model.names`) and hold the samples of the clock that ranks a case, in seconds
unless said. Cases without a result are left out: these formats have no place for them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from ..model.errors import UsageError, nearest
from ..model.names import names
from ..model.record import Record
from ..model.untrusted import cell, distinct_line, inside, line
from ..store.collection import Collection
from ..store.ratios import time_of
from ..store.results import Run

#: Files of several hundred cases stay small: of more samples, as many order statistics.
MOST_SAMPLES = 150
SIGNIFICANT = 9  # digits; no clock has more
IDENTITY = ("workload", "problem", "preset", "parameters", "variant", "role", "tunables", "profile", "precision")


def samples(record: Record) -> list[float]:
    """Return a record's samples on the clock that ranks it, at most `MOST_SAMPLES`, the extremes among them."""
    assert record.timing
    values = [float(f"{value:.{SIGNIFICANT}g}") for value in getattr(record.timing, record.timing.rank)]
    if len(values) <= MOST_SAMPLES:
        return values
    ordered = sorted(values)
    return [ordered[round(i * (len(ordered) - 1) / (MOST_SAMPLES - 1))] for i in range(MOST_SAMPLES)]


def description(record: Record) -> dict[str, Any]:
    """Return what is known of a measured case beside its samples: identity, interval, bounds, provenance."""
    assert record.timing
    clock = record.timing.summary[record.timing.rank]
    known: dict[str, Any] = {
        "key": record.key, "run": record.run, "status": record.status.value, "provenance": record.provenance,
        **{name: value for name in IDENTITY if (value := getattr(record.identity, name)) is not None},
        "devices": record.identity.devices, "backend": record.identity.backend, "source_hash": record.source_hash,
        "clock": record.timing.rank, "cache": record.timing.cache, "samples": clock.n,
        "median": clock.median, "median_low": clock.ci_low, "median_high": clock.ci_high,
    }  # fmt: skip
    if record.metric:
        known["metric"] = f"{record.metric.value:.6g} {record.metric.unit}"
    for name in ("problem_bound", "variant_bound"):
        if bound := getattr(record, name):
            known[name] = {"seconds": bound.seconds, "binding": bound.binding, "share": bound.share.value}
    if record.status == "contended" and record.failure:
        known["contended"] = record.failure.reason
    return known


def measured(run: Run) -> dict[str, Record]:
    """Return a run's cases that have a result, by name (one line); of several of one identity the last."""
    last = {record.identity.model_dump_json(): record for record in run.records}
    named = zip(map(distinct_line, names([record.identity for record in last.values()])), last.values(), strict=True)
    return {name: record for name, record in named if record.status.measured and record.timing}


def pytest_benchmark(run: Run) -> str:
    """Return the JSON that ``pytest-benchmark compare`` reads."""
    commit = run.environment.get("commit") or {}
    return _json({
        "machine_info": _machine(run),
        "commit_info": {
            "id": commit.get("hash", "unknown"), "dirty": bool(commit.get("dirty")), "project": "perfport",
            "branch": "unknown", "time": None, "author_time": None,
        },
        "benchmarks": [
            {
                "group": line(f"{record.identity.workload}/{record.identity.problem} on {record.identity.devices[0]}"),
                "name": name, "fullname": name, "params": None, "param": None,
                "extra_info": description(record), "options": {"timer": "device_time"},
                "stats": _statistics(samples(record)),
            }
            for name, record in measured(run).items()
        ],
        "datetime": _started(run).isoformat(),
        "version": "4.0.0",
    })  # fmt: skip


def _machine(run: Run) -> dict[str, Any]:
    host = run.environment.get("host") or {}
    return {
        "node": "", "machine": "", "processor": host.get("cpu", ""), "python_version": host.get("python", ""),
        "system": host.get("os", ""), "cpu": {"brand_raw": host.get("cpu", ""), "count": host.get("cores")},
        "devices": {id_: device.get("name", "") for id_, device in (run.environment.get("devices") or {}).items()},
    }  # fmt: skip


def _started(run: Run) -> datetime:
    return datetime.fromisoformat(run.environment["started"])


def _statistics(values: list[float]) -> dict[str, Any]:
    """The columns of pytest-benchmark's tables."""
    mean = statistics.fmean(values)
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    outside = sum(not low <= value <= high for value in values)
    deviating = sum(abs(value - mean) > spread for value in values)
    return {
        "min": min(values), "max": max(values), "mean": mean, "stddev": spread, "rounds": len(values),
        "median": median, "iqr": q3 - q1, "q1": q1, "q3": q3, "iqr_outliers": outside, "stddev_outliers": deviating,
        "outliers": f"{deviating};{outside}", "ld15iqr": min(v for v in values if v >= low),
        "hd15iqr": max(v for v in values if v <= high), "ops": 1 / mean, "total": sum(values), "data": values,
        "iterations": 1,
    }  # fmt: skip


def google_benchmark(run: Run) -> str:
    """Return the JSON of Google Benchmark: a repetition for each sample. Its CPU time is the same as its real time."""
    listed = []
    for family, (name, record) in enumerate(measured(run).items()):
        values = samples(record)
        listed += [
            {
                "name": name, "run_name": name, "run_type": "iteration", "family_index": family,
                "per_family_instance_index": 0, "repetitions": len(values), "repetition_index": number, "threads": 1,
                "iterations": 1, "real_time": value * 1e9, "cpu_time": value * 1e9, "time_unit": "ns",
                "label": line(record.identity.devices[0]),
            }
            for number, value in enumerate(values)
        ]  # fmt: skip
    host = run.environment.get("host") or {}
    context: dict[str, Any] = {
        "date": _started(run).isoformat(), "host_name": "", "executable": "perfport", "num_cpus": host.get("cores"),
        "mhz_per_cpu": 0, "cpu_scaling_enabled": False, "caches": [], "load_avg": [], "library_build_type": "release",
    }  # fmt: skip
    return _json({"context": context, "benchmarks": listed})


def pyperf(run: Run) -> str:
    """Return the JSON of pyperf: a benchmark for each case, with one run."""
    host = run.environment.get("host") or {}
    benchmarks = []
    for name, record in measured(run).items():
        date = datetime.fromisoformat(record.time).replace(tzinfo=None).isoformat(" ")
        known = {"name": name, "unit": "second", "description": record.title, "date": date}
        known |= {"perfport_status": record.status.value, "perfport_provenance": record.provenance}
        if record.problem_bound:
            known["perfport_bound"] = f"{record.problem_bound.seconds:.6g} s, {record.problem_bound.binding}"
        filled = {key: value for key, value in known.items() if value}
        benchmarks.append({"metadata": filled, "runs": [{"values": samples(record)}]})
    context: dict[str, Any] = {
        "cpu_model_name": host.get("cpu"),
        "platform": host.get("os"),
        "python_version": host.get("python"),
    }
    shared = {key: value for key, value in context.items() if value}
    return _json({"version": "1.0", "metadata": shared, "benchmarks": benchmarks})


def smaller_is_better(run: Run) -> str:
    """Return the entries of github-action-benchmark's ``customSmallerIsBetter``: medians in ms with their intervals."""
    entries = []
    for name, record in measured(run).items():
        assert record.timing
        clock = record.timing.summary[record.timing.rank]
        bound = record.problem_bound
        share = f"{bound.share.value:.0%} of the {bound.binding} bound; " if bound else ""
        entries.append({
            "name": name, "unit": "ms", "value": clock.median * 1e3, "range": f"± {clock.half_width:.1%}",
            "extra": f"{share}{record.provenance}, {record.status.value}, {clock.n} samples",
        })  # fmt: skip
    return _json(entries)


def _json(content: Any) -> str:
    return json.dumps(content, indent=1) + "\n"


def otava(runs: Sequence[Run], path: Path) -> dict[Path, str]:
    """Return the table that Apache Otava imports, a row for each run, and the configuration that names its columns.

    Otava takes no empty cells: only the cases of all runs have a column.
    """
    import pandas as pd

    ordered = sorted(runs, key=_started)
    rows = [
        {
            "time": _started(run).isoformat(), "run": cell(run.name),
            "commit": cell((run.environment.get("commit") or {}).get("hash") or ""),
            **{cell(name): time_of(record) for name, record in measured(run).items()},
        }
        for run in ordered
    ]  # fmt: skip
    table = pd.DataFrame(rows).dropna(axis="columns")
    common = list(table.columns[3:])
    if not common:
        raise UsageError("export: the runs have no measured case in common")
    metrics = {name: {"column": name, "direction": -1} for name in common}
    test = {
        "type": "csv", "file": str(path), "time_column": "time", "attributes": ["run", "commit"], "metrics": metrics,
        "csv_options": {"delimiter": ",", "quote_char": '"'},
    }  # fmt: skip
    title = str((ordered[-1].environment.get("experiment") or {}).get("name") or "perfport")
    configuration = inside(path.parent, path.with_suffix(".yaml").name)
    return {
        path: table.to_csv(index=False, lineterminator="\n"),
        configuration: yaml.safe_dump({"tests": {title: test}}, sort_keys=False, width=1000),
    }


def p3(runs: Sequence[Run], path: Path) -> dict[Path, str]:
    """Return every case as CSV in the columns of P3 analysis: problem, platform, application, figure of merit."""
    from ..report.pages import portability
    from ..report.parts.view import as_csv

    collection = Collection(runs)
    return {path: as_csv(portability.export(collection, collection.places))}


OF_ONE_RUN: dict[str, Callable[[Run], str]] = {
    "pytest-benchmark": pytest_benchmark,
    "google-benchmark": google_benchmark,
    "pyperf": pyperf,
    "customSmallerIsBetter": smaller_is_better,
}
OF_MANY: dict[str, Callable[[Sequence[Run], Path], dict[Path, str]]] = {"otava": otava, "p3": p3}


def export(runs: Sequence[Run], form: str, path: Path) -> list[Path]:
    """Write runs in a format of another tool.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    UsageError
        For a format that there is not, several runs where the format holds one, or no measured case.
    """
    allowed = [*OF_ONE_RUN, *OF_MANY]
    if form not in allowed:
        raise UsageError(f"--format: {form!r} is not one of {', '.join(allowed)}{nearest(form, allowed)}")
    if not any(measured(run) for run in runs):
        raise UsageError(f"export: no measured case in {', '.join(run.name for run in runs)}")
    if form in OF_MANY:
        files = OF_MANY[form](runs, path)
    elif len(runs) == 1:
        files = {path: OF_ONE_RUN[form](runs[0])}
    else:
        listed = ", ".join(run.name for run in runs)
        raise UsageError(f"--format {form} holds one run, got {len(runs)}: {listed}")
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return list(files)
