"""Replay of spaces that were measured whole: how close to the best a search comes in so many measurements.

    python tests/benchmarks/replay_tuning.py FOLDER [--repeats 20] [--jobs 2] [--strategies ours,...] [-o TABLE.json]

FOLDER holds a folder for each kernel with a cache file of Kernel Tuner for each device, as ``cachefiles/`` of
https://github.com/AutoTuningAssociation/benchmark_hub does (MIT licence; download it yourself). ``ours`` is the search
of ``perfport tune`` with the best five of each other device of the same vendor as seeds, as profiles of siblings hold
them; ``unseeded`` is the same without. ``tpe`` is Optuna's (``pip install optuna``). Any other name is a strategy of
Kernel Tuner (``pip install kernel_tuner``), run by Kernel Tuner itself on the same file. No hardware is needed; nothing
but the seeds decides the outcome.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from perfport.interop.kernel_tuner import Measured, read_cache
from perfport.tune.search import Search
from perfport.tune.space import Config, name_of

BUDGETS = (25, 100, 400)
#: Devices of the hub by vendor; others have no siblings.
VENDORS = {"A100": "NVIDIA", "A4000": "NVIDIA", "A6000": "NVIDIA", "MI250X": "AMD", "W6600": "AMD", "W7800": "AMD"}
SEEDS_EACH = 5
DEFAULT = (
    "ours,unseeded,random,tpe,genetic_algorithm,simulated_annealing,diff_evo,pso,greedy_ils,mls,dual_annealing,"
    "pyatf_strategies,hybrid_vndx"
)

load = cache(read_cache)


def trace(measured: Measured, visits: Iterator[Config]) -> list[float]:
    """Return the share of the optimum reached at each budget: the best time over the best time found so far."""
    best, shares = math.inf, []
    for seen, config in enumerate(visits, 1):
        best = min(best, measured.times[name_of(config)] or math.inf)
        if seen in BUDGETS:
            shares.append(measured.best / best)
        if seen == BUDGETS[-1]:
            break
    return shares + [measured.best / best] * (len(BUDGETS) - len(shares))


def searched(measured: Measured, seeds: Sequence[Config], seed: int) -> Iterator[Config]:
    """Yield the visits of `perfport.tune.search.Search`."""
    search = Search(measured.space, seeds, seed)
    while (config := search.ask()) is not None:
        yield config
        time = measured.times[name_of(config)]
        search.tell(config, None if time is None else math.log(time))


def siblings(file: Path) -> list[Config]:
    """Return the best of each other device of the same vendor, the very best of each first."""
    vendor = VENDORS.get(file.name.split(".")[0])
    others = [
        f for f in sorted(file.parent.glob("*.json.gz")) if f != file and VENDORS.get(f.name.split(".")[0]) == vendor
    ]
    best = []
    for other in others if vendor else []:
        known = load(other)
        done = [name for name, time in known.times.items() if time is not None]
        best.append([known.configs[name] for name in sorted(done, key=lambda name: known.times[name])[:SEEDS_EACH]])
    return [config for ranked in zip(*best, strict=True) for config in ranked]


def at_random(measured: Measured, seed: int) -> Iterator[Config]:
    """Yield configurations at random, none twice."""
    import numpy as np

    names = list(measured.configs)
    for index in np.random.default_rng(seed).permutation(len(names)):
        yield measured.configs[names[index]]


def tpe(measured: Measured, seed: int) -> Iterator[Config]:
    """Yield the visits of Optuna's tree-structured Parzen estimator; repeats and what cannot exist cost nothing."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=10)
    study = optuna.create_study(sampler=sampler)
    seen: set[str] = set()
    worst = math.log(max(time for time in measured.times.values() if time))
    for _ in range(4 * BUDGETS[-1]):
        trial = study.ask()
        config = {name: trial.suggest_categorical(name, values) for name, values in measured.space.values.items()}
        name = name_of(config)
        time = measured.times.get(name)
        study.tell(trial, worst if time is None else math.log(time))
        if name in measured.times and name not in seen:
            seen.add(name)
            yield config


def by_kernel_tuner(strategy: str) -> Callable[[Measured, Path, int], Iterator[Config]]:
    """Return what yields the visits of a strategy of Kernel Tuner in its simulation mode."""

    def visits(measured: Measured, file: Path, seed: int) -> Iterator[Config]:
        import random

        import kernel_tuner
        import numpy as np

        random.seed(seed)
        np.random.seed(seed)
        names = list(measured.space.values)

        def exists(config: dict[str, Any]) -> bool:  # Kernel Tuner reads the source of a lambda, and takes it apart
            return measured.space.holds({name: config[name] for name in names})

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            cached = Path(folder) / "cache.json"
            cached.write_bytes(gzip.decompress(file.read_bytes()))
            known = json.loads(cached.read_bytes())
            results, _ = kernel_tuner.tune_kernel(
                measured.kernel, "", known["problem_size"], [], measured.space.values,
                restrictions=exists,
                strategy=strategy, strategy_options={"max_fevals": BUDGETS[-1]}, cache=str(cached),
                simulation_mode=True, quiet=True, lang="C",
            )  # fmt: skip
        seen: set[str] = set()
        for result in results:
            config = {name: result[name] for name in names}
            if name_of(config) not in seen:
                seen.add(name_of(config))
                yield config

    return visits


def run(task: tuple[str, Path, int]) -> list[float]:
    """Replay one strategy on one file with one seed; returns the share of the optimum at each budget."""
    strategy, file, seed = task
    measured = load(file)
    if strategy in ("ours", "unseeded"):
        return trace(measured, searched(measured, siblings(file) if strategy == "ours" else [], seed))
    if strategy == "random":
        return trace(measured, at_random(measured, seed))
    if strategy == "tpe":
        return trace(measured, tpe(measured, seed))
    return trace(measured, by_kernel_tuner(strategy)(measured, file, seed))


def main() -> None:
    """Replay, and print a table for each kernel: mean over devices, in brackets the worst device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--strategies", default=DEFAULT)
    parser.add_argument("--kernels", default="*_milo")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    files = sorted(f for f in given.folder.glob(f"{given.kernels}/*.json.gz") if f.name.split(".")[0] in VENDORS)
    if not files:
        parser.error(f"{given.folder}: no cache file of a device that is known ({', '.join(VENDORS)})")
    table: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for strategy in given.strategies.split(","):
            for kernel in sorted({f.parent.name for f in files}):
                own = [f for f in files if f.parent.name == kernel]
                tasks = [(strategy, f, seed) for f in own for seed in range(given.repeats)]
                try:
                    reached = list(pool.map(run, tasks))
                except Exception as error:  # a strategy that ends with an error has no row
                    print(f"{kernel:<22} {strategy:<24} failed: {type(error).__name__}: {str(error)[:120]}", flush=True)
                    continue
                devices = [reached[i * given.repeats : (i + 1) * given.repeats] for i in range(len(own))]
                means = [[fmean(run_[b] for run_ in runs) for runs in devices] for b in range(len(BUDGETS))]
                row = [(fmean(at), min(at)) for at in means]
                table.setdefault(kernel, {})[strategy] = {
                    "mean": [mean for mean, _ in row], "worst": [worst for _, worst in row], "devices": means,
                }  # fmt: skip
                told = "  ".join(f"{100 * mean:5.1f} ({100 * worst:4.1f})" for mean, worst in row)
                print(f"{kernel:<22} {strategy:<24} {told}", flush=True)
    if given.output:
        budgets = {"budgets": BUDGETS, "repeats": given.repeats, "share_of_optimum": table}
        given.output.write_text(json.dumps(budgets, indent=1))


if __name__ == "__main__":
    sys.exit(main())
