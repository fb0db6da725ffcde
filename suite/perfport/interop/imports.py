"""Results of other benchmark tools as peers of a stored run (docs/integrations.md).

What was measured elsewhere says neither which problem it solved nor on which device. The user does, by pointing at a
case of a run: the imported results get its problem's size, work and bounds, and stand beside its variants as peers.
Nothing verified their outputs, and their title says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ..machine.paths import shorten
from ..measure.intervals import summarise
from ..measure.roofline import problem_bound
from ..model.errors import UsageError, nearest
from ..model.record import Identity, Interval, MetricValue, Record, Status, Timing
from ..store.ratios import time_of
from ..store.results import EXPERIMENT, Run, Writer

TARGET = 0.02  # half the interval of the median, relative: the default of experiments
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
Samples = dict[str, list[float]]


def _pytest_benchmark(content: Any) -> Samples:
    return {entry["fullname"]: entry["stats"]["data"] for entry in content["benchmarks"]}


def _google_benchmark(content: Any) -> Samples:
    samples: Samples = {}
    for entry in content["benchmarks"]:
        if entry.get("run_type", "iteration") == "iteration" and not entry.get("error_occurred"):
            samples.setdefault(entry["name"], []).append(entry["real_time"] * UNITS[entry["time_unit"]])
    return samples


def _pyperf(content: Any) -> Samples:
    shared, samples = content.get("metadata") or {}, {}
    for entry in content["benchmarks"]:
        known = {**shared, **(entry.get("metadata") or {})}
        if known.get("unit", "second") == "second":
            samples[known["name"]] = [value for run in entry["runs"] for value in run.get("values", ())]
    return samples


READERS: dict[str, Callable[[Any], Samples]] = {
    "pytest-benchmark": _pytest_benchmark,
    "google-benchmark": _google_benchmark,
    "pyperf": _pyperf,
}


@dataclass(frozen=True)
class Source:
    """A file of another tool, and the format that it is in."""

    file: Path
    form: str

    def __str__(self) -> str:
        return f"{self.form} file {self.file.name}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    @property
    def taken(self) -> str:
        """When it was written, in ISO 8601."""
        return datetime.fromtimestamp(self.file.stat().st_mtime, UTC).isoformat(timespec="milliseconds")

    def samples(self) -> Samples:
        """Return the samples in seconds of each benchmark.

        Raises
        ------
        UsageError
            For an unknown format, or a file that is not of that format or holds no samples.
        """
        file, form = self.file, self.form
        if form not in READERS:
            raise UsageError(f"--format: {form!r} is not one of {', '.join(READERS)}{nearest(form, READERS)}")
        try:
            samples = READERS[form](json.loads(file.read_text()))
        except OSError as error:
            raise UsageError(f"{file}: cannot be read ({error.strerror})") from None
        except (ValueError, UnicodeDecodeError):
            raise UsageError(f"{file}: not JSON") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{file}: not a file of {form} with its samples ({type(error).__name__}: {error})"
            ) from None
        samples = {name: values for name, values in samples.items() if values}
        if not samples:
            raise UsageError(f"{file}: no samples of any benchmark")
        return samples


def template(run: Run, case: str) -> Record:
    """Return a measured record of the problem and device that ``WORKLOAD/PROBLEM[/PRESET][@DEVICE]`` names.

    Raises
    ------
    UsageError
        If the run holds none, or several problem sizes or devices of it.
    """
    what, _, device = case.partition("@")
    wanted = what.split("/")
    candidates: dict[str, Record] = {}
    listed: dict[str, None] = {}
    for record in run.records:
        identity = record.identity
        if not record.status.measured or not record.work:
            continue
        where = "+".join(identity.devices)
        name = f"{identity.workload}/{identity.problem}/{identity.preset or json.dumps(identity.parameters)}@{where}"
        listed[name] = None
        if [identity.workload, identity.problem, identity.preset][: len(wanted)] == wanted and device in ("", where):
            candidates.setdefault(f"{name} {sorted(identity.parameters.items())}", record)
    if len(candidates) == 1:
        return next(iter(candidates.values()))
    problem = "several cases of the run are" if candidates else "no measured case of the run is"
    raise UsageError(f"--as: {problem} {case!r}{nearest(case, listed)}; there are: {', '.join(listed) or 'none'}")


def adopt(source: Source, run: Run, case: str, folder: Path, command: list[str]) -> list[Record]:
    """Write a run folder with a file's benchmarks as peers of a run's case.

    Raises
    ------
    UsageError
        For a file, format or case that does not serve, or a folder that holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--out {folder}: is not empty")
    samples, model = source.samples(), template(run, case)
    records = [_record(name, values, source, model, folder.name) for name, values in samples.items()]
    imported = {"file": source.file.name, "sha256": source.digest, "format": source.form, "beside": run.name}
    environment = {
        **run.environment,
        "run": folder.name,
        "command": shorten(command),
        "imported": imported,
        "probes": [],
    }
    environment["planned"] = len(records)
    with Writer(folder) as writer:
        writer.environment(environment)
        if (run.folder / EXPERIMENT).exists():
            writer.text(EXPERIMENT, (run.folder / EXPERIMENT).read_text())
        for record in records:
            writer.append(record)
    return records


def _record(name: str, values: list[float], source: Source, model: Record, run: str) -> Record:
    summary = summarise(values)
    seconds = Interval(value=summary.median, low=summary.ci_low, high=summary.ci_high)
    known = model.identity
    identity = Identity(
        workload=known.workload, problem=known.problem, preset=known.preset, parameters=known.parameters,
        variant=name, role="peer", devices=known.devices, backend=known.backend, precision=known.precision,
        inputs=known.inputs,
    )  # fmt: skip
    timing = Timing(
        rank="wall", cache="warm", launches=0, rounds=list(range(len(values))), wall=values,
        summary={"wall": summary}, target=TARGET, target_met=summary.within(TARGET),
    )  # fmt: skip
    assert model.work
    return Record(
        key=hashlib.sha256(f"{identity.model_dump_json()}{source.digest}".encode()).hexdigest()[:16], run=run,
        time=source.taken, status=Status.OK, identity=identity, title="measured elsewhere, not verified",
        source=str(source), seed=model.seed, timing=timing, work=model.work, ceilings=model.ceilings,
        metric=_metric(model, seconds),
        problem_bound=problem_bound(model.work, model.ceilings, seconds, None, cold=False),
    )  # fmt: skip


def _metric(model: Record, seconds: Interval) -> MetricValue | None:
    """The problem's metric: a rate, or where lower is better a time, it goes with the time of the model's."""
    if model.metric is None or model.timing is None:
        return None
    rate = model.metric.direction == "higher"
    values = [
        model.metric.value * (time_of(model) / each if rate else each / time_of(model))
        for each in (seconds.value, seconds.low, seconds.high)
    ]
    return model.metric.model_copy(update={"value": values[0], "low": min(values), "high": max(values)})
