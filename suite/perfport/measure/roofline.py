"""Bounds: the least time that a device's ceilings allow for given work or traffic, and the share reached.

Two bounds are kept apart. The *problem bound* uses useful operations and compulsory bytes and does not depend on
the variant; rankings and goals use it. The *variant bound* uses the traffic that a variant really causes and says
what binds that variant. Model: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
model for multicore architectures", CACM 52(4), 2009, with one bandwidth for reads and one for writes.
"""

from __future__ import annotations

from ..machine.device_profile import DeviceProfile
from ..model.record import Bound, Interval
from ..model.work import Traffic, Work
from .ceilings import Ceilings

#: A share is an error only when the lower end of its interval is above this.
IMPOSSIBLE_SHARE = 1.02

#: A probe that differs from the ceiling by more than this was disturbed, or the ceiling is another by now.
MOVED = 0.10

#: A stream of mixed 32-bit integer instructions goes under the faster of these.
INTEGER_CEILINGS = ("int32_mad", "int32_logic")
#: Multiply-adds of narrow integers, which profiles of archival devices state. Where one is faster, integer operations
#: go under it, whether or not the values fit: so the bound stays one.
NARROW_CEILINGS = ("int24_mad", "int16_mad")
#: Units of integer operations that a variant may name; every other unit does floating-point operations.
INTEGER_UNITS = (*INTEGER_CEILINGS, "dp4a", "int8_mma")
SPECIAL_CEILINGS = ("exp", "rsqrt")


def moved(ceilings: Ceilings, now: Ceilings) -> dict[str, float]:
    """Return the ceilings whose probe is more than `MOVED` off, with the probe as a share of the ceiling."""
    shares = {name: entry.value / ceilings.entries[name].value for name, entry in now.entries.items()}
    return {name: share for name, share in shares.items() if abs(share - 1) > MOVED}


def measured_ceilings(ceilings: Ceilings, now: Ceilings | None = None) -> dict[str, Interval]:
    """Return ceilings as intervals, widened to hold what a quiet probe beside the measurement gave.

    The value is the larger of the two: a ceiling is what the device can do, and a probe in a bad moment does not
    lower it. The interval holds both, and reaches as far above them as they are apart: what has moved between two
    moments may have moved as much, upwards too, at a third (a server shared with others). A probe that `moved` says
    nothing of what the device can do: it does not count.
    """
    widened = {}
    disturbed = moved(ceilings, now) if now else {}
    for name, entry in ceilings.entries.items():
        parts = [entry] + ([now.entries[name]] if now and name in now.entries.keys() - disturbed.keys() else [])
        best = max(parts, key=lambda part: part.value)
        apart = best.value / min(part.value for part in parts)
        high = max(part.high for part in parts) * apart
        widened[name] = Interval(value=best.value, low=min(part.low for part in parts), high=high)
    return widened


def datasheet_ceilings(profile: DeviceProfile) -> dict[str, Interval]:
    """Return a profile's nominal ceilings under the names that measured ones have; unknown ones are left out."""
    return {name: Interval(value=value, low=value, high=value) for name, value in profile.nominal.items()}


def published_ceilings(profile: DeviceProfile) -> dict[str, Interval]:
    """Return what is known best of a device without measuring it: published measurements over the nominal ceilings."""
    best = profile.nominal | profile.published
    return {name: Interval(value=value, low=value, high=value) for name, value in best.items()}


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


def _arithmetic(flops: float, integer_ops: float, unit: str | None, ceilings: dict[str, Interval]) -> dict[str, str]:
    """Return which ceiling each kind of operation goes under: ``{"flops": ceiling, "integer_ops": ceiling}``.

    A unit of floating-point operations does integer ones where there are no others: libraries multiply bytes so.
    """
    fastest = (*INTEGER_CEILINGS, *NARROW_CEILINGS)
    integer = max(fastest, key=lambda name: ceilings[name].value if name in ceilings else 0.0)
    chosen = {"flops": "fp32_fma", "integer_ops": integer}
    if unit:
        chosen["integer_ops" if unit in INTEGER_UNITS or not flops else "flops"] = unit
    amounts = {"flops": flops, "integer_ops": integer_ops}
    return {kind: name for kind, name in chosen.items() if amounts[kind] and name in ceilings}


def _bound(
    amounts: dict[str, float], moving: float | None, ceilings: dict[str, Interval], time: Interval
) -> Bound | None:
    """Bound by amounts under the ceilings of their names, and by the seconds that DRAM needs."""
    terms = {name: amount / ceilings[name].value for name, amount in amounts.items() if amount and name in ceilings}
    if moving is not None:
        terms["dram"] = moving
    if not terms:
        return None
    binding = max(terms, key=lambda name: terms[name])
    seconds = terms[binding]
    ceiling = ceilings["dram_read" if binding == "dram" else binding]
    # A higher ceiling is a lower bound on time, hence a lower share.
    share = Interval(
        value=seconds / time.value,
        low=seconds / time.high * ceiling.value / max(ceiling.high, ceiling.value),
        high=seconds / time.low * ceiling.value / min(ceiling.low, ceiling.value),
    )
    return Bound(seconds=seconds, binding=binding, terms=terms, share=share, stale=share.value > 1.0)


def problem_bound(
    work: Work, ceilings: dict[str, Interval], time: Interval, unit: str | None = None, cold: bool = True
) -> Bound | None:
    """Bound by the problem's useful operations and compulsory bytes; ``None`` without ceilings.

    Parameters
    ----------
    work : Work
    ceilings : dict
        From `measured_ceilings` or `datasheet_ceilings`, SI units per second.
    time : Interval
        Seconds per execution.
    unit : str, optional
        The ceiling of the unit that does the operations, where it is not ``fp32_fma`` or 32-bit integer arithmetic.
    cold : bool
        Whether inputs lie in DRAM at the start. From a warm cache DRAM is no bound, and its term is left out.
    """
    chosen = _arithmetic(work.flops, work.integer_ops, unit, ceilings)
    amounts = {name: getattr(work, kind) for kind, name in chosen.items()} | {"h2d_pinned": work.host_bytes}
    moving = memory_seconds(work.read_bytes, work.write_bytes, ceilings) if cold else None
    return _bound(amounts, moving, ceilings, time)


def variant_bound(
    traffic: Traffic,
    ceilings: dict[str, Interval],
    time: Interval,
    unit: str | None = None,
    cold: bool = True,
    *,
    merged: bool = False,
) -> Bound | None:
    """Bound by the operations and the bytes per memory level that the variant causes; ``None`` without ceilings.

    Parameters
    ----------
    traffic : Traffic
    ceilings, time, unit, cold
        As for `problem_bound`.
    merged : bool
        Whether the compiler merges accesses of neighbouring work-items (it does on CPUs, where a work-group becomes a
        loop over vectors): then issued and local bytes are no bound, and their terms are left out.
    """
    chosen = _arithmetic(traffic.flops, traffic.integer_ops, unit, ceilings)
    amounts = {name: getattr(traffic, kind) for kind, name in chosen.items()}
    special = max(SPECIAL_CEILINGS, key=lambda name: ceilings[name].value if name in ceilings else 0.0)
    amounts |= {
        special: traffic.special_ops,
        "l2_read": traffic.l2_bytes or 0.0,
        "atomic_global_many": traffic.global_atomics,
        "atomic_local_many": traffic.local_atomics,
    }
    if not merged:
        amounts |= {"l1_read": traffic.issued_bytes, "local_read": traffic.local_bytes}
    moving = memory_seconds(traffic.dram_read, traffic.dram_write, ceilings) if cold else None
    return _bound(amounts, moving, ceilings, time)
