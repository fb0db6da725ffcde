"""What tuning found: the summary of a search, and the page of what searches tell of the spaces."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from tabulate import tabulate

from ...model.record import Interval
from ...model.untrusted import line, slug
from ...tune.anatomy import NEAR, Anatomy, Found
from ...tune.log import Result
from ...tune.tune import Done
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.plots import COLOURS, GREY, Plot, image, style, svg
from ..parts.quantities import percent
from ..parts.view import View

#: Tunables that a cell names.
MOST_NAMED = 4
READING = (
    "All numbers are measured by the searches themselves; the gains by fresh workers afterwards, with 95 % intervals. "
    "Times are over that of the best configuration of the row. A search that did not try the whole space has looked "
    "more where it is good, so shares are of what was tried. A configuration that was dropped after its first samples "
    "has the time that these gave. *Importance* is the share of the variance of the logarithm of the time that a "
    "forest no longer explains when the tunable is permuted."
)


def summary(done: Done) -> str:
    """Return the results of a search as text, with what was written."""
    rows = [
        {
            "device": line(each.device),
            "variant": line(each.variant),
            "tried": f"{each.tried} of {each.of:,}",
            "gain": _interval(each.gain) if each.gain else "",
            "outcome": "written" if each.parameters else line(each.reason, 90),
        }
        for each in done.results
    ]
    told = [f"{path}: {len(names)} variants written" for path, names in done.written.items()]
    return "\n".join([tabulate(rows, headers="keys"), "", *told, f"search: {done.folder}"])


def _interval(value: Interval) -> str:
    return f"{value.value:.3f} ({value.low:.3f}–{value.high:.3f})"


def view(searches: Sequence[Found]) -> View:
    """Return what searches tell: gains, and for each device the spaces with a plot of their distributions."""
    blocks, plots = ["# What tuning tells", READING], []
    results = [each for search in searches for each in search.results]
    anatomies = [each for search in searches for each in search.anatomies]
    if results:
        blocks += ["## Gains over the code's defaults", gains(results)]
    for device in sorted({each.device for each in anatomies}):
        own = [each for each in anatomies if each.device == device]
        plot = distributions(device, own)
        plots.append(plot)
        blocks += [f"## The spaces on {code(device)}", spaces(own), *image(plot)]
    if not anatomies:
        blocks.append("No configuration was timed.")
    return View("What tuning tells", join(blocks), [_row(each) for each in anatomies], plots)


def gains(results: Sequence[Result]) -> str:
    """Return a table of how searches ended."""
    rows = [
        [
            code(each.device), code(each.variant), text(", ".join(each.presets)), f"{each.tried} of {each.of:,}",
            _interval(each.gain) if each.gain else NONE, percent(each.share) if each.share else NONE,
            _settings(each.parameters) if each.parameters else text(each.reason, 120),
        ]
        for each in results
    ]  # fmt: skip
    headers = [
        "device",
        "variant",
        "sizes",
        "tried",
        "gain",
        "share of problem bound",
        "parameters, or why there are none",
    ]
    return table(headers, rows, "lllrrrl")


def _settings(values: object) -> str:
    assert isinstance(values, dict)
    return text(", ".join(f"{name}={value}" for name, value in values.items()), 200)


def spaces(anatomies: Sequence[Anatomy]) -> str:
    """Return a table of the spaces of one device."""
    rows = [[code(each.variant), text(each.preset), *_numbers(each), _importance(each)] for each in anatomies]
    near = f"within {NEAR - 1:.0%} of the best"
    headers = ["variant", "size", "tried", "without a result", near, "median", "worst", "defaults", "importance"]
    return table(headers, rows, "llrrrrrrl")


def _numbers(each: Anatomy) -> list[str]:
    failed = sum(each.failed.values())
    default = f"{each.default:.2f}" if each.default else NONE
    tried = f"{each.tried} of {each.size:,}"
    return [tried, str(failed or NONE), percent(each.near), f"{each.median:.2f}", f"{each.relative[-1]:.1f}", default]


def _importance(each: Anatomy) -> str:
    named = list(each.importance.items())[:MOST_NAMED]
    return ", ".join(f"{code(name, 40)} {value:.2f}" for name, value in named) or NONE


def distributions(device: str, anatomies: Sequence[Anatomy]) -> Plot:
    """Draw the share of the configurations of each space that is within a factor of the best."""
    with style():
        figure = Figure(figsize=(8.0, 1.2 + 0.34 * len(anatomies)), layout="constrained")
        axes = figure.add_subplot()
        for y, each in enumerate(anatomies):
            axes.scatter(each.relative, [y] * len(each.relative), s=9, color=COLOURS["rung"], alpha=0.35, linewidths=0)
            if each.default:
                axes.scatter([each.default], [y], s=50, marker="|", color=COLOURS["control"], linewidths=2)
        axes.axvline(NEAR, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yticks(
            range(len(anatomies)), [middle(f"{each.variant} ({each.preset})", 44) for each in anatomies], fontsize=8
        )
        axes.invert_yaxis()
        axes.set_xlabel("time over that of the best configuration")
        content = svg(figure)
    caption = (
        "Every configuration that was timed, by its time over that of the best (measured). "
        f"Dotted: {NEAR:g}; bars: the code's defaults."
    )
    return Plot(f"{slug('spaces', device)}.svg", content, f"Spaces of variants on {device}", caption)


def _row(each: Anatomy) -> dict[str, object]:
    return {
        "device": each.device, "variant": each.variant, "size": each.preset, "tried": each.tried, "of": each.size,
        "timed": len(each.relative), "not timed": each.hopeless, "without a result": sum(each.failed.values()),
        "near": each.near, "median": each.median, "worst": each.relative[-1], "default": each.default,
        **{f"importance {name}": value for name, value in each.importance.items()},
    }  # fmt: skip
