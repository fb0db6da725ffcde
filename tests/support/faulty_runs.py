"""Runs of the workload of planted faults (tests/data/faulty): experiments, commands, and what is left of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from perfport.store.results import RECORDS

FAULTY = Path(__file__).parents[1] / "data" / "faulty"


TIMEOUT = 5  # seconds, of each step of a case


def experiment(folder: Path, *studies: dict[str, Any], **keys: Any) -> Path:
    """Write an experiment over the faulty workload with the least of measurement."""
    measurement = {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm"}
    defaults = {"workload": "faulty", "problem": "double"}
    sized = [{**defaults, **({} if "parameters" in study else {"presets": ["tiny"]}), **study} for study in studies]
    content = {
        "name": "faults",
        "measurement": measurement,
        "timeout": TIMEOUT,
        "seed": 7,
        "experiments": sized,
        **keys,
    }
    path = folder / "faults.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def command(file: Path, device: str, out: Path, *more: str) -> list[str]:
    """The arguments of ``perfport run`` on one device."""
    return ["run", str(file), "-d", device, "--out", str(out), "--workloads", str(FAULTY), *more]


def lines(folder: Path) -> list[bytes]:
    """The whole lines of a run's records."""
    path = folder / RECORDS
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def named_variants(raw: list[bytes]) -> list[str]:
    """The variants of record lines."""
    return [json.loads(line)["identity"]["variant"] for line in raw]


def executed(folder: Path) -> set[str]:
    """What the variants wrote to their log: one ``variant size`` per case that was ever executed."""
    path = folder / "log.txt"
    return set(path.read_text().splitlines()) if path.exists() else set()
