"""The portability metric as tables, as a cascade plot, and in the columns that other tools read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure

from ...judge.portability import (
    BEST,
    Choice,
    Efficiency,
    Portability,
    Rule,
    applications,
    device_of,
    efficiencies,
    harmonic_mean,
    portability,
)
from ...model.record import Interval
from ...model.untrusted import slug
from ...store.case import Site, Subject
from ...store.collection import Collection
from ...untimed.convergence import ALL, Convergence
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.marks import ELSEWHERE, noted
from ..parts.plots import Plot, image, style, svg
from ..parts.points import look
from ..parts.quantities import percent
from ..parts.view import View

#: Columns of the export, as the p3-analysis-library reads them.
EXPORT = ("problem", "platform", "application", "fom", "arch eff", "app eff", "date")
#: Applications that a cascade can show, and chips that one is worth drawing for.
MOST, LEAST_CHIPS = 7, 3

READING = (
    "PP is the harmonic mean of an application's efficiencies over the platforms, 0 where it is `unsupported`, "
    "`wrong`, `crashed`, `timeout` or has no valid result for another reason of its own. *Architectural* "
    "efficiency is the share of the problem bound, *application* efficiency the speed as a share of the best "
    "known on the platform, peers included. A platform where a library or data set is missing, that did not "
    "run the problem, where all of it was `contended`, or a contended result is the fastest, is left out and named. "
    f"{BEST} takes the best variant of the problem on each platform. All numbers are measured; "
    "brackets are 95 % intervals. Platforms that share a chip are not independent."
)


def view(collection: Collection, chosen: Sequence[Site] | None, name: str) -> View:
    """Return the metric of every variant and problem over a named set of platforms, or over every device once."""
    metrics = portability(collection, chosen)
    if chosen is None:
        platforms = collection.places
        listed = sorted({device_of(site) for site in platforms})
        once = " One model of GPU on hosts of several sizes is one platform: in each problem one host stands for it."
    else:
        platforms, once = list(chosen), ""
        listed = [collection.label(site) for site in platforms]
    chips = {chip for site in platforms for chip in site.chips}
    head = (
        f"Platform set {code(name)}: {', '.join(map(code, listed))}; {len(listed)} platforms, "
        f"{len(chips)} distinct chip{'' if len(chips) == 1 else 's'} ({', '.join(map(text, sorted(chips)))}).{once}"
    )
    blocks, plots = ["# Portability", head, READING], []
    for (workload, problem, precision), same in groupby(metrics, key=lambda application: application.subject.family):
        tables, plot = section(list(same), collection)
        blocks.append(f"## {code(f'{workload}/{problem}')}, {text(precision)}")
        blocks += tables
        if plot:
            plots.append(plot)
            blocks += image(plot)
    return View("Portability", join(blocks), rows(metrics, collection, name), plots)


def section(metrics: Sequence[Portability], collection: Collection) -> tuple[list[str], Plot | None]:
    """Return the table of one problem, what it rests on, and its cascade."""
    listed = []
    choice = metrics[0].choice
    sites = list(choice.settings)
    for entry in metrics:
        by_site = {each.site: each for each in entry.efficiencies}
        values = [each.architectural.value for each in entry.efficiencies if each.architectural]
        listed.append([
            code(entry.application, 40), metric(entry.architectural), metric(entry.by_application),
            percent(sum(values) / len(values)) if values else NONE, percent(min(values)) if values else NONE,
            str(len(entry.efficiencies)), str(entry.chips),
            *(_efficiency(by_site.get(site), entry, site) for site in sites),
        ])  # fmt: skip
    headers = [
        "application", "PP, architectural", "PP, application", "mean", "minimum", "platforms", "chips",
        *(code(collection.label(site)) for site in sites),
    ]  # fmt: skip
    note = f"{_taken(choice, collection)} Mean, minimum and the columns of the platforms: architectural efficiency."
    left = dict.fromkeys(
        f"{code(collection.label(site))}: {text(reason, 100)}"
        for entry in metrics
        for site, reason in entry.left_out.items()
        if entry.application != BEST and (site not in choice.settings or reason != "not run")
    )
    out = f"Left out: {'; '.join(left)}." if left else ""
    return [table(headers, listed, "l" + "r" * (6 + len(sites))), noted([note]), out], cascade(metrics)


def _taken(choice: Choice, collection: Collection) -> str:
    """Say at which setting each platform is taken, and why."""
    names = {site: text(collection.preset(subject), 60) for site, subject in choice.settings.items()}
    each = ", ".join(
        f"{code(collection.label(site))} {name}{ELSEWHERE if site in choice.off else ''}"
        for site, name in names.items()
    )
    if choice.rule is Rule.OWN:
        return (
            f"No setting ran everywhere; each platform is taken at its headline size, or else at its largest: {each}."
        )
    why = "the headline size of every platform" if choice.rule is Rule.HEADLINE else "the largest that ran everywhere"
    if len(set(names.values())) == 1:
        return f"Setting: {next(iter(names.values()))}, {why}."
    return f"Settings: {each}. Where anything succeeded, the setting is {why}."


def metric(pp: Interval | None) -> str:
    """Return a metric with its interval."""
    if pp is None:
        return NONE
    if pp.value == 0:
        return "0"
    return f"{percent(pp.value)} ({percent(pp.low, unit=False)}–{percent(pp.high, unit=False)})"


def _efficiency(reached: Efficiency | None, application: Portability, site: Site) -> str:
    if reached is None:
        return "left out" if site in application.left_out else NONE
    if reached.architectural is None:
        return "no bound"
    return percent(reached.architectural.value) if reached.status.measured else f"0 ({reached.status.value})"


def rows(metrics: Sequence[Portability], collection: Collection, name: str) -> list[dict[str, Any]]:
    """Return a row for each application of each problem."""
    listed = []
    for entry in metrics:
        values = [each.architectural.value for each in entry.efficiencies if each.architectural]
        row: dict[str, Any] = {
            "workload": entry.subject.workload, "problem": entry.subject.problem, "precision": entry.subject.precision,
            "application": entry.application, "platform set": name, "platforms": len(entry.efficiencies),
            "chips": entry.chips, "settings chosen by": entry.choice.rule.value,
        }  # fmt: skip
        for kind, value in (("architectural", entry.architectural), ("application", entry.by_application)):
            row |= {f"PP {kind}": value.value if value else None}
            row |= {f"PP {kind} {end}": getattr(value, end) if value else None for end in ("low", "high")}
        row |= {"mean": sum(values) / len(values) if values else None, "minimum": min(values, default=None)}
        row["left out"] = "; ".join(f"{collection.label(site)}: {why}" for site, why in entry.left_out.items())
        listed.append(row)
    return listed


def export(collection: Collection, platforms: Sequence[Site]) -> list[dict[str, Any]]:
    """Return every setting of every problem in the columns `EXPORT`: a row for each platform and application.

    Efficiencies of a case without a valid result are 0, and its ``fom`` is empty; platforms where nothing is known have
    no row. ``fom`` is the problem's metric.
    """
    listed = []
    for subject in sorted(collection.subjects):
        here = {site: collection.at(subject, site) for site in platforms}
        for name in applications(case for held in here.values() for case in held):
            for site, reached in efficiencies(name, here).items():
                if isinstance(reached, Efficiency) and name != BEST:
                    metric_value = reached.record.metric if reached.status.measured else None
                    listed.append(dict(zip(EXPORT, (
                        _name(subject), f"{collection.label(site)}", name, metric_value.value if metric_value else None,
                        reached.architectural.value if reached.architectural else None, reached.application.value,
                        reached.record.time,
                    ), strict=True)))  # fmt: skip
    return listed


def _name(subject: Subject) -> str:
    settings = ",".join(f"{name}={value}" for name, value in sorted(subject.values.items()))
    return f"{subject.workload}/{subject.problem}[{settings}] {subject.precision}"


def cascade(metrics: Sequence[Portability]) -> Plot | None:
    """Return the cascade of a problem: efficiency on the best platform, on the two best, and so on, with the metric.

    Of fewer than three distinct chips there is none: its steps would say more of the drivers than of the devices.

    After J. Sewall, S. J. Pennycook, D. Jacobsen, T. Deakin, S. McIntosh-Smith, "Interpreting and visualizing
    performance portability metrics", P3HPC 2020. The applications with the highest metric are drawn.
    """
    known = {
        application.application: sorted(
            (each.architectural.value for each in application.efficiencies if each.architectural), reverse=True
        )
        for application in metrics
    }
    reach = max((len(values) for values in known.values()), default=0)
    chips = {chip for application in metrics for each in application.efficiencies for chip in each.site.chips}
    if reach < 2 or len(chips) < LEAST_CHIPS:
        return None
    order = sorted(known, key=lambda name: (-harmonic_mean(known[name]) if known[name] else 1, name))
    names = [BEST, *[name for name in order if name != BEST]][:MOST]
    first = metrics[0].subject
    with style():
        figure = Figure(figsize=(8.0, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for number, name in enumerate(names):
            values = known[name]
            if not values:
                continue
            colour, shape = look(number)
            steps = range(1, len(values) + 1)
            heights = [100 * harmonic_mean(values[:n]) for n in steps]
            looks: Any = {"marker": shape, "color": colour, "linestyle": "--" if name == BEST else "-"}
            looks["zorder"] = 3 if name == BEST else 2  # it often lies on another line
            left.plot(steps, [100 * v for v in values], label=middle(name, 30), **looks)
            right.plot(steps, heights, **looks)
        for axes, title in ((left, "efficiency on the n-th best platform"), (right, "PP over the n best platforms")):
            axes.set_title(title, fontsize=10)
            axes.set_xticks(range(1, reach + 1))
            axes.set_xlabel("platforms, n")
            axes.set_ylim(0, 103)
            axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        left.set_ylabel("architectural efficiency, %")
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        content = svg(figure)
    parts = (first.workload, first.problem, *([first.precision] if first.precision != "fp32" else []))
    caption = "Cascade by architectural efficiency (measured): each application's platforms from its best to its worst."
    if len(names) < len(known):
        caption += f" The {len(names)} of {len(known)} applications with the highest metric."
    return Plot(f"{slug(*parts)}-cascade.svg", content, f"Cascade of {first.workload}/{first.problem}", caption)


def convergence_table(entries: Sequence[Convergence], variants: bool) -> str:
    """Return the kernel source lines of each target and what they have in common, by variant or by problem."""
    listed = [
        [
            code(entry.workload) if entry.problem == ALL else code(f"{entry.workload}/{entry.problem}"),
            "all" if entry.variant == ALL else code(entry.variant), *(str(lines) for lines in entry.lines.values()),
            str(entry.total), percent(entry.share),
            NONE if entry.convergence is None else percent(entry.convergence),
        ]
        for entry in entries
        if variants or entry.problem == ALL
    ]  # fmt: skip
    if not listed:
        return ""
    targets = [f"lines, {text(name)}" for name in entries[0].lines]
    headers = ["problem", "variant", *targets, "any", "common to all backends", "code convergence"]
    return table(headers, listed, "ll" + "r" * (3 + len(targets)))
