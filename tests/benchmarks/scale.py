"""Time and memory of commands over very much data: run by hand, on a quiet machine.

    python tests/benchmarks/scale.py report [RECORDS]           default 20000
    python tests/benchmarks/scale.py suite [RECORDS]            default 20000
    python tests/benchmarks/scale.py plan [CASES]               default 100000
    python tests/benchmarks/scale.py history [NIGHTS] [CASES]   default 2000 500

``report`` and ``suite`` multiply the records of ``results/committed``, each copy at a size of its own, and report on
all of them: the runs one by one, and as a suite. ``plan`` makes an experiment of so many cases and plans it (``run
--dry-run``). ``history`` writes synthetic nights (slow drift, a few events, failures and changes of level), and lists
and charts them. Data are the same each time. Of each command it prints wall time, processor time (which another load of
the machine changes less) and peak memory, children included.

With ``--profile FILE`` the command runs under cProfile; ``python -m pstats FILE`` shows what it wrote.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import history_data

from perfport.machine import discovery
from perfport.workload import discover

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "results" / "committed"
DEFAULTS = {"report": [20_000], "suite": [20_000], "plan": [100_000], "history": [2000, 500]}
PROFILES = ["native", "hd5870", "hd7970", "gtx680"]


def multiply(records: int, folder: Path) -> None:
    """Write the committed runs with so many records in all, of as many sizes as that takes."""
    files = sorted(COMMITTED.glob("*/records.jsonl"))
    held = {file: [json.loads(line) for line in file.read_text().splitlines()] for file in files}
    copies = math.ceil(records / sum(map(len, held.values())))
    left = records
    for file, originals in held.items():
        run = folder / file.parent.name
        shutil.copytree(file.parent, run)
        many = [at_size(record, copy) for copy in range(copies) for record in originals][:left]
        left -= len(many)
        (run / "records.jsonl").write_text("".join(f"{json.dumps(record, separators=(',', ':'))}\n" for record in many))


def at_size(record: dict[str, Any], copy: int) -> dict[str, Any]:
    """Return a record as it would be of another size: with the same samples."""
    if not copy:
        return record
    identity = dict(record["identity"])
    sizes = {name: value for name, value in identity["parameters"].items() if isinstance(value, int | float)}
    name = next(iter(sizes), "size")
    value = sizes.get(name, 0)
    changed = {name: value + copy if isinstance(value, int) else value + 1e-4 * copy}
    identity |= {"preset": None, "parameters": {**identity["parameters"], **changed}}
    key = hashlib.sha256(f"{record['key']} {copy}".encode()).hexdigest()[:16]
    return {**record, "identity": identity, "key": key}


def experiment(cases: int, file: Path) -> None:
    """Write an experiment of about so many cases on a device."""
    variants = len(discover(only="svm_rbf")["svm_rbf"].variants["rbf_rows"])
    side = round(math.sqrt(cases / variants / len(PROFILES)))
    sizes = {"points": [1000 + 10 * i for i in range(side)], "dims": [16 + i for i in range(side)]}
    study = {"workload": "svm_rbf", "problem": "rbf_rows", "parameters": sizes, "profiles": PROFILES}
    device = next(info for info in discovery.discover() if info.healthy)
    file.write_text(yaml.safe_dump({"name": "many", "devices": [device.id], "experiments": [study]}))


def nights(number: int, cases: int, folder: Path) -> None:
    """Write a history."""
    rng = np.random.default_rng(1)
    level = np.exp(rng.uniform(np.log(1e-5), np.log(1e-1), cases))
    for night in range(number):
        level = level * np.exp(0.0005 * rng.standard_normal(cases))
        times = level * np.exp(0.01 * rng.standard_normal(cases))
        failed = set(rng.integers(0, cases, 2))
        history_data.write_night(folder, night, times, driver=f"3.{night // 300}", failed=failed)


def commands(what: str, numbers: list[int], folder: Path) -> Iterator[list[str]]:
    """Write the data and yield the commands to measure."""
    data = folder / "data"
    if what in ("report", "suite"):
        multiply(numbers[0], data)
        yield ["report", *(["--suite"] if what == "suite" else []), str(data), "-o", str(folder / "out" / "page.md")]
    elif what == "plan":
        experiment(numbers[0], folder / "many.yaml")
        yield ["run", str(folder / "many.yaml"), "--dry-run"]
    else:
        nights(*numbers, data)
        yield ["history", "--in", str(data), "-o", str(folder / "list.md")]
        yield ["history", "--in", str(data), "--html", str(folder / "history.html")]


def measure(command: list[str], folder: Path, profile: Path | None) -> str:
    """Run a command of perfport and return what it took."""
    wrapped = ["-m", "cProfile", "-o", str(profile), "-m", "perfport.cli"] if profile else ["-m", "perfport.cli"]
    with (folder / "stdout.txt").open("wb") as out:
        started = time.perf_counter()
        child = subprocess.Popen([sys.executable, *wrapped, *command], stdout=out, cwd=folder)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]}: exit code {child.returncode}")
    return f"{seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processor, {used.ru_maxrss / 1024:.0f} MiB"


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=DEFAULTS)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--keep", type=Path, help="Leave data and pages in this folder, which must not exist.")
    given = parser.parse_args()
    numbers = given.numbers or DEFAULTS[given.what]
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(exist_ok=not given.keep)
        for command in commands(given.what, numbers, folder):
            print(f"{' '.join(command[:2])} of {' x '.join(map(str, numbers))}: ", end="", flush=True)
            print(measure(command, folder, given.profile and given.profile.absolute()))


if __name__ == "__main__":
    main()
