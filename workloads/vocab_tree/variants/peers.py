"""Peers: what the libraries that people use instead need, from the same centres, for the same iterations.

Libraries are imported when a peer is built, never with this module. Points are FP32 for them, outside the timed window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

import numpy as np

from perfport.workload import (
    COMPILER,
    THREADS,
    HostPeer,
    Problem,
    TorchCudaPeer,
    TorchHostPeer,
    TorchPeer,
    Tunable,
    UnsupportedError,
    thread_count,
    usable_cores,
    version_of,
)

from .. import fixed_point, seeding
from ..kmeans_problems import KmeansFragments, KmeansIteration
from ..outputs import MEANS, MEANS_ONLY
from ..tree_problems import WORDS, TreeBuild
from . import inputs

#: What FP16 peers divide points and centres by: the norm of SIFT, whose square (262144) is beyond FP16. k-means does
#: not mind the scale, and bytes over a power of two stay exact. The squares of centres are summed in FP32, so that what
#: remains is the rounding of centres to 11 bits: below 30 of squared distance (20 among 100 000 points, K = 256).
NORM = 512.0


def _means(points: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the means of classes by labels, those of empty classes as they were; by a product with a sparse matrix."""
    from scipy import sparse

    count = len(points)
    ones = np.ones(count, np.float32)
    members = sparse.csc_matrix((ones, labels, np.arange(count + 1)), shape=(len(centres), count)).tocsr()
    sizes = np.diff(members.indptr)[:, None]
    return np.where(sizes > 0, members @ points / np.maximum(sizes, 1), centres)


class _Lloyd(HostPeer):
    """A library on the host that iterates over nodes, from points and centres in FP32."""

    problem: ClassVar[type[Problem]] = KmeansIteration
    computes = MEANS_ONLY

    def prepare(self) -> None:
        self.points = self.data.points.astype(np.float32)
        self.centres = self.data.centres.astype(np.float32) / fixed_point.ONE

    def notes(self) -> dict[str, Any]:
        first = np.asarray(self.outputs["means"][0], np.float64)
        return {"threads": usable_cores(), "inertia_per_point": self.data.inertia(first)}


class ScikitLearn(_Lloyd):
    """``KMeans`` with one iteration, or an iteration of its parts.

    The class centres the points before and classifies once more after, which is in its time.
    """

    name, title, rung = "sklearn", "scikit-learn, one iteration of Lloyd's", 1
    modules = ("sklearn.cluster",)
    source = version_of("scikit-learn")
    tunables: ClassVar = {
        "form": Tunable("argmin", ("argmin", "lloyd", "elkan"), "pairwise_distances_argmin, or algorithm of KMeans")
    }

    def compute(self) -> Mapping[str, Any]:
        from sklearn.cluster import KMeans
        from sklearn.metrics import pairwise_distances_argmin

        form = self.setup.tunables["form"]
        if form == "argmin":
            labels = pairwise_distances_argmin(self.points, self.centres[0])
            return {"means": _means(self.points, labels, self.centres[0])[None]}
        model = KMeans(self.data.clusters, init=self.centres[0], n_init=1, max_iter=1, tol=0.0, algorithm=form)
        return {"means": model.fit(self.points).cluster_centers_[None]}


def _faiss_means(points: np.ndarray, centres: np.ndarray, iterations: int, form: str = "kmeans") -> np.ndarray:
    """Return the means of FAISS's k-means from given centres, over all points, or of an iteration by its search."""
    import faiss

    clusters, dims = centres.shape
    if form == "search":
        index = faiss.IndexFlatL2(dims)
        index.add(centres)
        return _means(points, index.search(points, 1)[1].ravel(), centres)
    parameters = {"niter": iterations, "min_points_per_centroid": 1, "max_points_per_centroid": 1 << 30}
    model = faiss.Kmeans(dims, clusters, **parameters)
    model.train(points, init_centroids=np.ascontiguousarray(centres))
    return np.asarray(model.centroids)


def _faiss_threads(count: int) -> None:
    """Let FAISS use so many threads when this thread calls it."""
    import faiss

    faiss.omp_set_num_threads(count)


class _Faiss(HostPeer):
    """What threads of FAISS's peers share: the points of a node, or whole nodes."""

    modules = ("faiss",)
    source = version_of("faiss-cpu")
    SHARE: ClassVar = {"threads": Tunable("nodes", ("nodes", "points"), "what threads share")}

    def each(self, nodes: int, function: Callable[..., Any], *given: Iterable[Any]) -> list[Any]:
        """Return the function's results for each of so many nodes; threads share the points of a few nodes anyhow."""
        cores = usable_cores()
        count, own = (cores, 1) if nodes >= cores and self.setup.tunables["threads"] == "nodes" else (1, cores)
        with ThreadPoolExecutor(count, initializer=_faiss_threads, initargs=(own,)) as pool:
            return list(pool.map(function, *given))


class Faiss(_Lloyd):
    """``Kmeans``, one iteration over all points, or an iteration by its search."""

    name, title, rung = "faiss", "FAISS, one iteration of Lloyd's", 2
    modules = ("faiss",)
    source = version_of("faiss-cpu")
    FORM: ClassVar = {"form": Tunable("search", ("search", "kmeans"), "IndexFlatL2 and sums by labels, or Kmeans")}
    tunables: ClassVar = {**FORM, "threads": THREADS}

    def compute(self) -> Mapping[str, Any]:
        _faiss_threads(thread_count(self.setup.tunables["threads"]))
        return {"means": _faiss_means(self.points, self.centres[0], 1, self.setup.tunables["form"])[None]}


class FaissNodes(_Faiss, _Lloyd):
    """The same, node by node."""

    problem = KmeansFragments
    name, title, rung = "faiss", "FAISS, one iteration per node", 1
    tunables: ClassVar = {**Faiss.FORM, **_Faiss.SHARE}

    def compute(self) -> Mapping[str, Any]:
        form, firsts, sizes = self.setup.tunables["form"], self.data.node_first, self.data.node_sizes
        points = (self.points[first : first + size] for first, size in zip(firsts, sizes, strict=True))
        step = partial(_faiss_means, iterations=1, form=form)
        return {"means": np.stack(self.each(self.data.nodes, step, points, self.centres))}


class FaissTree(_Faiss):
    """``Kmeans`` applied to every node, from the same first points; a search assigns the points to children."""

    problem = TreeBuild
    computes = WORDS
    name, title, rung = "faiss", "FAISS Kmeans per node", 1
    tunables: ClassVar = _Faiss.SHARE

    def prepare(self) -> None:
        self.points = self.data.points.astype(np.float32)

    def labels(self, level: int, path: int, members: np.ndarray) -> np.ndarray:
        """Return which child each member of a node goes to."""
        import faiss

        p, own = self.data.parameters, self.points[members]
        where = np.array([level]), np.array([path], np.uint64), np.array([len(members)])
        first = own[seeding.draw(self.data.seed, *where, p.clusters)[0]]
        index = faiss.IndexFlatL2(self.data.dims)
        index.add(_faiss_means(own, first, p.iterations))
        children: np.ndarray = index.search(own, 1)[1].ravel()
        return children

    def compute(self) -> Mapping[str, Any]:
        p = self.data.parameters
        words = np.zeros(self.data.count, np.uint64)
        nodes = [(0, np.arange(self.data.count))]
        for level in range(p.levels):
            nodes = [(path, members) for path, members in nodes if len(members) >= p.clusters]
            parts = self.each(len(nodes), partial(self.labels, level), *zip(*nodes, strict=True)) if nodes else []
            children = []
            for (path, members), labels in zip(nodes, parts, strict=True):
                for k in range(p.clusters):
                    inside = members[labels == k]
                    if len(inside):
                        children.append((path * p.clusters + k, inside))
                        # Leaves of different depth differ by the level's digit in front.
                        words[inside] = (level + 1) << 59 | (path * p.clusters + k) % (1 << 59)
            nodes = children
        return {"words": words}

    def notes(self) -> dict[str, Any]:
        return {"threads": usable_cores(), "residual": self.data.residual(self.outputs["words"])}


def _scattered(torch: Any, x: Any, centres: Any, half: Any) -> tuple[Any, Any, Any]:
    """Labels, sums and counts of a block, by additions to the rows of the sums."""
    own = (x @ centres.T - half).argmax(1)
    sums = torch.zeros_like(centres).index_add_(0, own, x)  # below 2^24 for most blocks: exact
    return own, sums, torch.zeros_like(half).index_add_(0, own, torch.ones_like(x[:, 0]))


def _multiplied(torch: Any, x: Any, centres: Any, half: Any) -> tuple[Any, Any, Any]:
    """The same by a product with the labels as rows of zeros and ones."""
    own = (x @ centres.T - half).argmax(1)
    members = (own[:, None] == torch.arange(len(centres), device=x.device)).to(x.dtype)
    return own, members.T @ x, members.sum(0)


#: Ways to add up the points of each class.
SUMS: dict[str, Callable[..., tuple[Any, Any, Any]]] = {"scattered": _scattered, "multiplied": _multiplied}


class _Torch(TorchPeer):
    """Scores by a product, the nearest by its maximum, sums by one of the forms, in blocks."""

    problem = KmeansIteration
    computes = MEANS
    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "sums": Tunable({"cpu": "scattered", "gpu": "multiplied"}, tuple(SUMS), "how points are added up"),
        "block": Tunable(1 << 20, (1 << 17, 1 << 20), "points taken at a time"),
    }
    points: Any  # tensor, FP32
    centres: Any  # tensor, (clusters, dims)

    def step(self, x: Any, half: Any) -> tuple[Any, Any, Any]:
        """Labels, sums and counts of a block."""
        return SUMS[self.setup.tunables["sums"]](self.torch, x, self.centres, half)

    def compute(self) -> Mapping[str, Any]:
        torch, c = self.torch, self.centres
        half = 0.5 * (c * c).sum(1)
        blocks = [self.step(x, half) for x in self.points.split(self.setup.tunables["block"])]
        labels = torch.cat([own for own, _, _ in blocks])
        sums = torch.stack([part for _, part, _ in blocks]).sum(0, dtype=torch.float64)
        counts = torch.stack([part for _, _, part in blocks]).sum(0)
        return {"labels": labels, "means": (sums / counts.clamp(min=1)[:, None])[None]}

    def results(self) -> dict[str, np.ndarray]:
        outputs = super().results()
        return {**outputs, "labels": outputs["labels"].astype(np.uint8)}


class TorchCpu(_Torch, TorchHostPeer):
    """On the host."""

    name, title, rung = "torch_cpu", "PyTorch on the host, a Lloyd step", 3
    tunables: ClassVar = {
        **_Torch.tunables,
        **TorchHostPeer.tunables,
        "block": Tunable(1 << 14, (1 << 14, 1 << 17), "points taken at a time"),
    }

    def prepare(self) -> None:
        self.points = self.upload(self.data.points.astype(np.float32))
        self.centres = self.upload(self.data.centres[0].astype(np.float32) / fixed_point.ONE)


class TorchCuda(_Torch, TorchCudaPeer):
    """On the GPU, TF32 off."""

    name, title, rung = "torch", "PyTorch on the GPU, a Lloyd step", 4

    def prepare(self) -> None:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        self.points = self.tensor(inputs.float_points(self.setup), self.data.points.shape)
        self.centres = self.tensor(inputs.float_centres(self.setup), self.data.centres.shape)[0]


class TorchCompiled(TorchCuda):
    """The same, a block's operations fused by the compiler."""

    name, title, rung = "torch_compiled", "PyTorch on the GPU, a Lloyd step, compiled", 5
    tunables: ClassVar = {**_Torch.tunables, "compiler": COMPILER}

    def prepare(self) -> None:
        super().prepare()
        self.step = self.compiled(super().step)  # type: ignore[method-assign]


class FlashKmeans(TorchCudaPeer):
    """Triton kernels of flash-kmeans; nodes of equal size in one batch.

    Its own function sums the squares of all points before the first iteration, which is a large part of a single one's
    time: ``call`` says whether that is in the time, or ahead of it as what our iterations start from is. The rest is
    what its loop runs: labels, and means by sorted labels. It takes FP32, but multiplies in TF32, as Triton's ``dot``
    does unless told otherwise.
    """

    name, title, rung = "flash_kmeans", "flash-kmeans, FP32 multiplied in TF32, one iteration", 6
    problem: ClassVar[type[Problem]] = KmeansIteration
    computes, precision, unit = MEANS, "tf32", "tf32_mma"
    modules = ("cupy", "torch", "flash_kmeans")
    source = version_of("flash-kmeans")
    tunables: ClassVar = {
        "call": Tunable("iteration", ("iteration", "whole"), "one turn of the loop, or the whole function with one"),
        "kernels": Tunable("autotuned", ("autotuned", "heuristic"), "how sizes of tiles are chosen"),
    }

    def prepare(self) -> None:
        if len(set(self.data.node_sizes.tolist())) > 1:
            raise UnsupportedError("node_points: flash-kmeans takes nodes of equal size (equal: true)")
        shape = self.data.nodes, -1, self.data.dims
        points = self.tensor(inputs.float_points(self.setup), self.data.points.shape)
        self.points = self.scaled(points.reshape(shape))
        self.centres = self.scaled(self.tensor(inputs.float_centres(self.setup), self.data.centres.shape))
        # In parts, as the library does it: squares of all points would take as much memory as these.
        parts = (part.square().sum(-1) for part in self.points.split(1 << 20, dim=1))
        self.squares = self.torch.cat(list(parts), dim=1)
        self.torch.cuda.synchronize()

    def scaled(self, values: Any) -> Any:
        """A tensor of FP32 in the library's precision and scale; `results` scales the means back."""
        return values.half() / NORM if self.precision == "fp16" else values

    def compute(self) -> Mapping[str, Any]:
        import flash_kmeans
        from flash_kmeans.assign_euclid_triton import euclid_assign_triton

        heuristic = self.setup.tunables["kernels"] == "heuristic"
        if self.setup.tunables["call"] == "whole":
            labels, means, *_ = flash_kmeans.batch_kmeans_Euclid(
                self.points, self.data.clusters, max_iters=1, init_centroids=self.centres, use_heuristic=heuristic
            )
        else:
            labels = euclid_assign_triton(self.points, self.centres, self.squares, use_heuristic=heuristic)
            means = flash_kmeans.triton_centroid_update_sorted_euclid(self.points, labels, self.centres)
        return {"labels": labels, "means": means}

    def results(self) -> dict[str, np.ndarray]:
        scale = np.float32(NORM if self.precision == "fp16" else 1.0)
        return {
            "labels": self.outputs["labels"].cpu().numpy().astype(np.uint8).ravel(),
            "means": self.outputs["means"].float().cpu().numpy() * scale,
        }


class FlashKmeansHalf(FlashKmeans):
    """The same in FP16, a precision class of its own."""

    name, title, rung = "flash_kmeans_half", "flash-kmeans, FP16, one iteration", 7
    precision, unit = "fp16", "bf16_mma"  # the same rate


class FlashFragments(FlashKmeans):
    """Nodes of equal size in one batch."""

    problem = KmeansFragments
    name, title, rung = "flash_kmeans", "flash-kmeans, FP32 multiplied in TF32, one batch", 2


class FlashFragmentsHalf(FlashFragments):
    """The same in FP16."""

    name, title, rung = "flash_kmeans_half", "flash-kmeans, FP16, one batch", 3
    precision, unit = "fp16", "bf16_mma"  # the same rate
