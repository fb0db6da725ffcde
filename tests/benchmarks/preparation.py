"""How long the host takes to prepare problems: their inputs, and what outputs are compared with.

    python tests/benchmarks/preparation.py WORKLOAD/PROBLEM:PRESET [...]

Every worker does this once a group, for the timed inputs and again for the drawn ones, while the device waits. Prints
for each problem, as markdown, the seconds until it is made, those of each of its cached properties (what one of them
asks another for counts where it is made first), and how many cores were busy meanwhile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property

from tabulate import tabulate

from perfport.model.errors import PerfportError
from perfport.workload import Problem, discover


def timed(make: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a call takes, and how many cores were busy."""
    wall, used = time.perf_counter(), time.process_time()
    make()
    wall, used = time.perf_counter() - wall, time.process_time() - used
    return wall, used / wall


def steps(cls: type[Problem], preset: str) -> Iterator[tuple[str, float, float]]:
    """Yield what is made, the seconds and the busy cores."""
    made: list[Problem] = []
    parameters = cls.Parameters.model_validate(cls.presets[preset])
    yield "problem", *timed(lambda: made.append(cls(parameters, 1)))
    problem = made[0]
    names = [name for owner in cls.__mro__ for name, value in vars(owner).items() if isinstance(value, cached_property)]
    for name in dict.fromkeys(names):
        if name not in vars(problem):
            with suppress(PerfportError):  # what this problem cannot have, as data that only the device makes
                yield name, *timed(lambda name=name: getattr(problem, name))  # type: ignore[misc]
    yield "work()", *timed(problem.work)


def main(chosen: list[str]) -> None:
    """Print a table of each problem."""
    if not chosen:
        sys.exit(__doc__)
    for name in chosen:
        place, _, preset = name.partition(":")
        workload, _, problem = place.partition("/")
        rows = [
            (step, f"{wall:.2f}", f"{cores:.1f}")
            for step, wall, cores in steps(discover([], workload)[workload].problem(problem), preset)
            if wall >= 0.01
        ]
        print(f"\n{name}\n\n{tabulate(rows, ['made', 's', 'busy cores'], 'pipe', disable_numparse=True)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
