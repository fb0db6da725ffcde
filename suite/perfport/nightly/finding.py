"""What `perfport check` says: one finding for each case, and the judgement of a run that they make together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ..model.record import Interval, Record, Status
from ..run.experiment import Colour as Colour
from ..run.experiment import EventColours
from ..store.results import Run
from .night import Change
from .place import Place


class Outcome(StrEnum):
    """What became of a case; worst first."""

    WRONG = "wrong"
    VANISHED = "vanished"
    FAILED = "failed"
    SLOWER = "slower"
    SUSPECTED = "suspected"
    FASTER = "faster"
    SAME = "same"
    CANNOT_TELL = "cannot tell"
    NEW = "new"
    CHANGED = "new series"
    ACCEPTED = "accepted"
    NO_RESULT = "no result"


ALARMS = (Outcome.WRONG, Outcome.VANISHED, Outcome.FAILED, Outcome.SLOWER)
#: What is no verdict on a case that should have one.
OPEN = (Outcome.SUSPECTED, Outcome.CANNOT_TELL, Outcome.NEW, Outcome.CHANGED)


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
    events : sequence of Change
        Since the base.
    colours : EventColours
        Of a night in which the case is slower, by what changed.
    commit : str
        Of the base's code.
    disturbed : bool
        Whether others used the machine meanwhile: a ratio is told, and is no verdict.
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
    events: Sequence[Change] = ()
    colours: EventColours = field(default_factory=EventColours)
    commit: str = ""
    disturbed: bool = False

    @property
    def colour(self) -> Colour:
        """What the case makes of the night; that of something slower depends on what changed."""
        if self.outcome not in (*ALARMS, Outcome.SUSPECTED):
            return Colour.GREEN
        told = [getattr(self.colours, change.kind) for change in self.events]
        if self.outcome not in (Outcome.SLOWER, Outcome.SUSPECTED) or not told:
            worst = Colour.RED
        else:
            worst = max(told, key=list(Colour).index)
        suspected = self.outcome is Outcome.SUSPECTED and worst is Colour.RED
        return Colour.YELLOW if suspected else worst

    @property
    def place(self) -> Place:
        """What the case is."""
        return Place.of(self.series)

    @property
    def without(self) -> str:
        """Why there is no verdict, in a word or two."""
        if self.disturbed or (self.record and self.record.status is Status.CONTENDED):
            return "contended"
        words = {Outcome.NEW: "new", Outcome.CHANGED: "new series", Outcome.SUSPECTED: "suspected"}
        return words.get(self.outcome, "too noisy" if self.ratio else "with too little to compare with")

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
    without the base's code; ``min_judged`` is the share of the cases that must have a verdict.
    """

    run: Run
    against: str
    findings: list[Finding]
    remeasured: bool = False
    left_out: Sequence[str] = ()
    shifts: Mapping[str, float] = field(default_factory=dict)
    one_sided: str = ""
    min_judged: float = 0.0

    @property
    def colour(self) -> Colour:
        """Red with an alarm; yellow where a case is, or where too few cases have a verdict."""
        worst = max((found.colour for found in self.findings), key=list(Colour).index, default=Colour.GREEN)
        return Colour.YELLOW if worst is Colour.GREEN and self.undecided else worst

    @property
    def judged(self) -> tuple[int, int]:
        """How many cases have a verdict, and of how many: all but those that cannot have a result."""
        open_, without = len(self.of(*OPEN)), len(self.of(Outcome.NO_RESULT))
        return len(self.findings) - without - open_, len(self.findings) - without

    @property
    def undecided(self) -> str:
        """In words, that fewer cases than `min_judged` have a verdict, and why; empty where enough have one."""
        judged, total = self.judged
        if total and judged >= self.min_judged * total:
            return ""
        reasons = Counter(found.without for found in self.of(*OPEN))
        why = f" ({', '.join(f'{number} {reason}' for reason, number in reasons.most_common())})" if reasons else ""
        return f"{judged} of {total} cases could be judged{why}; {self.min_judged:.0%} are needed"

    def of(self, *outcomes: Outcome) -> list[Finding]:
        """The findings with one of these outcomes."""
        return [finding for finding in self.findings if finding.outcome in outcomes]
