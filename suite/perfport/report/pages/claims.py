"""The claims ledger as a page: what every publication claims, and what came of it on each device."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from ...judge import frames
from ...judge.claims import DECIDED, Evidence, Judgement, Number, Verdict
from ...store.collection import Collection
from ..parts.markdown import NONE, code, join, table, text
from ..parts.quantities import interval, seconds, significant
from ..parts.view import View, plain_rows

_READING = (
    "With the 95 % interval of the number compared, a claim **holds** where all of it meets the threshold. Where "
    "all of it misses the threshold, the effect is **smaller** than claimed (in the claimed direction), **absent** "
    "(the interval contains the value without effect, 1 for a speed-up, or is within 2 % of it) or the **opposite**. "
    "*cannot tell* stands for an interval that contains the threshold, and for settings that disagree: some have the "
    "effect and others do not. *not measured*: a side has no result that may be ranked. *by construction*: the number "
    "cannot but meet the threshold, as long as the suite counts right; this is not a result of a measurement. *not "
    "applicable*: the claim is about another kind of device; what was measured on this device stands below. The reason "
    "says how many settings came out how. All numbers are measured; what the publications state is marked *published*. "
    "A speed-up is the time of the reference over that of the subject, by samples taken in turn where both ran in one "
    "group. *Judged on* marks claims that were judged on something of another kind than what the source measured."
)


def view(judgements: Sequence[Judgement], collection: Collection) -> View:
    """Return the ledger: a summary, a table of verdicts for each workload, and the numbers behind each."""
    blocks = ["# Claims of the publications", summary(judgements, collection), _READING]
    for workload, same in groupby(judgements, key=lambda judgement: judgement.workload):
        listed = list(same)
        blocks += [f"## {code(workload)}", matrix(listed, collection), "### The numbers", *_numbers(listed, collection)]
    return View("Claims of the publications", join(blocks), rows(judgements, collection))


def summary(judgements: Sequence[Judgement], collection: Collection) -> str:
    """Return how many claims came out how, by device."""
    claims = {(judgement.workload, judgement.claim.id) for judgement in judgements}
    workloads = {workload for workload, _ in claims}
    counts = Counter((judgement.site, judgement.verdict) for judgement in judgements)
    listed = [
        [code(collection.label(site)), text(site.chip), *(str(counts[site, verdict]) for verdict in Verdict)]
        for site in collection.places
    ]
    head = (
        f"{len(claims)} claims of {len(workloads)} workloads on {len(collection.places)} devices (measured). A row "
        "counts the claims of the workloads that ran on the device."
    )
    return join([head, table(["device", "chip", *Verdict], listed, "ll" + "r" * len(Verdict))])


def _by_claim(judgements: Iterable[Judgement]) -> list[list[Judgement]]:
    return [list(same) for _, same in groupby(judgements, key=lambda judgement: judgement.claim.id)]


def matrix(judgements: Sequence[Judgement], collection: Collection) -> str:
    """Return the verdicts of one workload: claim by device."""
    by_claim = _by_claim(judgements)
    marked = any(same[0].claim.judged_on for same in by_claim)
    listed = []
    for same in by_claim:
        claim = same[0].claim
        kind = [text(claim.judged_on or "", 200)] if marked else []
        listed.append([code(claim.id), text(claim.statement), *kind, *map(_cell, same)])
    devices = [code(collection.label(judgement.site)) for judgement in by_claim[0]]
    headers = ["claim", "statement", *(["judged on"] if marked else []), *devices]
    return table(headers, listed, "l" * len(headers))


def _cell(judgement: Judgement) -> str:
    return _verdict(judgement) + (f" (on {text(judgement.stand_in)})" if judgement.stand_in else "")


def _verdict(judgement: Judgement) -> str:
    return f"**{judgement.verdict.value}**" if judgement.verdict in DECIDED else judgement.verdict.value


def _numbers(judgements: Sequence[Judgement], collection: Collection) -> Iterable[str]:
    for same in _by_claim(judgements):
        claim = same[0].claim
        published = f" Published: {text(claim.published)}." if claim.published else ""
        stated = f"{text(claim.statement)} *{text(claim.source)}.*{published}"
        finite = claim.no_effect is not None and math.isfinite(claim.no_effect)
        without = f", no effect would be {claim.no_effect:g}" if finite else ""
        kind = f" Judged on: {text(claim.judged_on)}." if claim.judged_on else ""
        beside = any(len(evidence.numbers) > 2 for judgement in same for evidence in judgement.evidence)
        claimed = f"Compared: {text(claim.quantity)}; claimed is {claim.threshold}{without}."
        yield f"**{code(claim.id)}** {stated} {claimed}{kind}"
        listed = []
        for judgement in same:
            where = [code(collection.label(judgement.site)), _cell(judgement), text(judgement.reason)]
            for evidence in judgement.evidence:
                listed.append([
                    *where, text(evidence.setting, 80) or "one", *_cells(evidence, 2 + beside),
                    interval(evidence.interval), ", ".join(code(key) for key in evidence.keys),
                ])  # fmt: skip
                where = [" "] * 3
        numbers = ["subject", "against", *(["beside"] if beside else [])]
        headers = ["device", "verdict", "reason", "setting", *numbers, "compared", "records"]
        yield table(headers, listed, "llll" + "l" * len(numbers) + "rl") if listed else ""
        yield _without_numbers(same, collection)


def _without_numbers(judgements: Sequence[Judgement], collection: Collection) -> str:
    """Return why there are no numbers, devices with the same reason together."""
    reasons: dict[Verdict, dict[str, list[str]]] = {}
    for judgement in judgements:
        if not judgement.evidence:
            same = reasons.setdefault(judgement.verdict, {}).setdefault(judgement.reason, [])
            same.append(code(collection.label(judgement.site)))
    everywhere = sum(map(len, reasons.values())) == 1 and not any(judgement.evidence for judgement in judgements)
    sentences = []
    for verdict, sites_of in reasons.items():
        parts = [text(why) + ("" if everywhere else f" ({', '.join(sites)})") for why, sites in sites_of.items()]
        sentences.append(f"{verdict.value.capitalize()}: {'; '.join(parts)}.")
    return " ".join(sentences)


def _cells(evidence: Evidence, columns: int) -> list[str]:
    cells = [_number(number) for number in evidence.numbers]
    return cells + [NONE] * (columns - len(cells))


def _number(number: Number) -> str:
    value = seconds(number.value) if number.unit == "s" else f"{significant(number.value)} {number.unit}".strip()
    return f"{code(number.what, 60)} {value}"


def rows(judgements: Sequence[Judgement], collection: Collection) -> list[dict[str, Any]]:
    """Return a row for each setting of each claim on each device, in the columns of the data frames."""
    judged, numbers = frames.claims(judgements, collection), frames.evidence(judgements, collection)
    return plain_rows(judged.merge(numbers, how="left", on=["workload", "claim", "device"]))
