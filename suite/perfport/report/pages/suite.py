"""The suite report: all workloads, devices and claims in one summary, a page for each workload, and one HTML file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ...judge.claims import DECIDED, Claim, Judgement, Verdict, evaluate
from ...judge.crosstuning import Slowdown, slowdowns
from ...judge.portability import BEST, Portability, portability
from ...measure.intervals import Verdict as Speed
from ...model.published import inconsistencies
from ...model.record import Status
from ...run.completeness import incomplete
from ...store.case import Host
from ...store.collection import Collection
from ...store.ratios import time_of
from ...store.results import Run
from ...untimed.convergence import Convergence
from ..parts import web
from ..parts.failures import ORDER, reason
from ..parts.ladder import Ladder, collected
from ..parts.markdown import code, join, table, text
from ..parts.marks import best_marks
from ..parts.plots import Plot, plot_folder, write_page
from ..parts.quantities import percent
from ..parts.rooflines import roofline_plot
from ..parts.scaling import scaling_section
from ..parts.summary import alarms, best_tables
from . import claims, crosstuning
from . import portability as portable
from . import table as page
from .stale import ages

TITLE = "Suite report"
#: A share of the bound that the summary counts as close to the roof.
CLOSE = 0.75
#: Rows of the table of best variants on a workload's page; of more, only those of the summary are shown.
MOST_BEST = 60


def render(
    collection: Collection,
    ledger: Mapping[str, Iterable[Claim]],
    converged: Sequence[Convergence],
    destination: Path,
) -> list[Path]:
    """Write the report: ``suite.md``, a page for each workload in ``suite/``, ``claims.md`` and ``suite.html``.

    Parameters
    ----------
    collection : Collection
    ledger : mapping
        Claims by workload.
    converged : sequence of Convergence
        Stored code convergence, empty where there is none.
    destination : Path
        The summary's file; the others lie beside it, under its name.

    Returns
    -------
    list of Path
        The files written, the summary first.

    Raises
    ------
    InfrastructureError
        If a file cannot be written.
    """
    folder = plot_folder(destination)
    ladders = collected(collection)
    first = page.headline(collection, ladders)
    metrics = portability(collection, collection.places)
    judgements = evaluate(ledger, collection)
    tuned = slowdowns(collection)
    ledger_page = claims.view(judgements, collection)
    summary, plots = _summary(collection, ladders, first, metrics, judgements, converged, folder.name)
    pages, page_plots = {}, []
    for workload in collection.workloads:
        content, drawn = _page(
            workload, collection, _of(ladders, workload), _of(first, workload),
            [one for one in metrics if one.subject.workload == workload],
            [judgement for judgement in judgements if judgement.workload == workload],
            [one for one in tuned if one.subject.workload == workload],
            [one for one in converged if one.workload == workload], destination,
        )  # fmt: skip
        pages[workload] = content
        page_plots += drawn
    files = write_page(destination, summary, [*plots, *page_plots])
    for workload, content in pages.items():
        files += write_page(folder / f"{workload}.md", content, [])
    files += write_page(destination.with_name("claims.md"), ledger_page.markdown, [])
    whole = {destination.stem: summary, **pages, "claims": ledger_page.markdown}
    document = web.document(TITLE, whole, [*plots, *page_plots])
    return files + write_page(destination.with_suffix(".html"), document.removesuffix("\n"), [])


def _of(ladders: Sequence[Ladder], workload: str) -> list[Ladder]:
    return [ladder for ladder in ladders if ladder.workload == workload]


def _image(plot: Plot, folder: str = "") -> list[str]:
    return [f"![{text(plot.alt)}]({folder}{plot.name})", f"*{text(plot.caption, 600)}*"]


def _summary(
    collection: Collection,
    ladders: Sequence[Ladder],
    first: Sequence[Ladder],
    metrics: Sequence[Portability],
    judgements: Sequence[Judgement],
    converged: Sequence[Convergence],
    folder: str,
) -> tuple[str, list[Plot]]:
    plot = page.best_dots(collection, first, "overview")
    links = [f"[{code(workload)}]({folder}/{workload}.md)" for workload in collection.workloads]
    blocks = [
        f"# {TITLE}",
        f"Pages: {', '.join(links)}, [all claims](claims.md). All numbers are measured unless marked *published* (by "
        "others) or *modelled*; brackets are 95 % intervals; the problem bound is the least time that the measured "
        "ceilings of the device allow for the useful work of the problem.",
        alarms(list(ladders)), _short(collection, first, judgements),
        "## What ran", _ran(collection),
        "## What is best where, and how close to the roof",
        "At the setting that stands for each problem: the largest that ran on every device, or else each device's own "
        "largest. The pages hold the others.",
        best_tables(list(first)), *(_image(plot, f"{folder}/") if plot else []),
        "## What carries over", *_carries(metrics, collection),
        "## Which claims hold", claims.summary(judgements, collection), _verdicts(judgements),
        "## Code convergence" if converged else "",
        "Kernel source lines that every backend compiles, over those that some backend compiles."
        if converged else "", portable.convergence_table(converged, variants=False),
        "## What failed", failed([case.newest for case in collection.cases]),
        "## Where the sources are inconsistent", _inconsistent(collection.workloads),
        "## Provenance", _provenance(collection),
    ]  # fmt: skip
    return join(blocks), [plot] if plot else []


def _short(collection: Collection, first: Sequence[Ladder], judgements: Sequence[Judgement]) -> str:
    """Return the answers in a few lines."""
    counts = Counter(case.record.status for case in collection.cases)
    ended = ", ".join(f"{counts[s]} {s.value}" for s in (Status.OK, Status.CONTENDED, *ORDER) if counts[s])
    lines = [f"{len(collection.cases)} cases on {_devices(collection)}: {ended}."]
    shares = [
        (ladder.best.record.problem_bound.share.value, ladder)
        for ladder in first
        if ladder.best and ladder.best.record.problem_bound
    ]
    if shares:
        (least, low), (most, high) = min(shares, key=_value), max(shares, key=_value)
        where = [f"{code(f'{one.workload}/{one.problem}')} on {code(one.site)}{best_marks(one)}" for one in (high, low)]
        close = sum(share >= CLOSE for share, _ in shares)
        lines.append(
            f"The best variants reach {percent(most)} of the problem bound at most ({where[0]}) and {percent(least)} "
            f"at least ({where[1]}); {close} of {len(shares)} reach {percent(CLOSE)} or more."
        )
    beaten = [ladder.peer_comparison.verdict for ladder in first if ladder.peer_comparison]
    if beaten:
        faster, slower = beaten.count(Speed.FASTER), beaten.count(Speed.SLOWER)
        lines.append(f"Beside the best peer they are faster in {faster} and slower in {slower} of {len(beaten)} cases.")
    verdicts = Counter(judgement.verdict for judgement in judgements)
    judged = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict)
    lines.append(f"Claims, each on each device: {judged}.")
    return "\n".join(f"- {line}" for line in lines)


def _devices(collection: Collection) -> str:
    number, hosts = len(collection.places), len({place.host for place in collection.places})
    of = f" of {hosts} hosts" if hosts > 1 else ""
    return f"{number} device{'' if number == 1 else 's'}{of}"


def _value(pair: tuple[float, Ladder]) -> float:
    return pair[0]


def _ran(collection: Collection) -> str:
    statuses = [Status.OK, Status.CONTENDED, *ORDER]
    counts = Counter((case.site, case.record.status) for case in collection.cases)
    listed = [
        [
            code(collection.label(site)), text(site.chip), site.kind,
            ", ".join(sorted({code(c.subject.workload) for c in collection.cases if c.site == site})),
            *(str(counts[site, status] or "") for status in statuses),
        ]
        for site in collection.sites
    ]  # fmt: skip
    chips = {chip for site in collection.sites for chip in site.chips}
    head = (
        f"{len(collection.cases)} cases of {', '.join(map(code, collection.workloads))} on {_devices(collection)} "
        f"({len(chips)} distinct chips), from {len(collection.runs)} runs."
    )
    headers = ["device", "chip", "kind", "workloads", *(status.value for status in statuses)]
    return join([head, table(headers, listed, "llll" + "r" * len(statuses))])


def _carries(metrics: Sequence[Portability], collection: Collection) -> Iterable[str]:
    listed = []
    for _, same in groupby(metrics, key=lambda one: (one.subject.workload, one.subject.problem, one.subject.precision)):
        problem = list(same)
        whole = next(one for one in problem if one.application == BEST)
        single = [one for one in problem if one.application != BEST and one.architectural]
        best = max(single, key=_portable, default=None)
        subject = whole.subject
        listed.append([
            code(f"{subject.workload}/{subject.problem}"), text(subject.precision), str(len(whole.efficiencies)),
            str(whole.chips), code(best.application) if best else "",
            portable.metric(best.architectural if best else None),
            portable.metric(best.by_application if best else None), portable.metric(whole.architectural),
        ])  # fmt: skip
    headers = [
        "problem", "precision", "platforms", "chips", "most portable variant", "PP, architectural", "PP, application",
        "PP of the best on each",
    ]  # fmt: skip
    yield portable.READING
    yield table(headers, listed, "llrrlrrr")


def _portable(one: Portability) -> tuple[int, float]:
    """Orders applications: first by how many platforms are known of, then by the metric."""
    return len(one.efficiencies), one.architectural.value if one.architectural else 0.0


def _verdicts(judgements: Sequence[Judgement]) -> str:
    listed = []
    for workload, same in groupby(judgements, key=lambda judgement: judgement.workload):
        claim_verdicts: dict[str, set[Verdict]] = {}
        for judgement in same:
            if judgement.verdict is not Verdict.NOT_MEASURED:
                claim_verdicts.setdefault(judgement.claim.id, set()).add(judgement.verdict)
        everywhere = {
            verdict: [name for name, found in claim_verdicts.items() if found == {verdict}]
            for verdict in Verdict
            if verdict in DECIDED
        }
        listed.append([
            code(workload), *(", ".join(map(code, names)) for names in everywhere.values()),
            str(len(claim_verdicts) - sum(map(len, everywhere.values()))),
        ])  # fmt: skip
    decided = [f"{verdict.value} wherever measured" for verdict in Verdict if verdict in DECIDED]
    return table(["workload", *decided, "differs or cannot be told"], listed, "l" * (1 + len(decided)) + "r")


def failed(records: Sequence[Any]) -> str:
    """Return how cases without a result ended, worst first: by status and reason, with how many and which."""
    groups: dict[tuple[int, str], list[str]] = {}
    for record in records:
        if record.status in ORDER:
            name = f"{record.identity.workload}/{record.identity.problem} {record.identity.variant}"
            groups.setdefault((ORDER.index(record.status), reason(record)), []).append(name)
    if not groups:
        return "Nothing: every case has a result."
    listed = []
    for (order, why), cases in sorted(groups.items()):
        names = list(dict.fromkeys(cases))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        status = ORDER[order]
        loud = status in (Status.IMPOSSIBLE, Status.WRONG)
        which = ", ".join(map(code, names[:3])) + more
        listed.append([f"**{status.value}**" if loud else status.value, str(len(cases)), text(why, 160), which])
    return table(["status", "cases", "reason", "which"], listed, "lrll")


def _roofline(ladders: Sequence[Ladder], name: str) -> Plot | None:
    """Return the roofline of the device that solves a problem fastest, by time for the useful work."""

    def pace(ladder: Ladder) -> float:
        work = ladder.best.record.work if ladder.best else None
        amount = work.flops + work.integer_ops + work.bytes if work else 0.0
        return time_of(ladder.best.record) / amount if ladder.best and amount else math.inf

    best = min((ladder for ladder in ladders if pace(ladder) < math.inf), key=pace, default=None)
    return roofline_plot(best, name) if best else None


def _inconsistent(workloads: Sequence[str]) -> str:
    listed = [
        [code(one.workload), text(one.source), text(one.stated, 400), text(one.used, 400)]
        for one in inconsistencies()
        if one.workload in workloads
    ]
    headers = ["workload", "source", "states (published)", "the suite uses"]
    return table(headers, listed, "llll") if listed else "None is known."


def _provenance(collection: Collection) -> str:
    listed = []
    for run in collection.runs:
        environment = run.environment
        commit = environment.get("commit") or {}
        versions = environment.get("versions") or {}
        dirty = " (uncommitted changes)" if commit.get("dirty") else ""
        listed.append([
            code(run.folder.name), text((environment.get("experiment") or {}).get("name", "")),
            text(environment.get("started", "")), text(_host(run)),
            code(str(commit.get("hash", ""))[:12]) + dirty, text(versions.get("perfport", "")),
            code(environment.get("seed", "")), str(len(run.records)), ages(collection, run),
            text(incomplete(run), 300),
        ])  # fmt: skip
    headers = [
        "run", "experiment", "started", "host", "commit", "version", "seed", "records",
        "results of code that has changed", "incomplete",
    ]  # fmt: skip
    note = "Which code has changed: `perfport stale`. Empty: the run does not tell."
    return join([table(headers, listed, "lllllllrll"), note])


def _host(run: Run) -> str:
    host = Host.of(run.environment)
    return f"{host.cpu}, {host.cores} cores, {host.memory} GiB" if host.cores else host.cpu


def _page(
    workload: str,
    collection: Collection,
    ladders: list[Ladder],
    first: list[Ladder],
    metrics: Sequence[Portability],
    judgements: Sequence[Judgement],
    tuned: Sequence[Slowdown],
    converged: Sequence[Convergence],
    destination: Path,
) -> tuple[str, list[Plot]]:
    about = (ladders[0].run.environment.get("workloads") or {}).get(workload) or {}
    blocks = [f"# {text(about.get('title') or workload)} ({code(workload)})"]
    blocks.append(f"[Summary](../{destination.name}) · [all claims](../claims.md)")
    if len(ladders) > MOST_BEST:
        note = (
            f"Of {len(ladders)} ladders those that stand for a problem; `perfport table --workload {workload}` has all."
        )
        blocks += [note, best_tables(first)]
    else:
        blocks.append(best_tables(ladders))
    plots: list[Plot] = []
    for problem, same in groupby(ladders, key=lambda ladder: ladder.problem):
        held = list(same)
        ahead = [ladder for ladder in first if ladder.problem == problem]
        blocks.append(f"## {text(held[0].info.get('title') or problem)} ({code(problem)})")
        plot = page.share_dots(
            collection, ahead, f"{workload}-{problem}-shares", f"Shares of the bound: {workload}/{problem}"
        )
        if plot:
            plots.append(plot)
            blocks += _image(plot)
        if roofline := _roofline(ahead, f"{workload}-{problem}"):
            plots.append(roofline)
            blocks += [*_image(roofline), "The reports of single runs have a roofline for every device."]
        shown = page.chosen_settings(held, ahead)
        for setting in shown:
            blocks += page.setting_tables(setting)
        left = len({ladder.subject.parameters for ladder in held}) - len(shown)
        if left:
            where = f"perfport table --workload {workload} --problem {problem}"
            blocks.append(f"{left} further settings: {code(where)}.")
        if scaled := list(scaling_section(held, "####")):
            blocks += ["### Several devices", *scaled]
        blocks.append(page.literature(ahead))
    blocks.append("## Portability")
    for (_, name, precision), alike in groupby(
        metrics, key=lambda one: (one.subject.workload, one.subject.problem, one.subject.precision)
    ):
        tables, cascade = portable.section(list(alike), collection)
        blocks += [f"### {code(name)}, {text(precision)}", *tables]
        if cascade:
            plots.append(cascade)
            blocks += _image(cascade)
    found = crosstuning.largest(tuned, collection)
    if found:
        blocks += ["## Cross-tuning", crosstuning.READING]
    if len(found) < len(tuned):
        where = code(f"perfport crosstuning --workload {workload}")
        blocks.append(f"The largest setting of each device; {where} has all.")
    for _, group in groupby(found, key=lambda one: (one.subject, one.variant)):
        cells = list(group)
        body, heat = crosstuning.matrix(cells, collection)
        name = f"{cells[0].subject.problem}, {collection.preset(cells[0].subject)}: {cells[0].variant}"
        blocks += [f"### {text(name, 120)}", body]
        if heat:
            plots.append(heat)
            blocks += _image(heat)
    blocks += ["## Claims", "The numbers behind each verdict: [all claims](../claims.md)."]
    blocks.append(claims.matrix(judgements, collection) if judgements else "This workload has no claims.")
    if converged:
        blocks += ["## Code convergence", portable.convergence_table(converged, variants=True)]
    cases = [case.newest for case in collection.cases if case.subject.workload == workload]
    blocks += ["## What failed", failed(cases)]
    blocks += ["## Where the source is inconsistent", _inconsistent([workload])]
    return join(blocks), plots
