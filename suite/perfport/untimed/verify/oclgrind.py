"""Oclgrind as a sanitizer (J. Price, S. McIntosh-Smith, "Oclgrind: an extensible OpenCL device simulator", IWOCL 2015).

Bounds and barrier divergence are always checked, data races on request; reads of unwritten memory by a plugin of ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files

from ...machine.simulator import plugin
from ...model.errors import InfrastructureError
from ..child import Wrapping
from .finding import Finding

MAX_ERRORS = 10_000  # in a process: beyond that Oclgrind falls silent
_FATAL = ("OCLGRIND FATAL ERROR", "Loading Oclgrind plugin failed")
_NUMBERS = re.compile(r"\b0x[0-9a-f]+\b")


@dataclass(frozen=True)
class Oclgrind:
    """Starts children on the simulator with all its checks.

    Attributes
    ----------
    environment : dict
        Further variables: the simulator's limits (`perfport.machine.simulator.limits`).
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = "oclgrind"
    most: int = MAX_ERRORS // 2  # it may count what is no finding of a kernel

    def wrapping(self) -> Wrapping:
        """Switch on race detection and load the plugin that watches initialisation."""
        with as_file(files("perfport.untimed.verify") / "initialised.cpp") as source:
            initialised = plugin(source)
        checks = {
            "OCLGRIND_DATA_RACES": "1",
            "OCLGRIND_PLUGINS": str(initialised),
            "OCLGRIND_MAX_ERRORS": str(MAX_ERRORS),
        }
        return Wrapping(environment={**checks, **self.environment})

    def findings(self, log: str) -> list[Finding]:
        """Read the blocks that name a kernel; each is an error, whatever it says."""
        for mark in _FATAL:
            if mark in log:
                line = log[log.index(mark) :].split("\n\n")[0].replace("\n", " ")
                raise InfrastructureError(f"Oclgrind failed: {line[:300]}")
        counts: Counter[tuple[str, str, str]] = Counter()
        for block in re.split(r"\n\s*\n", log):
            if kernel := re.search(r"^\tKernel: +(\S+)", block, re.MULTILINE):
                head = next(line for line in block.splitlines() if line.strip())
                place = re.search(r"\tAt (line \d+).* of (\S+):", block)
                where = f"{place[2]}, {place[1]}" if place else ""
                counts[_NUMBERS.sub("…", head).strip(), kernel[1], where] += 1
        return [Finding(*what, count) for what, count in counts.items()]
