"""Libraries: versions by distribution, cores by affinity."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from perfport.workload.libraries import usable_cores, version_of


def test_the_first_that_is_installed_is_named() -> None:
    assert version_of("no-such-distribution", "numpy") == f"numpy {np.__version__}"
    assert version_of("no-such-distribution", "nor-this-one") == "no-such-distribution"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not pin processes")
def test_cores_are_those_that_the_process_may_use() -> None:
    program = (
        "import os; from perfport.workload.libraries import usable_cores; before = usable_cores();"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(before, usable_cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(usable_cores()), "1"]
