"""NVIDIA's compute-sanitizer: memcheck, racecheck and initcheck over the same child."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass

from ...model.errors import InfrastructureError, UnavailableError
from ..child import Wrapping
from .finding import Finding

TOOLS = ("memcheck", "racecheck", "initcheck")
PROGRAM = "compute-sanitizer"
#: Macro of kernels under it: to it an access is as wide as its instruction.
SANITIZED = {"SANITIZED": 1}
_LINE = re.compile(r"^=========( *)(.*)$", re.MULTILINE)
_HOUSEKEEPING = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application returned")
_FAILED = ("Internal Sanitizer Error", "Error: No attachable process", "Error: Target application", "Unable to")
# Of initcheck: the host copies words that nothing has written, as with a list whose length comes in the same copy. What
# it makes of them is compared with the reference.
_COPIED = "Host API memory access error at host access"
_PLACE = re.compile(r"\bat (?:void )?([A-Za-z_]\w*)[+(]\S*(?: in (\S+))?")
_DETAIL = re.compile(r"\b0x[0-9a-f]+\b|\(\d+,\d+,\d+\)")


@dataclass(frozen=True)
class ComputeSanitizer:
    """Starts children under one of `TOOLS`."""

    tool: str
    most: int = 50  # it prints a hundred errors of a process, unless told otherwise

    @property
    def name(self) -> str:
        """The tool's name in tables."""
        return self.tool

    def wrapping(self) -> Wrapping:
        """Put the program in front of the child; each buffer is an allocation of its own, so that its end is known."""
        if not shutil.which(PROGRAM):
            raise UnavailableError(f"{PROGRAM} is not on the PATH; it comes with the CUDA toolkit")
        # Leaks and unused memory are no faults of kernels; errors of API calls reach us as exceptions.
        options = ["--report-api-errors", "no"] if self.tool == "memcheck" else []
        return Wrapping((PROGRAM, "--tool", self.tool, *options), {"PERFPORT_MEMORY_POOL": "0"})

    def findings(self, log: str) -> list[Finding]:
        """Read the blocks that the tool prints: a line that says what, then indented ones that say where."""
        blocks: list[str] = []
        for indent, text in _LINE.findall(log):
            if not text or text.startswith(_HOUSEKEEPING):
                continue
            if len(indent) > 1 and blocks:
                blocks[-1] += "\n" + text
            elif text.startswith(_FAILED):
                raise InfrastructureError(f"{PROGRAM} failed: {text}")
            else:
                blocks.append(text)
        counts: Counter[tuple[str, str, str]] = Counter()
        for block in blocks:
            if self.tool == "initcheck" and block.startswith(_COPIED):
                continue
            place = _PLACE.search(block)
            kind = _DETAIL.sub("…", block.splitlines()[0])
            counts[kind, place[1] if place else "", (place[2] or "") if place else ""] += 1
        return [Finding(*what, count) for what, count in counts.items()]
