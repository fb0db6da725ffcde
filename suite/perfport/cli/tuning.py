"""Searching for tuning parameters: ``tune``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ..model.errors import UsageError
from ..model.untrusted import line, say
from .options import DeviceOption, TimedSeedOption, WorkloadsOption, command_line, writable
from .output import show

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def _budget(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"\d{1,6}(\.\d{1,3})?[smh]?", text):
        raise UsageError(f"--budget: expected seconds, or a number with s, m or h as in '10m', got {text!r}")
    return text


def _weights(presets: list[str] | None) -> dict[str, float]:
    weights = {}
    for text in presets or []:
        name, equals, weight = text.partition("=")
        try:
            weights[name] = float(weight) if equals else 1.0
        except ValueError:
            raise UsageError(f"--presets: expected PRESET or PRESET=WEIGHT, got {text!r}") from None
    return weights


def tune(
    target: Annotated[
        str,
        typer.Argument(
            help="WORKLOAD[/PROBLEM[/VARIANT]], all, or an experiment file; with --report a folder of searches."
        ),
    ],
    budget: Annotated[
        str | None,
        typer.Option(help="Time of searching on each device: 90s, 10m, 1h. Default: 10m.", callback=_budget),
    ] = None,
    presets: Annotated[
        list[str] | None, typer.Option("--presets", help="PRESET or PRESET=WEIGHT to tune for; repeatable.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The profile to write. Default: your own of the device.", callback=writable
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last search of TARGET (or --out).")] = False,
    warm: Annotated[bool, typer.Option("--warm", help="Tune for a warm cache.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that one step of a configuration may take.", min=0.1)] = 60.0,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the search.")] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Measure nothing: write this page on the searches in TARGET.", callback=writable),
    ] = None,
    t4: Annotated[
        Path | None,
        typer.Option("--t4", help="Measure nothing: write the searches in TARGET for other tuners into this folder."),
    ] = None,
    device: DeviceOption = None,
    workloads: WorkloadsOption = None,
    seed: TimedSeedOption = None,
) -> None:
    """Search the tunables of variants on a device, and write what is faster than the defaults into its profile.

    What a profile holds becomes the defaults of `perfport run` on the device. Exit code: 0 also where nothing was
    found; 2 bad input; 4 no usable device; 130 ended by Ctrl-C.
    """
    if report or t4:
        _tell(Path(target), report, t4)
        return
    from rich.console import Console

    from ..report.pages.tune import summary
    from ..tune import tune as tuning

    options = tuning.Options(
        target, device, _seconds(budget), _weights(presets), seed, output, out, resume, "warm" if warm else "cold",
        timeout, workloads or [], command_line(),
    )  # fmt: skip
    console = Console(stderr=True, highlight=False)
    with console.status("starting") as status:
        done = tuning.run(
            options, lambda text: status.update(line(text, 100)), lambda text: say(line(text, 400), error=True)
        )
    say(summary(done))


def _tell(searches: Path, report: Path | None, t4: Path | None) -> None:
    from ..interop.kernel_tuner import write_t4
    from ..report.pages.tune import view
    from ..report.parts.view import FORMATS
    from ..tune.anatomy import found
    from ..tune.log import find_logs

    folders = find_logs(searches)
    if t4:
        for folder in folders:
            files = write_t4(folder, t4 / folder.name if len(folders) > 1 else t4)
            say(f"{t4}: {len(files)} files of {folder}")
    if report:
        forms = {f".{form}": form for form in FORMATS}
        show(view([found(folder) for folder in folders]), forms.get(report.suffix, "markdown"), report)


def _seconds(budget: str | None) -> float | None:
    if budget is None:
        return None
    number = budget.rstrip("smh")
    return float(number) * _UNITS[budget[len(number) :]]
