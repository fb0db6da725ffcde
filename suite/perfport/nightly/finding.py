"""What `perfport check` says: one finding for each case, and the judgement of a run that they make together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ..model.record import Interval, Record
from ..store.results import Run
from .place import Place


class Outcome(StrEnum):
    """What became of a case; worst first."""

    WRONG = "wrong"
    VANISHED = "vanished"
    FAILED = "failed"
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    CANNOT_TELL = "cannot tell"
    NEW = "new"
    CHANGED = "new series"
    NO_RESULT = "no result"


ALARMS = (Outcome.WRONG, Outcome.VANISHED, Outcome.FAILED, Outcome.SLOWER)


@dataclass
class Finding:
    """One case with its verdict.

    Attributes
    ----------
    series : str
        Key (`perfport.nightly.history.Place`).
    record : Record, optional
        ``None`` for a case that vanished.
    why : str
        One line for readers.
    ratio : Interval, optional
        How many times faster the case is than before, with its 95 % interval, apart from what its device's cases have
        in common.
    before, now : float, optional
        Seconds.
    p_slower, p_faster : float
        Of the hypotheses that the case is not slower (faster) at all.
    again : int
        Workers that measured it again.
    """

    series: str
    outcome: Outcome
    record: Record | None = None
    why: str = ""
    ratio: Interval | None = None
    before: float | None = None
    now: float | None = None
    p_slower: float = 1.0
    p_faster: float = 1.0
    again: int = 0
    threshold: float = 0.0
    events: Sequence[str] = ()

    @property
    def place(self) -> Place:
        """What the case is."""
        return Place.of(self.series)

    @property
    def suspected(self) -> bool:
        """Whether it looks slower by more than its threshold, whatever the test says: worth measuring again."""
        return self.ratio is not None and self.ratio.value < 1 / (1 + self.threshold)

    @property
    def gained(self) -> bool:
        """Whether it looks faster by more than its threshold."""
        return self.ratio is not None and self.ratio.value > 1 + self.threshold


@dataclass
class Judgement:
    """All findings, worst first, and what they were judged against.

    ``left_out`` names files of the history that could not be read; ``shifts`` tells by how much each device takes
    longer as a whole, as a logarithm, which is left out of all ratios; ``one_sided`` why suspects were measured again
    without the base's code.
    """

    run: Run
    against: str
    findings: list[Finding]
    remeasured: bool = False
    left_out: Sequence[str] = ()
    shifts: Mapping[str, float] = field(default_factory=dict)
    one_sided: str = ""

    def of(self, *outcomes: Outcome) -> list[Finding]:
        """The findings with one of these outcomes."""
        return [finding for finding in self.findings if finding.outcome in outcomes]
