"""Synthetic runs for the tests of reports: every status, role and clock, without any workload or device."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfport import cli
from perfport.measure.intervals import summarise
from perfport.measure.roofline import impossible, problem_bound, variant_bound
from perfport.model.record import (
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
from perfport.model.work import Traffic, Work
from perfport.store.environment import ENVIRONMENT_VERSION
from perfport.store.results import Run
from perfport.untimed.count import Comparison, Count, Verdict
from perfport.untimed.count.counts import COUNTS

POCL, INTEL, GPU = "opencl:pocl:0", "opencl:intel:0", "opencl:nvidia:0"
SIZES = {"points": 100_000, "dims": 1000}
WORK = Work(flops=6e8, read_bytes=4e8, write_bytes=8e5)
NO_FLOPS = Work(integer_ops=1e8, read_bytes=4e8, write_bytes=8.0)
ONLY_BYTES = Work(read_bytes=4e8, write_bytes=4e8)
CEILINGS = {
    "dram_read": 40e9, "dram_copy": 32e9, "dram_triad": 33e9, "fp32_fma": 400e9, "l1_read": 900e9,
    "l2_read": 300e9, "l3_read": 90e9, "local_read": 700e9, "int32_mad": 200e9,
    "int32_logic": 150e9, "exp": 5e9, "atomic_global_many": 3e8, "launch_latency": 4e-6,
}  # fmt: skip
GPU_CEILINGS = {
    "dram_read": 4.5e12, "dram_copy": 4.2e12, "dram_triad": 4.3e12, "fp32_fma": 62e12, "l1_read": 29e12,
    "l2_read": 7.5e12, "local_read": 31e12, "local_conflict": 1e12, "constant_read": 20e12, "int32_mad": 33e12,
    "int32_logic": 16e12, "dp4a": 130e12, "tf32_mma": 420e12, "exp": 4e12, "rsqrt": 4.1e12, "atomic_local_many": 2e12,
    "atomic_global_many": 3e11, "launch_latency": 2.5e-6, "h2d_pinned": 55e9,
}  # fmt: skip


DATASHEET = {
    POCL: {"dram_read": 80e9, "fp32_fma": 800e9},
    INTEL: {"dram_read": 80e9, "fp32_fma": 800e9},
    GPU: {"dram_read": 4.8e12, "fp32_fma": 66.9e12},
}


def exact(values: dict[str, float]) -> dict[str, Interval]:
    """Return ceilings whose intervals are 1 % wide on either side."""
    return {name: Interval(value=v, low=0.99 * v, high=1.01 * v) for name, v in values.items()}


def samples(seconds: float, seed: int, n: int = 15, noise: float = 0.01) -> list[float]:
    """Return reproducible times with a median close to ``seconds``."""
    return [float(t) for t in seconds * (1 + noise * np.random.default_rng(seed).standard_normal(n))]


def record(variant: str, seconds: float = 0.05, **change: Any) -> Record:
    """Return a record; keywords replace parts of it.

    Identity's fields (``role``, ``rung``, ``problem``, ``device``, ...) and the record's own are told apart by name.
    ``clock`` may be ``span``, ``both`` or ``wall``; ``ceilings`` None leaves the bounds out; ``unit`` and ``cache`` are
    the variant's and the run's. As in a worker, CPUs merge accesses, and a time that cannot be is ``impossible``.
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
    unit, cache = change.get("unit"), change.pop("cache", "cold")
    if status in (Status.OK, Status.CONTENDED, Status.WRONG, Status.IMPOSSIBLE):
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
            "rank": rank, "cache": cache, "launches": 1, "rounds": list(range(n)), **clocks, "summary": summary,
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
        own = Traffic(
            flops=work.flops, integer_ops=work.integer_ops, dram_read=work.read_bytes, dram_write=work.write_bytes,
        )  # fmt: skip
        traffic = change.pop("traffic", own)
        base["traffic"] = traffic
        if ceilings:
            cold = cache == "cold"
            base["ceilings"] = exact(ceilings)
            base["problem_bound"] = problem_bound(work, exact(ceilings), found, cold)
            base["datasheet_bound"] = problem_bound(work, exact(DATASHEET[device]), found, cold)
            base["variant_bound"] = (
                variant_bound(traffic, exact(ceilings), found, unit, cold, merged=device != GPU) if traffic else None
            )
            if impossible(base["problem_bound"]) and status.measured:
                base["status"] = Status.IMPOSSIBLE
                base["failure"] = Failure(reason="less than the problem bound allows")
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


def device(id_: str, chip: str = "") -> dict[str, Any]:
    """Return a device as an environment file holds it."""
    backend, platform, _ = id_.split(":")
    kind = "gpu" if id_ == GPU else "cpu"
    chip = chip or ("NVIDIA H200" if id_ == GPU else "AMD EPYC 9999")
    return {
        "id": id_, "backend": backend, "platform": platform, "name": f"{kind}-{chip}", "chip": chip,
        "driver": "3.1", "kind": kind, "compute_units": 2, "memory_bytes": 8 << 30, "max_alloc_bytes": 2 << 30,
        "local_memory_bytes": 512 << 10, "max_work_group": 4096, "healthy": True, "reason": "",
    }  # fmt: skip


def unit_of(name: str) -> str:
    """Return the unit of a ceiling."""
    if name == "launch_latency":
        return "s"
    if name.endswith(("_read", "_copy", "_triad", "_conflict")) or "2d_" in name or "2h_" in name:
        return "B/s"
    return "FLOP/s" if name in ("fp32_fma", "tf32_mma", "bf16_mma") else "op/s"


def ceilings(id_: str, date: str = "2026-11-21T11:30:00+00:00") -> dict[str, Any]:
    """Return measured ceilings as an environment file holds them."""
    entries = {
        name: {
            "value": v, "low": 0.99 * v, "high": 1.01 * v, "unit": unit_of(name),
            "shape": {"width": 16, "chunked": 1}, "samples": 15, "spread": 0.12,
            "sweep": {"width=1": 0.12 * v, "width=16": v},
        }
        for name, v in (GPU_CEILINGS if id_ == GPU else CEILINGS).items()
    }  # fmt: skip
    entries["fp32_fma"] |= {"theory": 66.9e12 if id_ == GPU else 384e9, "above_theory": id_ != GPU}
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


def environment(ids: tuple[str, ...] = (POCL, INTEL, GPU), **change: Any) -> dict[str, Any]:
    """Return the content of an environment file; keywords replace top-level keys."""
    metric = {
        "tag": "demo.rate",
        "unit": "GFLOP/s",
        "direction": "higher",
        "description": "useful operations per second.",
    }
    names = {POCL: "generic_cpu", INTEL: "generic_cpu", GPU: "h200"}
    profiles = {
        id_: {"name": names[id_], "title": f"A {names[id_]}", "bandwidth": DATASHEET[id_]["dram_read"],
              "fp32": DATASHEET[id_]["fp32_fma"]}
        for id_ in ids
    }  # fmt: skip
    return {
        "schema_version": ENVIRONMENT_VERSION, "run": "demo-20261121", "started": "2026-11-21T12:00:00+00:00",
        "seed": 7,
        "command": ["perfport", "run", "demo.yaml", "--out", "a folder"],
        "experiment": {"name": "demo", "title": "A demonstration", "file": "demo.yaml", "sha256": "ab" * 32},
        "host": {"cpu": "AMD EPYC 9999", "cores": 2, "memory_bytes": 8 << 30, "os": "Linux 6.1", "python": "3.13"},
        "versions": {"perfport": "0.1.0", "numpy": "2.1"}, "commit": {"hash": "0123abcd", "dirty": True},
        "devices": {id_: device(id_) for id_ in ids}, "ceilings": {id_: ceilings(id_) for id_ in ids},
        "defaults": {id_: {"demo/rows/local_memory": {}} for id_ in ids},
        "probes": [probe(POCL, "before", 1.0), probe(POCL, "after", 0.97)],
        "profiles": profiles,
        "workloads": {"demo": {
            "title": "Demonstration workload", "published": PUBLISHED,
            "problems": {"rows": {"title": "Rows of a kernel matrix", "metric": metric},
                         "argmin": {"title": "Arg-min", "metric": {**metric, "unit": "Gop/s"}},
                         "copy": {"title": "Copy", "metric": {**metric, "unit": "Gop/s"}}},
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


def levels(**times: float) -> Traffic:
    """Return the traffic of the demonstration's rows, each level so many times the compulsory bytes."""
    nbytes = {name: 4e8 * factor for name, factor in times.items()}
    return Traffic(**{"flops": 6e8, "dram_read": 4e8, "dram_write": 8e5, **nbytes})


def gpu_ladder() -> list[Record]:
    """Return the ladder on a GPU, with traffic at every memory level and a variant for matrix units."""
    common: dict[str, Any] = {"problem": "tiles", "device": GPU, "ceilings": GPU_CEILINGS}
    special = levels(l2_bytes=1, global_read=1.2).model_copy(update={"special_ops": 8e6, "global_atomics": 1e5})
    return [
        record("row_major", 5.6e-4, rung=1, traffic=levels(dram_read=4, l2_bytes=6, global_read=24), **common),
        record("column_major", 2.4e-4, rung=2, traffic=levels(dram_read=1.3, l2_bytes=2, global_read=3), **common),
        record("vectorized", 2.0e-4, rung=3, traffic=levels(l2_bytes=1.5, global_read=3), **common),
        record("local_memory", 1.2e-4, rung=4, traffic=levels(l2_bytes=1, global_read=1, local_read=2), **common),
        record("no_model", 3.4e-4, role="control", rung=1, traffic=None, **common),
        record("with_exp", 1.02e-4, role="beyond", rung=1, traffic=special, **common),
        record("matrix_units", 0.98e-4, role="beyond", rung=2, traffic=levels(l2_bytes=1), unit="tf32_mma", **common),
        record("library", 1.1e-4, role="peer", traffic=None, **common),
    ]


def count(of: Record, counted: Traffic, judged: tuple[str, ...] = ("flops",)) -> Count:
    """Return what a profiler counted of a record's case: ``judged`` quantities agree within 5 %, others are shown."""
    quantities = {}
    for name in (*judged, "dram_read", "dram_write", "local_read") if of.traffic else ():
        said, seen = getattr(of.traffic, name), getattr(counted, name)
        verdict = Verdict.AGREES if abs(said - seen) <= 0.05 * seen else Verdict.DEVIATES
        verdict = verdict if name in judged else Verdict.SHOWN
        ratio = said / seen if seen else None
        quantities[name] = Comparison(declared=said, counted=seen, ratio=ratio, verdict=verdict)
    deviates = any(found.verdict == Verdict.DEVIATES for found in quantities.values())
    return Count(
        identity=of.identity.model_copy(update={"preset": None}), time=of.time, seed=1, tool="ncu", tool_version="1.0",
        status=Status.OK, verdict=Verdict.DEVIATES if deviates else Verdict.AGREES, declared=of.traffic,
        counted=counted, quantities=quantities,
    )  # fmt: skip


def store_counts(folder: Path, counts: list[Count], chip: str = "") -> Path:
    """Write a folder of counts."""
    devices = {id_: device(id_, chip) for of in counts for id_ in of.identity.devices}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text(json.dumps({"run": folder.name, "devices": devices}))
    (folder / COUNTS).write_text("".join(of.model_dump_json() + "\n" for of in counts))
    return folder


def every_status() -> list[Record]:
    """Return one record per failed status, on a problem of their own."""
    bad = [status for status in Status if not status.measured]
    found = [record(f"case_{status.value}", rung=i, status=status, problem="failing") for i, status in enumerate(bad)]
    log = Failure(reason="does not compile: expected ';' | found ')'", log="line\n" * 100 + "```\nerror | here\n")
    return [*(r if r.status != Status.COMPILE_ERROR else r.model_copy(update={"failure": log}) for r in found)]


def demonstration() -> list[Record]:
    """Return a run that has everything: devices, precision classes, problems of all kinds, warm cases, all statuses."""
    integer: dict[str, Any] = {"problem": "argmin", "work": NO_FLOPS}
    gpu: dict[str, Any] = {"device": GPU, "ceilings": GPU_CEILINGS}
    return [
        *ladder(POCL), *ladder(INTEL, 0.9), *gpu_ladder(),
        record("half", 0.011, precision="fp16", rung=1), record("half_wide", 0.0109, precision="fp16", rung=2),
        record("separate", 0.02, rung=1, **integer),
        record("fused", 0.012, rung=2, **integer),
        record("plain", 1.5e-4, rung=1, **integer, **gpu),
        record("dots", 1.1e-4, rung=2, unit="dp4a", **integer, **gpu),
        record("copy", 0.03, problem="copy", work=ONLY_BYTES, rung=1),
        record("warm_rows", 0.003, problem="warm", cache="warm", rung=1, traffic=levels(l2_bytes=2)),
        *every_status(),
    ]  # fmt: skip


def store(folder: Path, records: list[Record], content: dict[str, Any] | None = None) -> Run:
    """Write a results folder and read it back."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text(json.dumps(content or environment(), indent=1, sort_keys=True))
    (folder / "records.jsonl").write_text("".join(r.model_dump_json(exclude_none=True) + "\n" for r in records))
    return Run(folder)


def call(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    """Return the exit code of a command line."""
    monkeypatch.setattr(sys, "argv", ["perfport", *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
        raise SystemExit(0)
    return int(ended.value.code or 0)
