"""sparse_conv: the specialisation pass, and the numbers of specialised code, on real PTX and without a GPU."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_machine import Machine, Memory
from sparse_conv_offline import MASKS, SPARSE_CONV, TARGET, masked, offline, require_compilers

from perfport.backend.cuda import CudaBackend
from perfport.model.errors import CompileError, UnsupportedError
from perfport.workloads.sparse_conv import ptx, reference, template
from perfport.workloads.sparse_conv.cubin import machine_instructions
from perfport.workloads.sparse_conv.operators import OPERATORS, Operator
from perfport.workloads.sparse_conv.specialise import Specialised, specialise, template_values, value_map
from perfport.workloads.sparse_conv.weights import window_use


@pytest.fixture(scope="module", autouse=True)
def compilers() -> None:
    """Skip the module without compilers."""
    require_compilers()


# --- The instruction model ----------------------------------------------------------------------------------------


def test_instructions_are_taken_apart_and_put_together() -> None:
    text = "\t@!%p1 ld.global.v2.f32 \t{%f1, %f2}, [%rd4+8];"
    (item,) = ptx.parsed(text)
    assert isinstance(item, ptx.Instruction)
    assert (item.guard, item.opcode, item.operands) == ("@!%p1", "ld.global.v2.f32", ["{%f1, %f2}", "[%rd4+8]"])
    assert str(item) == text and item.registers() == ["%p1", "%f1", "%f2", "%rd4"]
    assert list(ptx.parsed(".version 9.0\n$L__BB0_1:\n\t.reg .f32 \t%f<4>;")) == [
        ".version 9.0", "$L__BB0_1:", "\t.reg .f32 \t%f<4>;",
    ]  # fmt: skip
    (lone,) = ptx.parsed("\tret;")
    assert isinstance(lone, ptx.Instruction) and lone.operands == []


@given(st.floats(width=32, allow_nan=False))
def test_immediates_keep_every_bit(value: float) -> None:
    assert ptx.immediate_bits(ptx.immediate(value)) == int(np.float32(value).view(np.uint32))


# --- The pass on PTX written here ---------------------------------------------------------------------------------

ONE_HALF, ONE_QUARTER = 0x3FC00000, 0x3FA00000  # 1.5 and 1.25


def straight(*lines: str) -> str:
    return "\n".join(line if line.endswith(":") else f"\t{line};" for line in lines)


def made_of(text: str, values: dict[int, float]) -> Specialised:
    """The pass on a text; another pass over it, with other values, must not change what comes out."""
    program = ptx.Program.of(text)
    found = specialise(program, values)
    specialise(program, dict.fromkeys(values, 0.0))
    assert specialise(program, values) == found
    return found


def test_deleted_sums_are_followed_through_to_the_store() -> None:
    text = straight(
        "mov.f32 %f9, 0f3FC00000", "fma.rn.f32 %f2, %f1, %f9, 0f00000000", "fma.rn.f32 %f3, %f1, 0f3FA00000, %f2",
        "st.global.f32 [%rd1], %f3", "st.global.v2.f32 [%rd1+8], {%f2, %f3}",
    )  # fmt: skip
    kept = made_of(text, {ONE_HALF: 2.0, ONE_QUARTER: 0.0})
    lines = kept.text.replace("\t", "").split("\n")
    assert lines == [
        "fma.rn.f32 %f2, %f1, 0f40000000, 0f00000000;", "st.global.f32 [%rd1], %f2;",
        "st.global.v2.f32 [%rd1+8], {%f2, %f2};",
    ]  # fmt: skip
    assert (kept.instructions, kept.deleted, kept.multiply_adds_deleted) == (5, 2, 1)
    empty = made_of(text, {ONE_HALF: 0.0, ONE_QUARTER: 0.0})
    assert empty.text.replace("\t", "").split("\n")[0] == "st.global.f32 [%rd1], 0f00000000;"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("add.f32 %f7, %f2, %f1", "touches %f2"),
        ("@%p1 add.f32 %f2, %f1, %f1", "defines %f2, which is defined more than once"),
        ("neg.f32 %f7, %f9", "touches %f9"),
        ("add.f32 %f7, %f1, 0f3FC00000", "uses a template value"),
        ("fma.rn.f32 %f7, %f2, 0f3FC00000, %f1", "multiplies a sum"),
        ("fma.rn.f32 %f7, %f2, %f1, %f1", "touches %f2"),
        ("fma.rn.f32 %f7, %f1, 0f3FC00000, %f9", "adds a template value"),
        ("@%p1 fma.rn.f32 %f7, %f1, 0f3FC00000, %f2", "under a guard"),
        ("fma.rn.f32 %f2, %f1, 0f3FC00000, %f2", "defines %f2, which is defined more than once"),
        ("mov.f32 %f2, 0f3FC00000", "defines %f2, which is defined more than once"),
        ("mov.f32 %f1, 0f3FC00000", "defines %f1, which is defined more than once"),
        ("fma.rz.f32 %f7, %f1, %f9, %f2", "touches %f9"),
        ("st.global.f32 [%rd1], %f9", "stores a template value"),
        ("cvt.s32.f32 %r1, %f2", "touches %f2"),
        ("selp.f32 %f7, %f2, %f1, %p1", "touches %f2"),
        ("@%p1 mov.f32 %f7, %f2", "touches %f2"),
        ("bra $L__BB0_1", "branches backwards"),
    ],
)
@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_what_the_pass_does_not_understand_it_refuses(line: str, why: str, weight: float) -> None:
    known = (
        "$L__BB0_1:",
        "ld.global.f32 %f1, [%rd1]",
        "mov.f32 %f9, 0f3FC00000",
        "fma.rn.f32 %f2, %f1, %f9, 0f00000000",
    )
    with pytest.raises(CompileError, match=r"refuses line [45] .*" + why.replace(".", r"\.")):
        made_of(straight(*known, line), {ONE_HALF: weight})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("bra", "nothing"),
        ("@%p1 bra.uni", "nothing"),
        ("fma.rn.f32", "has 0 operands, not 4"),
        ("fma.rn.f32 %f7, %f1, %f1", "has 3 operands, not 4"),
        ("fma.rn.f32 %f7, %f1, 0f3FC00000, %f1, %f1", "has 5 operands, not 4"),
        ("mul.f32 %f7, 0f3FC00000", "has 2 operands, not 3"),
        ("mul.f32 {%f7}, %f1, 0f3FC00000", "defines {%f7}, which is no register"),
        ("mul.f32 x, %f1, 0f3FC00000", "defines x, which is no register"),
        ("mov.f32", "has 0 operands, not 2"),
        ("mov.f32 %f7", "has 1 operands, not 2"),
        ("mov.b32 %f7, {%r1, %r2}, %r3", "has 3 operands, not 2"),
        ("mov.f32 x, 0f3FC00000", "defines x, which is no register"),
        ("mov.f32 x, %f2", "defines x, which is no register"),
        ("st.global.f32", "has 0 operands, not 2"),
        ("st.global.f32 [%rd1]", "has 1 operands, not 2"),
        ("st.shared.f32 [%rd1], %f1, %f1", "has 3 operands, not 2"),
        ("add.f32 %f7, %f1, 0f", "nothing"),
        ("mov.f32 x, 0f00000000", "nothing"),
        ("add.f32 %f7, %f1, 0fG0000000", "nothing"),
        ("add.f32 %f7, %f1, 0F3fc00000", "uses a template value"),
        ("add.f32 %f7, {%f1, 0f3FC00000", "nothing"),
    ],
)
def test_malformed_instructions_are_refused_or_left_to_the_assembler(line: str, why: str) -> None:
    """Never another error than the pass's own."""
    text = straight("fma.rn.f32 %f2, %f1, 0f3FC00000, 0f00000000", line, "$L__BB0_2:", "st.global.f32 [%rd1], %f2")
    if why == "nothing":
        assert line.split()[-1] in made_of(text, {ONE_HALF: 2.0}).text
    else:
        with pytest.raises(CompileError, match=rf"refuses line 2 .*it {re.escape(why)}"):
            made_of(text, {ONE_HALF: 2.0})


@pytest.mark.parametrize(
    "line", ["a" * 100_000, "@%" + "p" * 100_000, "\t" * 100_000, "a " * 50_000, "a" + ";x" * 50_000]
)
def test_long_lines_that_are_no_instructions_take_no_time(line: str) -> None:
    """A pattern that tries every split of such a line would need minutes."""
    assert list(ptx.parsed(line)) == [line]


def test_other_instructions_are_left_alone() -> None:
    lines = ("add.f32 %f7, %f1, %f1", "bar.sync 0", "fma.rn.f32 %f8, %f1, %f7, %f1", "mov.f32 %f3, 0f00000000")
    kept = made_of(straight(*lines, "fma.rn.f32 %f2, %f1, 0f3FC00000, %f3"), {ONE_HALF: 1.0})
    assert kept.deleted == 0 and "0f3F800000, 0f00000000" in kept.text


def test_a_zero_whose_register_is_used_again_is_no_trap() -> None:
    """As NVRTC does it: the register that sums start from becomes the next tile's element."""
    start = ("mov.f32 %f5, 0f00000000", "fma.rn.f32 %f2, %f1, 0f3FC00000, %f5")
    again = ("ld.global.nc.f32 %f5, [%rd1]", "fma.rn.f32 %f3, %f1, 0f3FA00000, %f2", "st.global.f32 [%rd1], %f3")
    values = {ONE_HALF: 0.0, ONE_QUARTER: 2.0}
    assert "fma.rn.f32 \t%f3, %f1, 0f40000000, 0f00000000;" in made_of(straight(*start, *again), values).text
    # Behind a label nobody knows that it is still zero.
    with pytest.raises(CompileError, match=r"adds %f5, which is defined more than once"):
        made_of(straight(start[0], "$L__BB0_1:", start[1], *again), values)
    made_of(straight(start[0], "$L__BB0_1:", start[1], *again[1:]), values)


def test_bad_template_values_are_refused() -> None:
    two = np.array([1.5, 1.5], np.float32)
    with pytest.raises(CompileError, match="distinct: 2 values, 1 different"):
        value_map(two, np.ones(2, np.float32))
    with pytest.raises(CompileError, match="is zero"):
        value_map(np.array([1.5, 0], np.float32), np.ones(2, np.float32))
    with pytest.raises(CompileError, match="2 template values for 3"):
        value_map(two, np.ones(3, np.float32))
    with pytest.raises(CompileError, match="finite"):
        value_map(np.array([1.5, 1.25], np.float32), np.array([1, np.nan], np.float32))
    with pytest.raises(CompileError, match="1 of 2 template values do not occur"):
        made_of(straight("fma.rn.f32 %f2, %f1, 0f3FC00000, %f3"), {ONE_HALF: 1.0, ONE_QUARTER: 1.0})
    with pytest.raises(CompileError, match="differ in FP32"):
        template_values(1 << 23, 1)


def test_template_values_are_distinct_and_between_one_and_two() -> None:
    values = template_values(100_000, 3)
    assert len(set(values.tolist())) == values.size and values.min() > 1 and values.max() < 2
    assert not np.array_equal(values, template_values(100_000, 4))


# --- The pass on what NVRTC makes, run by the machine --------------------------------------------------------------


def run_template(text: str, o: Operator, shape: template.Shape, x: np.ndarray) -> np.ndarray:
    """One slice of filters on the machine, (N, filters of the slice, H', W')."""
    memory, y = Memory(), np.full((len(x), o.filters, o.out_height, o.out_width), np.nan, np.float32)
    groups = shape.tiles(o).count * -(-len(x) // shape.images)
    Machine(text).run(memory, groups, shape.items, memory.add(x), memory.add(y), 0, len(x))
    return y[:, : shape.filters]


SHAPES = [  # operator, BN x BH x BW, columns, rows, prefetch: strides, padding, tails, one channel, one column
    (Operator(3, 4, 3, 2, 6, 7, 1, 1), (1, 2, 1), 4, 2, True),
    (Operator(2, 3, 2, 3, 9, 8, 2, 0), (1, 1, 1), 8, 1, False),
    (Operator(1, 5, 1, 1, 3, 3, 1, 0), (1, 4, 1), 4, 2, True),
    (Operator(4, 2, 5, 5, 4, 5, 3, 4), (1, 2, 1), 4, 2, False),
    (Operator(3, 4, 3, 2, 6, 7, 1, 1), (2, 1, 2), 2, 2, True),
    (Operator(2, 3, 2, 3, 9, 8, 2, 0), (4, 2, 4), 1, 4, False),
]


@settings(max_examples=25)
@given(st.sampled_from(SHAPES), st.sampled_from(MASKS), st.integers(0, 2**31))
def test_specialised_code_equals_the_dense_template_with_these_weights(
    given_shape: tuple[Operator, tuple[int, int, int], int, int, bool], mask: str, seed: int
) -> None:
    o, outputs, columns, rows, prefetch = given_shape
    shape = template.Shape(columns, rows, *outputs, o.filters, 2, prefetch)
    made = template.compiled(o, shape, TARGET)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (3, o.channels, o.height, o.width)).astype(np.float32)
    weights = masked(o.shape, mask, rng)
    found = made_of(made.ptx, value_map(made.values, weights))
    y = run_template(found.text, o, shape, x)
    expected = reference.convolution(o, x, weights)
    assert np.linalg.norm(y - expected) <= 1e-6 * (np.linalg.norm(expected) or 1)
    zeros = weights.size - np.count_nonzero(weights)
    assert found.multiply_adds_deleted == zeros * math.prod(outputs)
    assert found.text.count("fma.rn.f32") == (weights.size - zeros) * math.prod(outputs)
    # The template itself is the dense operator with its own values.
    dense = run_template(made.ptx, o, shape, x)
    assert np.allclose(dense, reference.convolution(o, x, made.values), rtol=1e-5, atol=1e-5)


def test_one_template_serves_every_set_of_weights(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    o = OPERATORS["lenet-conv1"]
    shape = template.Shape(8, 4, 1, 1, 1, template.filters_of(o, 1), 1, True)
    first, again = (template.compiled(o, shape, TARGET) for _ in range(2))
    assert not first.cached and again.cached and first.ptx == again.ptx and np.array_equal(first.values, again.values)
    other = template.compiled(o, shape, "sm_80")
    assert not other.cached and other.key != first.key


def test_templates_keep_within_their_limit() -> None:
    for o in OPERATORS.values():
        filters = template.filters_of(o, 2)
        assert o.filters % filters == 0 and filters <= template.FILTER_LIMIT
        assert filters * o.taps * 2 <= template.TEMPLATE_LIMIT and template.filters_of(o, 2, 5) <= 5
    with pytest.raises(UnsupportedError, match=r"one filter has 18434 multiply-adds, the limit of a template is 18432"):
        template.filters_of(Operator(13, 1, 1, 709, 1, 709), 2)


def test_damaged_cubins_are_refused() -> None:
    whole = CudaBackend().build("k.cu", "__kernel void k(__global float *x) { x[0] = 1; }", {}, TARGET).code
    count = machine_instructions(whole)
    assert count > 0
    refused = 0
    for cut in range(0, len(whole), 97):
        try:
            assert machine_instructions(whole[:cut]) == count  # what is missing is no code
        except ValueError as error:
            assert "ELF file" in str(error) or "not found" in str(error)
            refused += 1
    assert refused > len(whole) // 97 // 2


def test_machine_instructions_go_with_ptx_instructions() -> None:
    o = OPERATORS["lenet-conv1"]
    shape = template.Shape(8, 8, 1, 1, 1, 20, 1, True)
    made = template.compiled(o, shape, TARGET)
    weights = masked(made.values.shape, "random", np.random.default_rng(1))
    weights[np.random.default_rng(2).random(weights.shape) < 0.9] = 0
    found = made_of(made.ptx, value_map(made.values, weights))
    assemble = CudaBackend().assemble
    dense, sparse = (machine_instructions(assemble("t", text, TARGET).code) for text in (made.ptx, found.text))
    assert dense > 500 > sparse and dense - sparse > found.multiply_adds_deleted / 2
    with pytest.raises(ValueError, match="ELF"):
        machine_instructions(b"PTX" * 100)


def test_inputs_in_use_are_counted() -> None:
    weights = np.zeros((2, 1, 3, 2), np.float32)
    weights[0, 0, 0, 0] = weights[1, 0, 2, 1] = 1
    assert [window_use(weights, *form).sum() for form in ((1, 1), (2, 1), (3, 3))] == [2, 4, 6]


# --- Variants for CUDA, without a GPU ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tunables"),
    [
        ("generated_ptx", {}),
        ("generated_ptx_no_prefetch", {}),
        ("generated_ptx_constants", {}),
        ("generated_ptx", {"columns": 4, "rows": 2, "bn": 2, "bh": 1, "bw": 2, "bk": 4}),
    ],
)
def test_generated_ptx_computes_the_problem(name: str, tunables: dict[str, int]) -> None:
    one_channel = {"operator": "lenet-conv1", "batch": 1}
    for sizes in (*SPARSE_CONV.problems["sparse_conv"].check_sizes, one_channel):
        variant, setup = offline(name, tunables=tunables, **sizes)
        engine, problem = variant.convolution, setup.problem
        y = np.full(problem.shape, np.nan, np.float32)
        memory = Memory()
        arguments = memory.add(problem.x), memory.add(y)
        multiply_adds = 0
        for number, artifact in enumerate(engine.artifacts):
            machine = Machine(artifact.listing["ptx"])
            first = number * engine.shape.filters
            machine.run(memory, engine.groups, engine.shape.items, *arguments, first, problem.batch)
            multiply_adds += machine.multiply_adds
        assert engine.traffic().flops == 2 * multiply_adds
        checked = problem.check({"y": y})["y"]
        assert checked.passed, (sizes, checked)


def test_notes_say_what_the_pass_did() -> None:
    variant, setup = offline("generated_ptx", operator="lenet-conv2", sparsity=0.9)
    notes = variant.notes()
    o = setup.problem.operator
    assert notes["multiply_adds_deleted"] == (o.weights - setup.problem.layer.nonzero) * 2
    assert notes["slices"] * variant.convolution.shape.filters == o.filters
    assert notes["ptx_instructions_deleted"] >= notes["multiply_adds_deleted"]
    assert 0 < notes["machine_instructions_deleted"] < notes["machine_instructions_dense"]
    assert 0 < notes["cubin_kib"] < notes["cubin_kib_dense"] and notes["ptx_kib"] < notes["ptx_kib_dense"]


def test_large_tiles_go_into_dynamic_local_memory() -> None:
    """Strided tiles need more than the 48 KiB that a kernel may declare."""
    variant, _ = offline("generated_ptx", operator="alexnet-conv1", sparsity=0.98)
    engine = variant.convolution
    assert template.local_bytes(engine.operator, engine.shape) > 48 << 10 and all(a.code for a in engine.artifacts)
