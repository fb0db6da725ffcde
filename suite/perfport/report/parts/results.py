"""The results of a run, problem by problem: tables and plots of every ladder that there is room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from urllib.parse import quote

from ...judge.headline import amount
from ...model.untrusted import readable
from .ladder import Ladder
from .markdown import code, join, text
from .plots import Plot, image, pictures, share_plot
from .rooflines import no_roofline, roofline_plot
from .summary import short_settings
from .tables import ladder_tables, problem_facts, published_table

#: Ladders that a page has tables of.
MOST_LADDERS = 300


@dataclass
class ProblemResults:
    """The results of one problem: blocks of markdown and plots in order, and the file that may hold them."""

    title: str
    file: str
    ladders: int
    cases: int
    blocks: list[str | Plot] = field(default_factory=list)

    def markdown(self, folder: str) -> str:
        """Return the blocks as markdown; the plots lie in ``folder`` beside the page, or where it lies if empty."""
        shown = (image(block, folder) if isinstance(block, Plot) else [block] for block in self.blocks)
        return join(part for parts in shown for part in parts)

    def link(self, folder: str) -> list[str]:
        """Return a row of a table that leads to the file, in a folder whose name needs no escaping."""
        return [f"[{self.title}]({quote(folder)}/{quote(self.file)})", str(self.ladders), str(self.cases)]


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

    def of(self, ladder: Ladder, setting: str) -> str:
        """Return the name of a ladder's files, which carries its setting."""
        return self.free(readable(ladder.workload, ladder.problem, setting, ladder.site, ladder.precision))

    def renamed(self, picture: Plot) -> Plot:
        """Return a picture under a name of its own."""
        stem, _, suffix = picture.name.rpartition(".")
        return replace(picture, name=f"{self.free(stem)}.{suffix}")


def most_plotted(records: int) -> int:
    """Return how many ladders get plots: a report of thousands of records has tables for the rest, and says so."""
    return max(8, 24 - records // 500)


def tabulated(ladders: list[Ladder]) -> list[Ladder]:
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


def results(ladders: Sequence[Ladder], left: int) -> tuple[list[ProblemResults], list[Plot]]:
    """Return the results of ladders by problem, and their plots; ``left`` other ladders were left out."""
    names = _FileNames()
    settings = short_settings(list(ladders))
    held = [(ladder, names.of(ladder, settings[ladder.heading])) for ladder in ladders]
    drawn, most = 0, most_plotted(sum(len(ladder.rows) for ladder in ladders))
    listed: list[ProblemResults] = []
    for (workload, problem), same in groupby(held, key=lambda pair: (pair[0].workload, pair[0].problem)):
        group = list(same)
        title = f"{group[0][0].problem_title} ({code(f'{workload}/{problem}')})"
        cases = sum(len(ladder.rows) for ladder, _ in group)
        file = f"{names.free(readable(workload, problem))}.md"
        made = ProblemResults(title, file, len(group), cases, [f"### {title}: {group[0][0].workload_title}"])
        for _, alike in groupby(group, key=lambda pair: pair[0].heading[:3]):
            pairs = list(alike)
            heading = f"#### {code(problem)}, {text(settings[pairs[0][0].heading], 80)}"
            made.blocks += [heading, problem_facts(pairs[0][0])]
            drawn = _setting(made, pairs, names, drawn, most)
        listed.append(made)
    notes = _notes(len(ladders), left, most, drawn)
    if listed:
        listed[0].blocks[:0] = notes
    return listed, [block for made in listed for block in made.blocks if isinstance(block, Plot)]


def _setting(
    made: ProblemResults, group: Sequence[tuple[Ladder, str]], names: _FileNames, drawn: int, most: int
) -> int:
    """Add the ladders of a problem at one setting; returns how many ladders have plots by then."""
    for ladder, name in group:
        made.blocks += [f"##### {code(ladder.site)}, {text(ladder.precision)}", ladder_tables(ladder)]
        if drawn < most:
            plots = [plot for plot in (roofline_plot(ladder, name), share_plot(ladder, name)) if plot]
            if why := no_roofline(ladder):
                made.blocks.append(f"No roofline: {why}.")
            plots += map(names.renamed, pictures(ladder, name))
            drawn += bool(plots)
            made.blocks += plots
    made.blocks.append(published_table([ladder for ladder, _ in group]))
    return drawn


def _notes(shown: int, left: int, most: int, drawn: int) -> list[str]:
    """Say what is left out."""
    where = code("perfport table --workload WORKLOAD --problem PROBLEM")
    notes = [f"Plots are drawn for the first {most} of {shown} ladders; the others have tables only."]
    notes = notes if drawn == most and shown > most else []
    if left:
        notes.append(
            f"Of {left + shown} ladders the {shown} at the largest settings of each problem have tables here; {where} "
            "has all of a problem."
        )
    return notes
