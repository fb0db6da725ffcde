"""Claims: read, judged by interval, and derived again from the raw files by an independent script."""

from __future__ import annotations

import importlib
import itertools
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
import rederive_claims
import report_data as data
import yaml
from hypothesis import given
from hypothesis import strategies as st

from perfport import workload
from perfport.judge.claims import (
    MISSED,
    Claim,
    Judgement,
    OpenInterval,
    Selector,
    Verdict,
    combined,
    evaluate,
    judged,
    ledger,
    read,
)
from perfport.model.errors import UsageError
from perfport.model.record import Interval, Record, Status
from perfport.report.pages.claims import view
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


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict", "reason"),
    [
        (2.0, 0.01, Verdict.HOLDS, "is claimed"),
        (1.2, 0.01, Verdict.SMALLER, "smaller than claimed: 1."),
        (1.0, 0.001, Verdict.ABSENT, "no effect: "),
        (1.0, 0.1, Verdict.ABSENT, "no effect: "),
        (0.5, 0.01, Verdict.OPPOSITE, "the opposite: 0."),
        (1.5, 0.2, Verdict.CANNOT_TELL, "contains the threshold"),
    ],
)
def test_speedup_is_judged_by_its_whole_interval(
    tmp_path: Path, ratio: float, noise: float, verdict: Verdict, reason: str
) -> None:
    found = judge(tmp_path, claim(), record("slow", 0.02 * ratio, noise=noise), record("fast", 0.02, noise=noise))
    assert found.verdict is verdict and reason in found.reason
    (evidence,) = found.evidence
    assert [number.what for number in evidence.numbers] == ["fast", "slow"]
    assert evidence.numbers[1].value / evidence.numbers[0].value == pytest.approx(evidence.found.value, rel=0.2)


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


@pytest.mark.parametrize(
    ("one", "low", "high", "verdict"),
    [
        (GAIN, 1.5, 1.6, Verdict.HOLDS), (GAIN, 1.49, 1.5, Verdict.CANNOT_TELL), (GAIN, 0.5, 1.5, Verdict.CANNOT_TELL),
        (GAIN, 1.01, 1.499, Verdict.SMALLER), (GAIN, 1.0, 1.499, Verdict.ABSENT), (GAIN, 0.5, 1.0, Verdict.ABSENT),
        (GAIN, 1.001, 1.02, Verdict.ABSENT), (GAIN, 1.001, 1.021, Verdict.SMALLER),
        (GAIN, 0.98, 0.999, Verdict.ABSENT), (GAIN, 0.979, 0.999, Verdict.OPPOSITE), (GAIN, 0.2, 0.3, Verdict.OPPOSITE),
        (SOME, 1.02, 9, Verdict.HOLDS), (SOME, 1.001, 1.019, Verdict.ABSENT), (SOME, 1.01, 1.03, Verdict.CANNOT_TELL),
        (SOME, 0.9, 0.95, Verdict.OPPOSITE), (SOME, 0.9, 1.01, Verdict.ABSENT),
        (LESS, 0.1, 0.8, Verdict.HOLDS), (LESS, 0.81, 0.97, Verdict.SMALLER), (LESS, 0.99, 1.3, Verdict.ABSENT),
        (LESS, 1.1, 1.2, Verdict.OPPOSITE), (LESS, 0.7, 0.9, Verdict.CANNOT_TELL),
        (ALIKE, 0.9, 1.1, Verdict.HOLDS), (ALIKE, 0.8, 0.89, Verdict.OPPOSITE), (ALIKE, 1.2, 1.3, Verdict.OPPOSITE),
        (ALIKE, 0.8, 0.95, Verdict.CANNOT_TELL), (ALIKE, 0.8, 1.2, Verdict.CANNOT_TELL),
        (HIGH, 0.8, 0.9, Verdict.HOLDS), (HIGH, 0.01, 0.7, Verdict.SMALLER), (HIGH, 0.0, 0.0, Verdict.ABSENT),
        (LOW, 0.1, 0.15, Verdict.HOLDS), (LOW, 0.2, 0.9, Verdict.SMALLER), (LOW, 0.985, 1.0, Verdict.ABSENT),
        (LOW, 1.1, 1.2, Verdict.OPPOSITE),
        (HALF, 0.2, 0.3, Verdict.SMALLER), (HALF, 0.495, 0.505, Verdict.ABSENT), (HALF, 0.7, 0.8, Verdict.OPPOSITE),
        (BARE, 700, 700, Verdict.HOLDS), (BARE, 701, 701, Verdict.OPPOSITE),
        (RATE, 0.02, 0.03, Verdict.HOLDS), (RATE, 0.5, 9, Verdict.SMALLER),
    ],
)  # fmt: skip
def test_each_verdict_begins_where_the_documentation_says(
    one: Claim, low: float, high: float, verdict: Verdict
) -> None:
    assert judged(one, between(low, high)) is verdict is combined(one, [between(low, high)])


ENDS = st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)).map(sorted)
CLAIMS = st.sampled_from([GAIN, SOME, LESS, ALIKE, HIGH, LOW, HALF, BARE, RATE, claim(at_least=None, stated=3)])


@given(CLAIMS, ENDS)
def test_a_claim_holds_where_its_whole_interval_does_and_is_open_where_a_part_does(
    one: Claim, ends: list[float]
) -> None:
    (low, high), (least, most) = ends, one.bounds
    verdict = judged(one, between(low, high))
    assert (verdict is Verdict.HOLDS) == (low >= least and high <= most)
    assert (verdict in MISSED) == (high < least or low > most)
    assert verdict in (*MISSED, Verdict.HOLDS, Verdict.CANNOT_TELL)


@given(st.sampled_from([GAIN, SOME, HIGH]), ENDS, st.floats(1, 3))
def test_more_of_an_effect_is_never_a_worse_verdict(one: Claim, ends: list[float], more: float) -> None:
    order = [Verdict.OPPOSITE, Verdict.ABSENT, Verdict.SMALLER, Verdict.CANNOT_TELL, Verdict.HOLDS]
    before, after = (judged(one, between(ends[0] * factor, ends[1] * factor)) for factor in (1, more))
    assert order.index(after) >= order.index(before)


@given(CLAIMS, st.lists(ENDS, min_size=1, max_size=5), st.randoms())
def test_settings_amount_to_what_they_have_in_common(one: Claim, ends: list[list[float]], random: Random) -> None:
    found = [between(*each) for each in ends]
    verdict, verdicts = combined(one, found), [judged(one, each) for each in found]
    shuffled = random.sample(found, len(found)) + found[:1]
    assert combined(one, shuffled) is verdict
    assert (verdict is Verdict.HOLDS) == (set(verdicts) == {Verdict.HOLDS})
    assert (verdict is Verdict.OPPOSITE) == (set(verdicts) == {Verdict.OPPOSITE})
    if verdict is Verdict.SMALLER:
        assert Verdict.SMALLER in verdicts and not {Verdict.ABSENT, Verdict.OPPOSITE} & set(verdicts)
    if verdict is Verdict.ABSENT:
        assert set(verdicts) <= MISSED


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ([(2, 3), (1.2, 1.3)], Verdict.SMALLER),  # faster everywhere, in one setting by less
        ([(2, 3), (1.2, 1.3), (1.4, 1.6)], Verdict.SMALLER),
        ([(2, 3), (1.2, 1.3), (0.9, 1.6)], Verdict.CANNOT_TELL),  # the last may be slower
        ([(2, 3), (0.5, 0.6)], Verdict.CANNOT_TELL), ([(2, 3), (1.2, 1.3), (0.5, 0.6)], Verdict.CANNOT_TELL),
        ([(2, 3), (0.9, 1.1)], Verdict.CANNOT_TELL),
        ([(1.2, 1.3), (0.5, 0.6)], Verdict.ABSENT),  # faster here, slower there, nowhere as claimed
        ([(1.2, 1.3), (0.99, 1.01)], Verdict.ABSENT),
        ([(0.5, 0.6), (0.99, 1.01)], Verdict.ABSENT),
        ([(2, 3), (1.4, 1.6)], Verdict.CANNOT_TELL),
    ],
)  # fmt: skip
def test_settings_that_differ(ends: list[tuple[float, float]], verdict: Verdict) -> None:
    assert combined(GAIN, [between(*each) for each in ends]) is verdict


def test_of_a_stated_gain_half_is_enough(tmp_path: Path) -> None:
    one = claim(at_least=None, stated=4)
    assert one.bounds == (2.5, float("inf")) and one.threshold == "at least 2.5 (half of the gain of 4)"
    for ratio, verdict in ((2.6, Verdict.HOLDS), (2.4, Verdict.SMALLER)):
        records = record("slow", 0.02 * ratio, noise=0.001), record("fast", 0.02, noise=0.001)
        assert judge(tmp_path / f"{ratio}", one, *records).verdict is verdict


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
    assert found.verdict is Verdict.HOLDS and found.evidence[0].found.value == pytest.approx(2, rel=0.05)
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
    assert found.evidence[0].found.value == pytest.approx(2, rel=0.05) and len(found.evidence) == 1


def test_sides_may_differ_in_parameters_of_their_own(tmp_path: Path) -> None:
    records = [
        record("fast", t, parameters={"op": op, "batch": b}, key=f"{op}{b}")
        for (op, b), t in {("x", 1): 0.02, ("y", 1): 0.05, ("x", 64): 0.02, ("y", 64): 0.02}.items()
    ]
    sides = {s: {"variant": "fast", "parameters": {"op": op}} for s, op in (("subject", "x"), ("reference", "y"))}
    found = judge(tmp_path, claim(parameters={"batch": 1}, **sides), *records)
    assert found.verdict is Verdict.HOLDS and found.evidence[0].setting == "batch=1"


def test_precision_classes_are_apart_unless_a_side_names_its_own(tmp_path: Path) -> None:
    records = [record("slow", 0.04), record("fast", 0.02, precision="tf32")]
    assert judge(tmp_path, claim(), *records).verdict is Verdict.NOT_MEASURED
    named = claim(subject={"variant": "fast", "precision": "tf32"})
    assert judge(tmp_path / "x", named, *records).verdict is Verdict.HOLDS


def test_share_of_the_bound(tmp_path: Path) -> None:
    one_record = record("fast", 0.02)
    assert one_record.problem_bound
    value = one_record.problem_bound.share.value
    for threshold, verdict in ((0.9 * value, Verdict.HOLDS), (1.1 * value, Verdict.SMALLER)):
        one = claim(compare="share", reference=None, at_least=threshold)
        assert judge(tmp_path / f"{threshold}", one, one_record).verdict is verdict
    bare = record("fast", 0.02, ceilings=None)
    found = judge(tmp_path, claim(compare="share", reference=None), bare)
    assert found.verdict is Verdict.NOT_MEASURED and "no problem bound" in found.reason


def test_overhead_is_what_comes_on_top_of_the_base(tmp_path: Path) -> None:
    times = {"base": 0.020, "fast": 0.021, "slow": 0.030}
    records = [record(name, t, noise=1e-4) for name, t in times.items()]
    one = claim(compare="overhead", base={"variant": "base"}, at_least=5)
    found = judge(tmp_path, one, *records)
    assert found.verdict is Verdict.HOLDS and found.evidence[0].found.value == pytest.approx(10, rel=0.1)
    none = [record(name, 0.02, noise=0.01) for name in times]
    either = judge(tmp_path / "x", one, *none)
    assert either.verdict is Verdict.CANNOT_TELL
    assert (either.evidence[0].found.low, either.evidence[0].found.high) == (-float("inf"), float("inf"))


def test_figures_and_shares_of_kernels(tmp_path: Path) -> None:
    counted = record("fast", 0.02, extra={"loads": {"seen": 19, "expected": 19}}, kernels={"a": 0.019, "b": 0.001})
    figure = {"compare": "figure", "reference": None, "figure": "extra.loads.seen"}
    exact = claim(**figure, reference_figure="extra.loads.expected", at_least=1, at_most=1)
    assert judge(tmp_path / "1", exact, counted).verdict is Verdict.HOLDS
    assert judge(tmp_path / "2", claim(**figure, at_least=20), counted).verdict is Verdict.OPPOSITE
    more = claim(**figure, at_least=20, no_effect=0)
    assert judge(tmp_path / "5", more, counted).verdict is Verdict.SMALLER
    absent = judge(tmp_path / "3", claim(**{**figure, "figure": "extra.none"}), counted)
    assert absent.verdict is Verdict.NOT_MEASURED and "extra.none" in absent.reason
    share = claim(compare="kernel_share", reference=None, kernels=["b"], at_least=None, at_most=0.1)
    assert judge(tmp_path / "4", share, counted).verdict is Verdict.HOLDS


def test_a_figure_may_be_what_is_beyond_that_of_the_base(tmp_path: Path) -> None:
    records = [
        record("fast", extra={"bytes": 1100, "waste": 1000}), record("base", extra={"bytes": 100, "waste": 1}),
        record("slow", extra={"bytes": 50, "waste": 500}),
    ]  # fmt: skip
    one = claim(
        compare="figure", figure="extra.bytes", reference_figure="extra.waste", base={"variant": "base"},
        reference=None, at_least=0.98, at_most=1.02,
    )  # fmt: skip
    found = judge(tmp_path / "a", one, *records)
    assert found.verdict is Verdict.HOLDS and found.evidence[0].found.value == 1
    assert [number.value for number in found.evidence[0].numbers] == [1000, 1000]
    other = one.model_copy(update={"reference": Selector(variant=["slow"])})
    assert judge(tmp_path / "b", other, *records).evidence[0].found.value == 2


def test_kernels_of_the_reference_beside_the_whole_time_of_the_subject(tmp_path: Path) -> None:
    one = claim(compare="kernel_share", kernels=["a"], at_least=None, at_most=0.1, no_effect=0.5)
    own, library = record("slow", kernels={"a": 0.004, "b": 0.1}), record("fast", 0.02, kernels={"a": 0.019})
    found = judge(tmp_path / "a", one, own, library)
    assert found.verdict is Verdict.SMALLER and found.evidence[0].found.value == pytest.approx(0.2, rel=0.05)
    low, high = found.evidence[0].found.low, found.evidence[0].found.high
    assert low < found.evidence[0].found.value < high
    host = judge(tmp_path / "b", one, own, record("fast", 0.02, clock="wall"))
    assert host.verdict is Verdict.NOT_MEASURED and "no device times" in host.reason


def test_modelled_and_published_records_never_enter(tmp_path: Path) -> None:
    for provenance in ("modelled", "published"):
        other = record("fast", 0.02, provenance=provenance)
        assert judge(tmp_path / provenance, claim(), record("slow", 0.05), other).verdict is Verdict.NOT_MEASURED


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"reference": None}, "needs 'reference'"),
        ({"at_least": None}, "expected 'stated', or 'at_least', 'at_most' or both"),
        ({"stated": 3}, "expected 'stated', or"),
        ({"at_least": None, "stated": 0.5}, "greater than 1"),
        ({"compare": "share", "at_least": None, "stated": 2}, "'stated' is a ratio of times"),
        ({"at_least": 2, "at_most": 1}, "'at_least' is above 'at_most'"),
        ({"at_least": 2, "at_most": 3}, "must contain no effect, 1"),
        ({"compare": "overhead"}, "needs 'base'"),
        ({"compare": "figure", "figure": None}, "needs 'figure'"),
        ({"compare": "guess"}, "compare"),
        ({"speed": 3}, "speed"),
        ({"id": "Not so"}, "id"),
    ],
)
def test_bad_claims_are_named(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    content = claim().model_dump(exclude_none=True, exclude_unset=True)
    content = {k: v for k, v in {**content, **change}.items() if v is not None}
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([content]))
    with pytest.raises(UsageError, match=r"claims\.yaml: 0") as caught:
        read(file)
    assert complaint in str(caught.value)


def test_two_claims_of_one_id_and_a_broken_file_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    content = claim().model_dump(exclude_unset=True)
    file.write_text(yaml.safe_dump([content, content]))
    with pytest.raises(UsageError, match="two claims have the id 'one'"):
        read(file)
    file.write_text("- {")
    with pytest.raises(UsageError, match=r"claims\.yaml: not valid YAML"):
        read(file)


def test_the_ledger_has_the_claims_of_all_five_sources() -> None:
    found = ledger()
    assert len(found) >= 5 and sum(map(len, found.values())) >= 40
    assert all(one.source and one.statement.endswith(".") for listed in found.values() for one in listed)


def test_claims_name_problems_and_variants_that_exist() -> None:
    """A claim with a misspelt name would be `not measured` for ever."""
    claims = ledger()
    for name, found in workload.discover().items():
        for one in claims.get(name, []):
            variants = found.variants[found.problem(one.problem).name]
            for side in (one.subject, one.reference, one.base):
                assert side is None or set(side.variants) <= set(variants), f"{name}/{one.id}: {side.variants}"
                tunables = {t for v in side.variants for t in variants[v].tunables} if side else set()
                assert side is None or set(side.tunables) <= tunables, f"{name}/{one.id}: {side.tunables}"
            fields = found.problem(one.problem).Parameters.model_fields
            assert set(one.parameters) <= set(fields), f"{name}/{one.id}: {list(one.parameters)}"


def _numbers(text: str) -> set[float]:
    """Return the numbers of a text, as they stand and as shares where they are percentages."""
    found = re.findall(r"(\d+(?:\.\d+)?)( ?%)?", text)
    return {round(float(value) / (100 if percent else 1), 6) for value, percent in found}


def test_thresholds_follow_the_rule_of_the_documentation() -> None:
    """A stated gain is halved, a bound or a share stands as stated, a direction is 2 %, about is 10 %."""
    for name, listed in ledger().items():
        for one in listed:
            which, said = f"{name}/{one.id}", f"{one.statement} {one.published or ''}"
            gain = re.search(r"\d times|\d ?%|(?<![pN]) = \d", said.replace("within 2 %", ""))
            if one.stated is not None:
                assert one.stated in _numbers(said), which
                continue
            for bound in filter(None, (one.at_least, one.at_most)):
                direction = bound in (0.98, 1.02) and not gain
                about = bound in (0.9, 1.1) and "within 10 %" in said
                assert direction or about or bound in _numbers(said) | {1.0}, f"{which}: {bound}"


def test_the_evaluator_knows_no_workload() -> None:
    modules = sorted((ROOT / "suite" / "perfport" / "judge" / "claims").glob("*.py"))
    source = "".join(module.read_text() for module in modules)
    assert "def evaluate(" in source
    names = [name for name, found in workload.discover().items() for name in (name, *found.problems)]
    assert not [name for name in names if name in source]


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
        claim(id="absent", subject={"variant": "none"}),
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
    assert derived == ours and len(set(ours.values())) >= 5


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


def test_the_page_has_every_claim_with_both_numbers_and_the_records(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [record("slow", 0.05), record("fast", 0.02)])
    collection = Collection([run])
    shown = view(evaluate({"demo": [claim(published="3 | 4 times")]}, collection), collection)
    assert "**holds**" in shown.markdown and "3 | 4 times" in shown.markdown
    (row,) = shown.rows
    assert row["verdict"] == "holds" and row["subject"] == "fast" and row["against"] == "slow"
    for found in run.records:
        assert f"`{found.key}`" in shown.markdown and found.key in row["records"]
    assert row["low"] <= row["value"] <= row["high"]
