"""What the guards say on the devices of a machine, with the installed package and no test suite: run by hand.

    python tests/benchmarks/guards.py cheats -d opencl:nvidia:0 [--page docs/verification.md]
    python tests/benchmarks/guards.py honest -d cuda -d opencl [--limit 400]

``cheats`` runs the variants of ``tests/cheats/adversary``, which are OpenCL, and prints how each ended; ``--page``
writes that into the table of the page, as ``pytest tests/cheats --verdicts`` does. ``honest`` runs every variant that
ships at its preset ``tiny``, where executions are short and limits of clocks are narrow, for no longer than ``--limit``
seconds, and prints those that are wrong, refused or without a result. After a change of a guard both should be run on
every runtime within reach.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from cheat_runs import ADVERSARY, cheats, experiment, verdict, write

from perfport import workload
from perfport.model.record import Record, Status
from perfport.store.results import Run

#: How a case may end that no guard has to do with.
FINE = {Status.OK, Status.UNSUPPORTED, Status.UNAVAILABLE, Status.CONTENDED}


def run(file: Path, out: Path, limit: float, *options: str) -> list[Record]:
    """Run an experiment for no longer than the limit; returns the records that there are."""
    command = [sys.executable, "-m", "perfport.cli", "run", str(file), "--out", str(out), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        print(f"stopped after {limit:g} s")
        process.terminate()
        process.wait()
    return list(Run(out).records)


def of_cheats(folder: Path, devices: list[str], limit: float, page: Path | None) -> None:
    """Print how each cheat ended on each device."""
    found = run(experiment(folder, cheats(), devices), folder / "out", limit, "--workloads", str(ADVERSARY))
    records = {(each.identity.devices[0], each.identity.problem, each.identity.variant): each for each in found}
    for (device, _, name), record in sorted(records.items(), key=lambda item: (item[0][0], item[0][2])):
        if name in cheats():
            print(f"{device}  {name:26}  {verdict(record)[:120]}")
    wanted = {(device, each.problem, each.name) for device, _, _ in records for each in cheats().values()}
    if left := sorted(wanted - records.keys()):
        raise SystemExit(f"the time was over before {', '.join(' '.join(each) for each in left)}")
    if page:
        write(page, records)


def of_honest(folder: Path, devices: list[str], limit: float) -> None:
    """Print how the shipped variants ended, by device, and each that a guard may have refused."""
    known = workload.discover()
    entries = [
        {"workload": name, "problem": problem, "presets": ["tiny"]}
        for name, each in known.items() for problem in each.problems
    ]  # fmt: skip
    sampling = {"min_samples": 5, "max_samples": 5, "time_budget": 0.05}
    content = {"name": "honest", "title": "Every variant at its smallest size", "devices": devices, "timeout": 60}
    file = folder / "honest.yaml"
    file.write_text(yaml.safe_dump({**content, "measurement": sampling, "experiments": entries}))
    records = run(file, folder / "out", limit)
    for (device, status), number in sorted(Counter((r.identity.devices[0], r.status) for r in records).items()):
        print(f"{device}  {status}: {number}")
    for record in records:
        if record.status not in FINE:
            identity = record.identity
            print(f"{identity.devices[0]}  {identity.problem}/{identity.variant}: {verdict(record)[:300]}")


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("cheats", "honest"))
    parser.add_argument("-d", "--device", action="append", required=True, help="repeatable")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds")
    parser.add_argument("--page", type=Path, help="write the table of cheats into this page")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.which == "cheats":
            of_cheats(Path(folder), asked.device, asked.limit, asked.page)
        else:
            of_honest(Path(folder), asked.device, asked.limit)


if __name__ == "__main__":
    main()
