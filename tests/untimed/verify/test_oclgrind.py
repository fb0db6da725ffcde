"""What Oclgrind prints, as findings."""

from __future__ import annotations

import pytest

from perfport.model.errors import InfrastructureError
from perfport.untimed.verify.oclgrind import Oclgrind


def test_a_plugin_that_does_not_load_is_a_failure_of_the_tool() -> None:
    for line in (
        "Loading Oclgrind plugin failed (dlopen): x.so",
        "OCLGRIND FATAL ERROR (x.cpp:1)\nUnsupported: freeze",
    ):
        with pytest.raises(InfrastructureError, match="Oclgrind failed"):
            Oclgrind().findings(f"\n{line}\n\n")


def test_compiler_chatter_is_no_finding() -> None:
    assert Oclgrind().findings("1 warning generated.\n") == []
