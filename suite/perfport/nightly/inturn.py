"""Suspected cases measured in turn by the base's code and the run's, each round by a fresh worker of either.

A run is held to times of another hour: the machine may have shifted since, and each run has effects that all of its
workers share. Where the base's code can be laid out (`perfport.nightly.checkout`), both sides are measured again in the
same minutes, and compared round by round. Who comes first changes from round to round.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml

from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, PerfportError
from ..model.names import NATIVE
from ..model.record import Record, Status
from ..model.untrusted import inside
from ..run import plan
from ..run.experiment import Executor, Experiment, ReportOptions, load
from ..run.signals import heeded
from ..store.ratios import is_ranked
from ..store.results import EXPERIMENT, RECORDS, Run
from ..workload import Workload, discover
from .base import AgainstRun, Base
from .checkout import Checkout, checked_out, commit_of
from .place import experiment_name, series_key

ROUNDS = 5
TURNS = "turns"


class Round(NamedTuple):
    """A case in one round, by the base's code and by the run's; ``None`` where a side has no record of it."""

    base: Record | None
    now: Record | None


@dataclass(frozen=True)
class Turns:
    """What was measured in turn.

    Attributes
    ----------
    commit : str
        Of the base's code.
    rounds : dict of list of Round
        By key of the run's record.
    """

    commit: str = ""
    rounds: Mapping[str, list[Round]] = field(default_factory=dict)

    def now(self, key: str) -> list[Record]:
        """Return what the run's code gave, without what was contended: that says little of a case."""
        records = [each.now for each in self.rounds.get(key, ())]
        return [record for record in records if record and record.status is not Status.CONTENDED]

    def pairs(self, key: str) -> list[tuple[Record, Record]]:
        """Return the rounds of a case in which both sides have a result that may be ranked."""
        held = ((each.base, each.now) for each in self.rounds.get(key, ()))
        return [(base, now) for base, now in held if base and now and is_ranked(base) and is_ranked(now)]


def stored(run: Run, base: Base) -> Turns:
    """Return what was measured before in turn of a run and the code of its base; empty where nothing was."""
    try:
        commit = commit_of(base.run) if isinstance(base, AgainstRun) else ""
    except InfrastructureError:
        return Turns()
    return _read(run, commit) if commit else Turns()


def measure_in_turn(
    run: Run, base: Base, wanted: Sequence[Record], here: Sequence[DeviceInfo], workload_paths: Sequence[str]
) -> Turns:
    """Measure cases of a run again, in turn with its base's code, into the folder ``turns`` of the run.

    Parameters
    ----------
    run : Run
    base : Base
        What the run is held to.
    wanted : sequence of Record
        Cases of the run.
    here : sequence of DeviceInfo
        From `perfport.machine.discovery.discover`.
    workload_paths : sequence of str
        Further workload folders. Those of the repository are the commit's own for the base.

    Raises
    ------
    InfrastructureError
        If the base's code cannot be laid out or does not run, device or driver are others than the base's, or a case is
        no longer what it was.
    """
    if not isinstance(base, AgainstRun):
        raise InfrastructureError("nights are compared by their stored times")
    commit = commit_of(base.run)
    _check_devices(base.run, wanted, here)
    definition = _definition(run, wanted)
    _check_keys(definition, wanted, discover(workload_paths), here)
    with heeded(), checked_out(commit) as code:
        folder = inside(run.folder, TURNS, commit[:12])
        folder.mkdir(parents=True, exist_ok=True)
        file = inside(folder, EXPERIMENT)
        file.write_text(yaml.safe_dump(definition.model_dump(mode="json", exclude_unset=True)))
        done = len(_folders(folder))
        for number in range(done, done + ROUNDS):
            sides: list[tuple[str, Checkout | None]] = [("base", code), ("now", None)]
            for side, of_side in sides if number % 2 == 0 else reversed(sides):
                run_side(file, folder / f"{number:03d}" / side, workload_paths, of_side)
    return _read(run, commit)


def run_side(file: Path, out: Path, workload_paths: Sequence[str], code: Checkout | None) -> None:
    """Run an experiment with a tree of code, or with that of this process; a failed case is no error.

    Raises
    ------
    InfrastructureError
        If nothing was measured.
    """
    words = [sys.executable, "-m", "perfport.cli", "run", str(file), "--out", str(out)]
    for path in workload_paths:
        words += ["--workloads", code.inside(path) if code else path]
    environment = {**os.environ, **(code.environment() if code else {})}
    out.parent.mkdir(exist_ok=True)
    log = inside(out.parent, f"{out.name}.log")
    with (
        log.open("w") as output,
        subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment) as side,
    ):
        try:
            side.wait()
        except BaseException:  # a signal: the run ends in order, and its workers with it
            side.terminate()
            raise
    if not (out / RECORDS).exists():
        said = log.read_text(errors="replace").strip().splitlines() or ["nothing was said"]
        raise InfrastructureError(f"{'the code of the base' if code else 'the code'} does not run here: {said[-1]}")


def _check_devices(base: Run, wanted: Sequence[Record], here: Sequence[DeviceInfo]) -> None:
    """Refuse another driver than the base's: what differs would not be the code alone."""
    present = {device.id: device.driver for device in here if device.healthy}
    known = base.environment.get("devices") or {}
    for id_ in sorted({id_ for record in wanted for id_ in record.identity.devices}):
        before, now = (known.get(id_) or {}).get("driver"), present.get(id_)
        if now is None or before != now:
            raise InfrastructureError(f"{id_} had driver {before} in run {base.name} and has {now or 'none'} here")


def _definition(run: Run, wanted: Sequence[Record]) -> Experiment:
    """Return the experiment of some cases alone, as one fresh worker measures them."""
    whole = load(run.folder / EXPERIMENT)
    entries = []
    for record in wanted:
        case, study = record.identity, whole.study(record.identity)
        if study is None:
            raise InfrastructureError(f"{run.folder}: {case.variant} is in no entry of its experiment")
        entries.append(study.model_copy(update={
            "presets": [case.preset] if case.preset else None,
            "parameters": {name: [value] for name, value in case.parameters.items()},
            "variants": [case.variant], "devices": case.devices,
            **({"profiles": [case.profile or NATIVE]} if study.profiles else {}),
            "tunables": {name: [case.tunables[name]] for name in study.tunables if name in case.tunables},
        }))  # fmt: skip
    devices = sorted({id_ for record in wanted for id_ in record.identity.devices})
    return whole.model_copy(update={
        "workers": 1, "seed": wanted[0].seed, "devices": devices, "experiments": entries,
        "report": ReportOptions(), "executor": Executor(),
    })  # fmt: skip


def _check_keys(
    definition: Experiment, wanted: Sequence[Record], workloads: dict[str, Workload], here: Sequence[DeviceInfo]
) -> None:
    """Refuse cases that the code here would not measure as the run did."""
    devices = [device for device in here if device.id in definition.devices and device.healthy]
    groups = plan.make(definition, EXPERIMENT, workloads, devices, definition.seed)
    lost = {record.key: record.identity.variant for record in wanted}
    for group in groups:
        for case in group.cases:
            lost.pop(case.key, None)
    if lost:
        names = ", ".join(sorted(set(lost.values()))[:5])
        raise InfrastructureError(f"{len(lost)} cases are no longer what they were in the run ({names})")


def _folders(folder: Path) -> list[Path]:
    """Return the folders of the rounds, in their order."""
    return sorted(path for path in folder.glob("[0-9]*") if path.is_dir())


def _read(run: Run, commit: str) -> Turns:
    """Return the stored rounds. A side that cannot be read counts as one without records."""
    name = experiment_name(run)
    keys = {series_key(run, record): record.key for record in run.records}
    rounds: dict[str, list[Round]] = {}
    for folder in _folders(run.folder / TURNS / commit[:12]):
        base, now = (_records(folder / side, name) for side in ("base", "now"))
        now = {series: record for series, record in now.items() if record.key == keys.get(series)}
        for series in (base.keys() | now.keys()) & keys.keys():
            rounds.setdefault(keys[series], []).append(Round(base.get(series), now.get(series)))
    return Turns(commit, rounds)


def _records(folder: Path, experiment: str) -> dict[str, Record]:
    """Return the records of one side of a round by series."""
    if not (folder / RECORDS).exists():
        return {}
    side = Run(folder)
    try:
        return {series_key(side, record, experiment): record for record in side.records}
    except PerfportError:
        return {}
