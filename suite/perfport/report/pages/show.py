"""One case on one screen, for the author of its kernel: the answer of ``perfport show``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...judge.explain import explain_record
from ...model.names import settings
from ...model.record import Bound, Interval, Record
from ...model.untrusted import indented, line, opening
from ...store.results import Run
from ...untimed.show import Subject
from ..parts.failures import reason
from ..parts.labels import label
from ..parts.quantities import interval, percent, seconds, share, size, time_interval

#: Characters of a line, and kernels that are listed.
WIDTH, MOST_KERNELS = 100, 6
#: What readers call the resources of a kernel.
TOLD = {
    "max_work_group": "work-group <= {}", "local_bytes": "local {} B", "private_bytes": "private (spills, arrays) {} B",
    "registers": "{} registers",
}  # fmt: skip


def terminal(subject: Subject) -> str:
    """Return what is known of a case in at most 24 lines of text, each of `WIDTH` characters at most."""
    rows = _of_record(subject.record, subject.run) if subject.record and subject.run else _of_variant(subject)
    return "\n".join(line(row, WIDTH) if "\n" not in row else row for row in rows if row)


def _of_variant(subject: Subject) -> Iterator[str]:
    cls, identity = subject.variant, subject.identity
    problem = cls.problem
    yield f"{identity.workload}/{identity.problem}/{identity.variant}: {cls.title or problem.title}"
    yield f"  {cls.role} {cls.rung}, {cls.precision}; source: {cls.source or 'none'}"
    yield f"  needs: {', '.join(cls.needs) or 'nothing'}; defined in {cls.__module__}"
    for name, tunable in cls.tunables.items():
        yield f"  tunable {name} = {tunable.default}, of {list(tunable.values)}"
    yield f"  preset {identity.preset}: {settings(identity.parameters)}"
    yield f"  presets: {', '.join(problem.presets)}; headline: {settings(dict(problem.headline)) or 'none'}"
    yield "  more: --json, --source, --ptx, --rerun; perfport dev works on it"


def _of_record(record: Record, run: Run) -> Iterator[str]:
    identity = record.identity
    yield f"{identity.workload}/{identity.problem}/{identity.variant} on {' + '.join(identity.devices)}: {record.title}"
    yield f"  {record.key}  {record.status.value}, run {record.run}, {record.time}"
    yield f"  {identity.preset or 'no preset'}: {settings(identity.parameters)}; {identity.precision}"
    if identity.tunables or identity.profile:
        yield f"  tunables: {settings(identity.tunables) or 'none'}; profile: {identity.profile or 'none'}"
    if record.failure or record.status.failed:
        compiler = record.failure.log if record.failure else ""
        yield "failure" + indented(line(reason(record), 6 * WIDTH), opening(compiler), limit=6 * WIDTH)
    yield from _time(record)
    yield _bound("problem bound", record.problem_bound)
    yield _bound("variant bound", record.variant_bound)
    yield from _binding(record)
    if verified := record.verification:
        errors = (f"{name} {error.relative_l2:.2g}" for name, error in verified.outputs.items())
        passed = "passed" if verified.passed else "failed"
        yield f"verified      {passed} on seed {verified.seed}; relative L2: {', '.join(errors)}"
    yield from kernels(record.resources, record.timing.kernels if record.timing else {})
    paid = record.overheads
    if paid.compile_s is not None:
        yield f"paid besides  compile {seconds(paid.compile_s, 3)}, device memory {size(paid.device_bytes)}"
    yield f"  more: --json, --source, --ptx, --log, --rerun (--results {run.folder})"


def _time(record: Record) -> Iterator[str]:
    if not (timing := record.timing):
        return
    taken = timing.summary[timing.rank]
    clock = f"{timing.rank}, {timing.cache} cache, n = {taken.n}, {timing.launches} launches"
    yield f"time          {time_interval(timing.ranked)}, {clock}"
    if metric := record.metric:
        found = Interval(value=metric.value, low=metric.low, high=metric.high)
        yield f"metric        {interval(found)} {metric.unit} ({metric.direction} is better)"


def _bound(name: str, bound: Bound | None) -> str:
    if bound is None:
        return ""
    return f"{name:<13} {seconds(bound.seconds)} ({label(bound.binding)}): reached {share(bound)}"


def _binding(record: Record) -> Iterator[str]:
    if record.timing and (terms := explain_record(record, record.identity.device_count > 1).terms):
        yield "what binds    " + ", ".join(f"{label(term.name)} {percent(term.share)}" for term in terms[:4])


def kernels(resources: Mapping[str, Any], times: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for each kernel with what it takes of the device, as far as the runtime tells, and its time."""
    for name in list(resources)[:MOST_KERNELS]:
        held = resources[name]
        told = (
            [TOLD.get(key, key + " {}").format(value) for key, value in held.items()] if isinstance(held, dict) else []
        )
        busy = [seconds(times[name], 3)] if name in times else []
        yield f"kernel        {name}: {', '.join([*busy, *told])}"
    if len(resources) > MOST_KERNELS:
        yield f"              and {len(resources) - MOST_KERNELS} more kernels"
