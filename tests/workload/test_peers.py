"""Bases of peers: what they ask of a library, and how its arrays come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfport.model.errors import RefusedError
from perfport.workload import CudaPeer, HostPeer, Peer, TorchCudaPeer
from perfport.workload.peers import to_host


class Doubling(HostPeer):
    """A library that doubles."""

    name = "doubling"

    def prepare(self) -> None:
        self.x = np.asarray(self.data.x, np.float32)

    def compute(self) -> dict[str, Any]:
        return {"out": (2 * self.x)[::-1]}


def setup(**members: Any) -> Any:
    """A setup of a problem with an input, on a device with these members."""
    problem = type("P", (), {"x": [1, 2, 3]})()
    return type("S", (), {"problem": problem, "device": type("D", (), members)()})()


def test_a_host_peer_prepares_once_and_computes_at_each_launch() -> None:
    peer = Doubling(setup())
    assert peer.results() == {}, "prepared, and not computed"
    peer.launch()
    out = peer.results()["out"]
    assert out.tolist() == [6, 4, 2] and out.flags.c_contiguous
    assert (Doubling.host, Doubling.needs, Doubling.role) == (True, ("cpu",), "peer")


def test_a_peer_says_how_it_computes() -> None:
    with pytest.raises(NotImplementedError):
        Peer(setup()).launch()


class Stream:
    """A stream that counts how often work is enqueued on it."""

    def __init__(self) -> None:
        self.entered = 0

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None: ...


def test_a_peer_on_the_gpu_works_on_the_device_s_stream_and_is_warm_when_built() -> None:
    stream, finished = Stream(), []
    made = type("Made", (CudaPeer,), {"name": "made", "compute": lambda self: {"out": np.array(self.data.x)}})
    peer = made(setup(stream=stream, finish=lambda self: finished.append(1)))
    assert stream.entered == 1 and finished == [1]
    peer.launch()
    assert stream.entered == 2 and peer.results()["out"].tolist() == [1, 2, 3]
    array = np.arange(12, dtype=np.float32).view(np.uint8)
    view = peer.view(type("B", (), {"array": array})(), (2, 3))
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]] and np.shares_memory(view, array)
    assert TorchCudaPeer.modules == ("cupy", "torch") and CudaPeer.needs == ("cuda",)


@pytest.mark.parametrize("library", ["torch", "cupy", "numpy"])
def test_arrays_of_libraries_come_to_the_host(library: str) -> None:
    class Tensor:
        """PyTorch's way."""

        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> np.ndarray:
            return np.ones(2)

    class Array:
        """CuPy's way."""

        def get(self) -> np.ndarray:
            return np.ones(2)

    Tensor.__module__, Array.__module__ = "torch", "cupy._core.core"
    value = {"torch": Tensor(), "cupy": Array(), "numpy": np.ones(2)}[library]
    assert np.array_equal(to_host(value), np.ones(2))


@pytest.mark.parametrize("value", [[1.0], None, type("Lazy", (), {"__array__": lambda self: np.ones(2)})()])
def test_what_would_compute_when_it_is_asked_for_is_refused(value: Any) -> None:
    with pytest.raises(RefusedError, match=r"refused: a result is a .*; expected an array of NumPy, CuPy or PyTorch"):
        to_host(value)
