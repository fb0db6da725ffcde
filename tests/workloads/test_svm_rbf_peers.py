"""Peers: host peers give the right answer; all can be listed where their libraries are missing."""

from __future__ import annotations

import secrets
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from peer_forms import forms

from perfport import workload
from perfport.model.device import DeviceInfo
from perfport.model.errors import UnsupportedError
from perfport.workload import Setup, Variant
from perfport.workloads.svm_rbf.problems import ArgExtrema, ArgMax, ArgMin, RbfRows
from perfport.workloads.svm_rbf.smo import SmoTrain
from perfport.workloads.svm_rbf.variants import arg_peers, peers

SVM = workload.discover()["svm_rbf"]
PEERS = [cls for variants in SVM.variants.values() for cls in variants.values() if cls.role == "peer"]
HOST = [cls for cls in PEERS if cls.host]
CASES: dict[type, list[dict[str, Any]]] = {
    RbfRows: [{"points": 131, "dims": 37}, {"points": 1, "dims": 1}, {"points": 700, "dims": 1000, "mean": 100.0}],
    **{key: [{"n": 1}, {"n": 1009}, {"n": 70000, "bits": 3}] for key in (ArgMin, ArgMax, ArgExtrema)},
    # At the default tau one in some thousands of such small inputs has two support vectors more or less than LIBSVM's.
    SmoTrain: [{"points": 120, "dims": 6, "tau": 5e-5}, {"points": 90, "dims": 20, "C": 50.0, "tau": 5e-5}],
}


def info(kind: str, *capabilities: str) -> DeviceInfo:
    return DeviceInfo(
        id=f"x:{kind}:0", backend="x", platform="x", name="x", chip="x", kind=kind, compute_units=2,  # type: ignore[arg-type]
        memory_bytes=1, max_alloc_bytes=1, local_memory_bytes=1, max_work_group=1, capabilities=list(capabilities),
    )  # fmt: skip


def built(cls: type[Variant], parameters: dict[str, Any], tunables: dict[str, Any]) -> tuple[Any, Any]:
    task = cls.problem(cls.problem.Parameters(**parameters), secrets.randbelow(2**31))
    setup = Setup(workload.Session(None, task, Path(SVM.folder)), tunables, {})  # type: ignore[arg-type]
    return task, cls(setup)


def test_every_problem_has_peers_of_both_kinds() -> None:
    names = {problem: [cls.name for cls in PEERS if cls.problem.name == problem] for problem in SVM.problems}
    assert {"numpy", "sklearn_rbf_kernel", "torch_cpu"} <= set(names["rbf_rows"])
    assert {"torch_gemm", "torch_compiled", "torch_compiled_columns", "cupy_fused", "triton"} <= set(names["rbf_rows"])
    for reduction in ("arg_min", "arg_max", "arg_extrema"):
        assert names[reduction] == ["numpy", "torch_cpu", "cub", "torch", "torch_compiled", "triton"]
    assert names["smo_train"] == ["sklearn_svc", "torch"]


@pytest.mark.parametrize(
    ("cls", "parameters"), [(cls, case) for cls in HOST for case in CASES[cls.problem]],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_host_peers_pass_the_check(cls: type[Variant], parameters: dict[str, Any]) -> None:
    for module in cls.modules:
        pytest.importorskip(module)
    for tunables in forms(cls):
        task, peer = built(cls, parameters, tunables)
        peer.launch()
        verified = task.verify(peer.results(), cls.computes, cls.precision)
        assert verified.passed, (task.seed, tunables, verified)
        first = {name: np.array(value) for name, value in peer.results().items()}
        peer.launch()
        assert all(np.array_equal(value, first[name]) for name, value in peer.results().items())


@pytest.mark.parametrize("cls", [peers.RbfNumpy, peers.RbfTorchCpu])
def test_host_peers_take_many_blocks(cls: type[Variant]) -> None:
    for module in cls.modules:
        pytest.importorskip(module)
    task, peer = built(cls, {"points": 131, "dims": 8000}, {**forms(cls)[0], "block_kib": 256})
    assert peer.step == 8
    peer.launch()
    assert task.verify(peer.results()).passed, task.seed


@pytest.mark.parametrize("bits", [3, 24])
def test_an_extremum_of_blocks_is_the_first_of_equal_ones(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    monkeypatch.setattr(arg_peers, "BLOCK", 100)
    cls = SVM.variants["arg_extrema"]["numpy"]
    task, peer = built(cls, {"n": 1009, "bits": bits}, {"form": "blocks"})
    peer.launch()
    assert len(peer.blocks) == 11 and task.verify(peer.results()).passed, task.seed


@pytest.mark.parametrize("cls", PEERS, ids=lambda cls: cls.__name__)
def test_peers_say_where_they_cannot_run(cls: type[Variant]) -> None:
    assert cls.needs == (("cpu",) if cls.host else ("cuda",))
    with pytest.raises(UnsupportedError, match=f"needs {cls.needs[0]}"):
        cls.require(info("gpu", "opencl"))


def test_libraries_are_not_imported_with_the_workload() -> None:
    code = (
        "import sys; from perfport import workload; workload.discover(); "
        "print([m for m in ('torch', 'cupy', 'sklearn.svm', 'mlxtend', 'pyopencl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


class OnHost(arg_peers._Cub):
    """Stands for a library on the GPU that returns indices."""

    name = ""

    def prepare(self) -> None:
        self.vector = self.data.vector
        self.accelerators = [], []
        self.core = SimpleNamespace(
            set_reduction_accelerators=self.chosen.append, set_routine_accelerators=self.chosen.append
        )

    chosen: ClassVar[list[list[str]]] = []


@pytest.mark.parametrize(("form", "accelerators"), [("cub", ["cub"]), ("cupy", [])])
def test_values_are_looked_up_where_a_library_returns_indices(form: str, accelerators: list[str]) -> None:
    task = ArgExtrema(ArgExtrema.Parameters(n=1009), 5)
    device = SimpleNamespace(stream=nullcontext(), finish=lambda: None)
    OnHost.chosen.clear()
    outputs = OnHost(SimpleNamespace(problem=task, device=device, tunables={"form": form})).results()  # type: ignore[arg-type]
    assert task.verify(outputs).passed, "values and indices"
    assert OnHost.chosen == [accelerators, accelerators, [], []], "set for the calls, then as they were"
