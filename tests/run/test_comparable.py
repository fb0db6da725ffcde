"""Versions of the measuring code whose results are comparable, by declaration."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.model import schema
from perfport.model.errors import UsageError
from perfport.run.comparable import DECLARED, Change, Declared, chains, comparable
from perfport.run.keys import harness_digest

A, B, C, D = (letter * 64 for letter in "abcd")
CHANGED, WHY = "Buffers are filled in parts.", "No stored result has one so large."


def change(before: str, after: str) -> Change:
    """A declared change."""
    return Change(before=before, after=after, changed=CHANGED, why=WHY)


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
        comparable(A, file)


def test_what_is_declared_leads_to_the_code_as_it_is() -> None:
    """Entries of before a change that is not declared lead nowhere: they go."""
    declared = schema.validate(Declared, schema.read(DECLARED), str(DECLARED)).changes
    assert {change.before for change in declared} == set(comparable(harness_digest()))
