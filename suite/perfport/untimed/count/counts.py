"""One counted case: its record, its comparison with what the variant declares, and the store of such records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from ...machine.paths import shorten, shortened
from ...model.errors import InfrastructureError
from ...model.record import Identity, Status
from ...model.schema import Model
from ...model.untrusted import inside
from ...model.work import Traffic
from ...store.environment import ENVIRONMENT
from ...store.reading import entries, parse_line
from .coalescing import AccessPattern

COUNTS = "counts.jsonl"
SCHEMA_VERSION = 1

#: Largest deviation of a declared quantity from the counted one, relative to the counted one.
TOLERANCE = 0.05
#: What warps waited for that tables show: the largest shares.
LARGEST = 4
#: Nsight Compute's counters of the sectors of global memory that loads and stores touch, and the bytes of one.
SECTORS = {op: f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")}
SECTOR_BYTES = 32
#: Where declared and counted are both below this share of their class's total, they are not compared.
NEGLIGIBLE = 0.01
#: Quantities in the order of tables, and the class that each is a part of. Special functions and atomics cost many
#: times what other operations do: no number of them is negligible.
CLASSES = {
    "flops": "operations",
    "special_ops": None,
    "integer_ops": "operations",
    **dict.fromkeys(("global_read", "global_write", "constant_read", "image_read", "image_write"), "bytes"),
    **dict.fromkeys(("local_read", "local_write"), "bytes"),
    "global_atomics": None,
    "local_atomics": None,
}


class Verdict(StrEnum):
    """Outcome of a comparison, of a quantity or of a whole case.

    ``negligible``: too little of it to matter; ``shown``: counted, but what is declared is of another kind;
    ``undeclared``: the variant has no `traffic`; ``failed``: there is nothing to compare.
    """

    AGREES = "agrees"
    DEVIATES = "deviates"
    NEGLIGIBLE = "negligible"
    SHOWN = "shown"
    UNDECLARED = "undeclared"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


class Comparison(Model):
    """A quantity as declared and as counted; ``ratio`` is declared over counted, ``None`` where nothing was counted."""

    declared: float
    counted: float
    ratio: float | None = None
    verdict: Verdict


class Count(Model):
    """Everything about one counted case.

    Attributes
    ----------
    tool, tool_version : str
        ``oclgrind`` (with this package's plugin), ``oclgrind --inst-counts``, or ``ncu``.
    status, reason
        How the execution ended; a case that is not ``ok`` has no comparison.
    declared, counted : Traffic, optional
        Only Nsight Compute counts bytes of DRAM and L2; a simulator leaves them 0 and ``None``.
    quantities : dict of str to Comparison
        Those that are not zero on both sides.
    launches : int
        Kernel launches counted.
    raw : dict
        The tool's own counters by kernel name, summed over launches.
    unknown : list of str
        Built-in functions that the plugin does not know and did not count.
    coalescing : list of AccessPattern
        Where a trace was taken.
    stalls : dict of str to float
        What warps that did not issue waited for, where that was counted: shares of their cycles, the largest first.
    """

    schema_version: int = SCHEMA_VERSION
    identity: Identity
    time: str
    seed: int
    tool: str
    tool_version: str
    status: Status
    reason: str = ""
    verdict: Verdict = Verdict.FAILED
    declared: Traffic | None = None
    counted: Traffic | None = None
    quantities: dict[str, Comparison] = Field(default_factory=dict)
    launches: int = 0
    raw: dict[str, dict[str, float]] = Field(default_factory=dict)
    unknown: list[str] = Field(default_factory=list)
    coalescing: list[AccessPattern] = Field(default_factory=list)
    stalls: dict[str, float] = Field(default_factory=dict)

    @property
    def largest_stalls(self) -> dict[str, float]:
        """The `LARGEST` of ``stalls``."""
        return dict(itertools.islice(self.stalls.items(), LARGEST))

    @property
    def global_load_bytes(self) -> float | None:
        """Bytes of the sectors that loads of global memory touched: what ``nvprof`` had in ``gld_throughput``.

        ``None`` where Nsight Compute did not count them.
        """
        found = [metrics[SECTORS["ld"]] for metrics in self.raw.values() if SECTORS["ld"] in metrics]
        return SECTOR_BYTES * sum(found) if found else None

    @property
    def fetch_stalls(self) -> float:
        """The share of waits for instructions to be fetched."""
        return self.stalls.get("no_instruction", 0.0)


def compare(
    declared: Traffic,
    counted: Traffic,
    judged: Collection[str] = tuple(CLASSES),
    shown: Collection[str] = (),
    expansion: Mapping[str, float] = {},
) -> dict[str, Comparison]:
    """Compare quantities, those that are not zero on both sides.

    A judged quantity agrees if it is within `TOLERANCE` of the counted one. It is negligible if both sides are below
    `NEGLIGIBLE` of what was counted in its class (all operations, or all issued bytes, local memory included).

    Parameters
    ----------
    declared, counted : Traffic
    judged, shown : collection of str
        Quantities that the tool counts in the sense in which they are declared, and those in another.
    expansion : dict of str to float
        By how much more than declared may have been counted, because a compiler expands divisions and functions.
    """
    totals = {
        "operations": counted.flops + counted.special_ops + counted.integer_ops,
        "bytes": counted.issued_bytes + counted.local_bytes,
    }
    comparisons = {}
    for name in (*judged, *shown):
        said, seen = getattr(declared, name), getattr(counted, name)
        part_of = CLASSES.get(name)
        if not said and not seen:
            continue
        least = max(0.0, seen - expansion.get(name, 0.0))
        if name in shown:
            verdict = Verdict.SHOWN
        elif (1 - TOLERANCE) * least <= said <= (1 + TOLERANCE) * seen:
            verdict = Verdict.AGREES
        elif part_of and max(said, seen) < NEGLIGIBLE * totals[part_of]:
            verdict = Verdict.NEGLIGIBLE
        else:
            verdict = Verdict.DEVIATES
        comparisons[name] = Comparison(
            declared=said, counted=seen, ratio=said / seen if seen else None, verdict=verdict
        )
    return comparisons


def overall(quantities: Mapping[str, Comparison]) -> Verdict:
    """Verdict of a case from those of its quantities."""
    deviates = any(quantity.verdict is Verdict.DEVIATES for quantity in quantities.values())
    return Verdict.DEVIATES if deviates else Verdict.AGREES


def begin(folder: Path, environment: dict[str, Any]) -> None:
    """Make a folder for counts to come, with paths in its environment shortened.

    Raises
    ------
    InfrastructureError
        Where it cannot be written.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        inside(folder, ENVIRONMENT).write_text(json.dumps(shorten(environment), indent=1, sort_keys=True) + "\n")
        inside(folder, COUNTS).touch()


def append(folder: Path, count: Count) -> None:
    """Store a count. Raises `InfrastructureError` where it cannot be written."""
    with _writing(folder), inside(folder, COUNTS).open("a") as file:
        kept = count.model_copy(update={"reason": shortened(count.reason)})
        file.write(kept.model_dump_json(exclude_none=True) + "\n")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot write counts here ({error.strerror})") from None


def read(folder: Path | str) -> list[Count]:
    """Read the counts of a folder, in the order in which they were taken.

    Lines that are no count of this schema version are named, with file and line, and left out.

    Raises
    ------
    UsageError
        If the file cannot be read, or none of its lines is a count.
    """
    path = Path(folder) / COUNTS
    return list(entries(path, lambda line, where: parse_line(Count, line, where, SCHEMA_VERSION)))
