"""Time and memory of the suite report over many records: run by hand, on a quiet machine.

    python tests/benchmarks/suite_report.py [RECORDS]     default 5000

Writes synthetic runs of five workloads (several problems, settings, devices and profiles, some failures) into a
temporary folder, makes the suite report from them in a child process, and prints its seconds and peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import report_data as data

from perfport.model.record import Record, Status

WORKLOADS = {"svm_rbf": 3, "gdn": 5, "face_detection": 2, "vocab_tree": 4, "sparse_conv": 1}
DEVICES = (data.POCL, data.INTEL, data.GPU)
VARIANTS = 14


def synthetic(number: int) -> list[Record]:
    """Return about so many records: settings are added to every problem until there are enough."""
    found: list[Record] = []
    setting = 0
    while len(found) < number:
        for workload, problems in WORKLOADS.items():
            for problem in range(problems if setting < 4 else 1):
                found += _group(workload, f"problem{problem}", setting)
        setting += 1
    return found[:number]


def _group(workload: str, problem: str, setting: int) -> list[Record]:
    found = []
    for device in DEVICES:
        ceilings = data.GPU_CEILINGS if device == data.GPU else data.CEILINGS
        scale = 1e-2 if device == data.GPU else 1.0
        for variant in range(VARIANTS):
            status = Status.UNSUPPORTED if variant == 11 else Status.OK
            profile = "hd7970" if variant == 12 else None
            name = "variant10" if profile else f"variant{variant}"
            role = "peer" if variant == 13 else "rung" if variant < 8 else "control"
            found.append(data.record(
                name, (0.02 + 0.003 * variant) * scale, workload=workload, problem=problem, device=device, rung=variant,
                parameters={"size": 1000 * (setting + 1)}, preset="full" if setting == 0 else None, role=role,
                status=status, profile=profile, ceilings=ceilings, n=40,
                key=f"{data.hash_of(f'{workload}{problem}{setting}{device}{variant}'):016x}",
            ))  # fmt: skip
    return found


def main(number: int) -> None:
    """Print what the report over so many records takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = synthetic(number)
        for part in range(5):
            run = folder / "results" / f"run{part}"
            data.store(run, records[part::5], data.environment(run=f"run{part}"))
        command = [sys.executable, "-m", "perfport.cli", "report", "--suite", str(folder / "results")]
        started = time.perf_counter()
        done = subprocess.run([*command, "-o", str(folder / "suite.md")], check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        print(f"{len(records)} records: {seconds:.1f} s, {peak:.2f} GiB at most; {done.stdout.strip()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
