"""The code of a commit: laid out beside the repository, complete, and removed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import report_data as data
from code_repository import git

from perfport.model.errors import InfrastructureError
from perfport.nightly import checkout
from perfport.nightly.checkout import checked_out, commit_of

PYPROJECT = """
[tool.setuptools.package-dir]
perfport = "suite/perfport"
"perfport.workloads" = "workloads"
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository laid out as this one, with one commit, and a change that is not committed."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "repository"
    for name, content in {
        "pyproject.toml": PYPROJECT, "suite/perfport/__init__.py": "", "workloads/__init__.py": "first = True\n",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "workloads" / "__init__.py").write_text("first = False\n")
    monkeypatch.setattr(checkout, "files", lambda _: folder / "suite" / "perfport")
    return folder


def test_the_code_of_a_commit_is_one_package_and_is_removed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    before = sorted(path for path in (repository / ".git").rglob("*") if path.name != "index")
    monkeypatch.setenv("PYTHONPATH", "mine")
    with checked_out(commit) as code:
        package = code.root / "suite" / "perfport"
        assert (package / "workloads" / "__init__.py").read_text() == "first = True\n"
        assert code.environment() == {
            "PYTHONPATH": f"{code.root / 'suite'}:mine", "PYTHONSAFEPATH": "1", "PERFPORT_COMMIT": commit,
        }  # fmt: skip
        assert code.inside(str(repository / "workloads")) == str(code.root / "workloads")
        assert code.inside(str(repository)) == str(code.root)
        assert code.inside(str(repository.parent)) == str(repository.parent)
        monkeypatch.delenv("PYTHONPATH")
        assert code.environment()["PYTHONPATH"] == str(code.root / "suite")
        assert sorted(path.name for path in code.root.parent.iterdir()) == ["code"], "the index is no longer there"
    assert not code.root.parent.exists()
    assert sorted(path for path in (repository / ".git").rglob("*") if path.name != "index") == before


def test_what_is_no_repository_of_the_suite_is_refused(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(InfrastructureError, match="commit abababababab is not in the repository"),
        checked_out("ab" * 20),
    ):
        pass
    installed = repository / "venv" / "perfport"  # in a repository, and not of it
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    monkeypatch.setattr(checkout, "files", lambda _: installed)
    commit = git(repository, "rev-parse", "HEAD")
    with pytest.raises(InfrastructureError, match="the suite runs from no git repository"), checked_out(commit):
        pass


@pytest.mark.parametrize("spoilt", ["deleted", "[tool]", "[tool", "tool = 1", "link"])
def test_code_that_cannot_be_laid_out_is_refused(repository: Path, spoilt: str) -> None:
    if spoilt == "deleted":
        (repository / "pyproject.toml").unlink()
    elif spoilt == "link":
        (repository / "outside").symlink_to("../../elsewhere")
    else:
        (repository / "pyproject.toml").write_text(spoilt)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    commit = git(repository, "rev-parse", "HEAD")
    refused = pytest.raises(InfrastructureError, match=f"the code of commit {commit[:12]} cannot be laid out")
    with refused, checked_out(commit):
        pass


def test_a_repository_that_lacks_a_file_is_refused(repository: Path) -> None:
    commit, blob = git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD:workloads/__init__.py")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    refused = pytest.raises(InfrastructureError, match=f"commit {commit[:12]} cannot be laid out: git checkout-index")
    with refused, checked_out(commit):
        pass


def test_without_git_there_is_no_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    refused = pytest.raises(InfrastructureError, match="the suite runs from no git repository")

    def late(*words: object, **how: object) -> None:
        raise subprocess.TimeoutExpired("git", 120)

    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(repository))
        with refused, checked_out(commit):
            pytest.fail("git is there")
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", late)
        with refused, checked_out(commit):
            pytest.fail("git answers")


def test_a_hash_is_a_hash(tmp_path: Path) -> None:
    for number, named in enumerate(["", "HEAD", "--output=x", "ab" * 19, "AB" * 20, ["ab" * 20], None]):
        run = data.store(tmp_path / f"bad{number}", [], data.environment(commit={"hash": named, "dirty": False}))
        with pytest.raises(InfrastructureError, match=r"run \S+ names no commit of its code"):
            commit_of(run)
    odd = data.store(tmp_path / "odd", [], data.environment(commit="ab" * 20))
    with pytest.raises(InfrastructureError, match=r"run \S+ names no commit"):
        commit_of(odd)
    for length in (40, 64):
        named = "a" * length
        good = data.store(tmp_path / named, [], data.environment(commit={"hash": named, "dirty": False}))
        assert commit_of(good) == named
