"""What a search tells of a variant's space: how good most of it is, and which tunables matter.

A search that did not measure the whole space has looked more where it is good: shares are of what was measured, and say
so. The importance of a tunable is how much of what a forest explains is lost when its column is permuted (L. Breiman,
"Random forests", Machine Learning 45, 2001).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..model.record import Status
from .log import LOG, Entry, Result, Search, Space, Trial, read
from .space import Space as Values
from .space import name_of

#: A configuration counts as near the best within this factor.
NEAR = 1.05
#: Configurations that a forest needs to say something; trees, permutations of each column.
LEAST, TREES, PERMUTATIONS = 20, 200, 5


@dataclass(frozen=True)
class Anatomy:
    """A variant's space on one device at one size, as far as it was measured.

    Attributes
    ----------
    relative : tuple of float
        Times over that of the best, from the best on; configurations that were dropped early among them.
    default, profile : float, optional
        That of the code's defaults, and of what the device's profile had when the search began.
    held : float, optional
        Time by what a run took when the search began, the profile's parameters or the code's, over that by the code's;
        ``None`` where one of these has no result at this size.
    failed : dict of int
        Configurations without a result, by status.
    hopeless : int
        Those that were not timed, because of their own bound.
    importance : dict of float
        By tunable, the most important first: share of the variance of the logarithms of times that is no longer
        explained when the tunable is permuted. Empty where too few were measured.
    """

    device: str
    variant: str
    preset: str
    size: int
    relative: tuple[float, ...]
    default: float | None
    profile: float | None
    held: float | None
    failed: Mapping[Status, int]
    hopeless: int
    importance: Mapping[str, float]
    best: Mapping[str, object]

    @property
    def tried(self) -> int:
        """Configurations that were tried."""
        return len(self.relative) + self.hopeless + sum(self.failed.values())

    @property
    def near(self) -> float:
        """Share of the timed configurations within `NEAR` of the best."""
        return sum(value <= NEAR for value in self.relative) / len(self.relative)

    @property
    def median(self) -> float:
        """Median time over that of the best."""
        return float(np.median(self.relative))


@dataclass
class Found:
    """A search as its log tells it."""

    folder: Path
    search: Search | None = None
    anatomies: list[Anatomy] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)


def found(folder: Path) -> Found:
    """Return what a search in a folder has found. Raises `UsageError` where it cannot be read."""
    entries = list(read(folder / LOG))
    made = Found(folder, next((each for each in entries if isinstance(each, Search)), None))
    spaces = {(each.device, each.variant): each for each in entries if isinstance(each, Space)}
    made.results = list({(e.device, e.variant): e for e in entries if isinstance(e, Result)}.values())
    trials = _by_space(entries)
    for (device, variant, preset), own in sorted(trials.items()):
        if (space := spaces.get((device, variant))) and any(_timed(trial) for trial in own):
            made.anatomies.append(_anatomy(space, preset, own))
    return made


def _by_space(entries: Iterable[Entry]) -> dict[tuple[str, str, str], list[Trial]]:
    trials: dict[tuple[str, str, str], list[Trial]] = {}
    for entry in entries:
        if isinstance(entry, Trial):
            trials.setdefault((entry.device, entry.variant, entry.preset), []).append(entry)
    return trials


def _timed(trial: Trial) -> bool:
    return trial.relative is not None and not trial.hopeless


def _anatomy(space: Space, preset: str, trials: list[Trial]) -> Anatomy:
    timed = [trial for trial in trials if _timed(trial)]
    first = next((trial for trial in timed if name_of(trial.config) == name_of(space.defaults)), timed[0])
    values = {name_of(trial.config): _time(trial, first) for trial in timed}
    least = min(values.values())
    failed: dict[Status, int] = {}
    for trial in trials:
        if trial.relative is None:
            failed[trial.status] = failed.get(trial.status, 0) + 1
    default, profile = (values.get(name_of(config)) if config else None for config in (space.defaults, space.profile))
    in_force, reference = (values.get(name_of(each)) for each in (space.profile or space.defaults, space.defaults))
    best = next(trial.config for trial in timed if _time(trial, first) == least)
    return Anatomy(
        device=space.device, variant=space.variant, preset=preset, size=space.size,
        relative=tuple(sorted(value / least for value in values.values())),
        default=default / least if default else None, profile=profile / least if profile else None,
        held=in_force / reference if in_force and reference else None, failed=failed,
        hopeless=sum(trial.hopeless for trial in trials), importance=importance(space, timed, values), best=best,
    )  # fmt: skip


def _time(trial: Trial, first: Trial) -> float:
    """Time over that of the reference; in logs in which that was not measured beside itself, in seconds.

    There each was measured beside the best so far, and what the place in a round does multiplies (`Standing`).
    """
    return (trial.relative if first.ratio else trial.seconds) or 1.0


def importance(space: Space, timed: list[Trial], values: Mapping[str, float]) -> dict[str, float]:
    """Return the permutation importance of each tunable that varies, the most important first; seeded.

    Parameters
    ----------
    values : mapping
        Times by the configuration's name.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.inspection import permutation_importance

    within = [t for t in timed if all(t.config.get(name) in allowed for name, allowed in space.values.items())]
    if len(within) < LEAST or not space.values:
        return {}
    rows = Values(space.values).encoded([trial.config for trial in within])
    logs = np.array([math.log(values[name_of(trial.config)]) for trial in within])
    forest = ExtraTreesRegressor(TREES, min_samples_leaf=2, bootstrap=True, random_state=1).fit(rows, logs)
    told = permutation_importance(forest, rows, logs, n_repeats=PERMUTATIONS, random_state=1)
    means = dict(zip(space.values, told.importances_mean, strict=True))
    varied = {name for name in space.values if len({repr(trial.config[name]) for trial in within}) > 1}
    return {name: float(means[name]) for name in sorted(varied, key=lambda name: -means[name])}
