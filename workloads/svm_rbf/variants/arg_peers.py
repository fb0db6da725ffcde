"""Peers of the reductions: a library's arg-min, its arg-max, or one after the other.

Libraries are imported when a peer is built, never with this module.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from typing import Any

import numpy as np

from perfport.workload import CudaPeer, HostPeer, Peer, TorchCudaPeer, TorchHostPeer, version_of

from ..problems import ArgExtrema, ArgMax, ArgMin, Extrema
from . import inputs


class _Numpy(HostPeer):
    """An index on one core, and its element."""

    source = version_of("numpy")

    def prepare(self) -> None:
        self.vector = self.data.vector

    def compute(self) -> Mapping[str, Any]:
        indices = {name: getattr(self.vector, f"arg{name}")() for name in self.data.extrema}
        values = {name: self.vector[[index]] for name, index in indices.items()}
        return {**values, **{f"arg{name}": index for name, index in indices.items()}}


class _TorchCpu(TorchHostPeer):
    """Value and index together."""

    source = version_of("torch")

    def prepare(self) -> None:
        self.vector = self.upload(self.data.vector)

    def compute(self) -> Mapping[str, Any]:
        both = {name: getattr(self.vector, name)(0) for name in self.data.extrema}
        values = {name: pair.values for name, pair in both.items()}
        return {**values, **{f"arg{name}": pair.indices for name, pair in both.items()}}


class _Indices(CudaPeer):
    """A library that returns indices alone; the values are looked up outside the timed window."""

    vector: Any

    def compute(self) -> Mapping[str, Any]:
        return {f"arg{name}": getattr(self.vector, f"arg{name}")() for name in self.data.extrema}

    def results(self) -> dict[str, np.ndarray]:
        indices = super().results()
        values = {
            name.removeprefix("arg"): np.array([float(self.vector[int(index[0])])], np.float32)
            for name, index in indices.items()
        }
        return {**indices, **values}


class _Cub(_Indices):
    """CUB's device-wide reduction, which CuPy takes for contiguous data."""

    source = version_of("cupy-cuda13x")

    def prepare(self) -> None:
        from cupy import _core

        self.accelerators = _core.get_reduction_accelerators(), _core.get_routine_accelerators()
        self.core = _core
        self.vector = self.view(inputs.vector(self.setup), (self.data.n,))

    def compute(self) -> Mapping[str, Any]:
        self.core.set_reduction_accelerators(["cub"])
        self.core.set_routine_accelerators(["cub"])
        try:
            return super().compute()
        finally:
            self.core.set_reduction_accelerators(self.accelerators[0])
            self.core.set_routine_accelerators(self.accelerators[1])


class _TorchCuda(_Indices, TorchCudaPeer):
    """Indices by PyTorch's reductions."""

    source = version_of("torch")

    def prepare(self) -> None:
        self.vector = self.tensor(inputs.vector(self.setup), (self.data.n,))


#: What a library calls to solve each problem.
FUNCTIONS = {ArgMin: "arg-min", ArgMax: "arg-max", ArgExtrema: "arg-min, then arg-max"}
#: Each with the name and the title of its peers, in the order of the tables.
LIBRARIES: tuple[tuple[type[Peer], str, str], ...] = (
    (_Numpy, "numpy", "NumPy {functions}, one core"),
    (_TorchCpu, "torch_cpu", "PyTorch {functions} with the value, all cores"),
    (_Cub, "cub", "CUB {functions} through CuPy"),
    (_TorchCuda, "torch", "PyTorch {functions}"),
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
