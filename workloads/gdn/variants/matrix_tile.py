"""The engine of matrix tiles (``matrix_tile.cl``): one source for matrix units, GPUs without them, and CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from perfport.workload import Buffer, Enqueue, Setup, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from . import inputs
from .fused import variants
from .matrix_tunables import OF_GAMMA, OF_INPUT, OVER_POSITIONS
from .tiled import FINISH_GROUP, PACK_GROUP, WARP, OverPositions, Tiled, even_tile, split_steps

FRAGMENT_LINES, FRAGMENT_WORDS = 16, 8  # of an operand of one instruction
LEAST_COPIED = 16  # positions of a step of copies: barriers take the time of shorter ones
LONG = 512  # channels whose sums a matrix unit's truncation spoils


class MatrixTile(Tiled):
    """A tile to each team of work-items: a warp with matrix units, else a work-item with vectors."""

    TUNABLES, INPUT_TUNABLES, GAMMA_TUNABLES = OVER_POSITIONS, OF_INPUT, OF_GAMMA
    name, title, rung = "matrix_tile", "{what}, by matrix tiles: one source for all devices", 15
    terms: ClassVar[int] = 3
    bf16: ClassVar[bool] = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        t, info = self.tunables, self.device.info
        self.on_units = bool(t.get("units", 1)) and "mma" in info.capabilities
        self.parts, self.step, self.team = 1, 1, 1
        if self.on_units:
            self.unit = "bf16_mma" if self.bf16 else "tf32_mma"
            self.parts, self.step, self.team = (2 if self.terms == 3 else 1), (16 if self.bf16 else 8), WARP
        self._check_tile()
        line = self.channels if self.data.nhwc else self.pixels
        whole, anywhere = line % t["width"] == 0, "unaligned_vload" in info.capabilities
        self.access = t["width"] if whole or anywhere else 1
        self.tails = int(self.access > 1 and not whole)

    def _check_tile(self) -> None:
        """Refuse tiles that are no whole vectors."""
        t, info = self.tunables, self.device.info
        if t["width"] != 4 and info.kind != "cpu":
            raise UnsupportedError(f"width ({t['width']}) must be 4 on a GPU")
        if not self.on_units and t["tile_columns"] % t["width"]:
            raise UnsupportedError(f"tile_columns ({t['tile_columns']}) must be a multiple of width ({t['width']})")
        if not self.on_units and t["width"] == 4 and t["tile_rows"] % 4:
            raise UnsupportedError(f"tile_rows ({t['tile_rows']}) must be a multiple of 4 where width is 4")

    def _words(self, lines: int) -> int:
        """Words that so many lines of an operand have in a step of the inner dimension."""
        return lines * FRAGMENT_WORDS * self.parts if self.on_units else lines

    def _tile(self) -> tuple[int, int]:
        """Output channels and positions of a team's tile."""
        t, nhwc = self.tunables, self.data.nhwc
        if self.on_units:
            rows, columns, unit = t["unit_rows"], t["unit_columns"], FRAGMENT_LINES
        else:
            rows, columns = t["tile_rows"], t["tile_columns"]
            unit = t["width"] if nhwc else 4 if t["width"] == 4 else 1
        channels, positions = (columns, rows) if nhwc else (rows, columns)
        return even_tile(self.channels, channels, unit), positions

    def _shape(self) -> dict[str, int]:
        """Macros of the first of ever smaller turns, and parts of the channels staged, that local memory holds."""
        room, shapes = self.device.info.local_memory_bytes, list(self._shapes())
        return next((shape for shape in shapes if 4 * shape["ARENA"] <= room), shapes[-1])

    def _shapes(self) -> Iterator[dict[str, int]]:
        t = self.tunables
        unit = self.step if self.on_units else t["width"]
        inner = round_up(self.channels, unit)
        staged = inner if self.on_units else min(inner, round_up(t["staged"], unit))
        positions = self._positions_of_turn()
        while True:
            for part in (1, 2):
                if staged == inner and self.data.nhwc and t["block"] > positions:
                    yield self._macros_of(staged, part, t["block"] // positions)
                yield self._macros_of(staged, part, 1)
            if staged == unit:
                break
            staged = round_up(staged // 2, unit)
        for part in (4, 8, 16):
            yield self._macros_of(staged, part, 1)

    def _most_teams(self, group: str = "group") -> int:
        return max(1, min(self.tunables[group], self._most_items()) // self.team)

    def _resident(self, items: str, teams: int) -> int:
        """Groups of so many teams to a compute unit that registers are saved for."""
        return min(16, max(1, self.tunables[items] // (teams * self.team)))

    def _positions_of_turn(self) -> int:
        positions = self._tile()[1]
        return positions * max(1, min(self.tunables["turn_positions"] // positions, self._most_teams()))

    def _macros_of(self, staged: int, part: int, places: int) -> dict[str, int]:
        """Of a shape with a part of the output channels that a turn may have."""
        t, nhwc = self.tunables, self.data.nhwc
        (tile_channels, tile_positions), positions = self._tile(), self._positions_of_turn()
        most = min(t["turn_channels"] // tile_channels, self._most_teams() * tile_positions // positions)
        channels = tile_channels * even_tile(ceil_div(self.channels, tile_channels), max(1, most // part), 1)
        rows, columns = (positions, channels) if nhwc else (channels, positions)
        tile_rows, tile_columns = (tile_positions, tile_channels) if nhwc else (tile_channels, tile_positions)
        stage_gamma = int(bool(t.get("stage_gamma")) and not self.on_units)
        restage = staged < self.channels
        steps = staged // self.step
        operands = round_up(places * steps * self._words(positions), 4)
        operands += stage_gamma * round_up(steps * self._words(channels), 4)
        results = rows * (columns + 8 * self.on_units)
        alone = restage or (channels >= self.channels and places == 1)  # results may lie where operands lay
        group = rows // tile_rows * (columns // tile_columns) * self.team
        return {
            "ROWS": rows, "COLUMNS": columns, "TILE_ROWS": tile_rows, "TILE_COLUMNS": tile_columns,
            "STAGED": staged, "PLACES": places, "RESTAGE": int(restage), "STAGE_GAMMA": stage_gamma,
            "PANEL": channels if stage_gamma else tile_channels, "RESULTS_AT": 0 if alone else operands,
            "ARENA": max(operands, results) if alone else operands + results,
            "ACCESS": self.access, "TAILS": self.tails,
            "TERMS": self.terms if self.on_units else 0, "FORMAT": int(self.bf16),
            "APART": int(self.channels > LONG), "NEWTON": t["newton"], "TEAMS": group // self.team,
        }  # fmt: skip

    def _gamma_shape(self) -> dict[str, int]:
        """Macros of the first of ever shorter steps, fewer copies and smaller tiles of dgamma that local memory holds.

        Copies leave room for all the groups that registers are saved for.
        """
        t, room = self.tunables, self.device.info.local_memory_bytes
        unit = self.step if self.on_units else t["width"]
        depths = [round_up(t["gamma_depth"] // part, unit) for part in (1, 2, 4, 8)]
        most = t["gamma_copies"] if self.on_units else 0
        shapes = [
            self._gamma_macros(part, depth, copies)
            for part in (1, 2, 4) for copies in range(most, -1, -1) for depth in depths
            if not copies or depth >= LEAST_COPIED
        ]  # fmt: skip
        fitting = (
            shape for shape in shapes if 4 * shape["ARENA"] * (shape["RESIDENT"] if shape["COPIES"] else 1) <= room
        )
        return next(fitting, shapes[-1])

    def _gamma_macros(self, part: int, depth: int, copies: int) -> dict[str, int]:
        """Of a tile of dgamma whose sides are at most such a part of what the tunables say."""
        t, n, most = self.tunables, self.channels, self._most_teams("gamma_group")
        if self.on_units:
            rows = columns = even_tile(n, t["gamma_units"], FRAGMENT_LINES)
            line = 1
        else:
            rows, columns, line = t["tile_rows"], t["tile_columns"], t["width"]
        alone = most == 1 and not self.on_units  # a team, which goes over all tiles of the group
        room = [max(1, t[f"gamma_{side}"] // part // tile) for side, tile in (("rows", rows), ("columns", columns))]
        down = even_tile(ceil_div(n, rows), room[0] if alone else min(room[0], most), 1)
        across = even_tile(ceil_div(n, columns), room[1] if alone else min(room[1], most // down), 1)
        teams, lines, column_lines = 1 if alone else down * across, round_up(down * rows, line), across * columns
        # Without units NCHW's are transposed into local memory: of both at once that took CPUs 1.4 times as long.
        shared = down * rows >= n and column_lines >= n and (self.on_units or self.data.nhwc)
        if shared:
            lines = column_lines = max(lines, column_lines)
        # In NHWC the lines of a second tile may begin anywhere, so that their last vector reaches past the channels.
        cut = self.data.nhwc and not self.on_units and down * rows < n and down * rows % self.access
        shape = {
            "ROWS": down * rows, "COLUMNS": across * columns, "TILE_ROWS": rows, "TILE_COLUMNS": columns,
            "LINES": lines, "COLUMN_LINES": column_lines, "SHARED": int(shared),
            "DEPTH": depth, "COPIES": copies, "TEAMS": teams, "RESIDENT": self._resident("resident", teams),
            "ACCESS": self.access, "TAILS": int(bool(self.tails or cut)),
            "TERMS": self.terms if self.on_units else 0, "FORMAT": int(self.bf16),
            "APART": int(self.terms == 3), "NEWTON": 0, "FETCHES": t["gamma_fetches"], "UNROLL": t["gamma_unroll"],
        }  # fmt: skip
        operands = depth // self.step * self._words(lines + column_lines)
        return {**shape, "ARENA": operands + copies * self._copied(shape, 4)}

    def _copied(self, shape: dict[str, int], more: int) -> int:
        """Words of a step's copies of maps, with so many more to a line."""
        depth, sides = shape["DEPTH"], [shape["LINES"]] * 3 + [shape["COLUMN_LINES"]] * (1 - shape["SHARED"])
        return sum(depth * (side + more) if self.data.nhwc else side * (depth + more) for side in sides)

    def _turn(self, shape: dict[str, int]) -> tuple[int, int]:
        """Output channels and positions of a turn."""
        rows, columns = shape["ROWS"], shape["COLUMNS"]
        return (columns, rows) if self.data.nhwc else (rows, columns)

    def _items(self, shape: dict[str, int]) -> int:
        return shape["TEAMS"] * self.team

    def _staged_bytes(self, shape: dict[str, int]) -> int:
        return self._fitting(4 * shape["ARENA"])

    def _local_bytes(self, shape: dict[str, int]) -> int:
        return self._fitting(4 * shape["ARENA"])

    def _inner(self, shape: dict[str, int]) -> int:
        return round_up(self.channels, self.step)

    def _pack(self, shape: dict[str, int], of_transpose: bool) -> tuple[Buffer, Enqueue]:
        """Gamma as an operand, panel after panel."""
        macros = {**self.macros, **shape, "PACK": 1, "OF_TRANSPOSE": int(of_transpose)}
        kernel = self.setup.kernel("matrix_tile.cl", "pack", **macros)
        inner, lines = self._inner(shape), round_up(self.channels, self._turn(shape)[0])
        words = inner // self.step * self._words(lines)
        count = words // (4 * self.parts) if self.on_units else words
        packed = self.setup.scratch(4 * round_up(words, 4))
        sizes = [np.uint32(n) for n in (self.channels, inner, count)]
        gamma = inputs.array(self.setup, "gamma")

        def launch() -> None:
            self.device.launch(kernel, ceil_div(count, PACK_GROUP), PACK_GROUP, gamma, *sizes, packed)

        return packed, Enqueue(launch, self._packing(4.0 * self.channels**2, 4.0 * words))

    def _over_positions(self, step: OverPositions, ending: Callable[[dict[str, int]], Traffic]) -> Enqueue:
        shape = self._shape()
        of_units = "input_resident" if step.which == "INPUT" else "unit_resident"
        shape["RESIDENT"] = self._resident(of_units if self.on_units else "resident", shape["TEAMS"])
        nbytes, (channels, positions) = self._staged_bytes(shape), self._turn(shape)
        packed, packing = self._pack(shape, step.of_transpose)
        kernel = self.setup.kernel(
            "matrix_tile.cl", step.kernel, **{step.which: 1}, **self.macros, **step.macros, **shape
        )
        groups = self.batch * ceil_div(self.pixels, shape["PLACES"] * positions)
        sizes = [np.uint32(n) for n in (self.channels, self.positions, self.pixels)]
        arguments = (packed, inputs.array(self.setup, "w"), *sizes, *step.arguments)

        def launch() -> None:
            packing.launch()
            self.device.launch(kernel, groups, self._items(shape), *arguments, local_bytes=nbytes)

        tiles, turns = self.batch * ceil_div(self.pixels, positions), ceil_div(self.channels, channels)
        staged = tiles * (turns if shape["RESTAGE"] else 1)  # times that a turn's positions are staged
        inner = float(
            round_up(self.channels, self.access) if self.data.nhwc and not self.on_units else self._inner(shape)
        )
        maps = self.data.map_bytes
        staging = Traffic(
            flops=step.staged_flops * staged * positions * inner,
            global_read=step.arrays * maps * staged / tiles,
            local_write=4 * staged * inner / self.step * self._words(positions), dram_read=packed.nbytes,
        )  # fmt: skip
        return Enqueue(
            launch, Traffic.total(packing.traffic(), self._products(shape, tiles * turns), staging, ending(shape))
        )

    def _products(self, shape: dict[str, int], turns: int) -> Traffic:
        """What so many turns multiply: teams read both operands, sums go through local memory."""
        channels, _ = self._turn(shape)
        sums, inner = float(turns) * shape["ROWS"] * shape["COLUMNS"], self._inner(shape)
        teams = turns * self._items(shape) // self.team
        of_channels, of_positions = shape["TILE_ROWS"], shape["TILE_COLUMNS"]
        if self.data.nhwc:
            of_channels, of_positions = of_positions, of_channels
        steps = 4.0 * inner / self.step
        gamma, whole = steps * teams * self._words(of_channels), steps * turns * self._words(channels)
        through = shape["STAGE_GAMMA"]
        return Traffic(
            flops=2 * max(1, shape["TERMS"]) * sums * inner,
            global_read=whole if through else gamma,
            local_read=steps * teams * self._words(of_positions) + through * gamma,
            local_write=4 * sums + through * whole,
        )  # fmt: skip

    def _ends(self, flops: int, special: int, integers: int) -> Traffic:
        """Operations of the sums' ends, by vectors of ACCESS words, and the sums that they read."""
        if self.data.nhwc:
            words = float(self.positions) * round_up(self.channels, self.access)
        else:
            words = float(self.channels) * self.batch * round_up(self.pixels, self.access)
        return Traffic(
            flops=flops * words, special_ops=special * words, integer_ops=integers * words, local_read=4 * words
        )

    def forward(self, u: Buffer, save: Buffer | None) -> Enqueue:
        outputs, maps, newton = [u] if save is None else [save, u], self.data.map_bytes, self.tunables["newton"]
        flops = 1 + (1 + 4 * newton if newton else 0) + (2 if self.data.inverse else 1)
        ending = self._ends(flops, int(newton == 0), 2 if newton else 0)
        ending.global_read = maps + (maps if self.data.nhwc else ending.local_read / self.access)  # beta for a line
        ending.global_write = ending.dram_write = len(outputs) * maps
        ending.dram_read = maps
        return self._over_positions(self._forward(outputs), lambda _: ending)

    def input_gradient(self, d: Buffer, dw: Buffer) -> Enqueue:
        maps = self.data.map_bytes
        ending = self._ends(5 if self.data.inverse else 4, 0, 0)
        ending.global_read = ending.dram_read = 3 * maps
        ending.global_write = ending.dram_write = maps
        return self._over_positions(self._input_gradient(d, dw), lambda _: ending)

    def parameter_gradients(self, d: Buffer, dgamma: Buffer, dbeta: Buffer | None) -> Enqueue:
        shape, n, beta = self._gamma_shape(), self.channels, int(dbeta is not None)
        nbytes, macros = self._local_bytes(shape), {**self.macros, **shape, "BETA": beta}
        kernel = self.setup.kernel("matrix_tile.cl", "gamma_gradient", GAMMA=1, **macros)
        finish = self.setup.kernel("matrix_tile.cl", "finish", FINISH=1, **macros)
        down, across, depth = ceil_div(n, shape["ROWS"]), ceil_div(n, shape["COLUMNS"]), shape["DEPTH"]
        all_steps = self.batch * ceil_div(self.pixels, depth)
        at_once = (8 if shape["TEAMS"] == 1 else shape["RESIDENT"]) * self.device.info.compute_units
        steps = split_steps(at_once, self.tunables["run"] // depth, all_steps, down * across)
        splits, words = ceil_div(all_steps, steps), n * (n + beta)
        part = down * (shape["ROWS"] * across * shape["COLUMNS"] + beta * shape["LINES"])
        partial = self.setup.scratch(4 * splits * part)
        delta, w = (inputs.array(self.setup, name) for name in ("delta", "w"))
        sizes = [np.uint32(value) for value in (n, self.pixels, self.batch, steps)]
        outputs = [dgamma] if dbeta is None else [dgamma, dbeta]

        def launch() -> None:
            groups = down * across * splits
            self.device.launch(kernel, groups, self._items(shape), delta, w, d, *sizes, partial, local_bytes=nbytes)
            totals = (np.uint32(splits), np.uint32(n))
            self.device.launch(finish, ceil_div(words, FINISH_GROUP), FINISH_GROUP, partial, *totals, *outputs)

        counts = (down, across, splits, all_steps)
        return Enqueue(
            launch, Traffic.total(self._gamma_products(shape, counts), self._gamma_ends(shape, counts, beta))
        )

    def _gamma_products(self, shape: dict[str, int], counts: tuple[int, int, int, int]) -> Traffic:
        """What is staged and multiplied for so many tiles down and across, in so many splits and steps."""
        down, across, splits, steps = counts
        depth, tiles = shape["DEPTH"], float(down * across)

        def positions(unit: int) -> float:
            """All positions, with those of an image's last step rounded up to whole units."""
            full, rest = divmod(self.pixels, depth)
            return float(self.batch * (full * depth + round_up(rest, unit)))

        inner = positions(self.step)
        staged = positions(self.access) if not (self.on_units or self.data.nhwc) else inner
        rows, columns = shape["ROWS"], shape["COLUMNS"]
        lines, column_lines, shared = shape["LINES"], shape["COLUMN_LINES"], shape["SHARED"]
        teams = rows // shape["TILE_ROWS"] * (columns // shape["TILE_COLUMNS"])
        words = self._words(shape["TILE_ROWS"]) + self._words(shape["TILE_COLUMNS"])
        waiting = shape["TEAMS"] < teams  # sums wait in memory between steps
        sums, maps = 4 * tiles * rows * columns, self.data.map_bytes
        copies = int(shape["COPIES"] > 0)
        copied = copies * steps * self._copied(shape, 0 if self.access == 4 and not self.tails else 4)
        return Traffic(
            flops=2 * max(1, shape["TERMS"]) * tiles * inner * rows * columns
            + tiles * staged * (self.data.term_flops * lines + column_lines),
            local_read=4 * tiles * inner / self.step * teams * words
            + 4 * copies * tiles * inner * (3 * lines + (1 - shared) * column_lines),
            local_write=4 * tiles * staged / self.step * (self._words(lines) + self._words(column_lines))
            + 4 * tiles * copied,
            global_read=(3 if shared else 3 * across + down) * maps + waiting * sums * (steps - splits),
            global_write=sums * (steps if waiting else splits), dram_read=3 * maps, dram_write=sums * splits,
        )  # fmt: skip

    def _gamma_ends(self, shape: dict[str, int], counts: tuple[int, int, int, int], beta: int) -> Traffic:
        """What sums the lines for dbeta, and adds up the splits."""
        down, across, splits, steps = counts
        lines, positions, words = float(beta * down * shape["LINES"]), self.batch * self.pixels, self.channels
        products = 16 * self.parts if self.on_units else 1  # with 8 columns of ones
        words *= self.channels + beta
        sums = 4 * splits * (float(down * shape["ROWS"]) * across * shape["COLUMNS"] + lines)
        return Traffic(
            flops=lines * positions * products + splits * words,
            local_read=4 * self._words(1) * lines * positions / self.step,
            global_read=4 * lines * (steps - splits) + 4.0 * splits * words,
            global_write=4 * lines * steps + 4.0 * words,
            dram_read=sums, dram_write=4 * lines * splits + 4.0 * words,
        )  # fmt: skip


class MatrixTilePlain(MatrixTile):
    """TF32 operands, rounded, on matrix units: one product, and an accuracy class of its own."""

    name, title, rung = "matrix_tile_tf32", "{what}, by matrix tiles in plain TF32", 16
    precision, unit = "tf32", "tf32_mma"
    needs = ("mma",)
    TUNABLES: ClassVar[dict[str, Tunable]] = {
        name: tunable
        for name, tunable in OVER_POSITIONS.items()
        if name not in ("units", "tile_rows", "tile_columns", "staged", "stage_gamma")
    }
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        name: tunable for name, tunable in OF_GAMMA.items() if name not in ("units", "tile_rows", "tile_columns")
    }
    terms = 1
    bf16 = False


for engine in (MatrixTile, MatrixTilePlain):
    globals().update(variants(engine))  # where discovery looks for them
