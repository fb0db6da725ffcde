"""gdn: the float64 reference against finite differences, the parametrisation, the data, what bad input gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import ValidationError

from perfport.workload import UsageError
from perfport.workloads.gdn import data, problems, reference
from perfport.workloads.gdn.problems import Backward, Forward, GammaGradient, LayerParameters, Reduction, Step

N, P = 5, 7
STEP = 1e-6


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """w, gamma (asymmetric), beta and delta in float64."""
    rng = np.random.default_rng(seed)
    gamma = rng.uniform(0.05, 1, (N, N))
    assert np.abs(gamma - gamma.T).max() > 0.1
    return rng.normal(size=(N, P)), gamma, rng.uniform(0.5, 1.5, N), rng.normal(size=(N, P))


def differences(loss: Any, at: np.ndarray) -> np.ndarray:
    """Central differences of a scalar function."""
    out = np.empty_like(at)
    for index in np.ndindex(*at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * STEP
            ends.append(loss(moved))
        out[index] = (ends[0] - ends[1]) / (2 * STEP)
    return out


@pytest.mark.parametrize("inverse", [False, True])
def test_gradients_are_the_differences_of_the_forward_pass(inverse: bool) -> None:
    w, gamma, beta, delta = arguments(1)
    d = 1 / np.sqrt(reference.pool(w, gamma, beta))
    dgamma, dbeta = reference.parameter_gradients(delta, w, d, inverse)
    dw = reference.input_gradient(delta, w, d, gamma, inverse)
    for gradient, at, loss in (
        (dw, w, lambda v: (delta * reference.forward(v, gamma, beta, inverse)).sum()),
        (dgamma, gamma, lambda v: (delta * reference.forward(w, v, beta, inverse)).sum()),
        (dbeta, beta, lambda v: (delta * reference.forward(w, gamma, v, inverse)).sum()),
    ):
        assert np.allclose(gradient, differences(loss, at), rtol=1e-6, atol=1e-8)


def test_a_transposed_gamma_is_another_operator() -> None:
    w, gamma, beta, _ = arguments(2)
    assert np.abs(reference.forward(w, gamma, beta) - reference.forward(w, gamma.T, beta)).max() > 1e-2
    for i in range(N):  # the formula, written out
        z = beta[i] + sum(gamma[i, j] * w[j] ** 2 for j in range(N))
        assert np.allclose(reference.forward(w, gamma, beta)[i], w[i] / np.sqrt(z), rtol=1e-14)


def test_the_inverse_is_the_other_power_of_the_same_sum() -> None:
    w, gamma, beta, _ = arguments(3)
    product = reference.forward(w, gamma, beta) * reference.forward(w, gamma, beta, inverse=True)
    assert np.allclose(product, w * w, rtol=1e-14)


@pytest.mark.parametrize("least", [1e-6, 0.0])
def test_raw_parameters_and_their_gradient(least: float) -> None:
    raw = np.array([2.0, 0.7, 1.5 * reference.bound(least), 0.5 * reference.bound(least), -1.0])
    value = reference.effective(raw, least)
    assert np.allclose(value[:2], raw[:2] ** 2 - 2.0**-36) and (value >= least * (1 - 1e-9)).all()
    assert np.allclose(value[3:], least, atol=1e-15)
    for sign in (1.0, -1.0):
        gradient = reference.raw_gradient(np.full(5, sign), raw, least)
        above = sign * differences(lambda v: reference.effective(v, least).sum(), raw[:3])
        assert np.allclose(gradient[:3], above, rtol=1e-2 if least == 0 else 1e-5)
        below = 2 * reference.bound(least) * sign  # a step up passes, a step down does not
        assert np.allclose(gradient[3:], below if sign < 0 else 0.0)


def test_the_gradient_by_raw_parameters_through_the_whole_operator() -> None:
    w, _, _, delta = arguments(4)
    rng = np.random.default_rng(5)
    raw_gamma, raw_beta = rng.uniform(0.3, 1, (N, N)), rng.uniform(0.5, 1.5, N)

    def loss(gamma: np.ndarray, beta: np.ndarray) -> float:
        parameters = reference.effective(gamma, 0.0), reference.effective(beta, 1e-6)
        return float((delta * reference.forward(w, *parameters)).sum())

    gamma, beta = reference.effective(raw_gamma, 0.0), reference.effective(raw_beta, 1e-6)
    dgamma, dbeta = reference.parameter_gradients(delta, w, 1 / np.sqrt(reference.pool(w, gamma, beta)))
    by_gamma = differences(lambda v: loss(v, raw_beta), raw_gamma)
    by_beta = differences(lambda v: loss(raw_gamma, v), raw_beta)
    assert np.allclose(reference.raw_gradient(dgamma, raw_gamma, 0.0), by_gamma, rtol=1e-6, atol=1e-8)
    assert np.allclose(reference.raw_gradient(dbeta, raw_beta, 1e-6), by_beta, rtol=1e-6, atol=1e-8)


def spoiled(name: str, value: Any) -> dict[str, np.ndarray]:
    """Arguments of which one is bad."""
    w, gamma, beta, _ = arguments(6)
    return {"w": w, "gamma": gamma, "beta": beta, name: value}


def with_element(name: str, value: float) -> dict[str, np.ndarray]:
    bad = spoiled(name, None)
    w, gamma, beta, _ = arguments(6)
    bad[name] = {"w": w, "gamma": gamma, "beta": beta}[name]
    bad[name][(1,) * bad[name].ndim] = value
    return bad


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (spoiled("gamma", np.ones((N, N + 1))), r"gamma must have shape \(5, 5\) for 5 channels; got \(5, 6\)"),
        (spoiled("gamma", np.ones(N)), r"gamma must have shape \(5, 5\) for 5 channels; got \(5,\)"),
        (spoiled("beta", np.ones(N - 1)), r"beta must have shape \(5,\) for 5 channels; got \(4,\)"),
        (spoiled("beta", np.ones((N, 1))), r"beta must have shape \(5,\)"),
        (spoiled("w", np.ones((0, 3))), "w must be channels x positions"),
        (spoiled("w", np.ones(3)), r"w must be channels x positions.*\(3,\)"),
        (spoiled("gamma", np.ones((N, N), int)), "gamma must hold floating-point numbers; got int64"),
        (with_element("beta", 0.0), r"beta must be positive; beta\[1\] is 0.0"),
        (with_element("beta", -2.0), r"beta must be positive; beta\[1\] is -2.0"),
        (with_element("gamma", -1e-9), r"gamma must not be negative; gamma\[1, 1\] is -1e-09"),
        (with_element("gamma", np.nan), r"gamma must be finite; gamma\[1, 1\] is nan"),
        (with_element("beta", np.inf), r"beta must be finite; beta\[1\] is inf"),
        (with_element("w", -np.inf), r"w must be finite; w\[1, 1\] is -inf"),
    ],
)
def test_bad_arguments_are_named(bad: dict[str, np.ndarray], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        reference.check_arguments(**bad, where="here")


def saved_layer(folder: Path, **arrays: np.ndarray) -> str:
    path = folder / "layer.npz"
    np.savez(path, **arrays)
    return str(path)


def test_a_layer_from_a_file_is_used(tmp_path: Path) -> None:
    _, gamma, beta, _ = arguments(7)
    problem = forward(channels=N, height=2, width=3, layer=saved_layer(tmp_path, gamma=gamma, beta=beta))
    assert np.array_equal(problem.gamma, gamma.astype(np.float32))
    assert np.array_equal(problem.beta, beta.astype(np.float32))


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"gamma": np.ones((4, 4)), "beta": np.ones(5)}, r"layer.npz: gamma must have shape \(5, 5\).*\(4, 4\)"),
        ({"gamma": np.ones((5, 5)), "beta": np.zeros(5)}, "layer.npz: beta must be positive"),
        ({"gamma": -np.ones((5, 5)), "beta": np.ones(5)}, "layer.npz: gamma must not be negative"),
        ({"gamma": np.full((5, 5), np.nan), "beta": np.ones(5)}, "layer.npz: gamma must be finite"),
        ({"gamma": np.ones((5, 5))}, "layer.npz: holds no array beta"),
    ],
)
def test_bad_layers_are_named(tmp_path: Path, arrays: dict[str, np.ndarray], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        forward(channels=N, height=2, width=3, layer=saved_layer(tmp_path, **arrays))


def test_files_that_are_no_layers(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("gamma")
    for name, message in (("text.npz", "is not an .npz file"), ("missing.npz", "cannot be read")):
        with pytest.raises(UsageError, match=rf"{name}: {message}"):
            forward(channels=N, height=2, width=3, layer=str(tmp_path / name))


def forward(seed: int = 1, **parameters: Any) -> Forward:
    return Forward(Forward.Parameters(**parameters), seed)


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"channels": 0, "height": 3, "width": 3}, "channels"),
        ({"channels": 3, "height": -1, "width": 3}, "height"),
        ({"channels": 3, "height": 3}, "width"),
        ({"channels": 3, "height": 3, "width": 3, "batch": 0}, "batch"),
        ({"channels": 3, "height": 3, "width": 3, "layout": "hwcn"}, "layout"),
        ({"channels": 3, "height": 3, "width": 3, "beta_min": 0}, "beta_min"),
        ({"channels": 3, "height": 3, "width": 3, "chanels": 3}, "chanels"),
        ({"channels": 3, "height": 3, "width": 3, "source": "photos"}, "source"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        LayerParameters(**parameters)
    assert [error["loc"] for error in caught.value.errors()] == [(key,)]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"channels": 192, "height": 4096, "width": 4096}, "got 192 x 4096 x 4096 x 1"),
    ],
)
def test_parameters_that_do_not_fit_together(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        forward(**parameters)


def test_maps_larger_than_the_photographs() -> None:
    problem = forward(channels=16, height=425, width=100, source="filter_bank")
    with pytest.raises(UsageError, match="maps of at most 424 x 637; height x width is 425 x 100"):
        _ = problem.w


def test_layouts_hold_the_same_values() -> None:
    nchw, nhwc = (forward(channels=3, height=4, width=5, batch=2, layout=layout) for layout in ("nchw", "nhwc"))
    assert nchw.w.shape == (2, 3, 4, 5) and nhwc.w.shape == (2, 4, 5, 3)
    assert np.array_equal(nchw.w, nhwc.w.transpose(0, 3, 1, 2))
    every = np.arange(nchw.positions)
    assert np.array_equal(nchw.columns(nchw.w, every), nhwc.columns(nhwc.w, every))
    assert np.allclose(nchw.columns(nchw.d, every), nhwc.columns(nhwc.d, every), rtol=1e-6)
    assert np.array_equal(nchw.columns(nchw.w, every[[21]])[:, 0], nchw.w[1, :, 0, 1].astype(np.float64))


def test_inputs_are_drawn_by_seed() -> None:
    first, same, other = (forward(seed, channels=3, height=4, width=5) for seed in (1, 1, 2))
    assert np.array_equal(first.w, same.w) and np.array_equal(first.gamma, same.gamma)
    assert not np.array_equal(first.w, other.w) and not np.array_equal(first.gamma, other.gamma)
    assert not np.array_equal(first.w, first.delta)


def test_layers_are_asymmetric_and_fit_to_their_reference() -> None:
    gamma, beta = data.layer(32, 3, 1e-6)
    assert np.abs(gamma - gamma.T).max() > 0.01 and (gamma >= 0).all() and (beta > 0).all()
    reference.check_arguments(np.ones((32, 1)), gamma, beta)


def test_filter_bank_is_the_transform_of_each_pixels_neighbourhood() -> None:
    basis = data.cosines(6)
    assert np.allclose(basis @ basis.T, np.eye(6), atol=1e-14)
    maps = data.filter_bank(2, 9, 12, 10, 3)
    again, other = data.filter_bank(2, 9, 12, 10, 3), data.filter_bank(2, 9, 12, 10, 4)
    assert maps.shape == (2, 9, 12, 10) and maps.dtype == np.float32 and np.isfinite(maps).all()
    assert np.array_equal(maps, again) and not np.array_equal(maps, other)
    power = (maps.astype(np.float64) ** 2).mean(axis=(0, 2, 3))
    assert power[0] > 10 * power[1:].max() and (power > 0).all()  # channel 0 is the mean brightness
    assert np.isclose(maps.std(), 1.0, rtol=1e-5)


def test_generated_vectors_use_the_whole_index() -> None:
    low = np.arange(2000, dtype=np.uint64)
    a, b = data.uniform(low, 1), data.uniform(low + np.uint64(2**40), 1)
    assert a.min() >= -1 and a.max() < 1 and abs(a.mean()) < 0.05 and a.std() > 0.5
    assert len(np.unique(a)) > 1990 and not np.array_equal(a, b) and not np.array_equal(a, data.uniform(low, 2))


def test_work_is_the_problems_own() -> None:
    size = {"channels": 4, "height": 5, "width": 6, "batch": 2}
    maps, macs = 4 * 4 * 60, 16 * 60
    works = {cls: cls(cls.Parameters(**size), 1).work() for cls in (Forward, GammaGradient, Backward, Step)}
    assert [work.flops / macs for work in works.values()] == [2, 2, 4, 6]
    assert (works[Forward].read_bytes, works[Forward].write_bytes) == (maps + 80, maps)
    assert (works[GammaGradient].read_bytes, works[GammaGradient].write_bytes) == (3 * maps, 64)
    assert (works[Backward].read_bytes, works[Backward].write_bytes) == (3 * maps + 64, maps + 80)
    assert (works[Step].read_bytes, works[Step].write_bytes) == (2 * maps + 80, 2 * maps + 80)
    assert forward(**size, training=True).work().write_bytes == 2 * maps
    assert forward(**size).metric_value(2.0) == pytest.approx(macs * 1e-9)
    reduction = Reduction(Reduction.Parameters(channels=3, positions=10), 1)
    assert reduction.work().read_bytes == 360 and reduction.metric_value(2.0) == pytest.approx(180e-9)


def test_a_large_problem_is_checked_on_a_sample_with_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "WHOLE_MACS", 100)
    monkeypatch.setattr(problems, "SAMPLED_OUTPUTS", 40)
    monkeypatch.setattr(problems, "REFERENCE_POSITIONS", 7)
    size = {"channels": 4, "height": 5, "width": 6, "batch": 2}
    problem = Step(Step.Parameters(**size), 1)
    assert {0, 59} <= set(problem.compared.tolist()) and 2 < len(problem.compared) <= 12
    whole = [problem.columns(getattr(problem, name), np.arange(60)) for name in ("delta", "w")]
    d = 1 / np.sqrt(reference.pool(whole[1], *problem._weights))
    dgamma, dbeta = reference.parameter_gradients(*whole, d)
    assert np.allclose(problem.reference_dgamma, dgamma, rtol=1e-12)
    assert np.allclose(problem.reference_dbeta, dbeta, rtol=1e-12)
    u = np.zeros(240, np.float32)
    assert not problem.check({"u": u})["u"].passed and problem.check({"u": u})["u"].total == 240


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("name", ["u", "dw", "d"])
def test_beside_the_sample_every_output_enters_a_sum(
    monkeypatch: pytest.MonkeyPatch, layout: Literal["nchw", "nhwc"], name: str
) -> None:
    size = {"channels": 4, "height": 5, "width": 6, "batch": 2, "layout": layout}
    problem = forward(**size, training=True) if name == "d" else Step(Step.Parameters(**size), 1)
    columns = getattr(problem, f"reference_{name}").reshape(4, 2, 30)
    right = columns.transpose((1, 2, 0) if layout == "nhwc" else (1, 0, 2)).astype(np.float32).reshape(problem.w.shape)
    monkeypatch.setattr(problems, "WHOLE_MACS", 100)
    monkeypatch.setattr(problems, "SAMPLED_OUTPUTS", 40)
    monkeypatch.setattr(problems, "REFERENCE_POSITIONS", 7)
    problem = type(problem)(problem.parameters, 1)
    left = int(np.setdiff1d(np.arange(60), problem.compared)[-1])
    key = f"{name}, signed sums"
    assert problem.check({name: right})[key].passed
    wrong = right.reshape(2, 30, 4).copy() if layout == "nhwc" else right.reshape(2, 4, 30).transpose(0, 2, 1).copy()
    wrong[left // 30, left % 30, 2] *= 1.1
    wrong = wrong if layout == "nhwc" else wrong.transpose(0, 2, 1)
    errors = problem.check({name: np.ascontiguousarray(wrong).reshape(problem.w.shape)})
    assert errors[name].passed and not errors[key].passed, "the sample has not met it"


def test_the_check_can_fail_and_knows_the_classes() -> None:
    problem = forward(channels=4, height=5, width=6, layout="nhwc")
    u = np.ascontiguousarray(problem.reference_u.T, np.float32)
    assert problem.check({"u": u})["u"].passed
    for spoil in (1 + 2e-4, np.nan):
        bad = u.copy()
        bad[3, 2] *= spoil
        assert not problem.check({"u": bad})["u"].passed
        assert problem.check({"u": bad}, "", "tf32")["u"].passed == np.isfinite(spoil)
    assert not problem.check({"u": u * 1.01}, "", "tf32")["u"].passed
    assert not problem.check({"u": np.ascontiguousarray(u.T)})["u"].passed
    laid_out = u.reshape(problem.w.shape)
    assert problem.verify({"u": laid_out}).passed and not problem.verify({"u": laid_out.T}).passed
    assert not forward(channels=4, height=5, width=6, layout="nhwc", training=True).verify({"u": laid_out}).passed
