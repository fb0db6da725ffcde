"""What commands share: options and arguments, filters, exit codes."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..model.errors import UsageError, check_writable, nearest

if TYPE_CHECKING:
    from ..model.record import Record


class ExitCode(IntEnum):
    """What the exit code of a command says (docs/architecture.md)."""

    FINE = 0
    USAGE = 2
    WRONG = 3
    INFRASTRUCTURE = 4
    SLOWER = 5
    INCONCLUSIVE = 6
    HUNG_UP = 129
    INTERRUPTED = 130
    CLOSED = 141
    TERMINATED = 143


def finish(*, wrong: bool = False, failed: bool = False, slower: bool = False, inconclusive: bool = False) -> NoReturn:
    """End the command with the exit code of the first of these that applies."""
    codes = {
        ExitCode.WRONG: wrong, ExitCode.INFRASTRUCTURE: failed, ExitCode.SLOWER: slower,
        ExitCode.INCONCLUSIVE: inconclusive,
    }  # fmt: skip
    sys.exit(next((code for code, applies in codes.items() if applies), ExitCode.FINE))


def finish_by_status(records: Iterable[Record]) -> NoReturn:
    """End the command with the exit code that the worst of the records has."""
    from ..model.record import Status

    statuses = {record.status for record in records}
    finish(wrong=bool(statuses & {Status.WRONG, Status.IMPOSSIBLE}), failed=any(status.failed for status in statuses))


def command_line() -> list[str]:
    """Return what was typed, as it is stored with results."""
    return ["perfport", *sys.argv[1:]]


def writable(option: typer.CallbackParam, path: Path | None) -> Path | None:
    """Judge where results go before any work is done."""
    if path is not None:
        check_writable(path, option.opts[-1], folder=option.opts[-1] == "--out")
    return path


def _format(form: str) -> str:
    if form != "markdown":  # the default needs no import
        from ..report.parts.view import FORMATS

        if form not in FORMATS:
            raise UsageError(f"--format: {form!r} is not one of {', '.join(FORMATS)}{nearest(form, FORMATS)}")
    return form


def _seed(seed: int | None) -> int | None:
    if seed is not None and not 0 <= seed < 2**31:
        raise UsageError(f"--seed: expected an integer from 0 to {2**31 - 1}, got {seed}")
    return seed


DeviceOption = Annotated[
    list[str] | None,
    typer.Option("-d", "--device", help="all, cpu, gpu, a platform's short name or a device id; repeatable."),
]
BenchmarkOption = Annotated[
    list[str] | None,
    typer.Option("-b", "--benchmark", help="Only cases whose workload/problem/variant contains this; repeatable."),
]
WorkloadsOption = Annotated[
    list[str] | None,
    typer.Option("--workloads", metavar="PATH", help="A folder with further workloads; repeatable."),
]
SeedOption = Annotated[int, typer.Option(help="Seed of all random inputs.", callback=_seed)]
TimedSeedOption = Annotated[
    int | None, typer.Option(help="Seed of the inputs that are timed, in place of the experiment's.", callback=_seed)
]
ResultsArgument = Annotated[list[Path], typer.Argument(help="Run folders, or a folder of them; any number.")]
FormatOption = Annotated[str, typer.Option("--format", help="markdown, csv, json or html.", callback=_format)]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write this file instead of printing.", callback=writable)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]

#: Options by which commands choose among stored cases, as `perfport.store.collection.Filter` has them.
FILTERS = {
    "workload": Annotated[str, typer.Option("--workload", help="Only workloads whose name contains this.")],
    "problem": Annotated[str, typer.Option("--problem", help="Only problems whose name contains this.")],
    "variant": Annotated[str, typer.Option("--variant", help="Only variants whose name contains this.")],
    "device": Annotated[str, typer.Option("--device", help="Only devices whose id or chip contains this.")],
    "precision": Annotated[str, typer.Option("--precision", help="Only precision classes that contain this.")],
}
Chosen = dict[str, str]


def filtered(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the filters of these names; its keyword-only parameter ``chosen`` gets them as a dictionary.

    The options stand where ``chosen`` stands in the signature, which is what typer makes the command of.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in names}
            command(**given, chosen=chosen)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            options = [inspect.Parameter(name, parameter.kind, default="", annotation=FILTERS[name]) for name in names]
            parameters += options if parameter.name == "chosen" else [parameter]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate
