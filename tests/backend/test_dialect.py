"""The kernel dialect: what OpenCL C allows and CUDA C++ misreads is found by a lint; what both offer means the same."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from perfport import backend, workload
from perfport.backend import OpenDevice

FILES = sorted(
    [
        *Path(str(files("perfport.measure.kernels"))).rglob("*.cl"),
        *(path for one in workload.discover().values() for path in one.folder.rglob("*.cl")),
    ]
)
VECTOR = r"(?:u?char|u?short|u?int|u?long|float|double|half)(?:2|3|4|8|16)"
RULES = {
    "vector literal: a comma expression in C++, use MAKE_ or SPLAT_": rf"\(\s*{VECTOR}\s*\)\s*\(",
    "component by number: CUDA's vectors have none": r"\.s[0-9a-fA-F]+\b",
    "half of a vector: CUDA's float2 and float4 have none": r"\.(?:lo|hi|even|odd)\b",
    "swizzle: CUDA's vectors have none": r"\.(?=[xyzw]{2,4}\b)[xyzw]+",
    "array in local memory: use LOCAL_ARRAY or LOCAL_ARENA": r"__local\s+[\w\s]*\w\s*\[",
    "OpenCL's unprefixed qualifier": r"(?<!\w)(?:kernel\s+void|global\s+\w|local\s+(?:float|u?int)\b|constant\s+\w)",
    "double constant: add an f": r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?![\w.])",
    "double": r"\bdouble\b",
}


def lint(text: str) -> list[str]:
    """Return ``line: rule`` for each line of a kernel that breaks a rule; comments and strings do not count.

    Double precision is for kernels that enable ``cl_khr_fp64``: elsewhere it is a slip that costs a GPU dearly.
    """
    meant = "cl_khr_fp64 : enable" in text
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return [
        f"{number}: {rule}"
        for number, line in enumerate(text.splitlines(), 1)
        for rule, pattern in RULES.items()
        if re.search(pattern, line) and not (meant and rule.startswith("double"))
    ]


def test_there_are_kernels_to_lint() -> None:
    assert {"stream.cl", "flush.cl", "rbf_rows.cl", "arg_extrema.cl"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_kernels_keep_to_the_dialect(path: Path) -> None:
    assert lint(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_resident_groups_are_said_in_the_body_too(path: Path) -> None:
    """OpenCL has no attribute for them, NVIDIA's PTX has."""
    text = path.read_text()
    heads = re.findall(r"REQD_GROUP_RESIDENT(\(.*?\)) void [^{]*\{\s*(.*);", text)
    assert len(heads) == text.count("REQD_GROUP_RESIDENT")
    for arguments, first in heads:
        assert first == f"RESIDENT_GROUPS{arguments}"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("float4 v = (float4)(a, b, c, d);", "vector literal"), ("v = ( float16 ) (0.0f);", "vector literal"),
        ("uint2 v = (uint2)(1, 2);", "vector literal"), ("x = v.s0;", "component by number"),
        ("v.sF = x;", "component by number"), ("double x;", "double"),
        ("__local unsigned int t[4 * N];", "array in local memory"),
        ("x = v.lo;", "half of a vector"), ("f(w.hi.x);", "half of a vector"), ("v.xy = w.zw;", "swizzle"),
        ("__local float tile[32];", "array in local memory"),
        ("kernel void f() {", "unprefixed"), ("f(global float *x)", "unprefixed"), ("x = 1.0 * y;", "double constant"),
        ("x = 1.;", "double constant"), ("x = .5;", "double constant"), ("x = 1e-7;", "double constant"),
        ("x = 2.5E+3 + y;", "double constant"),
    ],
)  # fmt: skip
def test_the_lint_catches(line: str, rule: str) -> None:
    assert any(rule in found for found in lint(f"int a;\n{line}\n")) and lint(f"int a;\n{line}\n")[0].startswith("2: ")


def test_double_precision_is_allowed_where_it_is_enabled() -> None:
    line = "double d = 1.0;"
    assert lint(line) and not lint(f"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n{line}")


@pytest.mark.parametrize(
    "line",
    [
        "float4 v = MAKE_FLOAT4(a, b, c, d);", "x = v.x + v.w;", "__local float *p = arena;", "x = 1.0f + .5f - 1e-7f;",
        "LOCAL_ARRAY(float, tile, 33);", "size_t i = (size_t)(4 * k);", "x = (float)(1u << 3);",
        "/* (float4)(0) in v.s0 */",
        "// 1.0 and double", "x = 0x85EBCA6Bu;", "__local const float *part = (a ? b : c) + r;", "__kernel void f(",
        "f(__global float *x)", "i = n3.x;",
    ],
)  # fmt: skip
def test_the_lint_lets_pass(line: str) -> None:
    assert lint(line) == []


def run(
    device: OpenDevice, body: str, data: np.ndarray, out: int, dtype: type = np.float32, items: int = 1
) -> np.ndarray:
    """Run a kernel body over ``x`` (floats) or ``u`` (the same bits as uints), writing ``y`` or ``v``."""
    source = f"""
    __kernel void test(__global const float *x, __global const uint *u, __global float *y, __global uint *v) {{
        uint i = get_global_id(0); (void)i;
        {body}
    }}"""
    built = device.load(backend.get(device.info.backend).build("dialect.cl", source, {}, device.target))
    source_buffer, target = device.upload(data), device.empty(4 * out)
    device.fill(target, 0xFF)
    device.launch(built.kernel("test"), items, 1, source_buffer, source_buffer, target, target)
    return device.read(target, dtype, (out,))


X = np.random.default_rng(3).normal(size=64).astype(np.float32)
U = np.random.default_rng(4).integers(0, 2**32, 64, dtype=np.uint32)


def test_make_and_splat(device: OpenDevice) -> None:
    body = """
    vstore4(MAKE_FLOAT4(x[0], x[1], x[2], x[3]), 0, y);
    vstore4(SPLAT_FLOAT4(x[4]), 1, y);
    vstore8(SPLAT_FLOAT8(x[5]), 1, y);
    vstore16(SPLAT_FLOAT16(x[6]), 1, y);
    float2 two = MAKE_FLOAT2(x[7], x[8]);
    vstore2(two, 16, y);
    """
    expected = np.concatenate([X[:4], [X[4]] * 4, [X[5]] * 8, [X[6]] * 16, X[7:9]])
    assert np.array_equal(run(device, body, X, 34), expected)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_vector_loads_and_stores(device: OpenDevice, width: int) -> None:
    found = run(device, f"vstore{width}(vload{width}(1, x), 2, y);", X, 3 * width)
    assert np.isnan(found[: 2 * width]).all() and np.array_equal(found[2 * width :], X[width : 2 * width])


@pytest.mark.parametrize("width", [4, 8, 16])
def test_arithmetic_of_wide_vectors(device: OpenDevice, width: int) -> None:
    body = f"""
    float{width} a = vload{width}(0, x), b = vload{width}(1, x);
    vstore{width}(a + b, 0, y);
    vstore{width}(a - b, 1, y);
    vstore{width}(a * b, 2, y);
    """
    a, b = X[:width], X[width : 2 * width]
    assert np.allclose(run(device, body, X, 3 * width), np.concatenate([a + b, a - b, a * b]), rtol=1e-6)


def test_arithmetic_with_scalars_and_integers(device: OpenDevice) -> None:
    body = """
    vstore4(vload4(0, x) * 2.0f, 0, y);
    vstore4(1.0f - vload4(0, x), 1, y);
    uint4 w = vload4(0, u);
    vstore4((w ^ vload4(1, u)) + w, 2, v);
    int4 n = MAKE_INT4(7, -7, 8, 9) / MAKE_INT4(2, 2, 3, 3);
    vstore4(MAKE_UINT4((uint)n.x, (uint)n.y, (uint)n.z, (uint)n.w), 3, v);
    """
    found = run(device, body, X, 16)
    bits = X.view(np.uint32)
    assert np.array_equal(found[:8], np.concatenate([2 * X[:4], 1 - X[:4]]))
    assert np.array_equal(found[8:].view(np.uint32), [*((bits[:4] ^ bits[4:8]) + bits[:4]), 3, 2**32 - 3, 2, 3])


@pytest.mark.parametrize("width", [4, 8, 16])
def test_horizontal_sums(device: OpenDevice, width: int) -> None:
    found = run(device, f"y[0] = hsum{width}(vload{width}(1, x));", X, 1)[0]
    assert found == pytest.approx(X[width : 2 * width].astype(np.float64).sum(), abs=1e-5)
    whole = np.arange(1, 65, dtype=np.float32)
    assert run(device, f"y[0] = hsum{width}(vload{width}(0, x));", whole, 1)[0] == width * (width + 1) / 2


@pytest.mark.parametrize("width", [4, 8, 16])
def test_extrema_of_two_and_of_components(device: OpenDevice, width: int) -> None:
    values = np.random.default_rng(width).permutation(np.arange(-16, 16)).astype(np.float32)
    pairs = values[: 2 * width].reshape(2, width)
    for of, horizontal, expected in (("LOWER_OF", "hmin", np.minimum), ("HIGHER_OF", "hmax", np.maximum)):
        body = f"vstore{width}({of}(vload{width}(0, x), vload{width}(1, x)), 0, y);"
        assert (run(device, body, values, width) == expected(*pairs)).all()
        for row in range(2):
            found = run(device, f"y[0] = {horizontal}{width}(vload{width}({row}, x));", values, 1)[0]
            assert found == expected.reduce(pairs[row])
        assert run(device, f"y[0] = {of}(x[0], x[1]);", values, 1)[0] == expected(values[0], values[1])


def test_dot(device: OpenDevice) -> None:
    found = run(device, "y[0] = dot(vload4(0, x), vload4(1, x)); y[1] = dot(vload2(0, x), vload2(1, x));", X, 2)
    wide = X.astype(np.float64)
    assert np.allclose(found, [wide[:4] @ wide[4:8], wide[:2] @ wide[2:4]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_fma_and_exp_of_vectors(device: OpenDevice, width: int) -> None:
    body = f"""
    float{width} a = vload{width}(0, x), b = vload{width}(1, x), c = vload{width}(2, x);
    vstore{width}(fma(a, b, c), 0, y);
    vstore{width}(exp(a), 1, y);
    """
    found = run(device, body, X, 2 * width)
    a, b, c = (X[k * width : (k + 1) * width].astype(np.float64) for k in range(3))
    assert np.array_equal(found[:width], (a * b + c).astype(np.float32)), "one rounding"
    assert np.allclose(found[width:], np.exp(a), rtol=5e-7)


def test_scalar_exp_keeps_its_accuracy(device: OpenDevice) -> None:
    data = np.linspace(-80, 0, 64, dtype=np.float32)
    assert np.allclose(run(device, "y[i] = exp(x[i]);", data, 64, items=64), np.exp(data.astype(np.float64)), rtol=5e-7)


def test_subnormals_are_kept(device: OpenDevice) -> None:
    found = run(device, "y[0] = x[0] * 0.5f;", np.full(1, 1.5e-38, np.float32), 1)[0]
    assert found == np.float32(7.5e-39) != 0


def test_select_chooses_the_second_where_the_condition_holds(device: OpenDevice) -> None:
    body = "y[2 * i] = select(1.0f, 2.0f, x[i] > 0.0f); v[2 * i + 1] = select(3u, 4u, (int)(u[i] & 1u));"
    found = run(device, body, X, 128, items=64)
    assert np.array_equal(found[::2], np.where(X > 0, 2.0, 1.0))
    assert np.array_equal(found.view(np.uint32)[1::2], np.where(X.view(np.uint32) & 1, 4, 3))


def test_select_and_comparisons_of_vectors(device: OpenDevice) -> None:
    body = """
    float4 a = vload4(0, x), b = vload4(1, x);
    vstore4(select(a, b, b < a), 0, y);
    vstore4(select(a, b, b > a), 1, y);
    vstore4(select(MAKE_INT4(1, 2, 3, 4), MAKE_INT4(5, 6, 7, 8), a > b), 2, (__global int *)v);
    """
    a, b = (X[4 * k : 4 * k + 4] for k in range(2))
    found = run(device, body, X, 12)
    assert np.array_equal(found[:4], np.minimum(a, b)) and np.array_equal(found[4:8], np.maximum(a, b))
    assert np.array_equal(found.view(np.int32)[8:], np.where(a > b, [5, 6, 7, 8], [1, 2, 3, 4]))
    assert 0 < np.count_nonzero(a > b) < 4, "both outcomes"


def test_integer_products(device: OpenDevice) -> None:
    small = U & 0xFFF
    body = """
    v[3 * i] = mad24(u[i], u[(i + 1) % 64], 5u);
    v[3 * i + 1] = mul24(u[i], 3u);
    v[3 * i + 2] = (uint)mad24(-(int)u[i], 7, 1);
    """
    found = run(device, body, small, 192, np.uint32, items=64).reshape(64, 3)
    wide = small.astype(np.int64)
    assert np.array_equal(found[:, 0], wide * np.roll(wide, -1) + 5)
    assert np.array_equal(found[:, 1], 3 * wide) and np.array_equal(found[:, 2].view(np.int32), 1 - 7 * wide)
    high = run(device, "v[i] = mul_hi(u[i], u[63 - i]);", U, 64, np.uint32, items=64)
    assert np.array_equal(high, (U.astype(np.uint64) * U[::-1].astype(np.uint64)) >> np.uint64(32))


def test_dot_of_four_bytes(device: OpenDevice) -> None:
    found = run(device, "v[i] = DOT4_U8(u[i], u[63 - i], 1000u);", U, 64, np.uint32, items=64)
    a, b = (words.copy().view(np.uint8).reshape(64, 4).astype(np.int64) for words in (U, U[::-1]))
    assert np.array_equal(found, (a * b).sum(axis=1) + 1000)
    extreme = np.full(64, 0xFFFFFFFF, np.uint32)
    assert (run(device, "v[i] = DOT4_U8(u[i], u[i], 0u);", extreme, 64, np.uint32, items=64) == 4 * 255 * 255).all()


def test_bits_and_conversions(device: OpenDevice) -> None:
    body = "v[2 * i] = as_uint(x[i]); y[2 * i + 1] = as_float(u[i]) + convert_float(3u);"
    found = run(device, body, X, 128, items=64)
    assert np.array_equal(found.view(np.uint32)[::2], X.view(np.uint32))
    assert np.array_equal(found[1::2], X + np.float32(3))


def test_atomics_and_local_arrays(device: OpenDevice) -> None:
    source = """
    __kernel void count(__global uint *out) {
        LOCAL_ARRAY(uint, sum, 1);
        if (get_local_id(0) == 0) sum[0] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_add(&sum[0], (uint)get_local_id(0));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) == 0) { atomic_add(&out[0], sum[0]); atomic_inc(&out[1]); }
        atomic_max(&out[2], (uint)get_global_id(0));
        atomic_min(&out[3], (uint)get_global_id(0) + 5u);
        atomic_or(&out[4], 1u << (get_global_id(0) % 32));
    }"""
    built = device.load(backend.get(device.info.backend).build("atomics.cl", source, {}, device.target))
    out = device.upload(np.array([0, 0, 0, 2**31, 0], np.uint32))
    device.launch(built.kernel("count"), 10, 16, out)
    assert device.read(out, np.uint32, (5,)).tolist() == [10 * 120, 10, 159, 5, 2**32 - 1]
