"""The problems of a tree: its build, and the words of descriptors that were not in it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import (
    Metric,
    Output,
    OutputError,
    Problem,
    UsageError,
    Work,
    compare_exact,
    digest_of,
    usable_cores,
)

from . import data, fixed_point, query, reference, seeding, tree
from .outputs import EXACT_UNITS

WORDS = "words"  # what a library's build leaves: the word of each point, in numbers of its own
SAMPLED_NODES = 4  # of each level, besides the largest: built again, whatever their size
WHOLE_TREE = 30_000  # points up to which a tree is compared with a tree built by NumPy


class TreeParameters(BaseModel):
    """A tree: ``clusters`` children to a node, ``levels`` deep, at most ``iterations`` per node."""

    model_config = ConfigDict(extra="forbid")

    points: int = Field(ge=2, lt=2**32)
    dims: int = Field(128, ge=16, le=fixed_point.DIMS_LIMIT, multiple_of=16)
    clusters: int = Field(10, ge=2, le=fixed_point.CLUSTERS_LIMIT)
    levels: int = Field(ge=1, le=16)
    iterations: int = Field(10, ge=1, le=1000)
    source: data.Source = "generated"


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
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32",), WORDS: ("fp32",)}
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
        "paper": {"points": 16_000_000, "levels": 6, "memory_share": 0.12},  # 6 of the patent's 50 GB
    }
    headline = {"cpu": "quick", "gpu": "large"}
    check_sizes = (
        {"points": 90, "dims": 16, "clusters": 3, "levels": 2, "iterations": 2},
        {"points": 83, "dims": 32, "clusters": 4, "levels": 3, "iterations": 3},
        {"points": 61, "dims": 16, "clusters": 3, "levels": 3, "iterations": 2, "source": "equal"},
        {"points": 97, "dims": 128, "clusters": 4, "levels": 3, "iterations": 2, "source": "extreme"},
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

    def work(self, *which: str) -> Work:
        """One transfer and one read of the points, what no build does without; iterations depend on the data."""
        elements = float(self.count) * self.dims
        return Work(
            integer_ops=2 * elements * self.clusters, read_bytes=elements, write_bytes=4.0 * self.count,
            host_bytes=elements, integer_units=EXACT_UNITS,
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.count / seconds / 1e6

    def outputs(self, computes: str = "", *which: str) -> dict[str, Output]:
        words = Output((np.uint32, np.uint64), (self.count,))
        if computes == WORDS:
            return {"words": words}
        declared = {"points": words}
        for level in range(self.parameters.levels):
            declared |= {
                f"paths_{level}": Output(np.uint64, (None,)),
                f"counts_{level}": Output(np.uint32, (None, self.clusters)),
                f"centres_{level}": Output(np.uint16, (None, self.clusters, self.dims)),
            }  # fmt: skip
        return declared

    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        if computes == WORDS:
            return {"words": self._check_number(outputs["words"]), "residual": self._check_residual(outputs["words"])}
        key = digest_of(outputs)
        if key not in self._checked:  # every exact variant builds the same
            self._checked[key] = self._check_tree(outputs)
        return self._checked[key]

    def residual(self, words: np.ndarray) -> float:
        """What `residual_of_words` says; kept, because every exact variant gives the same words."""
        key = digest_of({"words": words})
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
        # Points, quantised, end in the leaves that they were put in.
        words = compare_exact(built.points, query.quantise(built, self.points))
        return {"words": words, "nodes": self._check_nodes(built)}

    def _check_nodes(self, built: tree.Tree) -> OutputError:
        """The largest node of every level and a sample of others, built again from their points, have their centres."""
        p, rng = self.parameters, np.random.default_rng(self.seed + 2)
        paths, depths = built.leaf_paths()
        expected, built_centres = [], []
        for number, level in enumerate(built.levels):
            sizes = level.counts.sum(axis=1)
            drawn = rng.choice(len(sizes), min(SAMPLED_NODES, len(sizes)), replace=False)
            for node in np.unique(np.append(drawn, sizes.argmax())):
                up = np.power(
                    np.uint64(self.clusters), np.maximum(depths.astype(np.int64) - number, 0).astype(np.uint64)
                )
                inside = (paths // up == level.paths[node]) & (depths > number)
                members = np.flatnonzero(inside[built.points])
                where = np.array([number]), level.paths[node : node + 1], np.array([len(members)])
                own = self.points[members]
                start = fixed_point.from_points(own[seeding.draw(self.seed, *where, self.clusters)[0]])
                expected.append(reference.lloyd(own, start, p.iterations).centres)
                built_centres.append(level.centres[node])
        return compare_exact(np.array(built_centres), np.array(expected))

    @cached_property
    def _left_by_part(self) -> float:
        """What a tree of some points leaves of as many others, by its own centres: more than a tree of all points."""
        p, drawn = self.parameters, np.random.default_rng(self.seed + 3).permutation(self.count)[:WHOLE_TREE]
        some, others = np.array_split(self.points[np.sort(drawn)], 2)
        part = reference.build(some, p.clusters, p.levels, p.iterations, self.seed)
        distances = np.square(others - query.centres(part)[query.quantise(part, others)]).sum()
        return float(distances / np.square(others - others.mean(axis=0)).sum())

    def _check_number(self, words: np.ndarray) -> OutputError:
        """A tree has no more leaves than its levels allow: with a word for each point nothing would be left."""
        number, most = len(np.unique(words)), self.clusters**self.parameters.levels
        return OutputError(
            max_abs=float(number), relative_l2=0.0, checked=len(words), total=self.count,
            tolerance={"words": float(most)}, passed=number <= most,
        )  # fmt: skip

    def _check_residual(self, words: np.ndarray) -> OutputError:
        """A library's words, by the means of their points, leave about as much as the exact tree.

        Where none was built, and there are too many points for NumPy, that is no more than `_left_by_part`.
        """
        own = self.residual(words)
        expected = self.last_residual
        if expected is None and self.count <= WHOLE_TREE:
            expected = self.residual(self.tree.points)
        limit = self._left_by_part if expected is None else 1.02 * expected
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
    headline = {"cpu": "quick", "gpu": "full"}
    check_sizes = (
        {"points": 90, "dims": 16, "clusters": 3, "levels": 2, "iterations": 2, "queries": 70},
        {"points": 170, "dims": 32, "clusters": 4, "levels": 3, "iterations": 2, "queries": 131},
        {"points": 90, "dims": 16, "clusters": 3, "levels": 2, "iterations": 2, "queries": 70, "source": "equal"},
        {"points": 97, "dims": 128, "clusters": 4, "levels": 2, "iterations": 2, "queries": 70, "source": "extreme"},
    )

    def redrawn(self, seed: int) -> TreeQuery:
        other = type(self)(self.parameters, seed)
        other.tree = self.tree
        return other

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
    def _expected(self) -> np.ndarray:
        return query.quantise(self.tree, self.queries)

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"words": Output(np.uint32, (self.parameters.queries,))}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {name: compare_exact(words, self._expected) for name, words in outputs.items()}

    def work(self, *which: str) -> Work:
        """A multiply-add per dimension and centre of all nodes on a descriptor's path; the tree's centres read once."""
        p = self.parameters
        nodes = float(self.tree.leaf_paths()[1][self._expected].sum(dtype=np.int64))
        return Work(
            integer_ops=2.0 * nodes * p.dims * p.clusters, integer_units=EXACT_UNITS,
            read_bytes=float(p.queries) * p.dims + self.tables.centres.nbytes, write_bytes=4.0 * p.queries,
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.parameters.queries / seconds / 1e6
