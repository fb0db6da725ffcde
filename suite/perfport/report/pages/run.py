"""Reports: markdown with SVG plots, made from results folders alone and identical when made again from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from pathlib import Path

from ...judge.headline import amount
from ...machine.paths import shell
from ...model.errors import UsageError
from ...model.untrusted import readable
from ...store.results import Run
from ..parts.counted import Counts, Recount, counted_section, stored
from ..parts.failures import failures_section, rerun
from ..parts.ladder import Ladder, ladders_of, run_labels
from ..parts.machines import ceilings_section, devices_section, host_section, run_title
from ..parts.markdown import NONE, code, fence, join, text
from ..parts.plots import Plot, image, pictures, plot_folder, share_plot, write_page
from ..parts.rooflines import roofline_plot
from ..parts.scaling import scaling_section
from ..parts.summary import alarms, at_a_glance, best_tables, in_terminal, overview, title
from ..parts.sweeps import sweeps_section
from ..parts.tables import device_comparison, ladder_tables, problem_facts, published_table

__all__ = ["Counts", "glance", "render", "stored"]

#: Ladders that a page has tables of.
MOST_LADDERS = 300


def render(runs: list[Run], destination: Path, counted: Sequence[Counts] = ()) -> list[Path]:
    """Write the report of some runs.

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
    ladders = ladders_of(runs, Recount(counted) if counted else None)
    plots: list[Plot] = []
    detailed = _tabulated(ladders)
    results = _results_section(detailed, len(ladders) - len(detailed), folder.name, plots)
    content = join([
        title(runs), at_a_glance(ladders) if ladders else "", overview(runs), alarms(ladders),
        best_tables(ladders) if ladders else "",
        "## Environment and devices", *_environment(runs),
        "## Ceilings", *_ceilings(runs),
        "## Results", _READING if ladders else "No case was run.", results,
        *_across(ladders), *_scaling(ladders), *_comparison(detailed),
        "## Counted work" if counted else "", counted_section(counted),
        "## Failures", failures_section(ladders),
        "## How to reproduce", *_reproduce(runs),
    ])  # fmt: skip
    return write_page(destination, content, plots)


def glance(runs: list[Run]) -> str:
    """Return the first table of the report, one line for each workload and device, for a terminal."""
    return in_terminal(ladders_of(runs))


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


class _FileNames:
    """Names of a page's files, each given once, also where file systems ignore case."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._asked: Counter[str] = Counter()

    def free(self, name: str) -> str:
        """Return a name of small letters, with a number behind it where it was given before."""
        while True:
            self._asked[name] += 1
            number = self._asked[name]
            free = name if number == 1 else f"{name}.{number}"
            if free not in self._given:
                self._given.add(free)
                return free

    def of(self, ladder: Ladder) -> str:
        """Return the name of a ladder's files."""
        return self.free(readable(ladder.workload, ladder.problem, ladder.preset or "", ladder.site, ladder.precision))

    def renamed(self, picture: Plot) -> Plot:
        """Return a picture under a name of its own."""
        stem, _, suffix = picture.name.rpartition(".")
        return replace(picture, name=f"{self.free(stem)}.{suffix}")


def most_plotted(records: int) -> int:
    """Return how many ladders get plots: a report of thousands of records has tables for the rest, and says so."""
    return max(8, 24 - records // 500)


def _tabulated(ladders: list[Ladder]) -> list[Ladder]:
    """Return the ladders that get tables of their own: all, or of each problem those of its largest settings.

    As many settings of every problem as there is room for, and one at least.
    """
    by: dict[tuple[str, str], dict[str, list[Ladder]]] = {}
    for ladder in ladders:
        by.setdefault((ladder.workload, ladder.problem), {}).setdefault(ladder.setting, []).append(ladder)
    problems = [
        sorted(settings.values(), key=lambda same: -amount(row for ladder in same for row in ladder.rows))
        for settings in by.values()
    ]
    kept: list[Ladder] = []
    for next_largest in zip_longest(*problems, fillvalue=()):
        level = [ladder for same in next_largest for ladder in same]
        if kept and len(kept) + len(level) > MOST_LADDERS:
            break
        kept += level
    chosen = set(map(id, kept))
    return [ladder for ladder in ladders if id(ladder) in chosen]


def _results_section(ladders: list[Ladder], left: int, folder: str, plots: list[Plot]) -> str:
    """Return the results of ladders, ``left`` others being left out, and add their plots to ``plots``."""
    blocks = []
    if left:
        where = code("perfport table --workload WORKLOAD --problem PROBLEM")
        blocks.append(
            f"Of {left + len(ladders)} ladders the {len(ladders)} at the largest settings of each problem have "
            f"tables here; {where} has all of a problem."
        )
    file_names = _FileNames()
    names = [file_names.of(ladder) for ladder in ladders]
    drawn, most = 0, most_plotted(sum(len(ladder.rows) for ladder in ladders))
    workload = ""
    for _, same in groupby(zip(ladders, names, strict=True), key=lambda pair: pair[0].heading[:3]):
        group = list(same)
        first = group[0][0]
        if first.workload != workload:
            workload = first.workload
            blocks.append(f"### {first.workload_title}")
        setting = text(first.preset or first.setting, 80)
        blocks += [f"#### {first.problem_title} ({code(first.problem)}, {setting})", problem_facts(first)]
        for ladder, name in group:
            blocks.append(f"##### {code(ladder.site)}, {text(ladder.precision)}")
            blocks.append(ladder_tables(ladder))
            if drawn == most:
                continue
            made = [plot for plot in (roofline_plot(ladder, name), share_plot(ladder, name)) if plot]
            made += map(file_names.renamed, pictures(ladder, name))
            drawn += bool(made)
            plots += made
            for plot in made:
                blocks += image(plot, folder)
        blocks.append(published_table([ladder for ladder, _ in group]))
    if drawn == most and len(ladders) > most:
        blocks.insert(
            0, f"Plots are drawn for the first {most} of {len(ladders)} ladders; the others have tables only."
        )
    return join(blocks)


def _across(ladders: list[Ladder]) -> Iterator[str]:
    sections = list(sweeps_section(ladders))
    if sections:
        yield "## Across settings"
        yield from sections


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
