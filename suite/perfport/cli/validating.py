"""Commands about the form of files: ``validate``, ``rebound``, ``schema``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..model.errors import UsageError
from ..model.untrusted import say
from .options import WorkloadsOption

if TYPE_CHECKING:
    from pydantic import BaseModel

#: Faults of one run that ``validate`` prints.
MOST_FAULTS = 20


def validate(
    path: Annotated[
        Path, typer.Argument(help="An experiment file, a device profile, or a folder of runs or searches.")
    ],
    workloads: WorkloadsOption = None,
) -> None:
    """Check an experiment file, a device profile or a folder of results or searches; says what is wrong, of every one.

    Exit code: 0 all valid; 2 something is not.
    """
    from ..machine.device_profile import is_profile, load_profile
    from ..run.validate import count_cases, validate_runs
    from ..store.results import RECORDS
    from ..tune.final import RUN
    from ..tune.target import target
    from ..tune.validate import validate_searches
    from ..workload import discover

    if not path.is_dir():
        if path.exists() and is_profile(path):
            profile = load_profile(path)
            entries = sum(len(each) for variants in profile.tuned.values() for each in variants.values())
            say(f"{path}: valid; {profile.title}, {entries} entries of tuned variants")
            return
        known = discover(workloads or [])
        cases = count_cases(path, known)
        target(str(path), known).check(known)
        say(f"{path}: valid; {cases} cases on the devices here")
        return
    searches = list(validate_searches(path))
    bad = 0
    for search in searches:
        bad += _tell(search.folder, search.faults, f"{search.entries} entries of a search, valid")
    total, runs = len(searches), [search.folder / RUN for search in searches if (search.folder / RUN).is_dir()]
    finals = [*runs, path / RUN]
    if not searches or any((each / RECORDS).exists() for each in (path, *path.iterdir()) if each not in finals):
        runs.append(path)
    for checked in (each for folder in runs for each in validate_runs(folder)):
        total += 1
        lacks = f"; incomplete: {checked.lacks}" if checked.lacks else ""
        bad += _tell(checked.folder, checked.faults, f"{checked.records} records, valid{lacks}")
    if bad:
        raise UsageError(f"{path}: {bad} of {total} runs{' and searches' if searches else ''} are not valid")


def _tell(folder: Path, faults: Sequence[str], fine: str) -> bool:
    """Print what is wrong with a folder, or that nothing is; returns whether something is."""
    for fault in faults[:MOST_FAULTS]:
        say(f"perfport: {fault}", error=True)
    if len(faults) > MOST_FAULTS:
        say(f"perfport: {folder}: and {len(faults) - MOST_FAULTS} more", error=True)
    if not faults:
        say(f"{folder}: {fine}")
    return bool(faults)


def rebound(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of them; their records are replaced.")],
    workloads: WorkloadsOption = None,
) -> None:
    """Compute the bounds of stored records again, as the suite defines them now (docs/records.md).

    Also makes records of the last schema version, whose bounds were others, ones of today's. Times stay as measured.
    """
    from ..store.results import find_runs
    from ..untimed import rebound as bounds
    from ..workload import discover

    known = discover(workloads or [])
    for folder in [folder for path in runs for folder in find_runs(path)]:
        reasons = bounds.rebound(folder, known, partial(say, error=True))
        say(f"{folder}: bounds computed again" + (f"; {reasons.total()} records have none:" if reasons else ""))
        for reason, count in reasons.most_common(MOST_FAULTS):
            say(f"  {count}: {reason}")


def schema(
    which: Annotated[str, typer.Argument(help="experiment, record or profile.")] = "experiment",
) -> None:
    """Print a JSON Schema, for editors and validators."""
    from ..machine.device_profile import DeviceProfile
    from ..model.record import Record
    from ..run.experiment import Experiment

    models: dict[str, type[BaseModel]] = {"experiment": Experiment, "record": Record, "profile": DeviceProfile}
    if which not in models:
        raise UsageError(f"schema: {which!r} is not one of {', '.join(models)}")
    say(json.dumps(models[which].model_json_schema(), indent=1))
