"""The search of one variant on one device: asks, has measured by a process that may die of it, keeps, tells."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..model.device import DeviceInfo
from ..model.record import Interval, Status
from ..run.defaults import Defaults
from ..run.messages import StepStarted
from ..run.runner import GROUP_STEP_S, WorkerDied, WorkerHandle
from .bench import Contest, Outcome, main
from .compiling import Ahead
from .log import Log, Space, Trial
from .search import Search
from .space import Config, name_of
from .standing import Standing
from .target import Goal

#: A step may take so many times as long as the slowest whole configuration with a result, and so many seconds at least.
SLOWER, LEAST_TIMEOUT = 3.0, 10.0
#: Seconds that a kernel which is being compiled ahead is waited for; then the measuring process compiles it itself.
PATIENCE = 5.0


@dataclass(frozen=True)
class Settings:
    """What all searches of a command have in common; ``timeout``: seconds that one step of a configuration may take."""

    seed: int
    objective: Literal["mean", "worst"]
    cache: Literal["cold", "warm"]
    timeout: float
    paths: list[str]
    tell: Callable[[str], None]
    say: Callable[[str], None]


class Machine:
    """A device with the process that measures on it, which is started anew when it dies.

    Parameters
    ----------
    info : DeviceInfo
    settings : Settings
    folder : Path
        For what the process prints.
    """

    def __init__(self, info: DeviceInfo, settings: Settings, folder: Path) -> None:
        self.info, self._settings = info, settings
        self._output = folder / f"{info.id.replace(':', '-')}.log"
        self._worker: WorkerHandle | None = None
        self.ahead = Ahead(info, settings.paths)

    def measure(self, contest: Contest, timeout: float) -> Outcome:
        """Return the outcome of a contest. A process that dies or hangs costs this configuration, and no other.

        Parameters
        ----------
        timeout : float
            Seconds that a step of it may take.
        """
        if self._worker is None:
            self._worker = WorkerHandle(main, self.info, self._settings.paths, self._output)
        self._worker.send(contest)
        at = StepStarted(None, "starting")
        try:
            while True:
                shared = max(self._settings.timeout, GROUP_STEP_S)
                message = self._worker.receive(shared if at.key is None else timeout)
                if isinstance(message, Outcome):
                    if message.status is Status.CRASHED:  # nobody knows what the device is left in
                        self._end()
                    return message
                at = message
        except WorkerDied as died:
            self._worker = None
            return Outcome(died.status, f"{died} ({at.step})")

    def _end(self) -> None:
        if self._worker:
            self._worker.kill()
        self._worker = None

    def close(self) -> None:
        """End all processes, whatever they are at."""
        self._end()
        self.ahead.close()


class Tuner:
    """Searches the space of one variant.

    Parameters
    ----------
    goal : Goal
    seeds : iterable of Config
        Measured first, after the code's defaults.
    machine : Machine
    log : Log
        What it holds of the variant is known, and not measured again.
    settings : Settings
    """

    def __init__(self, goal: Goal, seeds: Iterable[Config], machine: Machine, log: Log, settings: Settings) -> None:
        self.goal, self._machine, self._log, self._settings = goal, machine, log, settings
        self.space = goal.space
        self.standing = Standing(goal.presets, settings.objective)
        self._search = Search(self.space, [goal.defaults, *seeds], settings.seed)
        self.spent = 0.0
        own = [each for each in log.entries if isinstance(each, Space | Trial) and self._mine(each)]
        for trial in own:
            if isinstance(trial, Trial):
                self.standing.add(trial)
                self._charge(trial)
        space = next((each for each in own if isinstance(each, Space)), None) or self._described()
        if space not in own:
            log.append(space)
        #: What a run would have taken when the search began, which may have written a profile since.
        self.held: Config = space.profile or goal.defaults
        for name in [name for name in self.standing.trials if self._settled(name)]:
            self._tell(name)

    def _mine(self, entry: Space | Trial) -> bool:
        return (entry.device, entry.variant) == (self.goal.device.id, self.goal.name)

    def _described(self) -> Space:
        goal = self.goal
        held = Defaults(goal.device).of(goal.workload.name, goal.variant, goal.size.parameters)
        return Space(
            device=goal.device.id, variant=goal.name, size=self.space.size, values=self.space.values,
            defaults=goal.defaults, presets=dict(goal.presets), profile=held if held != goal.defaults else None,
        )  # fmt: skip

    def _settled(self, name: str) -> bool:
        """Whether nothing more is to be measured of a configuration."""
        standing = self.standing
        return standing.complete(name) or standing.failed(name) or standing.cannot_win(name)

    def _charge(self, trial: Trial) -> None:
        """Take what a trial took off the budget, but for the code's defaults: with these inputs, layouts and reference
        are made, which may take longer than a hundred configurations after them.
        """
        if name_of(trial.config) != name_of(self.goal.defaults):
            self.spent += trial.took

    def run(self, seconds: float) -> None:
        """Search until the space is known whole, or for so many seconds beyond those that were spent before."""
        until = self.spent + seconds
        queue: deque[Config] = deque()
        while self.spent < until:
            while len(queue) <= self._machine.ahead.processes:
                if (config := self._search.ask()) is None:
                    break
                self._machine.ahead.begin(self._what(next(iter(self.goal.presets))), config)
                queue.append(config)
            if not queue:
                return
            self._measure(queue.popleft())

    def _measure(self, config: Config) -> None:
        """Measure a configuration at each size, until it fails or cannot win."""
        name, before, waiting = name_of(config), self.standing.best, time.monotonic()
        artifacts = self._machine.ahead.take(config, PATIENCE)
        waited = time.monotonic() - waiting
        for preset in self.goal.presets:
            if preset in self.standing.trials.get(name, {}):
                continue
            started = time.monotonic()
            self._settings.tell(self._progress(config))
            outcome = self._machine.measure(self._contest(config, preset, artifacts), self._timeout())
            took = time.monotonic() - started if outcome.took is None else outcome.took
            trial = self._trial(config, preset, outcome, took + waited)
            waited = 0.0
            self._log.append(trial)
            self.standing.add(trial)
            self._charge(trial)
            if self._settled(name):
                break
        self._tell(name)
        if self.standing.best != before:
            self._settings.say(self._news())

    def _timeout(self) -> float:
        """Return how long a step may take: not much longer than whole configurations that have a result did.

        Otherwise one that hangs, or takes minutes to compile, would use up the budget of many.
        """
        took = [each.took for known in self.standing.trials.values() for each in known.values() if each.relative]
        return min(self._settings.timeout, max(LEAST_TIMEOUT, SLOWER * max(took))) if took else self._settings.timeout

    def _tell(self, name: str) -> None:
        """Tell the search; by ``worst`` a score depends on what is best at each size, so all of them are told again."""
        names = self.standing.trials if self._settings.objective == "worst" else [name]
        for each in names:
            self._search.tell(self.standing.configs[each], self.standing.score(each))

    def _what(self, preset: str) -> dict[str, Any]:
        goal = self.goal
        return {
            "workload": goal.workload.name, "problem": goal.problem.name, "variant": goal.variant.name,
            "parameters": goal.parameters(preset), "seed": self._settings.seed,
        }  # fmt: skip

    def _contest(self, config: Config, preset: str, artifacts: dict[str, Any]) -> Contest:
        standing = self.standing
        known = standing.trials[standing.best][preset] if standing.best else None
        return Contest(
            **self._what(preset), preset=preset, cache=self._settings.cache, config=config,
            rival=standing.configs[standing.anchor] if standing.anchor else None,
            best=known.seconds if known else None, lead=standing.lead(preset) * standing.place(preset),
            artifacts=artifacts,
        )  # fmt: skip

    def _trial(self, config: Config, preset: str, outcome: Outcome, took: float) -> Trial:
        anchor, ratio = self.standing.anchor, outcome.ratio
        theirs = self.standing.trials[anchor][preset] if anchor else None
        relative = None
        if outcome.status is Status.OK and outcome.seconds:
            relative = 1.0
            if theirs and theirs.relative and theirs.seconds:
                beside = ratio.value / self.standing.place(preset) if ratio else outcome.seconds / theirs.seconds
                relative = beside * theirs.relative
        return Trial(
            device=self.goal.device.id, variant=self.goal.name, preset=preset, config=config, status=outcome.status,
            reason=outcome.reason[:10_000], seconds=outcome.seconds, relative=relative,
            ratio=Interval(value=ratio.value, low=ratio.low, high=ratio.high) if ratio else None,
            times=outcome.times, share=outcome.share, took=took, hopeless=outcome.hopeless,
            disturbed=outcome.disturbed[:1000],
        )  # fmt: skip

    @property
    def tried(self) -> int:
        """How many configurations were tried."""
        return len(self.standing.trials)

    def gain(self) -> float:
        """Return how many times as fast the best is as the reference, by the search's own measurements."""
        best = self.standing.best
        return math.exp(-(self.standing.score(best) or 0.0)) if best else 1.0

    def _progress(self, config: Config) -> str:
        told = ", ".join(f"{name}={value}" for name, value in config.items())
        return (
            f"{self.goal.device.id} {self.goal.name}: {self.tried} of {self.space.size:,}, {self.gain():.2f} x; {told}"
        )

    def _news(self) -> str:
        best = self.standing.configs[self.standing.best or ""]
        own = {name: value for name, value in best.items() if value != self.goal.defaults[name]}
        told = ", ".join(f"{name}={value}" for name, value in own.items()) or "the code's defaults"
        return f"  {self.tried} of {self.space.size:,} tried: {self.gain():.3f} x with {told}"
