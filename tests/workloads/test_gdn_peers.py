"""Peers of gdn: host peers give the right answer; all can be listed where their libraries are missing."""

from __future__ import annotations

import secrets
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_forms import forms

from perfport import workload
from perfport.workload import DeviceInfo, Session, Setup, UnsupportedError, Variant

GDN = workload.discover()["gdn"]
PEERS = [cls for variants in GDN.variants.values() for cls in variants.values() if cls.role == "peer"]
HOST = [cls for cls in PEERS if cls.host]
SIZE = {"channels": 13, "height": 5, "width": 7, "batch": 3}
CASES: list[dict[str, Any]] = [
    SIZE, {**SIZE, "inverse": True}, {**SIZE, "layout": "nhwc"}, {**SIZE, "layout": "nhwc", "inverse": True},
    {"channels": 1, "height": 1, "width": 1},
]  # fmt: skip
OUTPUTS = {
    "gdn_forward": {"u"}, "gdn_gamma_gradient": {"dgamma"}, "gdn_backward": {"dw", "dgamma", "dbeta"},
    "gdn_step": {"u", "dw", "dgamma", "dbeta"}, "gdn_reduction": {"sums"},
}  # fmt: skip
VECTORS: list[dict[str, Any]] = [{"channels": 3, "positions": 77}, {"channels": 1, "positions": 1}]


def built(cls: type[Variant], parameters: dict[str, Any], tunables: dict[str, Any]) -> tuple[Any, Any]:
    task = cls.problem(cls.problem.Parameters(**parameters), secrets.randbelow(2**31))
    return task, cls(Setup(Session(None, task, Path(GDN.folder)), tunables, {}))  # type: ignore[arg-type]


def test_every_problem_has_its_peers() -> None:
    names = {problem: {cls.name for cls in PEERS if cls.problem.name == problem} for problem in GDN.problems}
    torch = {f"torch_{form}{tf32}" for form in ("eager", "compiled") for tf32 in ("", "_tf32")}
    for problem in ("gdn_forward", "gdn_backward", "gdn_step"):
        assert {"numpy", "torch_cpu"} | torch <= names[problem]
    assert {"triton", "triton_tf32"} <= names["gdn_forward"]
    assert "cupy_gemm" in names["gdn_forward"] & names["gdn_gamma_gradient"]
    assert names["gdn_reduction"] == {"numpy", "cublas_gemv_loop", "cublas_gemm_batched", "cupy"}
    assert all((cls.precision == "tf32") == cls.name.endswith("tf32") for cls in PEERS)


@pytest.mark.parametrize("cls", HOST, ids=lambda cls: f"{cls.problem.name}-{cls.name}")
def test_host_peers_pass_the_check(cls: type[Variant]) -> None:
    for module in cls.modules:
        pytest.importorskip(module)
    cases = VECTORS if cls.problem.name == "gdn_reduction" else CASES
    for case, tunables in product(cases, forms(cls)):
        if tunables.get("block"):
            tunables = {**tunables, "block": min(tunables["block"], 32)}  # of 35 positions
        task, peer = built(cls, case, tunables)
        peer.launch()
        outputs = peer.results()
        verified = task.verify(outputs, cls.computes, cls.precision)
        assert set(outputs) == OUTPUTS[task.name] and verified.passed, (task.seed, case, tunables, verified)
        first = {name: np.array(value) for name, value in outputs.items()}
        peer.launch()
        assert all(np.allclose(value, first[name], rtol=1e-6) for name, value in peer.results().items())


def test_numpy_saves_d_for_training() -> None:
    cls = GDN.variants["gdn_forward"]["numpy"]
    task, peer = built(cls, {**SIZE, "training": True}, forms(cls)[0])
    peer.launch()
    assert set(peer.results()) == {"u", "d"} and all(e.passed for e in task.check(peer.results()).values())


@pytest.mark.parametrize("cls", PEERS, ids=lambda cls: f"{cls.problem.name}-{cls.name}")
def test_peers_say_where_they_cannot_run(cls: type[Variant]) -> None:
    info = DeviceInfo(
        id="x:gpu:0", backend="x", platform="x", name="x", chip="x", kind="gpu", compute_units=2, memory_bytes=1,
        max_alloc_bytes=1, local_memory_bytes=1, max_work_group=1, capabilities=["opencl"],
    )  # fmt: skip
    assert cls.needs == (("cpu",) if cls.host else ("cuda",))
    with pytest.raises(UnsupportedError, match=f"needs {cls.needs[0]}"):
        cls.require(info)


def test_libraries_are_not_imported_with_the_workload() -> None:
    code = (
        "import sys; from perfport import workload; workload.discover(only='gdn'); "
        "print([m for m in ('torch', 'cupy', 'sklearn', 'pyopencl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
