"""Nights on simulated machines, judged as `perfport check` judges them, with suspects measured again.

    python tests/benchmarks/simulated_nights.py [--nights 100] [--cases 100] [MACHINE ...]

Prints how many nights are red, and yellow, where nothing has become slower, and the share of slow-downs that is seen
(docs/nightly.md): against a run, three nights and seven nights; against a run whose code is measured again in turn with
the new one; and across events that lie up to six nights back: a source file of a fifth of the cases was changed, or the
driver of all. Slow-downs come with the event then.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from perfport.nightly.base import Before, in_line
from perfport.nightly.finding import Colour, Finding, Outcome
from perfport.nightly.inturn import ROUNDS
from perfport.nightly.levels import LEAST_NIGHTS, Stretch, held_to
from perfport.nightly.night import Change
from perfport.nightly.remeasure import CONTROLS, WORKERS
from perfport.nightly.shift import without_shifts
from perfport.nightly.trials import PairedTrial, Trial, freedom_of, settle

THRESHOLD = 0.02


@dataclass(frozen=True)
class Machine:
    """How times vary, as relative standard deviations.

    Attributes
    ----------
    spread : float
        Between fresh workers of one run; log-normal by case around this, and one worker in twenty three times as
        far off.
    run : float
        Of a case from run to run: all workers of a run share it, and so does what is measured again of it.
    shift : float
        Of all cases together from run to run; what is measured again is a run of its own.
    memory : float
        Correlation of a case's run effect with that of the night before (AR(1)).
    step : float
        Of a case's random walk from night to night.
    drift : float
        By how much all cases become slower from one night to the next.
    mode : float
        How much slower three of ten workers are, by luck (placement of memory).
    run_mode : float
        The same of three of ten runs of a case, whose workers all share it.
    """

    spread: float = 0.003
    run: float = 0.0
    shift: float = 0.0
    memory: float = 0.0
    step: float = 0.0
    drift: float = 0.0
    mode: float = 0.0
    run_mode: float = 0.0

    def own(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return what cases have for themselves in a run."""
        return self.run * rng.standard_normal(shape) + self.run_mode * (rng.random(shape) < 0.3)

    def workers(self, rng: np.random.Generator, spreads: np.ndarray, number: int) -> np.ndarray:
        """Return what each of so many workers has for itself: (cases, workers)."""
        shape = (spreads.size, number)
        far = np.where(rng.random(shape) < 0.05, 3.0, 1.0)
        return rng.standard_normal(shape) * far * spreads[:, None] + self.mode * (rng.random(shape) < 0.3)


@dataclass(frozen=True)
class Base:
    """What nights are held to.

    Attributes
    ----------
    name : str
    nights : int
        So many; 0 for a run.
    event : str
        Kind of the event that parts them, with which slow-downs come.
    changed : float
        Share of the cases that it is of.
    in_turn : bool
        Whether suspects of a changed source are measured again by both sides.
    """

    name: str
    nights: int
    event: str = ""
    changed: float = 0.0
    in_turn: bool = False


BASES = (
    Base("a run", 0), Base("a run, both sides in turn", 0, in_turn=True), Base("3 nights", 3), Base("7 nights", 7),
    Base("7 nights, a source file changed", 7, "source", 0.2),
    Base("7 nights, a source file changed, in turn", 7, "source", 0.2, in_turn=True),
    Base("7 nights, the driver changed", 7, "driver", 1.0),
)  # fmt: skip

MACHINES = {
    "workers alone": Machine(),
    "noisy workers": Machine(spread=0.01),
    "run effects": Machine(run=0.01),
    "common shifts": Machine(shift=0.02),
    "AR(1)": Machine(run=0.01, memory=0.7),
    "random walks": Machine(run=0.003, step=0.003),
    "long steps": Machine(step=0.01),
    "drift": Machine(run=0.003, drift=0.002),
    "two modes": Machine(mode=0.03),
    "two modes of runs": Machine(run_mode=0.03),
    "all of it": Machine(run=0.01, shift=0.02, memory=0.7, step=0.003),
}


def levels(rng: np.random.Generator, machine: Machine, cases: int, nights: int) -> np.ndarray:
    """Return each case's level in each night, without the common shift: (nights, cases)."""
    effects = np.zeros((nights, cases))
    effects[0] = machine.own(rng, (cases,))
    for night in range(1, nights):
        fresh = np.sqrt(1 - machine.memory**2) * machine.own(rng, (cases,))
        effects[night] = machine.memory * effects[night - 1] + fresh
    walks = np.cumsum(machine.step * rng.standard_normal((nights, cases)), axis=0)
    return effects + walks + machine.drift * np.arange(nights)[:, None]


def measured(
    rng: np.random.Generator, machine: Machine, level: np.ndarray, spreads: np.ndarray, workers: int
) -> np.ndarray:
    """Return logarithms of medians of fresh workers in one run: (cases, workers)."""
    shift = machine.shift * rng.standard_normal()
    return shift + level[:, None] + machine.workers(rng, spreads, workers)


def measured_in_turn(
    rng: np.random.Generator, machine: Machine, sides: Sequence[np.ndarray], spreads: np.ndarray
) -> list[np.ndarray]:
    """Return logarithms of medians of both sides' workers, round by round: (cases, rounds) each.

    The sides of a round share the hour's shift alone. What a case has for itself in a run is drawn anew for each side
    of each round, as each of them is a run of its own.
    """
    shift = machine.shift * rng.standard_normal(ROUNDS)
    taken = []
    for level in sides:
        own = machine.own(rng, (level.size, ROUNDS))
        taken.append(shift + level[:, None] + own + machine.workers(rng, spreads, ROUNDS))
    return taken


@dataclass(frozen=True)
class Night:
    """What a night came to: false alarms (red), false suspicions (yellow), slow-downs that were seen."""

    red: int
    yellow: int
    seen: int


def night(
    rng: np.random.Generator, machine: Machine, cases: int, base: Base, slowed: int = 0, slowdown: float = 0.05
) -> Night:
    """Judge a night; the first ``slowed`` cases take longer since the event, or tonight."""
    spreads = machine.spread * np.exp(0.5 * rng.standard_normal(cases))
    level = levels(rng, machine, cases, max(base.nights, 1) + 1)
    slow = np.where(np.arange(cases) < slowed, np.log1p(slowdown), 0.0)
    begins = max(base.nights, 1) - (int(rng.integers(base.nights)) if base.event else 0)  # the night of the event
    level[begins:] += slow
    earlier = [measured(rng, machine, each, spreads, 3) for each in level[:-1]]
    now = measured(rng, machine, level[-1], spreads, 3)
    bases = held(base, begins, earlier, now) if base.nights else [Before("run", list(logs)) for logs in earlier[0]]
    first = judged(bases, now, {})
    ratios = [abs(np.log(finding.ratio.value)) if finding.ratio else np.inf for finding in first]
    again = {case for case, finding in enumerate(first) if finding.suspected}
    again |= set([case for case in np.argsort(ratios).tolist() if case not in again][:CONTROLS]) if again else set()
    second = measured(rng, machine, level[-1], spreads, WORKERS)
    turned = {case for case in again if base.in_turn and (not base.event or bases[case].events)}
    turns = measured_in_turn(rng, machine, (level[-1] - slow, level[-1]), spreads)
    findings = judged(
        bases, now, {case: second[case] for case in again - turned},
        {case: (turns[0][case], turns[1][case]) for case in turned},
    )  # fmt: skip
    false = [finding.colour for finding in findings[slowed:]]
    seen = sum(finding.outcome is Outcome.SLOWER for finding in findings[:slowed])
    return Night(false.count(Colour.RED), false.count(Colour.YELLOW), seen)


def held(base: Base, begins: int, earlier: Sequence[np.ndarray], now: np.ndarray) -> list[Before]:
    """Return the nights that each case is held to, as `perfport.nightly.base` chooses them."""
    cases = now.shape[0]
    change = [Change(base.event, "old", "new")] if base.event else []
    parted: list[list[Stretch]] = []
    for case in range(cases):
        logs = {n: float(run[case].mean()) for n, run in enumerate(earlier)}
        cut = begins if case < base.changed * cases else len(earlier)
        parts = [{n: v for n, v in logs.items() if n < cut}, {n: v for n, v in logs.items() if n >= cut}]
        parted.append([Stretch(part, change if number else []) for number, part in enumerate(parts) if part])
    levelled = iter(without_shifts([stretch.logs for stretches in parted for stretch in stretches]))
    bases = []
    for case, stretches in enumerate(parted):
        stretches = [Stretch(next(levelled), stretch.events) for stretch in stretches]
        tonight = change if case < base.changed * cases and begins == len(earlier) else []
        level = held_to(stretches, float(now[case].mean()), tonight, THRESHOLD, base.nights)
        logs, apart = (in_line(level.logs, THRESHOLD), [in_line(each, THRESHOLD) for each in level.apart])
        bases.append(Before("nights", logs, nights=True, apart=apart, events=level.events))
    return bases


def judged(
    bases: Sequence[Before],
    now: np.ndarray,
    again: dict[int, np.ndarray],
    turns: Mapping[int, tuple[np.ndarray, np.ndarray]] = MappingProxyType({}),
) -> list[Finding]:
    """Return the findings of a night, of cases in ``turns`` by what both sides took there."""
    site = '"v",{},["cuda:nvidia:0"],["H200"],"cuda",null,"fp32"]'
    findings = [
        Finding(f'["nightly","w","p",{{"n":{case}}},{site}', Outcome.CANNOT_TELL, threshold=THRESHOLD, events=b.events)
        for case, b in enumerate(bases)
    ]
    trials: list[Trial] = []
    for case, (finding, base) in enumerate(zip(findings, bases, strict=True)):
        if case in turns:
            before, after = (side.tolist() for side in turns[case])
            trials.append(PairedTrial(finding, Before("in turn", before), after))
        elif freedom_of(base) >= LEAST_NIGHTS - 1 or not base.nights:
            trials.append(Trial(finding, base, now[case].tolist(), list(again.get(case, []))))
    settle(trials)
    return findings


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=100, help="nights of each kind")
    parser.add_argument("--cases", type=int, default=100, help="cases of a night; one in ten is slower for the power")
    parser.add_argument("machines", nargs="*", default=list(MACHINES), help=", ".join(MACHINES))
    given = parser.parse_args()
    print(
        "| machine | base | red nights | yellow nights | 5 % seen | 10 % seen |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, (number, base) in itertools.product(given.machines, enumerate(BASES)):
        machine = MACHINES[name]
        rng = np.random.default_rng([1, list(MACHINES).index(name), number])
        clean = [night(rng, machine, given.cases, base) for _ in range(given.nights)]
        red, yellow = sum(n.red > 0 for n in clean), sum(n.red == 0 and n.yellow > 0 for n in clean)
        few, slowed, seen = max(given.nights // 10, 1), max(given.cases // 10, 1), []
        for slowdown in (0.05, 0.1):
            hits = sum(night(rng, machine, given.cases, base, slowed, slowdown).seen for _ in range(few))
            seen.append(f"{hits / (few * slowed):.0%}")
        counts = f"{red} of {given.nights} | {yellow} of {given.nights}"
        print(f"| {name} | {base.name} | {counts} | {' | '.join(seen)} |", flush=True)


if __name__ == "__main__":
    main()
