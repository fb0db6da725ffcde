"""Evaluation: which records stand for a side, in which settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
from claim_data import (
    ROOT,
    claim,
    judge,
    record,
)

from perfport import workload
from perfport.judge.claims import (
    Verdict,
    evaluate,
)
from perfport.model.record import Status
from perfport.report.pages.claims import view
from perfport.store.collection import Collection


def test_a_stand_in_is_judged_where_there_is_no_other_and_is_named(tmp_path: Path) -> None:
    one = claim(subject={"variant": "fast", "instead": "other"}, judged_on="kernels of ours")
    slow, fast, other = record("slow", 0.05), record("fast", 0.04), record("other", 0.02)
    own = judge(tmp_path / "a", one, slow, fast, other)  # the stand-in is faster, but not what is claimed
    assert own.verdict is Verdict.SMALLER and own.stand_in == "" and own.judged_on == "kernels of ours"
    for number, status in enumerate((Status.UNSUPPORTED, Status.WRONG)):
        found = judge(tmp_path / f"b{number}", one, slow, record("fast", 0.04, status=status), other)
        assert found.verdict is Verdict.HOLDS and found.stand_in == "other in place of fast"
    alone = judge(tmp_path / "c", one, slow)
    assert alone.verdict is Verdict.NOT_MEASURED and "fast" in alone.reason
    collection = Collection([data.store(tmp_path / "d", [slow, other])])
    shown = view(evaluate({"demo": [one]}, collection), collection)
    assert "| judged on " in shown.markdown and "| kernels of ours |" in shown.markdown
    assert "**holds** (on other in place of fast)" in shown.markdown and "Judged on: kernels of ours." in shown.markdown
    assert shown.rows[0]["judged_on"] == "kernels of ours; other in place of fast"
    for form in ("csv", "json", "html"):
        assert "other in place of fast" in shown.render(form)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_side_without_a_ranked_result_is_not_measured(tmp_path: Path, status: Status) -> None:
    bad = record("fast", 0.02, status=status)
    found = judge(tmp_path, claim(), record("slow", 0.05), bad)
    assert found.verdict is Verdict.NOT_MEASURED and status.value in found.reason


def test_a_side_without_a_record_is_named(tmp_path: Path) -> None:
    found = judge(tmp_path, claim(), record("slow", 0.05))
    assert found.verdict is Verdict.NOT_MEASURED and found.reason == "no record of fast"


def test_where_peers_alone_ran_there_is_nothing_to_judge(tmp_path: Path) -> None:
    """Forms of libraries are measured apart, on another machine perhaps: no claim is missing there."""
    own = [record("slow", 0.05), record("fast", 0.04)]
    lib = record("slow", 0.05, role="peer", device=data.GPU, ceilings=None)
    sites = [
        found.site.name for found in evaluate({"demo": [claim()]}, Collection([data.store(tmp_path, [*own, lib])]))
    ]
    assert sites == [own[0].identity.devices[0]]


def test_settings_that_disagree_cannot_tell(tmp_path: Path) -> None:
    big = {"parameters": {"points": 1000, "dims": 10}}
    records = [record("slow", 0.04), record("fast", 0.02)]
    records += [record("slow", 0.04, key="a", **big), record("fast", 0.08, key="b", **big)]
    found = judge(tmp_path, claim(), *records)
    assert found.verdict is Verdict.CANNOT_TELL and "settings disagree (1 holds, 1 opposite)" in found.reason
    chosen = judge(tmp_path / "x", claim(parameters={"points": {"min": 100_000}}), *records)
    assert chosen.verdict is Verdict.HOLDS and len(chosen.evidence) == 1
    mean = judge(tmp_path / "y", claim(over="mean", at_least=1.2), *records)
    assert mean.verdict is Verdict.HOLDS and "mean of 2 settings: 1.2" in mean.reason


def test_the_fastest_setting_of_tunables_stands_for_a_variant(tmp_path: Path) -> None:
    records = [record("slow", 0.04)]
    records += [record("fast", t, tunables={"width": w}) for w, t in ((1, 0.08), (4, 0.02))]
    records.append(record("fast", 0.001 + 0.012, tunables={"width": 4}, profile="hd7970"))
    found = judge(tmp_path, claim(), *records)
    assert found.verdict is Verdict.HOLDS and found.evidence[0].interval.value == pytest.approx(2, rel=0.05)
    other = claim(subject={"variant": "fast", "profile": "hd7970"}, at_least=2.5)
    assert judge(tmp_path / "x", other, *records).verdict is Verdict.HOLDS


def test_parameters_are_chosen_by_value_range_and_absence(tmp_path: Path) -> None:
    sizes: list[dict[str, Any]] = [{"p": 0.5}, {"p": 0.9}, {}]
    records = [record(name, t, parameters=p) for p in sizes for name, t in (("slow", 0.04), ("fast", 0.02))]
    wanted: Any
    for wanted, settings in ((0.5, 1), ({"min": 0.6}, 1), (None, 1), ([0.5, None], 2), ([{"max": 1}, None], 3)):
        found = judge(tmp_path / str(wanted), claim(parameters={"p": wanted}), *records)
        assert len(found.evidence) == settings, wanted


def test_settings_in_which_both_sides_are_the_same_are_left_out(tmp_path: Path) -> None:
    one = claim(parameters={"points": {"min": 50, "no_multiple_of": 32}})
    records = [
        record(name, t, parameters={"points": n}) for n in (33, 64, 70) for name, t in (("slow", 0.04), ("fast", 0.02))
    ]
    assert [each.setting for each in judge(tmp_path / "a", one, *records).evidence] == ["points=70"]
    found = judge(tmp_path / "b", one, *records[:4])
    assert found.verdict is Verdict.NOT_MEASURED
    assert found.reason == "no record of fast in a setting that the claim is about"


def test_an_ablation_compares_equal_settings_of_one_variant(tmp_path: Path) -> None:
    on, off = {"queue": 1, "unroll": 2}, {"queue": 0, "unroll": 2}
    records = [record("fast", 0.02, tunables=on), record("fast", 0.04, tunables=off)]
    records.append(record("fast", 0.012, tunables={"queue": 1, "unroll": 4}))  # faster, but not the same setting
    sides = {s: {"variant": "fast", "tunables": {"queue": q}} for s, q in (("subject", 1), ("reference", 0))}
    found = judge(tmp_path, claim(**sides), *records)
    assert found.evidence[0].interval.value == pytest.approx(2, rel=0.05) and len(found.evidence) == 1


def test_sides_may_differ_in_parameters_of_their_own(tmp_path: Path) -> None:
    records = [
        record("fast", t, parameters={"op": op, "batch": b}, key=f"{op}{b}", tunables={"tile": tile})
        for (op, b), (t, tile) in {
            ("x", 1): (0.02, 8), ("y", 1): (0.05, 16), ("x", 64): (0.02, 8), ("y", 64): (0.02, 8),
        }.items()  # a device's defaults are other ones at other sizes
    ]  # fmt: skip
    sides = {s: {"variant": "fast", "parameters": {"op": op}} for s, op in (("subject", "x"), ("reference", "y"))}
    found = judge(tmp_path, claim(parameters={"batch": 1}, **sides), *records)
    assert found.verdict is Verdict.HOLDS and found.evidence[0].setting == "batch=1"


def test_precision_classes_are_apart_unless_a_side_names_its_own(tmp_path: Path) -> None:
    records = [record("slow", 0.04), record("fast", 0.02, precision="tf32")]
    assert judge(tmp_path, claim(), *records).verdict is Verdict.NOT_MEASURED
    named = claim(subject={"variant": "fast", "precision": "tf32"})
    assert judge(tmp_path / "x", named, *records).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("device", "applies_to", "verdict"),
    [
        (data.POCL, "gpu", Verdict.NOT_APPLICABLE), (data.GPU, "gpu", Verdict.HOLDS),
        (data.POCL, ["gpu", "cpu"], Verdict.HOLDS), (data.GPU, "cpu", Verdict.NOT_APPLICABLE),
    ],
)  # fmt: skip
def test_a_claim_is_judged_on_the_kinds_of_device_that_it_is_about(
    tmp_path: Path, device: str, applies_to: str | list[str], verdict: Verdict
) -> None:
    sides = record("slow", 0.05, device=device), record("fast", 0.02, device=device)
    found = judge(tmp_path / "a", claim(applies_to=applies_to), *sides)
    (evidence,) = found.evidence
    assert found.verdict is verdict is evidence.verdict
    assert evidence.interval.value == pytest.approx(2.5, rel=0.05)  # shown, judged or not
    alone = judge(tmp_path / "b", claim(applies_to=applies_to), sides[0])
    if verdict is Verdict.NOT_APPLICABLE:
        assert found.reason.startswith(f"a claim about {str(applies_to).upper()}s; the number here is 2.")
        assert alone.verdict is verdict and alone.reason in found.reason
    else:
        assert alone.verdict is Verdict.NOT_MEASURED


def test_a_claim_that_cannot_but_hold_is_no_measurement_and_its_miss_stands(tmp_path: Path) -> None:
    figure = {"compare": "figure", "reference": None, "figure": "extra.loads", "reference_figure": "extra.expected"}
    one = claim(**figure, at_least=1, at_most=1, by_construction="the build walks so")
    for loads, verdict in ((19, Verdict.BY_CONSTRUCTION), (20, Verdict.OPPOSITE)):
        counted = record("fast", extra={"loads": loads, "expected": 19})
        found = judge(tmp_path / str(loads), one, counted)
        assert found.verdict is verdict is found.evidence[0].verdict
        assert ("the build walks so" in found.reason) == (verdict is Verdict.BY_CONSTRUCTION)
    elsewhere = judge(tmp_path / "gpu", one.model_copy(update={"applies_to": ["gpu"]}), counted)
    assert elsewhere.verdict is Verdict.NOT_APPLICABLE


def test_modelled_and_published_records_never_enter(tmp_path: Path) -> None:
    for provenance in ("modelled", "published"):
        other = record("fast", 0.02, provenance=provenance)
        assert judge(tmp_path / provenance, claim(), record("slow", 0.05), other).verdict is Verdict.NOT_MEASURED


def test_the_evaluator_knows_no_workload() -> None:
    modules = sorted((ROOT / "suite" / "perfport" / "judge" / "claims").glob("*.py"))
    source = "".join(module.read_text() for module in modules)
    assert "def evaluate(" in source
    names = [name for name, found in workload.discover().items() for name in (name, *found.problems)]
    assert not [name for name in names if name in source]
