"""sparse_conv: the walk over the weights that generated code follows; the variant whose engine follows the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_machine import Machine, Memory
from sparse_conv_cases import PROBLEM, SMALL, SPARSE_CONV, problem_of, solve
from sparse_conv_offline import MASKS, masked, offline, require_compilers

from perfport.backend import OpenDevice
from perfport.backend.offline import OfflineDevice, cuda_info, nvidia_opencl_info, opencl_info
from perfport.model.device import DeviceInfo
from perfport.model.errors import UnsupportedError
from perfport.workload import Session, Setup
from perfport.workloads.sparse_conv import reference
from perfport.workloads.sparse_conv.operators import Operator
from perfport.workloads.sparse_conv.variants.layers import Generated
from perfport.workloads.sparse_conv.variants.portable import language
from perfport.workloads.sparse_conv.walk import Emitter, Product, Scan, Walk, Word
from perfport.workloads.sparse_conv.weights import window_use

# --- The walk -----------------------------------------------------------------------------------------------------


class Arithmetic(Emitter):
    """Computes what it meets in place of writing it: the outputs of one slice; each part is a word on what it was."""

    def __init__(self, operator: Operator, x: np.ndarray, height: int) -> None:
        self.o, self.height = operator, height
        rows = -(-operator.out_height // height) * height
        below = (rows - 1) * operator.stride + operator.kernel_height
        p = operator.padding
        self.padded = np.pad(x, ((0, 0), (p, max(p, below - p - operator.height)), (p, p)))
        self.rows = rows
        self.words: dict[tuple[int, int, int], np.ndarray] = {}
        self.blocks: list[int] = []

    def start(self, filters: int) -> Iterator[str]:
        self.sums = np.zeros((filters, self.rows, self.o.out_width))
        yield "start"

    def block(self, number: int) -> Iterable[str]:
        self.blocks.append(number)
        return super().block(number)

    def load(self, words: Sequence[Word]) -> Iterator[str]:
        stride = self.o.stride
        for channel, row, column, _ in words:
            assert (channel, row, column) not in self.words, "a word is loaded twice"
            lines = self.padded[channel, row :: self.height * stride][: self.rows // self.height]
            self.words[channel, row, column] = lines[:, column::stride][:, : self.o.out_width]
            yield f"load {channel} {row} {column}"

    def multiply_add(self, word: Word, product: Product) -> str:
        c, r, s = product.tap
        assert (c, r + product.row * self.o.stride, s) == word[:3]
        self.sums[product.filter, product.row :: self.height] += product.weight * self.words[word[:3]]
        return "fma"

    def store(self) -> Iterator[str]:
        yield "store"


OPERATORS = [Operator(3, 5, 3, 2, 7, 9, 1, 1), Operator(2, 3, 2, 3, 9, 8, 2, 0), Operator(4, 2, 1, 5, 5, 11, 3, 4)]


@settings(max_examples=60)
@given(
    st.sampled_from(OPERATORS), st.sampled_from(MASKS), st.sampled_from(Scan), st.integers(1, 4), st.integers(1, 6),
    st.integers(0, 5), st.integers(0, 2), st.integers(0, 2**31),
)  # fmt: skip
def test_whoever_follows_the_walk_computes_the_convolution(
    o: Operator, mask: str, scan: Scan, height: int, filters: int, block: int, ahead: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weights, x = masked(o.shape, mask, rng), rng.standard_normal((1, o.channels, o.height, o.width))
    walk = Walk(filters, height, o.stride, scan, block, ahead)
    parts = walk.slices(weights)
    assert np.array_equal(np.concatenate([part.weights for part in parts]), weights)
    assert [part.first for part in parts] == list(range(0, o.filters, filters))
    expected = reference.convolution(o, x, weights)[0]
    for first, own in parts:
        arithmetic = Arithmetic(o, x[0], height)
        code = list(walk.code(own, arithmetic))
        assert np.allclose(arithmetic.sums[:, : o.out_height], expected[first : first + filters])
        assert code.count("fma") == np.count_nonzero(own) * height
        assert len(arithmetic.words) == window_use(own, height, o.stride).sum()
        assert arithmetic.blocks == list(range(-(-o.channels // (block or o.channels))))
        assert (code[0], code[-1]) == ("start", "store")


def order(scan: Scan, ahead: int = 0, block: int = 0) -> list[str]:
    """What a walk over two channels of 2 x 2 weights meets; the weight of the first one's lower left tap is zero."""
    weights = np.ones((1, 2, 2, 2), np.float32)
    weights[0, 0, 1, 0] = 0
    o = Operator(2, 1, 2, 2, 3, 3)
    return list(Walk(1, 1, 1, scan, block, ahead).code(weights, Arithmetic(o, np.zeros((2, 3, 3)), 1)))[1:-1]


def test_scans_differ_in_the_order_of_words_and_in_steps() -> None:
    first = {"ALONG": ["load 0 0 0", "fma", "load 0 0 1", "fma", "load 0 1 1", "fma", "load 1 0 0", "fma"]}
    first["DOWN"] = first["ALONG"]  # of this channel no more than one row is in both columns
    first["ROWS"] = ["load 0 0 0", "load 0 0 1", "fma", "fma", "load 0 1 1", "fma", "load 1 0 0", "load 1 0 1"]
    assert all(order(scan)[:8] == first[scan.name] for scan in Scan)
    assert order(Scan.DOWN)[-8::2] == ["load 1 0 0", "load 1 1 0", "load 1 0 1", "load 1 1 1"]
    assert order(Scan.ALONG)[-8::2] == ["load 1 0 0", "load 1 0 1", "load 1 1 0", "load 1 1 1"]


def test_loads_are_ahead_within_a_block_of_channels() -> None:
    whole = order(Scan.ROWS, ahead=1)
    assert whole[:6] == ["load 0 0 0", "load 0 0 1", "load 0 1 1", "fma", "fma", "load 1 0 0"]
    apart = order(Scan.ROWS, ahead=1, block=1)
    assert apart[:7] == [*whole[:5], "fma", "load 1 0 0"], "what was loaded is used before the next block begins"


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.floats(0, 1), st.integers(1, 60))
def test_programs_are_whole_slices_within_the_limit(
    k: int, filters: int, height: int, share: float, limit: int
) -> None:
    weights = np.where(np.random.default_rng(k).random((k, 3, 2, 2)) < share, np.float32(1), 0)
    walk = Walk(filters, height, 1, Scan.DOWN)
    programs = walk.programs(weights, limit)
    assert [part.first for program in programs for part in program] == [part.first for part in walk.slices(weights)]
    sizes = [sum(np.count_nonzero(part.weights) * height for part in program) for program in programs]
    assert all(size <= limit or len(program) == 1 for size, program in zip(sizes, programs, strict=True))


# --- One generator on every device ----------------------------------------------------------------------------------


@pytest.fixture
def compilers() -> None:
    """Skip without NVRTC."""
    require_compilers()


@pytest.mark.usefixtures("compilers")
@pytest.mark.parametrize(
    ("info", "engine"),
    [
        (opencl_info("cpu"), "c"), (opencl_info("gpu"), "c"), (nvidia_opencl_info("sm_75"), "c"),
        (nvidia_opencl_info("sm_90"), "ptx"), (cuda_info("sm_75"), "c"), (cuda_info("sm_90"), "ptx"),
    ],
)  # fmt: skip
def test_the_engine_follows_the_device(info: DeviceInfo, engine: str) -> None:
    assert language("device", info) == engine
    problem = PROBLEM(PROBLEM.Parameters(**SMALL), 1)
    for asked in ("device", "c", "ptx"):
        device: Any = OfflineDevice(info)
        chosen = {name: tunable.default_for(info) for name, tunable in Generated.tunables.items()} | {"engine": asked}
        setup = Setup(Session(device, problem, SPARSE_CONV.folder, timed=False), chosen, {})
        if asked == "ptx" and engine == "c":
            with pytest.raises(UnsupportedError, match=r"needs (ptx|compute capability 8\.0)"):
                Generated(setup)
        else:
            notes = Generated(setup).notes()
            assert notes["engine"] == (engine if asked == "device" else asked)
            assert ("programs" in notes) == (notes["engine"] == "c") and notes["index_bytes"] == 0


@pytest.mark.usefixtures("compilers")
def test_engines_write_what_the_variants_of_their_own_write() -> None:
    sizes = PROBLEM.check_sizes[1]

    def engines(name: str, own: dict[str, Any], chosen: dict[str, Any]) -> Iterator[Any]:
        for variant, tunables in ((name, own), ("generated", chosen)):
            yield offline(variant, tunables=tunables, timed=False, **sizes)[0].convolution

    for own in ({}, {"height": 2, "filters": 4, "columns": 8}):
        alone, chosen = engines("generated_tiled", own, own)
        assert chosen.best.text == alone.best.text and chosen.traffic() == alone.traffic()
    for own, renamed in (({}, {}), ({"rows": 4, "filters": 8}, {"height": 4, "filters": 8})):
        alone, chosen = engines("generated_source", own, {"engine": "c", **renamed})
        assert [program.source for program in chosen.programs] == [program.source for program in alone.programs]
        assert chosen.traffic() == alone.traffic()


@pytest.mark.usefixtures("compilers")
@pytest.mark.parametrize("sparsity", [0.2, 0.83])
def test_ptx_of_the_generator_computes_the_problem(sparsity: float) -> None:
    for sizes in PROBLEM.check_sizes:
        variant, setup = offline("generated", timed=False, **{**sizes, "sparsity": sparsity})
        engine, problem = variant.convolution, setup.problem
        tiling, memory, y = engine.tiling, Memory(), np.full(problem.shape, np.nan, np.float32)
        machine = Machine(engine.best.text, max(tiling.local_bytes, 16))
        counters = np.zeros(tiling.counters, np.uint32)
        buffers = [memory.add(array) for array in (problem.x, y, *[counters] * tiling.pinned)]
        machine.run(memory, tiling.groups(problem.batch, engine.limits.compute_units), tiling.items, *buffers)
        assert problem.check({"y": y})["y"].passed, sizes
        assert engine.traffic().flops == 2 * machine.multiply_adds


@pytest.mark.parametrize("sparsity", [0.0, 0.37, 0.9, 1.0])
def test_the_generator_is_right_at_any_sparsity(device: OpenDevice, sparsity: float) -> None:
    sizes = {"channels": 5, "filters": 7, "kernel_height": 3, "kernel_width": 2, "height": 11, "width": 19}
    solve(device, problem_of(**sizes, stride=2, padding=1, batch=3, sparsity=sparsity), "generated")


@pytest.mark.parametrize(
    "tunables",
    [{"width": 4, "height": 1, "filters": 4}, {"width": 1, "height": 4, "group": 32}, {"width": 8, "tail": 1}],
)
def test_the_generator_at_other_shapes(opencl: OpenDevice, tunables: dict[str, int]) -> None:
    for sizes in PROBLEM.check_sizes:
        variant, _ = solve(opencl, problem_of(**sizes), "generated", engine="c", **tunables)
        text = "".join(program.source for program in variant.convolution.programs)  # a tail is the same code, narrower
        assert text.count("= fma(") == variant.data.layer.nonzero * tunables.get("height", 2)
