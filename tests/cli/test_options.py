"""Arguments: mistakes are named before anything is looked for; filters; exit codes."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import report_data as data
import typer
from commands import Cli

from perfport.cli import options
from perfport.model.errors import UnavailableError
from perfport.model.record import Status


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
        (["report", "results", "-o", "page.html"], ["--output: expected a markdown file", "'page.html'"]),
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


def test_filters_become_options_where_chosen_stands(capsys: pytest.CaptureFixture[str]) -> None:
    @options.filtered("workload", "device")
    def command(
        results: options.ResultsArgument, last: int = 3, *, chosen: options.Chosen, form: options.FormatOption = "csv"
    ) -> None:
        """Do nothing."""
        print(results, last, chosen, form)

    assert list(inspect.signature(command).parameters) == ["results", "last", "workload", "device", "form"]
    app = typer.Typer()
    app.command()(command)
    with pytest.raises(SystemExit) as ended:
        app(["runs", "--device", "pocl", "--last", "4"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{[Path('runs')]} 4 {{'workload': '', 'device': 'pocl'}} csv\n"


@pytest.mark.parametrize(
    ("reasons", "code"),
    [
        ({}, 0),
        ({"slower": True}, 5),
        ({"slower": True, "failed": True}, 4),
        ({"slower": True, "failed": True, "wrong": True}, 3),
    ],
)
def test_the_gravest_reason_decides(reasons: dict[str, bool], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        options.finish(**reasons)
    assert ended.value.code == code


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((Status.OK, Status.CONTENDED, Status.UNSUPPORTED, Status.UNAVAILABLE), 0),
        ((Status.OK, Status.TIMEOUT), 4),
        ((Status.IMPOSSIBLE, Status.TIMEOUT), 3),
        ((Status.WRONG,), 3),
    ],
)
def test_exit_codes_of_statuses(statuses: tuple[Status, ...], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        options.finish_by_status(data.record("a", status=status) for status in statuses)
    assert ended.value.code == code
