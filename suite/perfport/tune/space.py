"""The configurations of a variant: every combination of the values that its tunables may take."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Config = dict[str, Any]


def name_of(config: Mapping[str, Any]) -> str:
    """Return a configuration as text: equal ones have equal names, whatever the order of their tunables."""
    return json.dumps(config, sort_keys=True, default=str)


class Space:
    """A finite space of configurations.

    Parameters
    ----------
    values : mapping of str to sequence
        Values by tunable, in the order in which neighbours are told from each other.
    holds : callable, optional
        Whether a configuration can exist at all; those that do not are never drawn. A variant states no such rule: what
        it refuses is found out by building it.
    """

    def __init__(
        self, values: Mapping[str, Sequence[Any]], holds: Callable[[Config], bool] = lambda config: True
    ) -> None:
        self.values = {name: list(allowed) for name, allowed in values.items()}
        self.holds = holds

    @property
    def size(self) -> int:
        """Number of combinations, those that cannot exist included."""
        return math.prod(len(allowed) for allowed in self.values.values())

    def every(self) -> Iterator[Config]:
        """Yield all configurations."""
        for chosen in itertools.product(*self.values.values()):
            config = dict(zip(self.values, chosen, strict=True))
            if self.holds(config):
                yield config

    def draw(self, rng: np.random.Generator, count: int, tries: int = 50) -> list[Config]:
        """Draw configurations at random, each once; fewer than ``count`` where so many are not met."""
        drawn: dict[str, Config] = {}
        for _ in range(count * tries):
            config = {name: allowed[rng.integers(len(allowed))] for name, allowed in self.values.items()}
            if self.holds(config):
                drawn.setdefault(name_of(config), config)
            if len(drawn) == count:
                break
        return list(drawn.values())

    def neighbours(self, config: Config) -> Iterator[Config]:
        """Yield the configurations that differ in one tunable."""
        for name, allowed in self.values.items():
            for value in allowed:
                other = {**config, name: value}
                if value != config[name] and self.holds(other):
                    yield other

    def nearest(self, config: Mapping[str, Any], base: Config) -> Config:
        """Return the configuration closest to parameters of another device: ``base`` where they say nothing."""
        return {
            name: _closest(config.get(name, base[name]), allowed, base[name]) for name, allowed in self.values.items()
        }

    def encoded(self, configs: Sequence[Config]) -> np.ndarray:
        """Return the configurations as rows of ranks of their values, float32, (configurations, tunables)."""
        ranks = {name: {_key(value): rank for rank, value in enumerate(a)} for name, a in self.values.items()}
        rows = [[ranks[name][_key(config[name])] for name in self.values] for config in configs]
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), len(self.values))


def _key(value: Any) -> str:
    return repr(value)


def _closest(value: Any, allowed: Sequence[Any], otherwise: Any) -> Any:
    """Return an allowed value: this one, or of numbers the one whose logarithm is nearest."""
    if value in allowed:
        return value
    numbers = [each for each in allowed if _positive(each)]
    if not _positive(value) or not numbers:
        return otherwise
    return min(numbers, key=lambda each: abs(math.log(each / value)))


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
