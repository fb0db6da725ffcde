"""Exhibits: the figures and tables of a publication as data, so that a page can show them again in its order.

They lie beside the published figures, in ``results/published/exhibits``, one file per workload: what a source shows is
no code, and correcting it changes no case's key. Nothing here knows a workload by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from ..machine.device_profile import all_profiles
from ..model import published, schema
from ..model.errors import UsageError, nearest
from ..model.published import Figure
from ..model.record import Record
from ..model.schema import Model
from .claims import Claim, Selector, ledger
from .claims.ledger import Wanted

#: What an axis shows without naming a figure of the record.
METRIC, TIME, SPEEDUP = "metric", "time", "speedup"
#: Between the values of an axis of several parameters.
TOGETHER = " x "
#: Roles of variants that may be the best.
CONTENDERS = ("rung", "beyond")


class Series(Selector):
    """One curve, set of bars or column: which records it is made of, of several at one place the fastest.

    Attributes
    ----------
    best : bool
        The fastest variant, whichever it is, in place of named ones.
    label : str
        How it is called; default: its variants.
    over : Selector, optional
        What a speed-up is over, at the same setting.
    y, unit : str
        In place of the exhibit's.
    """

    variant: list[str] = Field(default_factory=list)
    best: bool = False
    label: str = ""
    over: Selector | None = None
    y: str | None = None
    unit: str = ""

    @model_validator(mode="after")
    def _chosen(self) -> Self:
        if self.best == bool(self.variant):
            raise ValueError(f"expected either 'variant' or 'best: true', got {self.variant or 'neither'}")
        return self

    @property
    def title(self) -> str:
        """The label, or what the series is made of."""
        own = "best variant" if self.best else self.name
        return self.label or own + (f" over {self.over.name}" if self.over else "")

    def takes(self, record: Record, parameters: Mapping[str, Wanted]) -> bool:
        """Whether a record is meant, given the exhibit's parameters."""
        if not self.best:
            return super().takes(record, parameters)
        named = self.model_copy(update={"variant": [record.identity.variant], "best": False})
        return record.identity.role in CONTENDERS and named.takes(record, parameters)


class Cited(Model):
    """Published figures that stand beside an exhibit: each text is part of theirs, the variant is theirs.

    ``series`` is the title of the series that they are the published values of.
    """

    variant: str | None = None
    unit: str = ""
    source: str = ""
    note: str = ""
    series: str | None = None

    def takes(self, figure: Figure) -> bool:
        """Whether a published figure is meant."""
        parts = ((self.unit, figure.unit), (self.source, figure.source), (self.note, figure.note or ""))
        return self.variant in (None, figure.variant) and all(part in whole for part, whole in parts)


class Exhibit(Model):
    """A figure or table of a source, and what of a run is shown in its place.

    Attributes
    ----------
    number, title : str
        As the source has it: "Figure 5".
    kind : str
        ``curves`` over an axis, ``bars`` for each value of an axis or each series, ``roofline``, ``table``, or
        ``ratios``: the claims alone, with the published numbers beside the measured ones.
    problem : str, optional
        None for ``ratios``.
    parameters : dict
        Of the records that take part; those that differ otherwise are panels beside each other.
    precision : str, optional
        The class of the records; default: each with a panel.
    profiles : list of str, optional
        Each with a panel: whose parameters are compiled in; null for the device's defaults.
    x : list of str
        Parameter or tunable of the axis; of several the values stand together: ``640 x 480``. Without one each series
        has a place.
    values : list
        What the axis has in the source, in its order: what a run lacks of them is said.
    y : str
        ``metric``, ``time``, ``speedup``, or a figure by its path: ``extra.NAME`` of the record, ``count.NAME`` of
        what ``perfport count`` stored. ``/s`` behind it: over the time.
    unit : str
        Of such a figure.
    devices : list of str
        Device profiles whose roofs a roofline has beside those of the run.
    published : list of Cited
    claims : list of str
        Those that it carries, by their ids.
    note : str
        Where it differs from the source, or why published values do not survive.
    """

    number: str
    title: str
    kind: Literal["curves", "bars", "roofline", "table", "ratios"]
    problem: str = ""
    parameters: dict[str, Wanted] = Field(default_factory=dict)
    precision: str | None = None
    profiles: list[str | None] = Field([None], min_length=1)
    x: list[str] = Field(default_factory=list)
    values: list[int | float | str] = Field(default_factory=list)
    y: str = Field(METRIC, pattern=r"^[a-z_]\w*(\.\w+)*(/s)?$")
    unit: str = ""
    series: list[Series] = Field(default_factory=list)
    devices: list[str] = Field(default_factory=list)
    published: list[Cited] = Field(default_factory=list)
    claims: list[str] = Field(default_factory=list)
    note: str = ""

    @field_validator("x", mode="before")
    @classmethod
    def _several(cls, x: Any) -> Any:
        return [x] if isinstance(x, str) else x

    @field_validator("series", mode="before")
    @classmethod
    def _named(cls, series: Any) -> Any:
        """A name alone stands for the series of that variant."""
        return [{"variant": each} if isinstance(each, str) else each for each in series]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "ratios":
            if self.series or not self.claims:
                raise ValueError("kind 'ratios' is made of 'claims' alone: expected some, and no 'series'")
            return self
        if not self.problem or not self.series:
            raise ValueError(f"kind {self.kind!r} needs 'problem' and 'series'")
        if self.kind == "curves" and len(self.x) != 1:
            raise ValueError(f"kind 'curves' needs one 'x', a parameter or tunable, got {self.x or 'none'}")
        if self.devices and self.kind != "roofline":
            raise ValueError(f"'devices' belong to kind 'roofline', got {self.kind!r}")
        titles = [series.title for series in self.series]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(f"two series are called {title!r}; 'label' tells them apart")
        for series in self.series:
            if (self.quantity(series) == SPEEDUP) != bool(series.over):
                raise ValueError(f"series {series.title!r}: expected 'over' with y 'speedup', and only there")
        for cited in self.published:
            if cited.series not in (None, *titles):
                raise ValueError(
                    f"published: no series is called {cited.series!r}{nearest(str(cited.series), titles)}; "
                    f"there are: {', '.join(titles)}"
                )
        return self

    @property
    def axis(self) -> str:
        """The name of the axis, empty where there is none."""
        return TOGETHER.join(self.x)

    def quantity(self, series: Series) -> str:
        """What a series shows, as `y` says it."""
        return series.y or (SPEEDUP if series.over else self.y)


class Source(Model):
    """A publication: what of it is shown, in its order.

    Attributes
    ----------
    workload : str
    citation : str
        Authors, title, where and when, and the device.
    note : str
        What does not survive of it.
    """

    workload: str
    citation: str
    note: str = ""
    exhibits: list[Exhibit] = Field(min_length=1)


def find(name: str) -> Source:
    """Return the source of that name, its references to claims, published figures and devices checked.

    Raises
    ------
    UsageError
        If there is none; or naming file, key, what is expected and what is given.
    """
    return read(published.exhibits_file(name))


def read(file: Path | Traversable, claims: Mapping[str, list[Claim]] | None = None) -> Source:
    """Read a file of exhibits, and check what it refers to; ``claims`` by workload, by default those that ship."""
    source = schema.validate(Source, schema.read(file), str(file))
    ids = [claim.id for claim in (ledger() if claims is None else claims).get(source.workload, [])]
    for number, exhibit in enumerate(source.exhibits):
        where = f"{file}: exhibits[{number}]"
        _known(exhibit.claims, ids, f"{where}.claims", f"a claim of {source.workload!r}")
        _known(exhibit.devices, all_profiles(), f"{where}.devices", "a device profile")
        _known(filter(None, exhibit.profiles), all_profiles(), f"{where}.profiles", "a device profile")
        for entry, cited in enumerate(exhibit.published):
            if not any(map(cited.takes, published.figures(source.workload))):
                given = cited.model_dump(exclude_defaults=True, exclude={"series"})
                raise UsageError(
                    f"{where}.published[{entry}]: expected part of a published figure of {source.workload!r}, "
                    f"got {given}, which none has"
                )
    return source


def _known(names: Any, there: Any, where: str, what: str) -> None:
    for number, name in enumerate(names):
        if name not in there:
            raise UsageError(f"{where}[{number}]: expected {what}, got {name!r}{nearest(name, there)}")
