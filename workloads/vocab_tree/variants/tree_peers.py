"""PyTorch's way with many nodes at once: an iteration over fragments of any size, and a whole tree, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from perfport.workload import TorchCudaPeer, TorchHostPeer, TorchPeer, Tunable, UnsupportedError, version_of

from .. import fixed_point, seeding
from ..kmeans_problems import KmeansFragments
from ..outputs import MEANS
from ..tree_problems import WORDS, TreeBuild
from . import inputs


@dataclass
class _Batch:
    """Nodes of about equal size, padded to the largest of them.

    Attributes
    ----------
    nodes : tensor, (nodes,)
        Their numbers.
    points : tensor, FP32, (nodes, most, dims)
        Zeros behind the last point of a node.
    inside : tensor, bool, (nodes, most, 1)
        Where there is a point.
    places, numbers : tensor, (points,)
        Each point's place among all of the batch, padding included, and among all points.
    """

    nodes: Any
    points: Any
    inside: Any
    places: Any
    numbers: Any


class _Nodes(TorchPeer):
    """Lloyd's iteration over nodes whose points lie one node's behind the other's, as batched matrix products."""

    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "padding": Tunable(2, (2, 4), "how many times as large as the smallest node of a batch the largest may be"),
    }

    def batches(self, x: Any, sizes: np.ndarray) -> list[_Batch]:
        """Return all points in batches of nodes of about equal size.

        Parameters
        ----------
        x : tensor, FP32, (points, dims)
        sizes : integer, (nodes,)
            Points of each node, at least one.
        """
        torch = self.torch
        firsts = np.cumsum(sizes) - sizes
        alike = np.floor(np.log(sizes) / np.log(self.setup.tunables["padding"]))
        made = []
        for each in np.unique(alike):
            nodes = np.flatnonzero(alike == each)
            most = int(sizes[nodes].max())
            first, count = (torch.from_numpy(of[nodes].astype(np.int64)).to(x.device) for of in (firsts, sizes))
            steps = torch.arange(most, device=x.device)
            inside = steps < count[:, None]
            numbers = (first[:, None] + steps).clamp_(max=len(x) - 1)
            if len(nodes) == len(sizes) and (sizes == most).all():
                points = x.view(len(nodes), most, -1)
            else:
                points = x[numbers] * inside[..., None]
            places = inside.flatten().nonzero()[:, 0]
            own = torch.from_numpy(nodes).to(x.device)
            made.append(_Batch(own, points, inside[..., None], places, numbers.flatten()[places]))
        return made

    def step(self, batch: _Batch, centres: Any) -> tuple[Any, Any]:
        """Return labels, (nodes, most), and means, (nodes, clusters, dims), those of empty classes as they were."""
        torch = self.torch
        half = 0.5 * centres.square().sum(2)
        labels = torch.baddbmm(half[:, None], batch.points, centres.mT, beta=-1).argmax(2)
        numbers = torch.arange(centres.shape[1], device=centres.device)
        members = ((labels[..., None] == numbers) & batch.inside).to(centres.dtype)
        counts = members.sum(1)[..., None]
        means = torch.bmm(members.mT, batch.points) / counts.clamp(min=1)
        return labels, torch.where(counts > 0, means, centres)

    def joined(self, batches: Sequence[_Batch], labels: Sequence[Any]) -> Any:
        """Return labels by point."""
        whole = labels[0].new_empty(sum(len(batch.numbers) for batch in batches))
        for batch, own in zip(batches, labels, strict=True):
            whole[batch.numbers] = own.flatten()[batch.places]
        return whole


class _Fragments(_Nodes):
    """An iteration over many small nodes, which lie in batches."""

    problem = KmeansFragments
    computes = MEANS
    centres: Any  # tensor, FP32, (nodes, clusters, dims)
    ready: list[_Batch]

    def compute(self) -> Mapping[str, Any]:
        means, labels = self.torch.empty_like(self.centres), []
        for batch in self.ready:
            own, means[batch.nodes] = self.step(batch, self.centres[batch.nodes])
            labels.append(own)
        return {"labels": self.joined(self.ready, labels), "means": means}

    def results(self) -> dict[str, np.ndarray]:
        outputs = super().results()
        return {**outputs, "labels": outputs["labels"].astype(np.uint8)}


class TorchCpuFragments(_Fragments, TorchHostPeer):
    """On the host."""

    name, title, rung = "torch_cpu", "PyTorch on the host, batches of nodes", 4
    tunables: ClassVar = {**_Nodes.tunables, **TorchHostPeer.tunables}

    def prepare(self) -> None:
        self.centres = self.upload(self.data.centres.astype(np.float32) / fixed_point.ONE)
        self.ready = self.batches(self.upload(self.data.points.astype(np.float32)), self.data.node_sizes)


class TorchFragments(_Fragments, TorchCudaPeer):
    """On the GPU, TF32 off."""

    name, title, rung = "torch", "PyTorch on the GPU, batches of nodes", 5

    def prepare(self) -> None:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        points = self.tensor(inputs.float_points(self.setup), self.data.points.shape)
        self.centres = self.tensor(inputs.float_centres(self.setup), self.data.centres.shape)
        self.ready = self.batches(points, self.data.node_sizes)
        self.torch.cuda.synchronize()


class TorchTree(_Nodes, TorchCudaPeer):
    """All nodes of a level together, from the same first points; sorted by class, points lie for the next level.

    On the GPU, TF32 off, from page-locked memory of the host. There is none for the host, where FAISS is faster.
    """

    problem = TreeBuild
    computes = WORDS
    name, title, rung = "torch", "PyTorch on the GPU, level by level", 2
    host_driven = True

    def prepare(self) -> None:
        if self.data.memory_limit is not None:
            raise UnsupportedError("memory_share: PyTorch's build holds all points on the GPU, in FP32")
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
            classes = self.node_of(sizes, x.device) * p.clusters + self.clustered(x, level, paths, sizes)
            counts = torch.bincount(classes, minlength=len(sizes) * p.clusters).cpu().numpy()
            order = classes.argsort(stable=True)
            x, index = x[order], index[order]
            children = (paths[:, None] * np.uint64(p.clusters) + np.arange(p.clusters, dtype=np.uint64)).ravel()
            paths, sizes = children[counts > 0], counts[counts > 0]
            # Leaves of different depth differ by the level's digit in front.
            named = np.uint64((level + 1) << 59) | paths % np.uint64(1 << 59)
            words[index] = torch.from_numpy(named.view(np.int64)).to(x.device)[self.node_of(sizes, x.device)]
        return {"words": words.cpu()}

    def clustered(self, x: Any, level: int, paths: np.ndarray, sizes: np.ndarray) -> Any:
        """Return the labels of a level's points after all iterations."""
        p = self.data.parameters
        drawn = seeding.draw(self.data.seed, np.full(len(paths), level), paths, sizes, p.clusters)
        firsts = np.cumsum(sizes) - sizes
        first = x[self.torch.from_numpy(drawn + firsts[:, None]).to(x.device)]
        batches, labels = self.batches(x, sizes), []
        for batch in batches:
            centres = first[batch.nodes]
            for _ in range(p.iterations):
                _, centres = self.step(batch, centres)
            labels.append(self.step(batch, centres)[0])
        return self.joined(batches, labels)

    def node_of(self, sizes: np.ndarray, device: Any) -> Any:
        """Return the node of each point."""
        torch = self.torch
        repeats = torch.from_numpy(sizes.astype(np.int64)).to(device)
        return torch.repeat_interleave(
            torch.arange(len(sizes), device=device), repeats, output_size=int(sizes.sum())
        )  # fmt: skip

    def results(self) -> dict[str, np.ndarray]:
        return {"words": super().results()["words"].view(np.uint64)}

    def notes(self) -> dict[str, Any]:
        return {"residual": self.data.residual(self.results()["words"])}
