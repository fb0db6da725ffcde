"""Predictions of stored cases: what is measured stays measured, and nothing predicts itself."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
import report_data as data
from hypothesis import given, settings
from hypothesis import strategies as st
from predict_data import CUDA, FAST, ON_SECOND, OPENCL, SLOW, live, measured, two_devices

from perfport.judge.predict import (
    WIDEST,
    Outcome,
    Predictor,
    Relation,
    changed,
    find_target,
    of_profile,
    rows,
    targets,
)
from perfport.judge.predict.devices import exact
from perfport.judge.predict.predictor import combined, nothing_counted
from perfport.judge.predict.widths import Widths, kind_of
from perfport.machine import device_profile
from perfport.model.errors import UsageError
from perfport.model.record import Status
from perfport.model.work import Traffic
from perfport.store.collection import Collection

A, B = "cuda:nvidia (Chip A)", "cuda:nvidia (Chip B)"


@pytest.fixture
def pair(tmp_path: Path) -> Predictor:
    """Two chips of one architecture that the model explains wholly."""
    return Predictor(two_devices(tmp_path))


def test_live_devices_are_chips_and_platforms(pair: Predictor) -> None:
    assert sorted(device.name for device in pair.devices.values()) == [A, B]
    assert {device.family for device in pair.devices.values()} == {"9.0"}
    assert len(pair.sources) == 6 and all(len(by_device) == 2 for by_device in pair.sources.values())


def test_each_predicts_the_other(pair: Predictor) -> None:
    assert len(pair.residuals) == 12
    assert {residual.estimate.relation for residual in pair.residuals} == {Relation.SIBLING}
    assert max(abs(residual.error) for residual in pair.residuals) < 0.01


def test_a_time_does_not_enter_its_own_prediction(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    found = {}
    for name, off in (("one", 1.0), ("two", 7.0)):
        predictor = Predictor(two_devices(tmp_path / name, off))
        found[name] = [r.estimate.seconds for r in predictor.residuals if r.target == B]
    assert found["one"] == pytest.approx(found["two"])


def test_of_each_ceiling_the_best_that_stood_beside_a_case(tmp_path: Path) -> None:
    environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, "Chip A")})
    runs = [
        data.store(tmp_path / name, measured(CUDA, {**FAST, **other}, {(name, 1): 1e-3}), environment)
        for name, other in (("a", {"dram_read": 3e12}), ("b", {"launch_latency": 3e-6}))
    ]
    (own,) = Predictor(Collection(runs)).devices.values()
    assert own.ceilings["dram_read"].value == FAST["dram_read"]
    assert own.ceilings["launch_latency"].value == FAST["launch_latency"]


def test_what_was_measured_is_shown_as_measured(pair: Predictor) -> None:
    own = list(pair.predictions(find_target(pair, "Chip B")))
    assert {each.outcome for each in own} == {Outcome.MEASURED}
    assert own[0].seconds and own[0].seconds.value == pytest.approx(ON_SECOND)
    assert {row["provenance"] for row in rows(pair, [find_target(pair, "Chip B")])} == {"measured"}


def test_a_device_that_does_not_exist_is_modelled_from_all_of_its_like(pair: Predictor) -> None:
    base = find_target(pair, "Chip B")
    same = list(pair.predictions(changed(base, ["local_read=1TB/s"])))
    assert {each.outcome for each in same} == {Outcome.MODELLED}
    faster = list(pair.predictions(changed(base, ["dram_read=20TB/s"])))
    for slow, fast in zip(same, faster, strict=True):
        assert slow.seconds and fast.seconds and fast.seconds.value < slow.seconds.value
        assert fast.seconds.low < fast.seconds.value < fast.seconds.high
        assert fast.metric and slow.metric and fast.metric.value > slow.metric.value
    assert {row["provenance"] for row in map(_row, faster)} == {"modelled"}


def _row(prediction: object) -> dict[str, object]:
    from perfport.judge.predict.table import row

    return row(prediction)  # type: ignore[arg-type]


def test_a_case_that_one_device_lacks_is_modelled_for_it(tmp_path: Path) -> None:
    both = two_devices(tmp_path)
    extra = measured(CUDA, FAST, {("alone", 1): 1.5e-3})
    environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, "Chip A")})
    predictor = Predictor(Collection([*both.runs, data.store(tmp_path / "more", extra, environment)]))
    found = {each.key.variant: each for each in predictor.predictions(find_target(predictor, "Chip B"))}
    assert found["alone"].outcome is Outcome.MODELLED and found["v0"].outcome is Outcome.MEASURED
    assert found["alone"].seconds and found["alone"].seconds.value == pytest.approx(ON_SECOND, rel=0.01)
    assert found["alone"].estimate and found["alone"].estimate.source.device.name == A


def test_an_interval_wider_than_a_factor_of_four_is_no_ground(pair: Predictor) -> None:
    for device in map(of_profile, ("hd5870", "gtx1080", "jetson_tx2")):
        for each in pair.predictions(device):
            if each.seconds and each.outcome in (Outcome.MODELLED, Outcome.NO_GROUND):
                wide = each.seconds.high / each.seconds.low > WIDEST * (1 + 1e-9)
                assert (each.outcome is Outcome.NO_GROUND) == wide == bool(each.reason)


@pytest.mark.parametrize(("share", "outcome"), [(0.99, Outcome.MODELLED), (1.01, Outcome.NO_GROUND)])
def test_the_width_that_is_refused(pair: Predictor, share: float, outcome: Outcome) -> None:
    target = changed(find_target(pair, "Chip B"), ["dram_read=3TB/s"])
    (first, *_) = pair.predictions(target)
    assert first.estimate
    scale = share * math.log(WIDEST) / 2 / first.estimate.own
    pair.widths = Widths({kind_of(first.estimate): scale})  # type: ignore[misc]
    assert pair.predict(first.key, target).outcome is outcome


def test_a_profile_of_the_user_is_found_by_its_name(
    pair: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_profile, "user_folder", lambda: tmp_path)
    shipped = Path(__file__).parents[3] / "device_profiles" / "hd5870.yaml"
    (tmp_path / "mine.yaml").write_text(shipped.read_text().replace("name: hd5870", "name: mine", 1))
    assert find_target(pair, "mine").name == "mine"
    with pytest.raises(UsageError, match=r"did you mean 'mine'\?"):
        find_target(pair, "mime")


def test_data_that_do_not_fit_are_unsupported_unless_a_rate_is_asked_for(tmp_path: Path) -> None:
    records = [
        r.model_copy(update={"overheads": r.overheads.model_copy(update={"device_bytes": 2 * 10**9})})
        for r in measured(CUDA, FAST, {("v", 1): 1.01e-3})
    ]
    environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, "Chip A")})
    predictor = Predictor(Collection([data.store(tmp_path / "run", records, environment)]))
    (key,) = predictor.sources
    told = predictor.predict(key, of_profile("hd5870"))
    assert told.outcome is Outcome.UNSUPPORTED and "2.00 GB of device memory" in told.reason and told.seconds is None
    assert predictor.predict(key, of_profile("hd5870"), of_any_size=True).outcome is Outcome.MODELLED


def test_only_what_may_be_ranked_predicts(tmp_path: Path) -> None:
    records = measured(CUDA, FAST, {("good", 1): 1e-3})
    records += measured(CUDA, FAST, {("contended", 1): 1e-3}, status=Status.CONTENDED)
    records += measured(CUDA, FAST, {("peer", 1): 1e-3}, role="peer")
    environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, "Chip A")})
    predictor = Predictor(Collection([data.store(tmp_path / "run", records, environment)]), nothing_counted)
    assert [key.variant for key in predictor.sources] == ["good"]


@given(
    seconds=st.sampled_from([0.0, 1e-300, 1e-9, 1e3, 1e300]), ceiling=st.sampled_from([0.0, 1e-300, 1.0, 1e12, 1e300]),
    amount=st.sampled_from([0.0, 1e-300, 1.0, 1e12, 1e300, math.inf]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_numbers_of_somebody_else_stop_nothing(seconds: float, ceiling: float, amount: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        good, bad = measured(CUDA, FAST, {("good", 1): 1e-3, ("bad", 1): 1e-3})
        assert bad.timing
        summary = bad.timing.summary["span"].model_copy(update=dict.fromkeys(("median", "ci_low", "ci_high"), seconds))
        bad = bad.model_copy(update={
            "timing": bad.timing.model_copy(update={"summary": {**bad.timing.summary, "span": summary}}),
            "ceilings": {**bad.ceilings, "dram_read": exact(ceiling), "fp32_fma": exact(ceiling)},
            "traffic": Traffic(dram_read=amount, flops=amount, global_read=amount),
        })  # fmt: skip
        environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, "Chip A")})
        run = data.store(Path(folder) / "run", [good], environment)
        run.records[:] = [good, bad]
        predictor = Predictor(Collection([run]))
        for device in targets(predictor):
            for each in predictor.predictions(device):
                assert each.outcome and (each.seconds is None or each.seconds.value >= 0)
                _row(each)


def test_of_two_runtimes_that_of_the_same_chip_is_nearer(tmp_path: Path) -> None:
    collection = two_devices(tmp_path, variants=1)
    records = measured(OPENCL, SLOW, {("v0", 1): 9.9e-3})
    environment = data.environment((data.GPU,), devices={OPENCL: live(OPENCL, "Chip B")})
    predictor = Predictor(Collection([*collection.runs, data.store(tmp_path / "cl", records, environment)]))
    (residual,) = [r for r in predictor.residuals if r.target.startswith("opencl")]
    assert residual.estimate.source.device.name == B and residual.estimate.relation is Relation.RUNTIME


def test_tables_have_a_column_for_each_live_device_and_each_profile_of_a_gpu(pair: Predictor, tmp_path: Path) -> None:
    names = [device.name for device in targets(pair)]
    assert names[:2] == [A, B] and {"h200", "hd5870", "gtx1080"} <= set(names)
    assert not any(profile.kind == "cpu" and name in names for name, profile in device_profile.all_profiles().items())
    records = measured(CUDA, FAST, {("v", 1): 1e-3})
    environment = data.environment((data.GPU,), devices={CUDA: live(CUDA, "NVIDIA H200")})
    own = Predictor(Collection([data.store(tmp_path / "own", records, environment)]))
    assert "h200" not in [device.name for device in targets(own)]
    assert find_target(own, "h200").name == "cuda:nvidia (NVIDIA H200)"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("hd5871", "unknown device 'hd5871'.*did you mean 'hd5870'"),
        ("cuda:nvidia", "part of several: .*Chip A.*Chip B"),
        ("no/such.yaml", "no/such.yaml"),
    ],
)
def test_unknown_devices_are_named(pair: Predictor, name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        find_target(pair, name, "--profiles")
    assert name.endswith(".yaml") or str(raised.value).startswith("--profiles")


def test_spread_between_equally_near_devices_widens(tmp_path: Path) -> None:
    collection = two_devices(tmp_path, off=1.5)
    predictor = Predictor(collection)
    (key,) = [key for key in predictor.sources if key.variant == "v0" and '"points": 1' in key.subject.parameters]
    target = changed(find_target(predictor, "Chip A"), ["dram_read=3TB/s"])
    sources = list(predictor.sources[key].values())
    singly = [combined([each], target) for each in sources]
    both = combined(sources, target)
    assert both and all(singly)
    times = [each[0].seconds for each in singly if each]
    assert both[0].seconds == pytest.approx(math.sqrt(times[0] * times[1])) and max(times) / min(times) > 1.2
    assert both[1] == pytest.approx(math.hypot(singly[0][1], math.log(max(times) / min(times)) / 2))  # type: ignore[index]
    assert times[0] == pytest.approx(math.sqrt((4 / 3) ** 2 + 1.5**2 - 1) * 1e-3, rel=0.01)
