"""What a claim compares: speed-ups, shares, overheads, figures, shares of kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from claim_data import (
    claim,
    judge,
    record,
)
from equal_variants import one_and_the_best_of_twenty

from perfport.judge.claims import (
    Selector,
    Verdict,
)


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


def test_share_of_the_bound_that_the_source_divides_by(tmp_path: Path) -> None:
    one_record = record("fast", 0.02)
    assert one_record.problem_bound and one_record.datasheet_bound
    ours, source = one_record.problem_bound.share.value, one_record.datasheet_bound.share.value
    assert source < 0.95 * ours
    between = claim(compare="share", reference=None, share_of="datasheet_bound", at_least=(ours + source) / 2)
    found = judge(tmp_path / "a", between, one_record)
    assert found.verdict is Verdict.SMALLER and found.evidence[0].interval.value == source
    assert found.evidence[0].numbers[1:] == (
        ("datasheet bound", one_record.datasheet_bound.seconds, "s"), ("share of the problem bound", ours, ""),
    )  # fmt: skip
    assert between.quantity == "share of the datasheet bound that fast reaches"
    by_ours = judge(tmp_path / "b", between.model_copy(update={"share_of": "problem_bound"}), one_record)
    assert by_ours.verdict is Verdict.HOLDS and len(by_ours.evidence[0].numbers) == 2
    bare = judge(tmp_path / "c", between, one_record.model_copy(update={"datasheet_bound": None}))
    assert bare.verdict is Verdict.NOT_MEASURED and "no datasheet bound" in bare.reason


def test_overhead_is_what_comes_on_top_of_the_base(tmp_path: Path) -> None:
    times = {"base": 0.020, "fast": 0.021, "slow": 0.030}
    records = [record(name, t, noise=1e-4) for name, t in times.items()]
    one = claim(compare="overhead", base={"variant": "base"}, at_least=5)
    found = judge(tmp_path, one, *records)
    assert found.verdict is Verdict.HOLDS and found.evidence[0].interval.value == pytest.approx(10, rel=0.1)
    none = [record(name, 0.02, noise=0.01) for name in times]
    either = judge(tmp_path / "x", one, *none)
    assert either.verdict is Verdict.CANNOT_TELL
    assert (either.evidence[0].interval.low, either.evidence[0].interval.high) == (-float("inf"), float("inf"))


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
    assert found.verdict is Verdict.HOLDS and found.evidence[0].interval.value == 1
    assert [number.value for number in found.evidence[0].numbers] == [1000, 1000]
    other = one.model_copy(update={"reference": Selector(variant=["slow"])})
    assert judge(tmp_path / "b", other, *records).evidence[0].interval.value == 2


def test_kernels_of_the_reference_beside_the_whole_time_of_the_subject(tmp_path: Path) -> None:
    one = claim(compare="kernel_share", kernels=["a"], at_least=None, at_most=0.1, no_effect=0.5)
    own, library = record("slow", kernels={"a": 0.004, "b": 0.1}), record("fast", 0.02, kernels={"a": 0.019})
    found = judge(tmp_path / "a", one, own, library)
    assert found.verdict is Verdict.SMALLER and found.evidence[0].interval.value == pytest.approx(0.2, rel=0.05)
    low, high = found.evidence[0].interval.low, found.evidence[0].interval.high
    assert low < found.evidence[0].interval.value < high
    host = judge(tmp_path / "b", one, own, record("fast", 0.02, clock="wall"))
    assert host.verdict is Verdict.NOT_MEASURED and "no device times" in host.reason


def test_a_speed_up_is_not_that_of_the_luckiest_of_equal_settings(tmp_path: Path) -> None:
    one = claim(subject={"variant": "tuned"}, reference={"variant": "other"}, at_least=1.0)
    judged = [
        judge(tmp_path / str(number), one, *records).verdict
        for number, records in enumerate(one_and_the_best_of_twenty(4))
    ]
    assert len(judged) == 60 and sum(each is Verdict.HOLDS for each in judged) <= 3
    assert judged.count(Verdict.CANNOT_TELL) > 50
