"""The problems: one iteration over one node, one over many small nodes, whole builds, and queries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import Metric, OutputError, Problem, UsageError, Work, compare, compare_exact, usable_cores

from . import data, fixed_point, query, reference, seeding, tree

SAMPLE = 100_000  # labels that are compared where there are more
WHOLE_TREE = 30_000  # points up to which a tree is compared with a tree built by NumPy
FLOAT_SLACK = 1.0  # squared distance by which a label computed in FP32 may miss the nearest centre
#: The same by products of 11-bit significands, FP16 or TF32: descriptors and centres have a norm of at most 512, a
#: centre cut to TF32 is off by 2^-10, a score 2 x c by 512, and two of them are compared.
ROUNDED_SLACK = 1024.0
#: Outputs computed in FP32, TF32 or FP16 end so: labels may differ where two centres are about equally near.
FLOAT, TF32, HALF = ".float", ".tf32", ".half"


def _digest(arrays: Mapping[str, np.ndarray]) -> bytes:
    """A key for what was found of these arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.digest()


class NodeParameters(BaseModel):
    """``points`` descriptors of ``dims`` bytes from ``source``: ``generated``, ``sift``, or a file's path."""

    model_config = ConfigDict(extra="forbid")

    points: int = Field(ge=2, le=fixed_point.POINTS_LIMIT)
    dims: int = Field(128, ge=16, le=fixed_point.DIMS_LIMIT, multiple_of=16)
    clusters: int = Field(10, ge=2, le=fixed_point.CLUSTERS_LIMIT)
    source: str = "generated"


class _Iteration(Problem):
    """What a pass over one or many nodes has in common: points in order of nodes, their centres, the check."""

    node_sizes: np.ndarray  # int64, (nodes,)
    centres: np.ndarray  # uint16, (nodes, clusters, dims)

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.dims, self.clusters = parameters.dims, parameters.clusters
        self._totals: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_sizes)

    @property
    def count(self) -> int:
        """Points of all nodes."""
        return int(self.node_sizes.sum())

    @cached_property
    def node_first(self) -> np.ndarray:
        """First point of each node, int64."""
        return np.cumsum(self.node_sizes) - self.node_sizes

    @cached_property
    def points(self) -> np.ndarray:
        """The points, node by node, uint8, (count, dims)."""
        p = self.parameters
        return data.points(p.source, self.count, p.dims, self.seed)

    def _first_centres(self) -> np.ndarray:
        """Centres after one iteration from random points over a part of each node, so that they have fractions."""
        numbers = np.arange(self.nodes)
        drawn = seeding.draw(self.seed, np.zeros_like(numbers), numbers, self.node_sizes, self.clusters)
        found = np.empty((self.nodes, self.clusters, self.dims), np.uint16)
        for node, (first, size, own) in enumerate(zip(self.node_first, self.node_sizes, drawn, strict=True)):
            part = self.points[first : first + min(size, 20_000)]
            start = fixed_point.from_points(self.points[first + own])
            sums, counts = reference.totals(part, reference.classify(part, start), self.clusters)
            means = fixed_point.from_sums(sums, counts)
            found[node] = np.where(counts[:, None] > 0, means, start)
        return found

    @cached_property
    def compared(self) -> np.ndarray:
        """Points whose labels are compared with the reference: all, or a sample with the first and the last."""
        if self.count <= SAMPLE:
            return np.arange(self.count)
        sample = np.random.default_rng(self.seed + 1).integers(0, self.count, SAMPLE)
        return np.unique(np.concatenate([sample, [0, self.count - 1]]))

    @cached_property
    def _scores(self) -> np.ndarray:
        """Scores of the compared points, float64 that hold exact integers."""
        node = np.searchsorted(self.node_first, self.compared, side="right") - 1
        found = np.empty((len(self.compared), self.clusters))
        order = np.arange(len(node))
        for number in np.unique(node) if self.nodes > 1 else (0,):
            here = order[node == number] if self.nodes > 1 else order
            for first in range(0, len(here), reference.BLOCK):
                part = here[first : first + reference.BLOCK]
                found[part] = fixed_point.scores(self.points[self.compared[part]], self.centres[number])
        return found

    def _check_labels(self, labels: np.ndarray, suffix: str) -> OutputError:
        own = labels[self.compared]
        if not suffix or own.max() >= self.clusters:
            return compare_exact(own, self._scores.argmax(axis=1).astype(np.uint8))
        slack = FLOAT_SLACK if suffix == FLOAT else ROUNDED_SLACK
        chosen = self._scores[np.arange(len(own)), own]
        missed = 2 * float((self._scores.max(axis=1) - chosen).max()) / fixed_point.ONE
        return OutputError(
            max_abs=missed, relative_l2=0.0, checked=len(own), total=self.count,
            tolerance={"squared_distance": slack}, passed=missed <= slack,
        )  # fmt: skip

    def _totals_of(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums and counts by node and class of these labels; kept, because every exact variant has the same."""
        key = _digest({"labels": labels})
        if key not in self._totals:
            found = [
                reference.totals(self.points[first : first + size], labels[first : first + size], self.clusters)
                for first, size in zip(self.node_first, self.node_sizes, strict=True)
            ]
            self._totals[key] = (np.stack([sums for sums, _ in found]), np.stack([counts for _, counts in found]))
        return self._totals[key]

    @cached_property
    def _labels(self) -> np.ndarray:
        """Labels of all points by the reference."""
        return np.concatenate([
            reference.classify(self.points[first : first + size], own)
            for first, size, own in zip(self.node_first, self.node_sizes, self.centres, strict=True)
        ])  # fmt: skip

    def check(self, outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
        """Labels by the nearest centre; sums and counts, or means, by the labels given, else by the reference's."""
        found = {}
        suffix = next((end for end in (FLOAT, TF32, HALF) if any(name.endswith(end) for name in outputs)), "")
        given = outputs.get("labels" + suffix)
        sums, counts = self._totals_of(self._labels if given is None else given)
        for name, value in outputs.items():
            plain = name.removesuffix(suffix)
            if plain == "labels":
                found[name] = self._check_labels(value, suffix)
            elif plain == "means":
                means = (
                    sums[counts > 0] / counts[counts > 0][:, None]
                )  # libraries fill empty classes each in its own way
                tolerance = 1e-2 if suffix == HALF else 1e-3
                found[name] = compare(value.reshape(sums.shape)[counts > 0], means, means.size, relative_l2=tolerance)
            else:
                expected = sums if plain == "sums" else counts
                found[name] = compare_exact(value.reshape(expected.shape), expected)
        return found

    def work(self) -> Work:
        """A multiply-add per point, dimension and centre, an addition per point and dimension; labels, sums written."""
        elements, centres = float(self.count) * self.dims, float(self.nodes) * self.clusters
        return Work(
            integer_ops=2 * elements * self.clusters + elements,
            read_bytes=elements + 2 * centres * self.dims, write_bytes=self.count + 4 * centres * (self.dims + 1),
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.count / seconds / 1e6

    def inertia(self, means: np.ndarray) -> float:
        """Mean squared distance of the compared points of the first node to the nearest of its new means."""
        points = self.points[self.compared[self.compared < self.node_sizes[0]]].astype(np.float64)
        squares = np.square(points).sum(axis=1)
        nearest = (2 * points @ means.T - np.square(means).sum(axis=1)).max(axis=1)
        return float((squares - nearest).mean())


class KmeansIteration(_Iteration):
    """Labels of all points of one node, and sums and counts by class."""

    name = "kmeans_iteration"
    title = "One k-means iteration over one node"
    metric = Metric("vocab_tree.iteration", "Mpoints/s", "higher", "points classified and added up per second")
    Parameters = NodeParameters
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"points": 3000},
        "quick": {"points": 300_000},
        "sift": {"points": 20_000, "source": "sift"},
        "full": {"points": 2_000_000},
        "large": {"points": 10_000_000},
        "many": {"points": 10_000_000, "clusters": 256},
        "paper": {"points": 16_000_000},
    }
    check_sizes = (
        {"points": 331, "dims": 16, "clusters": 5},
        {"points": 520, "dims": 32, "clusters": 8},
        {"points": 3, "dims": 128, "clusters": 2},
    )

    def __init__(self, parameters: NodeParameters, seed: int) -> None:
        super().__init__(parameters, seed)
        if parameters.points < parameters.clusters:
            raise UsageError(
                f"points: expected at least as many as clusters ({parameters.clusters}), got {parameters.points}"
            )
        self.node_sizes = np.array([parameters.points])

    @cached_property
    def centres(self) -> np.ndarray:  # type: ignore[override]
        """Fixed point, uint16, (1, clusters, dims)."""
        return self._first_centres()


class KmeansFragments(_Iteration):
    """The same for many small nodes, each with centres of its own."""

    class Parameters(BaseModel):
        """``nodes`` of about ``node_points`` descriptors each: half of them up to a quarter more or less."""

        model_config = ConfigDict(extra="forbid")

        nodes: int = Field(ge=1, le=1 << 20)
        node_points: int = Field(ge=2, le=1 << 20)
        dims: int = Field(128, ge=16, le=fixed_point.DIMS_LIMIT, multiple_of=16)
        clusters: int = Field(10, ge=2, le=fixed_point.CLUSTERS_LIMIT)
        equal: bool = False
        source: str = "generated"

    name = "kmeans_fragments"
    title = "One k-means iteration over many small nodes"
    metric = Metric("vocab_tree.fragments", "Mpoints/s", "higher", "points classified and added up per second")
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"nodes": 5, "node_points": 90},
        "quick": {"nodes": 300, "node_points": 300},
        "full": {"nodes": 2000, "node_points": 1000},
        "large": {"nodes": 10_000, "node_points": 1000, "equal": True},
        "paper": {"nodes": 10_000, "node_points": 100},
    }
    check_sizes = (
        {"nodes": 3, "node_points": 70, "dims": 16, "clusters": 5},
        {"nodes": 5, "node_points": 90, "dims": 32, "clusters": 8},
        {"nodes": 2, "node_points": 8, "dims": 128, "clusters": 3},
    )

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        p = parameters
        spread = 0 if p.equal else p.node_points // 4
        rng = np.random.default_rng(seed)
        self.node_sizes = rng.integers(p.node_points - spread, p.node_points + spread + 1, p.nodes)
        if self.node_sizes.min() < p.clusters:
            raise UsageError(
                f"node_points: expected nodes of at least as many points as clusters ({p.clusters}), "
                f"{p.node_points} gives nodes of {self.node_sizes.min()}"
            )
        if self.count > fixed_point.POINTS_LIMIT:
            raise UsageError(
                f"nodes, node_points: expected at most {fixed_point.POINTS_LIMIT} points, got {self.count}"
            )

    @cached_property
    def centres(self) -> np.ndarray:  # type: ignore[override]
        """Fixed point, uint16, (nodes, clusters, dims)."""
        return self._first_centres()


class TreeParameters(BaseModel):
    """A tree: ``clusters`` children to a node, ``levels`` deep, at most ``iterations`` per node."""

    model_config = ConfigDict(extra="forbid")

    points: int = Field(ge=2, lt=2**32)
    dims: int = Field(128, ge=16, le=fixed_point.DIMS_LIMIT, multiple_of=16)
    clusters: int = Field(10, ge=2, le=fixed_point.CLUSTERS_LIMIT)
    levels: int = Field(ge=1, le=16)
    iterations: int = Field(10, ge=1, le=1000)
    source: str = "generated"


class _OnTree(Problem):
    Parameters: ClassVar[type[BaseModel]] = TreeParameters

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        p = parameters
        self.dims, self.clusters, self.count = p.dims, p.clusters, p.points
        if p.points < p.clusters:
            raise UsageError(f"points: expected at least as many as clusters ({p.clusters}), got {p.points}")
        if p.levels * np.log2(p.clusters) >= 63:
            raise UsageError(f"levels: paths of {p.levels} digits to the base {p.clusters} exceed 63 bits")

    @cached_property
    def points(self) -> np.ndarray:
        """What the tree is built from, uint8, (points, dims)."""
        p = self.parameters
        return data.points(p.source, p.points, p.dims, self.seed)

    @cached_property
    def tree(self) -> tree.Tree:
        """The reference tree."""
        p = self.parameters
        return reference.build(self.points, p.clusters, p.levels, p.iterations, self.seed)


class TreeBuild(_OnTree):
    """A whole build, from points in host memory to a tree in host memory."""

    class Parameters(TreeParameters):
        """``memory_share``: the device may hold this part of the points' bytes, instead of what it has free."""

        memory_share: float | None = Field(None, gt=0, le=16)

    name = "tree_build"
    title = "Build of a vocabulary tree"
    metric = Metric("vocab_tree.build", "Mpoints/s", "higher", "points of the whole build per second")
    figures: ClassVar[dict[str, tuple[str, ...]]] = {
        "Chunks loaded": (
            "chunk_loads", "chunk_loads_expected", "chunk_loads_naive", "loaded_bytes", "streamed_bytes_per_second",
        ),
        "Trees": ("split_nodes", "words", "passes", "residual", "prepared_bytes"),
    }  # fmt: skip
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"points": 3000, "levels": 3, "clusters": 5, "iterations": 4},
        "quick": {"points": 100_000, "levels": 4},
        "sift": {"points": 20_000, "levels": 3, "source": "sift"},
        "full": {"points": 1_000_000, "levels": 5},
        "large": {"points": 10_000_000, "levels": 6},
        "streamed": {"points": 10_000_000, "levels": 6, "memory_share": 0.25},
    }
    check_sizes = (
        {"points": 90, "dims": 16, "clusters": 3, "levels": 2, "iterations": 2},
        {"points": 83, "dims": 32, "clusters": 4, "levels": 3, "iterations": 3},
    )

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.last_residual: float | None = None
        self._checked: dict[bytes, dict[str, OutputError]] = {}
        self._residuals: dict[bytes, float] = {}

    @property
    def memory_limit(self) -> int | None:
        """Bytes of device memory that a build may take."""
        share = self.parameters.memory_share
        return None if share is None else int(share * self.count * self.dims)

    def work(self) -> Work:
        """One transfer and one read of the points, what no build does without; iterations depend on the data."""
        elements = float(self.count) * self.dims
        return Work(
            integer_ops=2 * elements * self.clusters, read_bytes=elements, write_bytes=4.0 * self.count,
            host_bytes=elements,
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.count / seconds / 1e6

    def check(self, outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
        if "words" + FLOAT in outputs:
            return {"residual": self._check_residual(outputs["words" + FLOAT])}
        key = _digest(outputs)
        if key not in self._checked:  # every exact variant builds the same
            self._checked[key] = self._check_tree(outputs)
        return self._checked[key]

    def residual(self, words: np.ndarray) -> float:
        """What `residual_of_words` says; kept, because every exact variant gives the same words."""
        key = _digest({"words": words})
        if key not in self._residuals:
            self._residuals[key] = residual_of_words(self.points, words)
        return self._residuals[key]

    def _check_tree(self, outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
        levels = sum(name.startswith("paths_") for name in outputs)
        built = tree.from_arrays(self.clusters, self.dims, levels, outputs)
        self.last_residual = self.residual(built.points)
        if self.count <= WHOLE_TREE:
            same = np.array([built.same_as(self.tree)])
            return {"tree": compare_exact(same, np.array([True]))}
        return {"words": self._check_words(built), "nodes": self._check_nodes(built)}

    def _check_words(self, built: tree.Tree) -> OutputError:
        """A sample of points, quantised, ends in the leaves that they were put in."""
        sample = np.unique(np.random.default_rng(self.seed + 1).integers(0, self.count, 10_000))
        return compare_exact(built.points[sample], query.quantise(built, self.points[sample]))

    def _check_nodes(self, built: tree.Tree) -> OutputError:
        """A sample of nodes of every level, built again from their points, has the same centres."""
        p, rng = self.parameters, np.random.default_rng(self.seed + 2)
        paths, depths = built.leaf_paths()
        expected, found = [], []
        for number, level in enumerate(built.levels):
            sizes = level.counts.sum(axis=1)
            small = np.flatnonzero(sizes <= 50_000)
            for node in rng.choice(small, min(4, len(small)), replace=False):
                up = np.power(
                    np.uint64(self.clusters), np.maximum(depths.astype(np.int64) - number, 0).astype(np.uint64)
                )
                inside = (paths // up == level.paths[node]) & (depths > number)
                members = np.flatnonzero(inside[built.points])
                one = np.array([number]), level.paths[node : node + 1], np.array([len(members)])
                drawn = seeding.draw(self.seed, *one, self.clusters)[0]
                own = self.points[members]
                expected.append(reference.lloyd(own, fixed_point.from_points(own[drawn]), p.iterations).centres)
                found.append(level.centres[node])
        return compare_exact(np.array(found), np.array(expected))

    def _check_residual(self, words: np.ndarray) -> OutputError:
        """A library's words, by the means of their points, leave about as much as the exact tree."""
        own = self.residual(words)
        expected = self.last_residual
        if expected is None and self.count <= WHOLE_TREE:
            expected = self.residual(self.tree.points)
        limit = 1.0 if expected is None else 1.02 * expected
        return OutputError(
            max_abs=own, relative_l2=0.0, checked=len(words), total=self.count,
            tolerance={"residual": limit}, passed=own <= limit,
        )  # fmt: skip


def residual_of_words(points: np.ndarray, words: np.ndarray) -> float:
    """Return squared distances to the means of the words over those to the mean of all."""
    _, number, counts = np.unique(words, return_inverse=True, return_counts=True)
    order = np.argsort(number, kind="stable")
    first = np.cumsum(counts) - counts

    def add(block: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Squares of the points, those of the words' sums over their counts, and the sum of all points."""
        start, stop = first[block[0]], first[block[-1]] + counts[block[-1]]
        rows = points[order[start:stop]].astype(np.float64)
        sums = np.add.reduceat(rows, first[block] - start, axis=0)
        within = (np.einsum("ij,ij->i", sums, sums) / counts[block]).sum()
        return float(np.einsum("ij,ij->", rows, rows)), float(within), sums.sum(axis=0)

    blocks = np.array_split(np.arange(len(counts)), min(len(counts), 1 + (len(points) >> 16)))
    with ThreadPoolExecutor(usable_cores()) as pool:
        parts = list(pool.map(add, blocks))
    squares, explained = sum(part[0] for part in parts), sum(part[1] for part in parts)
    everything = np.sum([part[2] for part in parts], axis=0)
    between = squares - float(np.square(everything).sum()) / len(points)
    return (squares - explained) / between if between > 1e-12 * squares else 0.0  # all points equal, up to rounding


class TreeQuery(_OnTree):
    """Words of descriptors that were not in the build."""

    class Parameters(TreeParameters):
        """``queries`` descriptors go through a tree of ``points``."""

        queries: int = Field(ge=1, lt=2**31)

    name = "tree_query"
    title = "Words of descriptors"
    metric = Metric("vocab_tree.query", "Mpoints/s", "higher", "descriptors quantised per second")
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"points": 2000, "levels": 3, "clusters": 5, "iterations": 3, "queries": 1000},
        "quick": {"points": 50_000, "levels": 4, "iterations": 4, "queries": 200_000},
        "full": {"points": 200_000, "levels": 4, "iterations": 4, "queries": 2_000_000},
        "large": {"points": 500_000, "levels": 5, "iterations": 4, "queries": 10_000_000},
    }
    check_sizes = (
        {"points": 90, "dims": 16, "clusters": 3, "levels": 2, "iterations": 2, "queries": 70},
        {"points": 170, "dims": 32, "clusters": 4, "levels": 3, "iterations": 2, "queries": 131},
    )

    @cached_property
    def queries(self) -> np.ndarray:
        """Descriptors, uint8, (queries, dims)."""
        p = self.parameters
        return data.points("generated", p.queries, p.dims, self.seed + 1)

    @cached_property
    def tables(self) -> query.Tables:
        """The tree as arrays."""
        return query.tables(self.tree)

    @cached_property
    def _sample(self) -> np.ndarray:
        count = self.parameters.queries
        if count <= SAMPLE:
            return np.arange(count)
        drawn = np.random.default_rng(self.seed + 3).integers(0, count, SAMPLE)
        return np.unique(np.concatenate([drawn, [0, count - 1]]))

    @cached_property
    def _expected(self) -> np.ndarray:
        return query.quantise(self.tree, self.queries[self._sample])

    def check(self, outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
        return {name: compare_exact(words[self._sample], self._expected) for name, words in outputs.items()}

    def work(self) -> Work:
        """A multiply-add per dimension and centre of the root, which every path has; the tree's centres read once."""
        p = self.parameters
        return Work(
            integer_ops=2.0 * p.queries * p.dims * p.clusters,
            read_bytes=float(p.queries) * p.dims + self.tables.centres.nbytes, write_bytes=4.0 * p.queries,
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.parameters.queries / seconds / 1e6
