"""The application: all commands in the order of ``--help``, and what becomes of an error.

Heavy imports happen inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from ..machine.private import settle_caches
from ..model.errors import InfrastructureError, PerfportError, Stopped, UsageError
from ..model.untrusted import say
from . import exchange, looking, nightly, reporting, running, validating
from .options import ExitCode

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
    "crosstuning": reporting.crosstuning,
    "stale": reporting.stale,
    "portability": reporting.portability,
    "convergence": reporting.convergence,
    "compare": reporting.compare,
    "claims": reporting.claims,
    "quotes": reporting.quotes,
    "show": looking.show,
    "export": exchange.export,
    "import": exchange.import_,
    "validate": validating.validate,
    "schema": validating.schema,
    "check": nightly.check,
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
    """Entry point: turns the suite's own errors into one message and an exit code."""
    with suppress(InfrastructureError):  # where it matters, discovery says so
        settle_caches()
    try:
        app()
    except UsageError as error:
        _complain(error, ExitCode.USAGE)
    except PerfportError as error:
        _complain(error, ExitCode.INFRASTRUCTURE)
    except KeyboardInterrupt:
        _complain("interrupted", ExitCode.INTERRUPTED)
    except Stopped as stopped:
        _complain(stopped, ExitCode(stopped.code))
    except BrokenPipeError:
        sys.stderr.close()


def _complain(error: object, code: ExitCode) -> None:
    say(f"perfport: {error}", error=True)
    sys.exit(code)
