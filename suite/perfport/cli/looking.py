"""Commands that look at what there is: ``devices``, ``list``, ``show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..model.untrusted import say
from .options import DeviceOption, JsonOption, WorkloadsOption, command_line, finish_by_status
from .output import print_rows


def devices(as_json: JsonOption = False) -> None:
    """List the devices within reach: platform, driver, units, memory, limits, images, profile, health."""
    from ..machine.discovery import profiled
    from ..run.listing import device_rows

    here = profiled()
    print_rows([device.model_dump() for device in here] if as_json else device_rows(here), as_json)


def list_(
    what: Annotated[str | None, typer.Argument(help="Only this workload.")] = None,
    profiles: Annotated[bool, typer.Option("--profiles", help="List device profiles instead.")] = False,
    experiments: Annotated[bool, typer.Option("--experiments", help="List the experiments that ship instead.")] = False,
    workloads: WorkloadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List workloads, problems, presets and variants, and what can run here (or why it cannot)."""
    from ..machine.discovery import profiled
    from ..run import listing

    if profiles:
        print_rows(listing.profile_rows(), as_json, ".1f")
        return
    if experiments:
        print_rows(listing.experiment_rows(), as_json)
        return
    chosen = listing.workloads(what, workloads or [])
    here = profiled()
    rows = [row for workload in chosen for row in listing.variant_rows(workload, here)]
    if not as_json:
        say("".join(listing.problems(workload) for workload in chosen), end="")
    print_rows(rows, as_json)


def show(
    case: Annotated[str, typer.Argument(help="A record's key, or workload/problem/variant.")],
    source: Annotated[bool, typer.Option("--source", help="The kernel source as compiled.")] = False,
    ptx: Annotated[bool, typer.Option("--ptx", help="PTX for --target; needs no GPU.")] = False,
    sass: Annotated[
        bool, typer.Option("--sass", help="Machine code for --target, its loops first (needs nvdisasm).")
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="The log of a failure.")] = False,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run just this case again.")] = False,
    target: Annotated[
        str | None, typer.Option(help="CUDA compile target; sm_90 for --ptx and --sass, none for --source.")
    ] = None,
    preset: Annotated[str, typer.Option(help="Problem size where CASE is a variant.")] = "tiny",
    results: Annotated[Path, typer.Option("--results", help="Where to look for the record.")] = Path("results"),
    device: DeviceOption = None,
    workloads: WorkloadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one case to the author of a kernel, on one screen; or its source, PTX, machine code, failure log; or run it.

    --json prints the whole record.
    """
    from ..report.pages.show import terminal
    from ..untimed import show

    subject = show.find(case, results, preset, workloads or [])
    if source:
        say(show.source(subject, target))
    if ptx:
        say(show.ptx(subject, target or show.TARGET))
    if sass:
        say(show.sass(subject, target or show.TARGET))
    if log:
        say(show.log(subject))
    if rerun:
        finish_by_status(show.rerun(subject, device, command_line()))
    if not (source or ptx or sass or log):
        say(json.dumps(show.described(subject), indent=1) if as_json else terminal(subject))
