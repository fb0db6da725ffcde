"""Measured ceilings of a device: bandwidth and arithmetic rate by a sweep of kernel shapes.

One kernel shape is not a ceiling: on a CPU, one scalar FMA chain reaches a hundredth of what twelve chains of 16
lanes do, and a grid-stride read a tenth of a chunked one. So shapes are swept, the best one is sampled again,
and its median with its 95 % interval is the ceiling, reported with the shape that reached it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from pydantic import BaseModel, ConfigDict

from . import backend
from .backend import OpenDevice
from .cache import CacheFlush
from .device import DeviceInfo
from .errors import CompileError, UnsupportedError
from .statistics import summarise

SWEEP_VERSION = 6
FMA_STEPS = 512
MAX_ITEMS_PER_UNIT = 64 * 512  # of any shape swept: each work-item writes one result


class Ceiling(BaseModel):
    """One ceiling: median and 95 % interval of the best shape's samples, in ``unit``.

    ``spread`` is the slowest shape's rate over the best one's; ``sweep`` holds every shape's rate.
    """

    model_config = ConfigDict(extra="forbid")

    value: float
    low: float
    high: float
    unit: str
    shape: dict[str, Any] = {}
    samples: int = 0
    spread: float = 1.0
    sweep: dict[str, float] = {}


class Ceilings(BaseModel):
    """The measured ceilings of one device under one driver."""

    model_config = ConfigDict(extra="forbid")

    device: str
    driver: str
    date: str
    version: int = SWEEP_VERSION
    working_set_bytes: int = 0
    entries: dict[str, Ceiling]


def _label(shape: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in shape.items())


class _Probe:
    """Builds, runs and times the ceiling kernels on one open device."""

    def __init__(self, device: OpenDevice) -> None:
        self.device = device
        info = device.info
        self.cpu = info.kind == "cpu"
        cache = info.last_level_cache_bytes or 0
        # Long enough that a GPU's ramp-up and tail do not count; a CPU is slow enough for less.
        wanted = (256 << 20) if self.cpu else max(4 * cache, 4 << 30)
        limit = min(info.max_alloc_bytes, info.memory_bytes // 8)
        self.nbytes = int(min(wanted, limit)) // 4096 * 4096
        self._source = (files("perfport.kernels") / "ceilings.cl").read_text()
        self._arrays: list[Any] = []
        self._kernels: dict[str, Any] = {}
        self._out = device.empty(4 * MAX_ITEMS_PER_UNIT * info.compute_units)
        self._flush = CacheFlush(device)

    def _array(self, number: int) -> Any:
        while len(self._arrays) <= number:
            buffer = self.device.empty(self.nbytes)
            self.device.fill(buffer, 0x3C)  # 0x3c3c3c3c is 0.0115 as a float
            self._arrays.append(buffer)
        return self._arrays[number]

    def _kernel(self, which: str, name: str, macros: dict[str, int]) -> Any:
        key = f"{which} {sorted(macros.items())}"
        if key not in self._kernels:
            build = backend.get(self.device.info.backend).build
            defaults = {"WIDTH": 1, "CHUNKED": 0, "UNROLL": 1, "CHAINS": 1, "QUADRATIC": 0}
            artifact = build("ceilings.cl", self._source, {**defaults, which: 1, **macros}, self.device.target)
            self._kernels[key] = self.device.load(artifact).kernel(name)
        return self._kernels[key]

    def shapes(self, name: str, full: bool) -> Iterable[dict[str, Any]]:
        """The shapes to sweep for one ceiling: a CPU has few wide work-items, a GPU many narrow ones."""
        units = self.device.info.compute_units
        axes: dict[str, Sequence[int]]
        if name == "fp32_fma":
            if self.cpu:
                axes = {"chains": (8, 12, 16), "width": (1, 16), "groups": (16 * units,), "group": (1,)}
            else:
                axes = {"chains": (1, 4, 8), "width": (1, 4), "groups": (16 * units,), "group": (256,)}
            axes["quadratic"] = (0, 1)
            if full:
                axes |= {"chains": (1, 2, 4, 8, 12, 16), "width": (1, 4, 8, 16)}
        else:
            if self.cpu:
                axes = {"width": (8, 16), "groups": (units, 4 * units, 64 * units), "group": (1,), "unroll": (1, 4)}
            else:
                groups = (16 * units, 32 * units, 64 * units)
                axes = {"width": (4, 8), "groups": groups, "group": (256, 512), "unroll": (1, 2, 4, 8)}
            axes["chunked"] = (1, 0)
            if full:
                axes |= {"width": (1, 4, 8, 16), "unroll": (1, 2, 4, 8)}
            if name == "dram_triad":
                axes["unroll"] = (1,)
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def launcher(self, name: str, shape: dict[str, Any]) -> tuple[Callable[[], None], float]:
        """Return a function that enqueues one execution, and what it does in bytes or FLOP."""
        width, groups, group = shape["width"], shape["groups"], shape["group"]
        device, count = self.device, np.uint64(self.nbytes // 4 // width)
        if name == "fp32_fma":
            macros = {"CHAINS": shape["chains"], "WIDTH": width, "QUADRATIC": shape["quadratic"]}
            kernel = self._kernel("FMA", "fma_chains", macros)
            steps = FMA_STEPS * (8 if not self.cpu else 16)
            # Both recurrences stay bounded: x*x - 0.7 has an attracting 2-cycle near 0, x*0.999 + 0.001 a fixed point.
            constants = (np.float32(0.999), np.float32(-0.7 if shape["quadratic"] else 0.001), np.int32(steps))
            args: tuple[Any, ...] = (self._out, *constants)
            amount = 2.0 * shape["chains"] * width * steps * groups * group
        else:
            macros = {"WIDTH": width, "CHUNKED": shape["chunked"], "UNROLL": shape["unroll"]}
            which, kernel_name, inputs, arrays = {
                "dram_read": ("READ", "read_sum", (self._array(0), self._out), 1),
                "dram_copy": ("COPY", "copy", (self._array(0), self._array(1)), 2),
                "dram_triad": ("TRIAD", "triad", (self._array(0), self._array(1), self._array(2)), 3),
            }[name]
            kernel = self._kernel(which, kernel_name, macros)
            args = (*inputs, count)
            amount = float(arrays * self.nbytes)
        return (lambda: device.launch(kernel, groups, group, *args)), amount

    def measure(self, name: str, shape: dict[str, Any], samples: int) -> list[float]:
        """Return rates (bytes/s or FLOP/s) of one shape, after one warm-up; DRAM is read from a cold cache."""
        execute, amount = self.launcher(name, shape)
        self.device.timed(execute)
        before = self._flush if name.startswith("dram") else None
        return [amount / self.device.timed(execute, before).span for _ in range(samples)]

    def close(self) -> None:
        self._flush.close()
        for buffer in [*self._arrays, self._out]:
            buffer.free()


NAMES = {"dram_read": "B/s", "dram_copy": "B/s", "dram_triad": "B/s", "fp32_fma": "FLOP/s"}


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
    probe = _Probe(device)
    entries = {}
    try:
        for name, unit in NAMES.items():
            progress(name)
            rates: dict[str, float] = {}
            shapes = {}
            for shape in probe.shapes(name, full):
                try:
                    rates[_label(shape)] = max(probe.measure(name, shape, 2))
                except (CompileError, UnsupportedError):
                    continue
                shapes[_label(shape)] = shape
            best = max(rates, key=lambda label: rates[label])
            samples = probe.measure(name, shapes[best], 15)
            summary = summarise(samples)
            entries[name] = Ceiling(
                value=summary.median, low=summary.ci_low, high=summary.ci_high, unit=unit, shape=shapes[best],
                samples=len(samples), spread=min(rates.values()) / max(rates.values()), sweep=rates,
            )  # fmt: skip
    finally:
        probe.close()
    return Ceilings(
        device=device.info.id, driver=device.info.driver, date=_now(), working_set_bytes=probe.nbytes, entries=entries
    )


def probe_again(device: OpenDevice, known: Ceilings, samples: int = 5) -> Ceilings:
    """Measure the winning shapes again, briefly: what the device gives now."""
    probe = _Probe(device)
    entries = {}
    try:
        for name, ceiling in known.entries.items():
            if name == "dram_triad":
                continue  # no bound uses it, and its third array takes long to make
            rates = summarise(probe.measure(name, ceiling.shape, samples))
            update = {
                "value": rates.median,
                "low": rates.ci_low,
                "high": rates.ci_high,
                "samples": samples,
                "sweep": {},
            }
            entries[name] = ceiling.model_copy(update=update)
    finally:
        probe.close()
    return known.model_copy(update={"date": _now(), "entries": entries})


def raise_to(known: Ceilings, now: Ceilings) -> Ceilings:
    """Return ceilings raised to what a probe gave, where it gave more than the sweep's interval allows.

    A ceiling is what a device can do: a sweep taken in a bad moment is corrected upwards, never downwards.
    """
    higher = {name: entry for name, entry in now.entries.items() if entry.low > known.entries[name].high}
    if not higher:
        return known
    update = {name: entry.model_copy(update={"sweep": known.entries[name].sweep}) for name, entry in higher.items()}
    return known.model_copy(update={"date": now.date, "entries": {**known.entries, **update}})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def cache_file(info: DeviceInfo) -> Path:
    """Where a device's ceilings are kept: a change of chip, driver or sweep gives another file."""
    identity = "|".join([info.id, info.chip, info.driver, info.uuid, str(info.compute_units), str(SWEEP_VERSION)])
    name = f"{info.id.replace(':', '-')}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}.json"
    return Path(platformdirs.user_cache_dir("perfport")) / "ceilings" / name


def load_cached(info: DeviceInfo) -> Ceilings | None:
    """Return the cached ceilings of a device, or ``None`` where there are none that can be read."""
    try:
        return Ceilings.model_validate_json(cache_file(info).read_text())
    except (OSError, ValueError):
        return None


def store(info: DeviceInfo, ceilings: Ceilings) -> None:
    """Keep ceilings for later runs; a cache that cannot be written is no error."""
    path = cache_file(info)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(ceilings.model_dump(), indent=1))
        partial.replace(path)
    except OSError:
        return
