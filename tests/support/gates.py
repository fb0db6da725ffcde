"""The kernel of the spinning gate for devices without NVIDIA's clock."""

from __future__ import annotations

from perfport.backend.opencl_gate import SOURCE

_NOW = SOURCE[SOURCE.index("ulong now_ns") : SOURCE.index("__kernel")]
#: Time stands still: it opens when the host opens it.
STANDING = SOURCE.replace(_NOW, "ulong now_ns(void) { return 0; }\n")
#: Each look at the clock of the loop takes a nanosecond.
COUNTING = (
    SOURCE.replace(_NOW, "").replace("ulong start = now_ns()", "ulong start = 0, now = 0").replace("now_ns()", "++now")
)
