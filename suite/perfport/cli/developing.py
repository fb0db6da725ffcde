"""The loop of a kernel's author: ``dev``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from ..model.untrusted import line, say
from .options import DeviceOption, WorkloadsOption, finish


def dev(
    case: Annotated[str, typer.Argument(help="workload/problem/variant, or a record's key.")],
    once: Annotated[bool, typer.Option("--once", help="One round, then end with its exit code.")] = False,
    preset: Annotated[str, typer.Option(help="Size that is timed, where CASE is a variant.")] = "quick",
    timeout: Annotated[float, typer.Option(help="Seconds that one step of the edited code may take.", min=0.1)] = 60.0,
    results: Annotated[Path, typer.Option("--results", help="Where to look for the record.")] = Path("results"),
    device: DeviceOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Watch the files of a case's workload; compile, verify and time each save beside the version before (Ctrl-C ends).

    Exit code of --once: 0 right on every device that it can run on; 3 a wrong result; 4 it does not compile, crashes or
    exceeds its time-out. 2 bad input; 130 ended by Ctrl-C.
    """
    from rich.console import Console

    from ..report.pages.dev import screen
    from ..run.listing import usable_devices
    from ..untimed import dev as developing
    from ..untimed import show

    subject = show.find(case, results, preset, workloads or [])
    devices = usable_devices(device)
    console, told = Console(), Console(stderr=True)
    with told.status("starting") as status:
        loop = developing.Loop(subject, devices, timeout, lambda step: status.update(line(step, 90)))
        with contextlib.closing(loop):
            while True:
                done = loop.round()
                if console.is_terminal and not once:
                    console.clear()
                say(screen(done), flush=True)
                if once:
                    break
                status.update("waiting for a save; Ctrl-C ends")
                loop.wait()
    finish(wrong=done.wrong, failed=done.failed)
