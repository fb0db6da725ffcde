"""Commands about the form of files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from commands import Cli

from perfport.model.record import Record
from perfport.run.experiment import Experiment


@pytest.mark.parametrize(("which", "model"), [("experiment", Experiment), ("record", Record)])
def test_schema(main: Cli, which: str, model: Any) -> None:
    code, out, _ = main("schema", which, discover=False)
    assert code == 0 and set(json.loads(out)["properties"]) == set(model.model_fields)


def test_validate_shipped_experiments(main: Cli) -> None:
    code, out, _ = main("validate", "quick")
    assert code == 0 and re.search(r"valid; [1-9]\d* cases", out)
