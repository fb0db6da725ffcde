"""PTX written straight from the weights, for today's GPUs: code small enough for the instruction cache, used often.

A work-group computes ``columns`` x (``rows`` x ``height``) outputs of a slice of filters; a work-item ``height`` of
them, one below the other, of every filter of the slice, all sums in registers. Each non-zero weight is ``height``
multiply-adds with a 32-bit immediate. Channels come in blocks: cp.async copies the input of a later block into local
memory while the present one is used; barriers between blocks keep the warps of a work-group at the same code. Every
index of the copies is computed once, at the start; from block to block an address moves by a constant.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .ptx import Registers, immediate
from .tiling import Tiling
from .walk import Emitter, Product, Scan, Walk, Word

NAME = "tiled"

Code = Iterator[str]


def generate(tiling: Tiling, weights: np.ndarray, batch: int, target: str) -> str:
    """Return PTX of the kernel ``tiled(in, out)``, or, `Tiling.pinned`, ``tiled(in, out, counters)``.

    The counters are 0 ahead of a launch, and again after it.
    """
    return "\n".join(_Kernel(tiling, weights, batch).lines(target))


class _Copy(NamedTuple):
    """Registers of a work-item's copy in a block; ``size`` is 0 outside of the image, ``guard`` may be empty."""

    source: str
    target: str
    size: str
    guard: str


class _Outputs(NamedTuple):
    """Registers of a work-item: its window in local memory, its first output, and which of its rows are outputs."""

    window: str
    address: str
    guards: list[str]


class _Kernel:
    """The kernel's code in its order; each part is a generator of lines that returns the registers it leaves."""

    def __init__(self, tiling: Tiling, weights: np.ndarray, batch: int) -> None:
        self.t, self.o, self.weights = tiling, tiling.operator, weights
        self.tiles = tiling.tiles(batch)
        self.new = Registers()

    def lines(self, target: str) -> Code:
        t = self.t
        body = list(self._body())
        yield ".version 8.0"
        yield f".target {target}"
        yield ".address_size 64"
        yield ".extern .shared .align 16 .b8 arena[];"
        parameters = ", ".join(f".param .u64 {NAME}_param_{number}" for number in range(2 + t.pinned))
        yield f".visible .entry {NAME}({parameters})"
        yield f".maxntid {t.items}, 1, 1"
        yield f".minnctapersm {t.resident}"
        yield "{"
        yield from self.new.declarations()
        yield from body
        yield "}"

    def _body(self) -> Code:
        t = self.t
        source, result = self.new.rd(), self.new.rd()
        yield f"\tld.param.u64 \t{source}, [{NAME}_param_0];"
        yield f"\tld.param.u64 \t{result}, [{NAME}_param_1];"
        yield f"\tcvta.to.global.u64 \t{source}, {source};"
        yield f"\tcvta.to.global.u64 \t{result}, {result};"
        item = self.new.r()
        yield f"\tmov.u32 \t{item}, %tid.x;"
        if t.pinned:
            slice_, tile = yield from self._take(item)
        else:
            group = self.new.r()
            yield f"\tmov.u32 \t{group}, %ctaid.x;"
            slice_, tile = yield from self._split(group, self.tiles)
        rest, tile_x = yield from self._split(tile, t.across)
        image, tile_y = yield from self._split(rest, t.down)
        left, top = self.new.r(), self.new.r()
        yield f"\tmul.lo.s32 \t{left}, {tile_x}, {t.columns};"
        yield f"\tmul.lo.s32 \t{top}, {tile_y}, {t.rows * t.height};"
        copies = yield from self._addresses(source, image, left, top, item)
        for number in range(t.stages - 1):
            yield from self.copy(number, copies)
        outputs = yield from self._outputs(result, image, left, top, item)
        yield from self._slices(slice_, copies, outputs)

    def _split(self, value: str, by: int) -> Generator[str, None, tuple[str, str]]:
        """Quotient and remainder by a constant."""
        quotient, remainder = self.new.r(), self.new.r()
        if by == 1:
            yield f"\tmov.u32 \t{remainder}, 0;"
            return value, remainder
        yield f"\tdiv.u32 \t{quotient}, {value}, {by};"
        yield f"\trem.u32 \t{remainder}, {value}, {by};"
        return quotient, remainder

    def _take(self, item: str) -> Generator[str, None, tuple[str, str]]:
        """Begin the loop over tiles: a tile of the own slice, or of one that nobody has begun, else the end.

        The first work-item asks; it asks for the next tile while the present one is computed. The last work-group to
        end sets the counters back.
        """
        t = self.t
        slice_, tile = self.new.r(), self.new.r()
        counters, counter = self.new.rd(), self.new.rd()
        slot, mine, ticket, left, word, done, last = (self.new.r() for _ in range(7))
        asks, holds = self.new.p(), self.new.p()
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
        yield f"\tsetp.lt.u32 \t{holds}, {ticket}, {self.tiles};"
        yield f"\t@{holds} bra \tpublish;"
        yield f"\tmov.u32 \t{left}, {t.slices};"
        yield "search:"
        yield f"\tsub.s32 \t{left}, {left}, 1;"
        yield f"\tsetp.eq.s32 \t{holds}, {left}, 0;"
        yield f"\t@{holds} bra \tended;"
        yield f"\tadd.s32 \t{mine}, {mine}, 1;"
        yield f"\trem.u32 \t{mine}, {mine}, {t.slices};"
        yield from at_counter
        yield f"\tld.global.cv.u32 \t{ticket}, [{counter}];"
        yield f"\tsetp.ne.s32 \t{holds}, {ticket}, 0;"
        yield f"\t@{holds} bra \tsearch;"
        yield f"\tatom.global.add.u32 \t{ticket}, [{counter}], 1;"
        yield f"\tsetp.ge.u32 \t{holds}, {ticket}, {self.tiles};"
        yield f"\t@{holds} bra \tsearch;"
        yield "publish:"
        yield f"\tmad.lo.s32 \t{word}, {ticket}, {t.slices}, {mine};"
        yield f"\tst.shared.u32 \t[{slot}+{t.staged_bytes}], {word};"
        yield "\tbra \ttaken;"
        yield "ended:"
        yield f"\tst.shared.u32 \t[{slot}+{t.staged_bytes}], {self.tiles * t.slices};"
        yield from self._set_back(counters, done, last, holds)
        yield "taken:"
        yield "\tbar.sync \t0;"
        yield f"\tld.shared.u32 \t{word}, [{slot}+{t.staged_bytes}];"
        yield f"\tsetp.eq.s32 \t{holds}, {word}, {self.tiles * t.slices};"
        yield f"\t@{holds} ret;"
        yield f"\tdiv.u32 \t{tile}, {word}, {t.slices};"
        yield f"\trem.u32 \t{slice_}, {word}, {t.slices};"
        yield f"\t@{asks} atom.global.add.u32 \t{ticket}, [{counter}], 1;"
        return slice_, tile

    def _set_back(self, counters: str, done: str, last: str, others: str) -> Code:
        """Count this work-group as done; the last one sets the counters to 0."""
        yield f"\tmov.u32 \t{last}, %nctaid.x;"
        yield f"\tsub.s32 \t{last}, {last}, 1;"
        yield f"\tatom.global.inc.u32 \t{done}, [{counters}+{4 * self.t.slices}], {last};"
        yield f"\tsetp.ne.s32 \t{others}, {done}, {last};"
        yield f"\t@{others} bra \ttaken;"
        for number in range(self.t.slices):
            yield f"\tst.global.u32 \t[{counters}+{4 * number}], 0;"

    def _addresses(self, source: str, image: str, left: str, top: str, item: str) -> Generator[str, None, list[_Copy]]:
        """For each of a work-item's copies of a block: where from, where to, and whether it is inside the image."""
        t, o = self.t, self.o
        inputs, first_x, first_y = self.new.rd(), self.new.r(), self.new.r()
        yield f"\tcvt.s64.s32 \t{inputs}, {image};"
        yield f"\tmul.lo.s64 \t{inputs}, {inputs}, {4 * o.inputs};"
        yield f"\tadd.s64 \t{inputs}, {source}, {inputs};"
        yield f"\tmul.lo.s32 \t{first_x}, {left}, {o.stride};"
        yield f"\tsub.s32 \t{first_x}, {first_x}, {o.padding + t.lead};"
        yield f"\tmul.lo.s32 \t{first_y}, {top}, {o.stride};"
        yield f"\tsub.s32 \t{first_y}, {first_y}, {o.padding};"
        copies = []
        for turn in range(t.turns):
            number, x, y, at, to, size = (self.new.r() for _ in range(6))
            guard, inside, also = self.new.p(), self.new.p(), self.new.p()
            where, offset = self.new.rd(), self.new.rd()
            yield f"\tadd.s32 \t{number}, {item}, {turn * t.items};"
            whole = (turn + 1) * t.items <= t.block_copies
            yield f"\tsetp.lt.s32 \t{guard}, {number}, {t.block_copies};"
            channel, rest = yield from self._split(number, t.window_rows * t.copies)
            row, column = yield from self._split(rest, t.copies)
            yield f"\tmul.lo.s32 \t{to}, {channel}, {4 * t.plane};"
            yield f"\tmad.lo.s32 \t{to}, {row}, {4 * t.pitch}, {to};"
            yield f"\tmad.lo.s32 \t{to}, {column}, {4 * t.vector}, {to};"
            arena = self.new.r()
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
            copies.append(_Copy(where, to, size, "" if whole else guard))
        return copies

    def copy(self, number: int, copies: list[_Copy]) -> Code:
        """Start the copies of a block, if there is such a block; the group is counted all the same."""
        t, o = self.t, self.o
        if number < o.channels // t.block:
            nbytes = 4 * t.vector
            kind = "cg" if t.vector == 4 else "ca"
            offset = number % t.stages * 4 * t.block * t.plane
            step = 4 * t.block * o.height * o.width
            for source, target, size, guard in copies:
                prefix = f"@{guard} " if guard else ""
                yield f"\t{prefix}cp.async.{kind}.shared.global \t[{target}+{offset}], [{source}], {nbytes}, {size};"
            for copy in copies:
                yield f"\tadd.s64 \t{copy.source}, {copy.source}, {step};"
        yield "\tcp.async.commit_group;"

    def _outputs(self, result: str, image: str, left: str, top: str, item: str) -> Generator[str, None, _Outputs]:
        """Where this work-item's window begins, and its outputs."""
        t, o = self.t, self.o
        row, column = yield from self._split(item, t.columns)
        base, offset, x, y, active = self.new.r(), self.new.r(), self.new.r(), self.new.r(), self.new.p()
        yield f"\tsetp.lt.s32 \t{active}, {item}, {t.columns * t.rows};"
        held = self.new.r()
        yield f"\tmin.s32 \t{held}, {row}, {t.rows - 1};"  # of a whole warp, work-items past the tile read its last row
        yield f"\tmov.u32 \t{base}, arena;"
        yield f"\tmad.lo.s32 \t{base}, {held}, {4 * t.height * o.stride * t.pitch}, {base};"
        yield f"\tmad.lo.s32 \t{base}, {column}, {4 * o.stride}, {base};"
        yield f"\tadd.s32 \t{x}, {left}, {column};"
        yield f"\tmad.lo.s32 \t{y}, {held}, {t.height}, {top};"
        outputs, here = self.new.rd(), self.new.rd()
        yield f"\tmul.wide.s32 \t{outputs}, {image}, {4 * o.outputs};"
        yield f"\tadd.s64 \t{outputs}, {result}, {outputs};"
        yield f"\tmad.lo.s32 \t{offset}, {y}, {o.out_width}, {x};"
        yield f"\tmul.wide.s32 \t{here}, {offset}, 4;"
        yield f"\tadd.s64 \t{outputs}, {outputs}, {here};"
        guards = []
        inside = self.new.p()
        yield f"\tsetp.lt.s32 \t{inside}, {x}, {o.out_width};"
        yield f"\tand.pred \t{inside}, {inside}, {active};"
        for b in range(t.height):
            guard = self.new.p()
            yield f"\tsetp.lt.s32 \t{guard}, {y}, {o.out_height - b};"
            yield f"\tand.pred \t{guard}, {guard}, {inside};"
            guards.append(guard)
        return _Outputs(base, outputs, guards)

    def _slices(self, slice_: str, copies: list[_Copy], outputs: _Outputs) -> Code:
        """Branch to the code of a slice of filters; slices do not meet again, and share their registers."""
        t = self.t
        # A row is read one step before it is used.
        walk = Walk(t.filters, t.height, self.o.stride, Scan.ROWS, t.block, ahead=1)
        slices = walk.slices(self.weights)
        for number in range(1, len(slices)):
            chosen = self.new.p()
            yield f"\tsetp.eq.s32 \t{chosen}, {slice_}, {number};"
            yield f"\t@{chosen} bra \tslice_{number};"
        most = 0
        for number, (first, weights) in enumerate(slices):
            if number:
                yield f"slice_{number}:"
            self.new.floats = 0
            yield from walk.code(weights, _Slice(self, first, copies, outputs))
            yield "\tbra \tnext;" if t.pinned else "\tret;"
            most = max(most, self.new.floats)
        self.new.floats = most


class _Slice(Emitter):
    """Lines of a slice: sums in registers, a wait for each block of channels, rows of the window from local memory."""

    def __init__(self, kernel: _Kernel, first: int, copies: list[_Copy], outputs: _Outputs) -> None:
        self.kernel, self.t, self.new = kernel, kernel.t, kernel.new
        self.first, self.copies, self.outputs = first, copies, outputs
        self.sums: list[list[str]] = []
        self.started: set[str] = set()
        self.words: dict[tuple[int, int, int], str] = {}

    def start(self, filters: int) -> Iterable[str]:
        self.sums = [[self.new.f() for _ in range(self.t.height)] for _ in range(filters)]
        return ()  # what a sum starts from is in its first multiply-add

    def block(self, number: int) -> Code:
        yield f"\tcp.async.wait_group \t{self.t.stages - 2};"
        yield "\tbar.sync \t0;"
        yield from self.kernel.copy(number + self.t.stages - 1, self.copies)

    def load(self, words: Sequence[Word]) -> Code:
        t, (channel, row) = self.t, words[0][:2]
        staged = channel // t.block % t.stages * t.block + channel % t.block
        at = 4 * (staged * t.plane + row * t.pitch)
        for first in sorted({(t.lead + word.column) // t.load for word in words}):
            group = [self.new.f() for _ in range(t.load)]
            self.words |= {(channel, row, first * t.load + i - t.lead): name for i, name in enumerate(group)}
            address = f"[{self.outputs.window}+{at + 4 * first * t.load}]"
            if t.load == 1:
                yield f"\tld.shared.f32 \t{group[0]}, {address};"
            else:
                yield f"\tld.shared.v{t.load}.f32 \t{{{', '.join(group)}}}, {address};"

    def multiply_add(self, word: Word, product: Product) -> str:
        a, x = self.sums[product.filter][product.row], self.words[word[:3]]
        addend = a if a in self.started else immediate(0.0)
        self.started.add(a)
        return f"\tfma.rn.f32 \t{a}, {x}, {immediate(product.weight)}, {addend};"

    def store(self) -> Code:
        o = self.kernel.o
        for k, row in enumerate(self.sums):
            for b, a in enumerate(row):
                value = a if a in self.started else immediate(0.0)
                offset = 4 * (k + self.first) * o.pixels + 4 * b * o.out_width
                yield f"\t@{self.outputs.guards[b]} st.global.f32 \t[{self.outputs.address}+{offset}], {value};"
