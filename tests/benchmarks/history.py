"""Time to read, list and chart a long history: run by hand, on a quiet machine.

    python tests/benchmarks/history.py [NIGHTS] [CASES]     default 1000 500

Writes a synthetic history into a temporary folder (slow drift, a few events, failures and changes of level), then calls
``perfport history`` once for the list and once for the page, and prints their seconds, peak memory and sizes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import history_data as data


def main(nights: int, cases: int) -> None:
    """Print what reading such a history takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "history"
        rng = np.random.default_rng(1)
        level = np.exp(rng.uniform(np.log(1e-5), np.log(1e-1), cases))
        for night in range(nights):
            level = level * np.exp(0.0005 * rng.standard_normal(cases))
            times = level * np.exp(0.01 * rng.standard_normal(cases))
            data.write_night(folder, night, times, driver=f"3.{night // 300}", failed=set(rng.integers(0, cases, 2)))
        stored = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{nights} nights x {cases} cases: {stored / 2**20:.0f} MiB")
        page = Path(name) / "history.html"
        for title, more in (("list", ["-o", str(Path(name) / "list.md")]), ("page", ["--html", str(page)])):
            command = [sys.executable, "-m", "perfport.cli", "history", "--in", str(folder), *more]
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, text=True)
            seconds = time.perf_counter() - started
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(f"{title}: {seconds:.1f} s, {used.ru_maxrss / 2**20:.2f} GiB at most")
        print(f"page: {page.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:3]) if len(sys.argv) > 1 else (1000, 500))
