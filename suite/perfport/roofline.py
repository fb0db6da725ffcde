"""Bounds: the least time that a device's ceilings allow for given work or traffic, and the share reached.

Two bounds are kept apart. The *problem bound* uses useful operations and compulsory bytes and does not depend on
the variant; rankings and goals use it. The *variant bound* uses the traffic that a variant really causes and says
what binds that variant. Model: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
model for multicore architectures", CACM 52(4), 2009, with one bandwidth for reads and one for writes.
"""

from __future__ import annotations

from .ceilings import Ceilings
from .profile import DeviceProfile
from .record import Bound, Interval
from .work import Traffic, Work

#: A share is an error only when the lower end of its interval is above this.
IMPOSSIBLE_SHARE = 1.02


def measured_ceilings(ceilings: Ceilings, now: Ceilings | None = None) -> dict[str, Interval]:
    """Return ceilings as intervals, widened to hold what a probe beside the measurement gave.

    The value is the larger of the two: a ceiling is what the device can do, and a probe in a bad moment does not
    lower it; the interval says how far it moved.
    """
    found = {}
    for name, entry in ceilings.entries.items():
        parts = [entry] + ([now.entries[name]] if now and name in now.entries else [])
        best = max(parts, key=lambda part: part.value)
        found[name] = Interval(value=best.value, low=min(p.low for p in parts), high=max(p.high for p in parts))
    return found


def datasheet_ceilings(profile: DeviceProfile) -> dict[str, Interval]:
    """Return a profile's nominal ceilings under the names that measured ones have; unknown ones are left out."""
    found = {}
    if profile.bandwidth:
        exact = Interval(value=profile.bandwidth, low=profile.bandwidth, high=profile.bandwidth)
        found = {"dram_read": exact, "dram_copy": exact, "dram_triad": exact}
    if profile.fp32:
        found["fp32_fma"] = Interval(value=profile.fp32, low=profile.fp32, high=profile.fp32)
    return found


def memory_seconds(read: float, write: float, ceilings: dict[str, Interval]) -> float | None:
    """Time to move bytes: reads at the read ceiling, writes at what the copy ceiling leaves for them.

    A copy of n bytes takes n/R + n/W = 2n/C, so W = 1 / (2/C - 1/R), at most R.
    """
    if "dram_read" not in ceilings:
        return None
    reading = 1 / ceilings["dram_read"].value
    copying = ceilings.get("dram_copy", ceilings["dram_read"])
    writing = max(2 / copying.value - reading, reading)
    return read * reading + write * writing


def _terms(flops: float, read: float, write: float, ceilings: dict[str, Interval]) -> dict[str, float]:
    terms = {}
    if (moving := memory_seconds(read, write, ceilings)) is not None:
        terms["dram"] = moving
    if flops and "fp32_fma" in ceilings:
        terms["fp32"] = flops / ceilings["fp32_fma"].value
    return terms


def _bound(terms: dict[str, float], ceilings: dict[str, Interval], time: Interval) -> Bound | None:
    if not terms:
        return None
    binding = max(terms, key=lambda name: terms[name])
    seconds = terms[binding]
    ceiling = ceilings["dram_read" if binding == "dram" else "fp32_fma"]
    # A higher ceiling is a lower bound on time, hence a lower share.
    share = Interval(
        value=seconds / time.value,
        low=seconds / time.high * ceiling.value / max(ceiling.high, ceiling.value),
        high=seconds / time.low * ceiling.value / min(ceiling.low, ceiling.value),
    )
    return Bound(seconds=seconds, binding=binding, terms=terms, share=share, stale=share.value > 1.0)


def problem_bound(work: Work, ceilings: dict[str, Interval], time: Interval) -> Bound | None:
    """Bound by the problem's useful operations and compulsory bytes; ``None`` without ceilings.

    Parameters
    ----------
    work : Work
    ceilings : dict
        From `measured_ceilings` or `datasheet_ceilings`, SI units per second.
    time : Interval
        Seconds per execution.
    """
    return _bound(_terms(work.flops, work.read_bytes, work.write_bytes, ceilings), ceilings, time)


def variant_bound(traffic: Traffic, ceilings: dict[str, Interval], time: Interval) -> Bound | None:
    """Bound by the operations and DRAM bytes that the variant causes; ``None`` without ceilings."""
    return _bound(_terms(traffic.flops, traffic.dram_read, traffic.dram_write, ceilings), ceilings, time)
