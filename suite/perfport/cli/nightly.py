"""Commands about nights: ``history``, ``history add``, ``check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..model.errors import UsageError
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

    held = History(folder)
    for complaint in held.left_out:
        say(f"perfport: left out: {complaint}", error=True)
    series = selection.series(held, **chosen)
    if page:
        write_page(page, pages.page(held, series), ())
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
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Also write the findings as JUnit XML.", callback=writable)
    ] = None,
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Judge a run: what is wrong, vanished, newly failing or slower than the baseline or the last nights.

    Exit code: 0 no alarm; 3 a result is wrong or impossible; 4 a case vanished or newly fails, or the suite cannot do
    its job here; 5 a case is slower; 2 bad input. The first of 3, 4, 5 that applies (docs/nightly.md).
    """
    if (baseline is None) == (history is None):
        raise UsageError("check: give either --baseline RUN or --history HISTORY")
    if change_points and history is None:
        raise UsageError("--change-points needs --history")
    from ..nightly.base import base_of
    from ..nightly.check import Outcome, check_run
    from ..report.pages import check as pages
    from ..report.pages.junit import junit as as_junit
    from ..report.parts.plots import write_page
    from ..store.results import Run

    run = Run(results)
    base = base_of(run, baseline=baseline, history=history, last=last, change_points=change_points)
    judgement = check_run(run, base, remeasure=remeasure, workloads=workloads or [], command=command_line())
    if junit:
        write_page(junit, as_junit(judgement).removesuffix("\n"), ())
    show(pages.view(judgement), form, output)
    say(f"perfport check: {pages.headline(judgement)}", error=True)
    finish(
        wrong=bool(judgement.of(Outcome.WRONG)),
        failed=bool(judgement.of(Outcome.VANISHED, Outcome.FAILED)),
        slower=bool(judgement.of(Outcome.SLOWER)),
    )
