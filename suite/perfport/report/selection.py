"""What of stored results a page is made of, as arguments and filters of the command line choose it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..judge.claims import Claim, ledger
from ..judge.predict import Device, Predictor, find_target, targets
from ..model.errors import UsageError
from ..nightly.history import History, Series
from ..store.collection import Collection, Filter, Site, collect, find_site
from ..untimed import convergence
from ..workload import Workload, discover
from .pages import history as history_page
from .parts.counted import Recount, stored
from .parts.seen import seen_by


def cases(results: Sequence[Path], **chosen: str) -> Collection:
    """Return the cases of stored runs that the filters take. Raises `UsageError` if there is none."""
    return counted_cases(results, **chosen)[0]


def counted_cases(results: Sequence[Path], **chosen: str) -> tuple[Collection, Recount]:
    """Return the cases of stored runs that the filters take, and what the counts among the results saw of them."""
    runs, counted = stored(results)
    return collect(runs, Filter(**chosen), ", ".join(map(str, results))), Recount(counted)


def predictor(results: Sequence[Path]) -> Predictor:
    """Return what predicts from all stored runs and counts: no filter, since all of them tell how far it is off."""
    collection, recount = counted_cases(results)
    return Predictor(collection, seen_by(recount))


def modelled(results: Sequence[Path], names: str) -> tuple[Predictor, list[Device]]:
    """Return what predicts, and the devices that are meant: ``all``, or names separated by commas."""
    found = predictor(results)
    if names == "all":
        return found, targets(found)
    return found, [find_target(found, name.strip(), "--profiles") for name in names.split(",")]


def convergences(results: Sequence[Path]) -> list[convergence.Convergence]:
    """Return the code convergence that is stored in some folders."""
    files = [path / convergence.FILE for path in results]
    return [each for file in files if file.exists() for each in convergence.read(file)]


def claims(folders: Sequence[str], **chosen: str) -> dict[str, list[Claim]]:
    """Return the claims by workload, those of further folders too, that the filters take.

    Raises
    ------
    UsageError
        If there is none.
    """
    listed = [(name, claim) for name, claims in ledger([*map(Path, folders)]).items() for claim in claims]
    wanted = Filter(**chosen)
    taken: dict[str, list[Claim]] = {}
    for name, claim in listed:
        if wanted.names(name, claim.problem, "", "", ""):
            taken.setdefault(name, []).append(claim)
    if not taken:
        raise UsageError(wanted.complaint([(name, claim.problem) for name, claim in listed], "the claims"))
    return taken


def series(history: History, **chosen: str) -> list[Series]:
    """Return the series of a history that the filters take. Raises `UsageError` if a filter leaves none."""
    wanted = Filter(**chosen)
    taken = history_page.select(history, wanted)
    if not taken and wanted != Filter():
        names = [each.place.names for each in history.series.values()]
        raise UsageError(wanted.complaint(names, str(history.folder)))
    return taken


def platform_set(collection: Collection, text: str | None) -> tuple[str, Sequence[Site] | None]:
    """Return name and members of a platform set, ``NAME=DEVICE,DEVICE,...``; none without a text: every device once."""
    if not text:
        return "all", None
    name, _, listed = text.partition("=")
    if not listed:
        raise UsageError(f"--platforms: expected NAME=DEVICE,DEVICE,..., got {text!r}")
    return name, [find_site(collection, device.strip()) for device in listed.split(",")]


def workloads(folders: Sequence[str], workload: str = "") -> list[Workload]:
    """Return the workloads whose name contains the filter. Raises `UsageError` if there is none."""
    taken = [each for name, each in discover(folders).items() if workload in name]
    if not taken:
        raise UsageError(f"--workload: no workload's name contains {workload!r}")
    return taken
