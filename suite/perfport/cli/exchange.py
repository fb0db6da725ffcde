"""Commands that exchange results with other tools: ``export``, ``import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..model.untrusted import say
from .options import ResultsArgument, command_line, writable


def export(
    results: ResultsArgument,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="pytest-benchmark, google-benchmark, pyperf, customSmallerIsBetter, otava or p3."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Write this file; otava writes a .yaml beside it.", callback=writable),
    ],
) -> None:
    """Write stored results in the format of another tool (docs/integrations.md)."""
    from ..interop import exports
    from ..store.results import load_runs

    for file in exports.export(load_runs(results), form, output):
        say(file)


def import_(
    file: Annotated[Path, typer.Argument(help="What another tool wrote.")],
    form: Annotated[str, typer.Option("--format", help="pytest-benchmark, google-benchmark or pyperf.")],
    beside: Annotated[Path, typer.Option("--beside", metavar="RUN", help="The run folder to stand beside.")],
    case: Annotated[
        str, typer.Option("--as", help="What was measured: WORKLOAD/PROBLEM[/PRESET][@DEVICE] of that run.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The new run folder.", callback=writable)],
    cache: Annotated[
        str | None,
        typer.Option("--cache", help="What a repetition finds: cold or warm; default: cold where the data do not fit."),
    ] = None,
) -> None:
    """Take results of another tool as peers of a run's problem: a run folder that all commands on results read."""
    from ..interop import imports
    from ..store.results import Run

    records = imports.adopt(imports.Source(file, form), Run(beside), case, out, command_line(), cache=cache)
    say(f"{out}: {len(records)} peers of {case}")
