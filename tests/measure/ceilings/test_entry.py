"""What a sweep leaves behind survives the disk, and unknown keys do not."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from perfport.measure.ceilings.entry import SWEEP_VERSION, Ceiling, Ceilings


def test_ceilings_survive_json() -> None:
    curve = [(1024.0, 2e11), (2048.0, 1e11)]
    entries = {"l1_read": Ceiling(value=1e11, low=9e10, high=1.1e11, unit="B/s", curve=curve)}
    made = Ceilings(device="d", driver="1", date="now", entries=entries, absent={"l2_read": "no such level"})
    assert Ceilings.model_validate_json(made.model_dump_json()) == made
    assert made.version == SWEEP_VERSION


@pytest.mark.parametrize("change", [{"colour": "red"}, {"direction": "sideways"}, {"value": "fast"}])
def test_what_is_no_ceiling_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(change))):
        Ceiling.model_validate({"value": 1.0, "low": 1.0, "high": 1.0, "unit": "B/s"} | change)
