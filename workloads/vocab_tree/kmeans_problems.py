"""The problems of a pass: one k-means iteration over one node, and over many small nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import (
    Metric,
    Output,
    OutputError,
    Problem,
    Sampled,
    UsageError,
    Work,
    compare,
    compare_exact,
    digest_of,
)

from . import data, fixed_point, reference, seeding
from .outputs import EXACT_UNITS, FLOAT, FLOAT_SLACK, MEANS, MEANS_ONLY, ROUNDED_SLACK, ROUNDED_UNITS, sampled

BETWEEN = 6  # points of a node between two centres, for which all choices of labels are tried


class NodeParameters(BaseModel):
    """``points`` descriptors of ``dims`` bytes from ``source``: see `data.points`."""

    model_config = ConfigDict(extra="forbid")

    points: int = Field(ge=2, le=fixed_point.POINTS_LIMIT)
    dims: int = Field(128, ge=16, le=fixed_point.DIMS_LIMIT, multiple_of=16)
    clusters: int = Field(10, ge=2, le=fixed_point.CLUSTERS_LIMIT)
    source: data.Source = "generated"


class _Iteration(Problem):
    """What a pass over one or many nodes has in common: points in order of nodes, their centres, the check."""

    results: ClassVar[dict[str, tuple[str, ...]]] = {
        "": ("fp32",), FLOAT: ("fp32",), MEANS: ("fp32", "tf32", "fp16"), MEANS_ONLY: ("fp32",)
    }  # fmt: skip
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
        centres = np.empty((self.nodes, self.clusters, self.dims), np.uint16)
        for node, (first, size, own) in enumerate(zip(self.node_first, self.node_sizes, drawn, strict=True)):
            part = self.points[first : first + min(size, 20_000)]
            start = fixed_point.from_points(self.points[first + own])
            sums, counts = reference.totals(part, reference.classify(part, start), self.clusters)
            means = fixed_point.from_sums(sums, counts)
            centres[node] = np.where(counts[:, None] > 0, means, start)
        return centres

    @cached_property
    def compared(self) -> np.ndarray:
        """Points that figures are made of: all, or a sample with the first and the last."""
        return sampled(self.count, self.seed + 1)

    def _check_labels(self, labels: np.ndarray, slack: float) -> OutputError:
        """Labels are those of the nearest centre, or of one at most ``slack`` farther in squared distance."""
        if not slack or labels.max() >= self.clusters:
            return compare_exact(labels, self._labels)
        other = np.flatnonzero(labels != self._labels)
        parts = [other[first : first + reference.BLOCK] for first in range(0, len(other), reference.BLOCK)]
        missed = max((self._missed(part, labels) for part in parts), default=0.0)
        return OutputError(
            max_abs=missed, relative_l2=0.0, checked=self.count, total=self.count,
            tolerance={"squared_distance": slack}, passed=missed <= slack,
        )  # fmt: skip

    def _missed(self, which: np.ndarray, labels: np.ndarray) -> float:
        """Return how much farther some points are, in squared distance, from the centres of these labels, at most."""
        node = np.searchsorted(self.node_first, which, side="right") - 1
        points = self.points[which].astype(np.int64)

        def scores(labels: np.ndarray) -> np.ndarray:
            own = self.centres[node, labels[which]]
            return (points * own).sum(axis=1) - fixed_point.halves(own)

        return 2 * float((scores(self._labels) - scores(labels)).max()) / fixed_point.ONE

    def _totals_of(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums and counts by node and class of these labels; kept, because every exact variant has the same."""
        key = digest_of({"labels": labels})
        if key not in self._totals:
            totals = [
                reference.totals(self.points[first : first + size], labels[first : first + size], self.clusters)
                for first, size in zip(self.node_first, self.node_sizes, strict=True)
            ]
            self._totals[key] = (np.stack([sums for sums, _ in totals]), np.stack([counts for _, counts in totals]))
        return self._totals[key]

    def _totals_shown_by(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums and counts by the reference's labels, but of a point between two centres by the label that means show.

        Two centres are about equally near to a point now and then, and either is right. Without labels the means of the
        two classes alone tell which it was: of all choices in a node the one counts that they are nearest to; none
        empties a class, whose mean could then be anything. Where more points than `BETWEEN` are so, the node has many,
        or many that are equal, and the labels stay.
        """
        sums, counts = (totals.astype(np.int64) for totals in self._totals_of(self._labels))
        for node, (first, size) in enumerate(zip(self.node_first, self.node_sizes, strict=True)):
            points = self.points[first : first + size]
            between, others = reference.between(points, self.centres[node], FLOAT_SLACK)
            if not 0 < len(between) <= BETWEEN:
                continue
            moved = np.array(list(product((0, 1), repeat=len(between))))  # (choices, between); none is the first
            steps = np.zeros((len(between), self.clusters), np.int64)
            steps[range(len(between)), self._labels[first + between]] = -1
            steps[range(len(between)), others] = 1
            n = counts[node] + moved @ steps
            totals = sums[node] + np.einsum("mb,bc,bd->mcd", moved, steps, points[between].astype(np.int64))
            off = np.square(means[node] - totals / np.maximum(n, 1)[..., None]).sum(axis=-1)
            off = np.where(n > 0, off, np.where(counts[node] > 0, np.inf, 0.0))
            best = off.sum(axis=-1).argmin()
            sums[node], counts[node] = totals[best], n[best]
        return sums, counts

    @cached_property
    def _labels(self) -> np.ndarray:
        """Labels of all points by the reference."""
        return np.concatenate([
            reference.classify(self.points[first : first + size], own)
            for first, size, own in zip(self.node_first, self.node_sizes, self.centres, strict=True)
        ])  # fmt: skip

    def outputs(self, computes: str = "", precision: str = "fp32", /) -> dict[str, Output]:
        classes = self.nodes, self.clusters
        labels = {"labels": Output(np.uint8, (self.count,))}
        means = {"means": Output((np.float32, np.float64), (*classes, self.dims))}
        if computes in (MEANS, MEANS_ONLY):
            return means if computes == MEANS_ONLY else {**labels, **means}
        return {**labels, "sums": Output(np.uint32, (*classes, self.dims)), "counts": Output(np.uint32, classes)}

    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        """Labels by the nearest centre; sums and counts, or means, by the labels given, else by the reference's."""
        given = outputs.get("labels")
        sums, counts = self._totals_of(self._labels if given is None else given)
        errors = {}
        for name, value in outputs.items():
            if name == "labels":
                slack = 0.0 if not computes else FLOAT_SLACK if precision == "fp32" else ROUNDED_SLACK
                errors[name] = self._check_labels(value, slack)
            elif name == "means":
                tolerance = 1e-2 if precision == "fp16" else 1e-3
                errors[name] = _compare_means(value, sums, counts, tolerance)
                if given is None and not errors[name].passed:
                    errors[name] = _compare_means(value, *self._totals_shown_by(value), tolerance)
            else:
                errors[name] = compare_exact(value, sums if name == "sums" else counts)
        return errors

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        """A multiply-add per point, dimension and centre; labels, sums written.

        Additions to the sums are left out: other units than those of the products can do them.
        """
        elements, centres = float(self.count) * self.dims, float(self.nodes) * self.clusters
        return Work(
            integer_ops=2 * elements * self.clusters,
            read_bytes=elements + 2 * centres * self.dims, write_bytes=self.count + 4 * centres * (self.dims + 1),
            integer_units=EXACT_UNITS if precision == "fp32" else ROUNDED_UNITS,
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.count / seconds / 1e6

    def inertia(self, means: np.ndarray) -> float:
        """Mean squared distance of the compared points of the first node to the nearest of its new means."""
        points = self.points[self.compared[self.compared < self.node_sizes[0]]].astype(np.float64)
        squares = np.square(points).sum(axis=1)
        nearest = (2 * points @ means.T - np.square(means).sum(axis=1)).max(axis=1)
        return float((squares - nearest).mean())


def _compare_means(means: np.ndarray, sums: np.ndarray, counts: np.ndarray, tolerance: float) -> OutputError:
    """Compare means with those of sums and counts, but of empty classes, which libraries fill each in its own way."""
    used = counts > 0
    at = Sampled(np.arange(means.size).reshape(means.shape)[used], means.shape)
    return compare(means[used], sums[used] / counts[used][:, None], means.size, relative_l2=tolerance, sampled=at)


class KmeansIteration(_Iteration):
    """Labels of all points of one node, and sums and counts by class."""

    name = "kmeans_iteration"
    title = "One k-means iteration over one node"
    metric = Metric("vocab_tree.iteration", "Mpoints/s", "higher", "points classified and added up per second")
    Parameters = NodeParameters
    inputs_by_buffers = True
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"points": 3000},
        "quick": {"points": 300_000},
        "sift": {"points": 20_000, "source": "sift"},
        "full": {"points": 2_000_000},
        "large": {"points": 10_000_000},
        "many": {"points": 10_000_000, "clusters": 256},
        "paper": {"points": 16_000_000},
    }
    headline = {"cpu": "quick", "gpu": "large"}
    check_sizes = (
        {"points": 331, "dims": 16, "clusters": 5},
        {"points": 520, "dims": 32, "clusters": 8},
        {"points": 3, "dims": 128, "clusters": 2},
        {"points": 131, "dims": 32, "clusters": 5, "source": "equal"},
        {"points": 131, "dims": 128, "clusters": 7, "source": "extreme"},
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
        source: data.Source = "generated"

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
    headline = {"cpu": "quick", "gpu": "large"}
    check_sizes = (
        {"nodes": 3, "node_points": 70, "dims": 16, "clusters": 5},
        {"nodes": 5, "node_points": 90, "dims": 32, "clusters": 8},
        {"nodes": 2, "node_points": 8, "dims": 128, "clusters": 3},
        {"nodes": 2, "node_points": 40, "dims": 32, "clusters": 4, "source": "equal"},
        {"nodes": 3, "node_points": 40, "dims": 128, "clusters": 3, "source": "extreme"},
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

    def redrawn(self, seed: int) -> KmeansFragments:
        other = type(self)(self.parameters, seed)
        other.node_sizes = self.node_sizes
        return other

    @cached_property
    def centres(self) -> np.ndarray:  # type: ignore[override]
        """Fixed point, uint16, (nodes, clusters, dims)."""
        return self._first_centres()
