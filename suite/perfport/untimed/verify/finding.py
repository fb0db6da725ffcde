"""What a sanitizer found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One kind of error at one place: what, in which kernel, where, and how often."""

    kind: str
    kernel: str
    where: str = ""
    count: int = 1
