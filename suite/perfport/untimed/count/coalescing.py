"""How many cache lines each access of a hardware thread touches, from a trace of the simulator's accesses.

Work-items with consecutive linear local ids make up a hardware thread. Its access is what they do at one instruction
for the same time: the k-th execution by one belongs with the k-th by another. That is how lock-step hardware runs
them as long as they do not diverge; where they do, it is an approximation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...machine.device_profile import load_profile
from ...model.errors import UsageError
from ...model.schema import Model

#: What the plugin writes for each access (struct Access of work_counter.cpp).
ACCESS = np.dtype(
    [("launch", "<u4"), ("instruction", "<u4"), ("group", "<u4"), ("item", "<u4"), ("occurrence", "<u4"),
     ("size", "<u4"), ("address", "<u8")]
)  # fmt: skip
BUFFER_SHIFT = np.uint64(48)  # the simulator keeps the number of the buffer in an address's upper 16 bits


@dataclass(frozen=True)
class Shape:
    """Work-items of a hardware thread, and bytes of a cache line (or of the memory transaction that stands for it)."""

    name: str
    width: int
    line: int


DEFAULT_SHAPES = (Shape("32 x 128 B", 32, 128), Shape("64 x 64 B", 64, 64))


def shape_of(profile: str) -> Shape:
    """Return the shape of a device profile. Raises `UsageError` where it does not state width and transaction."""
    hierarchy = load_profile(profile, "--profile: ").hierarchy
    values = []
    for key in ("hardware_thread", "memory_transaction"):
        value = hierarchy[key].value if key in hierarchy else None
        if value is None:
            raise UsageError(f"--profile {profile}: hierarchy.{key} is unknown, so there are no lines to count")
        values.append(int(value))
    return Shape(profile, *values)


#: Kernel, argument, place in the source (``rbf_rows.cl:19:22``), whether it stores.
Site = tuple[str, str, str, bool]


class AccessPattern(Model):
    """One static access (or all those of a buffer, where ``place`` is ``None``) under one shape.

    Attributes
    ----------
    shape : str
        Name of the `Shape`.
    kernel, argument : str
        Kernel and its argument; several arguments that share a buffer are joined by ``=``.
    place : str, optional
        Where in the kernel source (file, line, column); ``None`` for all accesses of a buffer.
    store : bool, optional
    accesses : int
        Accesses by hardware threads.
    lines : float
        Cache lines that one of them touches, on average.
    ideal : float
        Lines that its distinct bytes would fill, on average.
    """

    shape: str
    kernel: str
    argument: str
    place: str | None = None
    store: bool | None = None
    accesses: int
    lines: float
    ideal: float

    @property
    def excess(self) -> float:
        """Lines touched over lines needed."""
        return self.lines / self.ideal


def load(trace: Path) -> np.ndarray:
    """Read a trace, shape (accesses,), dtype `ACCESS`."""
    return np.fromfile(trace, ACCESS)


def patterns(trace: np.ndarray, launches: Sequence[dict[str, Any]], shapes: Sequence[Shape]) -> list[AccessPattern]:
    """Summarise the accesses of some launches to global and constant memory.

    Parameters
    ----------
    trace : array of `ACCESS`
    launches : sequence of dict
        The plugin's lines for the launches that count (``launch``, ``kernel``, ``accesses``, ``arguments``).
    shapes : sequence of Shape

    Returns
    -------
    list of AccessPattern
        For each shape, kernel and argument: the sum over the buffer first, then each static access.
    """
    kept: list[np.ndarray] = []
    sites: list[Site] = []
    number: dict[Site, int] = {}
    codes: list[np.ndarray] = []
    starts = np.searchsorted(trace["launch"], [launch["launch"] for launch in launches])
    ends = np.searchsorted(trace["launch"], [launch["launch"] for launch in launches], side="right")
    for launch, start, end in zip(launches, starts, ends, strict=True):
        own = trace[start:end]
        buffers = own["address"] >> BUFFER_SHIFT
        for access in launch["accesses"]:
            if access["space"] not in ("global", "constant"):
                continue
            place = f"{access['file']}:{access['line']}:{access['column']}"
            of_access = own["instruction"] == access["instruction"]
            for buffer in np.unique(buffers[of_access]):
                argument = launch["arguments"].get(str(buffer), "(not an argument)")
                site = (launch["kernel"], argument, place, access["store"])
                if site not in number:
                    number[site] = len(sites)
                    sites.append(site)
                chosen = own[of_access & (buffers == buffer)]
                kept.append(chosen)
                codes.append(np.full(chosen.size, number[site], np.int64))
    if not kept:
        return []
    accesses, code = np.concatenate(kept), np.concatenate(codes)
    return [pattern for shape in shapes for pattern in _under(shape, accesses, code, sites)]


def _under(shape: Shape, accesses: np.ndarray, code: np.ndarray, sites: list[Site]) -> list[AccessPattern]:
    keys = [accesses["launch"], accesses["group"], accesses["item"] // shape.width, accesses["instruction"]]
    keys += [accesses["occurrence"], code]
    access = _numbered(keys)
    site = np.zeros(access.max() + 1, np.int64)
    site[access] = code
    lines = _lines(access, accesses, shape.line)
    ideal = np.maximum(1, -(-_distinct_bytes(access, accesses) // shape.line))
    patterns = []
    for kernel, argument in dict.fromkeys(site[:2] for site in sites):
        members = [i for i, entry in enumerate(sites) if entry[:2] == (kernel, argument)]
        members.sort(key=lambda i: _position(sites[i][2]))
        for chosen in (None, *members):
            mask = np.isin(site, members) if chosen is None else site == chosen
            place, store = (None, None) if chosen is None else sites[chosen][2:]
            pattern = AccessPattern(
                shape=shape.name, kernel=kernel, argument=argument, place=place, store=store,
                accesses=int(mask.sum()), lines=float(lines[mask].mean()), ideal=float(ideal[mask].mean()),
            )  # fmt: skip
            patterns.append(pattern)
    return patterns


def _position(place: str) -> tuple[int, ...]:
    """Line and column, to sort by."""
    return tuple(int(number) for number in place.split(":")[-2:])


def _numbered(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Number the distinct combinations of keys from 0 on."""
    order = np.lexsort(keys)
    new = np.zeros(order.size, bool)
    for key in keys:
        sorted_key = key[order]
        new[1:] |= sorted_key[1:] != sorted_key[:-1]
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def _lines(access: np.ndarray, accesses: np.ndarray, line: int) -> np.ndarray:
    """Distinct lines of each access."""
    first = (accesses["address"] // np.uint64(line)).astype(np.int64)
    last = ((accesses["address"] + accesses["size"] - np.uint64(1)) // np.uint64(line)).astype(np.int64)
    count = last - first + 1
    owner = np.repeat(access, count)
    offset = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
    touched = np.repeat(first, count) + offset
    pair = _numbered([touched, owner])
    owner_of = np.zeros(pair.max() + 1, np.int64)
    owner_of[pair] = owner
    return np.bincount(owner_of, minlength=access.max() + 1)


def _distinct_bytes(access: np.ndarray, accesses: np.ndarray) -> np.ndarray:
    """Bytes at distinct addresses of each access (all of one instruction have one size)."""
    pair = _numbered([accesses["address"], access])
    owner_of = np.zeros(pair.max() + 1, np.int64)
    size_of = np.zeros(pair.max() + 1, np.int64)
    owner_of[pair], size_of[pair] = access, accesses["size"]
    return np.bincount(owner_of, weights=size_of, minlength=access.max() + 1).astype(np.int64)
