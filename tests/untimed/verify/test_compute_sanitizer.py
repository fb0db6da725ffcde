"""What compute-sanitizer prints, as findings."""

from __future__ import annotations

import pytest

from perfport.backend.base import MARKER
from perfport.model.errors import InfrastructureError, UnavailableError
from perfport.untimed.verify import Finding
from perfport.untimed.verify.compute_sanitizer import ComputeSanitizer

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at read_outside+0x110 in planted.cl:31
=========     by thread (0,0,0) in block (1,0,0)
=========     Access at 0x7f0000000104 is out of bounds
========= 
========= Invalid __global__ read of size 4 bytes
=========     at read_outside+0x110 in planted.cl:31
=========     by thread (1,0,0) in block (1,0,0)
=========     Access at 0x7f0000000108 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""  # noqa: W291 - as the tool prints it


RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at race_local+0x1d0
=========     and Write access at race_local+0xc0 [4 hazards]
=========     and Write access at race_local+0x1c0 [256 hazards]
========= 
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""  # noqa: W291 - as the tool prints it


INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at unwritten_global+0x160
=========     by thread (32,0,0) in block (0,0,0)
=========     Address 0x7fcbf0c00200
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launchKernel(long, unsigned int)
========= 
"""  # noqa: W291 - as the tool prints it


def test_output_of_compute_sanitizer_is_read() -> None:
    (found,) = ComputeSanitizer("memcheck").findings(MEMCHECK)
    expected = Finding("Invalid __global__ read of size 4 bytes", "read_outside", "planted.cl:31", 2)
    assert found == expected
    (race,) = ComputeSanitizer("racecheck").findings(RACECHECK)
    assert race.kernel == "race_local" and race.kind.startswith("Error: Race reported")
    (unwritten,) = ComputeSanitizer("initcheck").findings(INITCHECK)
    assert unwritten == Finding("Uninitialized __global__ memory read of size 4 bytes", "unwritten_global")
    assert (
        ComputeSanitizer("memcheck").findings("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == []
    )
    assert ComputeSanitizer("memcheck").findings(f"hello from {MARKER}\n") == []


def test_copying_unwritten_words_to_the_host_is_no_fault_of_kernels() -> None:
    copied = """========= COMPUTE-SANITIZER
========= Host API memory access error at host access to 0x7f1e0a000408 of size 628 bytes in
=========     Uninitialized access at 0x7f1e0a000408 on access by cudaMemcpy source.
=========     Saved host backtrace up to driver entry point at error
========= 
"""  # noqa: W291
    (unwritten,) = ComputeSanitizer("initcheck").findings(copied + INITCHECK)
    assert unwritten.kernel == "unwritten_global"
    (found,) = ComputeSanitizer("memcheck").findings(copied)
    assert found.kind.startswith("Host API memory access error")


def test_an_internal_error_of_compute_sanitizer_is_not_a_clean_result() -> None:
    with pytest.raises(InfrastructureError, match="Internal Sanitizer Error"):
        ComputeSanitizer("memcheck").findings("========= Internal Sanitizer Error: device not supported\n")


def test_compute_sanitizer_missing_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UnavailableError, match="compute-sanitizer is not on the PATH"):
        ComputeSanitizer("memcheck").wrapping()
