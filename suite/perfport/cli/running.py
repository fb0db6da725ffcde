"""Commands that run kernels: ``run``, ``verify``, ``count``, ``ceilings``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..model.errors import InfrastructureError, UsageError, nearest
from ..model.untrusted import say
from .options import (
    BenchmarkOption,
    DeviceOption,
    JsonOption,
    SeedOption,
    TimedSeedOption,
    WorkloadsOption,
    command_line,
    finish,
    finish_by_status,
    writable,
)  # fmt: skip
from .output import print_rows


def _retry(kinds: list[str] | None) -> list[str] | None:
    if kinds:
        from ..model.record import RETRY

        for kind in kinds:
            if kind not in RETRY:
                expected = " or ".join(map(repr, RETRY))
                raise UsageError(f"--retry: expected {expected}, got {kind!r}{nearest(kind, RETRY)}")
    return kinds


def _peer(name: str | None) -> str | None:
    if name not in (None, "clpeak"):
        raise UsageError(f"--peer: expected 'clpeak', got {name!r}")
    return name


def _native(name: str | None) -> str | None:
    if name not in (None, "native"):
        hint = "profiles of other devices are named by an experiment's 'profiles'"
        raise UsageError(f"--profile: expected 'native', got {name!r}; {hint}")
    return name


def run(
    experiment: Annotated[str, typer.Argument(help="An experiment file, or the name of one that ships: quick, ...")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would run, run nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the last run of this experiment (or --out).")
    ] = False,
    retry: Annotated[
        list[str] | None,
        typer.Option(
            "--retry", help="With --resume, run 'failed' or 'contended' cases again; repeatable.", callback=_retry
        ),
    ] = None,
    benchmark: BenchmarkOption = None,
    device: DeviceOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Results folder of this run.")] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="'native': defaults are the code's own, whatever was tuned.", callback=_native),
    ] = None,
    workloads: WorkloadsOption = None,
    seed: TimedSeedOption = None,
) -> None:
    """Run an experiment; store records, and write its report where the file names one.

    Exit code: 0 all cases fine, unsupported or unavailable; 3 a wrong or an impossible result; 4 a case crashed, timed
    out or did not compile, or the suite cannot run here; 2 bad input.
    """
    from ..run.experiment import load
    from ..run.local import Options
    from ..run.run import run as run_experiment

    if retry and not resume:
        raise UsageError("--retry needs --resume")
    options = Options(
        dry_run=dry_run, resume=resume, retry=tuple(retry or ()), patterns=tuple(benchmark or ()), devices=device,
        out=out, workloads=workloads or [], seed=seed, native=profile is not None, command=command_line(),
    )  # fmt: skip
    done = run_experiment(experiment, options)
    if dry_run:
        return
    from ..report.pages.run import glance, render, stored
    from ..store.results import EXPERIMENT

    for folder in done.folders:
        if (definition := load(folder / EXPERIMENT)).counting:  # as it was run, whatever became of the file meanwhile
            from ..untimed.count.after import count_run

            count_run(folder, definition, workloads or [], say)
    runs, counted = stored(done.folders)
    if done.report:
        render(runs, done.report, counted)
        say(f"report: {done.report}")
    if done.lost:
        raise InfrastructureError(done.lost)
    if runs:
        say(f"\n{glance(runs)}")
    finish_by_status(done.records)


def verify(
    pattern: Annotated[str, typer.Argument(help="Only variants whose workload/problem/variant contains this.")] = "",
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Under Oclgrind (default device), or compute-sanitizer on CUDA devices.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="Tuning parameters of a device profile; with --sanitize also its limits."),
    ] = None,
    device: DeviceOption = None,
    workloads: WorkloadsOption = None,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Check every variant at small odd sizes, untimed; with --sanitize also for races, bounds and unwritten memory.

    Exit code: 0 all right, unsupported or unavailable; 3 a wrong result or a finding; 4 a case crashed or a tool
    failed; 2 bad input.
    """
    from ..untimed import verify as verification
    from ..untimed.verify.choice import tasks_for

    tasks = tasks_for(pattern, sanitize=sanitize, profile=profile, devices=device, workloads=workloads or [], seed=seed)
    verdicts = []
    for verdict in verification.run(tasks, workloads or []):
        verdicts.append(verdict)
        if not as_json:
            say(verdict, flush=True)
    if as_json:
        print_rows(verification.rows(verdicts), as_json)
    else:
        say(verification.summary(verdicts))
    finish(
        wrong=any(verdict.wrong for verdict in verdicts),
        failed=any(verdict.outcome.status.failed for verdict in verdicts),
    )


def count(
    what: Annotated[
        str | None,
        typer.Argument(help="WORKLOAD[/PROBLEM[/VARIANT]]; PROBLEM may be *, VARIANT a pattern. Default: all of them."),
    ] = None,
    device: DeviceOption = None,
    output: Annotated[Path | None, typer.Option("-o", "--out", help="Folder of the counts.", callback=writable)] = None,
    preset: Annotated[
        list[str] | None, typer.Option("--preset", help="Count at this preset too (DRAM traffic); repeatable.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="NAME=VALUE[,VALUE...] in place of the preset's, and nothing at check sizes; repeatable."
        ),
    ] = None,
    coalescing: Annotated[
        bool, typer.Option("--coalescing", help="Cache lines touched by each access of a hardware thread.")
    ] = False,
    profile: Annotated[
        list[str] | None, typer.Option("--profile", help="--coalescing for this device profile; repeatable.")
    ] = None,
    stalls: Annotated[bool, typer.Option("--stalls", help="What warps wait for (Nsight Compute).")] = False,
    workloads: WorkloadsOption = None,
    seed: SeedOption = 1,
    timeout: Annotated[float, typer.Option(help="Seconds for each variant at one size.")] = 1800.0,
    as_json: JsonOption = False,
) -> None:
    """Count the operations and bytes that variants cause, beside what they declare (docs/counting.md).

    On the simulator (the default), or with Nsight Compute on a CUDA device. Exit code: 3 a declared quantity is more
    than 5 % off, or a result is wrong; 4 a variant cannot be run, or the tool is missing; 2 bad input.
    """
    from ..model.record import Status
    from ..untimed.count import Verdict, survey

    options = survey.Options(
        what=what, devices=device or [], out=output, presets=preset or [], coalescing=coalescing,
        profiles=profile or [], stalls=stalls, parameters=parameter or [], workloads=workloads or [], seed=seed,
        timeout=timeout, command=command_line(),
    )  # fmt: skip
    folder, counts = survey.run(options)
    say(survey.as_json(counts) if as_json else f"{survey.tables(counts)}\n{folder}: {len(counts)} counts")
    finish(
        wrong=any(counted.verdict is Verdict.DEVIATES or counted.status is Status.WRONG for counted in counts),
        failed=any(counted.verdict is Verdict.FAILED for counted in counts),
    )


def ceilings(
    folders: Annotated[list[Path] | None, typer.Argument(help="With --report: folders of stored ceilings.")] = None,
    device: DeviceOption = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All kernel shapes, or those that have won somewhere.")
    ] = False,
    peer: Annotated[
        str | None, typer.Option("--peer", help="'clpeak': run it before and after, and compare.", callback=_peer)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder to store them in, a file each.", callback=writable)
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Measure nothing: write this page from the ceilings in FOLDERS.", callback=writable
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the ceilings of devices anew: bandwidths, arithmetic rates, atomics, launches, transfers."""
    from rich.console import Console

    from ..measure.ceilings import survey
    from ..report.pages.ceilings import render, terminal
    from ..run.listing import usable_devices

    if bool(folders) != bool(report):
        raise UsageError("ceilings: --report FILE and FOLDERS of stored ceilings belong together")
    if report:
        files = render(list(survey.read(folders or [])), report)
        say(f"{report}: {len(files) - 1} plots beside it")
        return
    surveys = []
    for info in usable_devices(device):
        with Console(stderr=True).status(info.id) as status:
            surveys.append(survey.survey(info, full, bool(peer), command_line(), status.update))
        if output:
            survey.write(surveys[-1], output)
        if not as_json:
            say(terminal(surveys[-1]), flush=True)
    if as_json:
        say(json.dumps([measured.model_dump(mode="json") for measured in surveys], indent=1))
