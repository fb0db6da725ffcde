"""The page of measured ceilings: devices side by side, each with intervals, shapes, theory, the peer, and a plot."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator
from tabulate import tabulate

from ...measure.ceilings import KINDS, Ceiling
from ...measure.ceilings.clpeak import NOT_JUDGED, below
from ...measure.ceilings.survey import Survey
from ...model.errors import UsageError
from ...model.untrusted import readable
from ..parts.markdown import NONE, code, join, table, text
from ..parts.plots import Plot, plot_folder, style, svg, write_page
from ..parts.quantities import ceiling, percent, significant, size

HEADERS = ["ceiling", "measured", "95 % interval", "theory", "of theory", "clpeak", "ours / clpeak", "spread", "shape"]
LEVELS = {"l1_read": "#0072B2", "l2_read": "#E69F00", "l3_read": "#009E73"}

_READING = (
    "Each ceiling is the best of a sweep of kernel shapes, sampled again: median and 95 % interval of its samples. "
    "*Spread* is the worst shape over the best. *Theory* is what the data sheet or the clock allows (how, is below the "
    "table); **above** marks a ceiling whose whole interval is higher than that: the clock was higher than assumed, or "
    "the count is wrong. *clpeak* is the best of its shapes in runs right before and after ours, the same runtime; "
    "**below** marks a ceiling of ours that is under it by more than the noise of both. Its launch latency is another "
    "quantity (from enqueueing to the start of a kernel) and is not judged. Lower is better for `launch_latency` and "
    "`grid_barrier`."
)


def rows(survey: Survey) -> list[list[str]]:
    """Return one plain row per ceiling, under `HEADERS`."""
    return [_row(name, entry, survey) for name, entry in survey.ceilings.entries.items()]


def _row(name: str, entry: Ceiling, survey: Survey) -> list[str]:
    unit = entry.unit
    peers = survey.peer.entries if survey.peer else {}
    theirs, ratio = "", ""
    if peer := peers.get(name):
        best = (min if entry.direction == "lower" else max)(peer.values)
        theirs = f"{ceiling(best, unit)}{f' ({peer.shape})' if peer.shape else ''}"
        ratio = significant(entry.value / best, 3)
        ratio += " below" if name not in NOT_JUDGED and below(entry, peer) else ""
    share = percent(entry.value / entry.theory) if entry.theory else ""
    return [
        name, ceiling(entry.value, unit), f"{ceiling(entry.low, unit)} – {ceiling(entry.high, unit)}",
        ceiling(entry.theory, unit) if entry.theory else "", share + " above" * entry.above_theory, theirs, ratio,
        percent(entry.spread) if len(entry.sweep) > 1 else "",
        ", ".join(f"{key} {value}" for key, value in entry.shape.items()),
    ]  # fmt: skip


def terminal(survey: Survey) -> str:
    """Return a device's ceilings as a table for a terminal, with date, flags and what is absent."""
    ceilings = survey.ceilings
    lines = [
        f"{survey.device.id}: {survey.device.name}, driver {ceilings.driver}, {ceilings.date}, "
        f"{'all shapes' if ceilings.full else 'quick set of shapes'}, arrays of {size(ceilings.working_set_bytes)}",
        tabulate(rows(survey), HEADERS, disable_numparse=True),
    ]
    lines += [f"absent: {name} ({reason})" for name, reason in ceilings.absent.items()]
    lines += [f"contended: {name} ({reason})" for name, reason in ceilings.contended.items()]
    if survey.peer and survey.peer.status != "ok":
        lines.append(f"{survey.peer.program}: {survey.peer.status} ({survey.peer.reason})")
    return "\n".join(lines)


def render(surveys: list[Survey], destination: Path) -> list[Path]:
    """Write the page of some devices' ceilings.

    Parameters
    ----------
    surveys : list of Survey
        All that the page is made of: the same ones give the same bytes.
    destination : Path
        The markdown file. Plots go to a folder beside it that has its name without the suffix.

    Returns
    -------
    list of Path
        The files written, the markdown file first.

    Raises
    ------
    UsageError
        Without any survey.
    InfrastructureError
        If a file cannot be written.
    """
    if not surveys:
        raise UsageError("no ceilings to report on")
    folder = plot_folder(destination)
    names = [f"{number}-{readable(survey.device.id)}.svg" for number, survey in enumerate(surveys, 1)]
    plots = [curve_plot(survey, name) for survey, name in zip(surveys, names, strict=True)]
    blocks = ["# Measured ceilings", _READING, "## Devices side by side", _overview(surveys)]
    for survey, plot in zip(surveys, plots, strict=True):
        blocks += _device(survey)
        if plot:
            blocks.append(f"![{text(plot.alt)}]({quote(folder.name)}/{quote(plot.name)})")
            blocks.append(f"*{text(plot.caption, 600)}*")
    return write_page(destination, join(blocks), [plot for plot in plots if plot])


def _title(survey: Survey) -> str:
    return f"{text(survey.device.chip)}, {code(survey.device.id)}"


def _overview(surveys: list[Survey]) -> str:
    """Every ceiling of every device: value, and interval in percent."""
    body = []
    for name in KINDS:
        entries = [survey.ceilings.entries.get(name) for survey in surveys]
        if any(entries):
            body.append([code(name), *(_short(entry) if entry else NONE for entry in entries)])
    return table(["ceiling", *(_title(survey) for survey in surveys)], body, "l" + "r" * len(surveys))


def _short(entry: Ceiling) -> str:
    half = (entry.high - entry.low) / 2 / entry.value
    return f"{ceiling(entry.value, text(entry.unit, 20))} ± {percent(half)}"


def _device(survey: Survey) -> list[str]:
    device, ceilings, commit = survey.device, survey.ceilings, survey.commit
    state = f"{code(commit['hash'])}{', with uncommitted changes' if commit.get('dirty') else ''}" if commit else NONE
    facts = [
        f"- {text(device.platform)} {text(device.platform_version)}, driver {text(ceilings.driver)}, "
        f"{device.compute_units} compute units, {size(device.memory_bytes)}",
        f"- host: {text(survey.host.get('cpu', NONE))}, {text(survey.host.get('os', NONE))}; commit {state}",
        f"- measured {text(ceilings.date)}, {'all shapes' if ceilings.full else 'the quick set of shapes'} "
        f"(sweep version {ceilings.version}), arrays of {size(ceilings.working_set_bytes)}",
    ]
    if clocks := _clocks(survey):
        facts.append(f"- clocks after each ceiling: {clocks}")
    if survey.peer:
        known = text(f"{survey.peer.program} {survey.peer.version}")
        state = "" if survey.peer.status == "ok" else f": {text(survey.peer.status)} ({text(survey.peer.reason)})"
        facts.append(f"- peer: {known}{state}")
    body = [[code(cells[0]), f"**{text(cells[1])}**", *(text(cell) for cell in cells[2:])] for cells in rows(survey)]
    for cells in body:
        cells[4] = cells[4].replace("above", "**above**")
        cells[6] = cells[6].replace("below", "**below**")
    basis = [
        f"- {code(name)}: theory by {text(entry.theory_basis)}."
        for name, entry in ceilings.entries.items()
        if entry.theory_basis
    ]
    absent = [f"- {code(name)} is absent: {text(reason)}." for name, reason in ceilings.absent.items()]
    doubts = [f"- {code(name)} was **contended**: {text(why)}." for name, why in ceilings.contended.items()]
    notes = "\n".join(basis + absent + doubts)
    return [f"## {_title(survey)}", "\n".join(facts), table(HEADERS, body, "lrrrrrrrl"), notes]


def _clocks(survey: Survey) -> str:
    after = [entry.clocks.get("after") or {} for entry in survey.ceilings.entries.values()]
    known = [clocks["sm_mhz"] for clocks in after if "sm_mhz" in clocks]
    throttled = sorted({reason for clocks in after for reason in clocks.get("throttled", [])})
    if not known:
        return ""
    return f"{min(known)}–{max(known)} MHz" + (f"; **throttled**: {text(', '.join(throttled))}" if throttled else "")


def curve_plot(survey: Survey, name: str) -> Plot | None:
    """Return the plot of bandwidth against working set; ``None`` where no cache level was measured."""
    entries = {level: survey.ceilings.entries[level] for level in LEVELS if level in survey.ceilings.entries}
    if not entries:
        return None
    with style():
        figure = Figure(figsize=(8.0, 4.0), layout="constrained")
        axes = figure.add_subplot()
        for level, entry in entries.items():
            share = _groups_sharing(survey, level, entry)
            sizes, rates = [share * nbytes for nbytes, _ in entry.curve], [rate for _, rate in entry.curve]
            axes.plot(sizes, rates, marker="o", markersize=4, linewidth=1.5, color=LEVELS[level], label=level)
            axes.plot(
                share * entry.shape["set_bytes"], entry.value, marker="s", markersize=9, color=LEVELS[level],
                fillstyle="none",
            )  # fmt: skip
        if dram := survey.ceilings.entries.get("dram_read"):
            axes.axhline(dram.value, color="black", linewidth=1.0, linestyle="--", label="dram_read")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: ceiling(value, "B/s")))
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ceiling(value, "B/s")))
        axes.set_xlabel("working set of the level, read again and again (first level: of one compute unit)")
        axes.set_ylabel("bandwidth (measured)")
        axes.legend(frameon=False)
        drawn = svg(figure)
    caption = (
        "Bandwidth against working set (measured), with each level's best shape; squares: the ceilings; dashed: reads "
        "from DRAM."
    )
    return Plot(name, drawn, f"Cache bandwidth of {survey.device.id}", caption)


def _groups_sharing(survey: Survey, level: str, entry: Ceiling) -> float:
    """How many work-groups' sets a level holds at once: a CPU runs one work-group at a time on each core."""
    if survey.device.kind == "cpu":
        return 1.0
    return float(entry.shape["groups"] / (survey.device.compute_units if level == "l1_read" else 1))
