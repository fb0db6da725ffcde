"""Nights on simulated machines, judged as `perfport check` judges them, with suspects measured again.

    python tests/benchmarks/simulated_nights.py [--nights 100] [--cases 100] [MACHINE ...]

Prints how many nights are red where nothing has changed, and the share of slow-downs that is seen (docs/nightly.md):
against a run, three nights and seven nights, and against a run whose code is measured again in turn with the new one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from perfport.nightly.base import Before, in_line
from perfport.nightly.finding import Finding, Outcome
from perfport.nightly.inturn import ROUNDS
from perfport.nightly.remeasure import CONTROLS, WORKERS
from perfport.nightly.shift import without_shifts
from perfport.nightly.trials import PairedTrial, Trial, settle

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
    """

    spread: float = 0.003
    run: float = 0.0
    shift: float = 0.0
    memory: float = 0.0
    step: float = 0.0


MACHINES = {
    "workers alone": Machine(),
    "noisy workers": Machine(spread=0.01),
    "run effects": Machine(run=0.01),
    "common shifts": Machine(shift=0.02),
    "AR(1)": Machine(run=0.01, memory=0.7),
    "random walks": Machine(run=0.003, step=0.003),
    "long steps": Machine(step=0.01),
    "all of it": Machine(run=0.01, shift=0.02, memory=0.7, step=0.003),
}


def levels(rng: np.random.Generator, machine: Machine, cases: int, nights: int) -> np.ndarray:
    """Return each case's level in each night, without the common shift: (nights, cases)."""
    effects = np.zeros((nights, cases))
    effects[0] = machine.run * rng.standard_normal(cases)
    for night in range(1, nights):
        fresh = machine.run * np.sqrt(1 - machine.memory**2) * rng.standard_normal(cases)
        effects[night] = machine.memory * effects[night - 1] + fresh
    return effects + np.cumsum(machine.step * rng.standard_normal((nights, cases)), axis=0)


def measured(
    rng: np.random.Generator, machine: Machine, level: np.ndarray, spreads: np.ndarray, workers: int
) -> np.ndarray:
    """Return logarithms of medians of fresh workers in one run: (cases, workers)."""
    shape = (level.size, workers)
    far = np.where(rng.random(shape) < 0.05, 3.0, 1.0)
    shift = machine.shift * rng.standard_normal()
    return shift + level[:, None] + rng.standard_normal(shape) * far * spreads[:, None]


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
        shape = (level.size, ROUNDS)
        own = machine.run * rng.standard_normal(shape)
        far = np.where(rng.random(shape) < 0.05, 3.0, 1.0)
        taken.append(shift + level[:, None] + own + rng.standard_normal(shape) * far * spreads[:, None])
    return taken


def night(
    rng: np.random.Generator,
    machine: Machine,
    cases: int,
    nights: int,
    slowed: int = 0,
    slowdown: float = 0.05,
    in_turn: bool = False,
) -> tuple[int, int]:
    """Judge a night; returns false alarms and detections.

    The base is a run (``nights`` 0) or so many nights; the first ``slowed`` cases take longer tonight. With ``in_turn``
    suspects are measured again by both sides.
    """
    spreads = machine.spread * np.exp(0.5 * rng.standard_normal(cases))
    level = levels(rng, machine, cases, max(nights, 1) + 1)
    earlier = [measured(rng, machine, each, spreads, 3) for each in level[:-1]]
    tonight = level[-1] + np.where(np.arange(cases) < slowed, np.log1p(slowdown), 0.0)
    if nights:
        history = without_shifts(
            [{n: float(run[case].mean()) for n, run in enumerate(earlier)} for case in range(cases)]
        )
        bases = [Before("nights", in_line(logs, THRESHOLD), nights=True) for logs in history]
    else:
        bases = [Before("run", list(logs)) for logs in earlier[0]]
    now = measured(rng, machine, tonight, spreads, 3)
    first = judged(bases, now, {})
    ratios = [abs(np.log(finding.ratio.value)) if finding.ratio else np.inf for finding in first]
    again = {case for case, finding in enumerate(first) if finding.suspected}
    again |= set([case for case in np.argsort(ratios).tolist() if case not in again][:CONTROLS]) if again else set()
    if in_turn:
        turns = measured_in_turn(rng, machine, (level[-1], tonight), spreads)
        findings = judged(bases, now, {}, {case: (turns[0][case], turns[1][case]) for case in again})
    else:
        second = measured(rng, machine, tonight, spreads, WORKERS)
        findings = judged(bases, now, {case: second[case] for case in again})
    slower = [f.outcome is Outcome.SLOWER for f in findings]
    return sum(slower[slowed:]), sum(slower[:slowed])


def judged(
    bases: Sequence[Before],
    now: np.ndarray,
    again: dict[int, np.ndarray],
    turns: Mapping[int, tuple[np.ndarray, np.ndarray]] = MappingProxyType({}),
) -> list[Finding]:
    """Return the findings of a night, of cases in ``turns`` by what both sides took there."""
    site = '"v",{},["cuda:nvidia:0"],["H200"],"cuda",null,"fp32"]'
    findings = [
        Finding(f'["nightly","w","p",{{"n":{case}}},{site}', Outcome.CANNOT_TELL, threshold=THRESHOLD)
        for case in range(len(bases))
    ]
    trials: list[Trial] = []
    for case, (finding, base) in enumerate(zip(findings, bases, strict=True)):
        if case in turns:
            before, after = (side.tolist() for side in turns[case])
            trials.append(PairedTrial(finding, Before("in turn", before), after))
        else:
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
    print("| machine | base | red nights | 5 % seen | 10 % seen |\n| --- | --- | --- | --- | --- |")
    for name in given.machines:
        machine = MACHINES[name]
        for nights, in_turn in ((0, False), (0, True), (3, False), (7, False)):
            rng = np.random.default_rng([1, list(MACHINES).index(name), nights, *([1] if in_turn else [])])
            clean = [night(rng, machine, given.cases, nights, in_turn=in_turn)[0] for _ in range(given.nights)]
            red = sum(false > 0 for false in clean)
            few, seen = max(given.nights // 10, 1), []
            for slowdown in (0.05, 0.1):
                slowed = max(given.cases // 10, 1)
                judged_nights = [
                    night(rng, machine, given.cases, nights, slowed, slowdown, in_turn) for _ in range(few)
                ]
                hits = sum(detected for _, detected in judged_nights)
                seen.append(f"{hits / (few * slowed):.0%}")
            base = f"{nights} nights" if nights else "a run, both sides in turn" if in_turn else "a run"
            print(f"| {name} | {base} | {red} of {given.nights} | {' | '.join(seen)} |", flush=True)


if __name__ == "__main__":
    main()
