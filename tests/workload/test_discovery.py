"""Workloads are found, not listed; what does not fit is named."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from minimal_workload import MINIMAL

from perfport import workload
from perfport.model.errors import UsageError
from perfport.model.published import Figure

DATA = Path(__file__).parents[1] / "data"
numbers = itertools.count()


def package(folder: Path, source: str = MINIMAL, name: str | None = None) -> Path:
    """Write a workload package of a name that no other test has."""
    path = folder / (name or f"made_{next(numbers)}")
    path.mkdir()
    (path / "__init__.py").write_text(source)
    return path


def test_shipped_workloads_are_complete() -> None:
    found = workload.discover()
    assert "svm_rbf" in found
    for one in found.values():
        assert one.title and one.problems
        for name, problem in one.problems.items():
            assert "tiny" in problem.presets and one.variants[name] and set(problem.headline) == {"cpu", "gpu"}
            for preset in problem.presets.values():
                problem.Parameters.model_validate(preset)
            for variant in one.variants[name].values():
                assert variant.problem.name == name
                for tunable in variant.tunables.values():
                    for kind in ("cpu", "gpu"):
                        default = tunable.default[kind] if isinstance(tunable.default, dict) else tunable.default
                        assert default in tunable.values, (variant.name, tunable)


def test_a_path_may_be_a_package_or_hold_packages(tmp_path: Path) -> None:
    one, two = package(tmp_path), package(tmp_path)
    assert {one.name} == set(workload.discover([one])) - set(workload.discover())
    assert {one.name, two.name} <= set(workload.discover([tmp_path]))
    assert "faulty" in workload.discover([str(DATA)]) and "svm_rbf" in workload.discover([DATA])


def test_what_a_package_holds(tmp_path: Path) -> None:
    path = package(tmp_path)
    found = workload.discover([path])[path.name]
    assert (found.title, found.folder, list(found.problems)) == ("A title.", path, ["p"])
    assert list(found.variants["p"]) == ["c", "a", "b"], "by role, then rung"


def test_published_results_are_read(tmp_path: Path) -> None:
    path = package(tmp_path)
    (path / "published.yaml").write_text("- {problem: p, variant: a, device: d, value: 3.0, unit: s, source: x}\n")
    figure = Figure(problem="p", variant="a", device="d", value=3.0, unit="s", source="x")
    assert workload.discover([path])[path.name].published == [figure]


def test_names_exist_once(tmp_path: Path) -> None:
    clash = package(tmp_path, name="svm_rbf")
    with pytest.raises(UsageError, match="'svm_rbf' exists already"):
        workload.discover([clash])
    twice = package(tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        workload.discover([twice, twice])


@pytest.mark.parametrize("make", [lambda p: p / "absent", lambda p: p])
def test_a_path_without_workloads(tmp_path: Path, make: Any) -> None:
    with pytest.raises(UsageError, match="no workload package here"):
        workload.discover([make(tmp_path)])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_workload_that_does_not_import(tmp_path: Path, source: str, expected: str) -> None:
    path = package(tmp_path, source)
    with pytest.raises(UsageError, match=rf"workload '{path.name}' does not import: {path}/__init__\.py:1: {expected}"):
        workload.discover([path])
    inner = package(tmp_path)
    (inner / "variants.py").write_text(source)
    with pytest.raises(UsageError, match=expected):
        workload.discover([inner])


def test_names_are_suggested() -> None:
    svm = workload.discover()["svm_rbf"]
    with pytest.raises(UsageError, match=r"has no problem 'rbf_row' .did you mean 'rbf_rows'.*arg_extrema"):
        svm.problem("rbf_row")
    with pytest.raises(UsageError, match=r"has no variant 'vectorised' .did you mean 'vectorized'"):
        svm.variant("rbf_rows", "vectorised")


def test_the_digest_follows_code_and_data(tmp_path: Path) -> None:
    path = package(tmp_path)
    found = workload.discover([path])[path.name]
    before = found.source_digest()
    (path / "README.md").write_text("prose changes nothing")
    assert found.source_digest() == before
    (path / "k.cl").write_text("code does")
    after = found.source_digest()
    (path / "k.cl").rename(path / "l.cl")
    assert len({before, after, found.source_digest()}) == 3


def test_a_child_imports_its_own_workload_alone() -> None:
    program = (
        "import sys; from perfport import workload; print(*workload.discover(only='gdn'));"
        "print(*sorted({name.split('.')[2] for name in sys.modules if name.startswith('perfport.workloads.')}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gdn", "gdn"]
