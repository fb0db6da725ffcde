"""Counts under Oclgrind: by this package's plugin, or by Oclgrind's own counter where the plugin cannot be built."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...machine import simulator
from ...model.errors import UnavailableError
from ...model.work import Traffic
from .. import child
from ..child import Job, Outcome, Wrapping
from . import coalescing
from .coalescing import AccessPattern, Shape
from .counts import CLASSES

#: Which of the plugin's counters make up each quantity of `Traffic`.
COUNTERS = {
    "flops": ("fp32_add", "fp32_mul", "fp32_div", "fp32_fma", "fp32_builtin"),
    "special_ops": ("special",),
    "integer_ops": ("integer_data",),
    "global_read": ("global_load_bytes",),
    "global_write": ("global_store_bytes",),
    "constant_read": ("constant_load_bytes",),
    "image_read": ("image_read_bytes",),
    "image_write": ("image_write_bytes",),
    "local_read": ("local_load_bytes",),
    "local_write": ("local_store_bytes",),
    "global_atomics": ("global_atomics",),
    "local_atomics": ("local_atomics",),
}
#: What Oclgrind's own counter cannot tell: it sees no vector width, and no data among integers.
STOCK_BLIND = ("flops", "integer_ops")


@dataclass
class Tally:
    """What was counted of one case: the tool's counters by kernel, and access patterns where a trace was taken."""

    launches: int = 0
    raw: dict[str, dict[str, float]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    coalescing: list[AccessPattern] = field(default_factory=list)

    def add(self, kernel: str, counters: Mapping[str, float]) -> None:
        """Add one launch."""
        self.launches += 1
        known = self.raw.setdefault(kernel, {})
        for name, value in counters.items():
            known[name] = known.get(name, 0) + value

    def traffic(self) -> Traffic:
        """The quantities that the counters make up."""
        total = {
            quantity: float(sum(kernel.get(name, 0) for kernel in self.raw.values() for name in names))
            for quantity, names in COUNTERS.items()
        }
        return Traffic(**total, provenance="counted")


@dataclass(frozen=True)
class Counter:
    """A way to count: its name for records, the quantities that it counts as they are declared, and the plugin."""

    name: str
    judged: tuple[str, ...]
    plugin: Path | None


def counter() -> tuple[Counter, str]:
    """Return the best counter here, and why it is not the plugin (empty if it is)."""
    source = Path(str(files("perfport.untimed.count") / "work_counter.cpp"))
    try:
        return Counter("oclgrind", tuple(CLASSES), simulator.plugin(source)), ""
    except UnavailableError as error:
        judged = tuple(name for name in CLASSES if name not in STOCK_BLIND)
        return Counter("oclgrind --inst-counts", judged, None), str(error)


def count(
    job: Job, using: Counter, shapes: Sequence[Shape] = (), timeout: float = 600.0
) -> list[tuple[Outcome, Tally]]:
    """Run a job in the simulator and count each case.

    Parameters
    ----------
    job : Job
        Variants must be distinct: their names tell whose launch it is.
    using : Counter
    shapes : sequence of Shape
        Trace accesses and summarise them under these; needs the plugin.
    timeout : float
        Seconds for each case.
    """
    return _by_plugin(job, using.plugin, shapes, timeout) if using.plugin else _by_stock(job, timeout)


def _by_plugin(job: Job, plugin: Path, shapes: Sequence[Shape], timeout: float) -> list[tuple[Outcome, Tally]]:
    with tempfile.TemporaryDirectory(prefix="perfport-count-") as folder:
        marks, counts, trace = (Path(folder) / name for name in ("marks", "counts", "trace"))
        for file in (marks, counts, trace):
            file.touch()
        environment = {"OCLGRIND_PLUGINS": str(plugin), child.MARKS: str(marks), "PERFPORT_COUNTS": str(counts)}
        if shapes:
            environment["PERFPORT_TRACE"] = str(trace)
        outcomes = child.run([job], Wrapping(environment=environment), timeout)
        launches: dict[str, list[dict[str, Any]]] = {}
        for line in counts.read_text().splitlines():
            launch = json.loads(line)
            launches.setdefault(launch["case"], []).append(launch)
        accesses = coalescing.load(trace)
    tallies = []
    for outcome in outcomes:
        tally, own = Tally(), launches.get(outcome.case.variant, [])
        for launch in own:
            tally.add(launch["kernel"], launch["counters"])
        tally.unknown = sorted({name for launch in own for name in launch["unknown"]})
        tally.coalescing = coalescing.patterns(accesses, own, shapes)
        tallies.append((outcome, tally))
    return tallies


def _by_stock(job: Job, timeout: float) -> list[tuple[Outcome, Tally]]:
    """Oclgrind prints its counts to the child's standard output: the marks go there too and tell which ones count."""
    environment = {"OCLGRIND_INST_COUNTS": "1", "LC_ALL": "C", child.MARKS: "/dev/stdout"}
    outcomes = child.run([job], Wrapping(("stdbuf", "-oL"), environment), timeout)
    return [(outcome, parse_stock(outcome.log.splitlines())) for outcome in outcomes]


_KERNEL = re.compile(r"Instructions executed for kernel '(.+)':")
_ENTRY = re.compile(r"\s*(\d+) - (.+?)(?: \((\d+) bytes\))?$")
_CALL = re.compile(r"call _Z(\d+)(\w+)\(\)")
_ELEMENT_BYTES = {"c": 1, "h": 1, "s": 2, "t": 2, "Dh": 2, "i": 4, "j": 4, "f": 4, "l": 8, "m": 8, "d": 8}
_SPACES = {"1": "global", "2": "constant", "3": "local"}
_SPECIAL = re.compile(r"(native_|half_)?(exp|log|sqrt|rsqrt|sin|cos|tan|pow)\w*$")


def parse_stock(lines: Iterable[str]) -> Tally:
    """Read what ``OCLGRIND_INST_COUNTS`` prints between the marks of a case.

    Vector loads and stores appear as calls without bytes: width and element are in the function's name.
    """
    tally, within, kernel = Tally(), False, ""
    for line in lines:
        if line.startswith(("begin ", "end ")):
            within, kernel = line.startswith("begin "), ""
        elif within and (header := _KERNEL.match(line)):
            kernel = header.group(1)
            tally.add(kernel, {})
        elif kernel and (entry := _ENTRY.match(line)):
            name, value = _stock_counter(entry.group(2), int(entry.group(1)), int(entry.group(3) or 0))
            tally.raw[kernel][name] = tally.raw[kernel].get(name, 0) + value
    return tally


def _stock_counter(what: str, executed: int, nbytes: int) -> tuple[str, float]:
    words = what.split()
    if words[0] in ("load", "store"):
        return f"{words[1]}_{words[0]}_bytes", nbytes
    call = _CALL.match(what)
    if not call:
        return what, executed
    length = int(call.group(1))
    name, arguments = call.group(2)[:length], call.group(2)[length:]
    lanes = int(match.group(1)) if (match := re.search(r"Dv(\d+)_", arguments)) else 1
    if match := re.match(r"v(load|store)(\d+)$", name):
        element = re.search(r"(?:PU3AS(\d)|P)K?V?(Dh|[a-z])$", arguments)
        space = _SPACES.get(element.group(1) or "", "private") if element else "private"
        size = int(match.group(2)) * _ELEMENT_BYTES[element.group(2)] if element else 0
        return f"{space}_{match.group(1)}_bytes", executed * size
    if name.startswith(("read_image", "write_image")):
        return f"image_{name.split('_')[0]}_bytes", 16 * executed
    if name.startswith(("atomic_", "atom_")) and (pointer := re.search(r"PU3AS(\d)", arguments)):
        return f"{_SPACES[pointer.group(1)]}_atomics", executed
    if _SPECIAL.match(name):
        return "special", executed * lanes
    return name, executed
