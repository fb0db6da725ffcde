"""sparse_conv: peers are right; which way of PyTorch they take. Without PyTorch and GPU, a stand-in of it runs."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fake_torch import FakeTorch
from peer_forms import forms
from sparse_conv_cases import SMALL, SPARSE_CONV, problem_of, solve

from perfport.backend import OpenDevice
from perfport.model.errors import UnsupportedError
from perfport.workload import Session, build, usable_cores

HOST = ["torch_cpu", "torch_cpu_pc", "torch_cpu_pf", "torch_cpu_both"]
CUDNN = ["cudnn", "cudnn_tf32", "cudnn_pc", "cudnn_pf", "cudnn_both"]
FORMS = SPARSE_CONV.variants["pruned_network"]["torch_cuda"].tunables["form"].values


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    """A stand-in for PyTorch."""
    fake = FakeTorch()
    for name in ("torch", "torch._dynamo", "torch._dynamo.config"):
        monkeypatch.setitem(sys.modules, name, fake)  # type: ignore[arg-type]
    return fake


@pytest.fixture
def gpu(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> OpenDevice:
    """A device that peers take for a GPU."""
    monkeypatch.setattr(opencl, "stream", SimpleNamespace(ptr=7), raising=False)
    monkeypatch.setattr(opencl, "number", 3, raising=False)
    for name in CUDNN:
        monkeypatch.setattr(SPARSE_CONV.variants["sparse_conv"][name], "require", lambda info: None)
    monkeypatch.setattr(SPARSE_CONV.variants["pruned_network"]["torch_cuda"], "require", lambda info: None)
    return opencl


def network() -> Any:
    """The network with random weights, three images."""
    pytest.importorskip("mlxtend")
    cls = SPARSE_CONV.problems["pruned_network"]
    return cls(cls.Parameters(images=3, sparsity=0.98, weights="random"), 1)


# --- By the library itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOST)
def test_peers_on_the_host(device: OpenDevice, name: str) -> None:
    pytest.importorskip("torch")
    for tunables in forms(SPARSE_CONV.variants["sparse_conv"][name]):
        task = problem_of(**{**SMALL, "channels": 4}, stride=2, padding=1)
        _, notes = solve(device, task, name, **tunables)
        assert tunables["memory_format"] in ("fastest", notes["memory_format"])


def test_the_network_on_the_host(device: OpenDevice) -> None:
    pytest.importorskip("torch")
    for tunables in forms(SPARSE_CONV.variants["pruned_network"]["torch_cpu"]):
        solve(device, network(), "torch_cpu", **tunables)


# --- By the stand-in ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOST)
def test_peers_on_the_host_use_all_cores(opencl: OpenDevice, torch: FakeTorch, name: str) -> None:
    solve(opencl, problem_of(**{**SMALL, "channels": 4}, stride=2, padding=1), name)
    assert torch.threads == usable_cores() and all(call.inference and call.number is None for call in torch.calls)


@pytest.mark.parametrize("name", CUDNN)
def test_peers_on_a_gpu_use_its_stream(gpu: OpenDevice, torch: FakeTorch, name: str) -> None:
    solve(gpu, problem_of(**{**SMALL, "channels": 4}, batch=2, padding=1), name)
    assert {(call.number, *call.streams) for call in torch.calls} == {(3, (7, 3))}
    assert {call.allow_tf32 for call in torch.calls} == {name == "cudnn_tf32"}
    assert {call.benchmark for call in torch.calls} == {True, False}


@pytest.mark.parametrize("memory_format", ["nchw", "channels_last"])
@pytest.mark.parametrize(("name", "form"), [("torch_cpu", {}), *(("torch_cuda", {"form": f}) for f in FORMS)])
def test_the_network_by_a_peer(
    gpu: OpenDevice, torch: FakeTorch, name: str, form: dict[str, str], memory_format: str
) -> None:
    _, notes = solve(gpu, network(), name, **form, memory_format=memory_format)
    assert notes["accuracy"] == notes["accuracy_reference"]
    assert {call.allow_tf32 for call in torch.calls} == {None if name == "torch_cpu" else False}
    assert {call.memory_format for call in torch.calls} == {memory_format.replace("nchw", "contiguous")}
    assert torch.made == {"graph": ["graph", "replay", "replay"], "compiled": ["compiled"]}.get(
        form.get("form", ""), []
    )


@pytest.mark.parametrize("search", ["trials", "heuristic"])
def test_tunables_leave_one_way(gpu: OpenDevice, torch: FakeTorch, search: str) -> None:
    task = problem_of(**{**SMALL, "channels": 4}, padding=1)
    _, notes = solve(gpu, task, "cudnn", memory_format="channels_last", search=search)
    assert (notes["memory_format"], notes["algorithm_search"]) == ("channels_last", search)
    assert {(call.memory_format, call.benchmark) for call in torch.calls} == {("channels_last", search == "trials")}


def test_structured_pruning_is_no_peer() -> None:
    variants = SPARSE_CONV.variants["sparse_conv"]
    assert {name: variants[name].role for name in (*HOST, *CUDNN)} == {
        name: "control" if name.endswith(("pc", "pf", "both")) else "peer" for name in (*HOST, *CUDNN)
    }
    results = {"pc": "half channels", "pf": "half filters", "both": "half of both"}
    assert all(variants[name].computes == results.get(name.rpartition("_")[2], "") for name in (*HOST, *CUDNN))


def test_where_times_mean_nothing_a_peer_takes_its_first_way(opencl: OpenDevice, torch: FakeTorch) -> None:
    for timed, tried in ((True, {"contiguous", "channels_last"}), (False, set())):
        torch.calls.clear()
        session = Session(opencl, problem_of(**SMALL), SPARSE_CONV.folder, timed)
        cls = SPARSE_CONV.variants["sparse_conv"]["torch_cpu"]
        built = build(cls, session, forms(cls)[0], {})
        assert {call.memory_format for call in torch.calls} == tried
        assert timed or built.variant.notes()["memory_format"] == "nchw"
        assert built.execute().passed
        built.release()
        session.close()


def test_an_odd_number_of_channels_is_not_halved(opencl: OpenDevice, torch: FakeTorch) -> None:
    with pytest.raises(UnsupportedError, match="3 input channels cannot be halved"):
        solve(opencl, problem_of(**SMALL), "torch_cpu_pc")
    _, notes = solve(opencl, problem_of(**SMALL), "torch_cpu_both")
    assert notes["weights_shape"] == [2, 3, 3, 3]


def test_each_way_of_cudnn_has_a_thread_and_with_it_a_plan_of_its_own(
    gpu: OpenDevice, torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls: Any = SPARSE_CONV.variants["sparse_conv"]["cudnn"]
    ran: list[tuple[tuple[str, str], int]] = []

    class Watched(cls):  # type: ignore[misc]
        def compute(self) -> Any:
            outputs = super().compute()
            ran.append((self.way[:2], torch.calls[-1].thread))
            return outputs

        def seconds(self) -> float:
            self.launch()
            return float(self.way[:2] != ("channels_last", "trials again"))

    monkeypatch.setitem(SPARSE_CONV.variants["sparse_conv"], "cudnn", Watched)
    variant, notes = solve(gpu, problem_of(**SMALL, padding=1), "cudnn")
    assert (notes["memory_format"], notes["algorithm_search"]) == ("channels_last", "trials again") == ran[-1][0]
    assert len(set(ran)) == len({way for way, _ in ran}) == len({thread for _, thread in ran}) == 6
    assert list(variant.threads) == [("channels_last", "trials again")]
