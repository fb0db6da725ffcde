"""Counts of variants whose work is known (tests/data/counted)."""

from __future__ import annotations

from pathlib import Path

from perfport.untimed.count import Count

PLANTED = Path(__file__).parents[1] / "data" / "counted"


def of(found: list[Count], variant: str) -> list[Count]:
    return [count for count in found if count.identity.variant == variant]
