"""Reports: markdown with SVG plots, made from results folders alone and identical when made again from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from ...judge.exhibits import Source, find
from ...machine.paths import shell
from ...model.errors import UsageError
from ...model.untrusted import slug
from ...run.experiment import load
from ...store.case import Case
from ...store.collection import Collection
from ...store.results import EXPERIMENT, Run
from ...untimed.count import Count
from ..parts.counted import Counts, Recount, counted_section, stored
from ..parts.curves import curve_plots
from ..parts.exhibits import Followed
from ..parts.failures import failures_section, rerun
from ..parts.ladder import Ladder, ladders_of, run_labels
from ..parts.machines import ceilings_section, devices_section, host_section, run_title
from ..parts.markdown import NONE, code, fence, join, table, text
from ..parts.material import headline
from ..parts.paging import MOST_LINES
from ..parts.plots import Plot, image, plot_folder, write_page
from ..parts.results import results, tabulated
from ..parts.scaling import scaling_section
from ..parts.summary import alarms, at_a_glance, best_tables, in_terminal, overview, title
from ..parts.sweeps import sweeps_section
from ..parts.tables import device_comparison

__all__ = ["Counts", "glance", "render", "stored"]


def render(runs: list[Run], destination: Path, counted: Sequence[Counts] = ()) -> list[Path]:
    """Write the report of some runs.

    Where an experiment names a publication to follow, that is what the page does: the results of each problem lie on
    pages of their own.

    Parameters
    ----------
    runs : list of Run
        Stored runs; their records and environments are all that the report is made of.
    destination : Path
        The markdown file. Plots go to a folder beside it that has its name without the suffix.
    counted : sequence of Counts
        Counted work. Where it holds what hardware counters saw of a run's case, that replaces the modelled traffic.

    Returns
    -------
    list of Path
        The files written, the markdown file first.

    Raises
    ------
    UsageError
        Without any run.
    InfrastructureError
        If a file cannot be written.
    """
    if not runs:
        raise UsageError("no run to report on")
    destination = Path(destination)
    folder = plot_folder(destination)
    recount = Recount(counted) if counted else None
    ladders = ladders_of(runs, recount)
    detailed = tabulated(ladders)
    found, plots = results(detailed, len(ladders) - len(detailed))
    followed = [_follow(source, runs, recount, folder.name) for source in sources(runs)]
    before = [
        title(runs), at_a_glance(ladders, headline(Collection(runs), ladders)), overview(runs), alarms(ladders),
        *(block for each in followed for block in each.blocks()), best_tables(ladders) if ladders else "",
        "## Environment and devices", *_environment(runs),
        "## Ceilings", *_ceilings(runs),
        "## Results", _READING if ladders else "No case was run.",
    ]  # fmt: skip
    plots += [plot for each in followed for plot in each.plots]
    behind = [
        *_across(ladders, plots, folder.name), *_scaling(ladders), *_comparison(detailed),
        "## Counted work" if counted else "", counted_section(counted),
        "## Failures", failures_section(ladders),
        "## How to reproduce", *_reproduce(runs),
    ]  # fmt: skip
    whole = join([*before, *(problem.markdown(folder.name) for problem in found), *behind])
    if (whole.count("\n") < MOST_LINES and not followed) or not found:
        return write_page(destination, whole, plots)
    links = table(["problem", "ladders", "cases"], [problem.link(folder.name) for problem in found], "lrr")
    note = "Each problem has a page of its own."
    files = write_page(destination, join([*before, note, links, *behind]), plots)
    for problem in found:
        up = f"[The whole report](../{quote(destination.name)})"
        files += write_page(folder / problem.file, join([f"# {problem.title}", up, problem.markdown("")]), [])
    return files


def sources(runs: Sequence[Run]) -> list[Source]:
    """Return the publications that the experiments of runs name to be followed, each once."""
    names = []
    for run in runs:
        try:
            names.append(load(run.folder / EXPERIMENT).report.follows)
        except UsageError:  # an experiment of another version, or none: what a report of results does not need
            continue
    return [find(name) for name in dict.fromkeys(filter(None, names))]


def _follow(source: Source, runs: list[Run], recount: Recount | None, folder: str) -> Followed:
    def counted(case: Case) -> Count | None:
        found = recount(case.run, case.record) if recount else None
        return found.count if found else None

    return Followed(source, Collection(runs), counted, folder)


def glance(runs: list[Run]) -> str:
    """Return the first table of the report, one line for each workload and device, for a terminal."""
    ladders = ladders_of(runs)
    return in_terminal(ladders, headline(Collection(runs), ladders))


_READING = (
    "Times are medians; “± %” is half of their 95 % confidence interval, and every bracket is a 95 % interval; "
    "where fewer than six samples give less, the confidence stands beside it. A number in brackets behind n says how "
    "many independent samples the n autocorrelated ones amount to. The "
    "*problem bound* is the least time for the useful operations and compulsory bytes of the problem, whatever the "
    "variant does; what *binds a variant* counts the traffic that this variant causes. `wrong` and `impossible` "
    "results are in no ranking and no ratio. Numbers are *measured* or *counted* here, *published* by others, or "
    "*modelled*, as their headings say."
)


def _environment(runs: list[Run]) -> Iterator[str]:
    for run, label in zip(runs, run_labels(runs), strict=True):
        yield f"### {run_title(run, label)}" if label else ""
        yield host_section(run)
        yield devices_section(run)


def _ceilings(runs: list[Run]) -> Iterator[str]:
    for run, label in zip(runs, run_labels(runs), strict=True):
        yield f"### {run_title(run, label)}" if label else ""
        yield ceilings_section(run, {device for record in run.records for device in record.identity.devices})


def _across(ladders: list[Ladder], plots: list[Plot], folder: str) -> Iterator[str]:
    """Yield tables and curves over settings; the curves are added to ``plots``."""
    curves = [
        plot
        for problem, same in groupby(ladders, key=lambda ladder: (ladder.workload, ladder.problem))
        for plot in curve_plots(list(same), f"{slug(*problem)}-curve")
    ]
    sections = list(sweeps_section(ladders))
    if sections or curves:
        yield "## Across settings"
        for plot in curves:
            yield from image(plot, folder)
        yield from sections
    plots += curves


def _scaling(ladders: list[Ladder]) -> Iterator[str]:
    if sections := list(scaling_section(ladders)):
        yield "## Several devices"
        yield from sections


def _comparison(ladders: list[Ladder]) -> Iterator[str]:
    yield "## Comparison of devices"
    tables = []
    for heading, same in groupby(ladders, key=lambda ladder: ladder.heading):
        alike = list(same)
        if len(alike) > 1:
            workload, problem, setting, precision = heading
            name = f"### {code(f'{workload}/{problem}')}, {text(setting, 100)}, {text(precision)}"
            tables += [name, device_comparison(alike)]
    yield join(tables) or "No problem was run on more than one device."


def _reproduce(runs: list[Run]) -> Iterator[str]:
    for run, label in zip(runs, run_labels(runs), strict=True):
        environment = run.environment
        experiment = environment.get("experiment") or {}
        command = environment.get("command")
        yield f"### {run_title(run, label)}" if label else ""
        yield fence(shell(command), "sh") if command else "The results do not hold the command."
        facts = [
            f"- experiment {code(experiment.get('name', ''))}, file {code(experiment.get('file', ''))}, "
            f"SHA-256 {code(experiment.get('sha256', ''))}" if experiment else f"- experiment: {NONE}",
            f"- seed {code(environment.get('seed', ''))}",
            f"- results in {code(run.folder)}",
        ]  # fmt: skip
        if run.records:
            facts.append(f"- one case again, by its key (this one is {code(run.records[0].identity.variant)}):")
            yield "\n".join(facts)
            yield fence(rerun(run.records[0], run), "sh")
        else:
            yield "\n".join(facts)
