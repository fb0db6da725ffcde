"""Commands that run kernels: mistakes in experiments are named, runs leave what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Cli, experiment

from perfport.store.results import Run


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"devcies": ["all"]}, ["devcies: unknown key", "did you mean 'devices'", "allowed: name, title, devices"]),
        ({"study": {"varaints": ["image"]}}, ["experiments[0].varaints: unknown key", "'variants'"]),
        ({"measurement": {"max_nose": 0.1}}, ["measurement.max_nose: unknown key", "'max_noise'", "time_budget"]),
        ({"study": {"measurement": {"max_nose": 0.1}}}, ["experiments[0].measurement.max_nose", "'max_noise'"]),
        ({"measurement": {"min_samples": "many"}}, ["measurement.min_samples", "integer", "'many'"]),
        ({"measurement": {"time_budget": -1}}, ["measurement.time_budget", "greater than 0", "-1"]),
        ({"measurement": {"cache": "tepid"}}, ["measurement.cache", "'cold' or 'warm'", "tepid"]),
        ({"timeout": 0}, ["timeout", "greater than 0"]),
        ({"timeout": "long"}, ["timeout", "number", "'long'"]),
        ({"devices": "all"}, ["devices", "list", "'all'"]),
        ({"devices": []}, ["devices", "at least 1"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"name": "absent"}, ["name: required key is missing"]),
        ({"name": "a/b"}, ["name", "a/b"]),
        ({"experiments": []}, ["experiments", "at least 1"]),
        ({"experiments": "absent"}, ["experiments: required key is missing"]),
        ({"study": {"variants": []}}, ["experiments[0].variants", "at least 1"]),
        ({"study": {"presets": []}}, ["experiments[0].presets", "at least 1"]),
        ({"study": {"tunables": {"group": []}}}, ["experiments[0].tunables.group", "at least 1"]),
        ({"study": {"workload": "svm_rfb"}}, ["experiments[0].workload", "'svm_rfb'", "did you mean 'svm_rbf'"]),
        ({"study": {"problem": "rbf_row"}}, ["experiments[0].problem", "did you mean 'rbf_rows'", "arg_extrema"]),
        ({"study": {"presets": ["quik"]}}, ["experiments[0].presets", "did you mean 'quick'", "tiny"]),
        ({"study": {"variants": ["vectorised"]}}, ["experiments[0].variants", "did you mean 'vectorized'", "image"]),
        ({"study": {"profiles": ["hd7971"]}}, ["hd7971", "did you mean 'hd7970'"]),
        ({"study": {"tunables": {"gruop": [64]}}}, ["experiments[0].tunables", "did you mean 'group'"]),
        ({"study": {"tunables": {"group": [63]}}}, ["experiments[0].tunables.group: 63 is not allowed", "64"]),
        ({"study": {"parameters": {"pints": 3}}}, ["experiments[0].parameters.pints", "did you mean 'points'"]),
        ({"study": {"parameters": {"points": 0}}}, ["experiments[0].parameters.points", "greater than or equal to 1"]),
        ({"study": {"presets": None}}, ["experiments[0]", "'presets'", "tiny"]),
        ({"devices": ["nonesuch"]}, ["devices: no device matches 'nonesuch'", "there are: opencl:"]),
    ],
)  # fmt: skip
def test_mistakes_in_an_experiment_are_named(
    main: Cli, tmp_path: Path, change: dict[str, Any], expected: list[str]
) -> None:
    path = experiment(tmp_path, **change)
    code, out, err = main("run", path, "--dry-run")
    assert code == 2, out + err
    assert str(path) in err or "hd7971" in err
    assert [part for part in expected if part.lower() not in err.lower()] == [], err


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: [1", "not valid YAML"),
        ("- 1\n", "expected a mapping"),
        ("", "expected a mapping"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_files_that_are_no_experiment(main: Cli, tmp_path: Path, content: str | bytes, expected: str) -> None:
    path = tmp_path / "e.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, err = main("run", path)
    assert code == 2 and str(path) in err and expected in err


def test_dry_run_prints_the_matrix_and_runs_nothing(main: Cli, tmp_path: Path, opencl_infos: list[Any]) -> None:
    path = experiment(tmp_path, study={"variants": ["image", "vectorized"], "tunables": {"group": [32, 64]}})
    code, out, _ = main("run", path, "--dry-run", "--out", tmp_path / "out")
    assert code == 0
    assert f"{4 * len(opencl_infos)} cases in {len(opencl_infos)} groups" in out
    assert all(info.id in out for info in opencl_infos) and "group=32" in out
    assert not (tmp_path / "out").exists()
    code, out, _ = main("run", path, "--dry-run", "-b", "rows/image", "-d", opencl_infos[0].id)
    assert "2 cases in 1 groups" in out and "vectorized" not in out
    path = experiment(tmp_path, study={"parameters": {"gamma": [0.25, 0.5]}, "profiles": ["native", "hd7970"]})
    code, out, _ = main("run", path, "--dry-run")
    assert max(map(len, out.splitlines())) <= 80, "as wide as a terminal"
    assert all(part in out.split() for part in ("gamma=0.25", "gamma=0.5", "profile=hd7970", "(peer)", "unroll=2"))


def test_run_names_its_folder_and_writes_the_report(stored: Path) -> None:
    assert (stored / "reports" / "test.md").read_text().startswith("#")
    (run,) = (stored / "results").iterdir()
    assert run.name.startswith("test-")
    files = sorted(file.name for file in run.iterdir())
    assert files == ["ceilings.jsonl", "environment.json", "experiment.yaml", "lock", "records.jsonl"]
    assert (run / "experiment.yaml").read_text() == (stored / "experiment.yaml").read_text()
    environment = Run(run).environment
    assert environment["seed"] == 3 and environment["versions"]["numpy"] and environment["command"][0] == "perfport"


@pytest.mark.parametrize("command", [["run", "quick"], ["devices"]])
def test_without_any_platform(perfport: Any, no_ceilings: Any, tmp_path: Path, command: list[str]) -> None:
    icds = tmp_path / "icds"
    icds.mkdir()
    # Names the pip-installed runtime's library, so that it is not looked for, where there is none.
    (icds / "intel.icd").write_text("/nonexistent/libintelocl.so")
    done = perfport(*command, env={**no_ceilings, "OCL_ICD_VENDORS": str(icds)}, cwd=tmp_path)
    if any(line.startswith("cuda:") for line in done.stdout.splitlines()):
        pytest.skip("a GPU is here")
    assert "Traceback" not in done.stderr
    if command == ["devices"]:
        assert "broken" in done.stdout and "libintelocl.so" in done.stdout
    else:
        assert done.returncode == 4 and "no usable device" in done.stderr and "libintelocl.so" in done.stderr
        assert "pip install" in done.stderr


def test_without_any_runtime(main: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("perfport.machine.discovery.discover", lambda: [])
    for command in (["run", "quick", "--out", tmp_path / "out"], ["devices"]):
        code, out, err = main(*command, discover=False)
        assert code == 4 and "pip install perfport[cpu]" in err and not out
    assert not (tmp_path / "out").exists()
