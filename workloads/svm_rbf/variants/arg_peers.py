"""Peers of the reductions: a library's arg-min, its arg-max, or one after the other.

Libraries are imported when a peer is built, never with this module.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np

from perfport.workload import (
    COMPILER,
    CudaPeer,
    HostPeer,
    Peer,
    TorchCudaPeer,
    TorchHostPeer,
    TorchPeer,
    Tunable,
    usable_cores,
    version_of,
)

from ..problems import ArgExtrema, ArgMax, ArgMin, Extrema
from . import inputs

BLOCK = 1 << 18  # elements that a core of the host takes at a time: they stay in its cache from one call to the next


class _Numpy(HostPeer):
    """An index, and its element: of the whole vector on one core, or of blocks that all cores take in turn."""

    source = version_of("numpy")
    tunables: ClassVar = {"form": Tunable("blocks", ("blocks", "whole"), "blocks of 1 MiB, by threads")}

    def prepare(self) -> None:
        self.vector = self.data.vector
        blocks = self.setup.tunables["form"] == "blocks"
        step = BLOCK if blocks else self.data.n
        self.firsts = np.arange(0, self.data.n, step)
        self.blocks = np.split(self.vector, self.firsts[1:])
        self.pool = ThreadPoolExecutor(usable_cores() if blocks else 1)

    def compute(self) -> Mapping[str, Any]:
        calls = [getattr(np, f"arg{name}") for name in self.data.extrema]
        parts = np.array(list(self.pool.map(lambda block: [call(block) for call in calls], self.blocks)))
        outputs: dict[str, Any] = {}
        for name, call, indices in zip(self.data.extrema, calls, (parts + self.firsts[:, None]).T, strict=True):
            index = indices[call(self.vector[indices])]  # of the first block where several are equal
            outputs |= {name: self.vector[[index]], f"arg{name}": index}
        return outputs


def _pairs(vector: Any, extrema: Sequence[str]) -> tuple[Any, ...]:
    """Values and indices of the extrema by PyTorch: pairs, one after the other."""
    return tuple(part for name in extrema for part in getattr(vector, name)(0))


def _indices(vector: Any, extrema: Sequence[str]) -> tuple[Any, ...]:
    """The same by indices, whose elements are looked up where the vector is (``take`` does not compile)."""
    indices = [getattr(vector, f"arg{name}")() for name in extrema]
    return tuple(part for index in indices for part in (vector.index_select(0, index)[0], index))


#: Ways to ask PyTorch for an extremum and its index.
CALLS: dict[str, Callable[..., tuple[Any, ...]]] = {"pairs": _pairs, "indices": _indices}


class _Torch(TorchPeer):
    """Value and index."""

    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "form": Tunable({"cpu": "pairs", "gpu": "indices"}, tuple(CALLS), "what is asked for an extremum")
    }
    vector: Any

    def reduced(self) -> tuple[Any, ...]:
        """Value and index of each extremum."""
        return CALLS[self.setup.tunables["form"]](self.vector, self.data.extrema)

    def compute(self) -> Mapping[str, Any]:
        names = (part for name in self.data.extrema for part in (name, f"arg{name}"))
        return dict(zip(names, self.reduced(), strict=True))


class _TorchCpu(_Torch, TorchHostPeer):
    """On the host."""

    tunables: ClassVar = {**_Torch.tunables, **TorchHostPeer.tunables}

    def prepare(self) -> None:
        self.vector = self.upload(self.data.vector)


class _TorchCuda(_Torch, TorchCudaPeer):
    """On the GPU."""

    def prepare(self) -> None:
        self.vector = self.tensor(inputs.vector(self.setup), (self.data.n,))


class _TorchCompiled(_TorchCuda):
    """The same, fused by the compiler."""

    tunables: ClassVar = {**_Torch.tunables, "compiler": COMPILER}

    def prepare(self) -> None:
        super().prepare()
        self.call = self.compiled(CALLS[self.setup.tunables["form"]])

    def reduced(self) -> tuple[Any, ...]:
        return self.call(self.vector, self.data.extrema)


class _Cub(CudaPeer):
    """CUB's device-wide reduction, which CuPy takes for contiguous data, or CuPy's own kernel.

    It returns indices alone; the values are looked up outside the timed window.
    """

    source = version_of("cupy-cuda13x", "cupy-cuda12x")
    tunables: ClassVar = {"form": Tunable("cub", ("cub", "cupy"), "whose reduction")}

    def prepare(self) -> None:
        from cupy import _core

        self.accelerators = _core.get_reduction_accelerators(), _core.get_routine_accelerators()
        self.core = _core
        self.vector = self.view(inputs.vector(self.setup), (self.data.n,))

    def compute(self) -> Mapping[str, Any]:
        chosen = ["cub"] if self.setup.tunables["form"] == "cub" else []
        self.core.set_reduction_accelerators(chosen)
        self.core.set_routine_accelerators(chosen)
        try:
            return {f"arg{name}": getattr(self.vector, f"arg{name}")() for name in self.data.extrema}
        finally:
            self.core.set_reduction_accelerators(self.accelerators[0])
            self.core.set_routine_accelerators(self.accelerators[1])

    def results(self) -> dict[str, np.ndarray]:
        indices = super().results()
        values = {
            name.removeprefix("arg"): np.array([float(self.vector[int(index[0])])], np.float32)
            for name, index in indices.items()
        }
        return {**indices, **values}


#: What a library calls to solve each problem.
FUNCTIONS = {ArgMin: "arg-min", ArgMax: "arg-max", ArgExtrema: "arg-min, then arg-max"}
#: Each with the name and the title of its peers, in the order of the tables.
LIBRARIES: tuple[tuple[type[Peer], str, str], ...] = (
    (_Numpy, "numpy", "NumPy {functions}"),
    (_TorchCpu, "torch_cpu", "PyTorch {functions} with the value"),
    (_Cub, "cub", "CUB {functions} through CuPy"),
    (_TorchCuda, "torch", "PyTorch {functions} with the value"),
    (_TorchCompiled, "torch_compiled", "PyTorch {functions} with the value, compiled"),
)


def peers(problem: type[Extrema]) -> dict[str, type[Peer]]:
    """Return the libraries' peers of a problem, by their names as classes."""
    made: dict[str, Any] = {}
    for rung, (library, name, title) in enumerate(LIBRARIES, 1):
        attributes = {
            "__module__": __name__, "__doc__": library.__doc__, "problem": problem, "name": name,
            "title": title.format(functions=FUNCTIONS[problem]), "rung": rung,
        }  # fmt: skip
        made[library.__name__.strip("_") + problem.__name__] = ABCMeta(name, (library,), attributes)
    return made


for solved in FUNCTIONS:
    globals().update(peers(solved))  # where discovery looks for them
