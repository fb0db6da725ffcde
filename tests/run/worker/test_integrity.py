"""Code that times or verifies and is replaced: named, and put back."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
import yaml

from perfport.measure import sampling
from perfport.model.errors import RefusedError
from perfport.run.worker.integrity import Integrity
from perfport.workload import Problem, outputs


class Thing:
    """Has a method and data."""

    def __init__(self) -> None:
        self.data = 1

    def judge(self) -> str:
        return "right"


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (time, "perf_counter"), (np, "array_equal"), (outputs, "compare"), (sampling.Sampler, "_wall"),
        (Problem, "verify"), (sampling, "Sampler"), (outputs.Output, "dtypes"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)  # fmt: skip
def test_code_that_is_replaced_is_named_and_put_back(owner: Any, name: str) -> None:
    integrity = Integrity()
    integrity.restore()
    before = vars(owner)[name]
    setattr(owner, name, lambda *args: None)
    with pytest.raises(RefusedError, match=rf"refused: {owner.__name__}\.{name} was replaced"):
        integrity.restore()
    assert vars(owner)[name] is before
    integrity.restore()


def test_code_of_other_libraries_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their names: libraries replace functions of their own."""
    integrity = Integrity()
    for library in (json, yaml):
        monkeypatch.setattr(library, "dump", lambda *args: None)
    integrity.restore()


def test_code_that_is_deleted_is_put_back() -> None:
    integrity, before = Integrity(), outputs.compare_exact
    del outputs.compare_exact
    with pytest.raises(RefusedError, match=r"outputs\.compare_exact"):
        integrity.restore()
    assert outputs.compare_exact is before


def test_methods_are_not_shadowed() -> None:
    shared, own, patched = Thing(), Thing(), Thing()
    patched.judge = lambda: "another"  # type: ignore[method-assign]  # before: whoever starts the run may
    integrity = Integrity(shared, patched)
    shared.data = own.data = 2  # data may change
    own.later = lambda: None  # type: ignore[attr-defined]  # nor is it a method of the class
    integrity.restore(own)
    for each in (shared, own):
        each.judge = lambda: "wrong, but passes"  # type: ignore[method-assign]
        with pytest.raises(RefusedError, match=r"refused: Thing\.judge was replaced"):
            integrity.restore(own)
        assert each.judge() == "right"
