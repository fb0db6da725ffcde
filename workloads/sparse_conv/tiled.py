"""PTX written straight from the weights, for today's GPUs: code small enough for the instruction cache, used often.

A work-group computes ``columns`` x (``rows`` x ``height``) outputs of a slice of filters; a work-item ``height`` of
them, one below the other, of every filter of the slice, all sums in registers. Each non-zero weight is ``height``
multiply-adds with a 32-bit immediate. Channels come in blocks: cp.async copies the input of a later block into local
memory while the present one is used; barriers between blocks keep the warps of a work-group at the same code. Every
index of the copies is computed once, at the start; from block to block an address moves by a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd

import numpy as np

from .operators import Operator
from .ptx import immediate

WARP = 32
BANKS = 32
NAME = "tiled"


@dataclass(frozen=True)
class Tiling:
    """What a work-group and a work-item compute, and how the input is staged.

    Attributes
    ----------
    columns, rows : int
        Work-items of a group across and down.
    height : int
        Output rows of a work-item.
    filters : int
        Of a slice; the last slice may have fewer.
    block : int
        Channels that are staged at once; a divisor of the operator's.
    stages : int
        Blocks in local memory.
    resident : int
        Work-groups that a compute unit must have registers for.
    pinned : bool
        A compute unit keeps to one slice, so that it fetches that code alone: there are as many work-groups as are
        resident, each takes tiles of its unit's slice until there are no more. Otherwise a work-group computes one
        tile, and one slice after the other passes through all units.
    """

    operator: Operator
    columns: int
    rows: int
    height: int
    filters: int
    block: int
    stages: int
    resident: int
    pinned: bool = False

    @property
    def items(self) -> int:
        """Work-items of a group: whole warps."""
        return -(-self.columns * self.rows // WARP) * WARP

    @property
    def across(self) -> int:
        """Tiles in a row of the output."""
        return -(-self.operator.out_width // self.columns)

    @property
    def down(self) -> int:
        """Tiles in a column of the output."""
        return -(-self.operator.out_height // (self.rows * self.height))

    @property
    def slices(self) -> int:
        """Slices of filters."""
        return -(-self.operator.filters // self.filters)

    @property
    def window_rows(self) -> int:
        """Input rows of a tile."""
        return (self.rows * self.height - 1) * self.operator.stride + self.operator.kernel_height

    @cached_property
    def vector(self) -> int:
        """Words of one copy: 4, 2 or 1, as far as rows and tiles begin at multiples of it."""
        found = gcd(self.operator.width, 4)
        return found if self.across == 1 else gcd(found, self.columns * self.operator.stride)

    @property
    def lead(self) -> int:
        """Words in front of a tile's window that are copied so that copies are aligned."""
        return -self.operator.padding % self.vector

    @property
    def load(self) -> int:
        """Words of one read of local memory: neighbouring work-items are ``stride`` words apart."""
        return gcd(self.operator.stride, 4)

    @cached_property
    def copies(self) -> int:
        """Copies of one row."""
        words = self.lead + (self.columns - 1) * self.operator.stride + self.operator.kernel_width
        return -(-words // self.vector)

    @cached_property
    def pitch(self) -> int:
        """Words from row to row in local memory: with the fewest bank conflicts, then the least."""
        step = max(self.vector, self.load)
        words = -(-max(self.copies * self.vector, self._last_word) // step) * step
        if self.columns >= WARP:
            return words  # a warp reads one row, or two that cannot be kept apart
        return min(range(words, words + BANKS, step), key=lambda pitch: (self._conflicts(pitch), pitch))

    @property
    def _last_word(self) -> int:
        """End of what the last work-item's vector reads touch."""
        end = self.lead + (self.columns - 1) * self.operator.stride + self.operator.kernel_width
        return -(-end // self.load) * self.load

    @property
    def conflicts(self) -> int:
        """Cycles that a warp's read of one word takes for each work-item, 1 without conflicts."""
        return self._conflicts(self.pitch)

    def _conflicts(self, pitch: int) -> int:
        step = self.height * self.operator.stride * pitch
        return bank_conflicts(self.columns, self.rows, step, self.operator.stride, self.load)

    @property
    def plane(self) -> int:
        """Words of one channel of a tile in local memory."""
        return self.pitch * self.window_rows

    @property
    def staged_bytes(self) -> int:
        """Local memory of the blocks."""
        return 4 * self.stages * self.block * self.plane

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group: its blocks, and which tile is next."""
        return self.staged_bytes + 4 * self.pinned

    @property
    def block_copies(self) -> int:
        """Copies of one block."""
        return self.block * self.window_rows * self.copies

    @property
    def turns(self) -> int:
        """Copies of one work-item for one block."""
        return -(-self.block_copies // self.items)

    def tiles(self, batch: int) -> int:
        """Tiles of each slice."""
        return self.across * self.down * batch

    def groups(self, batch: int, compute_units: int) -> int:
        """Work-groups of a launch."""
        all = self.tiles(batch) * self.slices
        return min(all, compute_units * self.resident) if self.pinned else all

    @property
    def counters(self) -> int:
        """Words that `pinned` work-groups share: tiles taken of each slice, and work-groups that are done."""
        return self.slices + 1


@lru_cache(maxsize=1 << 16)
def bank_conflicts(columns: int, rows: int, step: int, stride: int, load: int) -> int:
    """Cycles of a warp's read for each word of a work-item: rows ``step`` words apart, columns ``stride`` words.

    Reads of several words are served for a half or a quarter of a warp at a time.
    """
    worst = 1
    for first in range(0, WARP, WARP // load):
        banks: dict[int, set[int]] = {}
        for item in range(first, first + WARP // load):
            word = min(item // columns, rows - 1) * step + item % columns * stride
            banks.setdefault(word // load % (BANKS // load), set()).add(word)
        worst = max(worst, *(len(words) for words in banks.values()))
    return worst


def generate(tiling: Tiling, weights: np.ndarray, batch: int, target: str) -> str:
    """Return PTX of the kernel ``tiled(in, out)``, or, `Tiling.pinned`, ``tiled(in, out, counters)``.

    The counters are 0 ahead of a launch, and again after it.
    """
    return "\n".join(_Code(tiling, weights, batch, target).lines())


class _Code:
    def __init__(self, tiling: Tiling, weights: np.ndarray, batch: int, target: str) -> None:
        self.t, self.o, self.weights, self.batch, self.target = tiling, tiling.operator, weights, batch, target
        self.integers = self.longs = self.predicates = self.words = 0

    def lines(self) -> Iterator[str]:
        t = self.t
        body = list(self._body())
        yield ".version 8.0"
        yield f".target {self.target}"
        yield ".address_size 64"
        yield ".extern .shared .align 16 .b8 arena[];"
        parameters = ", ".join(f".param .u64 {NAME}_param_{number}" for number in range(2 + t.pinned))
        yield f".visible .entry {NAME}({parameters})"
        yield f".maxntid {t.items}, 1, 1"
        yield f".minnctapersm {t.resident}"
        yield "{"
        yield f"\t.reg .pred \t%p<{self.predicates + 1}>;"
        yield f"\t.reg .b32 \t%r<{self.integers + 1}>;"
        yield f"\t.reg .b64 \t%rd<{self.longs + 1}>;"
        yield f"\t.reg .f32 \t%f<{self.words + 1}>;"
        yield from body
        yield "}"

    def _r(self) -> str:
        self.integers += 1
        return f"%r{self.integers}"

    def _rd(self) -> str:
        self.longs += 1
        return f"%rd{self.longs}"

    def _p(self) -> str:
        self.predicates += 1
        return f"%p{self.predicates}"

    def _f(self) -> str:
        self.words += 1
        return f"%f{self.words}"

    def _split(self, value: str, by: int) -> tuple[str, str, list[str]]:
        """Quotient and remainder by a constant."""
        quotient, remainder = self._r(), self._r()
        if by == 1:
            return value, remainder, [f"\tmov.u32 \t{remainder}, 0;"]
        return quotient, remainder, [
            f"\tdiv.u32 \t{quotient}, {value}, {by};", f"\trem.u32 \t{remainder}, {value}, {by};",
        ]  # fmt: skip

    def _body(self) -> Iterator[str]:
        t, o = self.t, self.o
        source, result = self._rd(), self._rd()
        yield f"\tld.param.u64 \t{source}, [{NAME}_param_0];"
        yield f"\tld.param.u64 \t{result}, [{NAME}_param_1];"
        yield f"\tcvta.to.global.u64 \t{source}, {source};"
        yield f"\tcvta.to.global.u64 \t{result}, {result};"
        item = self._r()
        yield f"\tmov.u32 \t{item}, %tid.x;"
        if t.pinned:
            slice, tile = self._r(), self._r()
            yield from self._take(item, slice, tile)
        else:
            group = self._r()
            yield f"\tmov.u32 \t{group}, %ctaid.x;"
            slice, tile, code = self._split(group, t.tiles(self.batch))
            yield from code
        rest, tile_x, code = self._split(tile, t.across)
        yield from code
        image, tile_y, code = self._split(rest, t.down)
        yield from code
        left, top = self._r(), self._r()
        yield f"\tmul.lo.s32 \t{left}, {tile_x}, {t.columns};"
        yield f"\tmul.lo.s32 \t{top}, {tile_y}, {t.rows * t.height};"
        yield from self._addresses(source, image, left, top, item)
        for number in range(t.stages - 1):
            yield from self._copy(number)

        # Where this work-item's window begins, and its outputs.
        row, column, code = self._split(item, t.columns)
        yield from code
        base, offset, x, y, active = self._r(), self._r(), self._r(), self._r(), self._p()
        yield f"\tsetp.lt.s32 \t{active}, {item}, {t.columns * t.rows};"
        held = self._r()
        yield f"\tmin.s32 \t{held}, {row}, {t.rows - 1};"  # of a whole warp, work-items past the tile read its last row
        yield f"\tmov.u32 \t{base}, arena;"
        yield f"\tmad.lo.s32 \t{base}, {held}, {4 * t.height * o.stride * t.pitch}, {base};"
        yield f"\tmad.lo.s32 \t{base}, {column}, {4 * o.stride}, {base};"
        yield f"\tadd.s32 \t{x}, {left}, {column};"
        yield f"\tmad.lo.s32 \t{y}, {held}, {t.height}, {top};"
        outputs, here = self._rd(), self._rd()
        yield f"\tmul.wide.s32 \t{outputs}, {image}, {4 * o.outputs};"
        yield f"\tadd.s64 \t{outputs}, {result}, {outputs};"
        yield f"\tmad.lo.s32 \t{offset}, {y}, {o.out_width}, {x};"
        yield f"\tmul.wide.s32 \t{here}, {offset}, 4;"
        yield f"\tadd.s64 \t{outputs}, {outputs}, {here};"
        guards = []
        inside = self._p()
        yield f"\tsetp.lt.s32 \t{inside}, {x}, {o.out_width};"
        yield f"\tand.pred \t{inside}, {inside}, {active};"
        for b in range(t.height):
            guard = self._p()
            yield f"\tsetp.lt.s32 \t{guard}, {y}, {o.out_height - b};"
            yield f"\tand.pred \t{guard}, {guard}, {inside};"
            guards.append(guard)

        for number in range(1, t.slices):
            chosen = self._p()
            yield f"\tsetp.eq.s32 \t{chosen}, {slice}, {number};"
            yield f"\t@{chosen} bra \tslice_{number};"
        most = 0
        for number in range(t.slices):
            if number:
                yield f"slice_{number}:"
            self.words = 0  # slices do not meet again
            yield from self._slice(number, base, outputs, guards)
            yield "\tbra \tnext;" if t.pinned else "\tret;"
            most = max(most, self.words)
        self.words = most

    def _take(self, item: str, slice: str, tile: str) -> Iterator[str]:
        """Begin the loop over tiles: one of the own slice, or of one that nobody has begun, else the end.

        The first work-item asks; it asks for the next tile while the present one is computed. The last work-group to
        end sets the counters back.
        """
        t = self.t
        tiles = t.tiles(self.batch)
        counters, counter = self._rd(), self._rd()
        slot, mine, ticket, left, word, done, last = (self._r() for _ in range(7))
        asks, found = self._p(), self._p()
        at_counter = [
            f"\tmul.wide.u32 \t{counter}, {mine}, 4;",
            f"\tadd.s64 \t{counter}, {counters}, {counter};",
        ]
        yield f"\tld.param.u64 \t{counters}, [{NAME}_param_2];"
        yield f"\tcvta.to.global.u64 \t{counters}, {counters};"
        yield f"\tmov.u32 \t{slot}, arena;"
        yield f"\tmov.u32 \t{mine}, %smid;"
        yield f"\trem.u32 \t{mine}, {mine}, {t.slices};"
        yield f"\tsetp.eq.s32 \t{asks}, {item}, 0;"
        yield from at_counter
        yield f"\t@{asks} atom.global.add.u32 \t{ticket}, [{counter}], 1;"
        yield "next:"
        yield f"\t@!{asks} bra \ttaken;"
        yield f"\tsetp.lt.u32 \t{found}, {ticket}, {tiles};"
        yield f"\t@{found} bra \tpublish;"
        yield f"\tmov.u32 \t{left}, {t.slices};"
        yield "search:"
        yield f"\tsub.s32 \t{left}, {left}, 1;"
        yield f"\tsetp.eq.s32 \t{found}, {left}, 0;"
        yield f"\t@{found} bra \tended;"
        yield f"\tadd.s32 \t{mine}, {mine}, 1;"
        yield f"\trem.u32 \t{mine}, {mine}, {t.slices};"
        yield from at_counter
        yield f"\tld.global.cv.u32 \t{ticket}, [{counter}];"
        yield f"\tsetp.ne.s32 \t{found}, {ticket}, 0;"
        yield f"\t@{found} bra \tsearch;"
        yield f"\tatom.global.add.u32 \t{ticket}, [{counter}], 1;"
        yield f"\tsetp.ge.u32 \t{found}, {ticket}, {tiles};"
        yield f"\t@{found} bra \tsearch;"
        yield "publish:"
        yield f"\tmad.lo.s32 \t{word}, {ticket}, {t.slices}, {mine};"
        yield f"\tst.shared.u32 \t[{slot}+{t.staged_bytes}], {word};"
        yield "\tbra \ttaken;"
        yield "ended:"
        yield f"\tst.shared.u32 \t[{slot}+{t.staged_bytes}], {tiles * t.slices};"
        yield f"\tmov.u32 \t{last}, %nctaid.x;"
        yield f"\tsub.s32 \t{last}, {last}, 1;"
        yield f"\tatom.global.inc.u32 \t{done}, [{counters}+{4 * t.slices}], {last};"
        yield f"\tsetp.ne.s32 \t{found}, {done}, {last};"
        yield f"\t@{found} bra \ttaken;"
        for number in range(t.slices):
            yield f"\tst.global.u32 \t[{counters}+{4 * number}], 0;"
        yield "taken:"
        yield "\tbar.sync \t0;"
        yield f"\tld.shared.u32 \t{word}, [{slot}+{t.staged_bytes}];"
        yield f"\tsetp.eq.s32 \t{found}, {word}, {tiles * t.slices};"
        yield f"\t@{found} ret;"
        yield f"\tdiv.u32 \t{tile}, {word}, {t.slices};"
        yield f"\trem.u32 \t{slice}, {word}, {t.slices};"
        yield f"\t@{asks} atom.global.add.u32 \t{ticket}, [{counter}], 1;"

    def _addresses(self, source: str, image: str, left: str, top: str, item: str) -> Iterator[str]:
        """For each of a work-item's copies of a block: where from, where to, and whether it is inside the image."""
        t, o = self.t, self.o
        inputs, first_x, first_y = self._rd(), self._r(), self._r()
        yield f"\tcvt.s64.s32 \t{inputs}, {image};"
        yield f"\tmul.lo.s64 \t{inputs}, {inputs}, {4 * o.inputs};"
        yield f"\tadd.s64 \t{inputs}, {source}, {inputs};"
        yield f"\tmul.lo.s32 \t{first_x}, {left}, {o.stride};"
        yield f"\tsub.s32 \t{first_x}, {first_x}, {o.padding + t.lead};"
        yield f"\tmul.lo.s32 \t{first_y}, {top}, {o.stride};"
        yield f"\tsub.s32 \t{first_y}, {first_y}, {o.padding};"
        self.slots: list[tuple[str, str, str, str]] = []
        for turn in range(t.turns):
            number, x, y, at, to, size = (self._r() for _ in range(6))
            guard, inside, also = self._p(), self._p(), self._p()
            where, offset = self._rd(), self._rd()
            yield f"\tadd.s32 \t{number}, {item}, {turn * t.items};"
            whole = (turn + 1) * t.items <= t.block_copies
            yield f"\tsetp.lt.s32 \t{guard}, {number}, {t.block_copies};"
            channel, rest, code = self._split(number, t.window_rows * t.copies)
            yield from code
            row, column, code = self._split(rest, t.copies)
            yield from code
            yield f"\tmul.lo.s32 \t{to}, {channel}, {4 * t.plane};"
            yield f"\tmad.lo.s32 \t{to}, {row}, {4 * t.pitch}, {to};"
            yield f"\tmad.lo.s32 \t{to}, {column}, {4 * t.vector}, {to};"
            arena = self._r()
            yield f"\tmov.u32 \t{arena}, arena;"
            yield f"\tadd.s32 \t{to}, {to}, {arena};"
            yield f"\tmad.lo.s32 \t{x}, {column}, {t.vector}, {first_x};"
            yield f"\tadd.s32 \t{y}, {row}, {first_y};"
            yield f"\tsetp.lt.u32 \t{inside}, {x}, {o.width};"  # unsigned: what lies left of the image is large
            yield f"\tsetp.lt.u32 \t{also}, {y}, {o.height};"
            yield f"\tand.pred \t{inside}, {inside}, {also};"
            yield f"\tselp.b32 \t{size}, {4 * t.vector}, 0, {inside};"
            yield f"\tmad.lo.s32 \t{at}, {channel}, {o.height}, {y};"
            yield f"\tmad.lo.s32 \t{at}, {at}, {o.width}, {x};"
            yield f"\tselp.b32 \t{at}, {at}, 0, {inside};"
            yield f"\tmul.wide.s32 \t{offset}, {at}, 4;"
            yield f"\tadd.s64 \t{where}, {inputs}, {offset};"
            self.slots.append((where, to, size, "" if whole else guard))

    def _copy(self, number: int) -> Iterator[str]:
        """Start the copies of a block, if there is such a block; the group is counted all the same."""
        t, o = self.t, self.o
        if number < o.channels // t.block:
            nbytes = 4 * t.vector
            kind = "cg" if t.vector == 4 else "ca"
            target = number % t.stages * 4 * t.block * t.plane
            step = 4 * t.block * o.height * o.width
            for where, to, size, guard in self.slots:
                prefix = f"@{guard} " if guard else ""
                yield f"\t{prefix}cp.async.{kind}.shared.global \t[{to}+{target}], [{where}], {nbytes}, {size};"
            for where, _, _, _ in self.slots:
                yield f"\tadd.s64 \t{where}, {where}, {step};"
        yield "\tcp.async.commit_group;"

    def _slice(self, number: int, base: str, result: str, guards: list[str]) -> Iterator[str]:
        t, o = self.t, self.o
        weights = self.weights[number * t.filters : (number + 1) * t.filters]
        filters = len(weights)
        sums = [[self._f() for _ in range(t.height)] for _ in range(filters)]
        started: set[str] = set()
        for block in range(o.channels // t.block):
            yield f"\tcp.async.wait_group \t{t.stages - 2};"
            yield "\tbar.sync \t0;"
            yield from self._copy(block + t.stages - 1)
            steps = list(self._steps(weights, block, base, sums, started))
            # A row is read one step before it is used.
            for i, (loads, _) in enumerate(steps):
                yield from loads
                if i:
                    yield from steps[i - 1][1]
            if steps:
                yield from steps[-1][1]
        zero = immediate(0.0)
        for k in range(filters):
            for b in range(t.height):
                value = sums[k][b] if sums[k][b] in started else zero
                offset = 4 * (k + number * t.filters) * o.pixels + 4 * b * o.out_width
                yield f"\t@{guards[b]} st.global.f32 \t[{result}+{offset}], {value};"

    def _steps(
        self, weights: np.ndarray, block: int, base: str, sums: list[list[str]], started: set[str]
    ) -> Iterator[tuple[list[str], list[str]]]:
        """Reads of one row of one channel's window, and its multiply-adds; rows that no weight needs are left out."""
        t, o = self.t, self.o
        stage = block % t.stages * t.block
        for c in range(t.block):
            own = weights[:, block * t.block + c]
            for y in range((t.height - 1) * o.stride + o.kernel_height):
                pairs = [(b, y - b * o.stride) for b in range(t.height) if 0 <= y - b * o.stride < o.kernel_height]
                columns = [s for s in range(o.kernel_width) if any(own[:, r, s].any() for _, r in pairs)]
                if not columns:
                    continue
                words: dict[int, str] = {}
                loads, products = [], []
                at = 4 * ((stage + c) * t.plane + y * t.pitch)
                for first in sorted({(t.lead + s) // t.load for s in columns}):
                    group = [self._f() for _ in range(t.load)]
                    words |= {first * t.load + i: name for i, name in enumerate(group)}
                    address = f"[{base}+{at + 4 * first * t.load}]"
                    if t.load == 1:
                        loads.append(f"\tld.shared.f32 \t{group[0]}, {address};")
                    else:
                        loads.append(f"\tld.shared.v{t.load}.f32 \t{{{', '.join(group)}}}, {address};")
                for s in columns:
                    x = words[t.lead + s]
                    for b, r in pairs:
                        for k in np.flatnonzero(own[:, r, s]):
                            a = sums[k][b]
                            addend = a if a in started else immediate(0.0)
                            started.add(a)
                            products.append(f"\tfma.rn.f32 \t{a}, {x}, {immediate(float(own[k, r, s]))}, {addend};")
                yield loads, products
