"""vocab_tree: descriptors, fixed point, the NumPy reference, trees and their files, retrieval."""

from __future__ import annotations

import json
import secrets
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfport.model.errors import UsageError
from perfport.workloads.vocab_tree import (
    data,
    fixed_point,
    kmeans_problems,
    outputs,
    query,
    reference,
    seeding,
    tree,
    tree_problems,
)
from perfport.workloads.vocab_tree.outputs import MEANS, MEANS_ONLY
from perfport.workloads.vocab_tree.tree_problems import WORDS, TreeBuild, residual_of_words


def small(count: int = 400, dims: int = 32, seed: int = 5) -> np.ndarray:
    """Some points."""
    return data.generate(count, dims, seed)


# --- data ---------------------------------------------------------------------------------------------------------


def test_generated_points_resemble_sift() -> None:
    """Real descriptors: mean 26.4, 18 % zeros, norm 512, 50/80/90 % of the variance on 10/33/54 axes."""
    points = data.generate(20_000, 128, 1).astype(np.float64)
    assert abs(points.mean() - 26.4) < 1.5
    assert abs((points == 0).mean() - 0.18) < 0.06
    assert abs(np.linalg.norm(points, axis=1) - 512).max() < 5
    variance = np.cumsum(np.linalg.eigvalsh(np.cov(points.T))[::-1])
    axes = [int((variance < share * variance[-1]).sum()) + 1 for share in (0.5, 0.8, 0.9)]
    assert np.allclose(axes, [10, 33, 54], atol=6), axes


def test_generated_points_cluster_like_sift() -> None:
    """Real descriptors: a residual of 0.745 and 0.553 after 10 and 100 clusters."""
    faiss = pytest.importorskip("faiss")
    points = data.generate(20_000, 128, 1).astype(np.float32)
    total = np.square(points - points.mean(axis=0)).sum()
    for clusters, expected in ((10, 0.745), (100, 0.553)):
        model = faiss.Kmeans(128, clusters, niter=10, seed=1, max_points_per_centroid=10**6)
        model.train(points)
        assert abs(model.index.search(points, 1)[0].sum() / total - expected) < 0.04


def test_the_generator_goes_by_its_seed_alone() -> None:
    assert np.array_equal(small(700), small(700)) and not np.array_equal(small(seed=5), small(seed=6))
    assert np.array_equal(data.generate(data.BLOCK + 9, 16, 3)[: data.BLOCK], data.generate(data.BLOCK, 16, 3))


def test_sift_of_photographs() -> None:
    pytest.importorskip("cv2")
    points = data.points("sift", 2000, 128, 3)
    assert points.shape == (2000, 128) and points.dtype == np.uint8 and 15 < points.mean() < 40
    with pytest.raises(UsageError, match="has 128 dimensions, expected 64"):
        data.points("sift", 100, 64, 1)


def vecs(points: np.ndarray) -> bytes:
    """Points as .bvecs or .fvecs, by their dtype."""
    return b"".join(np.int32(len(row)).tobytes() + row.tobytes() for row in points)


def test_files_are_read(tmp_path: Path) -> None:
    points = small(30)
    (tmp_path / "a.bvecs").write_bytes(vecs(points))
    (tmp_path / "a.fvecs").write_bytes(vecs(points.astype("<f4")))
    np.save(tmp_path / "a.npy", points.astype(np.int64))
    for name in ("a.bvecs", "a.fvecs", "a.npy"):
        assert np.array_equal(data.points(str(tmp_path / name), 30, 32, 0), points)
    sample = data.points(str(tmp_path / "a.npy"), 10, 32, 4)
    assert np.array_equal(sample, data.points(str(tmp_path / "a.npy"), 10, 32, 4)) and len(sample) == 10


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.bvecs", vecs(small(4))[:-1], "truncated or damaged: 143 bytes, expected a multiple of 36"),
        ("a.fvecs", b"\1\0", "is truncated: 2 bytes"),
        ("a.bvecs", vecs(small(2)) + np.int32(16).tobytes() + bytes(32), "vector 2 has 16 dimensions, expected 32"),
        ("a.bvecs", np.int32(-3).tobytes(), "begins with -3"),
        ("a.fvecs", vecs(np.full((2, 4), 0.5, "<f4")), "whole numbers from 0 to 255, got 0.5"),
        ("a.npy", b"nothing", "is not an .npy file, or a damaged one"),
        ("a.fvecs", vecs(np.full((2, 4), np.nan, "<f4")), "whole numbers from 0 to 255, got nan"),
        ("a.fvecs", vecs(np.full((2, 4), 256, "<f4")), "whole numbers from 0 to 255, got 256"),
        ("a.txt", b"1 2", "nor a .fvecs, .bvecs or .npy file"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        data.read(tmp_path / name)


def test_files_of_the_wrong_size_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", small(20))
    with pytest.raises(UsageError, match="has 32 dimensions, expected 64"):
        data.points(str(tmp_path / "a.npy"), 10, 64, 0)
    with pytest.raises(UsageError, match="has 20 points, expected at least 21"):
        data.points(str(tmp_path / "a.npy"), 21, 32, 0)
    with pytest.raises(UsageError, match=r"cannot be read \(No such file"):
        data.read(tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", np.zeros(5))
    with pytest.raises(UsageError, match=r"expected an array \(points, dims\)"):
        data.read(tmp_path / "c.npy")


# --- fixed point and k-means --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.sampled_from([16, 48, 128]))
def test_labels_are_those_of_exact_distances(seed: int, clusters: int, dims: int) -> None:
    """The nearest centre by score is the nearest within the stated rounding, 1/128 of a squared distance."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 256, (50, dims), np.uint8)
    centres = rng.integers(0, 255 * 256 + 1, (clusters, dims)).astype(np.uint16)
    labels = reference.classify(points, centres)
    exact = np.square(points[:, None] - centres / fixed_point.ONE).sum(axis=2)
    assert (exact[np.arange(50), labels] - exact.min(axis=1)).max() <= 1 / 128
    scores = fixed_point.scores(points, centres)
    assert np.abs(scores).max() < 2**31 and (fixed_point.distances(points, scores.max(axis=1)) >= 0).all()


@given(st.integers(1, 2**24), st.integers(0, 255))
def test_means_are_rounded_to_the_nearest(count: int, value: int) -> None:
    total = min(count * value + count // 3, 255 * count)
    mean = fixed_point.from_sums(np.array([[total]], np.uint64), np.array([count]))[0, 0]
    assert abs(int(mean) / fixed_point.ONE - total / count) <= 0.5 / fixed_point.ONE


@settings(max_examples=50)
@given(st.integers(0, 2**63), st.lists(st.integers(7, 2**31), min_size=1, max_size=20), st.integers(2, 7))
def test_drawn_points_are_different_and_inside(seed: int, sizes: list[int], clusters: int) -> None:
    nodes = np.arange(len(sizes))
    drawn = seeding.draw(seed, nodes % 3, nodes, np.array(sizes), clusters)
    assert (drawn >= 0).all() and (drawn < np.array(sizes)[:, None]).all()
    assert all(len(set(row)) == clusters for row in drawn.tolist())
    alone = seeding.draw(seed, nodes[-1:] % 3, nodes[-1:], np.array(sizes[-1:]), clusters)
    assert np.array_equal(alone[0], drawn[-1])  # by the node alone, whatever else is drawn


def test_all_points_are_drawn_equally_often() -> None:
    nodes = np.arange(6000)
    drawn = seeding.draw(3, np.zeros_like(nodes), nodes, np.full(6000, 8), 3)
    assert abs(np.bincount(drawn.ravel(), minlength=8) / 6000 - 3 / 8).max() < 0.03


def test_empty_classes_get_the_farthest_point() -> None:
    points = np.zeros((6, 16), np.uint8)
    points[3], points[4], points[5] = 10, 90, 90
    found = reference.lloyd(points, fixed_point.from_points(points[[0, 1, 2]]), 1)
    assert found.reseeded == 2  # classes 1 and 2; of the equally far points 4 and 5 the lower comes first
    assert np.array_equal(found.centres[1], fixed_point.from_points(points[4]))
    assert np.array_equal(found.centres[2], fixed_point.from_points(points[5]))


def test_iterations_lower_the_inertia_and_stop() -> None:
    points, start = small(600), fixed_point.from_points(small(600)[:6])
    means = [reference.lloyd(points, start, n).centres for n in range(1, 30)]
    inertia = [np.square(points[:, None] - c / 256).sum(2).min(1).sum() for c in means]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(inertia))
    assert reference.lloyd(points, start, 1000).iterations < 1000


@pytest.mark.parametrize(
    ("points", "clusters", "message"),
    [
        (small(), 1, "clusters: expected 2 to 256, got 1"),
        (small().astype(np.float32), 4, "expected dtype uint8, got float32"),
        (small()[:, :10], 4, "multiple of 16"),
        (small()[:3], 4, "at least as many points as clusters"),
        (small()[0], 4, r"expected shape \(points, dims\)"),
    ],
)
def test_bad_points_are_refused(points: np.ndarray, clusters: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        reference.check_points(points, clusters)


# --- trees --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built() -> tuple[np.ndarray, tree.Tree]:
    points = small(1500)
    return points, reference.build(points, 4, 3, 4, 9)


def test_a_tree_counts_every_point_once(built: tuple[np.ndarray, tree.Tree]) -> None:
    points, found = built
    assert found.levels[0].counts.sum() == len(points)
    assert np.array_equal(np.bincount(found.points, minlength=found.words)[:3], np.bincount(found.points)[:3])
    for upper, lower in pairwise(found.levels):
        parents = np.searchsorted(upper.paths, lower.paths // np.uint64(4))
        assert np.array_equal(upper.counts[parents, (lower.paths % np.uint64(4)).astype(int)], lower.counts.sum(axis=1))
    paths, depths = found.leaf_paths()
    assert len(paths) == found.words and depths.max() == 3


def test_points_reach_their_own_leaves(built: tuple[np.ndarray, tree.Tree]) -> None:
    points, found = built
    assert np.array_equal(query.quantise(found, points), found.points)
    shallow = reference.build(points, 4, 1, 4, 9)
    assert 0 < residual_of_words(points, found.points) < residual_of_words(points, shallow.points) < 1
    with pytest.raises(UsageError, match=r"expected uint8 \(points, 32\)"):
        query.quantise(found, points[:, :16])


def test_a_tree_survives_its_file(built: tuple[np.ndarray, tree.Tree], tmp_path: Path) -> None:
    _, found = built
    found.save(tmp_path / "tree.npz")
    again = tree.load(tmp_path / "tree.npz")
    assert again.same_as(found) and again.words == found.words
    found.save(tmp_path / "tree.npz")  # replaces
    assert [path.name for path in tmp_path.iterdir()] == ["tree.npz"]


def test_a_failed_save_leaves_the_old_file(
    built: tuple[np.ndarray, tree.Tree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = built
    path = tmp_path / "tree.npz"
    found.save(path)
    before = path.read_bytes()

    def fail(file: object, **arrays: np.ndarray) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        found.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(UsageError, match="cannot write a tree here"):
        found.save(tmp_path / "no folder" / "tree.npz")


def test_damaged_trees_are_refused(built: tuple[np.ndarray, tree.Tree], tmp_path: Path) -> None:
    _, found = built
    path = tmp_path / "tree.npz"
    with pytest.raises(UsageError, match="cannot be read"):
        tree.load(path)
    found.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UsageError, match=r"is not an \.npz file, or a damaged one"):
        tree.load(path)
    np.savez(path, header=np.array('{"format": "other"}'))
    with pytest.raises(UsageError, match="expected the format"):
        tree.load(path)
    with pytest.raises(UsageError, match="paths_0: expected uint64"):
        tree.from_arrays(4, 32, 1, {**found.arrays(), "paths_0": np.zeros(1, np.int32)})
    with pytest.raises(UsageError, match="has no centres_0"):
        tree.from_arrays(4, 32, 1, {k: v for k, v in found.arrays().items() if k != "centres_0"})
    with pytest.raises(UsageError, match=r"paths_0: expected uint64 \(1,\), got uint64 \(\)"):
        tree.from_arrays(4, 32, 1, {**found.arrays(), "paths_0": np.array(0, np.uint64)})


HEADER = {"format": tree.FORMAT, "clusters": 4, "dims": 32, "levels": 3, "fraction_bits": 8}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("no JSON", "header: not JSON"),
        ("[" * 100_000, "header: not JSON"),
        ('{"\ud800": 1}', "header: not JSON"),
        ('{"\\ud800": 1}', "header: not JSON"),
        ("[1]", r"expected the format 'perfport vocabulary tree 1', got '\[1\]'"),
        ({**HEADER, "levels": "3"}, "header: levels: input should be a valid integer, got '3'"),
        ({**HEADER, "levels": 10**9}, "header: levels: .*less than or equal to 64"),
        ({**HEADER, "levels": 4}, "has no paths_3"),
        ({**HEADER, "clusters": 1}, "header: clusters: .*greater than or equal to 2"),
        ({**HEADER, "clusters": 4.5}, "header: clusters: input should be a valid integer"),
        ({**HEADER, "clusters": 8}, r"centres_0: expected uint16 \(1, 8, 32\), got uint16 \(1, 4, 32\)"),
        ({**HEADER, "dims": -1}, "header: dims: .*greater than or equal to 1"),
        ({**HEADER, "fraction_bits": 9}, "header: fraction_bits: input should be 8"),
        ({k: v for k, v in HEADER.items() if k != "dims"}, "header: dims: required key is missing"),
        ({**HEADER, "more": 1}, "header: more: unknown key"),
        (None, "not a vocabulary tree"),
        (np.zeros(3), "not a vocabulary tree"),
        (np.array(["a", "b"]), "not a vocabulary tree"),
    ],
)
def test_bad_headers_are_refused(
    built: tuple[np.ndarray, tree.Tree], tmp_path: Path, header: Any, message: str
) -> None:
    arrays = built[1].arrays()
    if header is not None:
        text = json.dumps(header) if isinstance(header, dict) else header
        arrays["header"] = text if isinstance(text, np.ndarray) else np.array(text)
    np.savez(tmp_path / "tree.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"tree\.npz: .*{message}"):
        tree.load(tmp_path / "tree.npz")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("paths_0", lambda a: a + np.uint64(1), r"paths_0: expected ascending paths of the root, 0, got \[1\]"),
        ("paths_1", lambda a: a[::-1], "paths_1: expected ascending paths of children of the nodes of level 0"),
        ("paths_2", lambda a: np.full_like(a, a[0]), "paths_2: expected ascending paths"),
        ("paths_2", lambda a: a + np.uint64(4**3), "paths_2: expected ascending paths of children of .* level 1, got"),
        ("centres_1", lambda a: np.full_like(a, 65535), "centres_1: expected at most 65280, got 65535"),
        ("points", lambda a: np.full_like(a, 2**31), "points: expected uint32 numbers of"),
        ("points", lambda a: a.reshape(-1, 1), "points: expected uint32 numbers of"),
        ("counts_0", lambda a: a.astype(np.int32), "counts_0: expected uint32"),
    ],
)
def test_nodes_that_make_no_tree_are_refused(
    built: tuple[np.ndarray, tree.Tree], tmp_path: Path, name: str, change: Any, message: str
) -> None:
    arrays = built[1].arrays()
    arrays |= {name: change(arrays[name]), "header": np.array(json.dumps(HEADER))}
    np.savez(tmp_path / "tree.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"tree\.npz: .*{message}"):
        tree.load(tmp_path / "tree.npz")


def test_paths_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    level = {"paths": np.zeros(1, np.uint64), "centres": np.zeros((1, 256, 1), np.uint16)}
    level["counts"] = np.zeros((1, 256), np.uint32)
    header = {**HEADER, "clusters": 256, "dims": 1, "levels": 9}
    arrays = {f"{name}_{number}": array for number in range(9) for name, array in level.items()}
    np.savez(tmp_path / "tree.npz", header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="paths of 9 levels to the base 256 have more than 64 bits"):
        tree.load(tmp_path / "tree.npz")


# --- retrieval ----------------------------------------------------------------------------------------------------


def test_an_inverted_file_scores_by_weighted_words() -> None:
    images = [np.array([0, 0, 1]), np.array([1, 2]), np.array([3, 3, 3])]
    index = query.InvertedFile(5, images)
    scores = index.scores(images)
    assert np.allclose(np.diag(scores), 1) and scores[0, 2] == 0 and 0 < scores[0, 1] < 1
    idf = np.log(3 / np.array([1, 2, 1, 1]))
    first = np.array([2 * idf[0], idf[1]]) / np.hypot(2 * idf[0], idf[1])
    assert np.isclose(scores[0, 1], first[1] * idf[1] / np.hypot(idf[1], idf[2]))
    assert (index.scores([np.array([4])]) == 0).all()  # a word that no image has
    with pytest.raises(UsageError, match="expected numbers of 5 words, got 7"):
        index.scores([np.array([7])])


def test_average_precision() -> None:
    assert query.average_precision(np.array([3, 1, 2]), np.array([3, 2])) == pytest.approx((1 + 2 / 3) / 2)
    assert query.average_precision(np.array([1]), np.array([2])) == 0


def test_photographs_are_found_again() -> None:
    """Turned and scaled photographs find their originals."""
    cv2 = pytest.importorskip("cv2")
    images = [image for image in data.photographs() if min(image.shape) > 200][:8]
    described = [data.describe(image, 300) for image in images]
    found = reference.build(np.concatenate(described), 8, 3, 4, 1)
    index = query.InvertedFile(found.words, [query.quantise(found, own) for own in described])
    warped = [cv2.resize(cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE), None, fx=0.8, fy=0.8) for image in images]
    scores = index.scores([query.quantise(found, data.describe(image, 300)) for image in warped])
    ranked = np.argsort(-scores, axis=1)
    mean = np.mean([query.average_precision(row, np.array([i])) for i, row in enumerate(ranked)])
    assert mean > 0.8, mean


def test_what_is_compared_is_all_or_a_sample_with_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outputs.sampled(7, 1).tolist() == list(range(7))
    monkeypatch.setattr(outputs, "SAMPLE", 5)
    some = outputs.sampled(1000, 1)
    assert 2 < len(some) <= 7 and some[0] == 0 and some[-1] == 999 and (np.diff(some) > 0).all()
    assert np.array_equal(some, outputs.sampled(1000, 1)) and not np.array_equal(some, outputs.sampled(1000, 2))


# --- what is checked ----------------------------------------------------------------------------------------------


def iteration(points: int = 3000) -> kmeans_problems.KmeansIteration:
    """A problem of one pass."""
    kind = kmeans_problems.KmeansIteration
    return kind(kind.Parameters(points=points, dims=32, clusters=8), 5)


def test_one_wrong_label_of_many_is_seen() -> None:
    problem = iteration(150_000)
    labels = problem._labels.copy()
    left = int(np.setdiff1d(np.arange(problem.count), problem.compared)[0])
    labels[left] = (labels[left] + 1) % 8
    sums, counts = problem._totals_of(labels)
    given = {"labels": labels, "sums": sums.astype(np.uint32), "counts": counts.astype(np.uint32)}
    assert {name: error.passed for name, error in problem.verify(given).outputs.items()} == {
        "labels": False, "sums": True, "counts": True,
    }  # fmt: skip


def test_labels_of_rounded_distances_may_miss_by_the_slack_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = iteration()
    points, centres = problem.points.astype(np.float64), problem.centres[0] / fixed_point.ONE
    squares = np.square(points[:, None] - centres[None]).sum(axis=2)
    second = np.argsort(squares, axis=1)[:, 1].astype(np.uint8)
    missed = np.take_along_axis(squares, second[:, None].astype(int), 1)[:, 0] - squares.min(axis=1)
    near, far = int(missed.argmin()), int(missed.argmax())
    monkeypatch.setattr(kmeans_problems, "FLOAT_SLACK", float(np.median(missed)))
    for which, passed in ((near, True), (far, False)):
        labels = problem._labels.copy()
        labels[which] = second[which]
        error = problem.check({"labels": labels}, MEANS)["labels"]
        assert error.passed == passed and error.checked == problem.count
        assert error.max_abs == pytest.approx(missed[which], abs=0.05)
    outside = np.full(problem.count, 200, np.uint8)
    assert not problem.check({"labels": outside}, MEANS)["labels"].passed


def fragments(seed: int, nodes: int = 5) -> kmeans_problems.KmeansFragments:
    """Some small nodes."""
    kind = kmeans_problems.KmeansFragments
    return kind(kind.Parameters(nodes=nodes, node_points=90, dims=32, clusters=6), seed)


def second_nearest(problem: kmeans_problems.KmeansFragments) -> tuple[np.ndarray, np.ndarray]:
    """By point the centre that is second nearest, and how much farther in squared distance."""
    seconds, missed = [], []
    for node, (first, size) in enumerate(zip(problem.node_first, problem.node_sizes, strict=True)):
        points = problem.points[first : first + size].astype(np.float64)
        squares = np.square(points[:, None] - problem.centres[node] / fixed_point.ONE).sum(axis=2)
        order = np.argsort(squares, axis=1)[:, :2]
        seconds.append(order[:, 1].astype(np.uint8))
        missed.append(np.diff(np.take_along_axis(squares, order, 1))[:, 0])
    return np.concatenate(seconds), np.concatenate(missed)


def means_by(problem: kmeans_problems.KmeansFragments, labels: np.ndarray) -> dict[str, np.ndarray]:
    """What a library without labels gives back."""
    sums, counts = problem._totals_of(labels)
    return {"means": sums / np.maximum(counts, 1)[..., None]}


@pytest.mark.parametrize("block", [64, 1 << 16])
def test_without_labels_a_point_between_two_centres_may_be_in_either_class(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    problem = fragments(secrets.randbelow(2**31))
    monkeypatch.setattr(reference, "BLOCK", block)
    second, missed = second_nearest(problem)
    between = np.sort(missed)[4]
    monkeypatch.setattr(kmeans_problems, "FLOAT_SLACK", between + 1)  # centres' halves are rounded
    draw = np.random.default_rng(problem.seed)
    for _ in range(5):
        labels = problem._labels.copy()
        some = draw.permutation(np.flatnonzero(missed <= between))[: draw.integers(1, 6)]
        labels[some] = second[some]
        if (problem._totals_of(labels)[1] < (problem._totals_of(problem._labels)[1] > 0)).any():
            continue  # a class of few that lost all is another test's
        assert problem.check(means_by(problem, labels), MEANS_ONLY)["means"].passed, (problem.seed, some)
    labels = problem._labels.copy()
    far = int(missed.argmax())
    labels[far] = second[far]
    assert not problem.check(means_by(problem, labels), MEANS_ONLY)["means"].passed, problem.seed
    wrong = means_by(problem, problem._labels)
    wrong["means"][0, problem._labels[0]] += 2
    assert not problem.check(wrong, MEANS_ONLY)["means"].passed, problem.seed


def one_between(problem: kmeans_problems.KmeansFragments, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make class 3 of the first node point 0 alone, which no mean of class 2 shows, and class 1 empty.

    That point alone is one between classes 3 and 2.
    """
    own = problem._labels[: problem.node_sizes[0]]
    own[np.isin(own, (1, 3))] = 2
    own[0] = 3
    problem.points[0] = problem.points[: len(own)][own == 2].mean(axis=0).round()
    nodes = iter(range(problem.nodes))

    def between(*_: Any) -> tuple[np.ndarray, np.ndarray]:
        found = np.arange(1) if next(nodes) == 0 else np.arange(0)
        return found, np.full_like(found, 2)

    monkeypatch.setattr(reference, "between", between)


@pytest.mark.parametrize("mean", [np.nan, np.inf, 0.0, 1e6])
def test_a_choice_that_empties_a_class_is_none(monkeypatch: pytest.MonkeyPatch, mean: float) -> None:
    """Means of empty classes may be anything, and so would be that one's."""
    problem = fragments(5)
    one_between(problem, monkeypatch)
    given = means_by(problem, problem._labels)
    given["means"][0, 3] = mean
    assert not problem.check(given, MEANS_ONLY)["means"].passed


@pytest.mark.parametrize("mean", [np.nan, np.inf, 0.0, 1e6])
def test_means_of_empty_classes_say_nothing_of_points_between(monkeypatch: pytest.MonkeyPatch, mean: float) -> None:
    problem = fragments(5)
    one_between(problem, monkeypatch)
    problem._labels[1] = 3  # so that point 0 may go
    labels = problem._labels.copy()
    labels[0] = 2
    given = means_by(problem, labels)
    given["means"][0, 1] = mean
    assert problem.check(given, MEANS_ONLY)["means"].passed


def test_of_many_points_between_none_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fragments(5)
    second, missed = second_nearest(problem)
    two = np.argsort(missed[: problem.node_sizes[0]])[:2]
    monkeypatch.setattr(kmeans_problems, "FLOAT_SLACK", np.sort(missed[: problem.node_sizes[0]])[1:3].mean())
    labels = problem._labels.copy()
    labels[two] = second[two]
    for most, passed in ((2, True), (1, False)):
        monkeypatch.setattr(kmeans_problems, "BETWEEN", most)
        assert problem.check(means_by(problem, labels), MEANS_ONLY)["means"].passed == passed


@pytest.mark.parametrize("block", [64, 1 << 16])
def test_points_between_two_centres(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    problem = fragments(secrets.randbelow(2**31), nodes=1)
    monkeypatch.setattr(reference, "BLOCK", block)
    second, missed = second_nearest(problem)
    order = np.sort(missed)
    for count in (1, 2, 7):
        slack = order[count - 1 : count + 1].mean()
        numbers, others = reference.between(problem.points, problem.centres[0], slack)
        assert numbers.tolist() == np.flatnonzero(missed < slack).tolist(), problem.seed
        assert others.tolist() == second[numbers].tolist(), problem.seed


def test_with_labels_means_are_held_to_them() -> None:
    problem = fragments(5)
    second, missed = second_nearest(problem)
    labels, near = problem._labels.copy(), int(missed.argmin())
    labels[near] = second[near]
    given = {"labels": labels, **means_by(problem, problem._labels)}
    assert not problem.check(given, MEANS)["means"].passed


def test_blocks_of_points_give_the_same_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    points, centres = small(), fixed_point.from_points(small()[:7])
    whole = reference.one_pass(points, centres)
    monkeypatch.setattr(reference, "BLOCK", 64)
    blocks = reference.one_pass(points, centres)
    assert all(np.array_equal(getattr(blocks, name), getattr(whole, name)) for name in ("labels", "sums", "counts"))
    assert blocks.sums.dtype == whole.sums.dtype and blocks.counts.dtype == whole.counts.dtype


def large_build(monkeypatch: pytest.MonkeyPatch, levels: int) -> TreeBuild:
    """A build whose tree is too large to be compared as a whole."""
    monkeypatch.setattr(tree_problems, "WHOLE_TREE", 500)
    return TreeBuild(TreeBuild.Parameters(points=2000, dims=32, clusters=4, levels=levels, iterations=8), 5)


@pytest.mark.parametrize("iterations", [8, 1])
def test_a_root_with_too_few_iterations_is_wrong(monkeypatch: pytest.MonkeyPatch, iterations: int) -> None:
    problem = large_build(monkeypatch, 1)
    built = reference.build(problem.points, 4, 1, iterations, 5)
    errors = problem.verify(built.arrays()).outputs
    assert {name: error.passed for name, error in errors.items()} == {"words": True, "nodes": iterations == 8}


def test_nodes_below_the_root_with_too_few_iterations_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the largest, of which those of a large tree were beyond what is drawn."""
    problem, lloyd, done = large_build(monkeypatch, 2), reference.lloyd, []

    def hasty(points: np.ndarray, centres: np.ndarray, iterations: int) -> reference.Clustering:
        done.append(len(points))
        return lloyd(points, centres, iterations if len(points) in (2000, largest) else 1)

    right = reference.build(problem.points, 4, 2, 8, 5)
    largest = int(right.levels[0].counts.max())
    with monkeypatch.context() as patched:
        patched.setattr(reference, "lloyd", hasty)
        wrong = reference.build(problem.points, 4, 2, 8, 5)
    assert len(done) == 5 and done.count(largest) == 1
    for built, passed in ((right, True), (wrong, False)):
        errors = problem.verify(built.arrays()).outputs
        assert {name: error.passed for name, error in errors.items()} == {"words": True, "nodes": passed}


def test_words_of_a_library_are_held_to_a_residual_before_any_tree_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = large_build(monkeypatch, 2)
    right = reference.build(problem.points, 4, 2, 8, 5).points.astype(np.uint32)
    assert problem.verify({"words": right}, WORDS).passed
    for wrong in (np.random.default_rng(1).permutation(right), right // 8):
        error = problem.verify({"words": wrong}, WORDS).outputs["residual"]
        assert not error.passed and error.tolerance["residual"] < 0.9
    each = np.arange(len(right), dtype=np.uint32)
    by_name = problem.verify({"words": each}, WORDS).outputs
    assert by_name["residual"].passed and not by_name["words"].passed, "a word for each point leaves nothing"


def test_centres_are_those_that_words_are_nearest_to(built: tuple[np.ndarray, tree.Tree]) -> None:
    points, found = built
    centres = query.centres(found)
    assert centres.shape == (found.words, 32)
    one = reference.build(points, 4, 1, 4, 9)
    squares = np.square(points[:, None] - query.centres(one)[None]).sum(axis=2)
    near = squares[np.arange(len(points)), query.quantise(one, points)] - squares.min(axis=1)
    assert near.max() <= 0.01
