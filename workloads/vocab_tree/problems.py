"""The problems: one iteration over one node, one over many small nodes, whole builds, and queries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.errors import UsageError
from perfport.record import OutputError
from perfport.verify import compare_exact
from perfport.work import Work
from perfport.workload import Metric, Problem

from . import data, fixed_point, reference, seeding

SAMPLE = 100_000  # labels that are compared where there are more
FLOAT_SLACK = 1.0  # squared distance by which a label computed in FP32 may miss the nearest centre
#: Outputs computed in FP32 end so: labels may differ where two centres are within `FLOAT_SLACK`.
FLOAT = ".float"


class NodeParameters(BaseModel):
    """``points`` descriptors of ``dims`` bytes from ``source`` (``generated``, ``sift``, or a file), ``clusters`` centres."""

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

    def _check_labels(self, labels: np.ndarray, exact: bool) -> OutputError:
        own = labels[self.compared]
        if exact:
            return compare_exact(own, self._scores.argmax(axis=1).astype(np.uint8))
        if own.max() >= self.clusters:
            return compare_exact(own, self._scores.argmax(axis=1).astype(np.uint8))
        chosen = self._scores[np.arange(len(own)), own]
        missed = 2 * float((self._scores.max(axis=1) - chosen).max()) / fixed_point.ONE
        return OutputError(
            max_abs=missed, relative_l2=0.0, checked=len(own), total=self.count,
            tolerance={"squared_distance": FLOAT_SLACK}, passed=missed <= FLOAT_SLACK,
        )  # fmt: skip

    def _totals_of(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums and counts by node and class of these labels; kept, because every exact variant has the same."""
        key = hashlib.sha256(labels).digest()
        if key not in self._totals:
            found = [
                reference.totals(self.points[first : first + size], labels[first : first + size], self.clusters)
                for first, size in zip(self.node_first, self.node_sizes, strict=True)
            ]
            self._totals[key] = (np.stack([sums for sums, _ in found]), np.stack([counts for _, counts in found]))
        return self._totals[key]

    def check(self, outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
        found = {}
        suffix = FLOAT if any(name.endswith(FLOAT) for name in outputs) else ""
        labels = outputs["labels" + suffix]
        sums, counts = self._totals_of(labels)
        for name, value in outputs.items():
            plain = name.removesuffix(suffix)
            if plain == "labels":
                found[name] = self._check_labels(value, not suffix)
            else:
                expected = sums if plain == "sums" else counts
                found[name] = compare_exact(value.reshape(expected.shape), expected)
        return found

    def work(self) -> Work:
        """A multiply-add per point, dimension and centre, an addition per point and dimension; labels and sums written."""
        elements, centres = float(self.count) * self.dims, float(self.nodes) * self.clusters
        return Work(
            integer_ops=2 * elements * self.clusters + elements,
            read_bytes=elements + 2 * centres * self.dims, write_bytes=self.count + 4 * centres * (self.dims + 1),
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.count / seconds / 1e6

    def inertia(self, labels: np.ndarray) -> float:
        """Squared distances of the compared points to the centres that the labels name, per point."""
        best = self._scores[np.arange(len(self.compared)), labels[self.compared]]
        norms = np.square(self.points[self.compared].astype(np.int64)).sum(axis=1)
        return float((norms - 2 * best / fixed_point.ONE).mean())


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
            raise UsageError(f"nodes, node_points: expected at most {fixed_point.POINTS_LIMIT} points, got {self.count}")

    @cached_property
    def centres(self) -> np.ndarray:  # type: ignore[override]
        """Fixed point, uint16, (nodes, clusters, dims)."""
        return self._first_centres()
