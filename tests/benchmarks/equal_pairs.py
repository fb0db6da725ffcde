"""How often equal code is called different (A/A), really measured: run by hand, on a quiet machine.

    python tests/benchmarks/equal_pairs.py [--runs 7] [--device SELECTOR] [--time-limit SECONDS] [--results FOLDER]

`perfport run` measures the same cases again and again (equal_pairs.yaml beside this file, each case by three fresh
workers), and `perfport compare`'s function judges each run against the one before: 7 runs of 50 cases are 300 pairs of
equal cases. Prints, as markdown, for each device how many pairs were called different at 95 %, and how many of the
printed intervals hold the ratio 1; writes every pair into ``FOLDER/equal_pairs.json``.

No run begins that would not end within the time limit, to go by the longest one before. With ``--results`` the runs are
kept, and those that are there already count and are not made again. Ceilings are not measured: bounds play no part
here. Pairs with a contended side are counted and left out, as nobody is to go by them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from perfport.judge.compare import contrast
from perfport.machine.discovery import discover
from perfport.measure.ceilings import Ceilings, store
from perfport.measure.intervals import Verdict
from perfport.model.record import CONFIDENCE, Status
from perfport.run import plan
from perfport.store.collection import Filter
from perfport.store.results import RECORDS, Run

EXPERIMENT = Path(__file__).with_suffix(".yaml")
JSON = "equal_pairs.json"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="each but the first makes a pair with the one before")
    parser.add_argument("--device", action="append", help="selector; repeatable; default: every healthy device")
    parser.add_argument("--only", help="cases whose workload/problem/variant contains this, for a trial")
    parser.add_argument("--time-limit", type=float, default=math.inf, help="seconds for all runs")
    parser.add_argument("--results", type=Path, help="keep runs and pairs in this folder")
    return parser.parse_args()


def measure(folder: Path, number: int, limit: float, chosen: Sequence[str]) -> list[Path]:
    """Run the experiment so often, within so many seconds; returns the runs' folders in order."""
    begin, longest, made = time.monotonic(), 0.0, []
    for run in range(number):
        made.append(folder / f"run{run:02d}")
        if (made[-1] / RECORDS).exists():
            continue
        started = time.monotonic()
        if started - begin + longest > limit:
            print(f"{run} of {number} runs: no time for another", file=sys.stderr)
            return made[:-1]
        words = [sys.executable, "-m", "perfport.cli", "run", str(EXPERIMENT), "--out", str(made[-1]), *chosen]
        log = made[-1].with_suffix(".log")
        with log.open("w") as output:
            code = subprocess.run(words, stdout=output, stderr=output, check=False).returncode
        if code in (2, 130) or not (made[-1] / RECORDS).exists():
            sys.exit(f"{log.read_text()}\nperfport run ended with exit code {code}")
        longest = max(longest, time.monotonic() - started)
        print(f"run {run}: {time.monotonic() - started:.0f} s, exit code {code}", file=sys.stderr, flush=True)
    return made


def pairs(runs: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what `perfport compare` says of each case of each run, against the run before."""
    judged = []
    for earlier, later in pairwise(runs):
        for pair in contrast(str(earlier), str(later), [], Filter())[1]:
            if pair.comparison is None or pair.a is None or pair.b is None:
                continue
            ratio = pair.comparison.ratio
            contended = Status.CONTENDED in (pair.a.status, pair.b.status)
            judged.append({
                "device": " + ".join(pair.a.identity.devices), "case": pair.name, "runs": [earlier.name, later.name],
                "ratio": ratio.value, "low": ratio.low, "high": ratio.high, "confidence": ratio.confidence,
                "verdict": pair.comparison.verdict.value, "contended": contended,
            })  # fmt: skip
    return judged


def provenance(run: Path) -> dict[str, Any]:
    """Return when, by which code and on what a run was made."""
    held = Run(run).environment
    devices = {name: {key: each[key] for key in ("chip", "driver")} for name, each in held["devices"].items()}
    return {"started": held["started"], "commit": held["commit"], "host": held["host"], "devices": devices}


def summary(judged: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each device: pairs called different, intervals that hold 1, and how far runs lie apart."""
    rows = []
    for device in dict.fromkeys(pair["device"] for pair in judged):
        of_device = [pair for pair in judged if pair["device"] == device]
        quiet = [pair for pair in of_device if not pair["contended"]]
        different = [pair for pair in quiet if pair["verdict"] in (Verdict.FASTER, Verdict.SLOWER)]
        held = sum(pair["low"] <= 1 <= pair["high"] for pair in quiet)
        steps: dict[str, list[float]] = {}
        for pair in quiet:
            steps.setdefault(pair["runs"][1], []).append(abs(math.log(pair["ratio"])))
        rows.append({
            "device": device, "pairs": len(quiet), "contended": len(of_device) - len(quiet),
            "different": len(different), "share_different": _share(len(different), len(quiet)),
            "same": sum(pair["verdict"] == Verdict.SAME for pair in quiet),
            "ambiguous": sum(pair["verdict"] == Verdict.AMBIGUOUS for pair in quiet),
            "held": held, "coverage": _share(held, len(quiet)),
            "most_different_in_a_step": max(
                (sum(pair["runs"][1] == step for pair in different) for step in steps), default=0
            ),
            "median_change": float(np.median([value for each in steps.values() for value in each])) if steps else None,
            "median_change_by_step": {step: float(np.median(values)) for step, values in steps.items()},
        })  # fmt: skip
    return rows


def _share(hits: int, number: int) -> list[float]:
    """Return a share and its 95 % interval (Wilson), of pairs taken for independent."""
    if not number:
        return [math.nan] * 3
    interval = binomtest(hits, number).proportion_ci(CONFIDENCE, "wilson")
    return [hits / number, float(interval.low), float(interval.high)]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a markdown table."""
    lines = [
        "| device | pairs | contended | called different | intervals that hold 1 | same, ambiguous "
        "| most different between two runs | median change |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        different, held = (
            f"{row[count]} = {share:.1%} ({low:.1%} to {high:.1%})"
            for count, (share, low, high) in (("different", row["share_different"]), ("held", row["coverage"]))
        )
        change = "" if row["median_change"] is None else f"{row['median_change']:.2%}"
        lines.append(
            f"| {row['device']} | {row['pairs']} | {row['contended']} | {different} | {held} "
            f"| {row['same']}, {row['ambiguous']} | {row['most_different_in_a_step']} | {change} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, judge, print and write."""
    given = arguments()
    devices = plan.select_devices(given.device or ["all"], discover(), "--device")
    chosen = [word for device in devices for word in ("-d", device.id)] + (["-b", given.only] if given.only else [])
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = str(Path(name) / "cache")
        for device in devices:
            store(device, Ceilings(device=device.id, driver=device.driver, date="", entries={}))
        folder = given.results or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        runs = measure(folder, given.runs, given.time_limit, chosen)
        judged = pairs(runs)
        rows = summary(judged)
        told = {"measured": provenance(runs[0]), "devices": rows, "pairs": judged}
        (folder / JSON).write_text(json.dumps(told, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
