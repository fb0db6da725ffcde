"""What a ceiling could be at most."""

from __future__ import annotations

import pytest

from perfport.backend.offline import cuda_info
from perfport.measure.ceilings.theory import theory

H200 = cuda_info("sm_90").model_copy(update={"name": "NVIDIA H200", "compute_units": 132, "clock_mhz": 1980})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dram_read", 4.8e12), ("fp32_fma", 66.908e12), ("bf16_mma", 1070.5e12), ("tf32_mma", 535.3e12),
        ("int8_mma", 2141.0e12), ("local_read", 33.454e12), ("local_conflict", 1.0454e12), ("int32_mad", 33.454e12),
        ("atomic_global_one", None), ("launch_latency", None), ("l2_read", None), ("h2d_pinned", 63.015e9),
    ],
)  # fmt: skip
def test_theory_by_data_sheet_and_clock(name: str, expected: float | None) -> None:
    value, basis = theory(name, H200)
    assert value == (pytest.approx(expected, rel=1e-3) if expected else None) and bool(basis) == bool(expected)
    assert theory(name, H200.model_copy(update={"name": "another", "clock_mhz": None})) == (None, "")
