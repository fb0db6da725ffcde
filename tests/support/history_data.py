"""Synthetic nights of a history, without any workload or device."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from perfport.nightly.history import store
from perfport.nightly.night import Night

START = datetime(2026, 1, 1, 2, 15, tzinfo=UTC)
CHIP = "AMD EPYC 9999"


def series(case: int) -> str:
    """Return the key of a case's series: as long as those of real workloads."""
    what = ["svm_rbf", f"problem{case % 5}", {"points": 100_000 + case, "dims": 1000, "gamma": 0.001}]
    tunables = {"group": 64, "unroll": 4, "width": 4}
    return json.dumps(
        ["nightly", *what, f"variant_{case}", tunables, ["opencl:pocl:0"], [CHIP], "opencl", None, "fp32"],
        sort_keys=True, separators=(",", ":"),
    )  # fmt: skip


def night(
    number: int, times: np.ndarray, driver: str = "3.1", failed: Collection[int] = (),
    source: str = "0123456789abcdef", code: str = "w/rows.cl 1; w/rows.py 1; measuring code 1",
) -> Night:  # fmt: skip
    """Return a night with these times, in seconds; ``failed`` cases crashed."""
    times = np.array(times, dtype=float)
    good = np.array([case not in failed for case in range(times.size)])
    times[~good] = np.nan
    return Night(
        name=f"nightly-{number}", started=(START + timedelta(days=number)).isoformat(timespec="seconds"),
        experiment="nightly", commit=f"{number:040x}",
        series=[series(case) for case in range(times.size)], preset=["quick"] * times.size,
        status=["ok" if one else "crashed" for one in good],
        driver=[f"{driver} (OpenCL 3.0 PoCL {driver})"] * times.size,
        source=[source if one else "" for one in good], code=[code] * times.size, software=[""] * times.size,
        settings=["cache: cold; max_noise: 0.02; min_samples: 7; max_samples: 30; workers: 3"] * times.size,
        time=np.array([float(f"{t:.6g}") for t in times]), low=np.array([float(f"{0.99 * t:.6g}") for t in times]),
        high=np.array([float(f"{1.01 * t:.6g}") for t in times]),
        bound=np.array([float(f"{(0.9 if case % 2 else 0.1) * t:.6g}") for case, t in enumerate(times)]),
        workers=[3 if one else 0 for one in good], reason=["" if one else "crashed: a reason" for one in good],
    )  # fmt: skip


def write_night(folder: Path, number: int, times: np.ndarray, **change: object) -> Path:
    """Write a night into a history."""
    return store(night(number, times, **change), folder)  # type: ignore[arg-type]
