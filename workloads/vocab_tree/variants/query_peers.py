"""Peers of retrieval: PyTorch on the host and the GPU, level by level, in exact arithmetic.

Libraries are imported when a peer is built, never with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import COMPILER, TorchCudaPeer, TorchHostPeer, TorchPeer, Tunable, version_of

from ..tree import ABSENT
from ..tree_problems import TreeQuery

FORM = "sums of 32-bit integers, or batched products in FP64"
FORMS = ("sums", "products")


class _Torch(TorchPeer):
    """All descriptors go down together: each gathers the centres of its own node.

    Scores are sums of 32-bit integers, or products in FP64, all exact; grouped, those of a node are one product.
    """

    problem = TreeQuery
    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "form": Tunable("sums", FORMS, FORM),
        "block": Tunable(1 << 17, (1 << 14, 1 << 17), "descriptors taken at a time: what they gather takes memory"),
    }

    def prepare(self) -> None:
        torch, table, form = self.torch, self.data.tables, self.setup.tunables["form"]
        exact = np.int32 if form == "sums" else np.float64
        self.queries = self.upload(self.data.queries)
        centres, halves = (self.upload(values.astype(exact)) for values in (table.centres, table.halves))
        # Numbers of children and words, -1 where there is none.
        children, leaves = (
            self.upload(np.where(own == ABSENT, -1, own.astype(np.int64))) for own in (table.children, table.leaves)
        )

        def sums(points: Any, at: Any) -> Any:
            return ((centres[at] * points[:, None, :]).sum(2, dtype=torch.int32) - halves[at]).argmax(1)

        def products(points: Any, at: Any) -> Any:
            return ((centres[at] @ points[:, :, None])[:, :, 0] - halves[at]).argmax(1)

        def grouped(points: Any, at: Any) -> Any:
            order, nearest = at.argsort(), torch.empty_like(at)
            numbers, counts = torch.unique_consecutive(at[order], return_counts=True)
            parts = zip(numbers.tolist(), points[order].split(counts.tolist()), strict=True)
            found = [(own.to(centres.dtype) @ centres[node].T - halves[node]).argmax(1) for node, own in parts]
            nearest[order] = torch.cat(found)
            return nearest

        nearest = {"sums": sums, "products": products, "grouped": grouped}[form]

        def level(points: Any, nodes: Any, words: Any) -> tuple[Any, Any]:
            """Node and word of each after one level; what has its word goes through the root again, for nothing."""
            at = nodes.clamp(min=0)
            child = nearest(points, at)
            return torch.where(nodes < 0, nodes, children[at, child]), torch.where(nodes < 0, words, leaves[at, child])

        self.exact = {"sums": torch.int32, "products": torch.float64, "grouped": torch.uint8}[form]
        self.level = self.descends(level)

    def descends(self, level: Any) -> Any:
        """The function that takes descriptors down a level."""
        return level

    def compute(self) -> Mapping[str, Any]:
        torch, parts = self.torch, []
        for block in self.queries.split(self.setup.tunables["block"]):
            points = block.to(self.exact)
            nodes = torch.zeros(len(block), dtype=torch.int64, device=block.device)
            words = torch.full_like(nodes, -1)
            for _ in range(self.data.tables.depth):
                nodes, words = self.level(points, nodes, words)
            parts.append(words)
        return {"words": torch.cat(parts)}

    def results(self) -> dict[str, np.ndarray]:
        return {"words": super().results()["words"].astype(np.uint32)}


class QueryTorchCpu(_Torch, TorchHostPeer):
    """On the host."""

    name, title, rung = "torch_cpu", "PyTorch on the host, level by level", 1
    tunables: ClassVar = {
        **_Torch.tunables, **TorchHostPeer.tunables,
        "form": Tunable("grouped", ("grouped", *FORMS), f"products of a node's descriptors together, {FORM}"),
    }  # fmt: skip


class QueryTorch(_Torch, TorchCudaPeer):
    """Operation by operation."""

    name, title, rung = "torch", "PyTorch, centres gathered level by level", 2
    tunables: ClassVar = {**_Torch.tunables, "form": Tunable("products", FORMS, FORM)}


class QueryTorchCompiled(QueryTorch):
    """A level is one fused kernel."""

    name, title, rung = "torch_compiled", "PyTorch, the same, compiled", 3
    tunables: ClassVar = {**_Torch.tunables, "compiler": COMPILER}

    def descends(self, level: Any) -> Any:
        return self.compiled(level)
