"""Stored results as pandas DataFrames: what `perfport.load` returns, and what tables and their CSV are made of.

`SCHEMA` has the columns of all frames (docs/dataframes.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ..machine.device_profile import all_profiles
from ..model.errors import UsageError
from ..model.published import stated
from ..store import columns
from ..store.collection import Collection
from ..store.columns import Column, frame_of
from ..store.frames import CaseFrames
from ..store.results import load_runs
from . import predict
from .claims import Claim, Judgement, Number, evaluate, ledger
from .claims import Verdict as ClaimVerdict
from .predict import Counted, nothing_counted

SCHEMA: dict[str, dict[str, Column]] = {
    **columns.SCHEMA,
    "claims": {
        "workload": Column("category", "", "workload"),
        "claim": Column("category", "", "name of the claim within the workload"),
        "statement": Column("category", "", "what is claimed"),
        "source": Column("category", "", "where"),
        "published": Column("category", "", "the publication's own number"),
        "stated": Column("float64", "1", "gain that the source states, as a ratio"),
        "at_least": Column("float64", "as `value`", "threshold, missing where there is none"),
        "at_most": Column("float64", "as `value`", "threshold, missing where there is none"),
        "no_effect": Column("float64", "as `value`", "what `value` is without any effect, where known"),
        "judged_on": Column("category", "", "what was judged, where of another kind than what the source measured"),
        "applies_to": Column("category", "", "kinds of device that the claim is about, all if missing"),
        "by_construction": Column("category", "", "why the number cannot but meet the threshold, where it cannot"),
        "device": Column("category", "", "device as in `cases`"),
        "chip": Column("category", "", "chip of the device"),
        "verdict": Column("category", "", "verdict on this device", tuple(ClaimVerdict)),
        "reason": Column("string", "", "why"),
        "settings": Column("int64", "1", "rows in `evidence`"),
    },
    "evidence": {
        "workload": Column("category", "", "workload of the claim"),
        "claim": Column("category", "", "name of the claim"),
        "device": Column("category", "", "device"),
        "setting": Column("category", "", "parameters that tell it from the claim's other settings"),
        "setting_verdict": Column("category", "", "verdict on this setting alone", tuple(ClaimVerdict)),
        "subject": Column("category", "", "what the first number is"),
        "subject_value": Column("float64", "column `subject_unit`", "the first number"),
        "subject_unit": Column("category", "", "its unit, empty for a pure number"),
        "against": Column("category", "", "what the second number is"),
        "against_value": Column("float64", "column `against_unit`", "the second number"),
        "against_unit": Column("category", "", "its unit, empty for a pure number"),
        "beside": Column("category", "", "what a number that stands beside them is: the share of our own bound"),
        "beside_value": Column("float64", "column `beside_unit`", "that number"),
        "beside_unit": Column("category", "", "its unit, empty for a pure number"),
        "value": Column("float64", "1, or that of the figure", "what is compared with the threshold"),
        "low": Column("float64", "as `value`", "lower end of its 95 % interval"),
        "high": Column("float64", "as `value`", "upper end"),
        "records": Column("string", "", "keys of the records behind it, separated by spaces"),
    },
    "published": {
        "workload": Column("category", "", "workload"),
        "problem": Column("category", "", "problem"),
        "variant": Column("category", "", "variant, or what was measured"),
        "device": Column("category", "", "device profile, or what the publication calls the device"),
        "chip": Column("category", "", "title of that device"),
        "value": Column("float64", "column `unit`", "the figure as stated"),
        "range_end": Column("float64", "column `unit`", "upper end of a stated range"),
        "unit": Column("category", "", "unit"),
        "stated_share": Column("float64", "1", "share of its own bound as the publication states it"),
        "provenance": Column("category", "", "`published` in every row"),
        "source": Column("category", "", "publication and section"),
        "note": Column("string", "", "what a reader must know"),
    },
    "predictions": predict.COLUMNS,
}  # fmt: skip


class Results(CaseFrames):
    """The cases of some runs as DataFrames, each made when it is first asked for.

    Of several records of the same thing on one device the latest counts, as in all tables. ``SCHEMA`` and the
    ``attrs["units"]`` of each frame have the units.

    Attributes
    ----------
    collection : Collection
        The cases as objects.
    """

    def __init__(
        self,
        collection: Collection,
        claims: Mapping[str, Iterable[Claim]] | None = None,
        counts: Callable[[], Counted] = lambda: nothing_counted,
    ) -> None:
        super().__init__(collection)
        self._ledger = claims
        self._counts = counts

    @classmethod
    def load(
        cls, paths: str | Path | Iterable[str | Path], counts: Callable[[list[Path]], Counted] | None = None
    ) -> Results:  # fmt: skip
        """Read stored runs; see `perfport.load`. ``counts`` reads what counts below the paths tell, once asked."""
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise UsageError("load: no path given; expected run folders, or folders of run folders")
        runs = {run.folder.resolve(): run for run in load_runs(given)}
        seen = (lambda: counts([*map(Path, given)])) if counts else (lambda: nothing_counted)
        return cls(Collection(list(runs.values())), counts=seen)

    def __repr__(self) -> str:
        held = self.collection
        return f"<Results: {len(held.cases)} cases on {len(held.places)} devices from {len(held.runs)} runs>"

    @cached_property
    def _judgements(self) -> list[Judgement]:
        return evaluate(ledger() if self._ledger is None else self._ledger, self.collection)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row for each claim of the publications and each device, with the verdict."""
        return claims(self._judgements, self.collection)

    @cached_property
    def evidence(self) -> pd.DataFrame:
        """One row for each setting that a claim was judged on, with the numbers behind the verdict."""
        return evidence(self._judgements, self.collection)

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """One row for each case on each device that was measured or has a profile: measured, modelled, or why not."""
        return frame_of(SCHEMA["predictions"], list(predict.rows(predict.Predictor(self.collection, self._counts()))))

    @cached_property
    def published(self) -> pd.DataFrame:
        """One row for each published figure of the problems that ran; they are in no other frame."""
        held = {(case.subject.workload, case.subject.problem): case.run for case in self.collection.cases}
        rows = []
        for (workload, problem), run in sorted(held.items(), key=lambda item: item[0]):
            for entry in stated(workload, problem, run.environment):
                profile = all_profiles().get(str(entry.get("device")))
                title = profile.title if profile else entry.get("device")
                known = {"workload": workload, "problem": problem, "chip": title, "range_end": entry.get("high")}
                known |= {"stated_share": entry.get("share"), "provenance": "published"}
                same = ("variant", "device", "value", "unit", "source", "note")
                rows.append({**known, **{name: entry.get(name) for name in same}})
        return frame_of(SCHEMA["published"], rows)


def claims(judgements: Sequence[Judgement], collection: Collection) -> pd.DataFrame:
    """Return a row for each claim and device."""
    return frame_of(SCHEMA["claims"], [
        {
            "workload": judgement.workload, "claim": judgement.claim.id, "statement": judgement.claim.statement,
            "source": judgement.claim.source, "published": judgement.claim.published, "stated": judgement.claim.stated,
            "at_least": _finite(judgement.claim.bounds[0]), "at_most": _finite(judgement.claim.bounds[1]),
            "no_effect": judgement.claim.neutral, "judged_on": judgement.judged_on or None,
            "applies_to": " ".join(judgement.claim.applies_to) or None,
            "by_construction": judgement.claim.by_construction,
            "device": collection.label(judgement.site), "chip": judgement.site.chip, "verdict": judgement.verdict.value,
            "reason": judgement.reason, "settings": len(judgement.evidence),
        }
        for judgement in judgements
    ])  # fmt: skip


def evidence(judgements: Sequence[Judgement], collection: Collection) -> pd.DataFrame:
    """Return a row for each setting that a claim was judged on, on each device."""
    return frame_of(SCHEMA["evidence"], [
        {
            "workload": judgement.workload, "claim": judgement.claim.id, "device": collection.label(judgement.site),
            "setting": each.setting, "setting_verdict": each.verdict.value, **_numbers(each.numbers),
            "value": each.interval.value, "low": each.interval.low, "high": each.interval.high,
            "records": " ".join(each.keys),
        }
        for judgement in judgements
        for each in judgement.evidence
    ])  # fmt: skip


def _numbers(numbers: Sequence[Number]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for side, number in zip(("subject", "against", "beside"), numbers, strict=False):
        row |= {side: number.what, f"{side}_value": number.value, f"{side}_unit": number.unit}
    return row


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
