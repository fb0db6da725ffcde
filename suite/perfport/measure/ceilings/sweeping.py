"""Sweeping all ceilings of a device, probing some of them again, and correcting them by a probe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from ...backend import OpenDevice
from ...model.errors import CompileError, DeviceMemoryError, UnsupportedError
from ..intervals import summarise
from .bench import Bench
from .catalogue import KINDS
from .entry import Ceiling, Ceilings
from .kind import Kind, NoCeilingError, Shape, label
from .theory import theory

SWEEP_SAMPLES, FINAL_SAMPLES, PROBE_SAMPLES = 2, 15, 5


def sweep(device: OpenDevice, full: bool = False, progress: Callable[[str], None] = lambda _: None) -> Ceilings:
    """Measure every ceiling of an open device.

    Parameters
    ----------
    device : OpenDevice
    full : bool
        All shapes instead of the ones that have won somewhere.
    progress : callable
        Told each ceiling's name before it is measured.
    """
    bench = Bench(device)
    entries: dict[str, Ceiling] = {}
    absent: dict[str, str] = {}
    try:
        for name, kind in KINDS.items():
            if missing := [need for need in kind.needs if need not in device.info.capabilities]:
                absent[name] = f"the device has no {', '.join(missing)}"
                continue
            progress(name)
            entry, reason = _measure(bench, kind, full)
            if entry is not None:
                reason = kind.absent(bench, entry, entries)
            if entry is None or reason:
                absent[name] = reason
            else:
                entries[name] = entry
    finally:
        bench.close()
    return Ceilings(
        device=device.info.id, driver=device.info.driver, date=_now(), full=full, working_set_bytes=bench.nbytes,
        entries=entries, absent=absent,
    )  # fmt: skip


def _measure(bench: Bench, kind: Kind, full: bool) -> tuple[Ceiling | None, str]:
    """Sweep one ceiling's shapes and sample the best; or return why none could be run."""
    sign = 1.0 if kind.direction == "higher" else -1.0
    values: dict[str, float] = {}
    shapes: dict[str, Shape] = {}
    reason = "no such part is known of this device"
    before = bench.device.clocks()
    for shape in kind.shapes(bench, full):
        try:
            samples = kind.samples(bench, shape, SWEEP_SAMPLES)
        except (CompileError, UnsupportedError, DeviceMemoryError, NoCeilingError) as error:
            reason = str(error)
            continue
        values[label(shape)] = max(samples, key=lambda value: sign * value)
        shapes[label(shape)] = shape
    if not values:
        return None, reason
    best = max(values, key=lambda key: sign * values[key])
    taken = summarise(kind.samples(bench, shapes[best], FINAL_SAMPLES))
    low, high = min(values.values()), max(values.values())
    limit, basis = theory(kind.name, bench.info)
    entry = Ceiling(
        value=taken.median, low=taken.ci_low, high=taken.ci_high, unit=kind.unit, direction=kind.direction,
        shape=shapes[best], samples=taken.n, spread=low / high, sweep=values,
        curve=kind.curve(bench, shapes[best], taken.median), clocks={"before": before, "after": bench.device.clocks()},
        theory=limit, theory_basis=basis, above_theory=limit is not None and taken.ci_low > limit,
    )  # fmt: skip
    return entry, ""


def probe_again(
    device: OpenDevice, known: Ceilings, names: Iterable[str] | None = None, samples: int = PROBE_SAMPLES
) -> Ceilings:
    """Measure winning shapes again, briefly: what the device gives now.

    Parameters
    ----------
    device : OpenDevice
    known : Ceilings
    names : iterable of str, optional
        The ceilings to probe, as far as they are known; default: all of them.
    samples : int
    """
    bench = Bench(device)
    chosen = known.entries if names is None else set(names)
    entries = {}
    try:
        for name, ceiling in known.entries.items():
            if name not in chosen:
                continue
            taken = summarise(KINDS[name].samples(bench, ceiling.shape, samples))
            update = {
                "value": taken.median, "low": taken.ci_low, "high": taken.ci_high, "samples": samples, "sweep": {},
                "curve": [],
            }  # fmt: skip
            entries[name] = ceiling.model_copy(update=update)
    finally:
        bench.close()
    return known.model_copy(update={"date": _now(), "entries": entries})


def raise_to(known: Ceilings, now: Ceilings) -> Ceilings:
    """Return ceilings raised to what a probe gave, where it gave more than the sweep's interval allows.

    A ceiling is what a device can do: a sweep taken in a bad moment is corrected upwards, never downwards.
    """
    higher = {
        name: entry
        for name, entry in now.entries.items()
        if entry.direction == "higher" and entry.low > known.entries[name].high
    }
    if not higher:
        return known
    update = {
        name: entry.model_copy(update={"sweep": known.entries[name].sweep, "curve": known.entries[name].curve})
        for name, entry in higher.items()
    }
    return known.model_copy(update={"date": now.date, "entries": {**known.entries, **update}})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
