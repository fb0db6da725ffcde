"""The application: all commands in the order of ``--help``, for `perfport.cli.ending` to run.

Heavy imports happen inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from ..machine.private import settle_caches
from ..model.errors import InfrastructureError
from ..model.untrusted import say
from . import changes, developing, exchange, looking, nightly, reporting, running, tuning, validating
from .ending import ending

app = typer.Typer(
    name="perfport",
    help="Performance-portability benchmark suite: published GPU optimisation studies as ladders of kernel variants, "
    "verified, timed, and placed under measured roofline bounds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: dict[str, Callable[..., Any]] = {
    "run": running.run,
    "verify": running.verify,
    "count": running.count,
    "ceilings": running.ceilings,
    "devices": looking.devices,
    "list": looking.list_,
    "report": reporting.report,
    "table": reporting.table,
    "predict": reporting.predict,
    "explain": reporting.explain,
    "crosstuning": reporting.crosstuning,
    "stale": reporting.stale,
    "portability": reporting.portability,
    "convergence": reporting.convergence,
    "compare": reporting.compare,
    "claims": reporting.claims,
    "quotes": reporting.quotes,
    "show": looking.show,
    "dev": developing.dev,
    "tune": tuning.tune,
    "export": exchange.export,
    "import": exchange.import_,
    "validate": validating.validate,
    "rebound": validating.rebound,
    "schema": validating.schema,
    "check": nightly.check,
    "diff": changes.diff,
    "bisect": changes.bisect,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(nightly.history_app, name="history")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"perfport {version('perfport')}")
        raise typer.Exit


@app.callback()
def _application(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: runs the command, and ends as `ending` has it."""
    with ending():
        with suppress(InfrastructureError):  # where it matters, discovery says so
            settle_caches()
        app()
