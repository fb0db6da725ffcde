"""Peer of training on a GPU: sequential minimal optimisation in PyTorch, iterations as CUDA graphs.

PyTorch is imported when the peer is built, never with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from perfport.workload import TorchCudaPeer, Tunable, UnsupportedError, version_of

from ..smo import SmoTrain
from . import inputs

ITERATION_LIMIT = 1_000_000
LEAST_CURVATURE = 1e-12  # of equal points, as LIBSVM has it


class SmoTorch(TorchCudaPeer):
    """Second-order choice of the pair; a graph of some iterations is replayed until one look finds them converged.

    The kernel matrix is computed at once by cuBLAS, where it has room, or its rows when they are needed.
    """

    problem = SmoTrain
    name, title, rung = "torch", "PyTorch, second order, iterations as CUDA graphs", 2
    source = version_of("torch")
    host_driven = True
    tunables: ClassVar = {
        "kernel": Tunable("matrix", ("matrix", "rows"), "the kernel matrix at once, or its rows one by one"),
        "batch": Tunable(64, (64, 256), "iterations of a graph"),
    }

    def prepare(self) -> None:
        torch, data = self.torch, self.data
        torch.backends.cuda.matmul.allow_tf32 = False
        self.matrix = self.tensor(inputs.row_major(self.setup).buffer, (data.points, data.dims))
        self.squares = self.matrix.square().sum(1)
        self.labels = self.upload(data.labels.astype("float32"))
        self.alpha, self.f = self.torch.empty_like(self.labels), self.torch.empty_like(self.labels)
        self.ends = self.labels.new_empty(2)  # f of the pair: b_high, b_low
        self.kernel = None
        if self.setup.tunables["kernel"] == "matrix":
            if (needed := 4 * data.points**2) > (most := self.device.info.memory_bytes):
                raise UnsupportedError(f"the kernel matrix needs {needed} bytes, {self.device.info.id} has {most}")
            self.kernel = self.matrix.new_empty((data.points, data.points))
        self.iterations = 0
        self.reset()
        self.replay = self.captured(self.iterate)

    def reset(self) -> None:
        """Start from alpha = 0."""
        self.alpha.zero_()
        self.f.copy_(-self.labels)
        if self.kernel is not None:
            self.torch.mm(self.matrix, self.matrix.T, out=self.kernel)
            self.kernel.mul_(-2).add_(self.squares).add_(self.squares[:, None]).clamp_(min=0)
            self.kernel.mul_(-float(self.data.gamma)).exp_()

    def row(self, index: Any) -> Any:
        """The kernel row of a point, whose number the host does not know."""
        if self.kernel is not None:
            return self.kernel.index_select(0, index)[0]
        point = self.matrix.index_select(0, index)[0]
        squared = self.torch.addmv(self.squares + point.square().sum(), self.matrix, point, alpha=-2.0)
        return squared.clamp_(min=0).mul_(-float(self.data.gamma)).exp_()

    def iterate(self) -> Any:
        """Enqueue a batch of iterations; those after convergence change nothing."""
        torch, alpha, f, labels = self.torch, self.alpha, self.f, self.labels
        penalty, tau = float(self.data.penalty), float(self.data.tau)
        positive = labels > 0
        for _ in range(self.setup.tunables["batch"]):
            below, above = alpha < penalty, alpha > 0
            up, low = torch.where(positive, below, above), torch.where(positive, above, below)
            high, first = torch.where(up, f, torch.inf).min(0, keepdim=True)
            worst = torch.where(low, f, -torch.inf).max()
            own = self.row(first)
            gain = (f - high).clamp(min=0).square() / (2 - 2 * own).clamp(min=LEAST_CURVATURE)
            second = torch.where(low & (f > high), gain, -1.0).argmax(0, keepdim=True)
            other = self.row(second)
            curvature = (2 - 2 * own.index_select(0, second)).clamp(min=LEAST_CURVATURE)
            step = (f.index_select(0, second) - high) / curvature
            first_alpha, second_alpha = alpha.index_select(0, first), alpha.index_select(0, second)
            first_label, second_label = labels.index_select(0, first), labels.index_select(0, second)
            first_room = torch.where(first_label > 0, penalty - first_alpha, first_alpha)
            second_room = torch.where(second_label > 0, second_alpha, penalty - second_alpha)
            step = torch.minimum(step, torch.minimum(first_room, second_room))
            step = torch.where(worst > high + 2 * tau, step, 0.0)
            self.ends.copy_(torch.cat([high, worst[None]]))
            alpha.index_copy_(0, first, (first_alpha + first_label * step).clamp(0, penalty))
            alpha.index_copy_(0, second, (second_alpha - second_label * step).clamp(0, penalty))
            f.add_(step * (own - other))
        return self.ends

    def compute(self) -> Mapping[str, Any]:
        self.reset()
        self.iterations = 0
        while self.iterations < ITERATION_LIMIT:
            high, low = self.replay().tolist()
            self.iterations += self.setup.tunables["batch"]
            if low <= high + 2 * float(self.data.tau):
                break
        return {"alpha": self.alpha, "b": self.ends.mean().reshape(1)}

    def notes(self) -> dict[str, Any]:
        return {"iterations_enqueued": self.iterations}
