"""Results of other benchmark tools as peers of a stored run (docs/integrations.md).

What was measured elsewhere says neither which problem it solved nor on which device. The user does, by pointing at a
case of a run: the imported results get its problem's size, work and bounds, and stand beside its variants as peers.
Nothing verified their outputs, and their title says so.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from ..machine.paths import shorten
from ..measure.intervals import summarise
from ..measure.roofline import problem_bound
from ..model import schema
from ..model.errors import UsageError, leave_out, nearest, shown
from ..model.files import parse_json, read, read_text
from ..model.record import Identity, Interval, MetricValue, Record, Status, Timing
from ..store.ratios import time_of
from ..store.reading import LONGEST, MOST_NAME, SHORTEST
from ..store.results import EXPERIMENT, Run, Writer

TARGET = 0.02  # half the interval of the median, relative: the default of experiments
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
Samples = dict[str, list[float]]
#: What is imported is held to what is read from records.
Seconds = Annotated[float, Field(ge=SHORTEST, le=LONGEST)]
Name = Annotated[str, Field(min_length=1, max_length=MOST_NAME, pattern=r"^[^\p{C}]*$")]


class _Statistics(BaseModel):
    data: list[Seconds]


class _PytestBenchmark(BaseModel):
    fullname: Name
    stats: _Statistics

    def samples(self) -> Sequence[float]:
        return self.stats.data


class _GoogleBenchmark(BaseModel):
    """Aggregates (``run_type``) and entries with an error have no time of their own."""

    name: Name
    run_type: str = "iteration"
    error_occurred: bool = False
    real_time: float | None = None
    time_unit: Literal["s", "ms", "us", "ns"] = "ns"

    @model_validator(mode="after")
    def _timed(self) -> Self:
        if any(not SHORTEST <= seconds <= LONGEST for seconds in self.samples()):
            expected = f"expected {SHORTEST:g} to {LONGEST:g} s"
            raise ValueError(f"real_time: {expected}, got {shown(self.real_time)} {self.time_unit}")
        return self

    @property
    def fullname(self) -> str:
        return self.name

    def samples(self) -> Sequence[float]:
        if self.run_type != "iteration" or self.error_occurred:
            return ()
        return [(self.real_time or 0.0) * UNITS[self.time_unit]]


class _Metadata(BaseModel):
    name: Name | None = None
    unit: str | None = None


class _PyperfRun(BaseModel):
    values: list[Seconds] = Field(default_factory=list)  # none in one that calibrates


class _Pyperf(BaseModel):
    """``shared`` is what the file says of all of its benchmarks."""

    metadata: _Metadata = Field(default_factory=_Metadata)
    shared: _Metadata
    runs: list[_PyperfRun]

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.fullname:
            raise ValueError("metadata.name: required key is missing")
        return self

    @property
    def fullname(self) -> str:
        return self.metadata.name or self.shared.name or ""

    def samples(self) -> Sequence[float]:
        unit = self.metadata.unit or self.shared.unit or "second"
        return [value for run in self.runs for value in run.values] if unit == "second" else ()


#: An entry of ``benchmarks``, by format.
FORMS: dict[str, type[_PytestBenchmark | _GoogleBenchmark | _Pyperf]] = {
    "pytest-benchmark": _PytestBenchmark,
    "google-benchmark": _GoogleBenchmark,
    "pyperf": _Pyperf,
}


@dataclass(frozen=True)
class Source:
    """A file of another tool, and the format that it is in."""

    file: Path
    form: str

    def __str__(self) -> str:
        return f"{self.form} file {self.file.name}"

    @cached_property
    def _content(self) -> bytes:
        return read(self.file)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self._content).hexdigest()

    @property
    def taken(self) -> str:
        """When it was written, in ISO 8601."""
        return datetime.fromtimestamp(self.file.stat().st_mtime, UTC).isoformat(timespec="milliseconds")

    def samples(self) -> Samples:
        """Return the samples in seconds of each benchmark; entries that are none are named and left out.

        Raises
        ------
        UsageError
            For an unknown format, or a file that is not of that format or holds no samples.
        """
        file, form = self.file, self.form
        if form not in FORMS:
            raise UsageError(f"--format: {form!r} is not one of {', '.join(FORMS)}{nearest(form, FORMS)}")
        content = parse_json(self._content, str(file))
        entries = content.get("benchmarks") if isinstance(content, dict) else None
        if not isinstance(entries, list):
            raise UsageError(f"{file}: not a file of {form} (expected a list under the key benchmarks)")
        samples: Samples = defaultdict(list)
        for number, entry in enumerate(entries):
            try:
                held = schema.validate(FORMS[form], _whole(entry, content, form), f"{file}: benchmarks[{number}]")
            except UsageError as error:
                leave_out(error)
                continue
            samples[held.fullname] += held.samples()
        samples = {name: values for name, values in samples.items() if values}
        if not samples:
            raise UsageError(f"{file}: no samples of any benchmark")
        return samples


def _whole(entry: Any, content: dict[str, Any], form: str) -> Any:
    """An entry with what its file says of all."""
    if form != "pyperf" or not isinstance(entry, dict):
        return entry
    return {**entry, "shared": content.get("metadata") or {}}


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


CACHES = ("cold", "warm")


def cache_of(run: Run, model: Record) -> str:
    """Return in what state a loop of another tool finds the cache: ``cold`` where the problem's bytes do not fit in it.

    The compulsory bytes of one execution are held to the last-level caches of the devices.
    """
    assert model.work
    known = run.environment.get("devices") or {}
    sizes = [(known.get(id_) or {}).get("last_level_cache_bytes") for id_ in model.identity.devices]
    held = sum(size for size in sizes if size)
    return "cold" if all(sizes) and model.work.read_bytes + model.work.write_bytes > held else "warm"


def adopt(
    source: Source, run: Run, case: str, folder: Path, command: list[str], *, cache: str | None = None
) -> list[Record]:
    """Write a run folder with a file's benchmarks as peers of a run's case.

    ``cache`` is ``cold`` or ``warm``: the state that each repetition found, which decides whether DRAM bounds it; by
    default that of `cache_of`.

    Raises
    ------
    UsageError
        For a file, format or case that does not serve, or a folder that holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--out {folder}: is not empty")
    if cache not in (None, *CACHES):
        raise UsageError(f"--cache: {cache!r} is not one of {', '.join(CACHES)}{nearest(str(cache), CACHES)}")
    samples, model = source.samples(), template(run, case)
    found = _Found(source, model, cache or cache_of(run, model), folder.name)
    records = [_record(name, values, found) for name, values in samples.items()]
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
            writer.text(EXPERIMENT, read_text(run.folder / EXPERIMENT))
        for record in records:
            writer.append(record)
    return records


@dataclass(frozen=True)
class _Found:
    """What the records of a file share: where they are from, what they solve, the state of the cache, their run."""

    source: Source
    model: Record
    cache: str
    run: str


def _record(name: str, values: list[float], found: _Found) -> Record:
    source, model = found.source, found.model
    summary = summarise(values)
    seconds = Interval(value=summary.median, low=summary.ci_low, high=summary.ci_high)
    known = model.identity
    identity = Identity(
        workload=known.workload, problem=known.problem, preset=known.preset, parameters=known.parameters,
        variant=name, role="peer", devices=known.devices, backend=known.backend, precision=known.precision,
        inputs=known.inputs,
    )  # fmt: skip
    timing = Timing(
        rank="wall", cache=found.cache, launches=0, rounds=list(range(len(values))), wall=values,
        summary={"wall": summary}, target=TARGET, target_met=summary.within(TARGET),
    )  # fmt: skip
    assert model.work
    return Record(
        key=hashlib.sha256(f"{identity.model_dump_json()}{source.digest}".encode()).hexdigest()[:16], run=found.run,
        time=source.taken, status=Status.OK, identity=identity, title="measured elsewhere, not verified",
        source=str(source), seed=model.seed, timing=timing, work=model.work, ceilings=model.ceilings,
        metric=_metric(model, seconds),
        problem_bound=problem_bound(model.work, model.ceilings, seconds, cold=found.cache == "cold"),
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
