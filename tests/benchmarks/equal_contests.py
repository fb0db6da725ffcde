"""What the place in a round does: each variant's defaults beside themselves, as `perfport tune` measures: run by hand.

    python tests/benchmarks/equal_contests.py tuning -d cuda [--times 5] [--warm]

TARGET is what `perfport tune` takes. Prints, for each variant, the time of the configuration that comes second in each
round over that of the first, which is the same one: the median of the contests, and the least and the largest. What is
far from 1 is no noise, and multiplies where winners are measured beside winners (docs/decisions/tuning-pairs.md).
"""

from __future__ import annotations

import argparse
import statistics

from perfport.run.listing import usable_devices
from perfport.tune.bench import Bench, Contest
from perfport.tune.target import target
from perfport.workload import discover


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("-d", "--device", action="append", default=[])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--warm", action="store_true")
    asked = parser.parse_args()
    workloads = discover()
    wanted = target(asked.target, workloads)
    for device in usable_devices(asked.device or list(wanted.devices), "--device"):
        bench = Bench(device, [], lambda step: None)
        for goal in wanted.goals(workloads, [device]):
            preset = next(iter(goal.presets))
            contest = Contest(
                goal.workload.name, goal.problem.name, goal.variant.name, preset, goal.parameters(preset), 1,
                "warm" if asked.warm else "cold", goal.defaults, None,
            )  # fmt: skip
            outcomes = [bench.serve(contest) for _ in range(asked.times)]
            ratios = [outcome.ratio.value for outcome in outcomes if outcome.ratio]
            told = f"{device.id}  {goal.name} ({preset})"
            if not ratios:
                print(f"{told}: {outcomes[0].status}: {outcomes[0].reason[:100]}", flush=True)
                continue
            seconds = statistics.median(outcome.seconds or 0.0 for outcome in outcomes)
            middle = statistics.median(ratios)
            print(f"{told}: {seconds * 1e6:.1f} us, {middle:.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


if __name__ == "__main__":
    main()
