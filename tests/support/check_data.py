"""Runs, nights and findings for tests of `perfport check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import report_data as data
import yaml

from perfport.measure.intervals import summarise
from perfport.model.record import Record, Timing
from perfport.nightly.finding import Finding, Judgement, Outcome
from perfport.store.results import Run

VARIANTS = [f"v{number}" for number in range(8)]


def case(
    variant: str, seconds: float = 0.05, seed: int = 0, workers: int = 3, noise: float = 0.003, **change: Any
) -> Record:
    """Return a record by so many workers, whose medians scatter by ``noise``."""
    record = data.record(variant, seconds, clock="span", **change)
    if record.timing is None:
        return record
    rng = np.random.default_rng([seed, data.hash_of(variant) % 1000])
    levels = seconds * np.exp(noise * rng.standard_normal(workers))
    span = [float(level * (1 + 0.001 * x)) for level in levels for x in rng.standard_normal(7)]
    blocks = [number for number in range(workers) for _ in range(7)]
    timing = {
        **record.timing.model_dump(), "span": span, "rounds": list(range(len(span))), "workers": blocks,
        "summary": {"span": summarise(span, blocks).model_dump()},
    }  # fmt: skip
    return record.model_copy(update={"timing": Timing.model_validate(timing)})


def store(
    folder: Path,
    records: list[Record],
    night: int = 0,
    check: dict[str, Any] | None = None,
    driver: str = "3.1",
    **keys: Any,
) -> Run:
    """Write a run with its experiment file."""
    content = data.environment((data.POCL,), run=folder.name, started=f"2026-11-{1 + night:02d}T02:00:00+00:00")
    content["devices"][data.POCL]["driver"] = driver
    study = {"workload": "demo", "problem": "rows", "presets": ["quick"]}
    definition = {"name": "demo", "workers": 3, "experiments": [{**study, **(check or {})}], **keys}
    run = data.store(folder, [r.model_copy(update={"run": folder.name}) for r in records], content)
    (folder / "experiment.yaml").write_text(yaml.safe_dump(definition))
    return run


def runs(tmp_path: Path, now: dict[str, Any], **keys: Any) -> tuple[Run, Run]:
    """A base run and one in which some variants differ: seconds, a record, or ``None`` for none."""
    base = store(tmp_path / "base", [case(variant, seed=1) for variant in VARIANTS])
    records = []
    for variant in [*VARIANTS, *(name for name in now if name not in VARIANTS)]:
        given = now.get(variant, 0.05)
        if given is not None:
            records.append(given if isinstance(given, Record) else case(variant, given, seed=2))
    return base, store(tmp_path / "now", records, 1, **keys)


def outcomes(judgement: Judgement) -> dict[str, Outcome]:
    """The outcome of each variant."""
    return {found.place.variant: found.outcome for found in judgement.findings}


def finding(judgement: Judgement, variant: str) -> Finding:
    """The finding of a variant."""
    return next(found for found in judgement.findings if found.place.variant == variant)
