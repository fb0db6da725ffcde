"""The documentation's map of the code is the code's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from perfport.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "suite" / "perfport"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PAGES = [*(ROOT / "docs").glob("**/*.md"), *ROOT.glob("*.md"), *(ROOT / "workloads").glob("*/README.md")]


def test_packages_are_those_of_the_layers_in_their_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [name.removeprefix("perfport.") for name in reversed(contracts[0]["layers"])]
    assert re.findall(r"^\| `(\w+)/` \|", ARCHITECTURE, re.M) == layers
    folders = {path.parent.name for path in SUITE.glob("*/__init__.py")}
    assert folders == set(layers)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_texts_name_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        pytest.skip("history may name what is gone")
    roots = (ROOT, SUITE, page.parent, page.parent / "variants", page.parent / "kernels", page.parent / "builder")
    named = re.findall(r"`((?:[\w.]+/)*\w+\.(?:py|cl|cu|h|cpp))`", page.read_text())
    examples = {"scale/__init__.py", "scale/kernels/scale.cl", "compare.py", "tests/PACKAGE/test_MODULE.py"}
    examples |= {f"workloads/svm_rbf/{path}" for path in ("kernels/row_batch.cl", "variants/row_batch.py")}
    missing = [name for name in named if name not in examples and not any((root / name).exists() for root in roots)]
    if "architecture" in page.name:  # says for itself in which folder it is
        missing = [name for name in missing if not list(SUITE.rglob(name))]
    assert missing == []


def test_every_command_is_in_the_map() -> None:
    listed = ARCHITECTURE.partition("| command | module")[2].partition("\n\n")[0]
    commands = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", listed, re.M))))
    assert {*COMMANDS, "history"} == commands


def test_every_module_has_a_test_file() -> None:
    own = {"__init__.py", "__main__.py"}
    modules = [path.relative_to(SUITE) for path in SUITE.rglob("*.py") if path.name not in own]
    missing = [str(path) for path in modules if not (ROOT / "tests" / path.parent / f"test_{path.name}").exists()]
    assert missing == ["untimed/verify/finding.py"]  # a tuple with names, in the tests of the tools
