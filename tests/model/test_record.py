"""Records: statuses, intervals in order, samples that fit their summary."""

from __future__ import annotations

from typing import Any

import pytest
import report_data as data
from pydantic import ValidationError

from perfport.model.record import RETRY, ROUNDING, Bound, Identity, Interval, OutputError, Record, Status


def test_a_status_is_measured_or_failed_or_says_what_is_missing() -> None:
    assert {status for status in Status if status.measured} == {Status.OK, Status.CONTENDED}
    neither = {status for status in Status if not status.measured and not status.failed}
    assert neither == {Status.UNSUPPORTED, Status.UNAVAILABLE}
    assert RETRY["failed"].isdisjoint(RETRY["contended"])


def test_intervals_come_in_order_up_to_rounding() -> None:
    Interval(value=1.0, low=1.0 + ROUNDING / 2, high=2.0)
    with pytest.raises(ValidationError, match=r"expected low <= value <= high, got low 1\.1 above value 1"):
        Interval(value=1.0, low=1.1, high=2.0)
    with pytest.raises(ValidationError, match="finite number"):
        Interval(value=float("nan"), low=1.0, high=2.0)


def test_a_bound_binds_by_one_of_its_terms() -> None:
    share = Interval(value=0.5, low=0.4, high=0.6)
    with pytest.raises(ValidationError, match="expected one of the terms dram, got 'fp32'"):
        Bound(seconds=1.0, low=1.0, high=1.0, binding="fp32", terms={"dram": 1.0}, share=share)
    with pytest.raises(ValidationError, match="expected low <= seconds <= high"):
        Bound(seconds=1.0, low=1.1, high=1.2, binding="dram", terms={"dram": 1.0}, share=share)


def test_an_error_that_is_not_finite_is_the_largest_float() -> None:
    error = OutputError(max_abs=float("inf"), relative_l2=float("nan"), checked=1, total=1, tolerance={}, passed=False)
    assert OutputError.model_validate_json(error.model_dump_json()) == error
    assert error.max_abs == error.relative_l2 > 1e308


@pytest.mark.parametrize(("tunables", "count"), [({}, 2), ({"devices": 4}, 4), ({"devices": 1}, 2)])
def test_devices_are_those_with_ids_or_those_that_a_variant_says(tunables: dict[str, Any], count: int) -> None:
    identity = Identity(workload="w", problem="p", variant="v", devices=["a", "b"], backend="cuda", tunables=tunables)
    assert identity.device_count == count


def test_a_record_reads_back_and_knows_no_other_keys() -> None:
    record = data.record("a")
    assert Record.model_validate_json(record.model_dump_json()) == record
    with pytest.raises(ValidationError, match="spede"):
        Record.model_validate({**record.model_dump(), "spede": 1})
    assert record.model_copy(update={"seed": 5}).inputs == {"a": 5}
