"""Sweeping all ceilings of a device, probing some of them again, and correcting them by a probe."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from ...backend import OpenDevice
from ...model.errors import CompileError, DeviceMemoryError, UnsupportedError
from ..contention import LEAST_S, Watch, wait_until_quiet
from ..intervals import summarise
from .bench import Bench
from .catalogue import KINDS
from .entry import MOVED, Ceiling, Ceilings, Renewal
from .kind import Kind, NoCeilingError, Shape, label
from .theory import theory

SWEEP_SAMPLES, FINAL_SAMPLES, PROBE_SAMPLES = 2, 15, 5
#: Seconds for which a sweep waits for others to end, ahead of it and once more behind it. What is over by then (a tool
#: of the command line, a page that loads) is no reason to distrust a sweep of minutes; a build goes on for longer.
WAIT_S = 10.0
WAITING = "waiting until nothing else uses the device"


def sweep(
    device: OpenDevice,
    full: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    names: Collection[str] = KINDS.keys(),
    known: Mapping[str, Ceiling] = MappingProxyType({}),
) -> Ceilings:
    """Measure ceilings of an open device, once it is quiet.

    Where others use what the device needs, it waits up to `WAIT_S` for them to end; ceilings beside which they did not
    are measured once more if they end within another `WAIT_S`, and stay `Ceilings.contended` if not.

    Parameters
    ----------
    device : OpenDevice
    full : bool
        All shapes instead of the ones that have won somewhere.
    progress : callable
        Told each step before it is taken.
    names : collection of str
        The ceilings; all of them unless given.
    known : mapping
        Ceilings by name as they were: those that are not measured are what others are judged by (levels behind a
        level), of those that are the shape is tried too.
    """
    bench = Bench(device)
    taken = _Sweep(bench, full, progress, dict(known))
    try:
        progress(WAITING)
        wait_until_quiet(device, WAIT_S)
        taken.measure(names)
        if taken.contended:
            progress(WAITING)
            if not wait_until_quiet(device, WAIT_S):
                taken.measure([name for name in names if name in taken.contended])
    finally:
        bench.close()
    return Ceilings(
        device=device.info.id, driver=device.info.driver, date=_now(), full=full, working_set_bytes=bench.nbytes,
        entries={name: entry for name, entry in taken.entries.items() if name in names}, absent=taken.absent,
        contended=taken.contended,
    )  # fmt: skip


@dataclass
class _Sweep:
    """A sweep under way: what was measured so far, and beside which ceilings others used what the device needs."""

    bench: Bench
    full: bool
    progress: Callable[[str], None]
    entries: dict[str, Ceiling]
    absent: dict[str, str] = field(default_factory=dict)
    contended: dict[str, str] = field(default_factory=dict)

    def measure(self, names: Iterable[str]) -> None:
        """Measure ceilings in the order of the catalogue; those of less than `LEAST_S` are judged with the next."""
        watch, unjudged = Watch(self.bench.device), list[str]()
        for name in [name for name in KINDS if name in set(names)]:
            self.absent.pop(name, None)
            self._one(KINDS[name], self.entries.pop(name, None))
            unjudged.append(name)
            if watch.elapsed() >= LEAST_S:
                self._judge(unjudged, watch.reason())
                watch, unjudged = Watch(self.bench.device), []
        if unjudged:
            time.sleep(max(LEAST_S - watch.elapsed(), 0.0))
            self._judge(unjudged, watch.reason())

    def _one(self, kind: Kind, before: Ceiling | None) -> None:
        if missing := [need for need in kind.needs if need not in self.bench.info.capabilities]:
            self.absent[kind.name] = f"the device has no {', '.join(missing)}"
            return
        self.progress(f"measuring ceiling {kind.name}")
        entry, reason = _measure(self.bench, kind, self.full, before)
        if entry is not None:
            reason = kind.absent(self.bench, entry, self.entries)
        if entry is None or reason:
            self.absent[kind.name] = reason
        else:
            self.entries[kind.name] = entry

    def _judge(self, names: list[str], reason: str) -> None:
        for name in names:
            self.contended.pop(name, None)
            if reason:
                self.contended[name] = reason


def _measure(bench: Bench, kind: Kind, full: bool, before: Ceiling | None = None) -> tuple[Ceiling | None, str]:
    """Sweep one ceiling's shapes, with the one that won ``before``, and sample the best; or return why none ran."""
    sign = 1.0 if kind.direction == "higher" else -1.0
    values: dict[str, float] = {}
    shapes: dict[str, Shape] = {}
    reason = "no such part is known of this device"
    clocks = bench.device.clocks()
    for shape in (*kind.shapes(bench, full), *([before.shape] if before else [])):
        if label(shape) in values:
            continue
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
    try:
        with bench.keeping():
            taken = summarise(kind.samples(bench, shapes[best], FINAL_SAMPLES))
    except NoCeilingError as error:  # what went well twice may not do so each time
        return None, str(error)
    low, high = min(values.values()), max(values.values())
    limit, basis = theory(kind.name, bench.info)
    entry = Ceiling(
        value=taken.median, low=taken.ci_low, high=taken.ci_high, unit=kind.unit, direction=kind.direction,
        shape=shapes[best], samples=taken.n, spread=low / high, sweep=values,
        curve=kind.curve(bench, shapes[best], taken.median), clocks={"before": clocks, "after": bench.device.clocks()},
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

    Returns
    -------
    Ceilings
        Those that could be measured; `Ceilings.absent` says why others could not.
    """
    bench = Bench(device)
    chosen = known.entries if names is None else set(names)
    entries, absent = {}, {}
    try:
        for name, ceiling in known.entries.items():
            if name not in chosen:
                continue
            try:
                with bench.keeping():
                    taken = summarise(KINDS[name].samples(bench, ceiling.shape, samples))
            except NoCeilingError as error:
                absent[name] = str(error)
                continue
            update = {
                "value": taken.median, "low": taken.ci_low, "high": taken.ci_high, "samples": samples, "sweep": {},
                "curve": [],
            }  # fmt: skip
            entries[name] = ceiling.model_copy(update=update)
    finally:
        bench.close()
    return known.model_copy(update={"date": _now(), "entries": entries, "absent": absent})


def raise_to(known: Ceilings, now: Ceilings) -> Ceilings:
    """Return ceilings raised to what a probe gave, where it gave more than the sweep's interval allows, or by `MOVED`.

    A ceiling is what a device can do: a sweep taken in a bad moment is corrected towards the better, never towards the
    worse. Its age stays that of the sweep. One that others disturbed has a wide interval, in which all probes of a
    quiet device lie: it is corrected where a probe's whole interval is so far from its value that the probe counts as
    disturbed, or every group would be.
    """
    better = {name: entry for name, entry in now.entries.items() if _better(entry, known.entries[name])}
    if not better:
        return known
    update = {
        name: entry.model_copy(update={"sweep": known.entries[name].sweep, "curve": known.entries[name].curve})
        for name, entry in better.items()
    }
    return known.model_copy(update={"entries": {**known.entries, **update}})


def _better(now: Ceiling, known: Ceiling) -> bool:
    if now.direction == "lower":
        return now.high < max(known.low, known.value * (1 - MOVED))
    return now.low > min(known.high, known.value * (1 + MOVED))


def renewed(known: Ceilings, fresh: Ceilings, renewal: Renewal, exceeded: Collection[str] = ()) -> Ceilings:
    """Return ceilings with those that were swept again in place of the old ones, and the renewal noted.

    What others disturbed in the new sweep replaces nothing that was trusted, and says so in the renewal's outcome.

    Parameters
    ----------
    known, fresh : Ceilings
    renewal : Renewal
    exceeded : collection of str
        Ceilings that a time exceeds: the device does more than they say, so of both values the better one counts.
    """
    better = [name for name in exceeded if name in known.entries and not _gives_more(fresh, known, name)]
    disturbed = {name: why for name, why in fresh.contended.items() if name not in exceeded or name in known.contended}
    names = [
        name
        for name in renewal.names
        if name not in better and (name not in disturbed or name not in known.entries or name in known.contended)
    ]
    kept = [name for name in renewal.names if name not in names]
    reasons = {
        name: ["the new sweep gave no more"] * (name in better) + [*filter(None, [fresh.contended.get(name)])]
        for name in kept
    }
    parts: dict[str, Any] = {
        part: {name: value for name, value in getattr(known, part).items() if name not in names}
        | {name: value for name, value in values.items() if name in names}
        for part, values in (("entries", fresh.entries), ("absent", fresh.absent), ("contended", disturbed))
    }
    whole = not kept and set(names) >= known.entries.keys() | known.absent.keys()
    told = {
        "outcome": "; ".join(f"{name} is as it was: {', '.join(why)}" for name, why in reasons.items()),
        "before": {name: known.entries[name].interval for name in renewal.names if name in known.entries},
        "fresh": {name: fresh.entries[name].interval for name in renewal.names if name in fresh.entries},
    }
    return known.model_copy(
        update={
            **parts, "date": fresh.date if whole else known.date,
            "renewals": [*known.renewals, renewal.model_copy(update=told)],
        }
    )  # fmt: skip


def _gives_more(fresh: Ceilings, known: Ceilings, name: str) -> bool:
    """Whether a new sweep gave more of a ceiling than is known."""
    return name in fresh.entries and fresh.entries[name].above(known.entries[name])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
