"""gdn on matrix units, without a GPU: the arithmetic of split operands, and what the compiler makes of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfport import backend, workload
from perfport.backend import Artifact
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.untimed.verify.compute_sanitizer import SANITIZED
from perfport.workload import Session, Setup, UnavailableError, UnsupportedError
from perfport.workloads.gdn.problems import FORWARD_TOLERANCE, GRADIENT_TOLERANCE, TF32_TOLERANCE, Step
from perfport.workloads.gdn.variants.tensor_core import TensorCores

GDN = workload.discover()["gdn"]
H200 = cuda_info("sm_90").model_copy(update={"local_memory_bytes": 227 << 10, "compute_units": 132})
INSTRUCTIONS = {
    "tensor_core": "m16n8k8.row.col.f32.tf32.tf32.f32",
    "tensor_core_bf16": "m16n8k16.row.col.f32.bf16.bf16.f32",
    "tensor_core_tf32": "m16n8k8.row.col.f32.tf32.tf32.f32",
}


def tf32(x: np.ndarray) -> np.ndarray:
    """Round to 10 bits of fraction, ties away from zero, as ``cvt.rna.tf32.f32``."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def bf16(x: np.ndarray) -> np.ndarray:
    """Round to 7 bits of fraction, ties to even, as ``cvt.rn.bf16x2.f32``."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + ((bits >> 16) & np.uint32(1)) + np.uint32(0x7FFF)) & np.uint32(0xFFFF0000)).view(np.float32)


ROUND = {"tf32": tf32, "bf16": bf16}


def product(a: np.ndarray, b: np.ndarray, kind: str, terms: int) -> np.ndarray:
    """a b as the kernel forms it, summed exactly: rounded operands, or hi lo + lo hi + hi hi of split ones."""
    rounded = ROUND[kind]
    a_hi, b_hi = rounded(a), rounded(b)
    a_lo, b_lo = rounded(a - a_hi), rounded(b - b_hi)
    total = a_hi.astype(np.float64) @ b_hi
    if terms == 3:
        total += a_hi.astype(np.float64) @ b_lo + a_lo.astype(np.float64) @ b_hi
    return total


def relative(value: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(value - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize(("kind", "bits"), [("tf32", 11), ("bf16", 8)])
def test_two_parts_hold_twice_the_bits(kind: str, bits: int) -> None:
    x = np.random.default_rng(1).normal(size=10_000).astype(np.float32)
    hi = ROUND[kind](x)
    lo = ROUND[kind](x - hi)
    assert np.array_equal(x - hi, x.astype(np.float64) - hi)  # the rest is exact in FP32
    rounded, split = (np.abs(part - x.astype(np.float64)) / np.abs(x) for part in (hi, hi.astype(np.float64) + lo))
    assert 2.0 ** (-bits - 1) < rounded.max() <= 2.0**-bits
    assert split.max() <= max(2.0 ** (-2 * bits), 2.0**-24) and (hi.view(np.uint32) % (1 << (24 - bits)) == 0).all()


@pytest.mark.parametrize(
    ("kind", "terms", "forward", "gradient"),
    [
        ("tf32", 3, 5e-8, 5e-7), ("bf16", 3, 1e-6, GRADIENT_TOLERANCE / 2),
        ("tf32", 1, TF32_TOLERANCE / 2, TF32_TOLERANCE / 2),
    ],
)  # fmt: skip
def test_errors_of_the_products(kind: str, terms: int, forward: float, gradient: float) -> None:
    """Rounding of the operands alone: u = w z^(-1/2) halves what z has, gradients have all of it."""
    problem = Step(Step.Parameters(channels=64, height=32, width=32), 3)
    every = np.arange(problem.positions)
    w = problem.columns(problem.w, every).astype(np.float32)
    delta, d = (problem.columns(getattr(problem, name), every).astype(np.float32) for name in ("delta", "d"))
    t = np.float32(-0.5) * delta * w * (d * d * d)
    z = problem.beta[:, None] + product(problem.gamma, w * w, kind, terms)
    error = relative(w / np.sqrt(z), problem.reference_u)
    assert error < forward and (terms == 1 or error < FORWARD_TOLERANCE)
    dgamma = product(t, np.ascontiguousarray((w * w).T), kind, terms)
    assert relative(dgamma, problem.reference_dgamma) < gradient
    exact = product(t, np.ascontiguousarray((w * w).T), kind, 3)
    assert terms == 3 or relative(dgamma, exact) > 1e-5  # plain TF32 is a class of its own


def artifacts(
    problem: str, name: str, tunables: dict[str, int], *, macros: Any = (), **parameters: Any
) -> list[Artifact]:
    """What a variant compiles for an H200, in the order in which it does."""
    try:
        backend.get("cuda").build("probe.cu", "__kernel void k(__global float *x) {}", {})
    except UnavailableError as error:
        pytest.skip(str(error))
    cls, device = GDN.variants[problem][name], OfflineDevice(H200)
    cls.require(H200)
    made = cls.problem(cls.problem.Parameters(**parameters), 1)
    chosen = {key: tunable.default_for(H200) for key, tunable in cls.tunables.items()} | tunables
    variant = cls(Setup(Session(device, made, GDN.folder), chosen, dict(macros)))  # type: ignore[arg-type]
    traffic = variant.traffic()
    assert traffic and traffic.flops > 2 * made.macs * (1 if cls.precision == "tf32" else 3)
    return device.artifacts


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(("held", "loads"), [(48, "cp.async.cg"), (0, "ldmatrix.sync.aligned.m8n8.x4")])
@pytest.mark.parametrize(("name", "instruction"), INSTRUCTIONS.items())
def test_forward_compiles_to_matrix_instructions(
    name: str, instruction: str, held: int, loads: str, layout: str
) -> None:
    size = {"channels": 13, "height": 5, "width": 7, "layout": layout}
    _, artifact = artifacts("gdn_forward", name, {"held_columns": held}, **size)  # gamma is packed ahead
    ptx = artifact.listing["ptx"]
    products = ptx.count(f"mma.sync.aligned.{instruction}")
    assert products and products % (1 if name == "tensor_core_tf32" else 3) == 0
    assert loads in ptx
    assert ".local" not in ptx.replace(".local_", "")  # nothing is kept outside registers


@pytest.mark.parametrize("size", [{"height": 127, "width": 129}, {"height": 128, "width": 128}])
def test_dgamma_copies_16_bytes_at_a_time_whatever_the_size_of_planes(size: dict[str, int]) -> None:
    artifact, _ = artifacts("gdn_gamma_gradient", "tensor_core_tf32", {}, channels=192, **size)  # sums are added after
    ptx = artifact.listing["ptx"]
    assert "cp.async.cg.shared.global" in ptx and "ld.global" not in ptx
    assert ".local" not in ptx.replace(".local_", "")


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize("problem", ["gdn_forward", "gdn_backward", "gdn_gamma_gradient"])
def test_words_are_copied_one_by_one_under_a_sanitizer_alone(problem: str, name: str, layout: str) -> None:
    size = {"channels": 13, "height": 5, "width": 7, "layout": layout}
    tunables = {"gdn_gamma_gradient": {}}.get(problem, {"held_columns": 48})
    for macros in ({}, SANITIZED):
        copying = [made.listing["ptx"] for made in artifacts(problem, name, tunables, macros=macros, **size)]
        copying = [ptx for ptx in copying if "cp.async.cg" in ptx]
        assert copying and all(("cp.async.ca.shared.global" in ptx) == bool(macros) for ptx in copying)


def test_older_devices_are_refused() -> None:
    for variants in GDN.variants.values():
        for cls in variants.values():
            if issubclass(getattr(cls, "engine", object), TensorCores):
                assert cls.unit in ("tf32_mma", "bf16_mma")
                with pytest.raises(UnsupportedError, match=r"compute capability 8.0 .*has 7.5"):
                    cls.require(cuda_info("sm_75"))
                cls.require(cuda_info("sm_80"))
