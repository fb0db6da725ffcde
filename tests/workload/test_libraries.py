"""Libraries: versions by distribution, threads by cores."""

from __future__ import annotations

import numpy as np
import pytest

from perfport.workload import libraries
from perfport.workload.libraries import THREADS, thread_count, version_of


def test_the_first_that_is_installed_is_named() -> None:
    assert version_of("no-such-distribution", "numpy") == f"numpy {np.__version__}"
    assert version_of("no-such-distribution", "nor-this-one") == "no-such-distribution"


@pytest.mark.parametrize(("usable", "physical", "threads"), [(8, 4, [8, 4]), (2, 4, [2, 2]), (8, None, [8, 8])])
def test_threads_are_of_usable_or_of_physical_cores(
    monkeypatch: pytest.MonkeyPatch, usable: int, physical: int | None, threads: list[int]
) -> None:
    monkeypatch.setattr(libraries, "usable_cores", lambda: usable)
    monkeypatch.setattr(libraries.psutil, "cpu_count", lambda logical: 99 if logical else physical)
    assert [thread_count(kind) for kind in THREADS.values] == threads
