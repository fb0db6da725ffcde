"""gdn: every variant is right on every device, in both layouts and directions, at sizes that divide nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gdn_solver import GDN, Solver, problem_of, right, solve

from perfport.backend import OpenDevice
from perfport.workload import Peer, Session, Setup, UnsupportedError
from perfport.workloads.gdn.problems import Backward, Forward, GammaGradient, Reduction, Step
from perfport.workloads.gdn.variants import gamma_gradient, inputs
from perfport.workloads.gdn.variants.tiled import split_steps

__all__ = ["solve"]  # a fixture
LADDER = ("replicated", "naive", "shared_memory", "registers", "row_by_row", "column_per_group")
# Channels, height, width, batch. Words: odd sizes; vectors: multiples of 4. The first has tails in every direction.
ODD = {"channels": 13, "height": 5, "width": 7, "batch": 3}
EVEN = {"channels": 36, "height": 6, "width": 10, "batch": 2}
FORMS: list[dict[str, Any]] = [
    ODD, {**EVEN, "inverse": True}, {**ODD, "layout": "nhwc", "inverse": True}, {**EVEN, "layout": "nhwc"},
]  # fmt: skip
ONE = {"channels": 1, "height": 1, "width": 1}


def variants_of(*names: str) -> list[tuple[str, str]]:
    """Problem and name of every variant that is no peer and whose name holds one of ``names``."""
    return [
        (problem, name)
        for problem, variants in GDN.variants.items()
        for name, cls in variants.items()
        if not issubclass(cls, Peer) and any(part in name for part in names)
    ]


def test_every_variant_of_the_source_is_there() -> None:
    roles = {name: cls.role for name, cls in GDN.variants["gdn_gamma_gradient"].items()}
    assert [roles[name] for name in LADDER] == ["rung"] * 5 + ["control"]
    assert {"reduce_gemv_loop", "reduce_gemm_batched", "reduce_wide"} <= set(GDN.variants["gdn_reduction"])
    for problem, name in (
        ("gdn_forward", "fused_forward"),
        ("gdn_backward", "fused_backward"),
        ("gdn_step", "fused_step"),
    ):
        assert {name, f"{name}_streams", "tensor_core", "tensor_core_tf32"} <= set(GDN.variants[problem])
    assert all(cls.source and cls.title for variants in GDN.variants.values() for cls in variants.values())
    stated = {(figure.problem, figure.variant) for figure in GDN.published}
    assert stated and all(variant in GDN.variants[problem] for problem, variant in stated)


@pytest.mark.parametrize("name", LADDER)
def test_ladder(solve: Solver, name: str) -> None:
    for form in [*FORMS, ONE]:
        problem = problem_of("gdn_gamma_gradient", **form)
        right(problem, solve(problem, name))
    right(problem, solve(problem, name, group=32, **({} if name == "row_by_row" else {"batched": 1})))


def test_separate_gradients(solve: Solver) -> None:
    for form in [*FORMS, ONE]:
        problem = problem_of("gdn_backward", **form)
        right(problem, solve(problem, "separate_gradients"))
    right(problem, solve(problem, "separate_gradients", group=32))


@pytest.mark.parametrize("name", ["reduce_gemv_loop", "reduce_gemm_batched", "reduce_wide"])
def test_reduction(solve: Solver, name: str) -> None:
    for channels, positions in ((1, 1), (3, 77), (5, 260), (2, 4099)):
        problem = problem_of("gdn_reduction", channels=channels, positions=positions)
        right(problem, solve(problem, name))
    right(problem, solve(problem, name, group=512))


@pytest.mark.parametrize(
    ("tunable", "value"),
    [
        (name, value)
        for name, each in GDN.variants["gdn_reduction"]["reduce_wide"].tunables.items()
        for value in each.values
    ],
)
def test_wide_sums_with_every_tunable(solve: Solver, tunable: str, value: int) -> None:
    """Vectors that begin and end within a load, and one that has no whole load."""
    for channels, positions in ((2, 5), (3, 261)):
        problem = problem_of("gdn_reduction", channels=channels, positions=positions)
        right(problem, solve(problem, "reduce_wide", **{tunable: value}))


@pytest.mark.parametrize("form", range(len(FORMS)))
@pytest.mark.parametrize(
    "name",
    [
        "fused_step",
        "fused_step_streams",
        "tensor_core",
        "tensor_core_bf16",
        "tensor_core_tf32",
        "matrix_tile",
        "matrix_tile_tf32",
    ],
)
def test_step(solve: Solver, name: str, form: int) -> None:
    """Forward that saves D, and all three gradients: every kernel of an engine."""
    problem = problem_of("gdn_step", **FORMS[form])
    outputs = solve(problem, name)
    assert {key.removesuffix(".tf32") for key in outputs} == {"u", "dw", "dgamma", "dbeta"}
    right(problem, outputs)


@pytest.mark.parametrize(("problem", "name"), [
    pair for pair in variants_of("fused", "tensor_core", "matrix_tile") if pair[0] != "gdn_step"
])  # fmt: skip
def test_the_parts_of_a_step(solve: Solver, problem: str, name: str) -> None:
    """The same kernels, and those that save no D or sum no dbeta."""
    made = problem_of(problem, **ODD)
    right(made, solve(made, name))


@pytest.mark.parametrize("name", ["fused_forward", "fused_forward_streams", "tensor_core", "matrix_tile"])
def test_forward_for_training_saves_d(solve: Solver, name: str) -> None:
    problem = problem_of("gdn_forward", training=True, **ODD)
    outputs = solve(problem, name)
    assert set(outputs) == {"u", "d"}
    right(problem, outputs)


@pytest.mark.parametrize("name", ["fused_backward", "fused_backward_streams", "tensor_core", "matrix_tile"])
def test_sizes_of_one(solve: Solver, name: str) -> None:
    for size in (ONE, {"channels": 13, "height": 1, "width": 1, "batch": 37}):
        problem = problem_of("gdn_backward", **size)
        right(problem, solve(problem, name))


SHAPES: dict[str, list[dict[str, Any]]] = {
    "fused_forward": [
        {"item_rows": 4, "item_columns": 8, "down": 8, "across": 8, "depth": 16, "staged": 16, "unroll": 2},
        {"item_rows": 12, "item_columns": 4, "down": 4, "across": 16, "depth": 4, "staged": 32, "fetches": 3},
        {"item_rows": 8, "item_columns": 4, "down": 8, "across": 32, "depth": 8, "staged": 96, "unroll": 1},
    ],
    "fused_gamma_gradient": [
        {"gamma_rows": 32, "gamma_columns": 64, "gamma_depth": 16, "gamma_item": 8, "run": 512},
        {"gamma_rows": 48, "gamma_columns": 96, "gamma_depth": 4, "gamma_item": 4, "run": 512},
    ],
    "fused_forward_streams": [
        {"width": 8, "item_rows": 4, "vectors": 1, "block": 32, "newton": 0, "items_per_unit": 1},
        {"width": 16, "item_rows": 8, "vectors": 3, "block": 96, "newton": 3, "items_per_unit": 16},
    ],
    "fused_gamma_gradient_streams": [
        {"width": 8, "item_rows": 4, "vectors": 1, "block": 32, "items_per_unit": 1},
        {"width": 16, "item_rows": 8, "vectors": 3, "block": 48, "items_per_unit": 16},
    ],
    "tensor_core": [
        {"warp_rows": 16, "warp_columns": 16, "down": 1, "across": 2, "words": 16, "fetches": 1},
        {"warp_rows": 48, "warp_columns": 64, "words": 8, "unroll": 4},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_other_shapes_of_tiles(solve: Solver, name: str) -> None:
    problem = problem_of("gdn_gamma_gradient" if "gamma" in name else "gdn_forward", **EVEN)
    for shape in SHAPES[name]:
        right(problem, solve(problem, name, **shape))


@pytest.mark.parametrize(
    ("name", "tunables", "expected"),
    [
        ("fused_forward", {"across": 1 << 14}, "bytes of local memory, "),
        ("fused_gamma_gradient", {"gamma_depth": 1 << 14}, "bytes of local memory, "),
        (
            "fused_forward_streams",
            {"block": 64, "vectors": 3},
            r"block \(64\) must be a multiple of vectors x width \(48\)",
        ),
        (
            "fused_forward_streams",
            {"vectors": 1 << 14, "block": 1 << 18},
            "channels: 36 need .* bytes of local memory",
        ),
        ("tensor_core", {"warp_columns": 1 << 13}, "bytes of local memory, "),
    ],
)
def test_shapes_that_do_not_fit_are_refused(solve: Solver, name: str, tunables: dict[str, int], expected: str) -> None:
    problem = problem_of("gdn_gamma_gradient" if "gamma" in name else "gdn_forward", **EVEN)
    with pytest.raises(UnsupportedError, match=expected):
        solve(problem, name, **tunables)


@pytest.mark.parametrize("name", ["fused_step", "fused_step_streams"])
def test_photographs(solve: Solver, name: str) -> None:
    problem = problem_of("gdn_step", channels=13, height=9, width=8, source="filter_bank")
    right(problem, solve(problem, name))


@pytest.mark.parametrize("name", ["fused_gamma_gradient", "fused_gamma_gradient_streams", "tensor_core", "matrix_tile"])
def test_sums_of_splits_are_the_same_bits_every_time(solve: Solver, name: str) -> None:
    problem = problem_of("gdn_gamma_gradient", channels=13, height=40, width=40)
    tunables = {} if "streams" in name else {"run": 512}
    first, second = (solve(problem, name, **tunables)["dgamma"] for _ in range(2))
    right(problem, {"dgamma": first})
    assert np.array_equal(first, second)


def test_an_identity_would_hide_a_transposed_gamma() -> None:
    problem = problem_of("gdn_step", **ODD)
    right(problem, {"dgamma": problem.reference_dgamma.astype(np.float32)})
    assert not problem.check({"dgamma": problem.reference_dgamma.T.astype(np.float32)})["dgamma"].passed


@pytest.mark.parametrize("name", ["fused_step", "fused_step_streams"])
def test_fused_variants_hold_no_map_beyond_outputs_and_d(solve: Solver, name: str) -> None:
    problem = problem_of("gdn_step", channels=13, height=60, width=60)
    solve(problem, name)
    notes = solve.variant.notes()
    maps = int(problem.map_bytes)
    assert 0 < notes["scratch_bytes"] < maps
    kept = 5 * maps + 2 * 4 * (13 * 13 + 13)  # w, delta, u, dw, D; gamma, beta and their gradients
    assert notes["peak_device_bytes"] == solve.device_bytes == kept + notes["scratch_bytes"]


@pytest.mark.parametrize("name", LADDER)
def test_memory_of_the_ladder_is_what_is_allocated(solve: Solver, name: str) -> None:
    problem = problem_of("gdn_gamma_gradient", **ODD)
    solve(problem, name)
    notes = solve.variant.notes()
    assert notes["bytes_needed"] == solve.device_bytes
    cls = type(solve.variant)
    assert cls.bytes_needed(13, 35 * notes["largest_batch_gtx1080"]) <= 8 << 30
    assert cls.bytes_needed(13, 35 * (notes["largest_batch_gtx1080"] + 1)) > 8 << 30
    if name == "replicated":
        assert notes["wasted_bytes_per_operand"] == 4 * 12 * 13 * 105


def test_largest_batches_in_the_readme() -> None:
    """What variants say that they need, and for the fused ones delta, w, D and dgamma."""
    needs = [
        gamma_gradient.Replicated.bytes_needed, gamma_gradient.Registers.bytes_needed,
        gamma_gradient.RowByRow.bytes_needed, lambda n, p: 4 * (3 * n * p + n * n),
    ]  # fmt: skip
    text = (GDN.folder / "README.md").read_text()
    for channels in (64, 128, 192, 256):
        for side in (64, 128, 256):
            batches = [gamma_gradient.largest_batch(need, channels, side * side) for need in needs]
            assert f"| {channels} | {side} x {side} | " + " | ".join(map(str, batches)) + " |\n" in text


def test_fewer_than_four_images_fit_a_gtx1080() -> None:
    needed = gamma_gradient.Replicated.bytes_needed
    assert needed(128, 3 * 128 * 128) <= gamma_gradient.GTX1080_BYTES < needed(128, 4 * 128 * 128)


@pytest.mark.parametrize(("name", "arrays"), [("replicated", 2), ("naive", 1)])
def test_products_that_do_not_fit_are_refused_before_allocation(
    solve: Solver, device: OpenDevice, monkeypatch: pytest.MonkeyPatch, name: str, arrays: int
) -> None:
    problem = problem_of("gdn_gamma_gradient", **ODD)
    needed = arrays * 4 * 13 * 13 * 105
    before = device.allocated
    monkeypatch.setattr(device, "info", device.info.model_copy(update={"memory_bytes": before + needed - 1}))
    with pytest.raises(UnsupportedError, match=rf"need {needed} bytes, .* has {needed - 1} bytes free"):
        solve(problem, name)
    assert device.allocated == before
    limits = {"memory_bytes": before + (1 << 30), "max_alloc_bytes": needed // arrays - 1}
    monkeypatch.setattr(device, "info", device.info.model_copy(update=limits))
    with pytest.raises(
        UnsupportedError, match=rf"a buffer of {needed // arrays} bytes, .* at most {needed // arrays - 1}"
    ):
        solve(problem, name)
    assert device.allocated == before


def test_products_are_shared_and_no_execution_may_expect_them(device: OpenDevice) -> None:
    problem = problem_of("gdn_gamma_gradient", **ODD)
    session = Session(device, problem, GDN.folder)
    first = inputs.products(Setup(session, {}, {}), 1, 400)
    held = device.allocated
    setup = Setup(session, {}, {})
    again = inputs.products(setup, 2, 400)
    assert again[0] is first[0] and device.allocated == held + 400
    assert setup.work == again and not session.inputs, "poisoned, and compared with nothing"
    session.close()
    assert device.allocated == held - 400


def test_generated_vectors_are_the_same_on_device_and_host(device: OpenDevice) -> None:
    problem = problem_of("gdn_reduction", seed=2**31 - 1, channels=5, positions=260)
    session = Session(device, problem, GDN.folder)
    on_device = device.read(inputs.raw(Setup(session, {}, {})), np.float32, (25, 260))
    session.close()
    assert np.array_equal(on_device, problem.rows(np.arange(25)))


def test_splits_share_the_steps_out() -> None:
    assert split_steps(groups=528, longest=256, steps=32768, tiles=9) == 256  # many positions: the longest sum
    assert split_steps(groups=528, longest=256, steps=2048, tiles=9) == 35  # fewer: about so many groups
    assert split_steps(groups=528, longest=256, steps=3, tiles=1) == 4
    assert split_steps(groups=8, longest=0, steps=100, tiles=1) == 1


def test_presets_and_check_sizes_make_problems() -> None:
    for cls in (Forward, GammaGradient, Backward, Step, Reduction):
        assert {"tiny", "quick", "full", "large", "paper"} <= set(cls.presets)
        for parameters in cls.check_sizes:
            assert cls(cls.Parameters(**parameters), 1).work().flops > 0
        first, second = cls.check_sizes[:2]
        assert all(first[key] != second[key] for key in first)
