"""Forms of peers: each has some, all are right on a GPU, and PyTorch's for a GPU are right on the host as well."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partialmethod
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from peer_forms import forms

from perfport import workload
from perfport.backend import OpenDevice
from perfport.model.errors import UnavailableError, UnsupportedError
from perfport.run.experiment import find, load
from perfport.workload import DeviceInfo, Peer, Session, TorchCudaPeer, TorchPeer, Variant, build
from perfport.workloads.svm_rbf.variants import inputs

FOUND = workload.discover()
PEERS = [
    (name, problem, variant)
    for name, known in FOUND.items()
    for problem, variants in known.variants.items()
    for variant, cls in variants.items()
    if issubclass(cls, Peer)
]
#: Peers of one form: what stands beside one in its problem is its other form; OpenCL leaves OpenCV no choice.
ALONE = {"cublas_gemv_loop", "opencv_opencl"}


def class_of(peer: tuple[str, str, str]) -> type[Variant]:
    """The class of a peer."""
    name, problem, variant = peer
    return FOUND[name].variants[problem][variant]


CUDA = [peer for peer in PEERS if "cuda" in class_of(peer).needs]
TORCH = [peer for peer in CUDA if issubclass(class_of(peer), TorchCudaPeer) and "flash" not in peer[2]]


def right(device: Any, peer: tuple[str, str, str], tunables: dict[str, Any], timed: bool = True) -> None:
    """Build a form on fresh inputs at two odd sizes, execute it twice, and check what it leaves."""
    cls = class_of(peer)
    for parameters in cls.problem.check_sizes[:2]:
        task = cls.problem(cls.problem.Parameters(**parameters), secrets.randbelow(2**31))
        session = Session(device, task, FOUND[peer[0]].folder, timed)
        try:
            made = build(cls, session, tunables, {})
        except (UnavailableError, UnsupportedError) as error:
            pytest.skip(str(error))
        for _ in range(2):
            verified = made.execute()
            assert verified.passed, (task.seed, parameters, tunables, verified)
        made.release()
        session.close()


@pytest.mark.parametrize("peer", PEERS, ids="-".join)
def test_a_peer_has_forms_to_choose_from(peer: tuple[str, str, str]) -> None:
    cls = class_of(peer)
    assert bool(cls.tunables) == (cls.name not in ALONE)
    for tunable in cls.tunables.values():
        assert len(set(tunable.values)) == len(tunable.values) > 1 and tunable.description
        for kind in ("cpu", "gpu"):
            assert tunable.default_for(SimpleNamespace(kind=kind)) in tunable.values  # type: ignore[arg-type]


def test_experiments_sweep_every_form_of_every_peer() -> None:
    """But for peers that choose the fastest themselves: that is none of the forms that they choose from."""
    swept: dict[tuple[str, ...], set[Any]] = {}
    for study in [study for name in ("peers", "peers_cpu") for study in load(find(name)).experiments]:
        for variant, (tunable, values) in product(study.variants or [], study.tunables.items()):
            swept.setdefault((study.workload, study.problem, variant, tunable), set()).update(values)
    missing = {
        (*peer, name): left
        for peer in PEERS
        if class_of(peer).role == "peer"
        for name, tunable in class_of(peer).tunables.items()
        if (left := set(tunable.values) - {"fastest"} - swept.get((*peer, name), set()))
    }
    assert not missing


@pytest.mark.parametrize("peer", CUDA, ids="-".join)
def test_every_form_on_a_gpu(cuda: OpenDevice, peer: tuple[str, str, str]) -> None:
    for tunables in forms(class_of(peer), "gpu"):
        right(cuda, peer, tunables)


# --- PyTorch's forms for a GPU, on the host -----------------------------------------------------------------------


class Memory(SimpleNamespace):
    """Host memory, as a device's buffer."""

    def free(self) -> None: ...


class Host:
    """A device that peers take for a GPU, whose memory is the host's."""

    info = DeviceInfo(
        id="x:gpu:0", backend="cuda", platform="x", name="x", chip="x", kind="gpu", compute_units=2,
        memory_bytes=1 << 40, max_alloc_bytes=1 << 40, local_memory_bytes=1, max_work_group=1, capabilities=["cuda"],
    )  # fmt: skip
    number, allocated = 0, 0

    class stream(nullcontext):
        """The device's own."""

        ptr = 0

    def finish(self) -> None: ...

    def trim(self) -> None: ...

    def upload(self, array: np.ndarray) -> Memory:
        return Memory(array=np.array(array), nbytes=array.nbytes)


def taken_apart(peer: TorchPeer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as ``torch.compile`` lowers it, without the code that it would generate."""
    dynamo = pytest.importorskip("torch._dynamo.config")
    dynamo.cache_size_limit = dynamo.accumulated_cache_size_limit = 1 << 16
    lowered: Callable[..., Any] = peer.torch.compile(
        function, dynamic=False, fullgraph=True, backend="aot_eager_decomp_partition"
    )
    return lowered


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """PyTorch's peers of GPUs compute on the host; a CUDA graph is the function itself.

    What is compiled is taken apart as the compiler does, as a whole, and executed operation by operation.
    """
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda *_, **__: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self, *_, **__: self)
    monkeypatch.setattr(TorchCudaPeer, "modules", ("torch",))
    monkeypatch.setattr(TorchCudaPeer, "captured", lambda self, function: function)
    monkeypatch.setattr(TorchPeer, "compiled", partialmethod(taken_apart))
    monkeypatch.setattr(TorchCudaPeer, "upload", lambda self, array: torch.from_numpy(array))
    monkeypatch.setattr(
        TorchCudaPeer, "tensor",
        lambda self, buffer, shape, dtype=np.float32: torch.from_numpy(buffer.array.view(dtype).reshape(shape).copy()),
    )  # fmt: skip
    device = Host()

    def columns(setup: Any, multiple: int) -> inputs.Matrix:
        task = setup.problem
        pitch = -(-task.points // multiple) * multiple
        laid_out = np.full((task.dims, pitch), np.nan, np.float32)
        laid_out[:, : task.points] = task.matrix.T
        return inputs.Matrix(device.upload(laid_out), pitch)  # type: ignore[arg-type]

    rows = lambda setup: inputs.Matrix(device.upload(setup.problem.matrix), setup.problem.dims)  # noqa: E731
    monkeypatch.setattr(inputs, "row_major", rows)
    monkeypatch.setattr(inputs, "column_major", columns)
    monkeypatch.setattr(inputs, "vector", lambda setup: device.upload(setup.problem.vector))
    return device


@pytest.mark.parametrize("peer", TORCH, ids="-".join)
def test_forms_for_a_gpu_on_the_host(on_host: Host, peer: tuple[str, str, str]) -> None:
    if "triton" in class_of(peer).modules and "TRITON_INTERPRET" not in os.environ:
        pytest.skip("Triton interprets where it is told so before its first import: see the next test")
    for tunables in forms(class_of(peer), "gpu"):
        right(on_host, peer, tunables, timed=False)


def test_triton_interpreted() -> None:
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "on_the_host and triton"]
    done = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0 and " passed" in done.stdout and "skipped" not in done.stdout, done.stdout[-3000:]
