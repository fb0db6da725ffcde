"""What ``perfport tune`` found on a device: parameters of variants, and the sizes that they were found at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from ..model.record import Interval
from ..model.schema import Model

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
Value = Whole | Annotated[float, Field(strict=True, allow_inf_nan=False)] | Text
Parameters = dict[Name, Value]
Positive = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]


class Frozen(Model):
    """A part of a device profile."""

    model_config = ConfigDict(frozen=True)


class Tuned(Frozen):
    """Parameters of one variant that ``perfport tune`` found on this device, and how.

    Attributes
    ----------
    parameters : dict
        A value of each tunable; empty where the search found nothing that is faster than the code's defaults.
    next : list of dict
        Those that came next, best first: seeds of a search on a device like this one.
    date, driver, commit : str
        Of the search: when, on which driver, with which code (``-dirty`` where it was none that is committed).
    presets : dict of str to float
        Sizes that were tuned for, with their weights.
    tried, of : int
        Configurations that were measured, and how many there are.
    seed : int
        Of the search.
    share : float, optional
        Share of the problem bound that was reached, measured; the geometric mean over the presets.
    gain : Interval
        Time with the code's defaults over time with these parameters, measured by fresh workers, with its 95 %
        interval; the geometric mean over the presets.
    """

    parameters: Parameters
    next: list[Parameters] = Field(default_factory=list, max_length=20)
    date: Text
    driver: str
    commit: str
    presets: dict[Text, Positive] = Field(min_length=1)
    tried: int = Field(ge=1, lt=10**30)
    of: int = Field(ge=1, lt=10**30)
    seed: Whole
    share: Positive | None = None
    gain: Interval


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _distinct(entries: list[Tuned]) -> list[Tuned]:
    for number, entry in enumerate(entries):
        if any(each.presets == entry.presets for each in entries[:number]):
            told = ", ".join(f"{name}: {weight:g}" for name, weight in entry.presets.items())
            raise ValueError(f"expected one entry for each choice of presets, got two for {{{told}}}")
    return entries


#: What was found for one variant: an entry, or a list with one for each choice of sizes.
Entries = Annotated[
    list[Tuned],
    Field(min_length=1, max_length=100),
    BeforeValidator(_listed, json_schema_input_type=Tuned | list[Tuned]),
    AfterValidator(_distinct),
]


@dataclass(frozen=True)
class Size:
    """The size that parameters are wanted for: the problem's parameters, and those of its presets by their names.

    Each set has every parameter of the problem, as it is: where a name stands for sizes (an operator's, a photograph's)
    it is one that is equal or not.
    """

    parameters: Mapping[str, Any]
    presets: Mapping[str, Mapping[str, Any]]


def by_distance(entries: Sequence[Tuned], size: Size) -> list[Tuned]:
    """Return entries by how far their sizes are from one, the nearest first; equally near ones keep their order.

    Sizes are as far apart as the binary logarithms of their numbers are in all; anything else that differs counts as a
    factor of two. Of an entry for several presets the nearest counts. Presets that the problem no longer has are
    farther than any.
    """
    return sorted(entries, key=lambda entry: _distance(entry, size))


def nearest_size(entries: Sequence[Tuned], size: Size) -> Tuned | None:
    """Return the entry whose sizes are nearest (`by_distance`); ``None`` where there is no entry."""
    return next(iter(by_distance(entries, size)), None)


def _distance(entry: Tuned, size: Size) -> float:
    known = [size.presets[name] for name in entry.presets if name in size.presets]
    return min((_apart(each, size.parameters) for each in known), default=math.inf)


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    return math.fsum(_doublings(one.get(name), other.get(name)) for name in {*one, *other})


def _doublings(one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    numbers = [each for each in (one, other) if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) == 2 and min(numbers) > 0:
        return abs(math.log2(numbers[0]) - math.log2(numbers[1]))
    return 1.0
