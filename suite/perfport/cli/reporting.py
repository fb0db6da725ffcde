"""Commands that make pages of stored results, and ``quotes``, which holds other texts to them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import typer

from ..model.errors import UsageError, check_writable
from ..model.untrusted import say
from .options import Chosen, FormatOption, OutputOption, ResultsArgument, WorkloadsOption, filtered, finish, writable
from .output import show


def report(
    results: Annotated[list[Path], typer.Argument(help="Run folders, folders of counts, or a folder of them.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Markdown file; plots go beside it. [reports/report.md or reports/suite.md]"
        ),
    ] = None,
    suite: Annotated[
        bool,
        typer.Option(
            "--suite", help="All workloads in one summary, a page for each, claims, and one HTML file to click through."
        ),
    ] = False,
    history: Annotated[
        Path | None, typer.Option("--history", help="With --suite: the nights of this history, in the HTML file.")
    ] = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Write a markdown roofline report with SVG plots from stored results; counts among them take part.

    With --suite: a summary of all of them instead (docs/reports.md).
    """
    if history and not suite:
        raise UsageError("--history: only with --suite")
    destination = output or Path("reports/suite.md" if suite else "reports/report.md")
    check_writable(destination, "--output")
    if destination.suffix != ".md":
        raise UsageError(f"--output: expected a markdown file, as in 'reports/name.md', got {str(destination)!r}")
    if suite:
        from ..judge.claims import ledger
        from ..nightly.history import History
        from ..report import selection
        from ..report.pages.suite import render as render_suite
        from ..report.parts.seen import seen_by

        nights = History(history) if history else None
        (cases, recount), convergences = selection.counted_cases(results), selection.convergences(results)
        gc.freeze()  # records live to the end: the collector goes through them no more, and so gets to plots' cycles
        judged = ledger([*map(Path, workloads or [])])
        files = render_suite(cases, judged, convergences, destination, counted=seen_by(recount), history=nights)
        say(f"{destination}: {len(files) - 1} files beside it")
        return
    from ..report.pages.run import render, stored

    runs, counted = stored(results)
    gc.freeze()
    files = render(runs, destination, counted)
    say(f"{destination}: {len(files) - 1} files beside it")


@filtered("workload", "problem", "variant", "device", "precision")
def table(
    results: ResultsArgument,
    *,
    chosen: Chosen,
    profiles: Annotated[
        str,
        typer.Option("--profiles", help="all, or names: a column for each, modelled (perfport predict)."),
    ] = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Compare variants across devices: measured, beside the bounds and figures of archival devices."""
    from ..report import selection
    from ..report.pages.table import view

    modelled = selection.modelled(results, profiles) if profiles else None
    show(view(selection.cases(results, **chosen), modelled), form, output)


@filtered("workload", "problem", "variant", "precision")
def predict(
    results: ResultsArgument,
    device: Annotated[str, typer.Option("--device", help="A profile, its file, or part of a live device's name.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="What if: dram_read=8TB/s in place of a ceiling; repeatable."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="How far live devices predict each other, and published figures.")
    ] = False,
    *,
    chosen: Chosen,
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Model the times of stored cases on a device that nobody here has, with intervals (docs/prediction.md).

    Modelled times are marked, and are in no claim, portability metric or ratio.
    """
    from ..judge.predict import changed, find_target
    from ..report import selection
    from ..report.pages.predict import trust, view
    from ..store.collection import Filter

    if check == bool(device):
        raise UsageError("--device: expected a device, or --check in its place")
    if settings and check:
        raise UsageError("--set: expected with --device, not with --check")
    predictor = selection.predictor(results)
    if check:
        show(trust(predictor), form, output)
        return
    target = changed(find_target(predictor, device), settings or [])
    show(view(predictor, target, Filter(**chosen)), form, output)


@filtered("workload", "problem", "variant", "device", "precision")
def explain(
    case: Annotated[
        str, typer.Argument(metavar="CASE", help="A record's key or its beginning, or workload/problem/variant.")
    ] = "",
    results: Annotated[
        list[Path] | None, typer.Argument(help="Run folders, folders of counts, or a folder of them. [results]")
    ] = None,
    suite: Annotated[
        bool, typer.Option("--suite", help="Where work pays most: all arguments are results, none is a case.")
    ] = False,
    *,
    chosen: Chosen,
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Say why a case is not faster: what binds it, the next ceiling, what could be gained; counts take part.

    With --suite: the best variant of every problem and device by what a perfect kernel would gain (docs/reports.md).
    """
    from ..report import selection
    from ..report.pages.explain import ranking, view

    if not (case or suite):
        raise UsageError("CASE: expected a record's key or workload/problem/variant, or --suite and results")
    folders = [*([Path(case)] if suite and case else []), *(results or [])] or [Path("results")]
    cases, recount = selection.counted_cases(folders, **chosen)
    show(ranking(cases, recount) if suite else view(cases, case, recount), form, output)


@filtered("workload", "problem", "variant", "device")
def crosstuning(
    results: ResultsArgument, *, chosen: Chosen, form: FormatOption = "markdown", output: OutputOption = None
) -> None:
    """Show what the tuning parameters of other devices cost on each device, with heat maps."""
    from ..report.pages.crosstuning import view
    from ..report.selection import cases

    show(view(cases(results, **chosen)), form, output)


@filtered("workload", "problem", "variant", "device")
def stale(
    results: ResultsArgument,
    *,
    chosen: Chosen,
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """List results that were measured with code that has changed since, and which files those are."""
    from ..report.pages.stale import view
    from ..report.selection import cases
    from ..workload import discover

    show(view(cases(results, **chosen), discover(workloads) if workloads else None), form, output)


@filtered("workload", "problem", "precision")
def portability(
    results: ResultsArgument,
    *,
    chosen: Chosen,
    platforms: Annotated[
        str | None, typer.Option("--platforms", help="NAME=DEVICE,DEVICE,...: a named platform set; default: all.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Also write every setting as CSV in p3-analysis columns.", callback=writable),
    ] = None,
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Compute Pennycook's portability metric of every variant and problem, with cascade plots (docs/portability.md)."""
    from ..report import selection
    from ..report.pages import portability as pages
    from ..report.parts.plots import write_page
    from ..report.parts.view import as_csv

    cases = selection.cases(results, **chosen)
    name, sites = selection.platform_set(cases, platforms)
    if export:
        write_page(export, as_csv(pages.export(cases, sites or cases.places)).removesuffix("\n"), ())
    show(pages.view(cases, sites, name), form, output)


@filtered("workload")
def convergence(
    *,
    chosen: Chosen,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Store it for reports: FOLDER of results/convergence.json.", callback=writable
        ),
    ] = None,
    form: FormatOption = "markdown",
    workloads: WorkloadsOption = None,
) -> None:
    """Count the kernel source lines that backends and targets have in common, by variant; needs no device."""
    from ..report import selection
    from ..report.pages.convergence import view
    from ..untimed.convergence import converge, store

    convergences = [each for workload in selection.workloads(workloads or [], **chosen) for each in converge(workload)]
    if output:
        store(convergences, output)
        say(f"{output}: {len(convergences)} entries")
        return
    show(view(convergences), form, None)


@filtered("workload", "problem", "variant", "device")
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A folder of runs, a device, or a variant.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What to compare with it, of the same kind.")],
    results: Annotated[
        list[Path] | None, typer.Option("--results", help="Where devices and variants are looked for. [results]")
    ] = None,
    *,
    chosen: Chosen,
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Compare two runs, devices or variants case by case: how many times faster B is, with interval and verdict.

    Exit code: 0 nothing got worse; 3 a result of B is wrong or impossible; 4 a case that A has a result of has none in
    B; 5 a case of B is slower, its whole interval; 2 bad input. The first of 3, 4, 5 that applies.
    """
    from ..judge.compare import contrast
    from ..report.pages.compare import view
    from ..store.collection import Filter

    kind, pairs = contrast(a, b, results or [Path("results")], Filter(**chosen))
    show(view(kind, a, b, pairs), form, output)
    finish(
        wrong=any(pair.wrong for pair in pairs),
        failed=any(pair.lost for pair in pairs),
        slower=any(pair.slower for pair in pairs),
    )


@filtered("workload", "problem", "device")
def claims(
    results: ResultsArgument,
    *,
    chosen: Chosen,
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Judge the publications' claims on every device that stored results hold (docs/reports.md)."""
    from ..judge.claims import evaluate
    from ..report import selection
    from ..report.pages.claims import view

    cases = selection.cases(results, device=chosen.pop("device"))
    show(view(evaluate(selection.claims(workloads or [], **chosen), cases), cases), form, output)


def quotes(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Markdown files. [README.md docs/*.md workloads/*/README.md]")
    ] = None,
    results: Annotated[Path, typer.Option("--results", help="Folder of the runs that they name.")] = Path(
        "results/committed"
    ),
    write: Annotated[bool, typer.Option("--write", help="Put the numbers right.")] = False,
) -> None:
    """Check the numbers that texts quote from stored runs against the records (docs/reports.md).

    Exit code: 0 all are right, or were put right; 3 one is not; 2 bad input.
    """
    from ..report.quotes import check_files

    wrong = False
    for file, complaints, left in check_files(files or [], results, write):
        for complaint in complaints:
            say(f"{file}: {complaint}")
        wrong |= left
    finish(wrong=wrong)
