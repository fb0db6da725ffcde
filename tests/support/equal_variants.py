"""Variants that are equal but for noise: what is called faster of them is called so falsely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import report_data as data

from perfport.measure.intervals import summarise
from perfport.model.record import Record

MODEL = data.record("model", 1.0, clock="span")


def measured(name: str, times: Sequence[float], workers: int = 1, **change: Any) -> Record:
    """Return a record of these times, taken by so many workers in turn."""
    spans = [float(time) for time in times]
    owner = [i * workers // len(spans) for i in range(len(spans))] if workers > 1 else []
    assert MODEL.timing
    timing = MODEL.timing.model_copy(
        update={
            "span": spans, "rounds": list(range(len(spans))), "workers": owner,
            "summary": {"span": summarise(spans, owner)},
        }
    )  # fmt: skip
    identity = MODEL.identity.model_copy(update={"variant": name})
    return MODEL.model_copy(update={"key": name, "identity": identity, "timing": timing, **change})


def equal(rng: np.random.Generator, number: int, n: int, rho: float, workers: int, effect: float = 0.0) -> list[Record]:
    """Draw equal variants with 1 % of noise, autocorrelated in each worker; workers differ by ``effect`` times that."""
    steps = rng.standard_normal((number, workers, n))
    noise = steps.copy()
    for i in range(1, n):
        noise[..., i] = rho * noise[..., i - 1] + np.sqrt(1 - rho**2) * steps[..., i]
    if effect:
        noise += effect * rng.standard_normal((number, workers, 1))
    times = np.exp(0.01 * noise).reshape(number, -1)
    return [measured(str(i), times[i], workers) for i in range(number)]


def one_and_the_best_of_twenty(seed: int, draws: int = 60) -> Iterator[list[Record]]:
    """Yield records of ``other`` and of 20 equal settings of ``tuned``, by one worker each: 15 samples."""
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        drawn = equal(rng, 21, 15, 0.0, 1)
        named = [("other", {}), *(("tuned", {"group": number}) for number in range(20))]
        yield [
            record.model_copy(
                update={"identity": record.identity.model_copy(update={"variant": name, "tunables": tunables})}
            )
            for record, (name, tunables) in zip(drawn, named, strict=True)
        ]
