"""The best of a search measured again, side by side, by fresh workers of `perfport run`.

What a profile is told rests on it. The run lies in the folder of the search as any other: reports read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..measure.sampling import Targets
from ..model.device import DeviceInfo
from ..model.record import Identity, Interval, Record, Status
from ..run import local
from ..run.cases import Case, Group
from ..run.experiment import Experiment, load
from ..run.keys import case_key
from ..run.plan import instances
from ..store.ratios import compare, is_ranked, time_of
from ..store.writing import replace
from ..workload import discover
from .log import DEFAULTS_BEST, WITHIN_NOISE, Result
from .space import Config, name_of
from .target import Goal
from .tuner import Tuner

RUN, EXPERIMENT = "final", "final.yaml"
#: Configurations of each search that are measured again, beside the code's defaults; fresh workers that do so.
FINALISTS, WORKERS = 5, 3
#: Searches of one problem and size whose finalists a worker measures side by side: it makes inputs and references once
#: for all of them, and holds all of their buffers.
SEARCHES = 4
#: Gain over the code's defaults, by the search's own times, below which nothing is measured again.
LEAST_GAIN = 0.01
#: Instances of the inputs that they are timed on where the data decide the time, as `perfport run` has them.
INSTANCES = 3
#: Why the code's defaults are no answer though nothing that has a result is faster: what was disturbed may be.
DISTURBED = "the code's defaults are the best of the finalists that nothing disturbed"
TARGETS = Targets(min_samples=7, max_samples=60, time_budget=0.7)


@dataclass(frozen=True)
class Finalists:
    """A variant on a device, and the configurations that are measured again: the code's defaults first.

    ``held``: what the device's profile has, where that is something else and among them. ``slower``: which of the best
    are not measured again, as their samples showed them to be slower than the best: seeds for siblings all the same.
    """

    goal: Goal
    configs: tuple[Config, ...]
    tried: int
    held: Config | None = None
    slower: tuple[Config, ...] = ()


def finalists(tuner: Tuner) -> Finalists | None:
    """Return what of a search is measured again: the best, without what its samples showed to be slower than these, and
    what the device's profile has.

    ``None`` where by the search's own times they differ from the code's defaults by less than `LEAST_GAIN`.
    """
    standing, defaults = tuner.standing, tuner.goal.defaults
    ranked = standing.ranked()
    if not ranked:
        return None
    held = name_of(tuner.held)
    kept = held if held in ranked and held != name_of(defaults) else None
    known = standing.score(name_of(defaults)) if name_of(defaults) in standing.trials else None
    told = [ranked[0], kept] if kept else [ranked[0]]
    if known is not None and all(abs(known - (standing.score(n) or 0.0)) < math.log(1 + LEAST_GAIN) for n in told):
        return None
    best = [name for name in ranked[:FINALISTS] if not standing.cannot_win(name)]
    again = dict.fromkeys([name_of(defaults), *best, *([kept] if kept else [])])
    configs = [standing.configs.get(name, defaults) for name in again]
    slower = [standing.configs[name] for name in ranked[:FINALISTS] if name not in again]
    had = standing.configs[kept] if kept else None
    return Finalists(tuner.goal, tuple(configs), tuner.tried, had, tuple(slower))


def groups(chosen: Iterable[Finalists], seed: int, cache: str, timeout: float) -> list[Group]:
    """Return groups of a few searches each, by device, problem and size."""
    targets = TARGETS.model_copy(update={"cache": cache})
    alike: dict[tuple[str, str, str, str], list[Finalists]] = {}
    for each in chosen:
        goal = each.goal
        for preset in goal.presets:
            alike.setdefault((goal.device.id, goal.workload.name, goal.problem.name, preset), []).append(each)
    return [
        _group(among[first : first + SEARCHES], preset, seed, targets, timeout)
        for (*_, preset), among in alike.items()
        for first in range(0, len(among), SEARCHES)
    ]


def _group(among: Sequence[Finalists], preset: str, seed: int, targets: Targets, timeout: float) -> Group:
    goal = among[0].goal
    parameters, source = goal.parameters(preset), goal.workload.source_digest()
    inputs = instances(goal.problem, parameters, seed, INSTANCES)
    cases = []
    for each in among:
        for config in each.configs:
            identity = _identity(each.goal, preset, parameters, inputs, config)
            key = case_key(identity, {}, goal.device, targets.cache, source)
            cases.append(Case(key=key, identity=identity, defaults=each.goal.defaults))
    return Group(
        device=goal.device, workload=goal.workload.name, problem=goal.problem.name, preset=preset,
        parameters=parameters, inputs=inputs, targets=targets, timeout=timeout, workers=WORKERS, cases=cases,
    )  # fmt: skip


def _identity(goal: Goal, preset: str, parameters: dict[str, Any], inputs: dict[str, int], config: Config) -> Identity:
    variant = goal.variant
    return Identity(
        workload=goal.workload.name, problem=goal.problem.name, preset=preset, parameters=parameters,
        variant=variant.name, role=variant.role, rung=variant.rung, tunables=config, devices=[goal.device.id],
        backend=goal.device.backend, precision=variant.precision, inputs=inputs,
    )  # fmt: skip


def measure(
    planned: Sequence[Group], folder: Path, options: local.Options, discovered: list[DeviceInfo]
) -> list[Record]:
    """Run the groups, as far as they have no record yet; return the records of all of them."""
    studies = {
        (group.workload, group.problem): {
            "workload": group.workload,
            "problem": group.problem,
            "presets": [group.preset],
        }
        for group in planned
    }
    definition = {"name": "final", "title": "The best of a search, side by side", "experiments": list(studies.values())}
    path = folder / EXPERIMENT
    replace(path, yaml.safe_dump(definition, sort_keys=False))
    experiment: Experiment = load(path)
    prepared = local.Prepared(
        list(planned), experiment, path, discover(options.workloads), folder / RUN, options, discovered
    )
    return local.execute(prepared).records


def result(each: Finalists, records: Iterable[Record], objective: str) -> Result:
    """Return the winner among finalists and what it gains over the code's defaults.

    Without parameters where nothing beats the defaults beyond the interval of the gain.
    """
    goal, of = each.goal, goal_size(each)
    own = [record for record in records if _of(goal, record)]
    configs = {name_of(config): config for config in each.configs}
    # A search that went on has other finalists than the final that was begun before, whose records are kept.
    held = {name: known for name, known in _by_config(own).items() if name in configs}
    reference = held.get(name_of(goal.defaults), {})
    complete = {name: known for name, known in held.items() if known.keys() == goal.presets.keys()}
    base = Result(
        device=goal.device.id, variant=goal.name, presets=dict(goal.presets), tried=each.tried, of=of,
    )  # fmt: skip
    if reference.keys() != goal.presets.keys():
        default = next((r for r in own if r.identity.tunables == goal.defaults and not is_ranked(r)), None)
        why = f"{default.status}: {default.failure.reason}" if default and default.failure else "no record"
        return base.model_copy(update={"reason": f"the code's defaults have no result at every size ({why})"[:1000]})
    least = {preset: min(time_of(known[preset]) for known in complete.values()) for preset in goal.presets}
    ranked = sorted(complete, key=lambda name: _score(complete[name], least, goal.presets, objective))
    had = complete.get(name_of(each.held)) if each.held else None
    base = base.model_copy(update={"over_profile": mean_gain(had, reference, goal.presets) if had else None})
    if ranked[0] == name_of(goal.defaults):
        disturbed = any(_disturbed(own, config) for config in each.configs)
        return base.model_copy(update={"reason": DISTURBED if disturbed else DEFAULTS_BEST})
    winner = complete[ranked[0]]
    gain = mean_gain(reference, winner, goal.presets)
    base = base.model_copy(update={"gain": gain, "share": _share(winner, goal.presets)})
    if gain is None or gain.low <= 1:
        return base.model_copy(update={"reason": WITHIN_NOISE})
    rest = [*(configs[name] for name in ranked[1:] if name != name_of(goal.defaults)), *each.slower]
    over = mean_gain(had, winner, goal.presets) if had else None
    return base.model_copy(update={"parameters": configs[ranked[0]], "next": rest, "over_profile": over})


def _disturbed(own: Iterable[Record], config: Config) -> bool:
    """Whether a finalist has a time that may not be ranked, or no record at all."""
    records = [record for record in own if record.identity.tunables == config]
    return not records or any(record.status is Status.CONTENDED for record in records)


def goal_size(each: Finalists) -> int:
    """Return how many configurations there are."""
    return each.goal.space.size


def _of(goal: Goal, record: Record) -> bool:
    identity = record.identity
    name = f"{identity.workload}/{identity.problem}/{identity.variant}"
    return (identity.devices, name) == ([goal.device.id], goal.name)


def _by_config(records: Iterable[Record]) -> dict[str, dict[str, Record]]:
    """The ranked records of a variant on a device, by configuration and size."""
    held: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.identity.preset and is_ranked(record):
            held.setdefault(name_of(record.identity.tunables), {})[record.identity.preset] = record
    return held


def _score(
    known: Mapping[str, Record], least: Mapping[str, float], presets: Mapping[str, float], objective: str
) -> float:
    slowdowns = {preset: math.log(time_of(known[preset]) / least[preset]) for preset in presets}
    if objective == "worst":
        return max(slowdowns.values())
    return weighted(slowdowns, presets)


def weighted(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted mean of values by size."""
    return sum(weights[preset] * values[preset] for preset in weights) / sum(weights.values())


def mean_gain(
    reference: Mapping[str, Record], winner: Mapping[str, Record], presets: Mapping[str, float]
) -> Interval | None:
    """Return the weighted geometric mean of speed-ups over the sizes; its ends are those of the ends, which is safe."""
    ends: dict[str, dict[str, float]] = {"value": {}, "low": {}, "high": {}}
    for preset in presets:
        compared = compare(reference[preset], winner[preset])
        if compared is None:
            return None
        for end, known in ends.items():
            known[preset] = math.log(getattr(compared.ratio, end))
    value, low, high = (math.exp(weighted(ends[end], presets)) for end in ("value", "low", "high"))
    return Interval(value=value, low=min(low, value), high=max(high, value))


def _share(winner: Mapping[str, Record], presets: Mapping[str, float]) -> float | None:
    shares = {p: bound.share.value for p in presets if (bound := winner[p].problem_bound)}
    if shares.keys() != presets.keys():
        return None
    return math.exp(weighted({preset: math.log(share) for preset, share in shares.items()}, presets))
