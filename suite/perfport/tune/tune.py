"""``perfport tune``: the search of each variant of a target on each device, the final, the profiles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from ..machine import discovery, environment
from ..machine.chip_lock import chip_lock
from ..machine.device_profile import family
from ..machine.paths import shorten
from ..model.device import DeviceInfo
from ..model.errors import Stopped, UsageError, check_writable
from ..model.schema import explain
from ..run import local
from ..run.experiment import TuneOptions
from ..run.keys import harness_digest
from ..run.listing import usable_devices
from ..run.runner import stamp
from ..run.signals import heeded
from ..workload import discover
from . import final, profiles
from .final import finalists
from .log import LOG, NOTHING_FASTER, Log, Result, Search, Space
from .seeds import seeds
from .target import Goal, Target, target
from .tuner import Machine, Settings, Tuner


@dataclass(frozen=True)
class Options:
    """Options of ``perfport tune``; what is ``None`` is as the target says.

    Attributes
    ----------
    budget : float, optional
        Seconds of searching on each device.
    presets : dict of str to float
        Weights of sizes, in place of the target's.
    profile : Path, optional
        The profile that is written; else the user's own of each device.
    out : Path, optional
        Folder of the search.
    timeout : float
        Seconds that one step of a configuration may take.
    """

    target: str
    devices: list[str] | None = None
    budget: float | None = None
    presets: dict[str, float] = field(default_factory=dict)
    seed: int | None = None
    profile: Path | None = None
    out: Path | None = None
    resume: bool = False
    cache: str = "cold"
    timeout: float = 60.0
    workloads: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Done:
    """What came of a search: its folder, the results, and which variants each profile was told."""

    folder: Path
    results: list[Result]
    written: dict[Path, list[str]]


def run(options: Options, tell: Callable[[str], None], say: Callable[[str], None]) -> Done:
    """Search, measure the best again, write profiles.

    Parameters
    ----------
    tell, say : callable
        Are told what is done at the moment, and what is worth a line.

    Raises
    ------
    UsageError
        For bad input.
    InfrastructureError
        If no device is usable, or a file cannot be written.
    Stopped
        Where a signal ends it; ``--resume`` goes on.
    """
    workloads = discover(options.workloads)
    wanted = _with_options(target(options.target, workloads), options)
    folder = _folder(options, wanted.name)
    named = f"{options.target}: devices" if wanted.devices and not options.devices else "--device"
    devices = usable_devices(options.devices or wanted.devices, named)
    files = {device.id: options.profile or profiles.own_file(device) for device in devices}
    goals = wanted.goals(workloads, devices)
    profiles.check_shared(files, devices)
    for device in devices:
        check_writable(files[device.id], "-o")
        profiles.check(files[device.id], device)
    log = Log(folder)
    try:
        with heeded():
            _begin(log, wanted, goals, options.cache)
            settings = Settings(
                wanted.options.seed, wanted.options.objective, options.cache, options.timeout, options.workloads,  # type: ignore[arg-type]
                tell, say,
            )  # fmt: skip
            tuners = [
                tuner for device in devices for tuner in _search(device, goals, log, settings, wanted.options.budget)
            ]
            results = _conclude(tuners, folder, options, settings)
        for each in results:
            log.append(each)
    except (KeyboardInterrupt, Stopped):
        say(f"{folder}: stopped, with all that was measured kept; to go on: add --resume")
        raise
    finally:
        log.close()
    return Done(folder, results, _write(results, devices, files, settings.seed))


def _with_options(wanted: Target, options: Options) -> Target:
    """The target with what the command line says in place of its own."""
    given = {"budget": options.budget, "presets": options.presets or None, "seed": options.seed}
    changed = {name: value for name, value in given.items() if value is not None}
    try:
        return replace(wanted, options=TuneOptions.model_validate({**wanted.options.model_dump(), **changed}))
    except ValidationError as error:
        raise UsageError("\n".join(f"--{line}" for line in explain(error, TuneOptions).splitlines())) from None


def _folder(options: Options, name: str) -> Path:
    if options.out:
        if (options.out / LOG).exists() != options.resume:
            expected = "holds a search already; add --resume" if not options.resume else f"no search is here ({LOG})"
            raise UsageError(f"--out {options.out}: {expected}")
        check_writable(options.out, "--out", folder=True)
        return options.out
    if not options.resume:
        return local.RESULTS / f"tune-{name}-{stamp()}"
    own = re.compile(re.escape(f"tune-{name}-") + r"\d{8}-\d{6}")
    folders = sorted(f for f in local.RESULTS.glob("tune-*") if own.fullmatch(f.name) and (f / LOG).exists())
    if not folders:
        raise UsageError(f"--resume: no search of {name!r} under {local.RESULTS}")
    return folders[-1]


def _begin(log: Log, wanted: Target, goals: Sequence[Goal], cache: str) -> None:
    """Write the first line of a new log; of one that is resumed, refuse another search or other code."""
    first = _header(wanted, goals, cache)
    known = next((each for each in log.entries if isinstance(each, Search)), None)
    if known is None:
        log.append(first)
        return
    for name in ("name", "seed", "objective", "code"):
        if (was := getattr(known, name)) != (now := getattr(first, name)):
            raise UsageError(f"--resume: {name} was {was!r} and is {now!r}: start a new search")
    if known.cache not in (None, cache):
        raise UsageError(f"--resume: --warm: the cache was {known.cache!r} and is {cache!r}: start a new search")
    spaces = {(each.device, each.variant): each for each in log.entries if isinstance(each, Space)}
    for goal in goals:
        was = spaces.get((goal.device.id, goal.name))
        if was and was.presets != goal.presets:
            sizes = f"presets of {goal.name} were {was.presets} and are {dict(goal.presets)}"
            raise UsageError(f"--resume: {sizes}: start a new search")
    for id_, device in first.devices.items():
        if known.devices.get(id_) != device:
            raise UsageError(f"--resume: {id_} was {known.devices.get(id_)} and is {device}: start a new search")


def _header(wanted: Target, goals: Sequence[Goal], cache: str) -> Search:
    workloads = {goal.workload.name: goal.workload.source_digest() for goal in goals}
    code = hashlib.sha256("".join([harness_digest(), *workloads.values()]).encode()).hexdigest()[:16]
    devices = {goal.device.id: goal.device for goal in goals}
    return Search(
        name=wanted.name, started=datetime.now(UTC).isoformat(timespec="seconds"), seed=wanted.options.seed,
        objective=wanted.options.objective, cache=cache, code=code,
        commit=environment.commit_name(),
        devices=shorten({
            id_: {"name": device.name, "chip": device.chip, "driver": device.driver, "kind": device.kind}
            for id_, device in devices.items()
        }),
    )  # fmt: skip


def _search(device: DeviceInfo, goals: Iterable[Goal], log: Log, settings: Settings, budget: float) -> list[Tuner]:
    """Search every variant on a device; what one does not need of its part of the budget, those after it have."""
    machine = Machine(device, settings, log.folder)
    try:
        tuners = [Tuner(goal, seeds(goal), machine, log, settings) for goal in goals if goal.device.id == device.id]
        spent = 0.0
        with chip_lock(device.processor, settings.say):
            for number, tuner in enumerate(tuners):
                share = max((budget - spent) / (len(tuners) - number), 0.0)
                size = f"{tuner.space.size:,} configurations"
                settings.say(f"{device.id} {tuner.goal.name}: {size}, at most {share:.0f} s")
                tuner.run(max(share - tuner.spent, 0.0))
                spent += tuner.spent
    finally:
        machine.close()
    return tuners


def _conclude(tuners: Sequence[Tuner], folder: Path, options: Options, settings: Settings) -> list[Result]:
    """Measure the best of each search again, and return the results in the order of the searches."""
    chosen = {id(tuner): found for tuner in tuners if (found := finalists(tuner))}
    records = []
    if chosen:
        planned = final.groups(chosen.values(), settings.seed, settings.cache, settings.timeout)
        settings.say(f"measuring the best of {len(chosen)} searches again, by {final.WORKERS} fresh workers")
        settings.tell("")
        onward = [*options.command, *([] if "--resume" in options.command else ["--resume"])]
        again = local.Options(workloads=options.workloads, command=onward, retry=("contended",))
        records = final.measure(planned, folder, again, discovery.discover())
    return [
        final.result(chosen[id(tuner)], records, settings.objective) if id(tuner) in chosen else _nothing(tuner)
        for tuner in tuners
    ]


def _nothing(tuner: Tuner) -> Result:
    failed = next(
        (t.reason for each in tuner.standing.trials.values() for t in each.values() if t.relative is None), ""
    )
    reason = NOTHING_FASTER
    if tuner.standing.best is None:
        reason = f"no configuration has a result: {failed}" if failed else "the budget was too small to try any"
    return Result(
        device=tuner.goal.device.id, variant=tuner.goal.name, presets=dict(tuner.goal.presets), tried=tuner.tried,
        of=tuner.space.size, reason=reason[:1000],
    )  # fmt: skip


def _best(results: Sequence[Result], variant: str) -> Result:
    """The result of a variant that gains most, among those of equal devices, which share an entry of the profile."""
    own = [each for each in results if each.variant == variant]
    return max(
        own, key=lambda each: (each.answer is not None, each.gain.value if each.parameters and each.gain else 0.0)
    )


def _write(
    results: Sequence[Result], devices: Sequence[DeviceInfo], files: dict[str, Path], seed: int
) -> dict[Path, list[str]]:
    written: dict[Path, list[str]] = {}
    for device in devices:
        equal = {
            each.id for each in devices
            if (files[each.id], each.name, family(each)) == (files[device.id], device.name, family(device))
        }  # fmt: skip
        found = [each for each in results if each.device in equal]
        own = {each.variant: each for each in found if each.device == device.id and each is _best(found, each.variant)}
        if names := profiles.update(files[device.id], device, own, seed):
            written.setdefault(files[device.id], []).extend(names)
    return written
