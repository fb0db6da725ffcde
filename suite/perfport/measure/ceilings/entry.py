"""What a sweep leaves behind: ceilings with their intervals, shapes and conditions."""

from __future__ import annotations

from typing import Any, Literal

from ...model.record import Interval
from ...model.schema import Model

#: Part of the name under which a user's ceilings are kept. A change of kernels or shapes raises it: else those who have
#: ceilings keep the old ones, and an older version is handed shapes that it does not know.
SWEEP_VERSION = 13

#: A probe that differs from the ceiling by more than this was disturbed, or the ceiling is another by now.
MOVED = 0.10


class Ceiling(Model):
    """One ceiling: median and 95 % interval of the best shape's samples, in ``unit``.

    Attributes
    ----------
    value, low, high : float
    unit : str
        SI unit: ``B/s``, ``FLOP/s``, ``op/s``, or ``s``.
    direction : str
        Whether a better device has a ``higher`` or a ``lower`` value.
    shape : dict
        The best shape.
    samples : int
        How many samples of it were taken.
    spread : float
        The worst shape's value over the best one's (its inverse where lower is better).
    sweep : dict
        Value of every shape tried, by the shape's label.
    curve : list of (float, float)
        Of a cache level: bytes in the set that is read again and again, and the bandwidth.
    clocks : dict
        What the driver said ``before`` and ``after``, where it tells (`OpenDevice.clocks`).
    theory : float, optional
        What the data sheet or the clock allows; ``theory_basis`` says how it was computed.
    above_theory : bool
        The whole interval lies above it: the clock is higher than assumed, or the count is wrong.
    """

    value: float
    low: float
    high: float
    unit: str
    direction: Literal["higher", "lower"] = "higher"
    shape: dict[str, Any] = {}
    samples: int = 0
    spread: float = 1.0
    sweep: dict[str, float] = {}
    curve: list[tuple[float, float]] = []
    clocks: dict[str, Any] = {}
    theory: float | None = None
    theory_basis: str = ""
    above_theory: bool = False

    @property
    def interval(self) -> Interval:
        """Its value with the ends of its interval."""
        return Interval(value=self.value, low=self.low, high=self.high)

    def above(self, other: Ceiling) -> bool:
        """Whether it says that the device can do more than another entry of the same ceiling says."""
        return self.value < other.value if self.direction == "lower" else self.value > other.value


class Renewal(Model):
    """Why ceilings were swept again in a run, and what became of it.

    Attributes
    ----------
    run : str
        Name of the run.
    date : str
        UTC, ISO 8601.
    reason : str
        Why the stored ones were not trusted any more.
    names : list of str
        The ceilings.
    outcome : str
        Why they, or some of them, stay as they were; empty if all were replaced.
    verdict : bool
        Whether a result was impossible unless the stored ones were too low.
    before, fresh : dict of Interval
        What each had been, and what the new sweep gave, by name; of those that were not swept, nothing.
    """

    run: str
    date: str
    reason: str
    names: list[str]
    outcome: str = ""
    verdict: bool = False
    before: dict[str, Interval] = {}
    fresh: dict[str, Interval] = {}

    @property
    def told(self) -> str:
        """Both values of each ceiling that had one, as text."""
        pairs = ((name, self.before[name], now) for name, now in self.fresh.items() if name in self.before)
        return ", ".join(f"{name} {before.value:.4g} as stored, {now.value:.4g} now" for name, before, now in pairs)


class Ceilings(Model):
    """The measured ceilings of one device under one driver.

    Attributes
    ----------
    date : str
        When all of them were swept, UTC, ISO 8601; `renewals` says which were swept again after that.
    absent : dict
        Why a ceiling is not among them.
    contended : dict
        Of ceilings that others disturbed in their sweep, how: they are not to be trusted.
    """

    device: str
    driver: str
    date: str
    version: int = SWEEP_VERSION
    full: bool = False
    working_set_bytes: int = 0
    entries: dict[str, Ceiling]
    absent: dict[str, str] = {}
    contended: dict[str, str] = {}
    renewals: list[Renewal] = []
