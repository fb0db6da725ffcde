"""An experiment on pytest's command line: one benchmark for each case, stored as a run like any other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfport.interop.exports import samples
from perfport.store.results import Run

pytestmark = pytest.mark.any_device

pytest.importorskip("pytest_benchmark")
ROOT = Path(__file__).parents[2]
FAULTY = Path(__file__).parents[1] / "data" / "faulty"
VARIANTS = ["good", "slow", "wrong", "raises", "needs_cuda", "missing_module"]


def experiment(folder: Path, name: str = "faults.yaml", **change: Any) -> Path:
    """Write an experiment over the faulty workload with the least of measurement."""
    content = {
        "name": "faults", "timeout": 20, "seed": 7,
        "measurement": {"min_samples": 3, "max_samples": 5, "time_budget": 0.05, "cache": "warm"},
        "experiments": [{"workload": "faulty", "problem": "double", "presets": ["tiny"], "variants": VARIANTS}],
        **change,
    }  # fmt: skip
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return path


def call(folder: Path, env: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder; the plugin comes by its entry point."""
    command = [sys.executable, "-m", "pytest", "--rootdir=.", "-p", "no:cacheprovider", *map(str, arguments)]
    alone = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}  # no worker of xdist
    return subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture(scope="module")
def done(opencl_infos: list[Any], no_ceilings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One session over every outcome: its folder and its completed process."""
    folder = tmp_path_factory.mktemp("bench")
    options = [f"--perfport-device={opencl_infos[0].id}", f"--perfport-workloads={FAULTY}", "--perfport-out=runs"]
    path = experiment(folder)
    return folder, call(folder, no_ceilings, path.name, "-rA", "--benchmark-json=out.json", *options)


def stored(folder: Path) -> Run:
    """The run folder of that session."""
    (found,) = (folder / "runs").iterdir()
    return Run(found)


def test_verification_is_the_outcome(done: Any) -> None:
    _, process = done
    assert process.returncode == 1, process.stdout + process.stderr
    lines = process.stdout.splitlines()
    for outcome, variant in (("PASSED", "good"), ("PASSED", "slow"), ("FAILED", "wrong"), ("FAILED", "raises")):
        assert any(line.startswith(f"{outcome} faults.yaml::faulty/double/tiny/{variant}@") for line in lines), variant
    assert "2 failed, 2 passed, 2 skipped" in lines[-1] and "warning" not in lines[-1]
    text = process.stdout
    assert re.search(r"wrong: y: \d+ of \d+ elements off .*max abs error", text)
    assert "crashed: planted: raised in launch" in text
    assert "unsupported: needs cuda" in text and "unavailable: Python module 'no_such_module_anywhere'" in text


def test_the_samples_are_the_data(done: Any) -> None:
    folder, _ = done
    run = stored(folder)
    by_key = {record.key: record for record in run.records}
    assert {record.identity.variant for record in run.records} == set(VARIANTS)
    benchmarks = json.loads((folder / "out.json").read_text())["benchmarks"]
    assert {entry["extra_info"]["variant"] for entry in benchmarks} == {"good", "slow"}
    for entry in benchmarks:
        record = by_key[entry["extra_info"]["key"]]
        assert entry["stats"]["data"] == samples(record)
        assert entry["stats"]["iterations"] == 1 and entry["options"]["timer"].endswith("device_time")
        assert entry["extra_info"]["provenance"] == "measured" and entry["extra_info"]["run"] == run.folder.name
        assert len(json.dumps(entry, indent=4)) < 10_000


def test_pytest_benchmark_compares_sessions(done: Any, opencl_infos: list[Any], no_ceilings: dict[str, str]) -> None:
    folder, _ = done
    options = [f"--perfport-device={opencl_infos[0].id}", f"--perfport-workloads={FAULTY}", "--perfport-out=again"]
    chosen = call(folder, no_ceilings, "faults.yaml", "-k", "good", "--benchmark-json=again.json", *options)
    assert chosen.returncode == 0 and "1 passed, 5 deselected" in chosen.stdout, chosen.stdout
    (again,) = (folder / "again").iterdir()
    assert [record.identity.variant for record in Run(again).records] == ["good"], "deselected cases ran"
    command = [sys.executable, "-m", "pytest_benchmark", "compare", "out.json", "again.json", "--columns=median"]
    compared = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    name = f"faulty/double/tiny/good@{opencl_infos[0].id}"
    assert f"{name} (out)" in compared and f"{name} (again)" in compared


def test_only_named_files_are_collected(no_ceilings: dict[str, str], tmp_path: Path) -> None:
    experiment(tmp_path, "not_named.yaml", devices=["nowhere"])
    (tmp_path / "other.yaml").write_text("experiment: somebody else's\n")
    (tmp_path / "test_other.py").write_text("import sys\ndef test(): assert 'perfport.run.run' not in sys.modules\n")
    done = call(tmp_path, no_ceilings, "-q", ".")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    done = call(tmp_path, no_ceilings, "-q", "other.yaml")
    assert "ERROR: not found: " in done.stderr, done.stdout
    options = ["-q", "-o", "perfport_experiments=not_*.yaml", f"--perfport-workloads={FAULTY}"]
    done = call(tmp_path, no_ceilings, *options, ".")
    assert done.returncode == 2 and "no device matches 'nowhere'" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("change", "options", "complaint"),
    [
        ({"measurment": {}}, [], "measurment: unknown key (did you mean 'measurement'?)"),
        ({"executor": {"kind": "slurm", "partitions": {"a": {"devices": ["cpu"]}}}}, [], "use perfport run"),
        ({}, ["-p", "no:benchmark"], "experiments need pytest-benchmark"),
        ({}, ["--perfport-seed=-4"], "--perfport-seed: expected an integer from 0 to 2147483647, got -4"),
        ({"report": {"path": "faults.yaml/r.md"}}, [], "report.path: faults.yaml/r.md cannot be written"),
    ],
)
def test_what_cannot_be_collected_says_why(
    no_ceilings: dict[str, str], tmp_path: Path, change: dict[str, Any], options: list[str], complaint: str
) -> None:
    path = experiment(tmp_path, **change)
    done = call(tmp_path, no_ceilings, path.name, f"--perfport-workloads={FAULTY}", *options)
    assert done.returncode == 2 and complaint in done.stdout, done.stdout
    assert "Traceback" not in done.stdout


def test_a_session_without_the_other_plugins_of_development_warns_of_nothing() -> None:
    """As with the extra `bench` alone; keys of pyproject.toml that only pytest-timeout knows would be warned of."""
    without = [part for name in ("timeout", "xdist", "hypothesispytest") for part in ("-p", f"no:{name}")]
    done = call(
        ROOT, dict(os.environ), *without, "-W", "error::pytest.PytestConfigWarning", "--collect-only", "examples"
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
