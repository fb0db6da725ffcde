"""Which elements of an output are wrong, as records hold it."""

from __future__ import annotations

from pydantic import Field

from .schema import Model


class Element(Model):
    """One wrong element of an output. Values are text as NumPy writes them: JSON has neither NaN nor infinity."""

    index: list[int]
    got: str
    expected: str | None = None

    def __str__(self) -> str:
        reference = "" if self.expected is None else f", expected {self.expected}"
        return f"[{', '.join(map(str, self.index))}]: got {self.got}{reference}"


class Mismatch(Model):
    """Which elements of an output are off: how many of those compared, the first, the worst, and their pattern."""

    off: int = Field(ge=1)
    compared: int = Field(ge=1)
    first: Element
    worst: Element
    pattern: str = Field("", description="in words, where they form one: every element, the last 5, every 7th")

    def __str__(self) -> str:
        where = f" ({self.pattern})" if self.pattern else ""
        worst = "" if self.worst == self.first else f"; worst {self.worst}"
        return f"{self.off} of {self.compared} elements off{where}; first {self.first}{worst}"
