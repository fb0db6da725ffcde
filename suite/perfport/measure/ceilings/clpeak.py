"""The peer of our ceilings: K. Bhat's clpeak, run on the same device right before and after them.

clpeak measures vector widths of one kernel shape each, without a cold cache, and reports the largest rate of each. Its
launch latency is the time from enqueueing one kernel to its start, ours the distance of queued ones: they are shown
side by side, not judged.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from ...machine import platforms
from ...model.device import DeviceInfo
from ...model.errors import UnavailableError, cut
from ...model.schema import Model
from .entry import Ceiling

PROGRAM = "clpeak"
TIMEOUT_S = 300.0
MOST_PLATFORMS = 4
TESTS = ("--global-bandwidth", "--compute-sp", "--compute-integer", "--transfer-bandwidth", "--kernel-latency")
UNITS = {"gbps": 1e9, "gflops": 1e9, "us": 1e-6}
#: Our ceiling -> clpeak's section, and the entries of it that measure the same.
COMPARED: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "dram_read": ("global_memory_bandwidth", None),
    "fp32_fma": ("single_precision_compute", None),
    "int32_mad": ("integer_compute", None),
    "h2d_pageable": ("transfer_bandwidth", ("enqueuewritebuffer", "enqueuewritebuffer_nonblocking")),
    "d2h_pageable": ("transfer_bandwidth", ("enqueuereadbuffer", "enqueuereadbuffer_nonblocking")),
    "launch_latency": ("kernel_launch_latency", None),
}
NOT_JUDGED = ("launch_latency",)


class PeerValue(Model):
    """What the peer gave for one of our ceilings: each run's best, in the ceiling's unit, and the best run's shape."""

    values: list[float]
    shape: str


class Peer(Model):
    """The peer's results by our ceilings' names, or why there are none."""

    program: str = PROGRAM
    version: str = ""
    status: str = "ok"
    reason: str = ""
    entries: dict[str, PeerValue] = {}


def parse(xml: str, device: str) -> dict[str, tuple[float, str]]:
    """Return clpeak's best value and its shape for each of our ceilings, from what it writes to its XML file.

    Parameters
    ----------
    xml : str
    device : str
        Name of the device, as its runtime tells it; of several, the first counts.

    Raises
    ------
    UnavailableError
        If the text is no such file, or tells nothing of the device.
    """
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise UnavailableError(f"{PROGRAM} wrote no valid XML: {error}") from None
    node = next((element for element in root.iter("device") if (element.get("name") or "").strip() == device), None)
    if node is None:
        raise UnavailableError(f"{PROGRAM} does not list the device {device!r}")
    peaks = {}
    for name, (section, entries) in COMPARED.items():
        part = node.find(section)
        if part is None:
            continue
        if (unit := part.get("unit", "")) not in UNITS:
            raise UnavailableError(
                f"{PROGRAM}: {section}: expected one of the units {', '.join(UNITS)}, got {cut(unit)!r}"
            )
        factor = UNITS[unit]
        values = {entry.tag: _number(entry, section) for entry in part if entries is None or entry.tag in entries}
        if not len(part):
            values = {"": _number(part, section)}
        if any(values.values()):
            best = max(values, key=lambda tag: values[tag])
            peaks[name] = (factor * values[best], best)
    return peaks


def _number(element: ElementTree.Element, section: str) -> float:
    """Return what an element holds: 0 where it holds nothing."""
    try:
        value = float(element.text or 0)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UnavailableError(f"{PROGRAM}: {section}: expected a number, got {cut(element.text or '')!r}")
    return value


def run(info: DeviceInfo) -> dict[str, tuple[float, str]]:
    """Run clpeak on a device, through the same runtime; of a CUDA device, through the OpenCL of its driver.

    Raises
    ------
    UnavailableError
        If it is not installed, does not see the device, or fails.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise UnavailableError(f"{PROGRAM} is not installed (Debian has it as a package of that name)")
    library = info.runtime or next((path for path in platforms.runtimes().values() if "nvidia" in path), "")
    if not library:
        raise UnavailableError(f"{PROGRAM} needs OpenCL, and no OpenCL runtime is known for {info.id}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "runtime.icd").write_text(library)
        # Intel's runtime needs libraries that lie beside it, and nothing else tells the loader so.
        paths = [str(Path(library).parent) if "/" in library else "", os.environ.get("LD_LIBRARY_PATH", "")]
        environment = {**os.environ, "OCL_ICD_VENDORS": folder, "LD_LIBRARY_PATH": ":".join(filter(None, paths))}
        device = info.id.rsplit(":", 1)[1]
        for platform in range(MOST_PLATFORMS):
            place = ["-p", str(platform), "-d", device]
            if info.name in _xml(program, [*place, "--kernel-latency"], folder, environment):
                return parse(_xml(program, [*place, *TESTS], folder, environment), info.name)
    raise UnavailableError(f"{PROGRAM} does not list the device {info.name!r} under the runtime {library}")


def _xml(program: str, arguments: list[str], folder: str, environment: dict[str, str]) -> str:
    """Run clpeak and return the file that it writes; empty where the platform does not exist."""
    path = Path(folder) / "peak.xml"
    path.unlink(missing_ok=True)
    command = [program, *arguments, "--xml-file", str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{PROGRAM} did not end within {TIMEOUT_S:g} s") from None
    if done.returncode < 0:
        raise UnavailableError(f"{PROGRAM} was killed by signal {-done.returncode}")
    return path.read_text() if path.exists() else ""


def version() -> str:
    """Return the version that clpeak tells of itself, or nothing."""
    try:
        done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).strip().removeprefix(f"{PROGRAM} version:").strip()


def collect(runs: list[dict[str, tuple[float, str]]]) -> dict[str, PeerValue]:
    """Return several runs as one value with its range each."""
    merged = {}
    for name in COMPARED:
        values = [run[name] for run in runs if name in run]
        if values:
            better = min if name in NOT_JUDGED else max
            shape = better(values)[1]
            merged[name] = PeerValue(values=[value for value, _ in values], shape=shape)
    return merged


def below(ours: Ceiling, peer: PeerValue) -> bool:
    """Whether our ceiling lies below the peer's by more than the noise of both: its interval, and the peer's range."""
    return ours.high < min(peer.values)
