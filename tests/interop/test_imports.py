"""Imports: other tools' samples stand beside a run's variants as peers, under the same bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_data as data

from perfport.interop.exports import export, measured
from perfport.interop.imports import FORMS, Source, adopt, template
from perfport.model.errors import UsageError
from perfport.report.parts.ladder import ladders_of
from perfport.store.collection import Collection
from perfport.store.ratios import compare
from perfport.store.results import Run

CASE = f"demo/rows/quick@{data.POCL}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A stored run of two devices and two problems."""
    records = [*data.ladder(data.POCL), *data.ladder(data.INTEL), data.record("copy", problem="copy")]
    return data.store(tmp_path_factory.mktemp("runs") / "own", records)


def google(folder: Path, seconds: list[float], unit: str = "us", **entry: Any) -> Path:
    """A file of Google Benchmark with the repetitions of one benchmark, and their mean."""
    scale = {"us": 1e6, "ms": 1e3}[unit]
    common = {"name": "theirs/100", "time_unit": unit, "iterations": 5, **entry}
    listed = [{**common, "run_type": "iteration", "real_time": s * scale, "cpu_time": 0.0} for s in seconds]
    listed.append({**common, "name": "theirs/100_mean", "run_type": "aggregate", "real_time": 1.0, "cpu_time": 0.0})
    path = folder / "theirs.json"
    path.write_text(json.dumps({"context": {}, "benchmarks": listed}))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_what_was_exported_reads_the_same(run: Run, form: str, tmp_path: Path) -> None:
    (file,) = export([run], form, tmp_path / "file.json")
    found, own = Source(file, form).samples(), measured(run)
    assert set(found) == set(own)
    for name, values in found.items():
        timing = own[name].timing
        assert timing and np.allclose(values, getattr(timing, timing.rank), rtol=1e-8)


def test_a_real_file_of_pyperf_is_read(tmp_path: Path) -> None:
    pyperf = pytest.importorskip("pyperf")
    bench = pyperf.Benchmark([pyperf.Run([0.1, 0.2], metadata={"name": "theirs"}, collect_metadata=False)])
    bench.dump(str(tmp_path / "file.json"))
    assert Source(tmp_path / "file.json", "pyperf").samples() == {"theirs": [0.1, 0.2]}


@pytest.mark.parametrize("unit", ["us", "ms"])
def test_an_imported_result_is_a_peer_under_the_same_bound(run: Run, unit: str, tmp_path: Path) -> None:
    seconds = [0.0301, 0.0300, 0.0302, 0.0300, 0.0299, 0.0300, 0.0301]
    (record,) = adopt(Source(google(tmp_path, seconds, unit), "google-benchmark"), run, CASE, tmp_path / "theirs", [])
    assert Run(tmp_path / "theirs").planned == 1, "the plan of the run beside it says nothing of this one"
    own = template(run, CASE)
    assert record.identity.variant == "theirs/100" and record.identity.role == "peer"
    assert record.timing and np.isclose(record.timing.summary["wall"].median, 0.03)
    assert record.metric and np.isclose(record.metric.value, data.WORK.flops / 0.03 / 1e9)
    assert record.problem_bound and own.problem_bound
    assert record.problem_bound.terms["fp32_fma"] == own.problem_bound.terms["fp32_fma"]
    assert "not verified" in record.title and record.verification is None and "theirs.json" in record.source
    both = Collection([run, Run(tmp_path / "theirs")])
    peers = [case for case in both.cases if case.record.key == record.key]
    assert [case.subject for case in peers] == [case.subject for case in both.cases if case.record.key == own.key]
    assert peers[0].site.name == data.POCL
    base = next(r for r in run.records if r.identity.variant == "row_major" and r.identity.devices == [data.POCL])
    found = compare(base, record)
    assert found and found.clock == "wall" and np.isclose(found.ratio.value, 1.1 * 0.060 / 0.03, rtol=0.02)


def test_every_command_on_results_takes_it(run: Run, perfport: Any, tmp_path: Path) -> None:
    file = google(tmp_path, [0.03] * 7)
    options = ["--format", "google-benchmark", "--beside", run.folder, "--as", CASE, "--out", tmp_path / "theirs"]
    done = perfport("import", file, *options)
    assert done.returncode == 0 and "1 peers of demo/rows/quick" in done.stdout, done.stderr
    done = perfport("table", run.folder, tmp_path / "theirs", "--device", data.POCL, "--format", "csv")
    assert done.returncode == 0 and "theirs/100" in done.stdout, done.stderr
    assert perfport("import", file, *options).returncode == 2, "the folder is taken"


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ("demo/rwos/quick@opencl:pocl:0", "did you mean"),
        ("demo/rows/quick", "several cases"),
        ("demo/rows@cuda:nvidia:0", "no measured case"),
    ],
)
def test_a_case_that_is_not_one_is_named(run: Run, case: str, complaint: str) -> None:
    with pytest.raises(UsageError, match="--as: ") as error:
        template(run, case)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("form", "text", "complaint"),
    [
        ("pyperf", "{", "not JSON"),
        ("pyperf", "[]", "not a file of pyperf"),
        ("google-benchmark", '{"benchmarks": [{"name": "a"}]}', "no samples of any benchmark"),
        ("google-benchmark", '{"benchmarks": []}', "no samples"),
        ("pytest-benchmark", '{"benchmarks": [{"fullname": "a", "stats": {}}]}', "no samples of any benchmark"),
        ("hyperfine", "{}", "is not one of"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, form: str, text: str, complaint: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UsageError) as error:
        Source(tmp_path / "x.json", form).samples()
    assert complaint in str(error.value)


def test_an_error_of_theirs_is_no_sample(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no samples"):
        Source(google(tmp_path, [0.1], error_occurred=True), "google-benchmark").samples()


def test_a_module_of_pytest_benchmark_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark")
    (tmp_path / "test_theirs.py").write_text("def test_it(benchmark): benchmark.pedantic(sum, ([1, 2],), rounds=5)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "--benchmark-json=o.json"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # no worker of xdist
    subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, check=True)
    found = Source(tmp_path / "o.json", "pytest-benchmark").samples()
    assert list(found) == ["test_theirs.py::test_it"] and len(found["test_theirs.py::test_it"]) == 5


@pytest.mark.parametrize(("cache", "least"), [(1 << 40, "warm"), (1, "cold"), (None, "warm")])
def test_data_that_do_not_fit_in_the_cache_are_bound_by_memory(
    run: Run, tmp_path: Path, cache: int | None, least: str
) -> None:
    """So that the share of an imported result is of the bound that its neighbours have."""
    devices = {id_: {**info, "last_level_cache_bytes": cache} for id_, info in run.environment["devices"].items()}
    beside = data.store(tmp_path / "run", run.records, {**run.environment, "devices": devices})
    source = Source(google(tmp_path, [0.03] * 7), "google-benchmark")
    (record,) = adopt(source, beside, CASE, tmp_path / "theirs", [])
    own = template(beside, CASE)
    assert record.timing and record.timing.cache == least and own.problem_bound and record.problem_bound
    assert ("dram" in "".join(record.problem_bound.terms)) is (least == "cold")
    same = record.problem_bound.seconds == own.problem_bound.seconds
    assert same or least == "warm", "what lies in DRAM for both has one bound"
    (told,) = adopt(source, beside, CASE, tmp_path / "told", [], cache="cold")
    assert told.timing and told.timing.cache == "cold" and told.problem_bound
    assert told.problem_bound.seconds == own.problem_bound.seconds
    with pytest.raises(UsageError, match="--cache: 'hot' is not one of cold, warm"):
        adopt(source, beside, CASE, tmp_path / "hot", [], cache="hot")


@pytest.mark.parametrize("form", FORMS)
def test_a_report_has_an_imported_peer_beside_the_variants(run: Run, form: str, tmp_path: Path) -> None:
    """With the speed-up over it on the clock that both have, from the file of each tool."""
    if form == "google-benchmark":
        file = google(tmp_path, [0.03] * 7)
    else:
        (file,) = export([data.store(tmp_path / "other", [data.record("theirs", 0.03)])], form, tmp_path / "f.json")
    adopt(Source(file, form), run, CASE, tmp_path / "theirs", [])
    ladders = [ladder for ladder in ladders_of([run, Run(tmp_path / "theirs")]) if ladder.peers]
    (ladder,) = (each for each in ladders if any("theirs" in row.record.identity.variant for row in each.peers))
    assert ladder.best and ladder.site == f"R1 {data.POCL}", "in the ladder of the run that it stands beside"
    (peer,) = (row for row in ladder.peers if "theirs" in row.record.identity.variant)
    found = ladder.best_over(peer)
    assert found and found.clock == "wall" and peer.record.problem_bound
    alone = ladders_of([Run(tmp_path / "theirs")])
    assert [each.site for each in alone] == [data.POCL], "without that run it stands alone"
