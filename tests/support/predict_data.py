"""Devices, sources and collections for the tests of modelled times, with numbers that a reader can compute by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import report_data as data

from perfport.judge.predict.devices import Device, Origin, exact
from perfport.judge.predict.limits import Footprint, footprint
from perfport.judge.predict.model import Pattern, Source
from perfport.model.record import Record
from perfport.model.work import Traffic
from perfport.store.case import Case, Host, Site, Subject
from perfport.store.collection import Collection

CUDA, OPENCL = "cuda:nvidia:0", "opencl:nvidia:0"
#: Round numbers: 4 TB/s, 50 TFLOP/s.
FAST = {"dram_read": 4e12, "dram_copy": 4e12, "fp32_fma": 50e12, "l1_read": 30e12, "l2_read": 8e12, "local_read": 30e12,
        "launch_latency": 1e-6, "empty_span": 2e-6}  # fmt: skip
SLOW = {**FAST, "dram_read": 2e12, "dram_copy": 2e12, "l2_read": 5e12}


def device(name: str = "near", **change: Any) -> Device:
    """Return a device of round numbers; keywords replace its fields, ``ceilings`` as plain values."""
    ceilings = change.pop("ceilings", FAST)
    origin = change.pop("origin", Origin.MEASURED)
    fields: dict[str, Any] = {
        "name": name, "title": name, "kind": "gpu", "vendor": "nvidia", "family": "9.0", "runtime": "cuda:nvidia",
        "ceilings": {key: exact(value) for key, value in ceilings.items()}, "origins": dict.fromkeys(ceilings, origin),
        "hierarchy": {}, "capabilities": frozenset({"gpu", "cuda", "opencl", "images"}), **change,
    }  # fmt: skip
    return Device(**fields)


def source(seconds: float, traffic: Traffic | None, own: Device, **change: Any) -> Source:
    """Return a case that was measured on a device, with the device's ceilings beside it; without noise.

    Keywords replace the record's fields; ``launches``, ``pattern`` and ``footprint`` are those of the source.
    """
    launches, pattern = change.pop("launches", 1), change.pop("pattern", Pattern())
    taken: Footprint | None = change.pop("footprint", None)
    record = data.record("v", seconds, device=data.GPU, ceilings=None, noise=0.0, traffic=traffic, **change)
    assert record.timing
    timing = record.timing.model_copy(update={"launches": launches})
    record = record.model_copy(update={"timing": timing, "ceilings": dict(own.ceilings)})
    site = Site((data.GPU,), (own.title,), Host(), 1, own.kind)
    case = Case(None, record, site, Subject.of(record))  # type: ignore[arg-type]
    return Source(case, record, own, taken or footprint(record, None, None), pattern)


def streaming(nbytes: float, **change: Any) -> Traffic:
    """Return traffic that reads so many bytes of DRAM once."""
    return Traffic(dram_read=nbytes, global_read=nbytes, **change)


#: Seconds for each point on the second of `two_devices`.
ON_SECOND = math.sqrt(2.0**2 + 1.5**2 - 1.0**2) * 1e-3


def live(id_: str, chip: str, capability: str = "9.0") -> dict[str, Any]:
    """Return a live GPU as an environment file holds it."""
    return {**data.device(data.GPU, chip), "id": id_, "backend": id_.partition(":")[0], "vendor": "NVIDIA Corporation",
            "compute_capability": capability, "capabilities": ["images"], "hardware_thread": 32}  # fmt: skip


def measured(id_: str, ceilings: dict[str, float], times: dict[tuple[str, int], float], **change: Any) -> list[Record]:
    """Return records of a device that read 4 GB x points: by variant and points, their seconds."""
    records = []
    for (variant, points), seconds in times.items():
        record = data.record(
            variant, seconds, device=data.GPU, ceilings=None, noise=0.0, traffic=streaming(4e9 * points),
            parameters={"points": points}, key=f"{data.hash_of(f'{variant}{points}{id_}{ceilings}'):016x}", **change,
        )  # fmt: skip
        identity = record.identity.model_copy(update={"devices": [id_], "backend": id_.partition(":")[0]})
        records.append(record.model_copy(update={"identity": identity, "ceilings": data.exact(ceilings)}))
    return records


def two_devices(folder: Path, off: float = 1.0, variants: int = 3, **second_run: Any) -> Collection:
    """Return the same cases on two chips of one architecture, of which the second reads half as fast.

    On the first 1 ms for each point is DRAM's of 1.5; what else there is overlaps it in part.

    ``off``: how many times longer the second takes than by that; keywords replace what its run tells of itself.
    """
    names = [(f"v{number}", points) for number in range(variants) for points in (1, 2)]
    first = {(name, points): 1.5e-3 * points for name, points in names}
    second = {(name, points): off * ON_SECOND * points for name, points in names}
    runs = []
    for name, ceilings, times, told in (("Chip A", FAST, first, {}), ("Chip B", SLOW, second, second_run)):
        environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, name)}, **told)
        runs.append(data.store(folder / name, measured(CUDA, ceilings, times), environment))
    return Collection(runs)
