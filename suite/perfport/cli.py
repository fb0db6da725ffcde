"""The command line. Heavy imports happen inside the commands, so that ``--help`` answers at once."""

from __future__ import annotations

import json
import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import InfrastructureError, PerfportError, UsageError

if TYPE_CHECKING:
    from .device import DeviceInfo
    from .record import Record
    from .workload import Workload

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

DeviceOption = Annotated[
    list[str] | None,
    typer.Option("-d", "--device", help="all, cpu, gpu, a platform's short name or a device id; repeatable."),
]
WorkloadsOption = Annotated[
    list[Path] | None, typer.Option("--workloads", help="A folder with further workloads; repeatable.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


class ExitCode(IntEnum):
    """What the exit code of a command says (docs/architecture.md)."""

    FINE = 0
    USAGE = 2
    WRONG = 3
    INFRASTRUCTURE = 4
    INTERRUPTED = 130


def main() -> None:
    """Entry point: turns the suite's own errors into one message and an exit code."""
    try:
        app()
    except UsageError as error:
        _complain(error, ExitCode.USAGE)
    except PerfportError as error:
        _complain(error, ExitCode.INFRASTRUCTURE)
    except KeyboardInterrupt:
        _complain("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()


def _complain(error: object, code: ExitCode) -> None:
    print(f"perfport: {error}", file=sys.stderr)
    sys.exit(code)


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="An experiment file, or the name of one that ships: quick, ...")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would run, run nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the last run of this experiment (or --out).")
    ] = False,
    retry: Annotated[
        str | None, typer.Option("--retry", help="'failed': with --resume, run failed cases again.")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("-b", "--benchmark", help="Only cases whose workload/problem/variant contains this.")
    ] = None,
    device: DeviceOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Results folder of this run.")] = None,
    workloads: WorkloadsOption = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random inputs; default: drawn anew, and recorded.")
    ] = None,
) -> None:
    """Run an experiment; store records, and write its report where the file names one.

    Exit code: 0 all cases fine, unsupported or unavailable; 3 a wrong result; 4 a case crashed, timed out or did not
    compile, or the suite cannot run here; 2 bad input.
    """
    from . import launch

    if retry not in (None, "failed"):
        raise UsageError(f"--retry: expected 'failed', got {retry!r}")
    if retry and not resume:
        raise UsageError("--retry needs --resume")
    options = launch.Options(
        dry_run=dry_run, resume=resume, retry_failed=retry == "failed", pattern=benchmark, devices=device, out=out,
        workloads=[str(path) for path in workloads or []], seed=seed, command=["perfport", *sys.argv[1:]],
    )  # fmt: skip
    records = launch.launch(experiment, options)
    sys.exit(_exit_code(records))


def _exit_code(records: list[Record]) -> ExitCode:
    from .record import Status

    statuses = {record.status for record in records}
    if Status.WRONG in statuses:
        return ExitCode.WRONG
    return ExitCode.INFRASTRUCTURE if any(status.failed for status in statuses) else ExitCode.FINE


@app.command()
def devices(as_json: JsonOption = False) -> None:
    """List the devices within reach: platform, driver, units, memory, limits, images, profile, health."""
    from tabulate import tabulate

    found = _devices()
    if as_json:
        print(json.dumps([device.model_dump() for device in found], indent=1))
        return
    if not found:
        raise InfrastructureError(
            "no device found; 'pip install perfport[cpu]' brings an OpenCL runtime for x86-64 CPUs"
        )
    rows = [
        [
            device.id, device.name, device.driver, device.compute_units, f"{device.memory_bytes / 2**30:.1f} GiB",
            f"{device.local_memory_bytes / 2**10:.0f} KiB", device.max_work_group,
            f"{device.image2d_max_width}" if "images" in device.capabilities else "no",
            device.profile or "", "ok" if device.healthy else f"broken: {device.reason}",
        ]
        for device in found
    ]  # fmt: skip
    headers = ["id", "name", "driver", "units", "memory", "local", "max group", "image width", "profile", "health"]
    print(tabulate(rows, headers))


def _devices() -> list[DeviceInfo]:
    from .discovery import discover
    from .profile import match_profile

    found = []
    for device in discover():
        profile = match_profile(device.name, device.kind) if device.healthy else None
        found.append(device.model_copy(update={"profile": profile.name if profile else None}))
    return found


@app.command("list")
def list_command(
    what: Annotated[str | None, typer.Argument(help="Only this workload.")] = None,
    profiles: Annotated[bool, typer.Option("--profiles", help="List device profiles instead.")] = False,
    experiments: Annotated[bool, typer.Option("--experiments", help="List the experiments that ship instead.")] = False,
    workloads: WorkloadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List workloads, problems, presets and variants, and what can run here (or why it cannot)."""
    from .listing import experiment_rows, print_rows, profile_rows, variant_rows
    from .workload import discover

    if profiles:
        print_rows(profile_rows(), as_json)
        return
    if experiments:
        print_rows(experiment_rows(), as_json)
        return
    found = discover(workloads or [])
    if what is not None and what not in found:
        from .errors import nearest

        raise UsageError(f"no workload {what!r}{nearest(what, found)}; there are: {', '.join(found)}")
    chosen = [found[what]] if what else list(found.values())
    rows = [row for workload in chosen for row in variant_rows(workload, _devices())]
    if not as_json:
        for workload in chosen:
            _print_problems(workload)
    print_rows(rows, as_json)


def _print_problems(workload: Workload) -> None:
    print(f"{workload.name}: {workload.title}")
    for problem in workload.problems.values():
        print(f"  {problem.name}: {problem.title} [{problem.metric.unit}]; presets: {', '.join(problem.presets)}")
    print()


@app.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Run folders, or a folder of them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Markdown file; plots go beside it.")] = Path(
        "reports/report.md"
    ),
) -> None:
    """Write a markdown roofline report with SVG plots from stored results."""
    from .report import render
    from .results import Run, find_runs

    runs = [Run(folder) for path in results for folder in find_runs(path)]
    files = render(runs, output)
    print(f"{output}: {len(files) - 1} plots beside it")


@app.command()
def show(
    case: Annotated[str, typer.Argument(help="A record's key, or workload/problem/variant.")],
    source: Annotated[bool, typer.Option("--source", help="The kernel source as compiled.")] = False,
    ptx: Annotated[bool, typer.Option("--ptx", help="PTX for --target; needs no GPU.")] = False,
    sass: Annotated[bool, typer.Option("--sass", help="Machine code for --target (needs nvdisasm).")] = False,
    log: Annotated[bool, typer.Option("--log", help="The log of a failure.")] = False,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run just this case again.")] = False,
    target: Annotated[str, typer.Option(help="CUDA compile target.")] = "sm_90",
    preset: Annotated[str, typer.Option(help="Problem size where CASE is a variant.")] = "tiny",
    results: Annotated[Path, typer.Option("--results", help="Where to look for the record.")] = Path("results"),
    device: DeviceOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Show one case to the author of a kernel: its record, source, PTX, machine code, failure log; or run it again."""
    from . import inspection

    subject = inspection.find(case, results, preset, [str(path) for path in workloads or []])
    wanted = False
    for chosen, action in (
        (source, lambda: inspection.source(subject, target)),
        (ptx, lambda: inspection.ptx(subject, target)),
        (sass, lambda: inspection.sass(subject, target)),
        (log, lambda: inspection.log(subject)),
    ):
        if chosen:
            print(action())
            wanted = True
    if rerun:
        records = inspection.rerun(subject, device, ["perfport", *sys.argv[1:]])
        sys.exit(_exit_code(records))
    if not wanted:
        print(inspection.describe(subject))


@app.command()
def validate(
    path: Annotated[Path, typer.Argument(help="An experiment file, or a folder of results.")],
    workloads: WorkloadsOption = None,
) -> None:
    """Check an experiment file or a folder of results; says what is wrong and where."""
    from .results import Run, find_runs

    if path.is_dir():
        for folder in find_runs(path):
            print(f"{folder}: {len(Run(folder).records)} records, valid")
        return
    from .experiment import find, load
    from .plan import make, select_devices
    from .workload import discover

    experiment = load(find(path))
    devices = select_devices(experiment.devices, _devices(), f"{path}: devices")
    groups = make(experiment, str(path), discover(workloads or []), devices, seed=0)
    print(f"{path}: valid; {sum(len(group.cases) for group in groups)} cases on the devices here")


@app.command()
def schema(
    which: Annotated[str, typer.Argument(help="experiment, record or profile.")] = "experiment",
) -> None:
    """Print a JSON Schema, for editors and validators."""
    from .experiment import Experiment
    from .profile import DeviceProfile
    from .record import Record

    models: dict[str, Any] = {"experiment": Experiment, "record": Record, "profile": DeviceProfile}
    if which not in models:
        raise UsageError(f"schema: {which!r} is not one of {', '.join(models)}")
    print(json.dumps(models[which].model_json_schema(), indent=1))


if __name__ == "__main__":
    main()
