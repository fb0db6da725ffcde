"""Modules and functions that a reader can hold in mind: a longer one has more than one idea."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for folder in ("suite", "workloads") for path in (ROOT / folder).rglob("*.py"))
MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 400, 60, 5
COMMANDS = (
    ROOT / "suite" / "perfport" / "cli"
)  # options are parameters there; those of a kernel are its arrays and sizes


def faults(path: Path, source: str) -> Iterator[str]:
    """Yield what is too long in a module."""
    if (lines := len(source.splitlines())) > MOST_LINES:
        yield f"{lines} lines"
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > MOST_FUNCTION_LINES:
            yield f"{node.name}: {lines} lines"
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in ("self", "cls")]
        kernel = any(ast.unparse(decorator) == "triton.jit" for decorator in node.decorator_list)
        if len(names) > MOST_PARAMETERS and COMMANDS not in path.parents and not kernel:
            yield f"{node.name}: {len(names)} parameters"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_too_long(path: Path) -> None:
    assert list(faults(path, path.read_text())) == []


def test_what_is_too_long_is_named() -> None:
    body = "\n".join(["    pass"] * MOST_FUNCTION_LINES)
    source = f"def long(a, b, c, d, e, f):\n{body}\n" + "x = 1\n" * MOST_LINES
    assert list(faults(ROOT / "suite" / "x.py", source)) == [
        f"{MOST_LINES + MOST_FUNCTION_LINES + 1} lines",
        f"long: {MOST_FUNCTION_LINES + 1} lines",
        "long: 6 parameters",
    ]
