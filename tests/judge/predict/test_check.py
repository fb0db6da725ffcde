"""Live devices predict each other, and figures of publications are compared with: on the results that are committed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from predict_data import ON_SECOND, two_devices

from perfport.judge.predict import Pair, Predictor, Published, Relation, check, live_pairs, published
from perfport.model.published import Figure
from perfport.report import selection

RESULTS = Path(__file__).parents[3] / "results" / "committed"


@pytest.fixture(scope="module")
def committed() -> Predictor:
    """What predicts from the committed results."""
    return selection.predictor([RESULTS])


@pytest.fixture(scope="module")
def compared(committed: Predictor) -> list[Published]:
    """All published figures beside what the model says."""
    return published(committed)


def of(found: list[Published], variant: str, what: str) -> Published:
    """Return one figure by its variant and what it is."""
    (one,) = [each for each in found if each.figure.variant == variant and each.what == what]
    return one


def test_every_ordered_pair_with_common_cases_is_there(tmp_path: Path) -> None:
    pairs = live_pairs(Predictor(two_devices(tmp_path)))
    assert [(pair.source.title, pair.target.title, len(pair.rows)) for pair in pairs] == [
        ("Chip A", "Chip B", 6), ("Chip B", "Chip A", 6),
    ]  # fmt: skip
    assert all(pair.relation is Relation.SIBLING and pair.errors[-1] < 0.01 for pair in pairs)
    assert pairs[0].unchanged[0] == pytest.approx(1 - 1.5e-3 / ON_SECOND, abs=0.01) and pairs[0].held == (6, 6)


def test_what_is_off_is_not_held(tmp_path: Path) -> None:
    pairs = live_pairs(Predictor(two_devices(tmp_path, off=3.0)))
    assert all(pair.held == (0, 6) for pair in pairs)


def test_results_of_different_code_are_no_pair(tmp_path: Path) -> None:
    """By the digest of a variant's files, where a run tells it, else by the commit of the run."""
    changed = Predictor(two_devices(tmp_path / "commit", commit={"hash": "4567cdef", "dirty": False}))
    assert not live_pairs(changed) and not changed.residuals and len(changed.sources) == 6
    variants = {"demo/rows/v0": "cafe", "demo/rows/v1": "0123abcd"}
    code = {"measuring": "00", "variants": variants, "files": {}, "made_of": {}}
    told = Predictor(two_devices(tmp_path / "code", code=code))
    assert {row.estimate.source.record.identity.variant for pair in live_pairs(told) for row, _ in pair.rows} == {
        "v1", "v2",
    }  # fmt: skip
    assert len(told.residuals) == 8


def test_results_of_which_no_code_is_known_are_no_pair(tmp_path: Path) -> None:
    (first, *rest) = Predictor(two_devices(tmp_path)).sources.values()
    one, other = first.values()
    assert one.same_code(other) and rest
    for each in (one, other):
        for name in ("code", "commit"):
            each.case.run.environment.pop(name, None)
        each.__dict__.pop("code", None)
    assert one.code == other.code == "" and not one.same_code(other)


def test_committed_gpus_predict_each_other(committed: Predictor) -> None:
    pairs: dict[tuple[str, str], Pair] = {(p.source.name, p.target.name): p for p in live_pairs(committed)}
    names = {name for pair in pairs for name in pair}
    assert {"cuda:nvidia (NVIDIA H200)", "cuda:nvidia (NVIDIA H100 80GB HBM3)"} <= names
    assert all((target, source) in pairs for source, target in pairs)
    for residual, ends in pairs["cuda:nvidia (NVIDIA H200)", "cuda:nvidia (NVIDIA H100 80GB HBM3)"].rows:
        assert residual.seconds == pytest.approx(committed_time(committed, residual.estimate.source, residual.target))
        assert ends is None or ends.low < residual.estimate.seconds < ends.high


def committed_time(predictor: Predictor, source: object, target: str) -> float:
    """Return what was measured on a device of the case of a source."""
    (by_device,) = [held for held in predictor.sources.values() if any(each is source for each in held.values())]
    return next(each.seconds for device, each in by_device.items() if device.name == target)


def test_every_figure_is_compared_or_says_why_not(compared: list[Published]) -> None:
    assert len(compared) > 60
    assert all((each.predicted is None) == bool(each.reason) or each.predicted for each in compared)
    for each in compared:
        assert (each.error is None) == (each.covered is None) == (each.predicted is None)


def test_rates_of_an_archival_device_stand_beside_the_published_ones(compared: list[Published]) -> None:
    for variant, stated in (("row_major", 33.7), ("column_major", 65.7), ("local_memory", 173.6)):
        each = of(compared, variant, "GFLOP/s")
        assert each.stated == stated and each.predicted and each.figure.device == "hd5870"
        assert each.predicted.low < each.predicted.value < each.predicted.high


def test_ratios_of_rungs_are_compared_as_stated_and_as_implied(compared: list[Published]) -> None:
    stated = of(compared, "local_memory", "speed over row_major")
    assert stated.stated == 5.0 and stated.predicted and stated.predicted.value > 1
    rates = [of(compared, variant, "GFLOP/s").predicted for variant in ("local_memory", "row_major")]
    assert rates[0] and rates[1] and stated.predicted.value == pytest.approx(rates[0].value / rates[1].value)
    assert stated.predicted.high / stated.predicted.value == pytest.approx(
        math.exp(math.hypot(*(math.log(rate.high / rate.value) for rate in rates if rate)))
    )
    assert stated.sees == "bound by dram against l2_read"
    assert of(compared, "argminmax_fused", "speed over argminmax_separate").stated == pytest.approx(1 / 1.13)
    implied = of(compared, "column_major", "speed over row_major (implied)")
    assert implied.stated == pytest.approx(65.7 / 33.7) and implied.predicted


@pytest.mark.parametrize(
    ("unit", "why"),
    [
        ("times cuBLAS", "not measured here beside it|another program"),
        ("x OpenCV 2.4", "another program"),
        ("KB of cubin", "no time or rate"),
        ("frames/s", "no profile here"),
    ],
)
def test_what_cannot_be_compared_says_why(compared: list[Published], unit: str, why: str) -> None:
    import re

    found = [each for each in compared if each.figure.unit == unit]
    assert found and all(each.predicted is None and re.search(why, each.reason) for each in found)


def test_figures_are_never_fitted_to(committed: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {each.figure.variant: each for each in published(committed) if each.what == "GFLOP/s"}
    shipped = check.figures

    def doubled(workload: str) -> tuple[Figure, ...]:
        return tuple(f.model_copy(update={"value": 2 * f.value}) for f in shipped(workload))

    monkeypatch.setattr(check, "figures", doubled)
    after = {each.figure.variant: each for each in published(committed) if each.what == "GFLOP/s"}
    assert before.keys() == after.keys() and len(before) == 6
    for name, each in after.items():
        assert each.stated == 2 * before[name].stated and each.predicted == before[name].predicted
