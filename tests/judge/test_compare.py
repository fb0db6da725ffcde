"""`perfport compare`: runs, devices and variants side by side, and exit codes that a nightly job can use."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import equal_pairs
import numpy as np
import pytest
import report_data as data
from equal_variants import one_and_the_best_of_twenty

from perfport.judge.compare import contrast
from perfport.measure.intervals import Verdict
from perfport.model.errors import UsageError
from perfport.model.record import Record, Status
from perfport.report.pages.compare import outcome
from perfport.store.collection import Filter


def again(record: Record, factor: float) -> Record:
    """Return the case in another run, its times by a factor longer."""
    assert record.timing
    clocks = {name: [factor * t for t in getattr(record.timing, name)] for name in ("span", "wall")}
    scaled = ("median", "ci_low", "ci_high", "q1", "q3", "minimum", "maximum")
    summary = {
        name: s.model_copy(update={k: factor * getattr(s, k) for k in scaled})
        for name, s in record.timing.summary.items()
    }
    timing = record.timing.model_copy(update={**clocks, "summary": summary})
    return record.model_copy(update={"timing": timing, "run": "later"})


def test_other_inputs_are_said_and_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = data.record("a", 0.02, noise=1e-3)
    other = again(one, 3.0).model_copy(update={"seed": one.seed + 3})
    data.store(tmp_path / "a", [one])
    data.store(tmp_path / "b", [other])
    assert data.call(monkeypatch, "compare", tmp_path / "a", tmp_path / "b", "--format", "csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["outcome"] == f"other inputs: seed {one.seed}; seed {other.seed}" and row["ratio"] == ""


def test_equal_inputs_meet_where_one_side_has_others_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = data.record("a", 0.02, noise=1e-3)
    data.store(tmp_path / "a" / "1", [one])
    data.store(tmp_path / "a" / "2", [again(one, 3.0).model_copy(update={"seed": one.seed + 3})])
    data.store(tmp_path / "b", [again(one, 1.0)])
    _, pairs = contrast(str(tmp_path / "a"), str(tmp_path / "b"), [], Filter())
    found = {pair.name.partition("seed")[2]: outcome(pair) for pair in pairs}
    assert found == {f" {one.seed} on {data.POCL}": "same", f" {one.seed + 3} on {data.POCL}": "missing in B"}


@pytest.mark.parametrize(
    ("factor", "status", "code", "found"),
    [
        (1.0, Status.OK, 0, "same"),
        (0.5, Status.OK, 0, "faster"),
        (1.5, Status.OK, 5, "slower"),
        (1.0, Status.CRASHED, 4, "crashed"),
        (1.0, Status.WRONG, 3, "wrong"),
        (1.0, Status.IMPOSSIBLE, 3, "impossible"),
    ],
)
def test_runs_case_by_case_with_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], factor: float, status: Status,
    code: int, found: str,
) -> None:  # fmt: skip
    one = data.record("a", 0.02, noise=1e-3)
    other = again(one, factor) if status is Status.OK else data.record("a", 0.02, status=status, run="later")
    a, b = tmp_path / "a", tmp_path / "b"
    data.store(a, [one])
    data.store(b, [other])
    assert data.call(monkeypatch, "compare", a, b, "--format", "csv") == code
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["outcome"] == found and "profile" not in row["case"]
    if status is Status.OK:
        assert float(row["low"]) <= float(row["ratio"]) == pytest.approx(1 / factor) and float(row["high"]) > 0


def test_a_worse_code_outranks_a_slower_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [data.record(name, 0.02, noise=1e-3) for name in "ab"]
    data.store(tmp_path / "a", records)
    data.store(tmp_path / "b", [again(records[0], 2.0), data.record("b", status=Status.TIMEOUT, run="later")])
    assert data.call(monkeypatch, "compare", tmp_path / "a", tmp_path / "b") == 4


def test_a_case_that_vanished_is_lost_and_a_new_one_is_not(tmp_path: Path) -> None:
    common, old, new = (data.record(name, 0.02, noise=1e-3) for name in ("common", "old", "new"))
    data.store(tmp_path / "a", [common, old])
    data.store(tmp_path / "b", [again(common, 1.0), again(new, 1.0)])
    kind, pairs = contrast(str(tmp_path / "a"), str(tmp_path / "b"), [], Filter())
    assert kind == "runs"
    by = {pair.name.split()[1]: pair for pair in pairs}
    assert by["old"].lost and outcome(by["old"]) == "missing in B"
    assert not by["new"].lost and outcome(by["new"]) == "new in B"
    with pytest.raises(UsageError, match=r"no variant in .* contains .old."):
        contrast(str(tmp_path / "a"), str(tmp_path / "b"), [], Filter(variant="old"))


def test_devices_and_variants_of_one_store(tmp_path: Path) -> None:
    records = [data.record("a", 0.02), data.record("a", 0.04, device=data.INTEL), data.record("b", 0.01)]
    records.append(data.record("b", 0.08, tunables={"width": 2}))
    data.store(tmp_path / "run", records)
    kind, pairs = contrast(data.POCL, data.INTEL, [tmp_path], Filter(variant="a"))
    (pair,) = pairs
    assert kind == "devices" and pair.comparison and pair.comparison.verdict is Verdict.SLOWER
    assert pair.comparison.ratio.value == pytest.approx(0.5, rel=0.05)
    kind, pairs = contrast("a", "b", [tmp_path], Filter(device=data.POCL))
    (pair,) = pairs
    assert kind == "variants" and pair.comparison and pair.comparison.ratio.value == pytest.approx(2, rel=0.05)
    _, (pair,) = contrast("b", "a", [tmp_path], Filter(device=data.POCL))
    assert pair.comparison and pair.comparison.ratio.value == pytest.approx(0.5, rel=0.05)
    data.store(tmp_path / "more", [data.record("c", 0.04)])
    _, (pair,) = contrast("b", "c", [tmp_path], Filter(device=data.POCL))
    assert pair.comparison and pair.comparison.ratio.value == pytest.approx(0.25, rel=0.05)


def test_variants_may_differ_in_where_they_run_and_have_to_meet_somewhere(tmp_path: Path) -> None:
    here, there = data.record("b", 0.02), data.record("c", 0.02, device=data.INTEL)
    data.store(tmp_path / "run", [data.record("a", 0.02), data.record("a", 0.02, device=data.INTEL), here, there])
    _, pairs = contrast("a", "b", [tmp_path], Filter())
    assert [(pair.b is None, pair.lost) for pair in pairs] == [(True, False), (False, False)]
    with pytest.raises(UsageError, match="no case is on both sides, 'b' and 'c'"):
        contrast("b", "c", [tmp_path], Filter())


def test_of_settings_that_all_fail_the_first_stands_for_the_variant(tmp_path: Path) -> None:
    failed = [data.record("b", tunables={"group": n}, key=f"{n}", status=Status.CRASHED) for n in (2, 1)]
    data.store(tmp_path / "run", [data.record("a", 0.02), *failed])
    _, (pair,) = contrast("a", "b", [tmp_path], Filter())
    assert pair.b and pair.b.key == "2" and pair.comparison is None and pair.lost


def test_devices_may_differ_in_what_they_support(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = [data.record(name, 0.02, noise=1e-3) for name in "abc"]
    b = [data.record("a", 0.01, device=data.INTEL), data.record("b", device=data.INTEL, status=Status.UNSUPPORTED)]
    data.store(tmp_path / "run", [*a, *b])
    args = ("compare", data.POCL, data.INTEL, "--results", tmp_path)
    assert data.call(monkeypatch, *args) == 0
    data.store(tmp_path / "run", [*a, *b, data.record("c", device=data.INTEL, status=Status.CRASHED)])
    assert data.call(monkeypatch, *args) == 4


def test_a_side_that_is_nothing_is_named(tmp_path: Path) -> None:
    data.store(tmp_path / "run", [data.record("column_major", 0.02)])
    with pytest.raises(UsageError, match=r"'colum_major' is no run folder.*did you mean 'column_major'"):
        contrast("column_major", "colum_major", [tmp_path], Filter())
    with pytest.raises(UsageError, match=f"{tmp_path / 'none'}: no such folder"):
        contrast(str(tmp_path / "run"), str(tmp_path / "none"), [tmp_path], Filter())


def test_json_of_a_comparison_is_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.store(tmp_path / "run", [data.record("a", 0.02), data.record("b", 0.02, noise=0.0)])
    out = tmp_path / "out.json"
    data.call(monkeypatch, "compare", "a", "b", "--results", tmp_path, "--format", "json", "-o", out)
    assert {"case", "A record", "B record", "ratio"} <= set(json.loads(out.read_text())[0])


def test_what_is_wrong_now_is_not_hidden_by_an_earlier_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports keep the result, marked; a nightly job must not end well."""
    later = "2026-11-22T12:00:00+00:00"
    data.store(tmp_path / "a" / "1", [data.record("x")])
    data.store(tmp_path / "b" / "1", [data.record("x")])
    data.store(tmp_path / "b" / "2", [data.record("x", status=Status.WRONG, time=later)])
    assert data.call(monkeypatch, "compare", tmp_path / "a", tmp_path / "b") == 3


def test_equal_devices_of_two_hosts_are_compared_each_with_itself(tmp_path: Path) -> None:
    """Hosts count where one side has several of them; runs of one host each may be compared across hosts."""
    for side, factor in (("a", 1.0), ("b", 2.0)):
        for cores, seconds in ((8, 0.05), (64, 0.02)):
            host = {"cpu": "c", "cores": cores, "memory_bytes": 1 << 34}
            found = [data.record("x", factor * seconds, ceilings=None)]
            data.store(tmp_path / side / str(cores), found, data.environment(host=host))
    _, pairs = contrast(str(tmp_path / "a"), str(tmp_path / "b"), [], Filter())
    assert ["8-core host" in pair.name for pair in pairs] == [False, True] and "64-core host" in pairs[0].name
    assert all(pair.slower for pair in pairs)
    _, (across,) = contrast(str(tmp_path / "a" / "8"), str(tmp_path / "b" / "64"), [], Filter())
    assert across.comparison and "host" not in across.name
    _, variants = contrast("x", "x", [tmp_path / "a"], Filter())
    assert len(variants) == 2


def test_devices_meet_at_equal_profiles_and_settings(tmp_path: Path) -> None:
    made = [
        data.record("a", 0.02, device=device, profile=profile, tunables={"order": "rows"}, key=f"{number:016x}")
        for number, (device, profile) in enumerate(
            (device, profile) for device in (data.POCL, data.INTEL) for profile in (None, "hd7970")
        )
    ]
    data.store(tmp_path / "run", made)
    kind, pairs = contrast(data.POCL, data.INTEL, [tmp_path / "run"], Filter())
    assert kind == "devices" and all(pair.a and pair.b for pair in pairs)
    assert sorted("profile hd7970" in pair.name for pair in pairs) == [False, True]
    assert all("[order=rows]" in pair.name for pair in pairs)


def test_devices_meet_at_the_fastest_of_their_own_settings_where_no_other_is_equal(tmp_path: Path) -> None:
    """Tuned parameters differ: without that the variants that a profile tunes would be in no comparison of devices."""
    widths = {data.POCL: (1, 2, 4), data.INTEL: (2, 8, 16)}
    made = [
        data.record("a", 0.16 / width, device=device, tunables={"width": width}, key=f"{10 * n + width:016x}")
        for n, (device, all_widths) in enumerate(widths.items())
        for width in all_widths
    ]
    data.store(tmp_path / "run", made)
    _, pairs = contrast(data.POCL, data.INTEL, [tmp_path / "run"], Filter())
    equal, own = sorted(pairs, key=lambda pair: pair.own)
    assert (equal.own, own.own) == (False, True) and "width=2" in equal.name and "width" not in own.name
    assert own.comparison and own.comparison.ratio.value == pytest.approx(4, rel=0.05)
    assert equal.comparison and equal.comparison.ratio.value == pytest.approx(1, rel=0.05)


def test_a_setting_of_one_device_alone_is_not_lost(tmp_path: Path) -> None:
    made = [data.record("a", device=device, tunables={"width": 2}) for device in (data.POCL, data.INTEL)]
    made.append(data.record("a", device=data.INTEL, tunables={"width": 4}))
    data.store(tmp_path / "run", made)
    _, pairs = contrast(data.POCL, data.INTEL, [tmp_path / "run"], Filter())
    assert sorted((outcome(pair) == "new in B", pair.own) for pair in pairs) == [(False, False), (True, False)]


def test_equal_pairs_that_are_called_different_are_counted(tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("run00", "run01", "run02")]
    one, other = data.record("a", 0.02, noise=1e-3), data.record("b", 0.02, noise=1e-3)
    data.store(runs[0], [one, other])
    data.store(runs[1], [again(one, 1.0), again(other, 1.5)])
    data.store(runs[2], [again(one, 1.0).model_copy(update={"status": Status.CONTENDED}), again(other, 1.5)])
    judged = equal_pairs.pairs(runs)
    assert [pair["runs"] for pair in judged] == [["run00", "run01"]] * 2 + [["run01", "run02"]] * 2
    (row,) = equal_pairs.summary(judged)
    counts = {name: row[name] for name in ("device", "pairs", "contended", "different", "same", "ambiguous", "held")}
    assert counts == {
        "device": data.POCL, "pairs": 3, "contended": 1, "different": 1, "same": 2, "ambiguous": 0, "held": 2,
    }  # fmt: skip
    assert row["share_different"] == pytest.approx([1 / 3, 0.0615, 0.7923], abs=1e-3), "Wilson's interval of 1 in 3"
    assert row["most_different_in_a_step"] == 1
    assert "| 3 | 1 | 1 = 33.3% (6.1% to 79.2%) | 2 = 66.7%" in equal_pairs.table([row])


def test_the_luckiest_of_equal_settings_is_rarely_called_faster(tmp_path: Path) -> None:
    called, logs = [], []
    for number, records in enumerate(one_and_the_best_of_twenty(2)):
        run = data.store(tmp_path / str(number), records).folder
        _, (pair,) = contrast("other", "tuned", [run], Filter())
        assert pair.comparison and pair.b and pair.b.identity.variant == "tuned"
        called.append(pair.comparison.verdict)
        logs.append(np.log(pair.comparison.ratio.value))
    assert abs(np.mean(logs)) < 3 * np.std(logs) / np.sqrt(60), "the ratio is not that of the luckiest"
    assert len(called) == 60 and sum(each in (Verdict.FASTER, Verdict.SLOWER) for each in called) <= 3


def test_of_several_settings_the_fastest_stands_for_the_variant(tmp_path: Path) -> None:
    records = [data.record("a", 0.04, noise=1e-3)] + [
        data.record("b", 0.01 * group, tunables={"group": group}, key=f"{group}", noise=1e-3) for group in (3, 1, 2)
    ]
    contended = data.record("b", 0.001, tunables={"group": 9}, key="9", status=Status.CONTENDED)
    run = data.store(tmp_path, [*records, contended]).folder
    _, (pair,) = contrast("a", "b", [run], Filter())
    assert pair.b and pair.b.key == "1"
    assert pair.comparison and pair.comparison.ratio.value == pytest.approx(4, rel=0.01)
