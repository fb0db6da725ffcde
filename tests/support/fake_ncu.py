"""A stand-in for Nsight Compute on ``PATH``, and lines of its table."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

LEFT = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
]  # fmt: skip
#: Runs the child, and writes a log, a part of it once for each case that the child began.
_PROGRAM = """#!{python}
import json, os, subprocess, sys
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.0.0 (build 1)")
    sys.exit()
log = arguments[arguments.index("--log-file") + 1]
folder = {folder!r}
open(folder + "/arguments", "a").write(" ".join(arguments) + "\\n")
child = arguments[arguments.index("--metrics") + 2:]
code = subprocess.run(child).returncode
begun = sum(line.startswith("begin ") for line in open(os.environ["PERFPORT_MARKS"]))
said, each = json.load(open(folder + "/log"))
open(log, "w").write(said + each * begun)
sys.exit(code)
"""


def row(number: int, kernel: str, *values: str) -> str:
    """A line of the table."""
    cells = [str(number), "9", "python3", "localhost", kernel, "1", "7", "(32, 1, 1)", "(2, 1, 1)", "0", "9.0", *values]
    return ",".join(f'"{cell}"' for cell in cells)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, log: str, each: str = "") -> None:
    """Put it first on ``PATH``.

    Parameters
    ----------
    folder : Path
        For the program and what it is called with (``arguments``, a line each time).
    log : str
        What it says.
    each : str
        What it says behind that, once for each case that began.
    """
    (folder / "log").write_text(json.dumps([log, each]))
    program = folder / "ncu"
    program.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
