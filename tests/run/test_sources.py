"""The age of results: by what the run says of its code, by the history of the repository, or unknown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import report_data as data
import yaml

from perfport.model.record import Record
from perfport.report.pages.stale import view
from perfport.run import sources
from perfport.run.comparable import NAME, Step, chains, comparable_file
from perfport.run.keys import harness_digest
from perfport.run.sources import MEASURING, WORKLOAD, Age, Verdict, age, describe, digest, variant_files
from perfport.store.collection import Collection
from perfport.store.results import Run
from perfport.workload import Workload, discover

PROBLEM = """
from pydantic import BaseModel
from perfport.workload import Metric, Problem
from .numbers import ONE
class Size(BaseModel):
    n: int
class Rows(Problem):
    name, Parameters = "rows", Size
    presets, check_sizes = {"tiny": {"n": 4}}, ({"n": 1}, {"n": 3})
    metric = Metric("demo.rate", "GFLOP/s", "higher", "")
    def work(self): ...
    def metric_value(self, seconds): ...
    def outputs(self, *which): ...
    def check(self, outputs, *which): ...
"""
VARIANT = """
from perfport.workload import Variant
from ..problems import Rows
class {cls}(Variant):
    '''Not to be read as a kernel: other.cl'''
    problem, name = Rows, "{name}"
    def __init__(self, setup): self.kernel = setup.kernel({kernel}, "main")
    def launch(self): ...
"""
FILES = {
    "__init__.py": '"""A demonstration."""',
    "numbers.py": "ONE = 1",
    "unused.py": "",
    "problems.py": PROBLEM,
    "variants/__init__.py": "",
    "variants/fast.py": VARIANT.format(cls="Fast", name="fast", kernel='"fast.cl"'),
    "variants/slow.py": VARIANT.format(cls="Slow", name="slow", kernel='"other.cl"'),
    "variants/any.py": VARIANT.format(cls="Any", name="any", kernel='f"{setup.name}.cl"'),
    "variants/served.py": VARIANT.format(cls="Served", name="served", kernel='f"{__package__}.serving"'),
    "variants/serving.py": "",
    "kernels/fast.cl": '#include "common.h"\n',
    "kernels/other.cl": "",
    "kernels/common.h": "",
    "kernels/rest.cu": "",
}
COMMON = {"numbers.py", "problems.py"}


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Workload]:
    """A workload of four variants, on disk."""
    name = f"demo_{tmp_path.name}"  # modules of one name are imported once
    for file, content in FILES.items():
        path = tmp_path / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    workload = discover([tmp_path / name])[name]
    return {"demo": workload}


def names(found: dict[str, Workload], variant: str) -> set[str]:
    """Return the files of a variant, relative to the workload's folder."""
    workload = found["demo"]
    files = variant_files(workload, workload.variant("rows", variant))
    return {path.relative_to(workload.folder.resolve()).as_posix() for path in files}


def test_a_variant_is_its_modules_what_they_import_and_the_kernels_they_name(found: dict[str, Workload]) -> None:
    assert names(found, "fast") == {*COMMON, "variants/fast.py", "kernels/fast.cl", "kernels/common.h"}
    assert names(found, "slow") == {*COMMON, "variants/slow.py", "kernels/other.cl"}
    assert names(found, "served") == {*COMMON, "variants/served.py", "variants/serving.py"}
    assert names(found, "any") == {
        *COMMON, "variants/any.py", "kernels/fast.cl", "kernels/other.cl", "kernels/common.h"
    }  # fmt: skip


def test_files_of_the_shipped_workloads_are_all_somebodys() -> None:
    """A module or kernel that no variant seemed to use would be one whose changes go unseen."""
    for name, workload in discover().items():
        known = {
            path
            for listed in workload.variants.values()
            for v in listed.values()
            for path in variant_files(workload, v)
        }
        folder = workload.folder.resolve()
        every = {path for path in folder.rglob("*") if path.suffix in (".py", ".cl", ".cu", ".h")}
        left = {path.relative_to(folder).as_posix() for path in every - known if path.name != "__init__.py"}
        assert not left, f"{name}: {left}"


def record(variant: str = "fast") -> Record:
    """Return a record of one of the variants."""
    return data.record(variant, ceilings=None)


def stored(folder: Path, found: dict[str, Workload], **change: Any) -> Run:
    """Return a run that says what its code was."""
    identities = [record(name).identity for name in ("fast", "slow")]
    code = {**describe(found, identities), **change.pop("code", {})}
    return data.store(folder, [record(), record("slow")], data.environment(code=code, **change))


def changed(found: dict[str, Workload], file: str) -> dict[str, Workload]:
    """Change a file of the workload, as if in a later process."""
    path = found["demo"].folder / file
    path.write_text(path.read_text() + "\n// changed\n" if path.suffix != ".py" else "# changed\n" + path.read_text())
    for cached in (sources._read, sources._variant_files, digest):
        cached.cache_clear()  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("kernels/fast.cl", {"fast"}), ("kernels/common.h", {"fast"}), ("numbers.py", {"fast", "slow"}),
        ("variants/slow.py", {"slow"}), ("unused.py", set()), ("kernels/rest.cu", set()),
    ],
)  # fmt: skip
def test_a_change_makes_stale_what_rests_on_it(
    tmp_path: Path, found: dict[str, Workload], file: str, stale: set[str]
) -> None:
    run = stored(tmp_path / "run", found)
    assert {age(run, each.identity, found).age for each in run.records} == {Age.CURRENT}
    changed(found, file)
    verdicts = {each.identity.variant: age(run, each.identity, found) for each in run.records}
    assert {name for name, verdict in verdicts.items() if verdict.age is Age.STALE} == stale
    assert all(re.fullmatch(rf"{file} \([0-9a-f]{{12}}\.\.[0-9a-f]{{12}}\)", verdicts[name].why) for name in stale)


def test_a_change_of_what_measures_makes_everything_stale(tmp_path: Path, found: dict[str, Workload]) -> None:
    run = stored(tmp_path / "run", found, code={"measuring": "0" * 64})
    verdict = age(run, run.records[0].identity, found)
    assert verdict.age is Age.STALE and verdict.why == MEASURING


def test_a_change_that_is_declared_to_be_none_for_results_leaves_them_current(
    tmp_path: Path, found: dict[str, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason stands beside them; a change of the workload makes them stale all the same."""
    changes, why = "Buffers are filled in parts.", "No stored result has one so large."
    one = Step("0" * 64, harness_digest(), f"{changes} {why}")
    monkeypatch.setattr(sources, "comparable", lambda present, devices: chains([one], present))
    run = stored(tmp_path / "run", found, code={"measuring": "0" * 64})
    verdict = age(run, run.records[0].identity, found)
    assert verdict == Verdict(Age.CURRENT, f"{changes} {why}")
    older = stored(tmp_path / "older", found, code={"measuring": "1" * 64})
    assert age(older, older.records[0].identity, found).age is Age.STALE
    changed(found, "numbers.py")
    verdict = age(run, run.records[0].identity, found)
    assert verdict.age is Age.STALE and re.fullmatch(r"numbers\.py \([0-9a-f]{12}\.\.[0-9a-f]{12}\)", verdict.why)


def test_a_change_that_concerns_some_devices_leaves_results_of_others_current(
    tmp_path: Path, found: dict[str, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By backend and kind of the devices that a case ran on, as its run tells."""
    one = Step("0" * 64, harness_digest(), "changed")
    monkeypatch.setattr(
        sources, "comparable", lambda present, devices: chains([] if "opencl/gpu" in devices else [one], present)
    )
    ids = (data.POCL, data.GPU)
    run = data.store(
        tmp_path / "run",
        [data.record("fast", device=id_, backend="opencl", ceilings=None) for id_ in ids],
        data.environment(ids, code={**describe(found, [record().identity]), "measuring": "0" * 64}),
    )
    ages = [age(run, each.identity, found).age for each in run.records]
    assert ages == [Age.CURRENT, Age.STALE]


def test_a_file_whose_change_is_declared_to_be_none_leaves_results_current(
    tmp_path: Path, found: dict[str, Workload]
) -> None:
    run = stored(tmp_path / "run", found)
    changed(found, "numbers.py")
    first = age(run, run.records[0].identity, found)
    assert first.age is Age.STALE
    before, after = re.findall(r"[0-9a-f]{12}", first.why)
    declared = {
        "files": {"numbers.py": [before, after]},
        "changed": "A comment was added.",
        "why": "It is no code at all.",
    }
    (found["demo"].folder / NAME).write_text(yaml.safe_dump({"changes": [declared]}))
    comparable_file.cache_clear()
    verdicts = [age(run, each.identity, found) for each in run.records]
    assert verdicts == [Verdict(Age.CURRENT, "A comment was added. It is no code at all.")] * 2
    changed(found, "kernels/fast.cl")
    assert [age(run, each.identity, found).age for each in run.records] == [Age.STALE, Age.CURRENT]


def test_without_digests_of_files_the_workload_has_changed(tmp_path: Path, found: dict[str, Workload]) -> None:
    run = stored(tmp_path / "run", found, code={"files": {}, "made_of": {}})
    changed(found, "numbers.py")
    assert age(run, run.records[0].identity, found) == Verdict(Age.STALE, WORKLOAD)


def test_what_cannot_be_told_is_unknown(tmp_path: Path, found: dict[str, Workload]) -> None:
    run = stored(tmp_path / "run", found)
    assert age(run, record("any").identity, found).why == "the run does not say what this variant was made of"
    assert age(run, record().identity, {}).age is Age.UNKNOWN
    assert age(run, record("gone").identity, found).age is Age.STALE
    old = data.store(tmp_path / "old", [record()], data.environment(commit={"hash": "f" * 40, "dirty": False}))
    assert age(old, record().identity, found).why == "the run's commit is in no repository here"
    nowhere = data.store(tmp_path / "nowhere", [record()], data.environment(commit=None))
    assert age(nowhere, record().identity, found).age is Age.UNKNOWN
    adopted = data.store(tmp_path / "adopted", [record()], data.environment(imported={"file": "a.json"}))
    assert age(adopted, record().identity, found).why == "measured elsewhere"


def test_without_a_digest_the_history_tells(
    tmp_path: Path, found: dict[str, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *names, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    first = git("rev-parse", "HEAD").strip()
    monkeypatch.setattr(sources, "files", lambda _: found["demo"].folder)
    runs = {
        dirty: data.store(
            tmp_path / f"run{dirty}", [record()], data.environment(commit={"hash": first, "dirty": dirty})
        )
        for dirty in (False, True)
    }

    def verdicts(variant: str) -> list[tuple[Age, str]]:
        sources._changed_since.cache_clear()
        sources._changed_of.cache_clear()
        told = [age(run, record(variant).identity, found) for run in runs.values()]
        return [(verdict.age, verdict.why) for verdict in told]

    assert verdicts("fast") == [(Age.CURRENT, ""), (Age.UNKNOWN, "measured with uncommitted changes")]
    changed(found, "kernels/fast.cl")
    assert verdicts("fast") == 2 * [(Age.STALE, "kernels/fast.cl")]
    assert verdicts("slow")[0] == (Age.CURRENT, "")
    git("commit", "-qam", "second")
    assert verdicts("fast") == 2 * [(Age.STALE, "kernels/fast.cl")]
    monkeypatch.setattr(sources, "harness_files", lambda: [found["demo"].folder / "kernels" / "fast.cl"])
    assert verdicts("slow")[0] == (Age.STALE, MEASURING)
    sources._changed_since.cache_clear()
    sources._changed_of.cache_clear()


def test_the_list_says_what_is_stale_and_why(tmp_path: Path, found: dict[str, Workload]) -> None:
    run = stored(tmp_path / "run", found)
    assert "0 of 2 results" in view(Collection([run]), found).markdown
    changed(found, "kernels/fast.cl")
    shown = view(Collection([run]), found)
    assert "1 of 2 results were measured with code that has changed since" in shown.markdown
    assert "`fast`" in shown.markdown and "`slow`" not in shown.markdown
    assert [(row["variant"], row["age"], row["why"][:16]) for row in shown.rows] == [
        ("fast", "stale", "kernels/fast.cl "), ("slow", "current", ""),
    ]  # fmt: skip


def test_the_command_lists_what_is_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = data.store(tmp_path / "run", [record()])
    assert data.call(monkeypatch, "stale", run.folder, "--format", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["age"], row["record"]) == ("unknown", run.records[0].key)
    assert data.call(monkeypatch, "stale", run.folder) == 0
    assert "0 of 1 results" in capsys.readouterr().out
    assert data.call(monkeypatch, "stale", run.folder, "--variant", "nosuch") == 2
