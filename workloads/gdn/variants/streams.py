"""The engine for CPUs: one work-item to a group, wide vectors, operands packed or staged in cache (``streams.cl``)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Enqueue, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from . import inputs
from .engine import Engine
from .fused import variants


class Streams(Engine):
    """A run of blocks of positions per work-item."""

    name, title, rung = "fused_{problem}_streams", "fused_{problem} by few work-items with wide vectors", 11
    needs = ("cpu",)
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        "width": Tunable(16, (8, 16), "words per vector"),
        "item_rows": Tunable(6, (4, 6, 8, 12), "broadcast words per step"),
        "vectors": Tunable(2, (1, 2, 3, 4), "vectors per step"),
        "block": Tunable(96, (32, 48, 64, 96, 128, 192), "positions staged at a time, if local memory holds them"),
        "items_per_unit": Tunable(8, (1, 2, 4, 8, 16), "work-items per compute unit"),
    }
    TUNABLES: ClassVar[dict[str, Tunable]] = {
        **GAMMA_TUNABLES,
        "newton": Tunable(3, (0, 3), "Newton steps of the inverse root; 0: the builtin"),
    }

    def _kernel(self, name: str, which: str, **macros: int) -> Any:
        t = self.tunables
        self.rows, self.span = t["item_rows"], t["vectors"] * t["width"]
        named = {"ROWS": self.rows, "CHANNELS": self.channels, "NEWTON": t.get("newton", 0)}
        return self.setup.kernel("streams.cl", name, **{which: 1}, **self.macros, **named, **macros)

    def _items(self, blocks: int) -> int:
        """Work-items, of which each takes a run of blocks."""
        wanted = self.device.info.compute_units * self.tunables["items_per_unit"]
        return ceil_div(blocks, ceil_div(blocks, wanted))

    def _blocks(self, block: int) -> int:
        return self.batch * ceil_div(self.pixels, block)

    def _places(self, block: int, unit: int) -> float:
        """Positions, with each block rounded up to whole units."""
        full, here = divmod(self.pixels, block)
        return float(self.batch * (full * round_up(block, unit) + round_up(here, unit)))

    def _block(self, unit: int, what: str, words: int, more: int = 0) -> int:
        """Positions staged at a time, a multiple of ``unit``: ``words`` words each, beside ``more`` words."""
        block = self.tunables["block"]
        if block % unit:
            raise UnsupportedError(f"block ({block}) must be a multiple of {what} ({unit})")
        room = (self.device.info.local_memory_bytes // 4 - more) // words // unit * unit
        return int(max(unit, min(block, room)))

    def _block_of_product(self) -> int:
        """Of a product over positions."""
        t, nhwc = self.tunables, self.data.nhwc
        span = t["vectors"] * t["width"]
        unit, what = (t["item_rows"], "item_rows") if nhwc else (span, "vectors x width")
        return self._block(unit, what, self.channels, t["item_rows"] * span)

    def _words_of_product(self) -> int:
        """Words of local memory of a product over positions."""
        t = self.tunables
        return self._block_of_product() * self.channels + t["item_rows"] * t["vectors"] * t["width"]

    def _block_of_gamma(self) -> tuple[int, int, int]:
        """Of dgamma's product, with the rows and columns that a block has in local memory."""
        t, n = self.tunables, self.channels
        side, pitch = round_up(n, t["item_rows"]), round_up(n, t["vectors"] * t["width"])
        return self._block(t["width"], "width", side + pitch), side, pitch

    def _reserve(self, words: int) -> int:
        if 4 * words > self.device.info.local_memory_bytes:
            raise UnsupportedError(
                f"channels: {self.channels} need {4 * words} bytes of local memory for a block, {self.device.info.id} "
                f"has {self.device.info.local_memory_bytes}"
            )
        return 4 * words

    def _over_positions(
        self, name: str, which: str, operands: list[Buffer], outputs: list[Buffer], ending: Traffic
    ) -> Enqueue:
        """Pack gamma, then go over the blocks; ``ending`` is what is done to the sums."""
        n, nhwc, t = self.channels, self.data.nhwc, self.tunables
        span = t["vectors"] * t["width"]
        panel, unit = (span, t["item_rows"]) if nhwc else (t["item_rows"], span)
        block = self._block_of_product()
        nbytes = self._reserve(self._words_of_product())
        shape = {"BLOCK": block, "PANEL": panel}
        kernel = self._kernel(name, which, SAVE=int(len(outputs) > 1), **shape)
        pack = self._kernel("pack", "PACK", TRANSPOSED=int(which == "INPUT"), **shape)
        words = round_up(n, panel) * n
        gamma, packed = inputs.array(self.setup, "gamma"), self.setup.scratch(4 * words)
        items = self._items(self._blocks(block))
        sizes = [np.uint32(v) for v in (self.positions, self.pixels, self.batch)]

        def launch() -> None:
            self.device.launch(pack, ceil_div(words, 64), 64, gamma, packed)
            self.device.launch(kernel, items, 1, packed, *operands, *sizes, *outputs, local_bytes=nbytes)

        places = self._places(block, unit)
        calls = places / unit * words / panel  # of the inner loop's body
        staged, flops = (3, self.data.term_flops) if which == "INPUT" else (1, 1)  # arrays, operations per value
        multiplied = Traffic(
            flops=2 * span * t["item_rows"] * calls + flops * n * self.positions,
            global_read=4 * panel * calls + 4.0 * n * n + staged * self.data.map_bytes, global_write=4.0 * words,
            local_read=4 * unit * calls, local_write=4 * n * places + 4 * places * words / n,
        )  # fmt: skip
        return Enqueue(launch, Traffic.total(multiplied, ending))

    def _ending(self, flops: int, special: int, integers: int, arrays: int, outputs: int) -> Traffic:
        """Operations on whole vectors of sums, and words read and written, per output."""
        width, maps = self.tunables["width"], self.data.map_bytes
        if self.data.nhwc:
            lanes = float(self.positions) * round_up(self.channels, width)
        else:
            lanes = self.channels * self._places(self._block_of_product(), width)
        return Traffic(
            flops=flops * lanes, special_ops=special * lanes, integer_ops=integers * lanes, local_read=4 * lanes,
            global_read=arrays * maps, global_write=outputs * maps,
            dram_read=arrays * maps + 4.0 * self.channels**2, dram_write=outputs * maps,
        )  # fmt: skip

    def forward(self, u: Buffer, save: Buffer | None) -> Enqueue:
        w, beta = inputs.array(self.setup, "w"), inputs.array(self.setup, "beta")
        outputs, steps = [u] if save is None else [save, u], self.tunables["newton"]
        flops = 1 + (1 + 4 * steps if steps else 0) + (2 if self.data.inverse else 1)
        ending = self._ending(flops, int(steps == 0), 2 if steps else 0, 1, len(outputs))
        vectors = 1 if self.data.nhwc else self.tunables["width"]  # NCHW reads one word of beta for a vector
        ending.global_read += ending.local_read / vectors if vectors > 1 else self.data.map_bytes
        return self._over_positions("stream_forward", "FORWARD", [beta, w], outputs, ending)

    def input_gradient(self, d: Buffer, dw: Buffer) -> Enqueue:
        delta, w = (inputs.array(self.setup, name) for name in ("delta", "w"))
        ending = self._ending(5 if self.data.inverse else 4, 0, 0, 3, 1)
        return self._over_positions("stream_input", "INPUT", [delta, w, d], [dw], ending)

    def parameter_gradients(self, d: Buffer, dgamma: Buffer, dbeta: Buffer | None) -> Enqueue:
        t, n, beta = self.tunables, self.channels, int(dbeta is not None)
        span = t["vectors"] * t["width"]
        block, side, pitch = self._block_of_gamma()
        nbytes = self._reserve(block * (side + pitch))
        kernel = self._kernel("stream_gamma", "GAMMA", BETA=beta, BLOCK=block)
        finish = self._kernel("stream_finish", "FINISH", BETA=beta, BLOCK=block)
        blocks, part = self._blocks(block), side * pitch + pitch
        items = self._items(blocks)
        partial = self.setup.scratch(4 * items * part)
        delta, w = (inputs.array(self.setup, name) for name in ("delta", "w"))
        outputs = [dgamma] if dbeta is None else [dgamma, dbeta]
        sizes = [np.uint32(v) for v in (self.pixels, self.batch)]
        words = n * (n + beta)

        def launch() -> None:
            self.device.launch(kernel, items, 1, delta, w, d, *sizes, partial, local_bytes=nbytes)
            self.device.launch(finish, ceil_div(words, 64), 64, partial, np.uint32(items), *outputs)

        places, elements, maps = float(blocks * block), float(n) * self.positions, self.data.map_bytes
        calls = side / t["item_rows"] * pitch / span * blocks
        row_adds = n * blocks * (block + (1 if self.data.nhwc else t["width"]))
        return Enqueue(launch, Traffic(
            flops=2 * side * pitch * places + (self.data.term_flops + 1) * elements + beta * row_adds + items * words,
            global_read=3 * maps + 4 * calls * t["item_rows"] * span + 4.0 * items * words + 4.0 * beta * n * blocks,
            global_write=4.0 * items * part + 4 * calls * t["item_rows"] * span + 4.0 * words + 4.0 * beta * n * blocks,
            local_read=4 * calls * block * (span + t["item_rows"]) + 4 * beta * n * places,
            local_write=4 * items * block * (side + pitch) + 8 * elements + 4 * n * (places - self.positions),
            dram_read=3 * maps, dram_write=4.0 * words,
        ))  # fmt: skip


globals().update(variants(Streams))  # where discovery looks for them
