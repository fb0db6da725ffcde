"""The suite report: every problem by every device on one page, a page for each workload, claims, one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from ...judge.claims import DECIDED, SILENT, Claim, Judgement, Verdict
from ...judge.portability import BEST, Portability
from ...judge.predict import Counted, Predictor, nothing_counted
from ...measure.intervals import Verdict as Speed
from ...model.errors import UsageError
from ...model.record import Status
from ...model.untrusted import inside, slug
from ...nightly.history import History
from ...run.completeness import incomplete
from ...store.case import Host
from ...store.collection import Collection
from ...store.results import Run
from ...untimed.convergence import Convergence
from ..parts.explained import where_work_pays_table
from ..parts.failures import ORDER, failures_table
from ..parts.ladder import Ladder
from ..parts.markdown import code, details, join, table, text
from ..parts.marks import best_marks
from ..parts.material import Material
from ..parts.matrix import lines, matrix_table
from ..parts.modelled import settings_by_device
from ..parts.plots import Plot, image, plot_folder, write_page
from ..parts.quantities import percent
from ..parts.summary import alarms, best_tables
from ..viewer.data import as_json, content
from ..viewer.document import document as viewer_document
from . import claims, predict
from . import portability as portable
from .stale import ages
from .table import best_dots
from .workload import inconsistent
from .workload import page as workload_page

TITLE = "Suite report"
CLAIMS_PAGE = "claims.md"
#: A share of the bound that the summary counts as close to the roof.
CLOSE = 0.75
#: Rows of the summary's ranking of what could be gained.
MOST_PAYING = 8


def render(
    collection: Collection,
    ledger: Mapping[str, Iterable[Claim]],
    converged: Sequence[Convergence],
    destination: Path,
    *,
    counted: Counted = nothing_counted,
    history: History | None = None,
) -> list[Path]:
    """Write ``suite.md``, a page for each workload in ``suite/``, ``claims.md``, ``predictions.md`` and ``suite.html``.

    The HTML file answers by clicking what the others hold, and shows every case (`viewer`).

    Parameters
    ----------
    collection : Collection
    ledger : mapping
        Claims by workload.
    converged : sequence of Convergence
        Stored code convergence, empty where there is none.
    destination : Path
        The summary's file; the others lie beside it, under its name.
    counted : callable, optional
        What counts tell of a case (`judge.predict.Predictor`).
    history : History, optional
        Nights that the HTML file shows.

    Returns
    -------
    list of Path
        The files written, the summary first.

    Raises
    ------
    UsageError
        If the summary would have the name of a file beside it.
    InfrastructureError
        If a file cannot be written.
    """
    whole = destination.with_suffix(".html").name
    if destination.name in (CLAIMS_PAGE, predict.PAGE, whole):
        raise UsageError(f"--output: {destination}: a file of this name is written beside the summary; choose another")
    folder = plot_folder(destination).name
    material = Material.of(collection, ledger, converged)
    ledger_page = claims.view(material.judgements, collection).markdown
    summary, plots = _summary(material, folder, whole)
    pages = {}
    for name in collection.workloads:
        pages[f"{folder}/{slug(name)}.md"], drawn = workload_page(name, material, destination.name)
        plots += drawn
    pages[CLAIMS_PAGE] = ledger_page
    predictor = Predictor(collection, counted)
    held = settings_by_device(predictor)
    pages[predict.PAGE], drawn = predict.page(predictor, held, destination.name, folder)
    plots += drawn
    files = write_page(destination, summary, plots)
    for file, page in pages.items():
        files += write_page(inside(destination.parent, file), page, [])
    document = viewer_document(TITLE, as_json(content(material, TITLE, history, held)))
    return files + write_page(inside(destination.parent, whole), document, [])


LEGEND = (
    "Each cell is the **best variant** of this suite on the device: its rate, its *share of the bound* (█) and how "
    "it does against the best *peer*: ▲ faster, ▼ slower, = the same, ≈ cannot be told. The **bound** is the least "
    "time that the measured ceilings of the device allow for the useful work, whatever the approach; a **peer** is a "
    "library that one would use instead. *Published* figures are others', on other hardware; all else is measured "
    "here. A **rung** is a step of the published optimisation story, **beyond** a variant that goes further, "
    "**control** one that isolates an effect."
)


def _summary(material: Material, folder: str, whole: str) -> tuple[str, list[Plot]]:
    collection, first = material.collection, list(material.first)
    plot = best_dots(collection, first, "overview")
    convergence = portable.convergence_table(material.converged, variants=False)
    blocks = [
        f"# {TITLE}",
        f"Click through it in [{text(whole)}]({quote(whole)}), one file that any browser opens. {LEGEND}",
        "\n".join(_workloads(material, folder)),
        alarms(list(material.ladders)),
        "## What is best where, and how close to the roof", matrix_table(lines(material)),
        "Each problem is at its headline size for the class of the device, CPU or GPU; where there is no result of "
        "that, at the largest setting that ran. The pages of the workloads hold the others. Variants on devices that "
        f"nobody here has: [modelled times]({predict.PAGE}).",
        details("The same with settings, intervals and speed-ups", best_tables(first, off=material.off)),
        "## In short", _short(collection, first, material.judgements),
        "## Where work pays most", where_work_pays_table(first, MOST_PAYING),
        "## Which claims hold", claims.summary(material.judgements, collection),
        "The numbers behind each verdict: [all claims](claims.md).",
        details("Which claims came out how", _verdicts(material.judgements)),
        "## What failed", details("Statuses and reasons", failures_table([case.newest for case in collection.cases])),
        "## More",
        details("Shares of the bound as a plot", join(image(plot, folder))) if plot else "",
        details("What carries over between devices", join(_carries(material.metrics, collection))),
        details("Code convergence: source lines in common", convergence) if convergence else "",
        details("What ran", _ran(collection)),
        details("Where the sources are inconsistent", inconsistent(collection.workloads)),
        details("Provenance", _provenance(collection)),
    ]  # fmt: skip
    return join(blocks), [plot] if plot else []


def _workloads(material: Material, folder: str) -> Iterable[str]:
    """Yield a line for each workload: its page, and what it is."""
    titles = {of.workload: str(of.about.get("title") or "") for of in material.ladders}
    for name in material.collection.workloads:
        yield f"- [{code(name)}]({quote(folder)}/{slug(name)}.md): {text(titles.get(name, ''))}"


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
        where = [
            f"{code(f'{ladder.workload}/{ladder.problem}')} on {code(ladder.site)}{best_marks(ladder)}"
            for ladder in (high, low)
        ]
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
            code(collection.label(site)), text(site.chip), text(site.kind),
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
    for _, same in groupby(metrics, key=lambda metric: metric.subject.family):
        problem = list(same)
        whole = next(metric for metric in problem if metric.application == BEST)
        single = [metric for metric in problem if metric.application != BEST and metric.architectural]
        best = max(single, key=partial(_portable, platforms=len(whole.efficiencies)), default=None)
        subject = whole.subject
        listed.append([
            code(f"{subject.workload}/{subject.problem}"), text(subject.precision), str(len(whole.efficiencies)),
            str(whole.chips), code(best.application) if best else "", str(len(best.efficiencies)) if best else "",
            portable.metric(best.architectural if best else None),
            portable.metric(best.by_application if best else None), portable.metric(whole.architectural),
        ])  # fmt: skip
    headers = [
        "problem", "precision", "platforms", "chips", "most portable variant", "its platforms", "PP, architectural",
        "PP, application", "PP of the best on each",
    ]  # fmt: skip
    yield portable.READING
    yield (
        "The most portable variant is that of the highest architectural PP among those with results on more than half "
        "of a problem's platforms: results of older code lack newer variants. The best on each is over all platforms, "
        "and may be lower for that."
    )
    yield table(headers, listed, "llrrlrrrr")


def _portable(metric: Portability, platforms: int) -> tuple[bool, float]:
    """Orders applications: those known on most platforms first, then by the metric."""
    return 2 * len(metric.efficiencies) > platforms, metric.architectural.value if metric.architectural else 0.0


def _verdicts(judgements: Sequence[Judgement]) -> str:
    columns = [verdict for verdict in Verdict if verdict in DECIDED or verdict is Verdict.BY_CONSTRUCTION]
    listed = []
    for workload, same in groupby(judgements, key=lambda judgement: judgement.workload):
        claim_verdicts: dict[str, set[Verdict]] = {}
        for judgement in same:
            if judgement.verdict not in SILENT:
                claim_verdicts.setdefault(judgement.claim.id, set()).add(judgement.verdict)
        everywhere = {
            verdict: [name for name, verdicts in claim_verdicts.items() if verdicts == {verdict}] for verdict in columns
        }
        listed.append([
            code(workload), *(", ".join(map(code, names)) for names in everywhere.values()),
            str(len(claim_verdicts) - sum(map(len, everywhere.values()))),
        ])  # fmt: skip
    headers = [f"{verdict.value} wherever judged" if verdict in DECIDED else verdict.value for verdict in columns]
    return table(["workload", *headers, "differs or cannot be told"], listed, "l" * (1 + len(headers)) + "r")


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
