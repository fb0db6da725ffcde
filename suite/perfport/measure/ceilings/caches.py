"""Bandwidth of cache levels, by reading a set again and again; and of the constant path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...machine.device_profile import match_profile
from ...model.device import DeviceInfo
from .bench import Bench
from .entry import Ceiling
from .kind import Execution, Rate, Shape, grid

SYSTEM_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
LEAST_L1 = 16 << 10  # the smallest first level of the GPUs whose profiles ship
CONSTANT_WORDS = 1024  # 4 KiB: half of the smallest constant cache of those
#: A level shows if the rate does not depend on the set within it, and falls beyond it.
PLATEAU, FALL = 0.75, 0.87


@dataclass(frozen=True)
class Level:
    """A cache level: its size in bytes, and whether all compute units share it."""

    nbytes: int
    shared: bool


def levels(info: DeviceInfo) -> dict[int, Level]:
    """Return the cache levels that the system, the driver or the device's profile tells of.

    A CPU's come from the operating system. Of a GPU, the driver tells the last level, counted as the second here
    (NVIDIA's OpenCL tells less than there is: the larger of its figure and the profile's), and the profile the first;
    without a profile, sets for the first level are sized for `LEAST_L1`.
    """
    if info.kind == "cpu":
        return _system_levels()
    profile = match_profile(info.name, info.kind)
    known = {name: quantity.value for name, quantity in profile.hierarchy.items()} if profile else {}
    by_level = {1: Level(int(known.get("l1") or LEAST_L1), False)}
    if last := max(info.last_level_cache_bytes or 0, int(known.get("l2") or 0)):
        by_level[2] = Level(last, True)
    return by_level


def _system_levels() -> dict[int, Level]:
    by_level = {}
    for folder in sorted(SYSTEM_CACHES.glob("index*")):
        try:
            level, kind, size, cores = (
                (folder / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
            )
        except OSError:
            continue
        if kind != "Instruction":
            nbytes = int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)
            # The third level is read as one set even where a machine has but one core.
            by_level[int(level)] = Level(nbytes, int(level) > 2 or (int(level) > 1 and not _one_core(cores)))
    return by_level


def _one_core(cores: str) -> bool:
    """Whether a list of logical processors (``0``, ``0,32``, ``0-15``) names the threads of one core at most."""
    return "-" not in cores and cores.count(",") < 2


@dataclass(frozen=True)
class CacheRead(Rate):
    """Reading a set that a level holds, by each work-group a slice of its own.

    Where the cores of a CPU share a level, all of them read one set. Of a GPU that would measure more than the level:
    compute units that ask for one line at about the same time are served together.

    Attributes
    ----------
    level : int
    behind : tuple of str
        The ceilings of the levels behind it, measured before. NVIDIA's OpenCL compiler, for one, lets loads of global
        memory pass the first level by, which then does not show.
    """

    level: int
    behind: tuple[str, ...] = ()

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return sets of an eighth to half of the level; none where no such level is known."""
        known = levels(bench.info).get(self.level)
        if known is None:
            return
        units = bench.info.compute_units
        axes: dict[str, Sequence[int]]
        if bench.cpu:
            axes = {"width": (16,), "unroll": (4, 8, 16), "group": (1,), "groups": (units, 4 * units)}
            if full:
                axes |= {"width": (1, 4, 8, 16), "unroll": (1, 2, 4, 8, 16), "groups": (units, 2 * units, 4 * units)}
        else:
            # Lanes read 16 bytes each; 1024 or 2048 work-items per unit.
            axes = {"width": (4,), "unroll": (1, 2, 4), "group": (256, 1024)}
            axes["groups"] = (2 * units, 8 * units) if known.shared else (units, 4 * units)
            if full:
                axes |= {"unroll": (1, 2, 4, 8), "group": (256, 512, 1024)}
                axes["groups"] = (units, 2 * units, 4 * units, 8 * units)
        for shape in grid(**axes):
            capacity = self._capacity(bench, shape)
            if not bench.cpu and _step(shape) > capacity // 8:
                continue  # it has no smaller sets, which would show the plateau
            for part in (8, 4, 2):
                nbytes = _whole(capacity // part, shape)
                if self._fits(bench, shape, nbytes):
                    yield {**shape, "set_bytes": nbytes}

    def _capacity(self, bench: Bench, shape: Shape) -> int:
        """Return what a work-group's set can have of the level: a CPU runs one work-group at a time on each core."""
        known = levels(bench.info)[self.level]
        if bench.cpu:
            return known.nbytes
        return known.nbytes * (1 if known.shared else bench.info.compute_units) // shape["groups"]

    def _common(self, bench: Bench) -> bool:
        """Whether all work-groups read one set."""
        return bench.cpu and levels(bench.info)[self.level].shared

    def _fits(self, bench: Bench, shape: Shape, nbytes: int) -> bool:
        """Whether an array holds the sets of all work-groups."""
        return nbytes * (1 if self._common(bench) else shape["groups"]) <= bench.nbytes

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``scale`` passes of every work-group over its set."""
        width, groups, group, nbytes = shape["width"], shape["groups"], shape["group"], shape["set_bytes"]
        macros: dict[str, int | str] = {
            "VECTOR": "float", "WIDTH": width, "UNROLL": shape["unroll"], "LANES": group,
            "PAST_L1": int(not bench.cpu and self.level > 1),
        }  # fmt: skip
        kernel = bench.kernel("reread.cl", "reread", macros)
        vectors = nbytes // 4 // width
        args = (
            bench.array(0), bench.out(groups * group), np.uint64(0 if self._common(bench) else vectors),
            np.uint32(vectors), np.uint32(scale * (vectors // (shape["unroll"] * group))),
        )  # fmt: skip
        return Execution(lambda: bench.device.launch(kernel, groups, group, *args), float(scale * groups * nbytes))

    def curve(self, bench: Bench, shape: Shape) -> list[tuple[float, float]]:
        """Return the bandwidth for sets from a sixteenth to four times the level, as far as an array holds them."""
        points = []
        for power in range(-4, 3):
            nbytes = _whole(int(self._capacity(bench, shape) * 2.0**power), shape)
            if self._fits(bench, shape, nbytes):
                points.append((float(nbytes), max(self.samples(bench, {**shape, "set_bytes": nbytes}, 4))))
        return points

    def absent(self, bench: Bench, entry: Ceiling, others: dict[str, Ceiling]) -> str:
        """Return why the level does not show: no plateau within it, or no fall beyond it."""
        capacity, own = self._capacity(bench, entry.shape), entry.shape["set_bytes"]
        inner, outer = own / 2.5, min(2.5 * own, capacity / 2)
        near = [rate for nbytes, rate in entry.curve if nbytes != own and inner <= nbytes <= outer]
        if not near or max(near) < PLATEAU * entry.value:
            return "the rate depends on the set's size within the level: no plateau"
        if any(name in others and others[name].low > FALL * entry.value for name in self.behind):
            return "the level behind it is as fast"
        beyond = [rate for nbytes, rate in entry.curve if nbytes >= 1.9 * capacity]
        if not beyond and "dram_read" in others:
            beyond = [others["dram_read"].value]
        if not beyond or min(beyond) > FALL * entry.value:
            return "sets beyond the level are read as fast as within it"
        return ""


def _whole(nbytes: int, shape: Shape) -> int:
    """Return the size rounded to what all work-items of a group read in one step, at least one step."""
    return max(nbytes // _step(shape), 1) * _step(shape)


def _step(shape: Shape) -> int:
    """Return the bytes that a work-group reads in one step."""
    return int(4 * shape["width"] * shape["unroll"] * shape["group"])


@dataclass(frozen=True)
class ConstantRead(Rate):
    """All work-items of a group read one word of a small ``__constant`` table; counted as each of them asks for it."""

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return widths and reads in flight."""
        units = bench.info.compute_units
        groups, group = (4 * units, 64) if bench.cpu else (16 * units, 256)
        widths = (1, 4, 8, 16) if full else (1, 16) if bench.cpu else (1, 4)
        return grid(width=widths, unroll=(2, 4, 8) if full else (8,), group=(group,), groups=(groups,))

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``scale`` passes of every work-group over the table."""
        width, groups, group = shape["width"], shape["groups"], shape["group"]
        macros: dict[str, int | str] = {
            "VECTOR": "float", "WIDTH": width, "UNROLL": shape["unroll"], "LANES": group,
        }  # fmt: skip
        kernel = bench.kernel("reread.cl", "uniform_read", macros)
        vectors = CONSTANT_WORDS // width
        steps = scale * vectors // shape["unroll"]
        table = bench.buffer("constant", 4 * CONSTANT_WORDS)
        args = (table, bench.out(groups * group), np.uint32(vectors), np.uint32(steps))
        return Execution(
            lambda: bench.device.launch(kernel, groups, group, *args),
            float(steps * shape["unroll"] * 4 * width * groups * group),
        )
