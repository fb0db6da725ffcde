"""Exports: each is read by the tool that it is for, where that is installed, and says what the run says."""

from __future__ import annotations

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_data as data
import yaml

from perfport.interop.exports import MOST_SAMPLES, OF_MANY, OF_ONE_RUN, export, measured, samples
from perfport.model.errors import UsageError
from perfport.store.results import Run

GBENCH = Path("/usr/share/benchmark/compare.py")  # of Debian's libbenchmark-tools
DAYS = 20


def run(folder: Path, slower: float = 1.0, day: int = 1) -> Run:
    """A stored run: the demonstration's ladder on two devices, and one case of each failed status."""
    records = [*data.ladder(data.POCL, slower), *data.ladder(data.INTEL), *data.every_status()]
    started = f"2026-11-{day:02}T12:00:00+00:00"
    environment = data.environment((data.POCL, data.INTEL), run=folder.name, started=started)
    return data.store(folder, records, environment)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Two runs; the second is 10 % slower on one device."""
    folder = tmp_path_factory.mktemp("runs")
    return run(folder / "before"), run(folder / "after", 1.1, 2)


@pytest.fixture(scope="module")
def files(runs: tuple[Run, Run], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Both runs in each format that holds one."""
    folder = tmp_path_factory.mktemp("exports")
    return {
        form: [export([one], form, folder / f"{form}-{name}.json")[0] for one, name in zip(runs, "ab", strict=True)]
        for form in OF_ONE_RUN
    }


def call(*command: object, **environment: str) -> str:
    """Run a tool; its output."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_cases_without_a_result_are_left_out(runs: tuple[Run, Run]) -> None:
    found = measured(runs[0])
    assert len(found) == 2 * 9
    assert all(record.status.measured for record in found.values())
    assert "demo/rows/quick/row_major@opencl:pocl:0" in found and not any("/failing/" in name for name in found)


def test_many_samples_are_thinned_to_order_statistics() -> None:
    record = data.record("many", n=1000)
    assert record.timing
    thinned, whole = samples(record), sorted(record.timing.span)
    assert len(thinned) == MOST_SAMPLES
    assert np.allclose([thinned[0], thinned[-1]], [whole[0], whole[-1]], rtol=1e-8)
    assert np.isclose(statistics.median(thinned), statistics.median(whole), rtol=1e-3)
    few = data.record("few", n=9)
    assert few.timing and np.allclose(samples(few), few.timing.span, rtol=1e-8)
    wall = data.record("host", clock="wall")
    assert wall.timing and np.allclose(samples(wall), wall.timing.wall, rtol=1e-8)


def test_pytest_benchmark_compares_the_files(files: dict[str, list[Path]]) -> None:
    pytest.importorskip("pytest_benchmark")
    listed = files["pytest-benchmark"]
    out = call(sys.executable, "-m", "pytest_benchmark", "compare", *listed, "--group-by=name", "--columns=median")
    assert out.count("demo/rows/quick/row_major@opencl:pocl:0") == 3  # the group's title and a line for each file
    content = json.loads(listed[0].read_text())
    for entry in content["benchmarks"]:
        assert {"key", "provenance", "median_low", "problem_bound"} <= set(entry["extra_info"])
        assert len(json.dumps(entry, indent=4)) < 10_000


def test_the_columns_of_pytest_benchmark_are_its_own(files: dict[str, list[Path]]) -> None:
    stats = pytest.importorskip("pytest_benchmark.stats").Stats()
    entry = json.loads(files["pytest-benchmark"][0].read_text())["benchmarks"][0]["stats"]
    for value in entry["data"]:
        stats.update(value)
    for name in ("min", "max", "mean", "stddev", "median", "ops", "total", "rounds"):
        assert np.isclose(entry[name], getattr(stats, name)), name


def test_pyperf_reads_and_compares_the_files(files: dict[str, list[Path]], runs: tuple[Run, Run]) -> None:
    pyperf = pytest.importorskip("pyperf")
    suite = pyperf.BenchmarkSuite.load(str(files["pyperf"][0]))
    found = measured(runs[0])
    assert set(suite.get_benchmark_names()) == set(found)
    for bench in suite:
        timing = found[bench.get_name()].timing
        assert timing and np.isclose(bench.median(), timing.summary[timing.rank].median)
        assert bench.get_unit() == "second"
    out = call(sys.executable, "-m", "pyperf", "compare_to", *files["pyperf"], "--table")
    line = next(line for line in out.splitlines() if "/row_major@opencl:pocl:0" in line)
    assert "slower" in line


def test_google_benchmark_compares_the_files(files: dict[str, list[Path]]) -> None:
    if not GBENCH.exists():
        pytest.skip("compare.py of Google Benchmark is not installed (apt-get install libbenchmark-tools)")
    out = call(sys.executable, GBENCH, "--no-color", "benchmarks", *files["google-benchmark"])
    line = next(line for line in out.splitlines() if line.startswith("demo/rows/quick/row_major@opencl:pocl:0_pvalue"))
    assert "U Test, Repetitions: 15 vs 15" in line and float(line.split()[1]) < 0.05


def test_google_benchmark_has_the_documented_fields(files: dict[str, list[Path]], runs: tuple[Run, Run]) -> None:
    content = json.loads(files["google-benchmark"][0].read_text())
    assert {"date", "num_cpus", "library_build_type"} <= set(content["context"])
    rows = [row for row in content["benchmarks"] if row["name"] == "demo/rows/quick/row_major@opencl:pocl:0"]
    assert [row["repetition_index"] for row in rows] == list(range(15))
    timing = measured(runs[0])[rows[0]["name"]].timing
    assert timing and np.allclose([row["real_time"] / 1e9 for row in rows], timing.span)
    assert all(row["run_type"] == "iteration" and row["time_unit"] == "ns" for row in rows)


def test_smaller_is_better_has_the_fields_of_the_action(files: dict[str, list[Path]], runs: tuple[Run, Run]) -> None:
    entries = json.loads(files["customSmallerIsBetter"][0].read_text())
    assert [set(entry) for entry in entries] == [{"name", "unit", "value", "range", "extra"}] * len(entries)
    found = measured(runs[0])
    for entry in entries:
        timing = found[entry["name"]].timing
        assert timing and entry["unit"] == "ms"
        assert np.isclose(entry["value"], 1e3 * timing.summary[timing.rank].median)


def nightly(folder: Path) -> list[Run]:
    """Runs of so many days; from the eleventh on, one device is 10 % slower."""
    return [run(folder / f"night-{day:02}", 1.1 if day > DAYS // 2 else 1.0, day) for day in range(1, DAYS + 1)]


def test_otava_imports_the_table(tmp_path: Path) -> None:
    found = nightly(tmp_path / "runs")
    table, config = export(found[::-1], "otava", tmp_path / "history.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["run"] for row in rows] == [one.name for one in found], "in the order of time"
    name = "demo/rows/quick/row_major@opencl:pocl:0"
    metrics = yaml.safe_load(config.read_text())["tests"]["demo"]["metrics"]
    assert metrics[name] == {"column": name, "direction": -1} and set(metrics) == set(measured(found[0]))
    program = os.environ.get("PERFPORT_OTAVA") or shutil.which("otava")
    if program is None:
        pytest.skip("Apache Otava is not installed; PERFPORT_OTAVA may name the one of another environment")
    out = call(program, "analyze", "demo", "--since", "2026-10-01", OTAVA_CONFIG=str(config))
    assert name in out and "+10." in out, out


def test_otava_gets_the_cases_of_all_runs_only(tmp_path: Path) -> None:
    both, once = data.record("both", 0.02), data.record("once", 0.03)
    runs = [data.store(tmp_path / str(n), made) for n, made in enumerate(([both], [both, once], [once, both]))]
    table, _ = export(runs, "otava", tmp_path / "history.csv")
    name = "demo/rows/quick/both@opencl:pocl:0"
    rows = list(csv.DictReader(table.open()))
    assert list(rows[0]) == ["time", "run", "commit", name]
    assert both.timing and {row[name] for row in rows} == {str(both.timing.summary["span"].median)}
    with pytest.raises(UsageError, match="no measured case in common"):
        export([runs[0], data.store(tmp_path / "other", [once])], "otava", tmp_path / "other.csv")


def test_p3_has_its_columns_and_a_row_for_each_application(runs: tuple[Run, Run], tmp_path: Path) -> None:
    (table,) = export([runs[0]], "p3", tmp_path / "p3.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {"problem", "platform", "application", "fom", "arch eff", "app eff"} <= set(rows[0])
    ladder = [row for row in rows if row["problem"].startswith("demo/rows") and row["platform"] == data.POCL]
    assert "row_major" in {row["application"] for row in ladder}
    assert all(0 <= float(row["app eff"]) <= 1 for row in rows)


@pytest.mark.parametrize(("form", "complaint"), [("pyperv", "did you mean 'pyperf'?"), ("pyperf", "holds one run")])
def test_bad_formats_are_named(runs: tuple[Run, Run], tmp_path: Path, form: str, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        export(runs, form, tmp_path / "x")
    assert complaint in str(error.value) and not (tmp_path / "x").exists()


def test_nothing_measured_is_an_error(tmp_path: Path) -> None:
    empty = data.store(tmp_path / "empty", data.every_status())
    for form in (*OF_ONE_RUN, *OF_MANY):
        with pytest.raises(UsageError, match="no measured case"):
            export([empty], form, tmp_path / "x")


def test_command(runs: tuple[Run, Run], perfport: Any, tmp_path: Path) -> None:
    done = perfport("export", runs[0].folder, "--format", "otava", "-o", tmp_path / "new" / "t.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "new" / "t.csv"), str(tmp_path / "new" / "t.yaml")]
