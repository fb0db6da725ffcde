"""Commands about nights: ``history``, ``history add``, ``history accept``, ``check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..model.errors import UsageError, nearest
from ..model.untrusted import say
from .options import (
    Chosen,
    FormatOption,
    OutputOption,
    ResultsArgument,
    WorkloadsOption,
    command_line,
    filtered,
    finish,
    writable,
)
from .output import show

AcceptedOption = Annotated[
    Path | None,
    typer.Option("--accepted", metavar="FILE", help="Levels that are accepted; default: accepted.yaml in the history."),
]

history_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, add_completion=False)


@history_app.callback()
@filtered("workload", "problem", "variant", "device")
def history(
    context: typer.Context,
    folder: Annotated[Path, typer.Option("--in", help="The history's folder.")] = Path("history"),
    page: Annotated[
        Path | None,
        typer.Option("--html", help="Write one self-contained page with a chart per case.", callback=writable),
    ] = None,
    compare: Annotated[
        str,
        typer.Option("--compare", help="With --html: address of the changes between two commits, {old} and {new}."),
    ] = "",
    *,
    chosen: Chosen,
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """List every case over the nights of a history, or write the history's page; ``history add`` adds runs."""
    if context.invoked_subcommand:
        return
    from ..nightly.history import History
    from ..report import selection
    from ..report.pages import history as pages
    from ..report.parts.plots import write_page

    if compare:
        pages.check_compare(compare)
    held = History(folder)
    for complaint in held.left_out:
        say(f"perfport: left out: {complaint}", error=True)
    series = selection.series(held, **chosen)
    if page:
        write_page(page, pages.page(held, series, compare), ())
        say(f"{page}: {len(series)} cases over {len(held.nights)} nights")
        return
    show(pages.view(held, series), form, output)


@history_app.command("add")
def history_add(
    results: ResultsArgument,
    into: Annotated[Path, typer.Option("--into", help="The history's folder; made where there is none.")] = Path(
        "history"
    ),
) -> None:
    """Add runs to a history: one file each; older files are never touched, and the same run again changes nothing."""
    from ..nightly.history import add_runs

    for path in results:
        for added in add_runs(path, into):
            say(added)


@history_app.command("accept")
def history_accept(
    case: Annotated[str, typer.Argument(help="Cases whose name contains this; without it, those of --event.")] = "",
    event: Annotated[
        str, typer.Option("--event", help="Events whose words or commits contain this; default: each case's latest.")
    ] = "",
    since: Annotated[
        str, typer.Option("--since", help="From the first night on that began on this date, whatever the events.")
    ] = "",
    folder: Annotated[Path, typer.Option("--in", help="The history's folder.")] = Path("history"),
    accepted: AcceptedOption = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever reviews the file.")] = "",
) -> None:
    """Accept the level of cases since an event or a night: earlier nights are no base of them any more.

    The file of accepted levels gets an entry for each case, to be reviewed; taking an entry out undoes it.
    """
    if not (case or event):
        raise UsageError("history accept: give a case, or --event")
    if event and since:
        raise UsageError("history accept: give --event or --since, not both")
    from ..nightly import accepted as levels
    from ..nightly.history import History

    held = History(folder)
    for complaint in held.left_out:
        say(f"perfport: left out: {complaint}", error=True)
    chosen = [series for series in held.series.values() if case in f"{series.place.title} on {series.place.site}"]
    if not held.series:
        raise UsageError(f"{folder}: holds no case yet")
    if not chosen:
        titles = {series.place.title for series in held.series.values()}
        raise UsageError(f"{folder}: no case's name contains {case!r}{nearest(case, titles)}")
    file = levels.Accepted(accepted or folder / levels.FILE)
    entries = levels.accept(held, chosen, file, event=event, since=since, reason=reason)
    for entry in entries:
        say(f"accepted: {entry.case} on {entry.device} since {entry.since}" + (f" ({entry.event})" * bool(entry.event)))
    say(file.file if entries else f"{file.file}: holds these levels already")


def check(
    results: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to judge.")],
    baseline: Annotated[Path | None, typer.Option("--baseline", help="Compare with this run folder.")] = None,
    history: Annotated[
        Path | None, typer.Option("--history", help="Compare with the last nights of this history.")
    ] = None,
    last: Annotated[int, typer.Option("--last", min=3, help="With --history: so many nights.")] = 7,
    change_points: Annotated[
        bool, typer.Option("--change-points", help="With --history: look for change points, too (extra otava).")
    ] = False,
    remeasure: Annotated[
        bool, typer.Option("--remeasure", help="Measure what looks slower again, in fresh workers, before it counts.")
    ] = False,
    accepted: AcceptedOption = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Also write the findings as JUnit XML.", callback=writable)
    ] = None,
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Judge a run: what is wrong, vanished, newly failing or slower than the baseline or the last nights.

    Exit code: 0 green; 3 a result is wrong or impossible; 4 a case vanished or newly fails, or the suite cannot do
    its job here; 5 a case is slower; 6 yellow: too few cases have a verdict, or one is suspected, or slower since an
    event that the project did not make; 2 bad input. The first of 3, 4, 5, 6 that applies (docs/nightly.md).
    """
    if (baseline is None) == (history is None):
        raise UsageError("check: give either --baseline RUN or --history HISTORY")
    if change_points and history is None:
        raise UsageError("--change-points needs --history")
    if accepted and history is None:
        raise UsageError("--accepted needs --history")
    from ..nightly.base import base_of
    from ..nightly.check import Outcome, check_run
    from ..nightly.finding import Colour
    from ..report.pages import check as pages
    from ..report.pages.junit import junit as as_junit
    from ..report.parts.plots import write_page
    from ..store.results import Run

    run = Run(results)
    base = base_of(run, baseline=baseline, history=history, last=last, change_points=change_points, accepted=accepted)
    judgement = check_run(run, base, remeasure=remeasure, workloads=workloads or [], command=command_line())
    if junit:
        write_page(junit, as_junit(judgement).removesuffix("\n"), ())
    show(pages.view(judgement), form, output)
    say(f"perfport check: {pages.headline(judgement)}", error=True)
    finish(
        wrong=bool(judgement.of(Outcome.WRONG)),
        failed=bool(judgement.of(Outcome.VANISHED, Outcome.FAILED)),
        slower=judgement.colour is Colour.RED,
        inconclusive=judgement.colour is Colour.YELLOW,
    )
