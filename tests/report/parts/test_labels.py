"""Names of ceilings for readers, and their order."""

from __future__ import annotations

from perfport.measure.ceilings import KINDS
from perfport.report.parts.labels import LABELS, label, ordered


def test_every_ceiling_has_a_name() -> None:
    assert set(KINDS) <= set(LABELS)
    assert label("dram_read") == "DRAM read" and label("of_tomorrow") == "of_tomorrow"


def test_memory_comes_before_arithmetic_and_what_is_unknown_last() -> None:
    assert ordered(["of_tomorrow", "fp32_fma", "l2_read", "dram", "dram"]) == [
        "dram",
        "l2_read",
        "fp32_fma",
        "of_tomorrow",
    ]
