"""An independent script derives the same verdicts from the records."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import rederive_claims
import report_data as data
import yaml
from claim_data import (
    ALIKE,
    BARE,
    GAIN,
    HALF,
    HIGH,
    LESS,
    LOW,
    RATE,
    ROOT,
    SOME,
    WORKLOADS,
    between,
    claim,
    place,
    record,
)

from perfport.judge.claims import (
    Verdict,
    combined,
    evaluate,
    judged,
    ledger,
)
from perfport.store.collection import Collection


def test_an_independent_script_derives_the_same_verdicts() -> None:
    committed = ROOT / "results" / "committed"
    derived = rederive_claims.main(committed, WORKLOADS[0])
    runs = [folder.parent for folder in sorted(committed.glob("*/records.jsonl"))]
    collection = Collection([data.Run(folder) for folder in runs])
    ours = {
        f"{one.workload}/{one.claim.id}/{place(one.site)}": one.verdict.value for one in evaluate(ledger(), collection)
    }
    assert derived == ours and set(Verdict) == set(derived.values())


def test_the_script_agrees_on_every_kind_of_comparison(tmp_path: Path) -> None:
    times = {"base": 0.0190, "fast": 0.0200, "slow": 0.0310}
    records = [
        record(name, t, extra={"n": 3.0}, kernels={"a": 0.01, "b": 0.003}, tunables={"w": w}, parameters={"p": p})
        for name, t in times.items()
        for w in (0, 1)
        for p in (1, 2)
    ]
    records += [
        record("slow", 0.5, clock="wall", parameters={"p": 3}),
        record("fast", 0.2, parameters={"p": 3}),
    ]
    sides = {s: {"variant": "fast", "tunables": {"w": w}} for s, w in (("subject", 1), ("reference", 0))}
    claims = [
        claim(), claim(id="over", compare="overhead", base={"variant": "base"}, parameters={"p": [1, 2]}, at_least=7),
        claim(id="mean", over="mean", at_least=1.7), claim(id="ablation", **sides, at_least=0.9, at_most=1.1),
        claim(id="share", compare="share", reference=None, at_least=0.2),
        claim(id="figure", compare="figure", figure="extra.n", at_least=3, parameters={"p": {"max": 2}}),
        claim(
            id="beyond", compare="figure", figure="extra.n", reference_figure="extra.n", reference=None,
            base={"variant": "slow"}, at_least=None, at_most=-1, parameters={"p": 1}, no_effect=2,
        ),
        claim(id="stated", at_least=None, stated=3), claim(id="other", subject={"variant": "none", "instead": "fast"}),
        claim(id="low", compare="share", reference=None, at_least=None, at_most=0.001),
        claim(id="beside", compare="kernel_share", kernels=["b"], at_least=None, at_most=0.1, no_effect=0.5),
        claim(id="kernel", compare="kernel_share", reference=None, kernels=["b"], at_least=0.5, parameters={"p": 1}),
        claim(id="absent", subject={"variant": "none"}), claim(id="elsewhere", applies_to="gpu"),
        claim(id="here", applies_to=["gpu", "cpu"]), claim(id="must", by_construction="so built"),
        claim(id="sheet", compare="share", reference=None, share_of="datasheet_bound", at_least=0.2),
    ]  # fmt: skip
    run = data.store(tmp_path / "results" / "run", records)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "claims.yaml").write_text(
        yaml.safe_dump([json.loads(one.model_dump_json(exclude_none=True, exclude_unset=True)) for one in claims])
    )
    ours = {
        f"demo/{one.claim.id}/{place(one.site)}": one.verdict.value
        for one in evaluate(ledger([tmp_path]), Collection([run]))
        if one.workload == "demo"
    }
    derived = rederive_claims.main(tmp_path / "results", tmp_path)
    assert derived == ours and len(set(ours.values())) >= 7


def test_the_script_agrees_on_any_interval_and_any_settings() -> None:
    ends = (0.0, 0.1, 0.5, 0.975, 0.985, 1.0, 1.01, 1.03, 1.3, 1.5, 2.0, float("inf"))
    found = [between(low, high) for low, high in itertools.combinations_with_replacement(ends, 2)]
    for one in (GAIN, SOME, LESS, ALIKE, HIGH, LOW, HALF, BARE, RATE):
        content = one.model_dump(exclude_none=True, exclude_unset=True)
        for each in found:
            assert rederive_claims.judge(content, each.low, each.high) == judged(one, each), (one, each)
        for several in itertools.combinations(found[::3], 3):
            numbers = [(each.value, each.low, each.high) for each in several]
            assert rederive_claims.summed_up(content, numbers) == combined(one, several), (one, several)
