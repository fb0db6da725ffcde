"""Versions of the measuring code whose results are comparable, by declaration."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.model import schema
from perfport.model.errors import UsageError
from perfport.run.comparable import (
    DECLARED,
    NAME,
    SHORT,
    Declared,
    DeclaredFiles,
    Step,
    chains,
    comparable,
    comparable_file,
)
from perfport.run.keys import harness_digest
from perfport.run.sources import digest
from perfport.workload import discover

A, B, C, D = (letter * 64 for letter in "abcd")
WORKLOADS = Path(__file__).parents[2] / "workloads"
CHANGED, WHY = "Buffers are filled in parts.", "No stored result has one so large."


def change(before: str, after: str) -> Step:
    """A declared change."""
    return Step(before, after, f"{CHANGED} {WHY}")


def test_changes_lead_on_to_the_present_version_and_never_back() -> None:
    first, second = change(A, B), change(B, C)
    assert chains([first, second], C) == {B: (second,), A: (first, second)}
    assert chains([first, second], B) == {A: (first,)}
    assert not chains([first, second], D) and not chains([], A)


def test_the_shorter_way_counts_and_circles_end() -> None:
    straight = change(A, C)
    assert chains([change(A, B), change(B, C), straight, change(C, A)], C)[A] == (straight,)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("changes: [{before: abc}]", "before"),
        (f"changes: [{{before: {A}, after: {B}, changed: {CHANGED}, why: ''}}]", "why"),
        (f"changes: [{{before: {A}, after: {B}, changed: {CHANGED}}}]", "why"),
    ],
)
def test_a_change_without_digests_or_a_reason_is_none(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "comparable.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=told):
        comparable(A, file=file)


def test_a_change_counts_for_the_devices_that_it_concerns(tmp_path: Path) -> None:
    file = tmp_path / NAME
    file.write_text(f"""
changes:
  - {{before: {A}, after: {B}, changed: {CHANGED}, why: {WHY}}}
  - {{before: {B}, after: {C}, changed: {CHANGED}, why: {WHY}, concerns: [opencl/gpu, cuda/gpu]}}
""")
    places = [{"opencl/cpu"}, {"opencl/gpu"}, {"opencl/cpu", "cuda/gpu"}, set()]
    assert [set(comparable(C, frozenset(each), file)) for each in places] == [{A, B}, set(), set(), {A, B}]
    assert set(comparable(B, frozenset({"opencl/gpu"}), file)) == {A}


@pytest.mark.parametrize("concerns", ["[opencl]", "opencl/gpu", "[opencl/toaster]", "[OpenCL/gpu]"])
def test_devices_are_named_by_backend_and_kind(tmp_path: Path, concerns: str) -> None:
    file = tmp_path / NAME
    file.write_text(
        f"changes: [{{before: {A}, after: {B}, changed: {CHANGED}, why: {WHY}, concerns: {concerns}}}]"
    )  # fmt: skip
    with pytest.raises(UsageError, match="concerns"):
        comparable(B, file=file)


def test_files_of_a_workload_have_chains_of_their_own(tmp_path: Path) -> None:
    first, second, third = (letter * 12 for letter in "abc")
    (tmp_path / NAME).write_text(f"""
changes:
  - {{files: {{rows.cl: [{first}, {second}], common.h: [{first}, {third}]}}, changed: {CHANGED}, why: {WHY}}}
  - {{files: {{rows.cl: [{second}, {third}]}}, changed: {CHANGED}, why: {WHY}}}
""")
    assert set(comparable_file(tmp_path, "rows.cl", third, "rows/fast")) == {first, second}
    assert set(comparable_file(tmp_path, "common.h", third, "rows/fast")) == {first}
    assert not comparable_file(tmp_path, "rows.cl", first, "rows/fast")
    assert not comparable_file(tmp_path, "other.cl", third, "rows/fast")
    assert not comparable_file(tmp_path / "none", "rows.cl", third, "rows/fast")


def test_a_variant_may_not_have_been_made_of_a_file_before(tmp_path: Path) -> None:
    first, second = "a" * 12, "b" * 12
    file = tmp_path / NAME
    entry = f"changed: {CHANGED}, why: {WHY}, concerns: [rows/fast]"
    file.write_text(f"""
changes:
  - {{files: {{rows.cl: [new, {first}]}}, {entry}}}
  - {{files: {{rows.cl: [{first}, {second}]}}, changed: {CHANGED}, why: {WHY}}}
""")
    assert set(comparable_file(tmp_path, "rows.cl", second, "rows/slow")) == {"new", first}
    assert set(comparable_file(tmp_path, "rows.cl", second, "rows/fast")) == {first}
    comparable_file.cache_clear()
    file.write_text(f"changes: [{{files: {{rows.cl: [{first}, new]}}, {entry}}}]")
    with pytest.raises(UsageError, match=r"comparable\.yaml.*rows\.cl"):
        comparable_file(tmp_path, "rows.cl", second, "rows/fast")


def test_a_change_counts_for_the_variants_that_it_concerns(tmp_path: Path) -> None:
    first, second, third = (letter * 12 for letter in "abc")
    (tmp_path / NAME).write_text(f"""
changes:
  - {{files: {{rows.cl: [{first}, {second}]}}, changed: {CHANGED}, why: {WHY}, concerns: [rows/fast, rows/faster]}}
  - {{files: {{rows.cl: [{second}, {third}]}}, changed: {CHANGED}, why: {WHY}, concerns: [rows/slow]}}
""")
    names = ("rows/fast", "rows/slow", "rows/other", "columns/fast")
    known = [set(comparable_file(tmp_path, "rows.cl", third, name)) for name in names]
    assert known == [{second}, set(), {first, second}, {first, second}]


@pytest.mark.parametrize("digests", ["[aaaaaaaaaaaa]", "[aaaaaaaaaaaa, bbb]", "aaaaaaaaaaaa"])
def test_a_file_has_two_digests(tmp_path: Path, digests: str) -> None:
    (tmp_path / NAME).write_text(f"changes: [{{files: {{rows.cl: {digests}}}, changed: {CHANGED}, why: {WHY}}}]")
    with pytest.raises(UsageError, match=r"comparable\.yaml.*rows\.cl"):
        comparable_file(tmp_path, "rows.cl", "a" * 12, "rows/fast")


@pytest.mark.parametrize("file", sorted(WORKLOADS.glob(f"*/{NAME}")), ids=lambda file: file.parent.name)
def test_files_that_are_declared_lead_to_those_as_they_are(file: Path) -> None:
    (workload,) = discover(only=file.parent.name).values()
    variants = {f"{problem}/{name}" for problem, named in workload.variants.items() for name in named}
    for declared in schema.validate(DeclaredFiles, schema.read(file), str(file)).changes:
        assert not {*declared.concerns} - variants, "no such variant: nobody would be concerned"
        for name, (before, _) in declared.files.items():
            present = digest(frozenset({(file.parent / name).resolve()}))[:SHORT]
            assert before in comparable_file(file.parent, name, present, "another"), f"{name}: this entry leads nowhere"


def test_what_is_declared_leads_to_the_code_as_it_is() -> None:
    """Entries of before a change that is not declared lead nowhere: they go."""
    declared = schema.validate(Declared, schema.read(DECLARED), str(DECLARED)).changes
    assert {change.before for change in declared} == set(comparable(harness_digest()))
