"""What peers ask about libraries: which version is installed, and how many threads it should have."""

from __future__ import annotations

import importlib.metadata

import psutil

from ..machine.environment import usable_cores
from .variant import Tunable

#: Libraries on the host: hardware threads of one core share its arithmetic, so that fewer threads may be faster.
THREADS = Tunable("cores", ("cores", "physical"), "threads of the library: one to a logical core, or to a physical one")


def version_of(*distributions: str) -> str:
    """Return name and version of the first of some distributions that is installed; else the first one's name."""
    for distribution in distributions:
        try:
            return f"{distribution} {importlib.metadata.version(distribution)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return distributions[0]


def thread_count(kind: str) -> int:
    """Return how many threads a value of `THREADS` stands for."""
    physical = psutil.cpu_count(logical=False) if kind == "physical" else None
    return min(physical or usable_cores(), usable_cores())
