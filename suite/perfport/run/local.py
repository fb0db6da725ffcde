"""A run on this machine: plan, results folder, resume, runner."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..machine import discovery, environment
from ..machine.device_profile import match_profile
from ..machine.paths import shorten
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, Stopped, UsageError, check_writable, leave_out
from ..model.files import read_text
from ..model.record import RETRY, Record, Status
from ..model.untrusted import inside, say
from ..store.environment import ENVIRONMENT, ENVIRONMENT_VERSION, read_fixed
from ..store.reading import read_records
from ..store.results import EXPERIMENT, RECORDS, Writer, find_runs
from ..workload import Workload, discover
from . import defaults, experiment, plan, sources
from .cases import Group, measurements, pending
from .experiment import Experiment
from .progress import RunProgress
from .runner import Runner, stamp
from .signals import heeded

RESULTS = Path("results")
REPORT = "report.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass
class Options:
    """Options of ``perfport run``; ``native``: the code's own defaults, whatever was tuned."""

    dry_run: bool = False
    resume: bool = False
    retry: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    devices: list[str] | None = None
    out: Path | None = None
    workloads: list[str] = field(default_factory=list)
    seed: int | None = None
    native: bool = False
    command: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether the run is all of its experiment, kept where its runs are kept."""
        return not self.patterns and not self.devices and self.out is None


@dataclass(frozen=True)
class Prepared:
    """A planned run: everything that `execute` takes; ``discovered`` are the devices here, broken ones among them."""

    groups: list[Group]
    definition: Experiment
    path: Path
    workloads: dict[str, Workload]
    folder: Path
    options: Options
    discovered: list[DeviceInfo]


class Finished(NamedTuple):
    """A run that has ended.

    Attributes
    ----------
    records : list of Record
        All of it; after ``--resume`` the earlier ones included.
    folders : list of Path
        Its run folders.
    report : Path or None
        Where the experiment wants a report. The caller renders it.
    lost : str
        Jobs that ended before anybody knew what they were to run.
    """

    records: list[Record]
    folders: list[Path]
    report: Path | None
    lost: str = ""


def run(path: Path, definition: Experiment, options: Options) -> Finished:
    """Run an experiment on the devices of this machine; with ``dry_run`` print its cases alone.

    Raises
    ------
    UsageError
        For bad input.
    InfrastructureError
        If no device is usable or the results folder cannot be written.
    """
    prepared = prepare(path, definition, options)
    if options.dry_run:
        _print_plan(prepared.groups)
        return Finished([], [], None)
    return execute(prepared)


def prepare(path: Path, definition: Experiment, options: Options) -> Prepared:
    """Plan an experiment on the devices here. Raises as `run` does."""
    folder = _folder(definition, options)
    if (report := report_file(definition, folder, options.whole)) and not options.dry_run:
        check_writable(report, f"{path}: report.path")
    workloads = discover(options.workloads)
    plan.check(definition, str(path), workloads, patterns=options.patterns)
    discovered = discovery.discover()
    where = "--device" if options.devices else f"{path}: devices"
    devices = choose(options.devices or definition.devices, discovered, where)
    seed = _seed(folder, definition, options)
    groups = plan.make(
        definition, str(path), workloads, devices, seed, patterns=options.patterns, native=options.native
    )  # fmt: skip
    if not groups:
        matches = f" that matches {' or '.join(map(repr, options.patterns))}" if options.patterns else ""
        raise UsageError(f"{path}: no case is left{matches}")
    return Prepared(groups, definition, path, workloads, folder, options, discovered)


def choose(selectors: list[str], discovered: list[DeviceInfo], where: str) -> list[DeviceInfo]:
    """Return the devices to run on.

    Parameters
    ----------
    selectors : list of str
    discovered : list of DeviceInfo
        All that are here, broken ones among them.
    where : str
        What gave the selectors.

    Raises
    ------
    UsageError
        If a selector names nothing.
    InfrastructureError
        If no device that they name works, with the reasons.
    """
    if chosen := plan.select_devices(selectors, discovered, where):
        return chosen
    broken = "".join(f"\n  {device.id}: {device.reason}" for device in discovered if not device.healthy)
    hint = "'pip install perfport[cpu]' brings an OpenCL runtime for x86-64 CPUs; Debian has pocl-opencl-icd"
    raise InfrastructureError(
        f"no usable device for {', '.join(selectors)!r}; {hint}" + (f"; broken ones:{broken}" if broken else "")
    )


def _folder(definition: Experiment, options: Options) -> Path:
    if options.out:
        check_out(options, RECORDS)
        return options.out
    if options.resume:
        own = re.compile(re.escape(definition.name) + r"-\d{8}-\d{6}")
        runs = [run for run in find_runs(RESULTS) if own.fullmatch(run.name)]
        if not runs:
            raise UsageError(f"--resume: no run of {definition.name!r} under {RESULTS}")
        return runs[-1]
    return RESULTS / f"{definition.name}-{stamp()}"


def check_out(options: Options, file: str) -> None:
    """Refuse an ``--out`` that holds a run to a new one, and one that holds none to a resumed one.

    ``file`` is what a folder with a run holds. Raises `UsageError`, or `InfrastructureError` if it cannot be written.
    """
    assert options.out
    held = (options.out / file).exists()
    if held and not options.resume and not options.dry_run:
        raise UsageError(f"--out {options.out}: holds a run already; add --resume to go on with it")
    if options.resume and not held:
        raise UsageError(f"--resume --out {options.out}: no run is here (expected a folder with {file})")
    if not options.dry_run:
        check_writable(options.out, "--out", folder=True)


def report_file(definition: Experiment, folder: Path, whole: bool) -> Path | None:
    """Return where a run's report goes; ``None`` for none.

    The experiment's report is that of its whole runs: the report of any other goes into the run's own folder.
    """
    if definition.report.path is None:
        return None
    return Path(definition.report.path) if whole else inside(folder, REPORT)


def again(command: list[str]) -> str:
    """Return the command that measures the contended cases of what a command ran again."""
    if command[1:2] != ["run"]:
        return shlex.join(command)
    return shlex.join([*(word for word in command if word != "--resume"), "--resume", "--retry", "contended"])


def _onward(command: list[str]) -> str:
    """Say how a run that was stopped goes on; nothing for other commands, which cannot."""
    if command[1:2] != ["run"]:
        return ""
    return f"; to go on: {shlex.join([*command, *([] if '--resume' in command else ['--resume'])])}"


def _seed(folder: Path, definition: Experiment, options: Options) -> int:
    if options.resume and (folder / RECORDS).exists():
        known, _ = read_fixed(folder)
        if known.get("seed") is not None:
            return int(known["seed"])
        for record in read_records(folder / RECORDS):
            return record.seed
    return seed_of(definition, options)


def seed_of(definition: Experiment, options: Options) -> int:
    """Return the seed of the inputs that a new run times."""
    return definition.seed if options.seed is None else options.seed


def _print_plan(groups: list[Group]) -> None:
    """Print a line for each case below its group, no wider than the terminal (80 columns where there is none)."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    titles = Counter(group.title for group in groups)
    for group in groups:
        sizes = ", ".join(f"{name}={value}" for name, value in group.parameters.items())
        title = group.title if titles[group.title] == 1 else f"{group.title}: {sizes}"
        say(textwrap.fill(title, width, subsequent_indent="    ", break_on_hyphens=False))
        for case in group.cases:
            identity = case.identity
            tunables = [f"{name}={value}" for name, value in identity.tunables.items()]
            words = [identity.variant, *([] if identity.role == "rung" else [f"({identity.role})"]), *tunables]
            words += [f"profile={identity.profile}"] if identity.profile else []
            line = f"  {case.key}  {' '.join(words)}"
            say(textwrap.fill(line, width, subsequent_indent=" " * 22, break_on_hyphens=False))
    say(f"\n{sum(len(group.cases) for group in groups)} cases in {len(groups)} groups, seed {groups[0].seed}")


def execute(prepared: Prepared) -> Finished:
    """Run planned groups into a folder, and say how the cases ended.

    Raises
    ------
    Stopped
        Where SIGTERM or SIGHUP comes. As after Ctrl-C, what was measured is stored and the run can go on.
    """
    folder, options = prepared.folder, prepared.options
    with heeded(), opened(prepared) as writer:
        done = list(read_records(folder / RECORDS))
        retry = frozenset[Status]().union(*(RETRY[name] for name in options.retry))
        left = pending(prepared.groups, done, retry)
        total = measurements(left)
        with RunProgress(total) as progress:
            if done:
                progress.say(f"{folder}: {len(done)} records kept, {total} measurements to go")
            try:
                new = Runner(writer, options.workloads, progress, done).run(left)
            except (KeyboardInterrupt, Stopped):
                progress.say(f"{folder}: stopped, with all that was measured stored{_onward(options.command)}")
                raise
    records = list({record.key: record for record in [*done, *new]}.values())
    conclude(records, [folder], say, again(options.command))
    return Finished(records, [folder], report_file(prepared.definition, folder, options.whole))


@contextlib.contextmanager
def opened(prepared: Prepared) -> Iterator[Writer]:
    """Hold a run's folder open, with an environment file that tells of what is planned now."""
    folder, planned = prepared.folder, _keys(prepared.groups)
    with Writer(folder) as writer:
        held = {record.key for record in read_records(folder / RECORDS)}
        known = _known(folder / ENVIRONMENT, new=not held)
        content = dict(known) or _environment(prepared)
        if not known:
            writer.text(EXPERIMENT, read_text(prepared.path))
            if held - planned:  # nobody knows any more what these were measured with
                del content["code"], content["defaults"]
        # Beside what it has and had planned, what is planned now: a run may go on with more of its experiment.
        content = defaults.with_more(content, prepared.groups)
        content["planned"] = max(content.get("planned") or 0, len(held | planned))
        if content != known or not (folder / ENVIRONMENT).exists():
            writer.environment(content)
        yield writer


def _known(file: Path, new: bool) -> dict[str, Any]:
    """Return what a run's environment file says. A damaged one is named, and kept under another name."""
    known, left_out = read_fixed(file.parent)
    if file.exists() or not new:
        for error in left_out:
            leave_out(error)
    if left_out and file.exists():
        file.replace(file.with_name(f"{file.name}.damaged"))
    return known


def _keys(groups: list[Group]) -> set[str]:
    return {case.key for group in groups for case in group.cases}


def _environment(prepared: Prepared) -> dict[str, Any]:
    groups, definition, workloads = prepared.groups, prepared.definition, prepared.workloads
    used = {group.device.id: group.device for group in groups}
    names = sorted({group.workload for group in groups})
    identities = [case.identity for group in groups for case in group.cases]
    return {
        "schema_version": ENVIRONMENT_VERSION,
        "run": prepared.folder.name,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": groups[0].seed,
        "command": shorten(prepared.options.command),
        "experiment": {
            "name": definition.name, "title": definition.title, "file": prepared.path.name,
            "sha256": experiment.digest(prepared.path),
        },
        "host": environment.host(),
        "versions": environment.versions(),
        "commit": environment.commit(),
        "defaults": defaults.describe(groups),
        "code": sources.describe(workloads, identities),
        "planned": len(_keys(groups)),
        "devices": shorten({name: device.model_dump() for name, device in used.items()}),
        "broken_devices": shorten({device.id: device.reason for device in prepared.discovered if not device.healthy}),
        "profiles": _profiles(used.values()),
        "workloads": {name: _describe(workloads[name]) for name in names},
        "report": shorten(definition.report.model_dump()),
    }  # fmt: skip


def _profiles(devices: Iterable[DeviceInfo]) -> dict[str, Any]:
    """Return what the data sheet says of each device that has a profile, by the device's id."""
    matching = {device.id: match_profile(device.name, device.kind) for device in devices}
    return {
        id_: {
            "name": profile.name, "title": profile.title, "bandwidth": profile.bandwidth, "fp32": profile.fp32,
            "nominal": profile.nominal,
        }
        for id_, profile in matching.items()
        if profile
    }  # fmt: skip


def _describe(workload: Workload) -> dict[str, Any]:
    problems = {
        name: {
            "title": problem.title,
            "metric": {
                "tag": problem.metric.tag, "unit": problem.metric.unit, "direction": problem.metric.direction,
                "description": problem.metric.description,
            },
            "figures": dict(problem.figures),
            **problem.sizes(),
        }
        for name, problem in workload.problems.items()
    }  # fmt: skip
    return {
        "title": workload.title,
        "problems": problems,
        "published": [figure.model_dump(exclude_none=True) for figure in workload.published],
    }


def conclude(records: list[Record], folders: list[Path], say: Callable[[str], None], command: str) -> None:
    """Say how the cases ended and what to do about contended ones.

    Parameters
    ----------
    records : list of Record
        All of the run.
    folders : list of Path
        Its run folders.
    command : str
        What measures contended cases again.
    """
    counts = Counter(record.status.value for record in records)
    say(f"{', '.join(map(str, folders))}: {', '.join(f'{n} {status}' for status, n in sorted(counts.items()))}")
    contended = [record for record in records if record.status is Status.CONTENDED]
    if contended:
        say(f"{len(contended)} of {len(records)} cases were contended: {_reasons(contended)}.")
        say(f"Their times may be wrong. When the machine is quiet, measure them again: {command}")


def _reasons(records: list[Record]) -> str:
    """Return why records are contended; reasons that differ in a number alone are given once."""
    alike: dict[str, list[str]] = {}
    for record in records:
        reason = record.failure.reason if record.failure else "no reason is stored"
        alike.setdefault(NUMBER.sub("", reason), []).append(reason)
    told = []
    for same in alike.values():
        worst = max(same, key=lambda reason: [float(number) for number in NUMBER.findall(reason)])
        told.append(f"{worst} (the worst of {len(same)} cases)" if len(same) > 1 else worst)
    return "; ".join(told)
