"""Which configuration is measured next.

A small space is measured whole. In a larger one the seeds come first (defaults, what siblings of the device like), then
some of their neighbours and some at random, then what a forest of regression trees expects to improve most: sequential
model-based optimisation (F. Hutter, H. H. Hoos, K. Leyton-Brown, "Sequential model-based optimization for general
algorithm configuration", LION 2011) with scikit-learn's extremely randomised trees. docs/decisions/tuning-search.md has
the evidence for that choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

import numpy as np

from .space import Config, Space, name_of

#: A space of so many configurations or fewer is measured whole.
SMALL = 200
#: Configurations beside the seeds before the first model; after it, one in so many is drawn at random.
FIRST, EXPLORE = 8, 10
#: Trees of the model; configurations that it ranks at a time: random ones, and neighbours of the best so many.
TREES, POOL, BEST = 32, 600, 6
#: A model serves until this share more configurations are known.
REFIT = 0.1
#: Factor in time by which a configuration without a result counts as slower than the slowest with one.
PENALTY = 1.5


class Search:
    """Proposes configurations of a space, none twice.

    The same seed, and results told in the same order, give the same proposals: a search that was killed is resumed by
    telling it what is known.

    Parameters
    ----------
    space : Space
    seeds : iterable of Config
        Asked for first, in their order.
    seed : int
    """

    def __init__(self, space: Space, seeds: Iterable[Config], seed: int) -> None:
        self.space = space
        self._seed = seed
        self._known: dict[str, tuple[Config, float | None]] = {}
        self._asked: set[str] = set()
        self._queue = [config for config in {name_of(c): c for c in seeds}.values() if space.holds(config)]
        self._ranked: list[Config] = []
        self._fitted = 0
        self.whole = space.size <= SMALL
        if self.whole:
            rest = list(space.every())
            np.random.default_rng(seed).shuffle(rest)
            self._queue += rest
        else:
            self._queue += self._first(np.random.default_rng([seed, 0]))

    def _first(self, rng: np.random.Generator) -> list[Config]:
        """Return what the first model learns from beside the seeds: half of it neighbours of theirs.

        Of some spaces most configurations cannot be built, or take minutes to compile: those near a seed rather can.
        """
        near = list({name_of(c): c for seed in self._queue for c in self.space.neighbours(seed)}.values())
        chosen = rng.permutation(len(near))[: FIRST // 2]
        return [near[i] for i in chosen] + self.space.draw(rng, FIRST - len(chosen))

    def tell(self, config: Config, value: float | None) -> None:
        """Take a result, which a later one replaces: the logarithm of a time, or ``None`` where there is none."""
        self._asked.add(name_of(config))
        self._known[name_of(config)] = (config, value)

    def ask(self) -> Config | None:
        """Return the next configuration, or ``None`` where none is left."""
        while self._queue:
            config = self._queue.pop(0)
            if name_of(config) not in self._asked:
                return self._take(config)
        if self.whole:
            return None
        rng = np.random.default_rng([self._seed, 1 + len(self._asked)])
        if len(self._asked) % EXPLORE and any(value is not None for _, value in self._known.values()):
            if len(self._known) >= self._fitted * (1 + REFIT) or not self._ranked:
                self._rank(rng)
            while self._ranked:
                config = self._ranked.pop(0)
                if name_of(config) not in self._asked:
                    return self._take(config)
        fresh = [config for config in self.space.draw(rng, 16, 8) if name_of(config) not in self._asked]
        if not fresh:  # few are left
            fresh = list(islice((c for c in self.space.every() if name_of(c) not in self._asked), 1))
        return self._take(fresh[0]) if fresh else None

    def _take(self, config: Config) -> Config:
        self._asked.add(name_of(config))
        return config

    def _rank(self, rng: np.random.Generator) -> None:
        """Order a pool of configurations by how much the model expects each to improve on the best."""
        from sklearn.ensemble import ExtraTreesRegressor  # half a second, which other commands would pay, too

        configs = [config for config, _ in self._known.values()]
        values = levelled([value for _, value in self._known.values()])
        self._fitted = len(configs)
        best = [configs[i] for i in np.argsort(values, kind="stable")[:BEST]]
        pool = {name_of(c): c for near in best for c in self.space.neighbours(near)}
        pool |= {name_of(c): c for c in self.space.draw(rng, POOL)}
        candidates = [config for name, config in pool.items() if name not in self._asked]
        if not candidates:
            self._ranked = []
            return
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=1, random_state=int(rng.integers(2**31)), bootstrap=True)
        forest.fit(self.space.encoded(configs), values)
        rows = self.space.encoded(candidates)
        trees = np.stack([tree.predict(rows) for tree in forest.estimators_])
        gain = expected_improvement(trees.mean(axis=0), trees.std(axis=0), float(values.min()))
        self._ranked = [candidates[i] for i in np.argsort(-gain, kind="stable")]


def levelled(values: Iterable[float | None]) -> np.ndarray:
    """Return what the model learns: logarithms of times, those above their median as the median, and failures as that.

    How bad the bad half is says nothing of where the best is, and a forest would spend its splits on it.
    """
    known = list(values)
    timed = [value for value in known if value is not None]
    worst = max(timed, default=0.0)
    filled = np.array([worst + math.log(PENALTY) if value is None else value for value in known])
    return np.minimum(filled, np.median(filled))


def expected_improvement(mean: np.ndarray, deviation: np.ndarray, best: float) -> np.ndarray:
    """Return by how much each is expected to be below ``best``, where it is distributed normally.

    D. R. Jones, M. Schonlau, W. J. Welch, "Efficient global optimization of expensive black-box functions", Journal of
    Global Optimization 13, 1998.
    """
    from scipy.special import ndtr

    deviation = np.maximum(deviation, 1e-9)
    z = (best - mean) / deviation
    return (best - mean) * ndtr(z) + deviation * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
