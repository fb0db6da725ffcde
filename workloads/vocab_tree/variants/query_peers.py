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

    Scores are sums of 32-bit integers, or products in FP64, both of which are exact.
    """

    problem = TreeQuery
    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "form": Tunable("sums", FORMS, FORM),
        "block": Tunable(1 << 17, (1 << 14, 1 << 17), "descriptors taken at a time: what they gather takes memory"),
    }

    def prepare(self) -> None:
        torch, table = self.torch, self.data.tables
        sums = self.setup.tunables["form"] == "sums"
        exact = np.int32 if sums else np.float64
        self.queries = self.upload(self.data.queries)
        centres, halves = (self.upload(values.astype(exact)) for values in (table.centres, table.halves))
        # Numbers of children and words, -1 where there is none.
        children, leaves = (
            self.upload(np.where(own == ABSENT, -1, own.astype(np.int64))) for own in (table.children, table.leaves)
        )

        def level(points: Any, nodes: Any, words: Any) -> tuple[Any, Any]:
            """Node and word of each after one level; what has its word goes through the root again, for nothing."""
            at = nodes.clamp(min=0)
            if sums:
                scores = (centres[at] * points[:, None, :]).sum(2, dtype=torch.int32) - halves[at]
            else:
                scores = (centres[at] @ points[:, :, None])[:, :, 0] - halves[at]
            nearest = scores.argmax(1)
            return torch.where(nodes < 0, nodes, children[at, nearest]), torch.where(
                nodes < 0, words, leaves[at, nearest]
            )

        self.exact = torch.int32 if sums else torch.float64
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

    name, title, rung = "torch_cpu", "PyTorch on the host, centres gathered level by level", 1
    tunables: ClassVar = {**_Torch.tunables, **TorchHostPeer.tunables}


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
