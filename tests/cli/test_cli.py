"""The command line: every command answers, and every mistake is named with what is allowed instead."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, experiment

from perfport.model.errors import UnavailableError
from perfport.model.record import Record
from perfport.run.experiment import Experiment
from perfport.store.results import Run

FAULTY = Path(__file__).parents[1] / "data" / "faulty"
COMMANDS = [
    "run", "devices", "list", "report", "table", "claims", "crosstuning", "stale", "quotes", "portability",
    "convergence", "compare", "show", "export", "import", "validate", "schema",
]  # fmt: skip
HEAVY = ("pyopencl", "cupy", "matplotlib", "pandas", "sklearn", "torch", "numpy")


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help(main: Cli, command: str | None) -> None:
    code, out, _ = main(*filter(None, [command]), "--help", discover=False)
    assert code == 0 and "--help" in out
    if command is None:
        assert all(re.search(rf"^\s+{name}\b", out, re.M) for name in COMMANDS)


def test_no_command_shows_help_and_an_unknown_one_is_named(main: Cli) -> None:
    code, out, err = main(discover=False)
    assert "Usage" in out + err
    code, _, err = main("rnu", discover=False)
    assert code == 2 and "rnu" in err


def test_version(main: Cli) -> None:
    code, out, _ = main("--version", discover=False)
    assert code == 0 and re.fullmatch(r"perfport \d+\.\d+\S*\n", out)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from perfport import cli; sys.argv = ['perfport', '--help']\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert loaded[0] == "LOADED" and "typer" in loaded
    assert not set(loaded) & set(HEAVY)


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
        (b"\xff\xfe\x00", "not valid YAML"),
    ],
)
def test_files_that_are_no_experiment(main: Cli, tmp_path: Path, content: str | bytes, expected: str) -> None:
    path = tmp_path / "e.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, err = main("run", path)
    assert code == 2 and str(path) in err and expected in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "quikc"], ["quikc", "did you mean 'quick'"]),
        (["run", "quick", "--dry-run", "-d", "opencl:pocol"], ["--device", "opencl:pocol", "there are:"]),
        (["run", "quick", "--dry-run", "-b", "nothing/like/this"], ["no case is left", "nothing/like/this"]),
        (["run", "quick", "--retry", "all", "--resume"], ["--retry", "'failed'", "'all'"]),
        (["run", "quick", "--retry", "failed"], ["--retry needs --resume"]),
        (["run", "quick", "--workloads", "/nonexistent"], ["--workloads /nonexistent", "no workload package"]),
        (["list", "svm_rfb"], ["svm_rfb", "did you mean 'svm_rbf'"]),
        (["schema", "recrod"], ["recrod", "experiment, record, profile"]),
        (["report", "/nonexistent"], ["/nonexistent", "no results here"]),
        (["validate", "/nonexistent.yaml"], ["/nonexistent.yaml", "no such file"]),
        (["show", "svm_rfb/a/b"], ["svm_rfb", "did you mean 'svm_rbf'"]),
        (["show", "svm_rbf/rbf_row/image"], ["rbf_row", "did you mean 'rbf_rows'"]),
        (["show", "svm_rbf/rbf_rows/imgae"], ["imgae", "did you mean 'image'"]),
        (["show", "svm_rbf/rbf_rows/image", "--preset", "huge"], ["--preset", "huge", "tiny"]),
        (["show", "0123456789abcdef"], ["no results here"]),
    ],
)
def test_mistakes_in_arguments_are_named(
    main: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = main(*arguments)
    assert code == 2, out + err
    assert [part for part in expected if part not in err] == [], err
    assert not list(tmp_path.iterdir()), "nothing is left behind"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "nothing/like/this"], "no variant's"),
        (["verify", "nothing/like/this", "--sanitize"], "no variant's"),
        (["verify", "--profile", "hd7979"], "did you mean 'hd7970'"),
        (["count", "--stalls"], "choose a CUDA device"),
        (["count", "--profile", "hd7979"], "did you mean 'hd7970'"),
        (["count", "nothing"], "no workload 'nothing'"),
        (["list", "svm_rfb"], "did you mean 'svm_rbf'"),
        (["ceilings", "--peer", "clpaek"], "expected 'clpeak'"),
        (["show", "svm_rbf/rbf_rows/image", "--sass", "--target", "sm_9o"], "as in sm_90"),
        (["show", "svm_rbf/rbf_rows/image", "--rerun", "--preset", "huge"], "--preset"),
        (["check", ".", "--change-points"], "--baseline RUN"),
    ],
)
def test_arguments_are_judged_before_tools_and_devices_are_looked_for(
    main: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """On a machine without anything: neither a device, nor the simulator, nor any program."""

    def nothing() -> str:
        raise UnavailableError("no simulator")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("perfport.machine.simulator.library", nothing)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("perfport.machine.discovery.discover", list)
    code, out, err = main(*arguments, discover=False)
    assert (code, message in err) == (2, True), out + err


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


def test_devices(main: Cli, opencl_infos: list[Any]) -> None:
    code, out, _ = main("devices", "--json")
    found = json.loads(out)
    assert code == 0 and [entry["id"] for entry in found] == [info.id for info in opencl_infos]
    assert all(entry["healthy"] and entry["memory_bytes"] > 0 and entry["driver"] for entry in found)
    assert all(entry["profile"] == "generic_cpu" for entry in found if entry["kind"] == "cpu")
    code, out, _ = main("devices")
    assert code == 0 and all(info.id in out and info.driver in out for info in opencl_infos)


def test_list(main: Cli) -> None:
    code, out, _ = main("list", "svm_rbf", "--json")
    rows = {(row["problem"], row["variant"]): row for row in json.loads(out)}
    assert code == 0
    assert "opencl:" in rows["rbf_rows", "vectorized"]["runs here"]
    assert rows["rbf_rows", "vectorized"]["role"] == "rung"
    code, out, _ = main("list", "faulty", "--workloads", FAULTY)
    lines = {line.split()[2]: line for line in out.splitlines() if line.startswith("double ")}
    assert "no: needs cuda" in lines["needs_cuda"] and "no_such_module_anywhere" in lines["missing_module"]
    for option, name in (("--profiles", "hd7970"), ("--experiments", "quick")):
        code, out, _ = main("list", option, discover=False)
        assert code == 0 and name in out


@pytest.mark.parametrize(("which", "model"), [("experiment", Experiment), ("record", Record)])
def test_schema(main: Cli, which: str, model: Any) -> None:
    code, out, _ = main("schema", which, discover=False)
    assert code == 0 and set(json.loads(out)["properties"]) == set(model.model_fields)


def test_validate_shipped_experiments(main: Cli) -> None:
    code, out, _ = main("validate", "quick")
    assert code == 0 and re.search(r"valid; [1-9]\d* cases", out)


@pytest.fixture(scope="module")
def stored(perfport: Any, no_ceilings: Any, opencl_infos: list[Any], tmp_path_factory: Any) -> Path:
    """A folder with a small run below ``results``: one good case, one that does not compile."""
    folder = tmp_path_factory.mktemp("stored")
    study = {"workload": "faulty", "problem": "double", "variants": ["good", "no_compile"], "tunables": {"shade": [2]}}
    path = experiment(folder, study=study, devices=[opencl_infos[0].id], report={"path": "reports/test.md"}, seed=3)
    done = perfport("run", path, "--workloads", FAULTY, env=no_ceilings, cwd=folder)
    assert done.returncode == 4, done.stderr
    assert re.search(r"^faulty +1 +[01]/2 ok, 1 failed(, 1 contended)? +double ", done.stdout, re.MULTILINE)
    return Path(folder)


def records(folder: Path) -> dict[str, Record]:
    """The records of the only run below a folder, by variant."""
    (run,) = (folder / "results").iterdir()
    return {record.identity.variant: record for record in Run(run).records}


def test_run_names_its_folder_and_writes_the_report(stored: Path) -> None:
    assert (stored / "reports" / "test.md").read_text().startswith("#")
    (run,) = (stored / "results").iterdir()
    assert run.name.startswith("test-")
    files = sorted(file.name for file in run.iterdir())
    assert files == ["environment.json", "experiment.yaml", "lock", "records.jsonl"]
    assert (run / "experiment.yaml").read_text() == (stored / "experiment.yaml").read_text()
    environment = Run(run).environment
    assert environment["seed"] == 3 and environment["versions"]["numpy"] and environment["command"][0] == "perfport"


def test_show_a_record_its_log_and_run_it_again(
    stored: Path, main: Cli, perfport: Any, no_ceilings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stored)
    found = records(stored)
    good, broken = found["good"], found["no_compile"]
    code, out, _ = main("show", good.key, "--workloads", FAULTY)
    shown = json.loads(out)
    assert code == 0 and shown["key"] == good.key and shown["identity"]["tunables"] == {"shade": 2}
    code, out, _ = main("show", broken.key, "--log", "--workloads", FAULTY)
    assert code == 0 and "planted_undeclared_name" in out
    code, _, err = main("show", "feedfeedfeedfeed", "--workloads", FAULTY)
    assert code == 2 and "no record of this key" in err

    for record, expected in ((good, 0), (broken, 4)):
        done = perfport("show", record.key, "--rerun", "--workloads", FAULTY, env=no_ceilings, cwd=stored)
        assert done.returncode == expected, done.stderr
        (again,) = sorted((stored / "results").glob("rerun-*"))
        (fresh,) = Run(again).records
        assert (fresh.key, fresh.seed, fresh.identity) == (record.key, record.seed, record.identity)
        for file in again.iterdir():
            file.unlink()
        again.rmdir()


def test_show_names(main: Cli) -> None:
    code, out, _ = main("show", "svm_rbf", discover=False)
    assert code == 2
    code, out, _ = main("show", "svm_rbf/rbf_rows/local_memory", discover=False)
    assert code == 0 and json.loads(out)["tunables"]["group"]["values"]


@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_show_ptx_and_source_without_a_gpu(main: Cli, target: str) -> None:
    pytest.importorskip("cupy_backends.cuda.libs.nvrtc", exc_type=ImportError)
    code, out, _ = main("show", "svm_rbf/rbf_rows/vectorized", "--ptx", "--target", target, discover=False)
    assert code == 0 and f".target {target}" in out and ".entry vectorized" in out
    code, out, _ = main("show", "svm_rbf/rbf_rows/vectorized", "--source", discover=False)
    assert code == 0 and "void vectorized(" in out and "-DNDIM=37" in out


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
