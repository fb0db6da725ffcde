"""The code of an earlier commit, taken out of the repository that this package runs from.

Nothing is written into the repository. Of a run's files only the commit's hash is read, and only if it is one.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ..model.errors import InfrastructureError
from ..store.results import Run

HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Checkout:
    """A tree of the suite's code.

    Attributes
    ----------
    root : Path
        Where it lies.
    repository : Path
        Root of the repository that it is of.
    commit : str
    """

    root: Path
    repository: Path
    commit: str

    def environment(self) -> dict[str, str]:
        """Return variables with which ``python -m perfport.cli`` is that of the tree, beside those of this process."""
        paths = [str(self.root / "suite"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", "PERFPORT_COMMIT": self.commit}

    def inside(self, path: str) -> str:
        """Return where a file of the repository lies in the tree; what is of no repository stays where it is."""
        whole = Path(path).resolve()
        return str(self.root / whole.relative_to(self.repository)) if whole.is_relative_to(self.repository) else path


def commit_of(run: Run) -> str:
    """Return the commit whose code a run was measured with.

    Raises
    ------
    InfrastructureError
        If it names none, or had uncommitted changes.
    """
    commit = run.environment.get("commit")
    named = str(commit.get("hash") or "") if isinstance(commit, dict) else ""
    if not HASH.fullmatch(named):
        raise InfrastructureError(f"run {run.name} names no commit of its code")
    if commit and commit.get("dirty"):
        raise InfrastructureError(f"run {run.name} was measured with uncommitted changes")
    return named


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Checkout]:
    """Hold the code of a commit in a private folder, which is removed afterwards.

    Raises
    ------
    InfrastructureError
        If this package runs from no repository, or from one without the commit.
    """
    package = Path(str(files("perfport"))).resolve()
    if not _git(package, "ls-files", "__init__.py"):
        raise InfrastructureError("the suite runs from no git repository here")
    repository = Path(_git(package, "rev-parse", "--show-toplevel")).resolve()
    if not _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"):
        raise InfrastructureError(f"commit {commit[:12]} is not in the repository {repository}")
    with tempfile.TemporaryDirectory(prefix="perfport-base-") as folder:
        archive, root = Path(folder) / "code.tar", Path(folder) / "code"
        _git(repository, "archive", "--format=tar", f"--output={archive}", commit)
        try:
            with tarfile.open(archive) as packed:
                packed.extractall(root, filter="data")
            archive.unlink()
            _link_packages(root)
        except (OSError, tarfile.TarError, ValueError, LookupError, TypeError) as error:
            raise InfrastructureError(f"the code of commit {commit[:12]} cannot be laid out: {error}") from error
        yield Checkout(root, repository, commit)


def _git(folder: Path, *arguments: str) -> str:
    """Return what git says, without the end of the line; nothing where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _link_packages(root: Path) -> None:
    """Put the packages that lie beside ``suite`` where the one import package is, as an installation does."""
    packages = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    for name, folder in packages.items():
        place = root / "suite" / Path(*name.split("."))
        if not place.exists():
            place.symlink_to(os.path.relpath(root / folder, place.parent))
