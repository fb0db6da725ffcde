"""What `.ci/run` leaves out of its second stage, and the view of a bare machine (`.ci/bare`)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.fixture(scope="session")
def opencl_infos(): ...

@pytest.fixture(scope="session")
def cache(opencl_infos): ...

def test_alike(): ...

@pytest.mark.parametrize("device", {devices})
def test_on(device): ...

def test_sees_all(cache): ...

@pytest.mark.any_device
def test_takes_one(cache): ...

def test_tool():
    if not {tool}:
        pytest.skip("no tool")
"""


def option(name: str, folder: Path) -> list[str]:
    """Return an option in the form in which `.ci/run` gives it to pytest, with a file of `folder`."""
    (between,) = re.findall(rf'--{name}(.)"?\$.*/passed', (ROOT / ".ci" / "run").read_text())
    return f"--{name}{between}{folder}/passed".split()


def stage(folder: Path, devices: list[str], tool: bool, *options: str) -> set[str]:
    """Run a small suite beside this one's conftest.py; return the names of the tests that were run."""
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "test_it.py").write_text(TESTS.format(devices=devices, tool=tool))
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    command = [sys.executable, "-m", "pytest", "-v", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split()[0] for line in done.stdout.splitlines() if line.startswith("tests/test_it.py::")}


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_second_stage_runs_what_the_first_could_not(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, parallel: tuple[str, ...]
) -> None:
    out = tmp_path_factory.mktemp("out")
    stage(tmp_path, ["intel"], False, *option("passed-to", out), *parallel)
    assert sorted((out / "passed").read_text().splitlines()) == [
        "tests/test_it.py::test_alike", "tests/test_it.py::test_on[intel]", "tests/test_it.py::test_sees_all",
        "tests/test_it.py::test_takes_one",
    ]  # fmt: skip
    assert stage(tmp_path, ["intel", "pocl"], True, *option("not-again", out)) == {
        "tests/test_it.py::test_on[pocl]", "tests/test_it.py::test_sees_all", "tests/test_it.py::test_tool",
    }  # fmt: skip


def bare(*command: str, root: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the bare view of this machine, in a copy of a repository."""
    done = subprocess.run(
        [root / ".ci" / "bare", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    if done.returncode == 69:
        pytest.skip(done.stderr.strip())
    return done


def test_a_bare_machine_has_python_and_no_tool(tmp_path: Path) -> None:
    look = "import os, shutil; print(os.getuid() != 0, [t for t in ('git', 'g++', 'gcc', 'cc', 'oclgrind', 'sbatch')"
    look += (
        " if shutil.which(t)], os.path.exists('/etc/OpenCL'), os.listdir('/usr/local'), os.path.exists('README.md'))"
    )
    done = bare("bash", "-c", f'python3 -c "{look}" && echo kept > $HOME/out/file && exit 7', BARE_OUT=str(tmp_path))
    assert done.stdout.split("\n")[0] == "True [] False [] True", done.stdout + done.stderr
    assert done.returncode == 7 and (tmp_path / "file").read_text() == "kept\n"
    assert shutil.which("bash"), "the machine itself is as it was"


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_a_bare_machine_sees_the_working_tree_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "bare", tmp_path / ".ci")
    for name in ("deleted", "kept"):
        (tmp_path / name).touch()
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").touch()
    done = bare("ls", root=tmp_path)
    assert (done.returncode, done.stdout) == (0, "kept\nnew\n"), done.stderr
