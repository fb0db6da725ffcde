"""The documentation's tables of fields and keys against the models, both ways; docstrings against their code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from perfport.judge import claims
from perfport.measure import sampling
from perfport.measure.ceilings import KINDS, Ceiling, Ceilings
from perfport.model import published, record, work
from perfport.run import experiment

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "suite" / "perfport"
TABLES: dict[tuple[str, str], type[BaseModel]] = {
    ("records.md", "The record"): record.Record,
    ("records.md", "`identity`"): record.Identity,
    ("records.md", "`timing`"): record.Timing,
    ("records.md", "`summary` of a clock"): record.Summary,
    ("records.md", "Entries of `instances`"): record.Instance,
    ("records.md", "`metric`"): record.MetricValue,
    ("records.md", "`overheads`"): record.Overheads,
    ("records.md", "`verification`"): record.Verification,
    ("records.md", "Entries of `outputs`"): record.OutputError,
    ("records.md", "`failure`"): record.Failure,
    ("records.md", "`work`"): work.Work,
    ("records.md", "`traffic`"): work.Traffic,
    ("records.md", "Bounds"): record.Bound,
    ("records.md", "`energy`"): record.Energy,
    ("records.md", "Intervals"): record.Interval,
    ("records.md", "`ceilings` of a device"): Ceilings,
    ("records.md", "Entries of `entries`"): Ceiling,
    ("experiments.md", "Keys of an entry of `experiments`"): experiment.Study,
    ("experiments.md", "Keys of `measurement`"): sampling.Targets,
    ("reports.md", "Published figures"): published.Figure,
}


def documented(page: str, heading: str) -> list[str]:
    """The names in the first column of the first table below a heading."""
    text = (ROOT / "docs" / page).read_text()
    parts = re.split(rf"^#+ {re.escape(heading)}$", text, flags=re.M)
    assert len(parts) == 2, f"{page}: {heading}"
    section = re.split(r"^#+ ", parts[1], flags=re.M)[0]
    rows = re.findall(r"^\|(.*?)\|", section.split("\n\n|", 1)[-1].split("\n\n")[0], flags=re.M)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize(("table", "model"), TABLES.items(), ids=[" ".join(table) for table in TABLES])
def test_a_table_has_the_fields_of_its_model(table: tuple[str, str], model: type[BaseModel]) -> None:
    found = documented(*table)
    assert sorted(found) == sorted(model.model_fields)


def test_statuses_and_what_runs_them_again() -> None:
    assert sorted(documented("records.md", "Statuses")) == sorted(record.Status)
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\S+) \|$", (ROOT / "docs" / "records.md").read_text(), flags=re.M)
    again = {name: argument.strip("`") for name, argument in rows if name in set(record.Status)}
    for status in record.Status:
        expected = [name for name, statuses in record.RETRY.items() if status in statuses]
        assert again[status] == (expected[0] if expected else "no"), status


def test_keys_of_an_experiment() -> None:
    found = {name.split(".")[0] for name in documented("experiments.md", "Keys")}
    assert found == set(experiment.Experiment.model_fields)


def test_keys_of_a_claim() -> None:
    inner = {"figure", "reference_figure", "kernels"}  # told with `compare`
    assert set(documented("reports.md", "Claims")) == set(claims.Claim.model_fields) - inner
    assert all(f"`{name}`" in (ROOT / "docs" / "reports.md").read_text() for name in inner)


def test_names_of_ceilings() -> None:
    found = documented("records.md", "Names of ceilings")
    assert sorted(found) == sorted(KINDS)


def test_environment() -> None:
    function = next(
        node
        for node in ast.parse((SOURCE / "run" / "local.py").read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "_environment"
    )
    written = next(node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    assert isinstance(written, ast.Dict)
    keys = {key.value for key in written.keys if isinstance(key, ast.Constant)}
    assert set(documented("records.md", "`environment.json`")) == keys | {"ceilings", "probes", "imported"}


def test_resources_and_clocks() -> None:
    text = (ROOT / "docs" / "records.md").read_text()
    for file, name in (
        ("opencl_device.py", "resources"),
        ("cuda_device.py", "resources"),
        ("cuda_device.py", "clocks"),
    ):
        row = re.search(rf"^\| `{name}` \|.*$", text, flags=re.M)
        assert row
        assert all(f"`{key}`" in row.group() for key in _keys(SOURCE / "backend" / file, name)), file


def _keys(file: Path, name: str) -> Iterator[str]:
    """The keys of the mapping that a file assigns to ``self.NAME``, or returns from a method of that name."""
    for node in ast.walk(ast.parse(file.read_text())):
        values: list[ast.AST | None] = []
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"self.{name}":
            values = [node.value]
        elif isinstance(node, ast.FunctionDef) and node.name == name:
            values = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return)]
        for value in values:
            if isinstance(value, ast.Dict):
                yield from (key.value for key in value.keys if isinstance(key, ast.Constant))


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Every class of the harness."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                yield file, node


def promised(docstring: str, section: str) -> list[str]:
    """The names that a section of a docstring in NumPy's form lists."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S.*\n-+$|\Z)", docstring, flags=re.M | re.S)
    lines = found.group(1).splitlines() if found else []
    heads = [line.split(":")[0] for line in lines if re.match(r"[a-zA-Z_*][\w, *]*( :.*)?$", line)]
    return [name.strip(" *") for head in heads for name in head.split(",")]


def held(node: ast.ClassDef) -> set[str]:
    """The names of a class's members: fields, attributes that it sets, properties and methods."""
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef):
            names.add(inner.name)
        targets = inner.targets if isinstance(inner, ast.Assign) else []
        targets = [inner.target] if isinstance(inner, ast.AnnAssign) else targets
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                names.add(ast.unparse(one).removeprefix("self."))
    return names


def test_docstrings_promise_no_attribute_that_is_not_there() -> None:
    known: dict[str, tuple[set[str], list[str]]] = {}
    for _, node in classes():  # those of one name, of several modules, together
        names, bases = known.get(node.name, (set(), []))
        known[node.name] = names | held(node), [*bases, *map(ast.unparse, node.bases)]

    def members(name: str) -> set[str]:
        own, bases = known.get(name, (set(), []))
        return own.union(*map(members, bases))

    missing = []
    seen = 0
    for file, node in classes():
        docstring = ast.get_docstring(node) or ""
        names = [*promised(docstring, "Attributes"), *promised(docstring, "Class attributes")]
        seen += len(names)
        missing += [f"{file.name}: {node.name}.{name}" for name in names if name not in members(node.name)]
    assert missing == [] and seen > 50


def test_docstrings_promise_no_parameter_that_is_not_there() -> None:
    missing = []
    seen = 0
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            names = promised(ast.get_docstring(node) or "", "Parameters")
            functions = [node] if isinstance(node, ast.FunctionDef) else node.body
            arguments = {
                argument.arg
                for function in functions
                if isinstance(function, ast.FunctionDef) and function.name in ("__init__", node.name)
                for argument in (*function.args.args, *function.args.kwonlyargs, function.args.kwarg)
                if argument
            }
            if isinstance(node, ast.ClassDef):  # of a dataclass
                arguments |= held(node)
            seen += len(names)
            missing += [f"{file.name}: {node.name}: {name}" for name in names if name not in arguments]
    assert missing == [] and seen > 50
