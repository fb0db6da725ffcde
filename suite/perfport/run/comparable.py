"""Versions of the measuring code whose results are comparable, by declaration (`comparable.yaml`).

A digest of the whole of it makes every result stale with every correction. As benchmarks with minor versions do (SPEC
CPU2017 says of its updates which of them leave results comparable), a change that cannot have changed a stored result
is declared with its reason, which stands on the page of `perfport stale`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..model import schema

DECLARED = Path(__file__).with_name("comparable.yaml")
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Sentence = Annotated[str, Field(min_length=20, max_length=500)]


class Change(schema.Model):
    """A change of the measuring code: digests of it, what changed, and why no stored result could be another."""

    before: Digest
    after: Digest
    changed: Sentence
    why: Sentence


class Declared(schema.Model):
    """What the file holds."""

    changes: list[Change]


def chains(changes: Sequence[Change], present: str) -> dict[str, tuple[Change, ...]]:
    """Return the changes that lead from comparable versions to the present one, by the version's digest.

    Of two ways the shorter counts; the present version is not among them.
    """
    led: dict[str, tuple[Change, ...]] = {present: ()}
    waiting = [present]
    while waiting:
        at = waiting.pop(0)
        for change in changes:
            if change.after == at and change.before not in led:
                led[change.before] = (change, *led[at])
                waiting.append(change.before)
    del led[present]
    return led


@cache
def comparable(present: str, file: Path = DECLARED) -> Mapping[str, tuple[Change, ...]]:
    """Return `chains` of what the file declares. Raises `UsageError` where it is damaged."""
    return chains(schema.validate(Declared, schema.read(file), str(file)).changes, present)
