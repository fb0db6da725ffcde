"""PyTorch on the host and the GPU, eager and compiled."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perfport.workload import (
    COMPILER,
    THREADS,
    HostPeer,
    Problem,
    TorchCudaPeer,
    TorchPeer,
    Tunable,
    thread_count,
    version_of,
)

from ...problems import Backward, Forward, Step
from .. import inputs


def _product(torch: Any, squares: Any, gamma: Any, beta: Any) -> Any:
    """A matrix product for each image's planes, or one over all positions where their channels lie side by side."""
    if squares.is_contiguous():
        planes = squares.flatten(2)
        return torch.baddbmm(beta[:, None], gamma.expand(len(planes), -1, -1), planes).view_as(squares)
    return torch.nn.functional.linear(squares.permute(0, 2, 3, 1), gamma, beta).permute(0, 3, 1, 2)


def _convolution(torch: Any, squares: Any, gamma: Any, beta: Any) -> Any:
    """A 1 x 1 convolution, as the training libraries have it."""
    return torch.nn.functional.conv2d(squares, gamma[:, :, None, None], beta)


#: Ways to write z = beta + gamma w^2.
POOLS: dict[str, Callable[..., Any]] = {"product": _product, "convolution": _convolution}


class _Torch(TorchPeer):
    """Square, z by one of the forms, root, multiplication; gradients by autograd.

    Autograd keeps what it saves to itself: D is an output where the problem asks for it.
    """

    source = version_of("torch")
    compiles: ClassVar[bool] = False
    tunables: ClassVar[dict[str, Tunable]] = {"form": Tunable("product", tuple(POOLS), "what z is computed by")}

    def input(self, name: str) -> Any:
        """An input as a tensor."""
        raise NotImplementedError

    def mode(self) -> AbstractContextManager[Any]:
        """A context in which the library computes in this peer's precision and keeps what gradients need."""
        raise NotImplementedError

    def maps(self, name: str) -> Any:
        """An array of the input's size as (batch, channels, height, width), in its own layout."""
        tensor = self.input(name)
        return tensor.permute(0, 3, 1, 2) if self.data.nhwc else tensor

    def prepare(self) -> None:
        torch, inverse, pool = self.torch, self.data.inverse, POOLS[self.setup.tunables["form"]]

        def forward(w: Any, gamma: Any, beta: Any) -> Any:
            z = pool(torch, w * w, gamma, beta)
            return w * torch.sqrt(z) if inverse else w * torch.rsqrt(z)

        def forward_with_d(w: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
            d = torch.rsqrt(pool(torch, w * w, gamma, beta))
            return (w / d if inverse else w * d), d

        form = forward_with_d if isinstance(self.data, Forward) and self.data.training else forward
        self.forward = self.compiled(form) if self.compiles else form
        self.leaves = self.maps("w").detach(), self.input("gamma").detach(), self.input("beta").detach()
        if not isinstance(self.data, Forward):
            self.delta = self.maps("delta")
            for leaf in self.leaves:
                leaf.requires_grad_(True)
        if isinstance(self.data, Backward):
            import torch._functorch.config as functorch

            functorch.donated_buffer = False  # its graph is walked again and again
            with self.mode():
                self.u = self.forward(*self.leaves)

    def gradients(self, u: Any, again: bool) -> dict[str, Any]:
        """The gradients of u by all its leaves; ``again`` keeps the graph for the next execution."""
        gradients = self.torch.autograd.grad(u, self.leaves, self.delta, retain_graph=again)
        return dict(zip(("dw", "dgamma", "dbeta"), gradients, strict=True))

    def compute(self) -> Mapping[str, Any]:
        with self.mode():
            if isinstance(self.data, Forward):
                with self.torch.no_grad():
                    left = self.forward(*self.leaves)
                outputs = dict(zip(("u", "d"), left, strict=True)) if self.data.training else {"u": left}
            elif isinstance(self.data, Backward):
                outputs = self.gradients(self.u, again=True)
            else:
                u = self.forward(*self.leaves)
                outputs = {"u": u, **self.gradients(u, again=False)}
        return outputs

    def results(self) -> dict[str, np.ndarray]:
        """Maps are laid out as the input."""
        outputs = super().results()
        if not self.data.nhwc:
            return outputs
        return {n: np.ascontiguousarray(a.transpose(0, 2, 3, 1)) if a.ndim == 4 else a for n, a in outputs.items()}


class _TorchCpu(_Torch, HostPeer):
    modules = ("torch",)
    tunables: ClassVar = {**_Torch.tunables, "threads": THREADS}

    def input(self, name: str) -> Any:
        return self.torch.from_numpy(getattr(self.data, name)).clone()

    def mode(self) -> AbstractContextManager[Any]:
        self.torch.set_num_threads(thread_count(self.setup.tunables["threads"]))
        enabled: AbstractContextManager[Any] = self.torch.enable_grad()
        return enabled


class _TorchCuda(_Torch, TorchCudaPeer):
    def input(self, name: str) -> Any:
        return self.tensor(inputs.array(self.setup, name), getattr(self.data, name).shape)

    def prepare(self) -> None:
        with self.torch.cuda.stream(self.stream):
            super().prepare()

    def mode(self) -> AbstractContextManager[Any]:
        tf32 = self.precision == "tf32"
        self.torch.backends.cudnn.benchmark = True
        self.torch.backends.cudnn.allow_tf32 = tf32
        self.torch.backends.cuda.matmul.allow_tf32 = tf32
        enabled: AbstractContextManager[Any] = self.torch.enable_grad()
        return enabled


class Way(NamedTuple):
    """How the layer is run, and its place in the tables."""

    peer: type[_Torch]
    rung: int
    name: str
    title: str
    compiles: bool = False
    tf32: bool = False


WAYS = (
    Way(_TorchCpu, 2, "torch_cpu", "PyTorch on the host, eager, all cores"),
    Way(_TorchCuda, 3, "torch_eager", "PyTorch, eager, TF32 off"),
    Way(_TorchCuda, 4, "torch_compiled", "PyTorch, compiled, TF32 off", compiles=True),
    Way(_TorchCuda, 5, "torch_eager_tf32", "PyTorch, eager, TF32 on", tf32=True),
    Way(_TorchCuda, 6, "torch_compiled_tf32", "PyTorch, compiled, TF32 on", compiles=True, tf32=True),
)


def variant(problem: type[Problem], way: Way) -> type[_Torch]:
    """Return the peer of a problem that is run in one of the ways."""
    name = "".join(part.capitalize() for part in way.name.split("_")) + problem.__name__
    attributes: dict[str, Any] = {
        "__module__": __name__, "__doc__": way.peer.__doc__, "problem": problem, "rung": way.rung, "name": way.name,
        "title": way.title, "compiles": way.compiles,
    }  # fmt: skip
    tunables = dict(way.peer.tunables)
    if way.compiles:
        tunables["compiler"] = replace(COMPILER, default="max-autotune-no-cudagraphs")
    if way.tf32 and problem is Forward:
        tunables["form"] = replace(tunables["form"], default="convolution")
    attributes["tunables"] = tunables
    if way.tf32:
        attributes |= {"precision": "tf32", "unit": "tf32_mma"}
    made: Any = ABCMeta(name, (way.peer,), attributes)
    return made


PROBLEMS: tuple[type[Problem], ...] = (Forward, Backward, Step)
VARIANTS = {cls.__name__: cls for cls in (variant(*pair) for pair in product(PROBLEMS, WAYS))}
globals().update(VARIANTS)  # where discovery looks for them
