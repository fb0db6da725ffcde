"""False alarms and detections of `perfport check`, really measured: run by hand, on a quiet machine.

    python tests/benchmarks/false_alarms.py [--nights 8] [--cases 40] [--slowdown 0] [--event source] [--device NAME]

A night is a pair of runs of the same cases (tests/data/nightly), each measured by three fresh workers, the second
judged against the first, suspects measured again. Without ``--slowdown`` both runs do the same work, and every alarm is
a false one. With ``--slowdown 0.05`` one case in five does 5 % more work in the second run (what all do alike would be
taken for the machine), and every one of those that is not found is missed. With ``--event source`` the kernel file of
that fifth differs between the two runs (in a comment), with ``--event driver`` the driver's name.
Prints one line for each night, then alarms of all pairs and nights, and the spread between workers.

The defaults are 320 pairs. Sizes are for a data-centre GPU; on a CPU use ``--items 4096 --rounds 2000``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from perfport import workload
from perfport.machine.discovery import discover
from perfport.measure.ceilings import Ceilings, store
from perfport.measure.repeats import worker_medians
from perfport.model.device import DeviceInfo
from perfport.nightly import check, remeasure
from perfport.nightly.base import AgainstRun
from perfport.nightly.finding import Judgement, Outcome
from perfport.run import experiment, local, plan, sources
from perfport.store.results import Run

CHANGED = "changed "  # before the name of the driver
WORKLOAD = str(Path(__file__).parents[1] / "data" / "nightly")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=8, help="pairs of runs")
    parser.add_argument(
        "--cases", type=int, default=40, help="cases of a run, and a quarter as many that can be slowed"
    )
    parser.add_argument("--slowdown", type=float, default=0.0, help="more work in the second run, relative")
    parser.add_argument("--event", choices=("source", "driver"), help="what changes between the runs of a pair")
    parser.add_argument("--device", default=None, help="selector; default: the first healthy device")
    parser.add_argument("--items", type=int, default=1 << 18, help="work-items of the smallest case")
    parser.add_argument("--rounds", type=int, default=20000, help="work per item of the smallest case")
    parser.add_argument("--samples", type=int, default=15, help="samples of each worker and case")
    parser.add_argument("--threshold", type=float, default=0.02, help="change too small to matter")
    parser.add_argument("--results", type=Path, default=None, help="keep the runs in this folder")
    return parser.parse_args()


def definition(given: argparse.Namespace) -> dict[str, Any]:
    """Return the experiment: one problem at so many sizes."""
    rounds = [given.rounds + given.rounds * case // (2 * given.cases) for case in range(given.cases)]
    return {
        "name": "false_alarms", "workers": check.LEAST_WORKERS, "check": {"threshold": given.threshold},
        "measurement": {"cache": "warm", "min_samples": given.samples, "max_samples": given.samples, "time_budget": 5},
        "experiments": [
            {
                "workload": "nightly", "problem": "double", "variants": [variant],
                "parameters": {"n": given.items, "rounds": each},
            }
            for variant, each in (("steady", rounds), ("slowed", rounds[::4]))
        ],
    }  # fmt: skip


def measure(file: Path, folder: Path, device: DeviceInfo, code: str, factor: float) -> Run:
    """Run the experiment once, with so much more work and the workload in a folder."""
    os.environ["NIGHTLY_PLANTED"] = json.dumps({"slowed": {"factor": factor}})
    sources.digest.cache_clear()
    found = workload.discover([code])
    held = experiment.load(file)
    groups = plan.make(held, str(file), found, [device], seed=1)
    options = local.Options(workloads=[code], seed=1)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        local.execute(local.Prepared(groups, held, file, found, folder, options, [device]))
    return Run(folder)


def night(file: Path, folder: Path, device: DeviceInfo, given: argparse.Namespace) -> tuple[Judgement, list[float]]:
    """Measure a pair and judge it; returns the judgement and each case's spread between workers."""
    code = folder / "nightly"
    shutil.copytree(WORKLOAD, code, ignore=shutil.ignore_patterns("__pycache__"))
    base = measure(file, folder / "a", device, str(code), 1.0)
    if given.event == "source":
        with (code / "kernels" / "slowed.cl").open("a") as kernel:
            kernel.write("// changed\n")
    elif given.event == "driver":
        device = device.model_copy(update={"driver": CHANGED + device.driver})
    run = measure(file, folder / "b", device, str(code), 1.0 + given.slowdown)
    against = AgainstRun(base, run)
    judgement = check.judge(run, against)
    if wanted := check.suspects(judgement, remeasure.WORKERS):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            wanted += check.controls(judgement, wanted)
            again = remeasure.measure_again(run, wanted, [device], [str(code)], ["false_alarms.py"])
        judgement = check.judge(run, against, again)
    logs = [np.log(worker_medians(record)) for record in base.records if record.timing]
    return judgement, [float(values.std(ddof=1)) for values in logs]


def main() -> None:
    """Measure and print."""
    given = arguments()
    selectors = [given.device] if given.device else ["all"]
    device = plan.select_devices(selectors, discover(), "--device")[0]
    with tempfile.TemporaryDirectory() as name:
        folder = given.results or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["XDG_CACHE_HOME"] = str(Path(name) / "cache")  # no ceilings: bounds play no part here
        for driver in (device.driver, CHANGED + device.driver):
            info = device.model_copy(update={"driver": driver})
            store(info, Ceilings(device=device.id, driver=driver, date="", entries={}))
        file = folder / "false_alarms.yaml"
        file.write_text(yaml.safe_dump(definition(given)))
        alarms = red = pairs = 0
        spreads: list[float] = []
        for number in range(given.nights):
            started = time.perf_counter()
            judgement, spread = night(file, folder / f"night{number}", device, given)
            pair = [f for f in judgement.findings if not given.slowdown or f.place.variant == "slowed"]
            slower = [found for found in pair if found.outcome is Outcome.SLOWER]
            false = len(judgement.of(Outcome.SLOWER)) - len(slower)
            other = judgement.of(Outcome.WRONG, Outcome.VANISHED, Outcome.FAILED)
            contended = sum(found.why.startswith("contended") for found in judgement.findings)
            again = sum(found.again > 0 for found in judgement.findings)
            alarms, red, pairs = alarms + len(slower), red + bool(slower), pairs + len(pair)
            spreads += spread
            ratios = [1 / found.ratio.value for found in judgement.findings if found.ratio]
            print(
                f"night {number}: {len(slower)} of {len(pair)} slower{f', {false} others' if given.slowdown else ''}, "
                f"{again} measured again, "
                f"{contended} contended, {len(other)} failed, median change "
                f"{100 * (float(np.median(ratios)) - 1) if ratios else float('nan'):+.2f} %, "
                f"{time.perf_counter() - started:.0f} s",
                flush=True,
            )
    word = "detections" if given.slowdown else "false alarms"
    quantiles = ", ".join(f"{100 * q:.2f} %" for q in np.quantile(spreads, [0.5, 0.9, 1.0]))
    print(f"{device.id} ({device.chip}), slow-down {100 * given.slowdown:g} %, threshold {100 * given.threshold:g} %:")
    print(f"{word}: {alarms} of {pairs} pairs ({100 * alarms / pairs:.1f} %); red nights: {red} of {given.nights}")
    print(f"spread between fresh workers, median, 90th percentile, most: {quantiles}")


if __name__ == "__main__":
    main()
