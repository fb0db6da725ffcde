"""How wide an interval has to be: from how far off live devices predict each other, or from what others measured.

Of each relation of two devices the widths of `model.Estimate` are scaled so that 90 % of the held-out cases lie within
(split conformal prediction with normalised residuals: H. Papadopoulos, A. Gammerman, V. Vovk, "Normalized nonconformity
measures for regression conformal prediction", AIA 2008). A device's cases are held out whole: its own measurements
never enter what is predicted of it, and widths are judged on problems that were left out of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .devices import Relation
from .model import Estimate

#: Of an interval.
CONFIDENCE = 0.9
#: Held-out cases from which on the width of a relation is theirs: fewer do not tell a 90 % quantile.
ENOUGH = 20
#: Half widths, as logarithms of a factor, where no pair of live devices is so related: 90 % quantiles over the boards
#: of a public table, of one bandwidth-bound kernel carried over from an H200 (docs/prediction.md). Boards that have a
#: profile here are left out.
PRIOR = {Relation.SIBLING: 0.13, Relation.RUNTIME: 0.35, Relation.GENERATION: 0.225, Relation.VENDOR: 0.63}
#: The same between architectures of a vendor where DRAM does not bind: models without a run on the device were 17 % off
#: in the mean on four GPUs of a vendor, hence a 90 % quantile of 35 % (docs/prediction.md).
ARITHMETIC_PRIOR = 0.35
#: Wider intervals, upper over lower end, say nothing.
WIDEST = 4.0


@dataclass(frozen=True)
class Residual:
    """A prediction of a case on a live device by other devices, and what was measured there.

    Attributes
    ----------
    estimate : Estimate
    half : float
        Half width of the estimate by its own parts, as a logarithm.
    seconds : float
        Measured.
    target : str
        The live device that was left out.
    problem : str
        ``workload/problem``.
    """

    estimate: Estimate
    half: float
    seconds: float
    target: str
    problem: str

    @property
    def kind(self) -> Kind:
        """Whose width it sets."""
        return kind_of(self.estimate)

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.estimate.seconds / self.seconds - 1

    @property
    def off(self) -> float:
        """How far off, as a logarithm of a factor."""
        return abs(math.log(self.estimate.seconds / self.seconds))


@dataclass(frozen=True, order=True)
class Kind:
    """What shares a width: a relation, the kind of the source's device, and whether the host drives the execution."""

    relation: Relation
    device: str
    by_host: bool


def kind_of(estimate: Estimate) -> Kind:
    """Return whose width an estimate has."""
    return Kind(estimate.relation, estimate.source.device.kind, estimate.source.by_host)


@dataclass(frozen=True)
class Widths:
    """How much wider than by their own parts intervals are, by kind."""

    scale: Mapping[Kind, float] = field(default_factory=dict)

    @classmethod
    def of(cls, residuals: Iterable[Residual]) -> Widths:
        """Return the widths that held-out cases ask for, of the kinds of which there are `ENOUGH`."""
        held: dict[Kind, list[float]] = defaultdict(list)
        for residual in residuals:
            held[residual.kind].append(residual.off / residual.half)
        return cls({kind: quantile(values) for kind, values in held.items() if len(values) >= ENOUGH})

    def half(self, estimate: Estimate, own: float) -> float | None:
        """Return the half width of an interval, as a logarithm; ``None`` where there is nothing to take it from.

        The public table's spread has all causes together: with it an interval is the wider of the two.
        """
        kind = kind_of(estimate)
        if kind in self.scale:
            return self.scale[kind] * own
        if kind.by_host or kind.relation not in PRIOR:
            return None
        arithmetic = kind.relation is Relation.GENERATION and estimate.binding != "dram"
        return max(own, ARITHMETIC_PRIOR if arithmetic else PRIOR[kind.relation])


def quantile(values: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """Return the conformal quantile: the value that a further one of the same kind stays below with this chance.

    Of n values it is the one at the place ceil((n + 1) x confidence), or the largest.
    """
    ordered = sorted(values)
    return ordered[min(math.ceil((len(ordered) + 1) * confidence), len(ordered)) - 1]


@dataclass(frozen=True)
class Coverage:
    """How often intervals held what was measured, of cases whose problem set none of their widths."""

    kind: Kind
    residuals: int
    cases: int
    held: int
    grounded: int
    median_error: float
    within_quarter: float

    @property
    def share(self) -> float | None:
        """Share of the cases within their interval; ``None`` where the others of their kind gave none any width."""
        return self.held / self.cases if self.cases else None


def coverage(residuals: Sequence[Residual]) -> list[Coverage]:
    """Return the coverage of each kind, problem by problem: widths are made without the problem's own residuals."""
    problems: dict[str, Widths] = {
        problem: Widths.of(residual for residual in residuals if residual.problem != problem)
        for problem in {residual.problem for residual in residuals}
    }
    by: dict[Kind, list[tuple[Residual, float | None]]] = defaultdict(list)
    for residual in residuals:
        half = problems[residual.problem].half(residual.estimate, residual.half)
        by[residual.kind].append((residual, half))
    return [_covered(kind, rows) for kind, rows in sorted(by.items())]


def _covered(kind: Kind, rows: list[tuple[Residual, float | None]]) -> Coverage:
    bounded = [(residual, half) for residual, half in rows if half is not None]
    errors = sorted(abs(residual.error) for residual, _ in rows)
    return Coverage(
        kind, len(rows), len(bounded), sum(residual.off <= half for residual, half in bounded),
        sum(2 * half <= math.log(WIDEST) for _, half in bounded), errors[len(errors) // 2],
        sum(error <= 0.25 for error in errors) / len(errors),
    )  # fmt: skip
