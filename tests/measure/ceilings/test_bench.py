"""The bench: kernels are compiled once for all benches of a device."""

from __future__ import annotations

import pytest
from ceilings_bench import small

from perfport.backend import OpenDevice


def test_kernels_are_compiled_once_for_all_benches_of_a_device(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every group of cases is probed before and after, each time on a bench of its own."""
    asked: list[str] = []
    load = opencl.load
    monkeypatch.setattr(opencl, "load", lambda artifact: asked.append(artifact.source_hash) or load(artifact))
    vars(opencl).pop("_ceiling_modules", None)
    for _ in range(2):
        bench = small(opencl)
        bench.kernel("empty.cl", "empty", {})
        bench.close()
    assert len(asked) == 1
