"""What machines do to a command: full and read-only disks, narrow encodings, pipes without readers, folders that go.

Each is caused for real, in a process of its own: never a traceback, a documented code, no half-written file.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.cli.options import ExitCode

PERFPORT = f"{sys.executable} -m perfport.cli"
Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stored runs; a variant's name is not ASCII."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seconds in {"a": 0.05, "b": 0.04}.items():
        records = [data.record("naïve", seconds), *(data.record(f"v{number}", seconds) for number in range(30))]
        data.store(folder / name, records, data.environment((data.POCL,), run=name))
    return folder


@pytest.fixture
def shell(runs: Path, tmp_path: Path) -> Shell:
    """Run a line of bash in a folder of its own; ``$p`` is the command line and ``$runs`` the stored runs."""

    def call(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
        known = {**os.environ, "p": PERFPORT, "runs": str(runs), **environment}
        command = ["bash", "-o", "pipefail", "-c", line]
        done = subprocess.run(
            command, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=120, check=False
        )
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
        assert done.returncode in set(ExitCode), (done.returncode, done.stderr)
        return done

    return call


def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a small file system in memory; skips where that is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "perfport-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount here")
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 KiB."""
    yield from mounted(tmp_path / "full", "size=16k")


@pytest.fixture
def fixed(tmp_path: Path) -> Iterator[Path]:
    """A disk that is read-only."""
    yield from mounted(tmp_path / "fixed", "ro,size=16k")


WRITERS = [
    "export $runs/a --format pytest-benchmark -o {}",
    "export $runs --format otava -o {}",
    "table $runs --format html -o {}",
    "report $runs -o {}",
    "portability $runs --export {}",
    "history --in history --html {}",
]


@pytest.mark.parametrize("command", WRITERS)
def test_a_full_disk_keeps_what_was_there(shell: Shell, full: Path, command: str) -> None:
    (full / "out.md").write_text("old")
    with contextlib.suppress(OSError), (full / "filler").open("wb", buffering=0) as file:
        file.write(bytes(1 << 20))
    assert shell("$p history add $runs --into history").returncode == 0
    done = shell(f"$p {command.format(full / 'out.md')}")
    assert done.returncode == ExitCode.INFRASTRUCTURE and "No space left on device" in done.stderr
    assert (full / "out.md").read_text() == "old" and not list(full.rglob("*.part"))


@pytest.mark.parametrize("command", WRITERS)
def test_a_read_only_disk_is_named(shell: Shell, fixed: Path, command: str) -> None:
    assert shell("$p history add $runs --into history").returncode == 0
    done = shell(f"$p {command.format(fixed / 'out.md')}")
    assert done.returncode == ExitCode.INFRASTRUCTURE and f"{fixed}" in done.stderr


def test_a_limit_of_file_size_leaves_no_half_file(shell: Shell, tmp_path: Path) -> None:
    done = shell("ulimit -f 4; $p export $runs/a --format pytest-benchmark -o out.json")
    assert done.returncode == ExitCode.INFRASTRUCTURE and "out.json: cannot be written (File too large)" in done.stderr
    assert not list(tmp_path.iterdir())


def test_output_to_a_full_disk_is_an_end_with_a_line(shell: Shell) -> None:
    for command in ("table $runs", "--help"):
        done = shell(f"$p {command} > /dev/full")
        assert done.returncode == ExitCode.INFRASTRUCTURE
        assert done.stderr == "perfport: standard output: cannot be written (No space left on device)\n"


def test_a_reader_that_goes_away_is_no_fault(shell: Shell) -> None:
    for command in ("table $runs --format json", "--help"):
        done = shell(f"$p {command} | true")
        assert (done.returncode, done.stdout, done.stderr) == (ExitCode.CLOSED, "", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-"])
def test_closed_streams(shell: Shell, closed: str) -> None:
    assert shell(f"$p table $runs {closed}").returncode == ExitCode.FINE


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}])
def test_a_narrow_encoding_replaces_characters(shell: Shell, environment: dict[str, str]) -> None:
    for command in ("report $runs -o out.md", "claims $runs"):
        assert shell(f"$p {command}", **environment).returncode == ExitCode.FINE
    assert "na" in shell("$p table $runs", **environment).stdout


def test_no_encoding_but_ascii(shell: Shell) -> None:
    narrow = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for command in ("table $runs", "export $runs --format p3 -o out.csv", "run quick --dry-run -d none"):
        shell(f"$p {command}", **narrow)


@pytest.mark.parametrize(
    "command",
    [
        "table $runs", "report $runs -o out.md", "report $runs", "run quick --dry-run", "history", "quotes",
        "validate x.yaml",
    ],
)  # fmt: skip
def test_a_working_folder_that_is_gone(shell: Shell, command: str) -> None:
    done = shell(f"mkdir gone && cd gone && rmdir ../gone && $p {command}")
    if "-o" in command or command == "report $runs":
        assert done.returncode == ExitCode.INFRASTRUCTURE and "the working folder no longer exists" in done.stderr


@pytest.mark.parametrize(
    ("command", "number"),
    [("table $runs", n) for n in (8, 12, 16)] + [(c, 12) for c in ("report $runs -o out.md", "list", "--help")],
)
def test_few_open_files(shell: Shell, command: str, number: int) -> None:
    done = shell(f"ulimit -n {number}; $p {command}")
    assert done.returncode in (ExitCode.FINE, ExitCode.INFRASTRUCTURE), done.stderr


def test_a_defect_shows_its_traceback(runs: Path) -> None:
    script = (
        "import sys; from perfport import cli, store; import perfport.store.collection as c\n"
        "c.Collection.__init__ = lambda *a: 1 / 0\n"
        f"sys.argv = ['perfport', 'table', {str(runs)!r}]\ncli.main()\n"
    )
    done: Any = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "Traceback" in done.stderr
