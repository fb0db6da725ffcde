"""What is due to a user or a machine ends with a line and its code; a defect shows its traceback."""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path

import pytest

from perfport.cli.ending import MOST_NAMED, ending
from perfport.model.errors import LOG, InfrastructureError, UsageError, leave_out


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("a.yaml: x"), 2, "a.yaml: x"),
        (InfrastructureError("no device"), 4, "no device"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a"), 2, "a (No such file or directory)"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), 2, "a (Permission denied)"),
        (OSError(errno.ENOSPC, "No space left on device", "a"), 4, "a (No space left on device)"),
        (OSError(errno.EMFILE, "Too many open files"), 4, "(Too many open files)"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 2, "'utf-8' codec can't decode"),
        (RecursionError("maximum recursion depth exceeded"), 2, "nested too deeply"),
        (MemoryError(), 4, "out of memory"),
    ],
)
def test_each_fault_has_its_line_and_code(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    with pytest.raises(SystemExit) as ended, ending():
        raise error
    assert ended.value.code == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == bool(said) and said in err and err.startswith("perfport: " if said else "")


@pytest.mark.parametrize("defect", [ValueError("x"), KeyError("x"), AssertionError("x"), ImportError("x")])
def test_a_defect_shows_its_traceback(defect: Exception) -> None:
    with pytest.raises(type(defect)), ending():
        raise defect


def test_an_end_by_typer_for_a_closed_pipe_has_the_code_of_one() -> None:
    with pytest.raises(SystemExit) as ended, ending():
        try:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        except OSError:
            sys.exit(1)
    assert ended.value.code == 141
    with pytest.raises(SystemExit) as ended, ending():
        sys.exit(5)
    assert ended.value.code == 5


def test_what_is_left_out_is_named_once_and_not_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    with ending():
        for number in [*range(MOST_NAMED + 7), 0, 1]:
            leave_out(UsageError(f"file {number}"))
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "perfport: left out: file 0" and len(err) == MOST_NAMED + 1
    assert err[-1] == "perfport: and 7 more like that"
    assert not LOG.handlers


def test_what_a_stream_cannot_say_has_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(narrow, encoding="ascii", errors="strict"))
    with ending():
        print("3 µs \udcff")
    assert narrow.getvalue() == b"3 ?s ?\n"


def test_a_stream_that_takes_no_more_is_an_end_with_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended, ending():
            print("text")
    assert ended.value.code == 4
    assert capsys.readouterr().err == "perfport: standard output: cannot be written (No space left on device)\n"


def test_without_a_working_folder_no_path_is_blamed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SystemExit) as ended, ending():
        next(Path("x").iterdir())
    assert ended.value.code == 4 and "the working folder no longer exists" in capsys.readouterr().err
