"""The code of an earlier commit, taken out of the repository that this package runs from.

Nothing is written into the repository. Of a run's files only the commit's hash is read, and only if it is one.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ..model.errors import InfrastructureError, UsageError
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
    repository = own_repository()
    if not git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"):
        raise InfrastructureError(f"commit {commit[:12]} is not in the repository {repository}")
    with tempfile.TemporaryDirectory(prefix="perfport-base-") as folder:
        root = Path(folder) / "code"
        try:
            _lay_out(repository, commit, root)
            _link_packages(root)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InfrastructureError(f"the code of commit {commit[:12]} cannot be laid out: {error}") from error
        yield Checkout(root, repository, commit)


def own_repository() -> Path:
    """Return the root of the repository that this package runs from. Raises `InfrastructureError` if there is none."""
    package = Path(str(files("perfport"))).resolve()
    top = git(package, "rev-parse", "--show-toplevel")
    if not top or not git(package, "ls-files", "__init__.py"):
        raise InfrastructureError("the suite runs from no git repository here")
    return Path(top).resolve()


def resolved(repository: Path, name: str) -> str:
    """Return the hash of the commit that a name stands for. Raises `UsageError` if it stands for none."""
    commit = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if not commit:
        raise UsageError(f"{name!r} is no commit of the repository {repository} (a shallow clone? fetch it)")
    return commit


def changed_files(repository: Path, base: str, head: str | None) -> frozenset[Path]:
    """Return the files that differ between two commits, or a commit and the working tree with its new files.

    Raises
    ------
    InfrastructureError
        If git fails.
    """
    options = ["--name-only", "--no-renames", "--no-ext-diff", "-z"]
    differ = git(repository, "diff", *options, base, *([head] if head else []), "--")
    new = "" if head else git(repository, "ls-files", "--others", "--exclude-standard", "-z")
    if differ is None or new is None:
        raise InfrastructureError(f"{repository}: git does not say what differs from {base[:12]}")
    return frozenset(repository / name for name in f"{differ}\0{new}".split("\0") if name)


def git(folder: Path, *arguments: str, **variables: str) -> str | None:
    """Return what git says, without the end of the line; None where it fails. Names and messages need not be UTF-8."""
    command, env = ["git", "-C", str(folder), *arguments], {**os.environ, **variables}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=120
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _lay_out(repository: Path, commit: str, root: Path) -> None:
    """Write the files of a commit, by an index of its own beside them.

    Raises
    ------
    OSError
        If git fails.
    ValueError
        If a symbolic link leads out of the tree.
    """
    index = root.with_name("index")
    for command in (["read-tree", commit], ["checkout-index", "--all", f"--prefix={root}/"]):
        if git(repository, *command, GIT_INDEX_FILE=str(index)) is None:
            raise OSError(f"git {command[0]} failed")
    index.unlink()
    for path in root.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
            raise ValueError(f"{path.relative_to(root)} leads out of it")


def _link_packages(root: Path) -> None:
    """Put the packages that lie beside ``suite`` where the one import package is, as an installation does."""
    packages = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    for name, folder in packages.items():
        place = root / "suite" / Path(*name.split("."))
        if not place.exists():
            place.symlink_to(os.path.relpath(root / folder, place.parent))
