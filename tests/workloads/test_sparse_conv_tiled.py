"""sparse_conv: PTX written straight from the weights: its numbers without a GPU, and the choice of its shape."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_machine import Machine, Memory
from sparse_conv_offline import MASKS, SPARSE_CONV, TARGET, masked, offline, require_compilers

from perfport.backend.base import Times
from perfport.backend.cuda import CudaBackend
from perfport.backend.offline import OfflineDevice
from perfport.model.errors import UnsupportedError
from perfport.workloads.sparse_conv import reference
from perfport.workloads.sparse_conv.choice import Device, Search, estimate, inputs_read, registers
from perfport.workloads.sparse_conv.cubin import machine_instructions
from perfport.workloads.sparse_conv.operators import OPERATORS, Operator
from perfport.workloads.sparse_conv.tiled import generate
from perfport.workloads.sparse_conv.tiling import Tiling


@pytest.fixture(scope="module", autouse=True)
def compilers() -> None:
    """Skip the module without compilers."""
    require_compilers()


UNITS = 3


def run_tiled(tiling: Tiling, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The kernel's output on the machine, (N, K, H', W'); of two launches, so that counters must be set back."""
    o, memory = tiling.operator, Memory()
    y = np.full((len(x), o.filters, o.out_height, o.out_width), np.nan, np.float32)
    machine = Machine(generate(tiling, weights, len(x), TARGET), max(tiling.local_bytes, 16))
    counters = np.zeros(tiling.counters, np.uint32)
    buffers = [memory.add(array) for array in (x, y, *[counters] * tiling.pinned)]
    for _ in range(2):
        y[:] = np.nan
        machine.run(memory, tiling.groups(len(x), UNITS), tiling.items, *buffers)
        assert not counters.any()
    return y


TILINGS = [  # vectors of 4, 2 and 1; strides 1 to 4; tails across, down and in filters; one to three blocks ahead
    Tiling(Operator(4, 5, 3, 3, 9, 12, 1, 1), 8, 2, 2, 2, 2, 3, 1),
    Tiling(Operator(4, 6, 3, 3, 8, 8, 1, 1), 8, 4, 1, 6, 1, 4, 2, True),
    Tiling(Operator(2, 3, 5, 5, 7, 10, 1, 2), 5, 2, 4, 3, 1, 2, 1),
    Tiling(Operator(3, 4, 11, 11, 23, 24, 4, 2), 4, 3, 2, 4, 3, 2, 1),
    Tiling(Operator(1, 2, 2, 3, 12, 21, 2, 0), 10, 6, 1, 2, 1, 2, 1),
    Tiling(Operator(2, 9, 5, 5, 6, 6, 3, 4), 4, 1, 2, 4, 2, 3, 1, True),
    Tiling(Operator(2, 2, 1, 1, 5, 40, 1, 0), 40, 1, 4, 1, 1, 2, 1),
]


@settings(max_examples=30)
@given(st.sampled_from(TILINGS), st.sampled_from(MASKS), st.integers(0, 2**31))
def test_tiled_code_computes_the_convolution(tiling: Tiling, mask: str, seed: int) -> None:
    rng, o = np.random.default_rng(seed), tiling.operator
    weights = masked(o.shape, mask, rng)
    x = rng.uniform(-1, 1, (2, o.channels, o.height, o.width)).astype(np.float32)
    expected = reference.convolution(o, x, weights)
    assert np.linalg.norm(run_tiled(tiling, weights, x) - expected) <= 1e-6 * (np.linalg.norm(expected) or 1)


@pytest.mark.parametrize("number", range(len(TILINGS)))
def test_tiled_code_assembles_and_has_one_multiply_add_for_each_weight_and_row(number: int) -> None:
    tiling = TILINGS[number]
    weights = masked(tiling.operator.shape, "random", np.random.default_rng(number))
    text = generate(tiling, weights, 2, TARGET)
    assert text.count("fma.rn.f32") == np.count_nonzero(weights) * tiling.height
    assert machine_instructions(CudaBackend().assemble("tiled", text, TARGET).code) > 0
    reads = 0
    for first in range(0, tiling.operator.filters, tiling.filters):
        reads += inputs_read(weights[first : first + tiling.filters], tiling)
    assert text.count("ld.shared") == reads + tiling.pinned


def test_pinned_work_groups_take_their_own_slice_and_those_that_nobody_began() -> None:
    tiling = Tiling(Operator(2, 6, 3, 3, 8, 8, 1, 1), 8, 4, 1, 2, 1, 2, 1, True)
    weights = masked(tiling.operator.shape, "all", np.random.default_rng(1))
    x = np.random.default_rng(2).uniform(-1, 1, (3, 2, 8, 8)).astype(np.float32)
    machine = Machine(generate(tiling, weights, len(x), TARGET), tiling.local_bytes)
    memory, y, counters = Memory(), np.full((3, 6, 8, 8), np.nan, np.float32), np.zeros(tiling.counters, np.uint32)
    counters[1] = 1  # somebody is at the second slice
    machine.run(memory, 1, tiling.items, memory.add(x), memory.add(y), memory.add(counters))
    expected = reference.convolution(tiling.operator, x, weights)
    assert np.isnan(y[:, 2:4]).all() and not counters.any()
    np.testing.assert_allclose(y[:, [0, 1, 4, 5]], expected[:, [0, 1, 4, 5]], rtol=1e-5, atol=1e-5)


def test_a_missing_barrier_would_show() -> None:
    """The machine is worth something: without its barriers the code reads words that nobody has written."""
    tiling = Tiling(Operator(2, 2, 3, 3, 4, 64, 1, 1), 64, 1, 1, 2, 1, 2, 1)  # a warp needs what the other copies
    weights = masked(tiling.operator.shape, "all", np.random.default_rng(1))
    text = generate(tiling, weights, 1, TARGET).replace("\tbar.sync \t0;", "")
    memory, x = Memory(), np.ones((1, 2, 4, 64), np.float32)
    y = np.zeros((1, 2, 4, 64), np.float32)
    Machine(text, tiling.local_bytes).run(memory, tiling.groups(1, UNITS), tiling.items, memory.add(x), memory.add(y))
    assert np.isnan(y).any()


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_tiling_is_found_for_each_operator(name: str, batch: int) -> None:
    o, h200 = OPERATORS[name], Device(132, 227 << 10)
    weights = masked(o.shape, "all", np.random.default_rng(1))
    weights[np.random.default_rng(2).random(o.shape) < 0.9] = 0
    search = Search(o, weights, batch, h200, {})
    found = search.shortlist(12)
    assert 1 < len(found) == len({(t.columns, t.rows, t.height, t.filters, t.pinned) for t in found}) <= 12
    assert max(Counter((t.height, t.filters, t.pinned) for t in found).values()) <= 3
    assert all(t.slices > 1 and t.tiles(batch) * t.slices > 132 * t.resident for t in found if t.pinned)
    times = [estimate(t, weights, batch, h200).cycles for t in found]
    assert times == sorted(times)
    tiling = found[0]
    assert registers(tiling) <= 255 and tiling.local_bytes * tiling.resident <= 227 << 10
    assert tiling.items * tiling.resident * registers(tiling) <= 65536
    model = estimate(tiling, weights, batch, h200)
    assert model.cycles > 0 and o.channels % tiling.block == 0
    (other,) = Search(o, weights, batch, h200, {"height": 1, "filters": 4, "columns": 16}).shortlist(1)
    assert (other.height, other.filters, other.columns) == (1, 4, 16)
    assert model.cycles <= estimate(other, weights, batch, h200).cycles
    near = search.neighbours(tiling, found, 6)
    assert 0 < len(near) == len(set(near)) <= 6 and not {*near} & {*found}
    assert {(t.height, t.filters, t.pinned) for t in near} == {(tiling.height, tiling.filters, tiling.pinned)}
    at = [((t.columns, t.rows), (t.block, t.stages)) for t in (tiling, *near)]
    assert all(sum(a != b for a, b in zip(at[0], other, strict=True)) == 1 for other in at[1:])
    staged = [abs(np.log2(block / 4)) for shape, (block, _) in at[1:] if shape == at[0][0]]
    assert staged and staged == sorted(staged) and {t.stages for t in near} == {3, 4}


def test_long_code_is_not_made_longer_unless_asked_for() -> None:
    o = OPERATORS["resnet-conv2"]
    weights = masked(o.shape, "all", np.random.default_rng(1))
    weights[np.random.default_rng(2).random(o.shape) < 0.5] = 0
    for fixed, height in (({}, 1), ({"height": 2}, 2)):
        assert {t.height for t in Search(o, weights, 64, Device(132, 227 << 10), fixed).shortlist(12)} == {height}


def test_generated_tiled_computes_the_problem() -> None:
    for sizes in SPARSE_CONV.problems["sparse_conv"].check_sizes:
        variant, setup = offline("generated_tiled", **sizes)
        engine, problem = variant.convolution, setup.problem
        y = run_tiled(engine.tiling, problem.layer.weights, problem.x)
        assert problem.check({"y": y})["y"].passed, sizes
        assert engine.traffic().flops >= problem.work().flops and variant.notes()["cubin_kib"] > 0


def test_where_times_mean_nothing_the_models_first_tiling_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Any] = []
    monkeypatch.setattr(OfflineDevice, "timed", lambda *of: timed.append(of) or Times(1.0, None, 1, {}))
    for asked in (True, False):
        timed.clear()
        engine = offline("generated_tiled", timed=asked, operator="lenet-conv1", batch=1)[0].convolution
        assert bool(timed) is asked
    (first,) = Search(engine.operator, engine.layer.weights, 1, engine.limits, {"pinned": 2}).shortlist(1)
    assert engine.tiling == first


def test_code_over_the_limit_is_refused() -> None:
    for name in ("generated_ptx", "generated_tiled"):
        with pytest.raises(
            UnsupportedError, match=r"unrolled code of layer has \d+ multiply-adds( or more)?, the limit is 400000"
        ):
            offline(name, channels=512, filters=512, kernel_height=3, kernel_width=3, height=8, width=8, sparsity=0.5)


def test_tiled_code_needs_asynchronous_copies() -> None:
    with pytest.raises(UnsupportedError, match=r"compute capability 8\.0"):
        offline("generated_tiled", "sm_75", operator="lenet-conv1")
