"""`perfport validate`: whether an experiment file, or every run of a folder, is what the suite reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..machine.discovery import profiled
from ..store.results import Run, faults, find_runs
from ..workload import Workload
from .completeness import incomplete
from .experiment import find, load
from .plan import make, select_devices


def count_cases(path: Path, workloads: dict[str, Workload]) -> int:
    """Return how many cases an experiment has on the devices here. Raises `UsageError` for one that is not valid."""
    experiment = load(find(path))
    devices = select_devices(experiment.devices, profiled(), f"{path}: devices")
    groups = make(experiment, str(path), workloads, devices, seed=0)
    return sum(len(group.cases) for group in groups)


@dataclass(frozen=True)
class Checked:
    """A stored run: what is wrong with it, and of one that is valid its records and what it lacks of its plan."""

    folder: Path
    faults: list[str]
    records: int = 0
    lacks: str = ""


def validate_runs(path: Path) -> Iterator[Checked]:
    """Check the runs at or directly below a path, those without records too. Raises `UsageError` if there is none."""
    for folder in find_runs(path, without_records=True):
        if wrong := faults(folder):
            yield Checked(folder, wrong)
            continue
        run = Run(folder)
        # Of an older run, which does not say how many cases were planned, the experiment tells.
        yield Checked(folder, [], len(run.records), incomplete(run))
