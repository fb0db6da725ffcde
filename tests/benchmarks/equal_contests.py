"""Two builds of one configuration: each variant's defaults beside themselves, as `perfport tune` measures: run by hand.

    python tests/benchmarks/equal_contests.py tuning -d cuda [--only kmeans] [--times 5] [--warm]

TARGET is what `perfport tune` takes. Prints, for each variant, the time of the one that is built anew for each contest
over that of the other, which stays: as searches measure, second in each round, and turned, first. What is far from 1 in
both is what buffers or code lie at; what turns with the order is the place in a round. Either multiplies where winners
are measured beside winners (docs/decisions/tuning-pairs.md).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator

from perfport.measure.sampling import Sampler, Subject
from perfport.run.listing import usable_devices
from perfport.tune import bench
from perfport.tune.target import target
from perfport.workload import discover


class Turning(Sampler):
    """Samples subjects in the opposite order while it is turned."""

    turned = False

    def run(
        self, subjects: list[Subject], announce: Callable[[Subject], None], first_round: int = 0
    ) -> Iterator[Subject]:
        """As `Sampler.run`; turned, the last subject first."""
        return super().run(subjects[::-1] if Turning.turned else subjects, announce, first_round)


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("-d", "--device", action="append", default=[])
    parser.add_argument("--only", default="", help="variants whose workload/problem/variant contains this")
    parser.add_argument("--times", type=int, default=5, help="contests in each order")
    parser.add_argument("--warm", action="store_true")
    asked = parser.parse_args()
    workloads = discover()
    wanted = target(asked.target, workloads)
    bench.Sampler = Turning  # what contests are sampled by
    for device in usable_devices(asked.device or list(wanted.devices), "--device"):
        measuring = bench.Bench(device, [], lambda step: None)
        for goal in (goal for goal in wanted.goals(workloads, [device]) if asked.only in goal.name):
            preset = next(iter(goal.presets))
            contest = bench.Contest(
                goal.workload.name, goal.problem.name, goal.variant.name, preset, goal.parameters(preset), 1,
                "warm" if asked.warm else "cold", goal.defaults, None,
            )  # fmt: skip
            told = f"{device.id}  {goal.name} ({preset})"
            for Turning.turned, order in ((False, "second"), (True, "first")):
                outcomes = [measuring.serve(contest) for _ in range(asked.times)]
                ratios = [outcome.ratio.value for outcome in outcomes if outcome.ratio]
                if not ratios:
                    print(f"{told}: {outcomes[0].status}: {outcomes[0].reason[:100]}", flush=True)
                    break
                seconds = statistics.median(outcome.seconds or 0.0 for outcome in outcomes)
                every = " ".join(f"{ratio:.3f}" for ratio in ratios)
                print(f"{told}: {seconds * 1e6:.1f} us, new one {order}: {every}", flush=True)


if __name__ == "__main__":
    main()
