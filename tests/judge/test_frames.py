"""Results as DataFrames: the same rows as in tables, typed, with units, and linked by their keys."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import dataframes_page
import pandas as pd
import pytest
import report_data as data

import perfport
from perfport.judge.claims import Claim, Verdict, evaluate
from perfport.judge.frames import SCHEMA, Results
from perfport.measure.intervals import summarise
from perfport.model.errors import UsageError
from perfport.model.record import Instance, Record, Status
from perfport.report.parts.ladder import collected
from perfport.store.collection import Collection
from perfport.store.columns import LADDER
from perfport.store.ratios import is_measured, is_ranked, time_of

ROOT = Path(__file__).parents[2]


def on_instances() -> Record:
    """A case that was timed on two instances of its inputs."""
    made = data.record("on_instances", 0.02, problem="instances", inputs={"a": 1, "b": 1001}, clock="span", n=3)
    assert made.timing
    for name, factor in (("a", 0.5), ("b", 2.0)):  # the geometric mean of these is the case's sample
        samples = [factor * value for value in made.timing.span]
        made.timing.instances[name] = Instance(samples=samples, summary=summarise(samples))
    return made


LEDGER = {
    "demo": [
        Claim.model_validate(
            {"id": name, "statement": "Faster.", "source": "nowhere", "problem": "rows", "compare": "speedup",
             "subject": {"variant": subject}, "reference": {"variant": "row_major"}, "at_least": 1.5}
        )
        for name, subject in (("layout", "column_major"), ("never", "image"))
    ]
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored run with every status, role, clock and precision class."""
    return data.store(tmp_path_factory.mktemp("results") / "demo", [*data.demonstration(), on_instances()]).folder


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return Results(perfport.load(folder).collection, LEDGER)


def records(results: Results) -> dict[str, Record]:
    return {case.record.key: case.record for case in results.collection.cases}


def loaded(folder: Path, *made: Record, **environment: Any) -> Results:
    """Results of a run of these records."""
    return perfport.load(data.store(folder, list(made), data.environment(**environment)).folder)


def test_the_page_shows_what_its_cells_print_and_what_columns_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pd.option_context("display.width", 120, "display.max_columns", 12, "display.precision", 3):
        page = dataframes_page.PAGE.read_text()
        assert dataframes_page.ran(page) == page, "python tests/support/dataframes_page.py writes it anew"
    assert all(f"### `{name}`" in page and f"[`{name}`](#{name})" in page for name in SCHEMA)


@pytest.mark.parametrize("name", SCHEMA)
@pytest.mark.parametrize("empty", [False, True])
def test_columns_have_the_types_and_units_of_the_schema(
    results: Results, tmp_path: Path, name: str, empty: bool
) -> None:
    found = loaded(tmp_path / "run", ceilings={}, probes=[]) if empty else results
    frame = getattr(found, name)
    assert frame is getattr(found, name), "made once"
    assert len(frame) == 0 if empty else len(frame) > 0
    assert list(frame.columns[: len(SCHEMA[name])]) == list(SCHEMA[name])
    for column, stated in SCHEMA[name].items():
        dtype = frame[column].dtype
        if stated.dtype == "time":
            assert str(dtype).startswith("datetime64[") and str(dtype.tz) == "UTC"
        else:
            assert str(dtype) == stated.dtype, column
        assert stated.meaning and (stated.unit or stated.dtype != "float64"), column
    assert frame.attrs["units"] == {column: stated.unit for column, stated in SCHEMA[name].items() if stated.unit}


def test_every_case_has_a_row_with_what_its_record_says(results: Results) -> None:
    known = records(results)
    assert set(results.cases["key"]) == set(known) and results.cases["key"].is_unique
    assert set(results.cases["run"]) == {"demo"} and set(results.cases["provenance"]) == {"measured"}
    for row in results.cases.itertuples():
        record = known[row.key]
        assert (row.variant, row.status, row.role) == (record.identity.variant, record.status, record.identity.role)
        assert (row.profile, row.chip) == ("native", "NVIDIA H200" if row.device == data.GPU else "AMD EPYC 9999")
        assert json.loads(row.parameters) == record.identity.parameters
        assert row.time == pd.Timestamp(record.time) and row.commit == "0123abcd" and row.dirty
        assert row.ranked == is_ranked(record)
        numbers = [row.seconds, row.seconds_low, row.value, row.problem_share, row.variant_bound, row.useful_flops]
        if not is_measured(record):
            assert all(pd.isna(number) for number in numbers) and pd.isna(row.clock), record.status
            assert record.failure is None or row.reason == record.failure.reason
            continue
        assert record.timing and record.metric and record.work
        summary = record.timing.summary[record.timing.rank]
        assert (row.seconds, row.clock, row.samples) == (time_of(record), record.timing.rank, summary.n)
        assert (row.seconds_low, row.seconds_high) == (summary.ci_low, summary.ci_high)
        assert (row.value, row.value_low, row.unit) == (record.metric.value, record.metric.low, record.metric.unit)
        assert row.useful_read_bytes == record.work.read_bytes and row.verified
        if record.problem_bound and record.variant_bound:
            share = record.variant_bound.share
            assert (row.problem_bound, row.problem_share) == (
                record.problem_bound.seconds, record.problem_bound.share.value,
            )  # fmt: skip
            assert (row.variant_share_low, row.variant_share_high) == (share.low, share.high)
    wrong = results.cases[results.cases["status"] == "wrong"].iloc[0]
    assert not wrong["verified"] and wrong["relative_l2"] == 0.5 and "relative L2 0.5" in wrong["reason"]


def test_ladders_of_reports_are_the_rows_in_their_order(results: Results) -> None:
    ladders = collected(results.collection)
    assert [row.record.key for ladder in ladders for row in ladder.rows] == list(results.cases["key"])
    assert {ladder.best.record.key for ladder in ladders if ladder.best} == set(
        results.cases.loc[results.cases["best"], "key"]
    )
    grouped = results.cases.groupby(LADDER, observed=True)
    assert len(grouped) == len(ladders) and grouped["best"].sum().max() == 1
    assert (results.cases["role"].cat.categories == ["rung", "control", "beyond", "peer"]).all()


def test_order_of_rows(tmp_path: Path) -> None:
    """By problem, size, precision, device; then by role, rung and name."""
    expected = [
        ("argmin", "quick", 4, "fp32", data.POCL, "only"), ("rows", "tiny", 4, "fp32", data.POCL, "only"),
        ("rows", "quick", 9, "fp32", data.INTEL, "z"), ("rows", "quick", 9, "fp32", data.INTEL, "b"),
        ("rows", "quick", 9, "fp32", data.INTEL, "arm"), ("rows", "quick", 9, "fp32", data.INTEL, "library"),
        ("rows", "quick", 9, "fp32", data.POCL, "z"), ("rows", "quick", 9, "bf16", data.INTEL, "z"),
        ("rows", "quick", 10, "fp32", data.INTEL, "z"), ("rows", "large", 1, "fp32", data.INTEL, "z"),
        ("rows", None, 2, "fp32", data.INTEL, "z"),
    ]  # fmt: skip
    role = {"z": ("rung", 1), "b": ("rung", 2), "arm": ("control", 1), "library": ("peer", 0), "only": ("rung", 1)}
    made = [
        data.record(
            name, problem=problem, preset=preset, parameters={"n": n}, precision=precision, device=device,
            role=role[name][0], rung=role[name][1], key=str(number),
        )
        for number, (problem, preset, n, precision, device, name) in reversed(list(enumerate(expected)))
    ]  # fmt: skip
    assert list(loaded(tmp_path / "run", *made).cases["key"]) == [str(number) for number in range(len(expected))]


def test_the_best_is_ranked_and_no_peer(tmp_path: Path) -> None:
    made = [
        data.record("slow", 0.03), data.record("fast", 0.02), data.record("host", 0.025, clock="wall"),
        data.record("library", 0.01, role="peer"), data.record("busy", 0.015, status=Status.CONTENDED),
    ]  # fmt: skip
    found = loaded(tmp_path / "run", *made).cases
    assert list(found.loc[found["best"], "variant"]) == ["fast"]
    assert set(found.loc[~found["ranked"], "variant"]) == {"busy"}


def test_parameters_and_tunables_have_a_column_each(tmp_path: Path) -> None:
    one = {"points": 7, "sparsity": 0.5, "training": True, "layout": "nchw", "classes": [3, 8], "mixed": 1}
    other = {"mixed": 2.5, "points": 8}
    found = loaded(
        tmp_path / "run",
        data.record("a", parameters=one, tunables={"group": 64, "either": 1}),
        data.record("a", parameters=dict(reversed(one.items())), tunables={"group": 32, "either": "all"}, key="1"),
        data.record("b", parameters=other, key="2"),
    ).cases
    first, last = found[found["key"] != "2"], found[found["key"] == "2"].iloc[0]
    assert first["parameters"].nunique() == 1 and json.loads(first["parameters"].iloc[0]) == one
    types = {name: str(found[f"parameters.{name}"].dtype) for name in one}
    assert types == {
        "points": "Int64", "sparsity": "float64", "training": "boolean", "layout": "category", "classes": "category",
        "mixed": "float64",
    }  # fmt: skip
    assert first["parameters.classes"].iloc[0] == "[3, 8]" and last["parameters.mixed"] == 2.5
    assert all(pd.isna(last[f"parameters.{name}"]) for name in ("training", "layout", "classes", "sparsity"))
    assert pd.isna(last["tunables.group"])
    assert list(first["tunables.group"]) == [64, 32] and list(first["tunables.either"]) == ["1", "all"]


def test_samples_lead_to_their_cases(results: Results) -> None:
    joined = results.samples.merge(results.cases, on=["run", "key"], suffixes=("", "_median"), how="left")
    assert len(joined) == len(results.samples) and joined["status"].isin(["ok", "contended"]).all()
    known = records(results)
    stored = [sum(len(getattr(r.timing, c)) for c in r.timing.summary) for r in known.values() if is_measured(r)]  # type: ignore[union-attr]
    assert len(joined) == sum(stored)
    medians = joined[joined["clock"] == joined["clock_median"]].groupby("key")["seconds"].median()
    cases = results.cases.dropna(subset="seconds").set_index("key")
    pd.testing.assert_series_equal(medians, cases["seconds"].sort_index(), check_names=False)


def test_samples_have_the_round_and_worker_that_took_them(tmp_path: Path) -> None:
    made = data.record("a", 0.02, n=4, clock="span")
    assert made.timing
    made.timing.rounds, made.timing.workers = [0, 1, 0, 1], [0, 0, 1, 1]
    made.timing.busy = [0.01, 0.011]  # in executions of their own
    made.timing.summary["busy"] = summarise(made.timing.busy)
    found = loaded(tmp_path / "run", made, data.record("b", 0.02, n=2)).samples.set_index("key")
    own = found.loc[made.key]
    span, busy = own[own["clock"] == "span"], own[own["clock"] == "busy"]
    assert list(span["round"]) == [0, 1, 0, 1] and list(span["worker"]) == [0, 0, 1, 1]
    assert list(span["seconds"]) == made.timing.span and list(busy["seconds"]) == made.timing.busy
    assert busy["round"].isna().all() and busy["worker"].isna().all() and list(busy["sample"]) == [0, 1]
    assert (found.drop(made.key)["worker"] == 0).all()


def test_instances_stand_apart_and_their_means_are_the_samples(results: Results) -> None:
    found, key = results.instances, on_instances().key
    assert set(found["key"]) == {key} and set(zip(found["instance"], found["seed"], strict=True)) == {
        ("a", 1), ("b", 1001),
    }  # fmt: skip
    one, other = (found[found["instance"] == name].set_index("round")["seconds"] for name in "ab")
    own = results.samples[results.samples["key"] == key].set_index("round")["seconds"]
    pd.testing.assert_series_equal((one * other) ** 0.5, own)
    assert (one * 4 == other).all() and list(found["sample"]) == [0, 1, 2] * 2
    case = results.cases.set_index("key").loc[key]
    assert json.loads(case["inputs"]) == {"a": 1, "b": 1001} and set(results.cases["inputs"]) > {'{"a": 0}'}


def test_several_devices_have_rows_of_their_own_without_bounds(tmp_path: Path) -> None:
    made = [data.record("a", 0.02 / n, tunables={"devices": n}, key=str(n)) for n in (1, 2)]
    cases = loaded(tmp_path / "run", *made).cases.set_index("devices")
    assert set(cases["device"]) == {data.POCL} and cases["best"].all()
    assert cases["problem_share"].notna()[1] and cases.loc[2].filter(regex="_(bound|binding|share)").isna().all()


def test_what_failed_later_says_so(tmp_path: Path) -> None:
    data.store(tmp_path / "1", [data.record("a", 0.02), data.record("b", 0.02)])
    data.store(tmp_path / "2", [data.record("a", status=Status.CRASHED, time="2026-11-30T12:00:00+00:00")])
    cases = perfport.load(tmp_path).cases.set_index("variant")
    assert (
        cases.loc["a", "status"] == "ok" and cases.loc["a", "later"] == "crashed" and pd.isna(cases.loc["b", "later"])
    )


def test_ceilings_as_swept_and_as_probed(results: Results) -> None:
    found = results.ceilings
    assert set(found["device"]) == set(results.cases["device"]) and set(found["run"]) == set(results.cases["run"])
    swept = found[found["taken"] == "sweep"].set_index(["device", "ceiling"])["value"]
    assert swept.to_dict() == {
        (id_, name): value
        for id_, values in ((data.POCL, data.CEILINGS), (data.INTEL, data.CEILINGS), (data.GPU, data.GPU_CEILINGS))
        for name, value in values.items()
    }
    probed = found[found["taken"] == "after"].set_index("ceiling")
    assert set(probed["device"]) == {data.POCL} and probed.loc["dram_read", "value"] == 0.97 * 40e9
    assert probed.loc["dram_read", "unit"] == "B/s" and probed.loc["launch_latency", "unit"] == "s"
    assert probed.loc["dram_read", "time"] == pd.Timestamp("2026-11-21T12:00:00+00:00")
    shape = found["shape"].dropna().iloc[0]
    assert shape == '{"chunked": 1, "width": 16}'


def test_each_ceiling_says_when_it_was_taken(tmp_path: Path) -> None:
    probes = [data.probe(data.POCL, when, 1.0) for when in ("after", "again", "before")]
    taken = loaded(tmp_path / "run", probes=probes).ceilings["taken"]
    assert list(taken.cat.categories) == ["sweep", "before", "again", "after"] and not taken.isna().any()


def test_claims_and_their_evidence(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = {(j.claim.id, results.collection.label(j.site)): j for j in evaluate(LEDGER, results.collection)}
    assert len(results.claims) == len(judged) == 6
    for row in results.claims.itertuples():
        judgement = judged[row.claim, row.device]
        assert (row.verdict, row.reason, row.settings) == (
            judgement.verdict.value, judgement.reason, len(judgement.evidence),
        )  # fmt: skip
        assert row.at_least == 1.5 and pd.isna(row.at_most)
    assert list(results.claims["verdict"].cat.categories) == ["holds", "not measured"]
    both = results.claims.merge(results.evidence, on=["workload", "claim", "device"])
    assert set(both["claim"]) == {"layout"} and (both["settings"] == 1).all()
    seconds = results.cases.set_index(["device", "key"])["seconds"]
    for row in both.itertuples():
        sides = [seconds[row.device, key] for key in row.records.split()]
        assert sides == [row.subject_value, row.against_value] and row.low <= row.value <= row.high
        assert (row.setting_verdict, row.subject_unit) == (Verdict.HOLDS, "s")
        (held,) = judged[row.claim, row.device].evidence
        assert (row.value, row.low, row.high) == (held.interval.value, held.interval.low, held.interval.high)

    own = tmp_path / "workloads" / "demo"
    own.mkdir(parents=True)
    listed = [claim.model_dump(exclude_none=True, exclude_defaults=True) for claim in LEDGER["demo"]]
    (own / "claims.yaml").write_text(json.dumps(listed))
    run = results.collection.runs[0].folder
    args = ("claims", run, "--workloads", own.parent, "--workload", "demo", "--format", "csv")
    assert data.call(monkeypatch, *args) == 0
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(printed[0]) == list(dict.fromkeys([*SCHEMA["claims"], *SCHEMA["evidence"]]))
    numbers = {(row["claim"], row["device"]): row["value"] for row in printed}
    assert numbers == dict.fromkeys(judged, "") | {(row.claim, row.device): str(row.value) for row in both.itertuples()}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_table_s_numbers_are_those_of_the_frames(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    results = perfport.load(folder)
    assert data.call(monkeypatch, "table", folder, "--format", form) == 0
    out = capsys.readouterr().out
    printed = json.loads(out) if form == "json" else list(csv.DictReader(io.StringIO(out)))
    expected = [
        *results.cases[list(SCHEMA["cases"])].to_dict("records"), *results.published.to_dict("records"),
    ]  # fmt: skip
    assert len(printed) == len(expected) and len(results.published) == 3
    for shown, wanted in zip(printed, expected, strict=True):
        for name, value in wanted.items():
            missing = pd.isna(value)
            value = value.isoformat() if isinstance(value, pd.Timestamp) else value
            if form == "csv":
                assert shown[name] == ("" if missing else str(value)), name
            else:
                assert shown[name] is None if missing else shown[name] == value, name


def test_published_figures_are_a_frame_of_their_own(results: Results) -> None:
    assert "published" not in set(results.cases["provenance"])
    found = results.published
    assert set(found["provenance"]) == {"published"} and list(found["value"]) == [33.7, 115.6, 9.0]
    assert list(found["chip"]) == ["AMD Radeon HD 5870"] * 2 + ["no_such_device"]
    assert found["stated_share"].iloc[0] == 0.15 and found["range_end"].isna().all()


def test_paths(folder: Path) -> None:
    again = folder.parent / ".." / folder.parent.name
    for paths in (folder, str(folder), folder.parent, [str(folder), again], iter([folder])):
        found = perfport.load(paths)
        assert len(found.collection.runs) == 1 and len(found.cases) == len(data.demonstration()) + 1
    assert repr(found) == f"<Results: {len(found.cases)} cases on 3 devices from 1 runs>"


@pytest.mark.parametrize("name", ["absent", "file", "empty", "", None])
def test_bad_paths_are_usage_errors(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "file").write_text("no run")
    (tmp_path / "empty").mkdir()
    complaint = {None: "no path given", "": "no results here"}.get(name, f"{name}: no results here")
    with pytest.raises(UsageError, match=complaint):
        perfport.load([] if name is None else tmp_path / name)


def test_runs_in_folders_of_one_name_stay_apart(tmp_path: Path) -> None:
    one = data.record("a", 0.02)
    for name, chip in (("1", "one"), ("2", "other")):
        data.store(tmp_path / name / "run", [one], data.environment(devices={data.POCL: data.device(data.POCL, chip)}))
    data.store(tmp_path / "3", [data.record("b", 0.02)])
    found = Results.load([tmp_path / "1", tmp_path / "2", tmp_path / "3"])
    assert set(found.cases["run"]) == {str(tmp_path / "1" / "run"), str(tmp_path / "2" / "run"), "3"}
    joined = found.samples.merge(found.cases, on=["run", "key"])
    assert len(joined) == len(found.samples) and not found.cases.duplicated(["device", "key"]).any()
    assert set(found.ceilings["device"]) >= {f"{data.POCL} (one)", f"{data.POCL} (other)"}


def test_importing_the_package_is_light() -> None:
    script = "import sys, perfport; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"pandas", "numpy", "pydantic", "yaml"} & set(done.stdout.split())


def test_frames_of_no_case_of_a_collection_can_be_made() -> None:
    assert len(Results(Collection([])).cases) == 0
