"""The ledger: what ``claims.yaml`` files hold, read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ...model import schema
from ...model.device import DeviceKind
from ...model.errors import UsageError
from ...model.record import Record
from ...workload.discovery import CLAIMS

Number = Annotated[float, Field(ge=-math.inf)]  # infinite, but never NaN
Scalar = bool | int | float | str | None  # None: not set


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Range(_Model):
    """Numbers from ``min`` to ``max``, ends included, but for multiples of ``no_multiple_of``."""

    min: Number = -math.inf
    max: Number = math.inf
    no_multiple_of: int | None = Field(None, ge=2)

    def holds(self, value: Any) -> bool:
        """Whether a number lies within."""
        if not isinstance(value, int | float) or (self.no_multiple_of and value % self.no_multiple_of == 0):
            return False
        return self.min <= value <= self.max


Wanted = Scalar | Range | list[Scalar | Range]


def _matches(wanted: Wanted, value: Any) -> bool:
    if isinstance(wanted, Range):
        return wanted.holds(value)
    if isinstance(wanted, list):
        return any(_matches(each, value) for each in wanted)
    return bool(value == wanted)


_KINDS: dict[DeviceKind, str] = {"cpu": "CPUs", "gpu": "GPUs", "accelerator": "accelerators"}


def _listed(value: Any) -> Any:
    """Return a name as a list of it alone."""
    return [value] if isinstance(value, str) else value


class Selector(_Model):
    """Which records stand for one side. Of several that match in one setting, the fastest counts.

    ``instead``: variants that stand for it on a device where ``variant`` has no result; the judgement says so.

    ``parameters`` and ``tunables`` here are this side's own: the other side may differ in them. Where both sides are
    one variant of one profile, its other tunables must be the same. Unless a side names its ``precision``, all must be
    of one class; without ``profile`` only the variants' own parameters count.
    """

    variant: list[str]
    instead: list[str] = Field(default_factory=list)
    parameters: dict[str, Wanted] = Field(default_factory=dict)
    tunables: dict[str, Wanted] = Field(default_factory=dict)
    profile: str | None = None
    precision: str | None = None

    @field_validator("variant", "instead", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return _listed(value)

    @property
    def name(self) -> str:
        """How the side is called in tables."""
        more: Mapping[str, Any] = {**self.parameters, **self.tunables}
        named = [f"{key}={value}" for key, value in more.items() if not isinstance(value, Range)]
        named += [f"profile {self.profile}"] if self.profile else []
        return " or ".join(self.variant) + (f" [{', '.join(named)}]" if named else "")

    @property
    def variants(self) -> list[str]:
        """All variants that may stand for this side."""
        return [*self.variant, *self.instead]

    def takes(self, record: Record, parameters: Mapping[str, Wanted]) -> bool:
        """Whether a record of one of the variants is meant, given the claim's common parameters."""
        identity = record.identity
        given = ((identity.parameters, {**parameters, **self.parameters}), (identity.tunables, self.tunables))
        return (
            identity.variant in self.variants
            and identity.profile == self.profile
            and self.precision in (None, identity.precision)
            and all(_matches(w, values.get(name)) for values, wanted in given for name, w in wanted.items())
        )


class Claim(_Model):
    """One checkable statement of a publication.

    Attributes
    ----------
    id : str
        Unique within the workload.
    statement, source : str
        What is claimed, in words, and where.
    published : str, optional
        The publication's own number and device.
    compare : str
        ``speedup``: time of the reference over time of the subject.
        ``share``: the subject's share of a bound, ``share_of``.
        ``overhead``: what the reference takes beyond ``base``, over what the subject takes beyond it.
        ``figure``: a number of the subject's record (``figure``, a dotted path), less that of ``base`` where there is
        one, over ``reference_figure`` of the reference where there is one.
        ``kernel_share``: share of the subject's busy time in the kernels named; with a reference, the time of these
        kernels in the reference over the subject's time, for a subject whose other kernels are a library's.
    share_of : str
        The denominator of a ``share``: ``problem_bound``, from measured ceilings, or ``datasheet_bound``, where the
        source divides by the datasheet's bandwidth. The share of the measured bound then stands beside it.
    over : str
        Of several settings, ``each`` is judged alone, or the ``mean`` over all of them.
    stated : float, optional
        A gain that the source states, as a ratio: 1.95 for "1.95 times". The threshold is half of the gain.
    at_least, at_most : float
        The threshold; both together are a range, which contains the neutral value.
    no_effect : float, optional
        What the number compared is where there is no effect, see ``neutral``.
    judged_on : str, optional
        What the claim is judged on here where that is of another kind than what the source measured.
    applies_to : list of str
        Kinds of device that the claim is about, all if empty. It is not judged on others; their numbers are shown.
    by_construction : str, optional
        Why the number compared cannot but meet the threshold, as long as the suite is right. It then counts as no
        result of a measurement.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    statement: str
    source: str
    published: str | None = None
    problem: str
    parameters: dict[str, Wanted] = Field(default_factory=dict)
    compare: Literal["speedup", "share", "overhead", "figure", "kernel_share"]
    subject: Selector
    reference: Selector | None = None
    base: Selector | None = None
    figure: str | None = None
    reference_figure: str | None = None
    share_of: Literal["problem_bound", "datasheet_bound"] = "problem_bound"
    kernels: list[str] = Field(default_factory=list)
    over: Literal["each", "mean"] = "each"
    stated: float | None = Field(None, gt=1)
    at_least: Number | None = None
    at_most: Number | None = None
    no_effect: Number | None = None
    judged_on: str | None = None
    applies_to: list[DeviceKind] = Field(default_factory=list)
    by_construction: str | None = None

    @field_validator("applies_to", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return _listed(value)

    @model_validator(mode="after")
    def _whole(self) -> Claim:
        needs = {
            "speedup": ["reference"], "share": [], "overhead": ["reference", "base"], "figure": ["figure"],
            "kernel_share": ["kernels"],
        }  # fmt: skip
        for name in needs[self.compare]:
            if not getattr(self, name):
                raise ValueError(f"compare: {self.compare} needs {name!r}")
        bounds = (self.at_least, self.at_most)
        if (self.stated is None) == (bounds == (None, None)):
            raise ValueError("expected 'stated', or 'at_least', 'at_most' or both")
        if self.stated is not None and self.compare not in ("speedup", "overhead"):
            raise ValueError("'stated' is a ratio of times, for compare: speedup or overhead")
        if self.compare != "share" and "share_of" in self.model_fields_set:
            raise ValueError("'share_of' is for compare: share")
        low, high = self.bounds
        if low > high:
            raise ValueError("'at_least' is above 'at_most'")
        if None not in bounds and self.neutral is not None and not low <= self.neutral <= high:
            raise ValueError(f"a range from 'at_least' to 'at_most' must contain no effect, {self.neutral:g}")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """From where to where the threshold is met."""
        low = 1 + (self.stated - 1) / 2 if self.stated is not None else self.at_least
        return -math.inf if low is None else low, math.inf if self.at_most is None else self.at_most

    @property
    def neutral(self) -> float | None:
        """What the number compared is where there is no effect; ``None``: the threshold alone parts right from wrong.

        1 for ratios of times and of figures, 0 for a share that is claimed to be high, 1 for one claimed to be low.
        """
        if self.no_effect is not None:
            return self.no_effect
        if self.compare == "share":
            return 0.0 if self.at_least is not None else 1.0
        ratio = self.reference is not None or self.reference_figure is not None
        return 1.0 if self.compare in ("speedup", "overhead") or (self.compare == "figure" and ratio) else None

    @property
    def about(self) -> str:
        """Which kinds of device the claim is about, in words."""
        return f"a claim about {' and '.join(_KINDS[kind] for kind in self.applies_to) or 'any device'}"

    @property
    def quantity(self) -> str:
        """What is compared with the threshold, in words."""
        subject, reference = self.subject.name, self.reference.name if self.reference else ""
        if self.compare == "speedup":
            return f"time of {reference} over time of {subject}"
        if self.compare == "share":
            return f"share of the {self.share_of.replace('_', ' ')} that {subject} reaches"
        if self.compare == "overhead" and self.base:
            return f"what {reference} takes beyond {self.base.name} over what {subject} takes beyond it"
        if self.compare == "kernel_share":
            kernels = ", ".join(self.kernels)
            if reference:
                return f"time of {kernels} (as {reference} takes it) over time of {subject}"
            return f"share of the busy time of {subject} in {kernels}"
        under = " ".join(filter(None, (reference, self.reference_figure)))
        less = f" less that of {self.base.name}" if self.base else ""
        return f"{subject} {self.figure}{less}" + (f" over {under}" if under else "")

    @property
    def threshold(self) -> str:
        """The threshold in words."""
        low, high = self.bounds
        parts = [f"at least {low:.4g}"] if low > -math.inf else []
        parts += [f"at most {high:.4g}"] if high < math.inf else []
        half = f" (half of the gain of {self.stated:.4g})" if self.stated is not None else ""
        return " and ".join(parts) + half


def read(file: Path) -> list[Claim]:
    """Read a file of claims.

    Raises
    ------
    UsageError
        If it is no list of claims; the text names file, entry and key.
    """
    claims = schema.validate(list[Claim], schema.read(file) or [], str(file))
    names = [claim.id for claim in claims]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{file}: two claims have the id {name!r}")
    return claims


def ledger(paths: Sequence[Path] = ()) -> dict[str, list[Claim]]:
    """Return the claims by workload: those that ship, and those of further workload folders.

    No workload is imported for it.
    """
    folders = [Path(folder) for folder in import_module("perfport.workloads").__path__]
    by_workload: dict[str, list[Claim]] = {}
    for path in [*folders, *paths]:
        for file in sorted([*path.glob(CLAIMS), *path.glob(f"*/{CLAIMS}")]):
            by_workload[file.parent.name] = read(file)
    return dict(sorted(by_workload.items()))
