"""The commit with which a case became slower: good and bad ends measured in turn, then the middle beside the good one.

A commit is bad if the case is there slower than half of the way, as a ratio, from the good end to the bad one. Commits
whose code gives no verdict (it does not run, or the case is too noisy or missing) are left for their neighbours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..machine import discovery
from ..model.errors import InfrastructureError, UsageError
from ..model.record import Interval
from ..run.experiment import Experiment, find, load
from ..run.local import choose
from ..run.signals import heeded
from .checkout import git, own_repository, resolved
from .diff import BASE, HEAD, Options, Planned, judged, laid_out, measured, planned_cases
from .finding import Outcome

#: Folders of the repository that decide times.
CODE = ("suite", "workloads", "device_profiles")


@dataclass(frozen=True)
class Culprit:
    """What a search came to.

    Attributes
    ----------
    commits : sequence of str
        The first slower commit; several where those between gave no verdict.
    subject : str
        First line of the message of the last of them.
    ratio : Interval
        How many times faster the bad end is than the good one.
    """

    commits: Sequence[str]
    subject: str
    ratio: Interval


def bisect(case: str, good: str, bad: str, options: Options, say: Callable[[str], None]) -> Culprit:
    """Find the commit with which a case became slower.

    Parameters
    ----------
    case : str
        Contained in the ``workload/problem/variant`` of one case of the experiment.
    good, bad : str
        Names of commits; the second descends from the first.
    options : Options
        ``limit`` is that of each comparison.
    say : callable
        Takes a line on the progress.

    Raises
    ------
    UsageError
        For names that are none, or a case that is not one.
    InfrastructureError
        If the bad end cannot be told to be slower than the good one.
    """
    repository = own_repository()
    ends = resolved(repository, good), resolved(repository, bad)
    commits = _between(repository, *ends, options.workloads)
    definition = load(path := find(options.experiment))
    devices = choose(options.devices or definition.devices, discovery.discover(), "--device")
    planned = planned_cases(path, definition, replace(options, patterns=(case,)), devices, frozenset())
    if len(planned) != 1:
        names = ", ".join(each.title for each in planned[:10])
        raise UsageError(f"{case!r}: expected one case of one device, got {len(planned)} ({names}); -d names a device")

    def ratio(commit: str) -> Interval | None:
        return _ratio(definition, options, planned, {BASE: ends[0], HEAD: commit}, say)

    with heeded():
        whole = ratio(ends[1])
        if whole is None or whole.high >= 1:
            told = f"it is {1 / whole.value:.3f} times as slow" if whole else "there is no verdict"
            raise InfrastructureError(f"{bad} is not known to be slower than {good}: {told}")
        first, last = search(len(commits), lambda number: _is_bad(ratio(commits[number]), whole), say)
    found = commits[first : last + 1]
    subject = git(repository, "log", "-1", "--format=%s", found[-1]) or ""
    return Culprit(found, subject, whole)


def search(number: int, is_bad: Callable[[int], bool | None], say: Callable[[str], None]) -> tuple[int, int]:
    """Return the first and the last of the commits that may be the first bad one; the last of ``number`` is bad.

    ``is_bad`` says of a commit by its number whether it is, or that there is no verdict: ``None``.
    """
    first, last = 0, number - 1
    unknown: set[int] = set()
    while open_ := [each for each in range(first, last) if each not in unknown]:
        middle = min(open_, key=lambda each: abs(each - (first + last - 1) / 2))
        say(f"{last - first + 1} commits left")
        verdict = is_bad(middle)
        if verdict is None:
            unknown.add(middle)
        elif verdict:
            last = middle
        else:
            first = middle + 1
    return first, last


def _between(repository: Path, good: str, bad: str, workloads: Sequence[str]) -> list[str]:
    """Return the commits after the good one up to the bad one, oldest first: those that touch code.

    The last of them has the code of the bad end.
    """
    if git(repository, "merge-base", "--is-ancestor", good, bad) is None or good == bad:
        raise UsageError(f"{bad[:12]} does not descend from {good[:12]}")
    further = [path for path in map(Path.resolve, map(Path, workloads)) if path.is_relative_to(repository)]
    options = ["--first-parent", "--reverse", f"{good}..{bad}", "--", *CODE, *map(str, further)]
    listed = (git(repository, "rev-list", *options) or "").split()
    if not listed:
        raise UsageError(f"no commit from {good[:12]} to {bad[:12]} touches code")
    return listed


def _ratio(
    definition: Experiment, options: Options, planned: Sequence[Planned], commits: dict[str, str | None],
    say: Callable[[str], None],
) -> Interval | None:  # fmt: skip
    """Return how many times faster the case is with the second commit; ``None`` without a verdict."""
    name = (commits[HEAD] or "")[:12]
    devices = [device for device in discovery.discover() if device.healthy]
    try:
        with laid_out(commits, definition, options, devices) as sides:
            rounds = measured(sides, planned, time.monotonic() + options.limit, lambda _: None)
            (found,) = judged(sides, planned, rounds, "the good end").findings
    except InfrastructureError as error:
        say(f"{name}: {error}")
        return None
    if found.ratio is None or found.disturbed:
        say(f"{name}: {found.outcome.value}: {found.why}")
        return None
    say(f"{name}: {1 / found.ratio.value:.3f} times the time of the good end ({found.outcome.value})")
    return None if found.outcome in (Outcome.WRONG, Outcome.FAILED) else found.ratio


def _is_bad(ratio: Interval | None, whole: Interval) -> bool | None:
    """Whether a commit is nearer to the bad end; ``None`` where its interval holds the middle."""
    middle = math.sqrt(whole.value)
    if ratio is None or ratio.low <= middle <= ratio.high:
        return None
    return ratio.high < middle
