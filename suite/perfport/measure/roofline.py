"""Bounds: the least time that a device's ceilings allow for given work or traffic, and the share reached.

Two bounds are kept apart. The *problem bound* is the least time in which any correct method of a precision class could
finish: it is the same for all variants of the class, so that of two of them the faster one has the higher share;
rankings and goals use it. The *variant bound* uses the traffic that a variant really causes, on the unit that it uses,
and says what binds that variant. Model: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual
performance model for multicore architectures", CACM 52(4), 2009, with one bandwidth for reads and one for writes.
"""

from __future__ import annotations

from ..machine.device_profile import DeviceProfile
from ..model.record import Bound, Interval, Record
from ..model.work import Traffic, Work
from .ceilings import MOVED, Ceilings

#: A share is an error only when it is above this at the upper end of the time's interval and those of the ceilings.
IMPOSSIBLE_SHARE = 1.02
#: Share of the problem bound above which a result is none, however wide its interval is.
SCATTERED_SHARE = 1.10

#: A stream of mixed 32-bit integer instructions goes under the faster of these.
INTEGER_CEILINGS = ("int32_mad", "int32_logic")
#: Multiply-adds of narrow integers, which profiles of archival devices state. Where one is faster, integer operations
#: go under it, whether or not the values fit: so the bound stays one.
NARROW_CEILINGS = ("int24_mad", "int16_mad")
#: Units of integer operations that a variant may name; every other unit does floating-point operations.
INTEGER_UNITS = (*INTEGER_CEILINGS, "dp4a", "int8_mma")
SPECIAL_CEILINGS = ("exp", "rsqrt")
#: What a work-item loads comes from the faster of these.
ON_CHIP = ("l1_read", "local_read")
#: A barrier across the device takes the shorter of these.
BARRIERS = ("grid_barrier", "launch_latency")
#: What the clock that ranks shows of a launch that does nothing.
EMPTY = "empty_span"
#: Terms of a bound that are not named after their ceiling.
DRAM, CHAIN = "dram", "steps"

Named = dict[str, Interval]


def moved(ceilings: Ceilings, now: Ceilings) -> dict[str, float]:
    """Return the ceilings whose probe is more than `MOVED` off, with the probe as a share of the ceiling."""
    shares = {name: entry.value / ceilings.entries[name].value for name, entry in now.entries.items()}
    return {name: share for name, share in shares.items() if abs(share - 1) > MOVED}


def measured_ceilings(ceilings: Ceilings, now: Ceilings | None = None) -> dict[str, Interval]:
    """Return ceilings as intervals, widened to hold what a quiet probe beside the measurement gave.

    The value is the better of the two: a ceiling is what the device can do, and a probe in a bad moment does not
    worsen it. The interval holds both, and reaches as far beyond them as they are apart: what has moved between two
    moments may have moved as much, to the better too, at a third (a server shared with others). A probe that `moved`
    says nothing of what the device can do: it does not count.
    """
    widened = {}
    disturbed = moved(ceilings, now) if now else {}
    for name, entry in ceilings.entries.items():
        parts = [entry] + ([now.entries[name]] if now and name in now.entries.keys() - disturbed.keys() else [])
        values = [part.value for part in parts]
        low, high, apart = min(part.low for part in parts), max(part.high for part in parts), max(values) / min(values)
        if entry.direction == "higher":
            widened[name] = Interval(value=max(values), low=low, high=high * apart)
        else:
            widened[name] = Interval(value=min(values), low=low / apart, high=high)
    return widened


def datasheet_ceilings(profile: DeviceProfile) -> dict[str, Interval]:
    """Return a profile's nominal ceilings under the names that measured ones have; unknown ones are left out."""
    return {name: Interval(value=value, low=value, high=value) for name, value in profile.nominal.items()}


def published_ceilings(profile: DeviceProfile) -> dict[str, Interval]:
    """Return what is known best of a device without measuring it: published measurements over the nominal ceilings."""
    best = profile.nominal | profile.published
    return {name: Interval(value=value, low=value, high=value) for name, value in best.items()}


def memory_seconds(read: float, write: float, ceilings: Named) -> Interval | None:
    """Time to move bytes: reads at the read ceiling, writes at what the copy ceiling leaves for them.

    A copy of n bytes takes n/R + n/W = 2n/C, so W = 1 / (2/C - 1/R), at most R.
    """
    if "dram_read" not in ceilings:
        return None
    read_rate, copy_rate = ceilings["dram_read"], ceilings.get("dram_copy", ceilings["dram_read"])

    def seconds(reading: float, copying: float) -> float:
        return read / reading + write * max(2 / copying - 1 / reading, 1 / reading)

    # A slower read ceiling leaves less of a copy's time to its writes: the ends of the time may lie at any ends of the
    # two, the least time also where a written byte costs what a read one does.
    ends = [
        seconds(reading, copying)
        for copying in (copy_rate.low, copy_rate.value, copy_rate.high)
        for reading in (read_rate.low, read_rate.value, read_rate.high, copying)
        if read_rate.low <= reading <= read_rate.high
    ]
    return Interval(value=seconds(read_rate.value, copy_rate.value), low=min(ends), high=max(ends))


def _taken(amount: float, rate: Interval) -> Interval:
    """Time that an amount takes at a rate."""
    return Interval(value=amount / rate.value, low=amount / rate.high, high=amount / rate.low)


def _shortest(times: dict[str, Interval]) -> dict[str, Interval]:
    """Return the shortest of some times, by its name, or nothing where there is none.

    Any of them may turn out to be the shortest: the ends of its interval are the least of all ends.
    """
    if not times:
        return {}
    least, ends = min(times, key=lambda name: times[name].value), times.values()
    return {
        least: Interval(value=times[least].value, low=min(t.low for t in ends), high=min(t.high for t in ends)),
    }


def _bound(terms: dict[str, Interval], time: Interval) -> Bound | None:
    """Return the bound that some terms make together: the longest of them."""
    if not terms:
        return None
    binding = max(terms, key=lambda name: terms[name].value)
    seconds = terms[binding].value
    share = Interval(value=seconds / time.value, low=seconds / time.high, high=seconds / time.low)
    return Bound(
        seconds=seconds, low=max(term.low for term in terms.values()), high=max(term.high for term in terms.values()),
        binding=binding, terms={name: term.value for name, term in terms.items()}, share=share,
        stale=share.value > 1.0,
    )  # fmt: skip


def impossible(bound: Bound | None) -> bool:
    """Whether a time is below the bound by more than the intervals of the time and of the ceilings allow."""
    return bound is not None and bound.share.low * bound.low > IMPOSSIBLE_SHARE * bound.seconds


def scattered(bound: Bound | None) -> bool:
    """Whether a time is more than a tenth below the bound, which only wide intervals of samples or ceilings allow."""
    return bound is not None and not impossible(bound) and bound.share.value > SCATTERED_SHARE


def problem_bound(work: Work, ceilings: Named, time: Interval, cold: bool = True) -> Bound | None:
    """Bound by what every correct method has to do; ``None`` without ceilings.

    Operations take the fastest of the units that can do them, times how many operations of the unit each takes. A chain
    takes a launch that does nothing, and for each barrier the shorter of one within a kernel and the time from one
    launch to the next.

    Parameters
    ----------
    work : Work
    ceilings : dict
        From `measured_ceilings` or `datasheet_ceilings`, SI units per second.
    time : Interval
        Seconds per execution.
    cold : bool
        Whether inputs lie in DRAM at the start. From a warm cache DRAM is no bound, and its term is left out.
    """
    terms: dict[str, Interval] = {}
    for amount, units in ((work.flops, work.float_units), (work.integer_ops, work.integer_units)):
        if amount:
            known = [name for name in units if name in ceilings]  # of equal ones the first is named
            terms |= _shortest({name: _taken(amount * units[name], ceilings[name]) for name in known})
    if work.load_bytes:
        known = [name for name in ON_CHIP if name in ceilings]
        terms |= _shortest({name: _taken(work.load_bytes, ceilings[name]) for name in known})
    if work.host_bytes and "h2d_pinned" in ceilings:
        terms["h2d_pinned"] = _taken(work.host_bytes, ceilings["h2d_pinned"])
    if cold and (moving := memory_seconds(work.read_bytes, work.write_bytes, ceilings)):
        terms[DRAM] = moving
    if chain := _chain(work, ceilings):
        terms[CHAIN] = chain
    return _bound(terms, time)


def _chain(work: Work, ceilings: Named) -> Interval | None:
    """Time of the launch and of a chain of barriers; ``None`` where nothing is known of them."""
    barrier = next(iter(_shortest({name: ceilings[name] for name in BARRIERS if name in ceilings}).values()), None)
    parts = ((work.launches, ceilings.get(EMPTY)), (work.barriers, barrier))
    known = [(times, part) for times, part in parts if times and part]
    if not known:
        return None
    ends = {end: sum(times * getattr(part, end) for times, part in known) for end in ("value", "low", "high")}
    return Interval(**ends)


def required(work: Work, cold: bool) -> set[str]:
    """Return the names of all ceilings that a problem bound may have a term of."""
    names = {*(work.float_units if work.flops else ()), *(work.integer_units if work.integer_ops else ())}
    names |= {"dram_read", "dram_copy"} if cold else set()
    names |= {"h2d_pinned"} if work.host_bytes else set()
    names |= set(ON_CHIP) if work.load_bytes else set()
    names |= {EMPTY} if work.launches else set()
    return names | (set(BARRIERS) if work.barriers else set())


def variant_bound(
    traffic: Traffic,
    ceilings: Named,
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
    ceilings, time, cold
        As for `problem_bound`.
    unit : str, optional
        The ceiling of the unit that does the operations, where it is not ``fp32_fma`` or 32-bit integer arithmetic. A
        unit of floating-point operations does integer ones where there are no others: libraries multiply bytes so.
    merged : bool
        Whether the compiler merges accesses of neighbouring work-items (it does on CPUs, where a work-group becomes a
        loop over vectors): then issued and local bytes are no bound, and their terms are left out.
    """
    integer = _fastest(INTEGER_CEILINGS, ceilings)
    named = {"flops": "fp32_fma", "integer_ops": integer}
    if unit:
        named["integer_ops" if unit in INTEGER_UNITS or not traffic.flops else "flops"] = unit
    amounts = {
        named["flops"]: traffic.flops,
        named["integer_ops"]: traffic.integer_ops,
        _fastest(SPECIAL_CEILINGS, ceilings): traffic.special_ops,
        "l2_read": traffic.l2_bytes or 0.0,
        "atomic_global_many": traffic.global_atomics,
        "atomic_local_many": traffic.local_atomics,
    }
    if not merged:
        amounts |= {"l1_read": traffic.issued_bytes, "local_read": traffic.local_bytes}
    terms = {name: _taken(amount, ceilings[name]) for name, amount in amounts.items() if amount and name in ceilings}
    if cold and (moving := memory_seconds(traffic.dram_read, traffic.dram_write, ceilings)):
        terms[DRAM] = moving
    return _bound(terms, time)


def place(record: Record, datasheet: Named, *, merged: bool) -> None:
    """Give a measured record its bounds, by its work, traffic, ceilings and time; ``merged`` as of `variant_bound`."""
    assert record.work and record.timing
    taken, cold = record.timing.ranked, record.timing.cache == "cold"
    record.problem_bound = problem_bound(record.work, record.ceilings, taken, cold)
    record.datasheet_bound = problem_bound(record.work, datasheet, taken, cold)
    if record.traffic:
        record.variant_bound = variant_bound(
            record.traffic, record.ceilings, taken, record.unit, cold, merged=merged
        )  # fmt: skip


def _fastest(names: tuple[str, ...], ceilings: Named) -> str:
    return max(names, key=lambda name: ceilings[name].value if name in ceilings else 0.0)
