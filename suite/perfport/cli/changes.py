"""Commands about two states of the code: ``diff``, ``bisect``."""

from __future__ import annotations

from typing import Annotated

import typer

from ..model.errors import UsageError
from ..model.untrusted import say
from .options import BenchmarkOption, DeviceOption, FormatOption, OutputOption, WorkloadsOption, finish
from .output import show

ExperimentOption = Annotated[
    str, typer.Option("--experiment", help="Experiment file, or the name of one that ships, whose cases are measured.")
]
MinutesOption = Annotated[float, typer.Option("--minutes", help="So long it may take.")]


def _seconds(minutes: float) -> float:
    if not 0 < minutes <= 24 * 60:
        raise UsageError(f"--minutes: expected more than 0, at most {24 * 60}, got {minutes:g}")
    return 60 * minutes


def _progress(line: str) -> None:
    say(f"perfport: {line}", error=True, flush=True)


def diff(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A commit, branch or tag.")],
    head: Annotated[str | None, typer.Argument(metavar="[HEAD]", help="Another; default: the working tree.")] = None,
    benchmark: BenchmarkOption = None,
    experiment: ExperimentOption = "nightly",
    device: DeviceOption = None,
    minutes: MinutesOption = 10.0,
    every: Annotated[bool, typer.Option("--all", help="Also cases of whose code nothing differs.")] = False,
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Measure two states of the code in turn, by fresh workers on one device, and print a table for a pull request.

    Cases whose kernels differ come first, then those whose other code does, until the time is up. Both are executed.

    Exit code: as of check; 0 nothing became worse or nothing differs; 3 a result is wrong; 4 a case fails or vanished,
    or a side does not run here; 5 a case is slower; 6 too few cases have a verdict, or one is suspected; 2 bad input.
    """
    from ..nightly.diff import Options
    from ..nightly.diff import diff as measure
    from ..nightly.finding import Colour, Outcome
    from ..report.pages import diff as pages

    options = Options(experiment, tuple(benchmark or ()), device, _seconds(minutes), workloads or [], every)
    difference = measure(base, head, options, _progress)
    show(pages.view(difference), form, output)
    say(f"perfport diff: {pages.title(difference)}", error=True)
    if (judgement := difference.judgement) is None:
        finish()
    finish(
        wrong=bool(judgement.of(Outcome.WRONG)),
        failed=bool(judgement.of(Outcome.VANISHED, Outcome.FAILED)),
        slower=judgement.colour is Colour.RED,
        inconclusive=judgement.colour is Colour.YELLOW,
    )


def bisect(
    case: Annotated[str, typer.Argument(help="Contained in the workload/problem/variant of one case.")],
    good: Annotated[str, typer.Argument(metavar="GOOD", help="A commit in which the case was fast.")],
    bad: Annotated[str, typer.Argument(metavar="BAD", help="A later one in which it is slower.")],
    experiment: ExperimentOption = "nightly",
    device: DeviceOption = None,
    minutes: MinutesOption = 10.0,
    workloads: WorkloadsOption = None,
) -> None:
    """Find the commit with which a case became slower, each commit measured in turn with the good one.

    ``--minutes`` is the time of one comparison. Exit code: 0 found; 4 the bad commit is not known to be slower than the
    good one, or the suite cannot work here; 2 bad input.
    """
    from ..nightly.bisect import bisect as find
    from ..nightly.diff import Options

    options = Options(experiment, (), device, _seconds(minutes), workloads or [])
    culprit = find(case, good, bad, options, _progress)
    times = f"{1 / culprit.ratio.value:.3f} times the time from {good} to {bad}"
    if len(culprit.commits) == 1:
        say(f"{culprit.commits[0]} is the first slower commit ({times}): {culprit.subject}")
        return
    say(f"one of {len(culprit.commits)} commits is the first slower one ({times}); the others gave no verdict:")
    for commit in culprit.commits:
        say(commit)
