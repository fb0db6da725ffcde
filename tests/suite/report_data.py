"""Synthetic runs for the tests of reports: every status, role and clock, without any workload or device."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from perfport.record import (
    Failure,
    Identity,
    Interval,
    MetricValue,
    OutputError,
    Overheads,
    Record,
    Status,
    Timing,
    Verification,
)
from perfport.results import Run
from perfport.roofline import problem_bound, variant_bound
from perfport.statistics import summarise
from perfport.work import Traffic, Work

POCL, INTEL = "opencl:pocl:0", "opencl:intel:0"
SIZES = {"points": 100_000, "dims": 1000}
WORK = Work(flops=6e8, read_bytes=4e8, write_bytes=8e5)
NO_FLOPS = Work(integer_ops=1e8, read_bytes=4e8, write_bytes=8.0)
CEILINGS = {"dram_read": 40e9, "dram_copy": 32e9, "dram_triad": 33e9, "fp32_fma": 400e9}


def exact(values: dict[str, float]) -> dict[str, Interval]:
    """Return ceilings whose intervals are 1 % wide on either side."""
    return {name: Interval(value=v, low=0.99 * v, high=1.01 * v) for name, v in values.items()}


def samples(seconds: float, seed: int, n: int = 15, noise: float = 0.01) -> list[float]:
    """Return reproducible times with a median close to ``seconds``."""
    return [float(t) for t in seconds * (1 + noise * np.random.default_rng(seed).standard_normal(n))]


def record(variant: str, seconds: float = 0.05, **change: Any) -> Record:
    """Return a record; keywords replace parts of it.

    Identity's fields (``role``, ``rung``, ``problem``, ``device``, ...) and the record's own are told apart by name.
    ``clock`` may be ``span``, ``both`` or ``wall``; ``ceilings`` None leaves the bounds out.
    """
    device = change.pop("device", POCL)
    fields = {k: change.pop(k) for k in list(change) if k in Identity.model_fields}
    fields = {
        "workload": "demo",
        "problem": "rows",
        "preset": "quick",
        "parameters": SIZES,
        "backend": "opencl",
        **fields,
    }
    identity = Identity(variant=variant, devices=[device], **fields)
    name = f"{identity.problem}-{identity.preset}-{variant}-{identity.tunables}-{device}-{identity.precision}"
    key = change.pop("key", f"{hash_of(name):012x}")
    status = change.pop("status", Status.OK)
    base: dict[str, Any] = {"key": key, "run": "demo", "time": "2026-11-21T12:00:00+00:00", "status": status}
    base["identity"] = identity
    work, ceilings = change.pop("work", WORK), change.pop("ceilings", CEILINGS)
    clock, noise, n = change.pop("clock", "both"), change.pop("noise", 0.01), change.pop("n", 15)
    if status in (Status.OK, Status.CONTENDED, Status.WRONG):
        times = samples(seconds, hash_of(name) % 1000, n, noise)
        clocks: dict[str, list[float]] = {}
        if clock != "wall":
            clocks["span"] = times
        if clock != "span":
            clocks["wall"] = [1.1 * t for t in times] if clock == "both" else times
        summary = {k: summarise(v) for k, v in clocks.items()}
        rank = "wall" if clock == "wall" else "span"
        shown = summary[rank]
        found = Interval(value=shown.median, low=shown.ci_low, high=shown.ci_high)
        timing = {
            "rank": rank, "cache": "cold", "launches": 1, "rounds": list(range(n)), **clocks, "summary": summary,
            "target": 0.02, "target_met": shown.half_width <= 0.02, "kernels": change.pop("kernels", {}),
        }  # fmt: skip
        amount = work.flops or work.integer_ops
        rate: dict[str, Any] = {"tag": "demo.rate", "unit": "GFLOP/s" if work.flops else "Gop/s", "direction": "higher"}
        base["timing"] = Timing.model_validate(timing)
        base["metric"] = MetricValue(
            **rate, value=amount / found.value / 1e9, low=amount / found.high / 1e9, high=amount / found.low / 1e9
        )
        base["overheads"] = Overheads(compile_s=0.12, upload_s=0.3, device_bytes=401 << 20)
        base["verification"] = verification(status != Status.WRONG)
        base["work"] = work
        traffic = change.pop("traffic", Traffic(flops=work.flops, dram_read=4e8, dram_write=8e5))
        base["traffic"] = traffic
        if ceilings:
            base["ceilings"] = exact(ceilings)
            base["problem_bound"] = problem_bound(work, exact(ceilings), found)
            base["datasheet_bound"] = problem_bound(work, exact({"dram_read": 80e9, "fp32_fma": 800e9}), found)
            base["variant_bound"] = variant_bound(traffic, exact(ceilings), found) if traffic else None
    else:
        base["failure"] = Failure(reason=f"{status.value} for a reason")
    return Record.model_validate({**base, **change})


def hash_of(name: str) -> int:
    """Return a number that depends on the text alone, unlike ``hash``."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)


def verification(passed: bool) -> Verification:
    """Return a verification outcome of one output."""
    error = OutputError(
        max_abs=1e-6 if passed else 3.0, relative_l2=2.5e-7 if passed else 0.5, checked=10_000, total=200_000,
        tolerance={"max_abs": 1e-5}, passed=passed,
    )  # fmt: skip
    return Verification(passed=passed, seed=1, outputs={"high": error})


def device(id_: str, chip: str = "AMD EPYC 9999") -> dict[str, Any]:
    """Return a device as an environment file holds it."""
    return {
        "id": id_, "backend": "opencl", "platform": id_.split(":")[1], "name": f"cpu-{chip}", "chip": chip,
        "driver": "3.1", "kind": "cpu", "compute_units": 2, "memory_bytes": 8 << 30, "max_alloc_bytes": 2 << 30,
        "local_memory_bytes": 512 << 10, "max_work_group": 4096, "healthy": True, "reason": "",
    }  # fmt: skip


def ceilings(id_: str, date: str = "2026-11-21T11:30:00+00:00") -> dict[str, Any]:
    """Return measured ceilings as an environment file holds them."""
    entries = {
        name: {
            "value": v, "low": 0.99 * v, "high": 1.01 * v, "unit": "FLOP/s" if name == "fp32_fma" else "B/s",
            "shape": {"width": 16, "chunked": 1}, "samples": 15, "spread": 0.12,
            "sweep": {"width=1": 0.12 * v, "width=16": v},
        }
        for name, v in CEILINGS.items()
    }  # fmt: skip
    return {
        "device": id_,
        "driver": "3.1",
        "date": date,
        "version": 1,
        "working_set_bytes": 256 << 20,
        "entries": entries,
    }


def probe(id_: str, when: str, factor: float) -> dict[str, Any]:
    """Return one probe of all ceilings."""
    entries = {name: {"value": factor * v, "low": factor * v, "high": factor * v} for name, v in CEILINGS.items()}
    return {"device": id_, "when": when, "date": "2026-11-21T12:00:00+00:00", "entries": entries}


PUBLISHED = [
    {"problem": "rows", "variant": "row_major", "device": "hd5870", "value": 33.7, "unit": "GFLOP/s", "share": 0.15,
     "source": "Catanzaro 2011, figure 3", "note": None},
    {"problem": "rows", "variant": "image", "device": "hd5870", "value": 115.6, "unit": "GFLOP/s", "share": None,
     "source": "Catanzaro 2011, figure 7", "note": "refilled every iteration | pipes"},
    {"problem": "rows", "variant": "image", "device": "no_such_device", "value": 9.0, "unit": "GFLOP/s",
     "source": "rumour"},
]  # fmt: skip


def environment(ids: tuple[str, ...] = (POCL, INTEL), **change: Any) -> dict[str, Any]:
    """Return the content of an environment file; keywords replace top-level keys."""
    metric = {
        "tag": "demo.rate",
        "unit": "GFLOP/s",
        "direction": "higher",
        "description": "useful operations per second.",
    }
    profile = {"name": "generic_cpu", "title": "Generic CPU", "bandwidth": 80e9, "fp32": 800e9}
    return {
        "schema_version": 1, "run": "demo-20261121", "started": "2026-11-21T12:00:00+00:00", "seed": 7,
        "command": ["perfport", "run", "demo.yaml", "--out", "a folder"],
        "experiment": {"name": "demo", "title": "A demonstration", "file": "demo.yaml", "sha256": "ab" * 32},
        "host": {"cpu": "AMD EPYC 9999", "cores": 2, "memory_bytes": 8 << 30, "os": "Linux 6.1", "python": "3.13"},
        "versions": {"perfport": "0.1.0", "numpy": "2.1"}, "commit": {"hash": "0123abcd", "dirty": True},
        "devices": {id_: device(id_) for id_ in ids}, "ceilings": {id_: ceilings(id_) for id_ in ids},
        "probes": [probe(POCL, "before", 1.0), probe(POCL, "after", 0.97)],
        "profiles": dict.fromkeys(ids, profile),
        "workloads": {"demo": {
            "title": "Demonstration workload", "published": PUBLISHED,
            "problems": {"rows": {"title": "Rows of a kernel matrix", "metric": metric},
                         "argmin": {"title": "Arg-min", "metric": {**metric, "unit": "Gop/s"}}},
        }},
        "report": {}, **change,
    }  # fmt: skip


def ladder(device: str, slower: float = 1.0) -> list[Record]:
    """Return the ladder of a study on one device: rungs, control arms, more, peers."""
    s = slower
    wide = Traffic(flops=6e8, dram_read=16e8, dram_write=8e5)
    layout = Overheads(compile_s=0.2, layout_s=0.4)
    none = {"traffic": None}
    return [
        record("row_major", 0.060 * s, rung=1, device=device, traffic=wide),
        record("column_major", 0.0300 * s, rung=2, device=device, overheads=layout),
        record(
            "vectorized", 0.0210 * s, rung=3, device=device, overheads=layout, kernels={"rows": 0.019, "sum": 0.002}
        ),
        record("vectorized_points", 0.0212 * s, rung=3, device=device, overheads=layout),
        record("image", rung=4, device=device, status=Status.UNSUPPORTED),
        record("local_memory", 0.0140 * s, rung=5, device=device, overheads=layout, extra={"share of cache": 0.5}),
        record("row_major_float4", 0.0500 * s, role="control", rung=1, device=device, noise=0.2),
        record("column_unpadded", 0.0310 * s, role="control", rung=2, device=device, status=Status.CONTENDED),
        record("host_loop", 0.0400 * s, role="beyond", rung=1, device=device, clock="wall"),
        record("numpy", 0.0900 * s, role="peer", device=device, clock="wall", **none),
        record("cdist", role="peer", device=device, status=Status.UNAVAILABLE),
    ]


def every_status() -> list[Record]:
    """Return one record per failed status, on a problem of their own."""
    bad = [status for status in Status if not status.measured]
    found = [record(f"case_{status.value}", rung=i, status=status, problem="failing") for i, status in enumerate(bad)]
    log = Failure(reason="does not compile: expected ';' | found ')'", log="line\n" * 100 + "```\nerror | here\n")
    return [*(r if r.status != Status.COMPILE_ERROR else r.model_copy(update={"failure": log}) for r in found)]


def demonstration() -> list[Record]:
    """Return a run that has everything: two devices, two precision classes, a problem without FLOPs, all statuses."""
    return [
        *ladder(POCL), *ladder(INTEL, 0.9),
        record("half", 0.011, precision="fp16", rung=1), record("half_wide", 0.0109, precision="fp16", rung=2),
        record("separate", 0.02, problem="argmin", rung=1, work=NO_FLOPS),
        record("fused", 0.012, problem="argmin", rung=2, work=NO_FLOPS),
        *every_status(),
    ]  # fmt: skip


def store(folder: Path, records: list[Record], content: dict[str, Any] | None = None) -> Run:
    """Write a results folder and read it back."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text(json.dumps(content or environment(), indent=1, sort_keys=True))
    (folder / "records.jsonl").write_text("".join(r.model_dump_json(exclude_none=True) + "\n" for r in records))
    return Run(folder)
