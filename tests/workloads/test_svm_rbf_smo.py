"""Training: the model agrees with LIBSVM on every device; bad input is named."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from perfport import backend, workload
from perfport.backend import OpenDevice
from perfport.model.errors import CompileError, UnavailableError, UnsupportedError, UsageError
from perfport.workload import read_source
from perfport.workloads.svm_rbf.smo import SmoTrain, dual_objective
from perfport.workloads.svm_rbf.variants.smo import SmoFirstOrder, SmoResident, SmoSecondOrder, SmoWorkingSets

FOLDER = Path(workload.discover()["svm_rbf"].folder)
BY_PAIRS = (SmoFirstOrder, SmoSecondOrder, SmoResident)
VARIANTS = (*BY_PAIRS, SmoWorkingSets)
SMALL = {"points": 140, "dims": 5, "C": 2.0}
GPU_SHAPE = {"group": 64, "lanes": 16, "width": 4, "lane_points": 1, "groups_per_unit": 4}


def problem(seed: int = 3, **parameters: Any) -> SmoTrain:
    return SmoTrain(SmoTrain.Parameters(**parameters), seed)


def trained(device: OpenDevice, cls: type, task: SmoTrain, **tunables: Any) -> tuple[Any, dict[str, np.ndarray]]:
    chosen = {name: tunable.default_for(device.info) for name, tunable in cls.tunables.items()} | tunables
    setup = workload.Setup(workload.Session(device, task, FOLDER), chosen, {})
    variant = cls(setup)
    for output in setup.outputs.values():
        device.fill(output.buffer, 0xFF)
    variant.launch()
    device.finish()
    return variant, {name: device.read(o.buffer, o.dtype, o.shape) for name, o in setup.outputs.items()}


@cache
def small(device: OpenDevice, cls: type) -> tuple[Any, dict[str, np.ndarray]]:
    """One training of the small problem with room for all rows."""
    return trained(device, cls, problem(**SMALL))


def failures(task: SmoTrain, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: error for name, error in task.check(outputs).items() if not error.passed}


# --- on devices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", VARIANTS)
@pytest.mark.parametrize("preset", ["tiny", "quick"])
def test_the_model_is_libsvms(device: OpenDevice, cls: type, preset: str) -> None:
    task = problem(**SmoTrain.presets[preset])
    variant, outputs = trained(device, cls, task)
    assert not failures(task, outputs)
    notes = variant.notes()
    assert notes["converged"] and notes["support_vectors"] == np.count_nonzero(outputs["alpha"])
    if cls in BY_PAIRS:
        assert notes["cache_hits"] + notes["rows_computed"] == 2 * notes["iterations"]
    assert notes["support_vectors"] <= notes["rows_computed"] <= task.points  # no row twice: the cache holds all
    assert set(notes["kernel_seconds"]) == {"reset", "model", *cls.step_kernels}
    assert all(seconds > 0 for seconds in notes["kernel_seconds"].values())


@pytest.mark.parametrize("cls", VARIANTS)
def test_the_shape_that_gpus_get_works_everywhere(device: OpenDevice, cls: type) -> None:
    task = problem(**SMALL)
    assert not failures(task, trained(device, cls, task, **GPU_SHAPE)[1])


@pytest.mark.parametrize("cls", BY_PAIRS)
@pytest.mark.parametrize("slots", [2, 5, 40])
def test_a_small_cache_changes_no_bit(device: OpenDevice, cls: type, slots: int) -> None:
    whole, expected = small(device, cls)
    row_mb = 4 * whole.padded / 2**20
    variant, outputs = trained(device, cls, problem(**SMALL, cache_mb=(slots + 0.5) * row_mb))
    assert variant.slots == slots < whole.slots
    notes, free = variant.notes(), whole.notes()
    assert notes["iterations"] == free["iterations"]
    assert notes["rows_computed"] > free["rows_computed"]
    assert all(np.array_equal(outputs[name], expected[name]) for name in expected)


@pytest.mark.parametrize("slots", [2, 5, 40])
def test_a_small_cache_makes_small_sets(device: OpenDevice, slots: int) -> None:
    task = problem(**SMALL, cache_mb=(slots + 0.5) * 4 * 144 / 2**20)
    variant, outputs = trained(device, SmoWorkingSets, task, lanes=1)
    assert variant.slots == slots and 2 <= variant.members <= slots
    assert not failures(task, outputs) and variant.notes()["rows_computed"] > task.points


def in_one_launch(device: OpenDevice, monkeypatch: pytest.MonkeyPatch, groups: int, **tunables: Any) -> Any:
    """Train by as many work-groups, though the device may not promise to run them at the same time."""
    monkeypatch.setattr(SmoResident, "most_groups", lambda variant: groups)
    task = problem(**SMALL)
    return task, *trained(device, SmoResident, task, **tunables)


@pytest.mark.parametrize("tunables", [{}, {**GPU_SHAPE, "staged": 1}, {**GPU_SHAPE, "staged": 0, "lane_points": 4}])
def test_groups_that_wait_for_each_other(
    device: OpenDevice, monkeypatch: pytest.MonkeyPatch, tunables: dict[str, int]
) -> None:
    if device.info.compute_units < 2:
        pytest.skip("needs two compute units")
    monkeypatch.setattr("perfport.workloads.svm_rbf.variants.smo.POLLS", 1 << 27)  # others may keep the cores busy
    task, variant, outputs = in_one_launch(device, monkeypatch, 2, **tunables)
    assert variant.groups == 2 and bool(variant.staged_words) == bool(tunables.get("staged"))
    assert not failures(task, outputs)
    assert variant.notes()["iterations"] == small(device, SmoResident)[0].notes()["iterations"]


def test_a_group_that_waits_in_vain_is_an_error(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfport.workloads.svm_rbf.variants.smo.POLLS", 1000)
    launch = SmoResident._run
    monkeypatch.setattr(SmoResident, "_run", lambda variant, *args, **more: (
        setattr(variant, "groups", 1), launch(variant, *args, **more))[1])  # fmt: skip
    with pytest.raises(UnsupportedError, match="at the same time"):
        in_one_launch(device, monkeypatch, 2)


@pytest.mark.parametrize("cls", VARIANTS)
def test_launches_are_equal_and_start_from_nothing(device: OpenDevice, cls: type) -> None:
    variant, first = small(device, cls)
    variant.launch()
    setup_outputs = zip(first.values(), variant.outputs, strict=True)
    assert all(np.array_equal(value, device.read(buffer, value.dtype, value.shape)) for value, buffer in setup_outputs)


@pytest.mark.parametrize("dims", [1, 17])
def test_dimensions_and_points_that_fill_no_vector(device: OpenDevice, dims: int) -> None:
    task = problem(points=33, dims=dims)
    assert not failures(task, trained(device, SmoSecondOrder, task)[1])


@pytest.mark.parametrize("cls", VARIANTS)
def test_two_points(device: OpenDevice, cls: type, tmp_path: Path) -> None:
    file = tmp_path / "two.txt"
    file.write_text("1 1:1.0 2:0.5\n-1 1:-1.0 2:0.25\n")
    task = problem(source=str(file), C=100.0)
    outputs = trained(device, cls, task)[1]
    assert not failures(task, outputs)
    assert outputs["alpha"][0] == outputs["alpha"][1] > 0


@pytest.mark.parametrize("penalty", [0.01, 1000.0])
def test_many_bounded_and_none_bounded(device: OpenDevice, penalty: float) -> None:
    task = problem(points=60, dims=30, C=penalty, tau=5e-5)  # relative to so small an objective 5e-4 is too coarse
    outputs = trained(device, SmoFirstOrder, task)[1]
    assert not failures(task, outputs)
    bounded = int((outputs["alpha"] == np.float32(penalty)).sum())
    assert (bounded > 30) if penalty < 1 else (bounded == 0)


@pytest.mark.parametrize("cls", VARIANTS)
def test_equal_points_of_both_classes(device: OpenDevice, cls: type, tmp_path: Path) -> None:
    """eta is 0 between equal points: the step must end at a bound."""
    file = tmp_path / "equal.txt"
    file.write_text("".join(f"{label} 1:{x} 2:1\n" for x in (0.1, 0.5, 0.9) for label in (1, -1, 1)))
    task = problem(source=str(file), C=1.0, gamma=0.5, tau=5e-6)
    variant, outputs = trained(device, cls, task)
    errors = task.check(outputs)
    assert variant.notes()["converged"]
    # Which of equal points carries the weight is arbitrary, so that support vectors are not compared.
    assert all(errors[name].passed for name in ("alpha.feasible", "alpha.objective", "decision"))


def test_uneven_team_is_refused(device: OpenDevice) -> None:
    with pytest.raises(UnsupportedError, match=r"group \(32\) must be a multiple of lanes \(64\)"):
        trained(device, SmoFirstOrder, problem(**SMALL), group=32, lanes=64)


@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
@pytest.mark.parametrize(
    ("variant", "groups"), [(SmoSecondOrder, 157), (SmoFirstOrder, 157), (SmoResident, 1), (SmoResident, 132),
                            (SmoWorkingSets, 250)]
)  # fmt: skip
@pytest.mark.parametrize("slots", [1000, 5000])
def test_compiles_for_cuda(target: str, variant: type, groups: int, slots: int) -> None:
    macros = {name: tunable.default["gpu"] if isinstance(tunable.default, dict) else tunable.default
              for name, tunable in variant.tunables.items()}  # fmt: skip
    resident = int(variant is SmoResident)
    sizes: dict[str, int] = {"NPOINTS": 5000, "PADDED": 5000, "MEMBERS": 500, "TILE": 32, "FILLERS": 4}
    sizes |= {"CHUNK": -(-5000 // groups), "GROUPS": groups, "SLOTS": slots, "FIRST_ORDER": variant.first_order}
    sizes |= {"RESIDENT": resident, "STAGED": int(groups == 132), "STAGED_WORDS": 39 * 784, "POLLS": 1000}
    sizes |= {"STEP_LIMIT": 1000}
    floats = {"GAMMA": "0.01f", "PENALTY": "1.0f", "TAU": "0.0005f"}
    source = read_source(FOLDER / "kernels" / variant.kernels)
    named = {name.upper(): value for name, value in macros.items()}
    try:
        artifact = backend.get("cuda").build(variant.kernels, source, {**named, **sizes, **floats}, target)
    except UnavailableError as error:
        pytest.skip(str(error))
    except CompileError as error:
        pytest.fail(error.log)
    assert artifact.code


# --- the problem itself -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task() -> SmoTrain:
    return problem(**SMALL)


@pytest.fixture
def model(task: SmoTrain) -> dict[str, np.ndarray]:
    """LIBSVM's model as outputs."""
    from sklearn.svm import SVC

    svc = SVC(C=float(task.penalty), gamma=float(task.gamma), tol=1e-9).fit(task.matrix.astype(np.float64), task.labels)
    alpha = np.zeros(task.points)
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    assert set(svc.classes_) == {-1, 1}
    return {"alpha": alpha, "b": -svc.intercept_}


def test_libsvms_model_passes_and_predicts(task: SmoTrain, model: dict[str, np.ndarray]) -> None:
    assert not failures(task, model)
    assert 0.7 < np.mean(np.sign(task.reference["decision"]) == task.labels) < 1.0  # the classes overlap


def test_objective_against_the_definition(task: SmoTrain, model: dict[str, np.ndarray]) -> None:
    x, y, alpha = task.matrix.astype(np.float64), task.labels, model["alpha"]
    kernel = np.exp(-float(task.gamma) * ((x[:, None] - x) ** 2).sum(-1))
    expected = alpha.sum() - 0.5 * np.einsum("i,j,i,j,ij", alpha, alpha, y, y, kernel)
    assert dual_objective(alpha * y, task.margins(alpha * y)) == pytest.approx(expected, rel=1e-12)


def test_each_criterion_fails_for_its_own_fault(task: SmoTrain, model: dict[str, np.ndarray]) -> None:
    free = np.flatnonzero((model["alpha"] > 0.1) & (model["alpha"] < 1.9))
    for change, expected in [
        ({"b": model["b"] + 1.1e-3}, {"b"}),
        ({"b": model["b"] + 2e-3}, {"b", "decision"}),
        ({"alpha": model["alpha"] * 1.01}, {"alpha.feasible", "alpha.objective", "decision"}),
        ({"alpha": np.zeros(task.points)}, {"alpha.objective", "alpha.support_vectors", "decision", "decision.signs"}),
        ({"alpha": np.where(np.arange(task.points) == free[0], np.nan, model["alpha"])}, set(task.check(model))),
        ({"b": np.full(1, np.nan)}, set(task.check(model))),
    ]:
        assert expected <= set(failures(task, {**model, **change})), change
    assert set(failures(task, {**model, "b": model["b"] + 1.1e-3})) == {"b"}
    few = np.where(np.arange(task.points) < 3, 1e-9, 0) + model["alpha"]
    few[np.flatnonzero(model["alpha"] == 0)[:2]] = 1e-9
    assert set(failures(task, {**model, "alpha": few})) == {"alpha.support_vectors"}


def test_defaults_follow_the_data() -> None:
    whole = problem(source="breast_cancer")
    assert (whole.points, whole.dims) == (569, 30)
    assert float(whole.gamma) == pytest.approx(1 / (30 * whole.matrix.astype(np.float64).var()), rel=1e-6)
    assert problem(source="breast_cancer", gamma=0.5).gamma == np.float32(0.5)
    digits = problem(source="digits")
    assert np.unique(digits.labels).tolist() == [-1, 1] and digits.points == 1797
    assert problem(source="digits", points=50).points == 50


def test_classes_choose_points_and_signs() -> None:
    from sklearn.datasets import load_digits

    _, labels = load_digits(return_X_y=True)
    task = problem(source="digits", classes=(3, 8))
    assert task.points == np.isin(labels, (3, 8)).sum()
    assert np.array_equal(task.labels, np.where(labels[np.isin(labels, (3, 8))] == 8, 1, -1))
    part = problem(source="digits", classes=(8, 3), points=100)
    assert part.points == 100 and set(part.labels) == {-1, 1}


def test_generated_data_depends_on_the_seed_alone() -> None:
    one, same, other = problem(**SMALL), problem(**SMALL), problem(seed=4, **SMALL)
    assert np.array_equal(one.matrix, same.matrix) and np.array_equal(one.labels, same.labels)
    assert not np.array_equal(one.matrix, other.matrix)


def test_work_counts_the_rows_of_support_vectors(task: SmoTrain, model: dict[str, np.ndarray]) -> None:
    work = task.work()
    assert work.flops == 3 * task.points * task.dims * np.count_nonzero(model["alpha"])
    assert work.read_bytes == 4 * task.points * (task.dims + 1)
    assert task.metric_value(1.5) == 1.5


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({**SMALL, "C": 0.0}, "C: 0.0"),
        ({**SMALL, "C": float("nan")}, "C: nan"),
        ({**SMALL, "gamma": 0.0}, "gamma: 0.0"),
        ({**SMALL, "gamma": -1.0}, "gamma: -1.0"),
        ({**SMALL, "gamma": float("inf")}, "gamma: inf"),
        ({**SMALL, "points": 1}, "points: 1"),
        ({**SMALL, "points": 0}, "points: 0"),
        ({"points": 10}, "'points' and 'dims'"),
        ({**SMALL, "classes": (1, 2)}, "classes"),
        ({"source": "digits", "dims": 3}, "'dims'"),
        ({"source": "digits", "classes": (3, 3)}, r"classes: \[3, 3\]"),
        ({"source": "digits", "classes": (3, 11)}, "classes: 'digits' has no label 11"),
        ({"source": "digits", "classes": (3, 8), "points": 1000}, "points: 1000"),
        ({"source": "digits", "points": 5000}, "points: 5000"),
        ({"source": "./no_such_file"}, "source: './no_such_file'"),
    ],
)
def test_bad_input_is_named(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        problem(**parameters)


@pytest.mark.parametrize("parameters", [{"tau": 0.0}, {"cache_mb": -1.0}, {"penalty": 1.0}, {"classes": (1, 2, 3)}])
def test_bad_parameters_are_named(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(parameters))):
        problem(**SMALL, **parameters)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("1 1:1\n1 1:2\n1 1:3\n", "one class"),
        ("1 1:1\n", "points: the data has 1"),
        ("1 1:nan\n-1 1:2\n", "NaN"),
        ("1 1:1\n-1 1:1\n", "gamma"),
        ("", "no points|not a LIBSVM"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, lines: str, named: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(lines)
    with pytest.raises(UsageError, match=named):
        problem(source=str(file))
