"""Claims and records to judge, for tests."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path
from typing import Any

import report_data as data
from hypothesis import strategies as st

from perfport.judge.claims import (
    Claim,
    Judgement,
    OpenInterval,
    evaluate,
)
from perfport.model.record import Interval, Record
from perfport.store.case import Site
from perfport.store.collection import Collection

ROOT = Path(__file__).parents[2]
WORKLOADS = [Path(folder) for folder in importlib.import_module("perfport.workloads").__path__]


def claim(**change: Any) -> Claim:
    """Return a claim that ``fast`` is at least 1.5 times as fast as ``slow``, but for the changes."""
    content = {
        "id": "one", "statement": "It is faster.", "source": "a paper, section 2", "problem": "rows",
        "compare": "speedup", "subject": {"variant": "fast"}, "reference": {"variant": "slow"}, "at_least": 1.5,
    }  # fmt: skip
    return Claim.model_validate({k: v for k, v in {**content, **change}.items() if v is not None})


def place(site: Site) -> str:
    """Return a site as the independent script names it."""
    return f"{site.name}/{site.chip}/{[site.host.cpu, site.host.cores, site.host.memory]}"


_NUMBERS = itertools.count()


def record(variant: str, seconds: float = 0.05, **change: Any) -> Record:
    """Return a record with a key of its own, whatever its parameters and profile."""
    return data.record(variant, seconds, **{"key": f"{next(_NUMBERS):016x}", **change})


def judge(folder: Path, one: Claim, *records: Record, **environment: Any) -> Judgement:
    """Judge a claim on the only site of some records."""
    run = data.store(folder / "run", list(records), data.environment(**environment))
    (found,) = evaluate({"demo": [one]}, Collection([run]))
    return found


def between(low: float, high: float) -> Interval:
    return OpenInterval(value=(low + high) / 2, low=low, high=high)


GAIN = claim()  # at least 1.5 times as fast
SOME = claim(at_least=1.02)
LESS = claim(compare="figure", figure="n", at_least=None, at_most=0.8)  # over the reference's: 1 is no effect
ALIKE = claim(at_least=0.9, at_most=1.1)
HIGH = claim(compare="share", reference=None, at_least=0.75)
LOW = claim(compare="share", reference=None, at_least=None, at_most=0.15)
HALF = claim(
    compare="kernel_share", reference=None, kernels=["a"], at_least=None, at_most=0.1, no_effect=0.5
)  # as long as the rest
BARE = claim(compare="figure", figure="n", reference=None, at_least=None, at_most=700)
RATE = claim(compare="figure", figure="n", reference=None, at_least=None, at_most=0.03, no_effect=float("inf"))
ENDS = st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)).map(sorted)
CLAIMS = st.sampled_from([GAIN, SOME, LESS, ALIKE, HIGH, LOW, HALF, BARE, RATE, claim(at_least=None, stated=3)])
