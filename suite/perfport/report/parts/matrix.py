"""The first thing that a reader of a suite sees: every problem by every device, the best variant in each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ...measure.intervals import Verdict
from ...model.names import settings
from ...model.record import MetricValue, Status
from ...run.sources import Age
from ...store.case import Site, Subject
from ...store.comparable import fastest, is_control, is_peer
from ...store.ratios import Comparison, compare
from .failures import ORDER
from .ladder import Ladder, Published, Row
from .markdown import NONE, code, table, text
from .marks import ELSEWHERE, best_marks, marks, noted
from .material import Material
from .quantities import percent, rate, significant
from .summary import NOT_HERE

#: Steps of a bar of characters.
STEPS = 6
#: How a verdict over a peer is drawn: a shape, so that no meaning rests on colour.
SHAPES = {Verdict.FASTER: "▲", Verdict.SLOWER: "▼", Verdict.SAME: "=", Verdict.AMBIGUOUS: "≈"}


@dataclass(frozen=True, order=True)
class Column:
    """Devices of one make behind one runtime, on whatever host, but CPUs by their cores: GPUs come first."""

    cpu: bool
    chip: str
    platform: str

    @classmethod
    def of(cls, site: Site) -> Column:
        """Return the column that a site belongs to."""
        return cls(site.kind == "cpu", site.make.replace("(R)", ""), site.devices[0].rpartition(":")[0])

    @property
    def name(self) -> str:
        """Chip and runtime."""
        return f"{self.chip}, {self.platform}"


@dataclass(frozen=True)
class Versus:
    """The best variant beside the best library: of another precision class only where none of its own ran."""

    peer: Row
    compared: Comparison

    @property
    def precision(self) -> str:
        """The library's precision class."""
        return self.peer.subject.precision


@dataclass(frozen=True)
class Cell:
    """The ladder that stands for a problem on a device.

    Attributes
    ----------
    ladder : Ladder
    off : bool
        It is not of the headline size, of which there is none.
    versus : Versus or None
    """

    ladder: Ladder
    off: bool
    versus: Versus | None = None


@dataclass(frozen=True)
class Line:
    """A problem in one precision class: its cells by column, and the best published figure by device."""

    cells: dict[Column, Cell]
    published: dict[str, Published]

    @property
    def ladder(self) -> Ladder:
        """Any ladder of the line: for its names."""
        return next(iter(self.cells.values())).ladder

    def times_published(self, ladder: Ladder) -> float | None:
        """Return how many times as good the best of a ladder is as the best that was published for its setting."""
        metric = ladder.best.record.metric if ladder.best else None
        figures = [figure for figure in self.published.values() if figure.fits(ladder)]
        return min((over_published(metric, figure) for figure in figures), default=None) if metric else None


def lines(material: Material) -> list[Line]:
    """Return the problems of a suite, a line for each precision class in which a variant of the suite was tried."""
    listed = []
    solved: dict[tuple[Subject, Site], list[Row]] = {}
    for ladder in material.ladders:
        solved.setdefault(_whatever_precision(ladder), []).extend(ladder.peers)
    ordered = sorted(material.first, key=_place)
    for _, same in groupby(ordered, key=lambda ladder: ladder.subject.family):
        tried = [
            Cell(ladder, material.first[ladder], _versus(ladder, solved[_whatever_precision(ladder)]))
            for ladder in same
            if _tried(ladder)
        ]
        cells: dict[Column, Cell] = {}
        for cell in tried:
            column = Column.of(cell.ladder.where)
            cells[column] = max(cells.get(column, cell), cell, key=_standing)
        if cells:
            listed.append(Line(dict(sorted(cells.items())), _published([cell.ladder for cell in cells.values()])))
    return listed


def _whatever_precision(ladder: Ladder) -> tuple[Subject, Site]:
    return replace(ladder.subject, precision=""), ladder.where


def _versus(ladder: Ladder, peers: Sequence[Row]) -> Versus | None:
    """Compare the best of a ladder with its best peer, or else, in FP32, with that of ``peers`` of any class.

    Those of other classes are less accurate, so that the comparison flatters nobody but them.
    """
    if ladder.best_peer and ladder.peer_comparison:
        return Versus(ladder.best_peer, ladder.peer_comparison)
    other = fastest(peers) if ladder.precision == "fp32" else None
    compared = compare(other.record, ladder.best.record) if other and ladder.best else None
    return Versus(other, compared) if other and compared else None


def _place(ladder: Ladder) -> tuple[str, str, bool, str]:
    return ladder.workload, ladder.problem, ladder.precision != "fp32", ladder.precision


def columns(listed: Iterable[Line]) -> list[Column]:
    """Return the columns of some lines in order."""
    return sorted({column for line in listed for column in line.cells})


def _tried(ladder: Ladder) -> bool:
    """Whether a variant of the suite was tried: neither a peer or a control arm alone, nor nothing that can run."""
    own = [row.record for row in ladder.rows if not (is_peer(row) or is_control(row))]
    return any(record.status not in NOT_HERE for record in own)


def _standing(cell: Cell) -> tuple[bool, bool, bool, bool, float, str]:
    """What makes a cell stand for its column: one device, a result, the headline size, by the code as it is, the most
    of the bound.
    """
    best = cell.ladder.best
    share = best.record.problem_bound.share.value if best and best.record.problem_bound else 0.0
    current = best is not None and best.age is not Age.STALE
    return not cell.ladder.several, best is not None, not cell.off, current, share, best.record.time if best else ""


def _published(ladders: Sequence[Ladder]) -> dict[str, Published]:
    """Return the best figure in the problem's own metric by the device that it was published for."""
    best: dict[str, Published] = {}
    metric = next((row.record.metric for ladder in ladders for row in ladder.measured if row.record.metric), None)
    for figure in (figure for ladder in ladders for figure in ladder.published):
        if metric and figure.unit == metric.unit:
            known = best.get(figure.title)
            if known is None or over_published(metric, known) > over_published(metric, figure):
                best[figure.title] = figure
    return dict(sorted(best.items()))


def over_published(metric: MetricValue, figure: Published) -> float:
    """Return how many times as good a measured value is as a published one."""
    value = figure.high or figure.value
    return metric.value / value if metric.direction == "higher" else value / metric.value


def without_peer(ladder: Ladder) -> str:
    """Return why the best variant stands beside no library, as text."""
    statuses = {row.record.status for row in ladder.rows if is_peer(row)}
    if not statuses:
        return "no peer"
    if ladder.best_peer:
        return f"no clock in common with {ladder.best_peer.label}" if ladder.best else "no variant beside the peers"
    if Status.CONTENDED in statuses:
        return "the peers were contended"
    return f"no peer ran ({next(status.value for status in ORDER if status in statuses)})"


def versus_peer(cell: Cell) -> str:
    """Return how the best variant does against the best library, in words: which, by how much, the library's marks."""
    ladder, versus = cell.ladder, cell.versus
    if versus is None:
        return text(without_peer(ladder))
    peer, compared = versus.peer, versus.compared
    noted_as = f" ({text(versus.precision)})" if versus.precision != ladder.precision else ""
    noted_as += (" (wall)" if compared.mixed else "") + marks(peer)
    return f"{SHAPES[compared.verdict]} {significant(compared.ratio.value)} × {code(peer.label, 24)}{noted_as}"


def bar(share: float) -> str:
    """Return a share of the bound as a bar of characters."""
    full = min(max(round(share * STEPS), 0), STEPS)
    return "█" * full + "░" * (STEPS - full)


def matrix_table(listed: Sequence[Line]) -> str:
    """Return the matrix of some lines as markdown, with the notes that its marks need."""
    heads = columns(listed)
    rows = []
    for line in listed:
        precision = "" if line.ladder.precision == "fp32" else f"<br>{text(line.ladder.precision)}"
        figures = (_figure(on, of) for on, of in line.published.items())
        cells = (_cell(line, column) for column in heads)
        rows.append([code(line.ladder.problem) + precision, *cells, "<br>".join(figures)])
    headers = ["problem", *(f"{text(column.chip, 40)}<br>{code(column.platform)}" for column in heads), "published"]
    return noted([table(headers, rows, "l" * len(headers))])


def _figure(device: str, of: Published) -> str:
    at = [text(settings(of.parameters))] if of.parameters else []
    return "<br>".join([text(rate(of.value, of.unit)), text(device, 40), *at])


def _cell(line: Line, column: Column) -> str:
    cell = line.cells.get(column)
    if cell is None:
        return NONE
    ladder, best = cell.ladder, cell.ladder.best
    if best is None or best.record.metric is None:
        return "none is ok"
    record, metric = best.record, best.record.metric
    parts = [f"**{text(rate(metric.value, metric.unit))}**{best_marks(ladder)}{ELSEWHERE if cell.off else ''}"]
    if bound := record.problem_bound:
        stale = " †" if bound.stale else ""
        parts.append(f"{bar(bound.share.value)} {percent(bound.share.value)}{stale}".replace(" ", "\N{NO-BREAK SPACE}"))
    parts.append(versus_peer(cell))
    if (times := line.times_published(ladder)) is not None:
        parts.append(f"{significant(times)} × published")
    if ladder.several:
        parts.append(f"by {ladder.where.count} devices")
    return "<br>".join(parts)
