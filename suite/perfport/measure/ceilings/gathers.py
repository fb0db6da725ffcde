"""Random reads of single words: from local memory, and from tables that a cache level holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .bench import Bench
from .caches import FALL, levels
from .entry import Ceiling
from .kind import Execution, NoCeilingError, Rate, Shape, grid

TILE = 4096  # words in a work-group's local memory: 16 KiB, which every device has
GOLDEN = np.uint32(0x9E3779B9)  # as in gather.cl
CHECKED = 16  # work-items whose sums the host computes


def words(count: int) -> np.ndarray:
    """Return the table: pseudo-random 32-bit words, the same ones each time."""
    return np.random.default_rng(0).integers(0, 1 << 32, count, np.uint32)


def sums(table: np.ndarray, items: np.ndarray, steps: int, unroll: int) -> np.ndarray:
    """Return what work-items add up, modulo 2^32.

    Parameters
    ----------
    table : ndarray of uint32
        Its length is a power of two.
    items : ndarray of uint32, shape (n,)
        Global numbers of the work-items.
    steps, unroll : int
        Numbers drawn, and words read for each.
    """
    number = GOLDEN * (items + np.uint32(1))
    salts, mask = GOLDEN * np.arange(unroll, dtype=np.uint32), np.uint32(len(table) - 1)
    total = np.zeros_like(number)
    for _ in range(steps):
        number ^= number << np.uint32(13)
        number ^= number >> np.uint32(17)
        number ^= number << np.uint32(5)
        total += table[(number[:, None] ^ salts) & mask].sum(1, dtype=np.uint32)
    return total


@dataclass(frozen=True)
class Gather(Rate):
    """Random words per second, read by the whole device.

    Attributes
    ----------
    level : int
        The cache level that holds the table; 0 stands for local memory.
    behind : tuple of str
        The ceilings of gathers from the levels behind it, measured before.
    """

    level: int
    behind: tuple[str, ...] = ()

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return sizes of the work-group, reads in flight, and tables of half and a quarter of the level."""
        units = bench.info.compute_units
        if self.level:
            known = levels(bench.info).get(self.level)
            sizes = [1 << (known.nbytes // part).bit_length() - 1 for part in (2, 4)] if known else []
        else:
            sizes = [4 * TILE]
        sizes = [nbytes for nbytes in sizes if nbytes <= bench.nbytes]
        group, groups = ((64,), (4 * units,)) if bench.cpu else ((256, 1024), (8 * units,))
        axes: dict[str, Sequence[int]] = {"table_bytes": sizes, "unroll": (4, 16), "group": group, "groups": groups}
        if full:
            axes |= {"unroll": (2, 4, 8, 16), "group": (16, 64, 256) if bench.cpu else (256, 512, 1024)}
            axes["groups"] = (units, 4 * units) if bench.cpu else (8 * units, 16 * units)
        return grid(**axes)

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``16 scale`` numbers drawn by every work-item; what it adds up is compared with the host's."""
        groups, group, unroll, steps = shape["groups"], shape["group"], shape["unroll"], 16 * scale
        items, count = groups * group, shape["table_bytes"] // 4
        macros: dict[str, int | str] = {"UNROLL": unroll} | ({} if self.level else {"TILE": count})
        kernel = bench.kernel("gather.cl", "gather_global" if self.level else "gather_local", macros)
        table, out, args = self._table(bench, count), bench.out(items), (np.uint32(count - 1), np.uint32(steps))

        def check() -> None:
            chosen = np.linspace(0, items - 1, min(CHECKED, items)).astype(np.uint32)
            result = bench.device.read(out, np.uint32, (items,))[chosen]
            if not np.array_equal(result, sums(words(count), chosen, steps, unroll)):
                raise NoCeilingError("the kernel did not read what is counted: its sums are not the host's")

        return Execution(
            lambda: bench.device.launch(kernel, groups, group, table, out, *args), float(steps * unroll * items),
            prepare=lambda: bench.device.fill(out, 0xFF), check=check,
        )  # fmt: skip

    def _table(self, bench: Bench, count: int) -> object:
        name = f"words {count}"
        if not bench.has(name):
            bench.device.write(bench.buffer(name, 4 * count), words(count))
        return bench.buffer(name, 4 * count)

    def absent(self, bench: Bench, entry: Ceiling, others: dict[str, Ceiling]) -> str:
        """Return why it is not the level that was measured: that does not show, or the one behind is as fast."""
        if self.level and f"l{self.level}_read" not in others:
            return f"the level does not show: there is no l{self.level}_read"
        if any(name in others and others[name].low > FALL * entry.value for name in self.behind):
            return "the level behind it is as fast"
        return ""
