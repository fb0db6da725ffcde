"""What is known of a variant's configurations so far: times over those of the reference, scores, the best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from .log import Trial
from .space import Config, name_of

#: Configurations are measured beside the same one until the best is faster than that by this factor.
FASTER = 1.25


class Standing:
    """The trials of one variant on one device.

    Times are kept over that of the reference, the first configuration that has one at every size. A score is the
    logarithm of what the objective makes of them; the least is the best.

    Configurations are measured beside the ``anchor``: the reference, then the best whenever it has become so much
    faster that pairs with it tell more. Were it the best each time, what chance or the place in a round does for a
    newcomer would multiply: on a GPU 20 winners in a row, each of them by 4 %, were as fast as the first of them.

    Parameters
    ----------
    presets : mapping of str to float
        Weight of each size.
    objective : str
        ``mean`` or ``worst`` (`perfport.run.experiment.TuneOptions`).
    """

    def __init__(self, presets: Mapping[str, float], objective: Literal["mean", "worst"]) -> None:
        self.presets, self.objective = presets, objective
        self.trials: dict[str, dict[str, Trial]] = {}
        self.configs: dict[str, Config] = {}
        self.best: str | None = None
        self.reference: str | None = None
        self.anchor: str | None = None

    def add(self, trial: Trial) -> None:
        """Take a trial; a configuration that is better beyond doubt becomes the best."""
        name = name_of(trial.config)
        self.configs[name] = trial.config
        self.trials.setdefault(name, {})[trial.preset] = trial
        if self.complete(name) and (self.best is None or (self._better(name) and self._beyond_doubt(name))):
            self.best = name
            self.reference = self.reference or name
            if self.anchor is None or (self.score(self.anchor) or 0.0) - (self.score(name) or 0.0) > math.log(FASTER):
                self.anchor = name

    def place(self, preset: str) -> float:
        """Return what the place in a round is worth: the time of the reference over its own, if that is not noise."""
        ratio = self.trials[self.reference][preset].ratio if self.reference else None
        return ratio.value if ratio and not ratio.low <= 1.0 <= ratio.high else 1.0

    def lead(self, preset: str) -> float:
        """Return the time of the best over that of the anchor."""
        if self.best is None or self.anchor is None:
            return 1.0
        return math.exp(self.logs(self.best)[preset] - self.logs(self.anchor)[preset])

    def _better(self, name: str) -> bool:
        mine, best = self.score(name), self.score(self.best or name)
        return mine is not None and best is not None and mine < best

    def _beyond_doubt(self, name: str) -> bool:
        """Whether it is faster than the best by the upper end of its interval, at one size at least."""
        best = self.logs(self.best or name)
        return any(
            trial.relative and trial.ratio and trial.relative * trial.ratio.high / trial.ratio.value < math.exp(best[p])
            for p, trial in self.trials[name].items()
        )

    def complete(self, name: str) -> bool:
        """Whether a configuration has been timed at every size."""
        return all(preset in self.trials[name] and _timed(self.trials[name][preset]) for preset in self.presets)

    def failed(self, name: str) -> bool:
        """Whether a configuration has no result at a size: it has none at all."""
        return any(trial.relative is None for trial in self.trials[name].values())

    def logs(self, name: str) -> dict[str, float]:
        """Return the logarithms of a configuration's times over the reference's, by size."""
        return {p: math.log(t.relative) for p, t in self.trials[name].items() if t.relative is not None}

    def _least(self) -> dict[str, float]:
        """The least of these at each size."""
        known = [self.logs(name) for name in self.trials if self.complete(name)]
        return {preset: min((each[preset] for each in known), default=0.0) for preset in self.presets}

    def score(self, name: str) -> float | None:
        """Return the score of a configuration, by the sizes that it got to; ``None`` where it failed."""
        if self.failed(name) or not (known := self.logs(name)):
            return None
        if self.objective == "worst":
            least = self._least()
            return max(value - least[preset] for preset, value in known.items())
        weight = sum(self.presets[preset] for preset in known)
        return sum(self.presets[preset] * value for preset, value in known.items()) / weight

    def cannot_win(self, name: str) -> bool:
        """Whether no result at the sizes that are not known can make up for those that are.

        At the others it may at most reach the problem bound, which the best leaves by its share.
        """
        if self.best is None or self.best == name:
            return False
        known, best = self.logs(name), self.logs(self.best)
        if self.objective == "worst":
            least, standing = self._least(), self.score(self.best) or 0.0
            return any(v - _margin(self.trials[name][p]) - least[p] > standing for p, v in known.items())
        total = sum(self.presets[p] * (v - _margin(self.trials[name][p]) - best[p]) for p, v in known.items())
        for preset in self.presets.keys() - known.keys():
            share = self.trials[self.best][preset].share
            if share is None or share <= 0:
                return False
            total += self.presets[preset] * math.log(min(share, 1.0))
        return total > 0

    def ranked(self) -> list[str]:
        """Return the configurations that were timed at every size, the best first."""
        names = [name for name in self.trials if self.complete(name)]
        return sorted(names, key=lambda name: self.score(name) or 0.0)


def _timed(trial: Trial) -> bool:
    return trial.relative is not None and not trial.hopeless


def _margin(trial: Trial) -> float:
    """How far below its value the lower end of a ratio lies, as a difference of logarithms."""
    if trial.ratio is None or trial.ratio.low <= 0:
        return 0.0
    return math.log(trial.ratio.value / trial.ratio.low)
