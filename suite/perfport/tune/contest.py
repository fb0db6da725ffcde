"""One configuration beside another, sampled in turn until it is shown that it cannot win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..measure.intervals import Ratio, Series, speedup
from ..measure.sampling import Subject, Targets

#: By so much every round must be slower, after this many rounds, that a configuration is dropped: noise does no such
#: thing. After five rounds chance alone makes all of them slower in one case of 32 where both are equally fast.
MARGINS = (0.5, 0.25, 0.12, 0.06, 0.0)
#: How long a configuration that may win is sampled.
SAMPLING = Targets(min_samples=7, max_samples=25, time_budget=0.6)


def cannot_win(ratios: Sequence[float]) -> bool:
    """Whether rounds show that a configuration is slower; ``ratios`` are its times over those of the best, by round."""
    if not ratios:
        return False
    return min(ratios) > 1 + MARGINS[min(len(ratios), len(MARGINS)) - 1]


@dataclass
class Contender(Subject):
    """A configuration that is sampled beside ``rival``; ``lead`` is the time of the best over that of the rival."""

    rival: Subject | None = None
    lead: float = 1.0

    def done(self, targets: Targets) -> bool:
        """Whether the stopping rule is met, or it cannot win."""
        return super().done(targets) or cannot_win([ratio / self.lead for ratio in self.ratios()])

    def ratios(self) -> list[float]:
        """Return its times over those of the rival, by round that both took part in."""
        if self.rival is None:
            return []
        theirs = series(self.rival).seconds
        return [seconds / theirs[number] for number, seconds in series(self).seconds.items() if number in theirs]

    def ratio(self) -> Ratio | None:
        """Return its time over that of the rival, with its interval."""
        return speedup(series(self), series(self.rival)) if self.rival else None


@dataclass
class Incumbent(Subject):
    """What a contender is sampled beside, for as long as that is."""

    def done(self, targets: Targets) -> bool:
        """Never by itself."""
        return False


def series(subject: Subject) -> Series:
    """Return the samples of the clock that ranks, by round."""
    return Series(dict(zip(subject.rounds, subject.samples(subject.rank), strict=False)))
