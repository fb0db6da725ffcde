"""What tests of nightly runs share."""

from __future__ import annotations

from pathlib import Path

import pytest
from code_repository import of_this_code


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with this code and a workload of clocks in one commit."""
    return of_this_code(tmp_path / "repository")
