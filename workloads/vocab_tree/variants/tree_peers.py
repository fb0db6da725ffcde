"""PyTorch's way with many nodes at once: an iteration over fragments of any size, and a whole tree, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import TorchCudaPeer, TorchHostPeer, TorchPeer, Tunable, version_of

from .. import fixed_point, seeding
from ..kmeans_problems import KmeansFragments
from ..outputs import MEANS
from ..tree_problems import WORDS, TreeBuild
from . import inputs


class _Nodes(TorchPeer):
    """Lloyd's iteration over nodes whose points lie one node's behind the other's.

    Large nodes are taken one by one, by products; of small ones each point gets a copy of its node's centres, a block
    of points at a time, and is added to the row of its class.
    """

    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "alone": Tunable(
            {"cpu": 1 << 6, "gpu": 1 << 13},
            (1 << 6, 1 << 11, 1 << 13),
            "points per node from which on nodes are taken singly",
        ),
        "block": Tunable({"cpu": 1 << 12, "gpu": 1 << 18}, (1 << 12, 1 << 15, 1 << 18), "points taken at a time"),
    }

    def step(self, x: Any, sizes: np.ndarray, nodes: Any, centres: Any) -> tuple[Any, Any]:
        """Return labels, (points,), and means, (nodes, clusters, dims), those of empty classes as they were.

        Parameters
        ----------
        x : tensor, FP32, (points, dims)
        sizes : integer, (nodes,)
            Points of each node, on the host.
        nodes : tensor, (points,)
            Each point's node.
        centres : tensor, FP32, (nodes, clusters, dims)
        """
        half = 0.5 * centres.square().sum(2)
        singly = len(x) >= self.setup.tunables["alone"] * len(sizes)
        labels, sums, counts = (self._singly if singly else self._in_blocks)(x, sizes, nodes, centres, half)
        means = sums / counts.clamp(min=1)[..., None]
        return labels, self.torch.where(counts[..., None] > 0, means, centres)

    def _singly(self, x: Any, sizes: np.ndarray, nodes: Any, centres: Any, half: Any) -> tuple[Any, Any, Any]:
        numbers = self.torch.arange(centres.shape[1], device=x.device)
        labels, sums, counts = [], self.torch.zeros_like(centres), self.torch.zeros_like(half)
        for node, own in enumerate(x.split(sizes.tolist())):
            labels.append((own @ centres[node].T - half[node]).argmax(1))
            members = (labels[-1][:, None] == numbers).to(x.dtype)
            self.torch.mm(members.T, own, out=sums[node])
            counts[node] = members.sum(0)
        return self.torch.cat(labels), sums, counts

    def _in_blocks(self, x: Any, sizes: np.ndarray, nodes: Any, centres: Any, half: Any) -> tuple[Any, Any, Any]:
        torch, clusters = self.torch, centres.shape[1]
        labels, sums, counts = [], torch.zeros_like(centres), torch.zeros_like(half)
        block = self.setup.tunables["block"]
        for own, node in zip(x.split(block), nodes.split(block), strict=True):
            products = torch.bmm(centres[node], own[:, :, None])[:, :, 0]
            labels.append((products - half[node]).argmax(1))
            classes = node * clusters + labels[-1]
            sums.view(-1, x.shape[1]).index_add_(0, classes, own)
            counts.view(-1).index_add_(0, classes, torch.ones_like(own[:, 0]))
        return torch.cat(labels), sums, counts

    def node_of(self, sizes: np.ndarray, device: Any) -> Any:
        """Return the node of each point."""
        torch, count = self.torch, int(sizes.sum())
        repeats = torch.from_numpy(sizes.astype(np.int64)).to(device)
        return torch.repeat_interleave(torch.arange(len(sizes), device=device), repeats, output_size=count)


class _Fragments(_Nodes):
    """An iteration over many small nodes."""

    problem = KmeansFragments
    computes = MEANS
    points: Any  # tensor, FP32, (points, dims)
    centres: Any  # tensor, FP32, (nodes, clusters, dims)
    nodes: Any  # tensor, (points,)

    def compute(self) -> Mapping[str, Any]:
        labels, means = self.step(self.points, self.data.node_sizes, self.nodes, self.centres)
        return {"labels": labels, "means": means}

    def results(self) -> dict[str, np.ndarray]:
        outputs = super().results()
        return {**outputs, "labels": outputs["labels"].astype(np.uint8)}


class TorchCpuFragments(_Fragments, TorchHostPeer):
    """On the host."""

    name, title, rung = "torch_cpu", "PyTorch on the host, an iteration of all nodes", 4
    tunables: ClassVar = {**_Nodes.tunables, **TorchHostPeer.tunables}

    def prepare(self) -> None:
        self.points = self.upload(self.data.points.astype(np.float32))
        self.centres = self.upload(self.data.centres.astype(np.float32) / fixed_point.ONE)
        self.nodes = self.node_of(self.data.node_sizes, "cpu")


class TorchFragments(_Fragments, TorchCudaPeer):
    """On the GPU, TF32 off."""

    name, title, rung = "torch", "PyTorch on the GPU, an iteration of all nodes", 5

    def prepare(self) -> None:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        self.points = self.tensor(inputs.float_points(self.setup), self.data.points.shape)
        self.centres = self.tensor(inputs.float_centres(self.setup), self.data.centres.shape)
        self.nodes = self.node_of(self.data.node_sizes, self.points.device)


class TorchTree(_Nodes, TorchCudaPeer):
    """All nodes of a level together, from the same first points; sorted by class, points lie for the next level.

    On the GPU, TF32 off, from page-locked memory of the host. There is none for the host, where FAISS is faster.
    """

    name, title, rung = "torch", "PyTorch on the GPU, level by level", 2
    host_driven = True

    problem = TreeBuild
    computes = WORDS

    def prepare(self) -> None:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        self.points = self.torch.from_numpy(self.data.points).pin_memory()

    def uploaded(self) -> Any:
        """The points, FP32, on the GPU."""
        return self.points.cuda(self.device.number, non_blocking=True).to(self.torch.float32)

    def compute(self) -> Mapping[str, Any]:
        torch, p = self.torch, self.data.parameters
        x = self.uploaded()
        index, words = torch.arange(len(x), device=x.device), torch.zeros(len(x), dtype=torch.int64, device=x.device)
        paths, sizes = np.zeros(1, np.uint64), np.array([len(x)])
        for level in range(p.levels):
            split = sizes >= p.clusters
            if not split.all():
                kept = torch.from_numpy(split).to(x.device)[self.node_of(sizes, x.device)]
                x, index, paths, sizes = x[kept], index[kept], paths[split], sizes[split]
            if not len(sizes):
                break
            labels, nodes = self.clustered(x, level, paths, sizes)
            classes = nodes * p.clusters + labels
            counts = torch.bincount(classes, minlength=len(sizes) * p.clusters).cpu().numpy()
            order = classes.argsort(stable=True)
            x, index = x[order], index[order]
            children = (paths[:, None] * np.uint64(p.clusters) + np.arange(p.clusters, dtype=np.uint64)).ravel()
            paths, sizes = children[counts > 0], counts[counts > 0]
            # Leaves of different depth differ by the level's digit in front.
            named = np.uint64((level + 1) << 59) | paths % np.uint64(1 << 59)
            words[index] = torch.from_numpy(named.view(np.int64)).to(x.device)[self.node_of(sizes, x.device)]
        return {"words": words}

    def clustered(self, x: Any, level: int, paths: np.ndarray, sizes: np.ndarray) -> tuple[Any, Any]:
        """Return labels of a level's points, and their nodes, after all iterations."""
        p = self.data.parameters
        drawn = seeding.draw(self.data.seed, np.full(len(paths), level), paths, sizes, p.clusters)
        firsts = np.cumsum(sizes) - sizes
        centres = x[self.torch.from_numpy(drawn + firsts[:, None]).to(x.device)]
        nodes = self.node_of(sizes, x.device)
        for _ in range(p.iterations):
            _, centres = self.step(x, sizes, nodes, centres)
        return self.step(x, sizes, nodes, centres)[0], nodes

    def results(self) -> dict[str, np.ndarray]:
        return {"words": super().results()["words"].view(np.uint64)}

    def notes(self) -> dict[str, Any]:
        return {"residual": self.data.residual(self.results()["words"])}
