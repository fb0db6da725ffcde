"""Rows for ``perfport list``."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ..machine.device_profile import all_profiles
from ..model.device import DeviceInfo
from ..model.errors import UnavailableError, UnsupportedError
from ..workload import Variant, Workload
from .experiment import load


def variant_rows(workload: Workload, devices: list[DeviceInfo]) -> list[dict[str, Any]]:
    """One row per variant: what it is, and on which devices it runs or why not."""
    return [
        {
            "problem": problem,
            "role": variant.role,
            "variant": name,
            "runs here": _runnable(variant, devices),
            "title": variant.title,
        }
        for problem, variants in workload.variants.items()
        for name, variant in variants.items()
    ]


def _runnable(variant: type[Variant], devices: list[DeviceInfo]) -> str:
    able, reasons = [], []
    for device in devices:
        if not device.healthy:
            continue
        try:
            variant.require(device)
            able.append(device.id)
        except (UnsupportedError, UnavailableError) as error:
            reasons.append(str(error))
    if able:
        return ", ".join(able)
    return f"no: {reasons[0]}" if reasons else "no: no working device"


def profile_rows() -> list[dict[str, Any]]:
    """One row per device profile."""
    return [
        {
            "profile": profile.name,
            "title": profile.title,
            "status": profile.status,
            "GB/s": profile.bandwidth / 1e9 if profile.bandwidth else None,
            "GFLOP/s": profile.fp32 / 1e9 if profile.fp32 else None,
            "tuning": ", ".join(f"{workload}: {', '.join(keys)}" for workload, keys in profile.tuning.items()),
        }
        for profile in all_profiles().values()
    ]


def experiment_rows() -> list[dict[str, Any]]:
    """One row per experiment that ships."""
    found = sorted(file.name for file in files("perfport.experiments").iterdir() if file.name.endswith(".yaml"))
    rows = []
    for name in found:
        experiment = load(Path(str(files("perfport.experiments") / name)))
        rows.append(
            {"experiment": experiment.name, "title": experiment.title, "devices": ", ".join(experiment.devices)}
        )
    return rows


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows as a table or as JSON."""
    print(json.dumps(rows, indent=1) if as_json else tabulate(rows, headers="keys", floatfmt=".1f"))
