"""How plots are drawn, and the plot of the share of the problem bound that each variant of a ladder reaches.

Figures are drawn without pyplot, with a fixed hash salt and without a date: the same records give the same bytes.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ...model.files import write
from ...model.record import Interval, Record, Status
from ...model.untrusted import inside, line, printable, slug
from ...store.comparable import is_peer
from ...store.ratios import is_measured, time_of
from .ladder import PICTURE, Ladder, Row
from .markdown import middle, text
from .paging import split
from .quantities import percent

#: Okabe and Ito's palette: told apart by readers with any of the common colour-vision deficiencies.
COLOURS = {"rung": "#0072B2", "control": "#E69F00", "beyond": "#009E73", "peer": "#CC79A7"}
NAMES = {"rung": "rung", "control": "control", "beyond": "beyond the source", "peer": "peer"}
#: Variants that one plot can show; of more, the fastest are drawn and the tables hold the rest.
MOST = 24
#: A share below which the axis of shares is logarithmic.
SMALL = 0.05
GREY = "#595959"
#: How each JPEG file begins.
JPEG = b"\xff\xd8"
_STYLE: Any = {
    "svg.hashsalt": "perfport", "svg.fonttype": "none", "font.size": 10, "font.family": "DejaVu Sans",
    "axes.spines.top": False, "axes.spines.right": False, "path.simplify": False, "axes.unicode_minus": False,
    "text.parse_math": False,
}  # fmt: skip


@dataclass(frozen=True)
class Plot:
    """One plot (SVG) or picture (JPEG): file name without folder, content, alternative text and caption."""

    name: str
    content: bytes
    alt: str
    caption: str


def plot_folder(destination: Path) -> Path:
    """Return the folder of a page's plots: beside it, with its name without the suffix."""
    return destination.with_name(destination.stem if destination.suffix else f"{destination.name}-plots")


def image(plot: Plot, folder: str = "") -> list[str]:
    """Return the markdown that shows a plot in a folder beside the page: the image and its caption."""
    where = f"{quote(folder)}/" if folder else ""
    return [f"![{text(plot.alt)}]({where}{quote(plot.name)})", f"*{text(plot.caption, 600)}*"]


def write_page(destination: Path, content: str, plots: Sequence[Plot]) -> list[Path]:
    """Write a page and its plots; returns the files, the page first.

    A page of markdown that is too long is continued in files beside it: ``NAME.2.md`` and so on.

    Raises
    ------
    InfrastructureError
        If a file cannot be written, or a plot's would leave the folder of the page.
    """
    folder = plot_folder(destination)
    files: list[tuple[Path, str | bytes]] = [*_continued(destination, content)]
    files += [(inside(destination.parent, folder.name, plot.name), plot.content) for plot in plots]
    for path, data in files:
        write(path, data)
    return [path for path, _ in files]


def _continued(destination: Path, content: str) -> Iterator[tuple[Path, str]]:
    """Yield a page, and the pages that continue it, with links from each to the next."""
    pages = split(content) if destination.suffix == ".md" else [content]
    names = [destination.name, *(f"{destination.stem}.{n}.md" for n in range(2, len(pages) + 1))]
    for number, page in enumerate(pages):
        before = f"Continued from [{text(names[number - 1])}]({quote(names[number - 1])}).\n\n" if number else ""
        after = names[number + 1 : number + 2]
        behind = "".join(f"\n\nContinued in [{text(name)}]({quote(name)})." for name in after)
        yield destination.with_name(names[number]), f"{before}{page}{behind}\n"


@contextmanager
def style() -> Iterator[None]:
    """Draw within this by matplotlib's own defaults and ours, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def svg(figure: Figure) -> bytes:
    """Return a figure as SVG, the same bytes every time, without characters that XML forbids."""
    buffer = io.StringIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": "perfport"})
    return printable(buffer.getvalue()).encode()


def shown(rows: list[Row]) -> list[Row]:
    """Return the rows that a plot has room for, in ladder order."""
    fastest = sorted(rows, key=lambda row: (not is_measured(row.record), _speed_key(row.record)))[:MOST]
    kept = {id(row) for row in fastest}
    return [row for row in rows if id(row) in kept]


def pictures(ladder: Ladder, name: str) -> list[Plot]:
    """Return the pictures that variants made of their results (docs/records.md, ``extra.picture``).

    What is no JPEG is left out. Pictures of one variant have one name.
    """
    plots = []
    for row in ladder.measured:
        made, variant = row.record.extra.get(PICTURE), row.record.identity.variant
        if isinstance(made, dict) and (content := _jpeg(made.get("jpeg"))):
            alt = str(made.get("caption", ""))
            caption = f"{alt} (measured by {variant}, {where(ladder)})"
            plots.append(Plot(f"{name}-{slug(variant)}.jpg", content, alt, caption))
    return plots


def _jpeg(encoded: object) -> bytes:
    """Return the content of a picture, empty where it is none: whoever wrote the record chose it."""
    try:
        content = base64.b64decode(str(encoded), validate=True)
    except ValueError:
        return b""
    return content if content.startswith(JPEG) else b""


def _speed_key(record: Record) -> float:
    return time_of(record) if is_measured(record) else 0.0


def where(ladder: Ladder) -> str:
    """Return what a plot shows, for its alternative text."""
    return f"{ladder.workload}/{ladder.problem} ({line(ladder.setting, 60)}) on {ladder.site}, {ladder.precision}"


def share_plot(ladder: Ladder, name: str) -> Plot | None:
    """Return the bar chart of shares of the problem bound; ``None`` where no record has one."""
    rows = sorted(shown(ladder.rows), key=lambda row: (not is_measured(row.record), _speed_key(row.record)))
    if not any(row.record.problem_bound for row in rows if is_measured(row.record)):
        return None
    with style():
        figure = Figure(figsize=(8.0, 1.35 + 0.3 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        shares = [row.record.problem_bound.share for row in rows if _bounded(row) and row.record.problem_bound]
        reach = max([1.0, *map(_drawn, shares)])
        left = percent_axis(axes, [share.value for share in shares], reach * 1.24)
        for y, row in enumerate(rows):
            _bar(axes, y, row, reach, left)
        axes.axvline(100, color="black", linewidth=1.0)
        peers = {True: " (peer)", False: ""}
        axes.set_yticks(range(len(rows)), [middle(row.label, 44) + peers[is_peer(row)] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("share of the problem bound, % (measured ceilings; whisker: 95 % interval)")
        _legend_roles(figure, rows)
        content = svg(figure)
    left = len(ladder.rows) - len(rows)
    caption = "Share of the problem bound under measured ceilings, with 95 % intervals (measured). Line: the bound."
    if any(row.record.status == Status.CONTENDED for row in rows):
        caption += " Hatched: contended."
    caption += f" The {len(rows)} fastest of {len(ladder.rows)} cases are drawn." if left else ""
    return Plot(f"{name}-share.svg", content, f"Share of the problem bound: {where(ladder)}", caption)


def _bounded(row: Row) -> bool:
    return is_measured(row.record) and row.record.problem_bound is not None


def _drawn(share: Interval) -> float:
    """How far a bar may reach: one far above the bound is cut, its label says how far it goes."""
    return min(max(share.value, min(share.high, 1.1 * share.value)), 1.5)


def percent_axis(axes: Any, shares: Iterable[float], most: float) -> float:
    """Set the axis of shares up to ``most`` (1.0 is 100 %); returns where it begins, in percent.

    Where the least share is below `SMALL` the axis is logarithmic: on a linear one it could not be seen.
    """
    least = min((share for share in shares if share > 0), default=1.0)
    if least >= SMALL:
        axes.set_xlim(0, 100 * most)
        return 0.0
    left = 100 * least / 2
    axes.set_xscale("log")
    axes.set_xlim(left, 100 * most * 1.3)
    plain_numbers(axes.xaxis)
    return left


def plain_numbers(axis: Any) -> None:
    """Label the decades of a logarithmic axis by plain numbers: no text of a plot is read as a formula, as 10^3 is."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _bar(axes: Any, y: int, row: Row, reach: float, left: float) -> None:
    record = row.record
    if not _bounded(row):
        label = record.status.value if not is_measured(record) else "no bound"
        loud = record.status == Status.IMPOSSIBLE
        axes.text(
            left * 1.05 or 100 * reach * 0.01, y, label.upper() if loud else label, va="center", style="italic",
            color="#B04300" if loud else GREY, weight="bold" if loud else "normal",
        )  # fmt: skip
        return
    assert record.problem_bound
    share = record.problem_bound.share
    value, low, high = (min(max(v, 0.0), reach) for v in (share.value, share.low, share.high))
    contended = record.status == Status.CONTENDED
    axes.barh(
        y, 100 * value - left, left=left, height=0.68, color="white" if contended else COLOURS[record.identity.role],
        edgecolor=COLOURS[record.identity.role], hatch="///" if contended else None, linewidth=0.8,
    )  # fmt: skip
    ends = [[100 * max(value - low, 0.0)], [100 * max(high - value, 0.0)]]
    axes.errorbar(100 * value, y, xerr=ends, color="black", capsize=3, linewidth=1.2)
    at = 100 * max(value, high)
    axes.text(at * 1.06 if left else at + 1.2 * reach, y, percent(share.value), va="center")


def _legend_roles(figure: Figure, rows: Sequence[Row]) -> None:
    from matplotlib.patches import Patch

    used = [role for role in NAMES if any(row.record.identity.role == role for row in rows)]
    if len(used) > 1:
        handles = [Patch(color=COLOURS[role], label=NAMES[role]) for role in used]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(used), frameon=False, fontsize=9)
