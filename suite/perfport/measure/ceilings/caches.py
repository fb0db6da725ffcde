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
#: Unified data cache of a multiprocessor in KiB, by compute capability: NVIDIA, CUDA Programming Guide 13, appendix
#: Compute Capabilities; for 7.0 the Volta tuning guide.
L1_KIB = {
    "7.0": 128, "7.5": 96, "8.0": 192, "8.6": 128, "8.7": 192, "8.9": 128, "9.0": 256, "10.0": 256, "10.3": 256,
    "11.0": 256, "12.0": 128,
}  # fmt: skip
CONSTANT_WORDS = 1024  # 4 KiB: half of the smallest constant cache of those
#: A level shows if the rate does not depend on the set within it, and falls beyond it.
PLATEAU, FALL = 0.75, 0.87
CURVES = 3  # how often a curve that shows no plateau is taken, each point by its best: what disturbs lowers rates alone


@dataclass(frozen=True)
class Level:
    """A cache level: its size in bytes, and whether all compute units share it."""

    nbytes: int
    shared: bool


def levels(info: DeviceInfo) -> dict[int, Level]:
    """Return the cache levels that the system, the driver or the device's profile tells of.

    A CPU's come from the operating system. Of a GPU, the driver tells the last level, counted as the second here
    (NVIDIA's OpenCL tells less than there is: the larger of its figure and the profile's), and the profile or the
    compute capability the first; without either, sets for the first level are sized for `LEAST_L1`.
    """
    if info.kind == "cpu":
        return _system_levels()
    profile = match_profile(info.name, info.kind)
    known = {name: quantity.value for name, quantity in profile.hierarchy.items()} if profile else {}
    by_capability = L1_KIB.get(info.compute_capability or "", 0) << 10
    by_level = {1: Level(int(known.get("l1") or by_capability or LEAST_L1), False)}
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
            if known.nbytes // 8 < 4 * 4 * 256:  # a first level too small for as many work-items as that
                axes["group"] = (64, 128)
            elif full:
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

    def curve(self, bench: Bench, shape: Shape, value: float) -> list[tuple[float, float]]:
        """Return the bandwidth for sets from a sixteenth to four times the level, as far as an array holds them.

        Without a plateau it is taken again: a moment of foreign load or of low clocks lowers one point or all of them,
        and no disturbance makes a plateau where there is none.
        """
        capacity, own = self._capacity(bench, shape), shape["set_bytes"]
        wanted = {*(int(capacity * 2.0**power) for power in range(-4, 3)), own // 2, 2 * own}
        sizes = sorted({nbytes for each in wanted if self._fits(bench, shape, nbytes := _whole(each, shape))})
        best = dict.fromkeys(sizes, 0.0)
        for _ in range(CURVES):
            for nbytes in sizes:
                best[nbytes] = max(best[nbytes], *self.samples(bench, {**shape, "set_bytes": nbytes}, 4))
            points = [(float(nbytes), rate) for nbytes, rate in best.items()]
            if _plateau(points, own, capacity, value):
                break
        return points

    def absent(self, bench: Bench, entry: Ceiling, others: dict[str, Ceiling]) -> str:
        """Return why the level does not show: no plateau within it, or no fall beyond it."""
        capacity = self._capacity(bench, entry.shape)
        if not _plateau(entry.curve, entry.shape["set_bytes"], capacity, entry.value):
            return "the rate depends on the set's size within the level: no plateau"
        if any(name in others and others[name].low > FALL * entry.value for name in self.behind):
            return "the level behind it is as fast"
        beyond = [rate for nbytes, rate in entry.curve if nbytes >= 1.9 * capacity]
        if not beyond and "dram_read" in others:
            beyond = [others["dram_read"].value]
        if not beyond or min(beyond) > FALL * entry.value:
            return "sets beyond the level are read as fast as within it"
        return ""


def _plateau(curve: Sequence[tuple[float, float]], own: int, capacity: int, value: float) -> bool:
    """Whether the rate does not depend on the set's size within a level.

    It does not if a set of about half or twice the best one's size is read as fast as `PLATEAU` says, or two sets of
    any other size are: one size alone may be slow (the partitions of a second level, sets that meet in one place).

    Parameters
    ----------
    curve : sequence of (float, float)
        Bytes in a set, and its rate.
    own, capacity : int
        Bytes in the best set, and what a set can have of the level.
    value : float
        The best set's rate.
    """
    near, fast = (own / 2.5, 2.5 * own), PLATEAU * value
    as_fast = [nbytes for nbytes, rate in curve if nbytes != own and nbytes <= capacity / 2 and rate >= fast]
    return len(as_fast) > 1 or any(near[0] <= nbytes <= near[1] for nbytes in as_fast)


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
