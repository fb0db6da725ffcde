"""Variants of the arg-extrema problems: the source's reductions, its control arms, and forms beyond it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Kernel, Setup, Traffic, Tunable, Variant, ceil_div

from ..problems import VALUE, ArgExtrema, ArgMax, ArgMin
from . import inputs

EXTREMA = ("min", "max")
#: A kernel, its work-groups and arguments.
Launch = tuple[Kernel, int, tuple[Any, ...]]
#: What kernels are compiled with unless a variant says otherwise.
MACROS = {"MIN": 1, "MAX": 0, "INDEX": 1, "TERNARY": 0, "PAIRS": 0}


class _Reduction:
    """A step: one two-launch reduction that finds some of the extrema."""

    def __init__(self, setup: Setup, finds: tuple[str, ...], source: Buffer, kernels: str, **options: int) -> None:
        device, problem, tunables = setup.device, setup.problem, setup.tunables
        flags = {**MACROS, "MIN": int("min" in finds), "MAX": int("max" in finds)}
        macros: dict[str, Any] = {**flags, **{k.upper(): v for k, v in tunables.items()}, **options}
        self._device, self._source = device, source
        self._group = tunables["group"]
        self._finds, self._index, self._width = len(finds), macros["INDEX"], tunables.get("width", 4)
        self._makes_indices = macros["INDEX"] and not macros["PAIRS"]
        self._block = tunables.get("block", 1)
        self._vectors = problem.n // self._width
        most = device.info.compute_units * tunables["groups_per_unit"]
        self.groups = min(most, ceil_div(problem.n, self._share()))
        parts, final = [], []
        for extremum in EXTREMA:
            for name, dtype in ((extremum, np.float32), (f"arg{extremum}", np.uint32)):
                parts.append(setup.scratch(4 * self.groups))
                is_output = extremum in finds and (macros["INDEX"] or name == extremum)
                final.append(setup.output(name, dtype, 1) if is_output else setup.scratch(4))
        self._launches = self._prepare(setup, kernels, macros, parts, final)

    def _share(self) -> int:
        """Elements that make a work-group of their own, while there may be more of them."""
        return self._group

    def _prepare(
        self, setup: Setup, kernels: str, macros: dict[str, Any], parts: list[Buffer], final: list[Buffer]
    ) -> list[Launch]:
        first, second = setup.kernel(kernels, "parts", **macros), setup.kernel("arg_extrema.cl", "finish", **macros)
        return [
            (first, self.groups, (self._source, np.uint32(setup.problem.n), *parts)),
            (second, 1, (*parts, np.uint32(self.groups), *final)),
        ]

    def launch(self) -> None:
        """As of `Step`."""
        for kernel, groups, arguments in self._launches:
            self._device.launch(kernel, groups, self._group, *arguments)

    def traffic(self) -> Traffic:
        """Modelled: the whole input is read from DRAM; the parts are small and stay cached.

        Both launches end in a tree for each extremum: all work-items store, then one fewer than there are read and
        store again.
        """
        entry, trees = 4.0 + 4.0 * self._index, self._finds * (self.groups + 1)
        return Traffic(
            dram_read=self._source.nbytes,
            global_read=self._source.nbytes + self._finds * self._candidates() * entry,
            global_write=8.0 * trees,
            local_read=(self._group - 1) * entry * trees,
            local_write=(2 * self._group - 1) * entry * trees,
            integer_ops=self._index_ops(),
        )

    def _candidates(self) -> int:
        """Candidates that the second launch loads for an extremum: four at a time by each work-item that has one."""
        return 4 * sum(min(self._group, self.groups - first) for first in range(0, self.groups, 4 * self._group))

    def _index_ops(self) -> float:
        """Integer operations that make the indices: of a vector's elements, a multiplication and four additions."""
        return 5.0 * self._makes_indices * self._vectors


class _WideReduction(_Reduction):
    """Of values, with the index of a lane's best made at the end."""

    def _index_ops(self) -> float:
        """A multiplication for each lane, and an addition but for lane 0, the first of which a work-item without a
        vector spares itself.
        """
        return self._finds * (2.0 * self._width - 1) * self._group * self.groups - self._idle

    @property
    def _idle(self) -> int:
        """Work-items that get no vector."""
        chunk = ceil_div(self._vectors, self.groups)
        full, rest = divmod(self._vectors, chunk) if chunk else (0, 0)
        return self._group * self.groups - full * min(chunk, self._group) - min(rest, self._group)


class _BlockReduction(_Reduction):
    """Of values, by blocks, in one launch: the work-group that comes last finds the best of all, and its index."""

    def _share(self) -> int:
        return self._group * self._width * self._block

    def _prepare(
        self, setup: Setup, kernels: str, macros: dict[str, Any], parts: list[Buffer], final: list[Buffer]
    ) -> list[Launch]:
        arrived = setup.upload(np.zeros(1, np.uint32))  # each execution leaves it so
        for buffer in parts:  # atomic stores read, too, and a sanitizer asks who has written that
            self._device.fill(buffer, 0)
        arguments = (self._source, np.uint32(setup.problem.n), *parts, arrived, *final)
        return [(setup.kernel(kernels, "extrema", **macros), self.groups, arguments)]

    def traffic(self) -> Traffic:
        """Each work-group ends in a tree for each extremum, whose result all its work-items read, and whether it is the
        last. Where there are more, each leaves its results by atomic stores and counts itself; the last one loads all
        values and a block for each extremum, and ends in trees again. Each of its work-items reads its words of those
        blocks; the indices found meet in local memory, as a rule one of each.
        """
        several = self.groups > 1
        trees = self._finds * (self.groups + several)
        entries = 8.0 * (2 * self._group - 1) * trees
        return Traffic(
            dram_read=self._source.nbytes,
            global_read=self._source.nbytes + 4.0 * self._finds * self._share(),
            global_write=8.0 * self._finds,
            global_atomics=several * (self._finds * (2.0 * self.groups + self._candidates() + 1) + self.groups + 1),
            local_read=entries + 4.0 * (self._group * self.groups + self._finds),
            local_write=entries + 12.0 * self.groups + several * 4.0 * (self.groups + self._finds),
            local_atomics=float(self._finds),
            integer_ops=self._index_ops(),
        )

    def _index_ops(self) -> float:
        """The number of each work-item's first block and of the last group; which values the last group loads; places
        of a work-item's words in a block, what the blocks of the extrema hold, and the index.
        """
        places = self._block * self._width - 1 + 3 * self._finds
        loaded = 0.75 * self._finds * self._candidates() * (self.groups > 1)
        return self._group * (2.0 * self.groups + places) + loaded + self._finds


class _ArgVariant(Variant):
    finds: ClassVar[tuple[tuple[str, ...], ...]]
    reduction: ClassVar[type[_Reduction]] = _Reduction
    kernels: ClassVar[str] = "arg_extrema.cl"
    options: ClassVar[dict[str, int]] = {}
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (16, 32, 64, 128, 256, 512), "work-items per work-group"),
        "groups_per_unit": Tunable({"cpu": 8, "gpu": 32}, (1, 2, 4, 8, 16, 32, 64), "work-groups per compute unit"),
    }

    def __init__(self, setup: Setup) -> None:
        source = self.source_vector(setup)
        self.steps = [self.reduction(setup, finds, source, self.kernels, **self.options) for finds in self.finds]

    def source_vector(self, setup: Setup) -> Buffer:
        """The buffer that the reductions read."""
        return inputs.vector(setup)


class ArgminSeparate(_ArgVariant):
    """Structure of arrays, in vectors of four, select()."""

    problem = ArgMin
    name, title, rung = "argmin_separate", "arg-min: float4 values and int4 indices, select()", 1
    source = "Catanzaro 2011, reductions"
    finds = (("min",),)


class ArgmaxSeparate(_ArgVariant):
    """The same for the maximum."""

    problem = ArgMax
    name, title, rung = "argmax_separate", "arg-max: float4 values and int4 indices, select()", 1
    source = "Catanzaro 2011, reductions"
    finds = (("max",),)


class ArgminmaxSeparate(_ArgVariant):
    """Both, one after the other: what the fused form is compared with."""

    problem = ArgExtrema
    name, title, rung = "argminmax_separate", "arg-min, then arg-max: two passes", 1
    source = "Catanzaro 2011, reductions"
    finds = (("min",), ("max",))


class ArgminmaxFused(_ArgVariant):
    """Both in one pass."""

    problem = ArgExtrema
    name, title, rung = "argminmax_fused", "arg-min and arg-max in one pass", 2
    source = "Catanzaro 2011, reductions"
    finds = (("min", "max"),)


class MinPlain(_ArgVariant):
    """Control: the minimum without its index."""

    problem = ArgMin
    name, title, role, rung = "min_plain", "minimum without index", "control", 1
    source = "control arm of Catanzaro 2011, reductions"
    computes = VALUE
    finds = (("min",),)
    options: ClassVar[dict[str, int]] = {"INDEX": 0}


class ArgminAos(_ArgVariant):
    """Control: array of (value, index) structures; reads twice the bytes."""

    problem = ArgMin
    name, title, role, rung = "argmin_aos", "arg-min over (value, index) pairs", "control", 2
    source = "control arm of Catanzaro 2011, reductions"
    finds = (("min",),)
    options: ClassVar[dict[str, int]] = {"PAIRS": 1}

    def source_vector(self, setup: Setup) -> Buffer:
        problem: ArgMin = setup.problem
        values = inputs.vector(setup)

        def make() -> Buffer:
            out = setup.device.empty(8 * problem.n)
            kernel = setup.kernel("arg_extrema.cl", "make_pairs", **{**MACROS, "PAIRS": 1})
            setup.device.launch(kernel, min(ceil_div(problem.n, 256), 1 << 14), 256, values, out, np.uint32(problem.n))
            return out

        return setup.layout("pairs", make)


class ArgminTernary(_ArgVariant):
    """Control: ternaries instead of select()."""

    problem = ArgMin
    name, title, role, rung = "argmin_ternary", "arg-min with a ternary for each component", "control", 3
    source = "control arm of Catanzaro 2011, reductions"
    finds = (("min",),)
    options: ClassVar[dict[str, int]] = {"TERNARY": 1}


class _Wide(_ArgVariant):
    """More elements in a step than the source's four, and no indices but of the best step of each lane."""

    reduction = _WideReduction
    kernels = "arg_wide.cl"
    role, rung = "beyond", 3
    tunables: ClassVar[dict[str, Tunable]] = {
        **_ArgVariant.tunables,
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 64, 128, 256, 512), "work-items per work-group"),
        "width": Tunable({"cpu": 16, "gpu": 8}, (4, 8, 16), "elements of a step"),
        "unroll": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8), "steps whose loads are in flight"),
    }


class ArgminWide(_Wide):
    """The minimum."""

    problem = ArgMin
    name, title = "argmin_wide", "arg-min: wider steps, indices at the end"
    finds = (("min",),)


class ArgmaxWide(_Wide):
    """The maximum."""

    problem = ArgMax
    name, title = "argmax_wide", "arg-max: wider steps, indices at the end"
    finds = (("max",),)


class ArgminmaxWide(_Wide):
    """Both in one pass."""

    problem = ArgExtrema
    name, title = "argminmax_wide", "fused, wider steps, indices at the end"
    finds = (("min", "max"),)


class _Blocks(_ArgVariant):
    """Values first, the index of one block at the end: beyond the source."""

    reduction = _BlockReduction
    kernels = "arg_blocks.cl"
    role, rung = "beyond", 4
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 64, 128, 256, 512), "work-items per work-group"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 8}, (1, 2, 4, 8, 16, 32, 64), "work-groups per compute unit"),
        "width": Tunable({"cpu": 16, "gpu": 4}, (4, 8, 16), "elements per load"),
        "block": Tunable({"cpu": 64, "gpu": 4}, (1, 2, 4, 8, 16, 64, 256), "loads that are compared by value alone"),
        "unroll": Tunable({"cpu": 4, "gpu": 4}, (1, 2, 4, 8), "of them in flight per work-item"),
    }


class ArgminBlocks(_Blocks):
    """The minimum."""

    problem = ArgMin
    name, title = "argmin_blocks", "arg-min by blocks of values"
    finds = (("min",),)


class ArgmaxBlocks(_Blocks):
    """The maximum."""

    problem = ArgMax
    name, title = "argmax_blocks", "arg-max by blocks of values"
    finds = (("max",),)


class ArgminmaxBlocks(_Blocks):
    """Both in one pass."""

    problem = ArgExtrema
    name, title = "argminmax_blocks", "fused, by blocks of values"
    finds = (("min", "max"),)
