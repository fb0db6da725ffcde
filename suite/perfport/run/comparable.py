"""Versions of code whose results are comparable, by declaration (`comparable.yaml`).

A digest of the whole of it makes every result stale with every correction. As benchmarks with minor versions do (SPEC
CPU2017 says of its updates which of them leave results comparable), a change that cannot have changed a stored result
is declared with its reason, which stands on the page of `perfport stale`: of the measuring code beside this module, of
the files of a workload in its folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..model import schema

NAME = "comparable.yaml"
DECLARED = Path(__file__).with_name(NAME)
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
DeviceKind = Annotated[str, Field(pattern=r"^[a-z]+/(cpu|gpu|accelerator)$")]  # backend/kind
SHORT = 12  # digits of a file's digest
NEW = "new"  # before: the variant was not made of the file
FileDigest = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{SHORT}}}$")]
EarlierDigest = Annotated[str, Field(pattern=rf"^([0-9a-f]{{{SHORT}}}|{NEW})$")]
Sentence = Annotated[str, Field(min_length=20, max_length=500)]


class Reason(schema.Model):
    """What changed, and why no stored result could be another."""

    changed: Sentence
    why: Sentence


class Change(Reason):
    """A change of the measuring code: digests of it, before and after.

    ``concerns`` names devices whose results may be others by it, ``backend/kind``: for them nothing is declared.
    """

    before: Digest
    after: Digest
    concerns: list[DeviceKind] = []


class FilesChange(Reason):
    """A change of files of a workload: of each its digests before (or `NEW`) and after, by its name below the folder.

    ``concerns`` names variants whose results may be others by it, ``problem/variant``: for them nothing is declared.
    """

    files: dict[str, tuple[EarlierDigest, FileDigest]]
    concerns: list[str] = []


class Declared(schema.Model):
    """What the file of the measuring code holds."""

    changes: list[Change]


class DeclaredFiles(schema.Model):
    """What the file of a workload holds."""

    changes: list[FilesChange]


@dataclass(frozen=True)
class Step:
    """From one digest to another, without a change of results: ``said`` is what and why."""

    before: str
    after: str
    said: str


def chains(steps: Sequence[Step], present: str) -> dict[str, tuple[Step, ...]]:
    """Return the steps that lead from comparable versions to the present one, by the version's digest.

    Of two ways the shorter counts; the present version is not among them.
    """
    led: dict[str, tuple[Step, ...]] = {present: ()}
    waiting = [present]
    while waiting:
        at = waiting.pop(0)
        for step in steps:
            if step.after == at and step.before not in led:
                led[step.before] = (step, *led[at])
                waiting.append(step.before)
    del led[present]
    return led


@cache
def comparable(
    present: str, devices: frozenset[str] = frozenset(), file: Path = DECLARED
) -> Mapping[str, tuple[Step, ...]]:
    """Return `chains` of the measuring code's changes that are none for results of devices, ``backend/kind``.

    Raises
    ------
    UsageError
        Where the file is damaged.
    """
    declared = schema.validate(Declared, schema.read(file), str(file)).changes
    steps = [Step(each.before, each.after, _said(each)) for each in declared if devices.isdisjoint(each.concerns)]
    return chains(steps, present)


@cache
def comparable_file(folder: Path, name: str, present: str, variant: str) -> Mapping[str, tuple[Step, ...]]:
    """Return `chains` of the changes of a file of a workload that are none for a variant, ``problem/variant``.

    A workload need not declare any.

    Raises
    ------
    UsageError
        Where what it declares is damaged.
    """
    file = folder / NAME
    if not file.exists():
        return {}
    declared = schema.validate(DeclaredFiles, schema.read(file), str(file)).changes
    steps = [
        Step(*each.files[name], _said(each))
        for each in declared
        if name in each.files and variant not in each.concerns
    ]  # fmt: skip
    return chains(steps, present)


def _said(reason: Reason) -> str:
    return f"{reason.changed} {reason.why}"
