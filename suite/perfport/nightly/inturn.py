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
from types import MappingProxyType
from typing import NamedTuple

import yaml

from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, PerfportError
from ..model.names import NATIVE
from ..model.record import Identity, Record, Status
from ..model.untrusted import inside
from ..run import plan
from ..run.executor import Executor
from ..run.experiment import Experiment, ReportOptions, load
from ..run.signals import heeded
from ..store.ratios import is_ranked
from ..store.results import EXPERIMENT, RECORDS, Run
from ..workload import Workload, discover
from .checkout import Checkout, checked_out
from .place import experiment_name, series_key

ROUNDS = 5
TURNS = "turns"
DIGITS = 12  # of a commit, as the name of a folder


class Round(NamedTuple):
    """A case in one round, by the base's code and by the run's; ``None`` where a side has no record of it."""

    base: Record | None
    now: Record | None


@dataclass(frozen=True)
class Turns:
    """What was measured in turn: rounds by the first digits of the base's commit and the key of the run's record."""

    rounds: Mapping[tuple[str, str], list[Round]] = field(default_factory=dict)

    def of(self, commit: str, key: str) -> list[Round]:
        """Return the rounds of a case with the code of a commit."""
        return self.rounds.get((commit[:DIGITS], key), [])

    def now(self, commit: str, key: str) -> list[Record]:
        """Return what the run's code gave, without what was contended: that says little of a case."""
        records = [each.now for each in self.of(commit, key)]
        return [record for record in records if record and record.status is not Status.CONTENDED]

    def pairs(self, commit: str, key: str) -> list[tuple[Record, Record]]:
        """Return the rounds of a case in which both sides have a result that may be ranked."""
        held = ((each.base, each.now) for each in self.of(commit, key))
        return [(base, now) for base, now in held if base and now and is_ranked(base) and is_ranked(now)]


def measure_in_turn(
    run: Run, commit: str, wanted: Sequence[Record], here: Sequence[DeviceInfo], workload_paths: Sequence[str]
) -> None:
    """Measure cases of a run again, in turn with its base's code, into the folder ``turns`` of the run.

    Parameters
    ----------
    run : Run
    commit : str
        Of the code of what the run is held to.
    wanted : sequence of Record
        Cases of the run.
    here : sequence of DeviceInfo
        From `perfport.machine.discovery.discover`.
    workload_paths : sequence of str
        Further workload folders. Those of the repository are the commit's own for the base.

    Raises
    ------
    InfrastructureError
        If the base's code cannot be laid out or does not run, or a case is no longer what it was.
    """
    definition = _definition(run, wanted)
    _check_keys(definition, wanted, discover(workload_paths), here)
    with heeded(), checked_out(commit) as code:
        folder = inside(run.folder, TURNS, commit[:DIGITS])
        folder.mkdir(parents=True, exist_ok=True)
        file = inside(folder, EXPERIMENT)
        file.write_text(for_sides(definition))
        done = len(_folders(folder))
        for number in range(done, done + ROUNDS):
            for side, of_side in in_turn(number, {"base": code, "now": None}):
                run_side(file, folder / f"{number:03d}" / side, workload_paths, of_side)


def in_turn(number: int, sides: Mapping[str, Checkout | None]) -> list[tuple[str, Checkout | None]]:
    """Return the sides in the order of a round: who comes first changes from one to the next."""
    order = list(sides.items())
    return order if number % 2 == 0 else order[::-1]


def run_side(
    file: Path, out: Path, workload_paths: Sequence[str], code: Checkout | None,
    *, limit: float | None = None, variables: Mapping[str, str] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Run an experiment with a tree of code, or with that of this process; a failed case is no error.

    After ``limit`` seconds it is ended in order: what was measured by then is stored. ``variables`` are those of the
    environment that it gets beside this process's.

    Raises
    ------
    InfrastructureError
        If nothing was measured.
    """
    words = [sys.executable, "-m", "perfport.cli", "run", str(file), "--out", str(out)]
    for path in workload_paths:
        words += ["--workloads", code.inside(path) if code else path]
    environment = {**os.environ, **variables, **(code.environment() if code else {})}
    out.parent.mkdir(exist_ok=True)
    log = inside(out.parent, f"{out.name}.log")
    with (
        log.open("w") as output,
        subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment) as side,
    ):
        try:
            side.wait(limit)
        except subprocess.TimeoutExpired:
            side.terminate()
            side.wait()
            return
        except BaseException:  # a signal: the run ends in order, and its workers with it
            side.terminate()
            raise
    if not (out / RECORDS).exists():
        said = log.read_text(errors="replace").strip().splitlines() or ["nothing was said"]
        whose = f"the code of commit {code.commit[:DIGITS]}" if code else "the code"
        raise InfrastructureError(f"{whose} does not run here: {said[-1]}")


def for_sides(definition: Experiment) -> str:
    """Return an experiment as a file for code of any age: without what only judges results, or counts beside them."""
    content = definition.model_dump(mode="json", exclude_unset=True)
    for part in (content, *content["experiments"]):
        part.pop("check", None)
        part.pop("count", None)
    return yaml.safe_dump(content)


def _definition(run: Run, wanted: Sequence[Record]) -> Experiment:
    """Return the experiment of some cases of a run alone."""
    whole = load(run.folder / EXPERIMENT)
    for record in wanted:
        if whole.study(record.identity) is None:
            raise InfrastructureError(f"{run.folder}: {record.identity.variant} is in no entry of its experiment")
    return of_cases(whole, [record.identity for record in wanted], wanted[0].seed)


def of_cases(whole: Experiment, wanted: Sequence[Identity], seed: int) -> Experiment:
    """Return the experiment of some of its cases alone, as one fresh worker measures them."""
    entries = []
    for case in wanted:
        study = whole.study(case)
        assert study is not None
        entries.append(study.model_copy(update={
            "presets": [case.preset] if case.preset else None,
            "parameters": {name: [value] for name, value in case.parameters.items()},
            "variants": [case.variant], "devices": case.devices,
            **({"profiles": [case.profile or NATIVE]} if study.profiles else {}),
            "tunables": {name: [case.tunables[name]] for name in study.tunables if name in case.tunables},
        }))  # fmt: skip
    devices = sorted({id_ for case in wanted for id_ in case.devices})
    return whole.model_copy(update={
        "workers": 1, "seed": seed, "devices": devices, "experiments": entries,
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


def stored(run: Run) -> Turns:
    """Return what was measured in turn of a run before. A side that cannot be read counts as one without records."""
    name = experiment_name(run)
    keys = {series_key(run, record): record.key for record in run.records}
    rounds: dict[tuple[str, str], list[Round]] = {}
    for folder in (each for base in sorted((run.folder / TURNS).glob("*")) for each in _folders(base)):
        base, now = (records_of(folder / side, name) for side in ("base", "now"))
        now = {series: record for series, record in now.items() if record.key == keys.get(series)}
        for series in (base.keys() | now.keys()) & keys.keys():
            held = rounds.setdefault((folder.parent.name, keys[series]), [])
            held.append(Round(base.get(series), now.get(series)))
    return Turns(rounds)


def records_of(folder: Path, experiment: str) -> dict[str, Record]:
    """Return the records of one side of a round by series."""
    if not (folder / RECORDS).exists():
        return {}
    side = Run(folder)
    try:
        return {series_key(side, record, experiment): record for record in side.records}
    except PerfportError:
        return {}
