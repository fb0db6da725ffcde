"""The command line. Heavy imports happen inside the commands, so that ``--help`` answers at once."""

from __future__ import annotations

import json
import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .model.errors import InfrastructureError, PerfportError, UsageError, check_writable, nearest

if TYPE_CHECKING:
    from .judge.claims import Claim
    from .model.device import DeviceInfo
    from .model.record import Record
    from .report.parts.view import View
    from .store.collection import Collection
    from .untimed.convergence import Convergence
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


def _writable(option: typer.CallbackParam, path: Path | None) -> Path | None:
    """Judge where results go before any work is done."""
    if path is not None:
        check_writable(path, option.opts[-1], folder=option.opts[-1] == "--out")
    return path


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"perfport {version('perfport')}")
        raise typer.Exit


@app.callback()
def _application(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    pass


def _format(form: str) -> str:
    if form != "markdown":  # the default needs no import
        from .report.parts.view import FORMATS

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
WorkloadsOption = Annotated[
    list[Path] | None, typer.Option("--workloads", help="A folder with further workloads; repeatable.")
]
ResultsArgument = Annotated[list[Path], typer.Argument(help="Run folders, or a folder of them; any number.")]
FormatOption = Annotated[str, typer.Option("--format", help="markdown, csv, json or html.", callback=_format)]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write this file instead of printing.", callback=_writable)
]
WorkloadFilter = Annotated[str, typer.Option("--workload", help="Only workloads whose name contains this.")]
ProblemFilter = Annotated[str, typer.Option("--problem", help="Only problems whose name contains this.")]
VariantFilter = Annotated[str, typer.Option("--variant", help="Only variants whose name contains this.")]
DeviceFilter = Annotated[str, typer.Option("--device", help="Only devices whose id or chip contains this.")]
PrecisionFilter = Annotated[str, typer.Option("--precision", help="Only precision classes that contain this.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


#: Lines about one run that ``validate`` prints.
MOST_FAULTS = 20


class ExitCode(IntEnum):
    """What the exit code of a command says (docs/architecture.md)."""

    FINE = 0
    USAGE = 2
    WRONG = 3
    INFRASTRUCTURE = 4
    SLOWER = 5
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
        list[str] | None,
        typer.Option("--retry", help="With --resume, run 'failed' or 'contended' cases again; repeatable."),
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("-b", "--benchmark", help="Only cases whose workload/problem/variant contains this.")
    ] = None,
    device: DeviceOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Results folder of this run.")] = None,
    workloads: WorkloadsOption = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the inputs that are timed, in place of the experiment's.", callback=_seed),
    ] = None,
) -> None:
    """Run an experiment; store records, and write its report where the file names one.

    Exit code: 0 all cases fine, unsupported or unavailable; 3 a wrong or an impossible result; 4 a case crashed, timed
    out or did not compile, or the suite cannot run here; 2 bad input.
    """
    from .model.record import RETRY
    from .report.pages.run import glance, render
    from .run.local import Options
    from .run.run import run as run_experiment
    from .store.results import Run

    for which in retry or ():
        if which not in RETRY:
            expected = " or ".join(map(repr, RETRY))
            raise UsageError(f"--retry: expected {expected}, got {which!r}{nearest(which, RETRY)}")
    if retry and not resume:
        raise UsageError("--retry needs --resume")
    options = Options(
        dry_run=dry_run, resume=resume, retry=tuple(retry or ()), pattern=benchmark, devices=device, out=out,
        workloads=[str(path) for path in workloads or []], seed=seed, command=["perfport", *sys.argv[1:]],
    )  # fmt: skip
    done = run_experiment(experiment, options)
    runs = [Run(folder) for folder in done.folders]
    if done.report:
        render(runs, done.report)
        print(f"report: {done.report}")
    if done.lost:
        raise InfrastructureError(done.lost)
    if runs:
        print(f"\n{glance(runs)}")
    sys.exit(_exit_code(done.records))


def _exit_code(records: list[Record]) -> ExitCode:
    from .model.record import Status

    statuses = {record.status for record in records}
    if statuses & {Status.WRONG, Status.IMPOSSIBLE}:
        return ExitCode.WRONG
    return ExitCode.INFRASTRUCTURE if any(status.failed for status in statuses) else ExitCode.FINE


@app.command()
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
    seed: Annotated[int, typer.Option(help="Seed of all random inputs.", callback=_seed)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Check every variant at small odd sizes, untimed; with --sanitize also for races, bounds and unwritten memory.

    Exit code: 0 all right, unsupported or unavailable; 3 a wrong result or a finding; 4 a case crashed or a tool
    failed; 2 bad input.
    """
    from .machine.device_profile import load_profile
    from .run.listing import print_rows
    from .untimed import verify as sanitizers
    from .workload import discover

    folders = [str(path) for path in workloads or []]
    tuning = load_profile(profile, "--profile: ") if profile else None
    found = discover(folders)
    if not sanitizers.chosen(found, pattern):
        raise UsageError(f"verify: no variant's workload/problem/variant contains {pattern!r}")
    if sanitize and not device:
        tasks = sanitizers.on_simulator(found, seed, pattern, tuning)
    else:
        tasks = sanitizers.on_devices(found, _select(device), seed, pattern, tuning, sanitize)
    verdicts = []
    for verdict in sanitizers.run(tasks, folders):
        verdicts.append(verdict)
        if not as_json:
            print(verdict, flush=True)
    if as_json:
        print_rows(sanitizers.rows(verdicts), as_json)
    else:
        print(sanitizers.summary(verdicts))
    if any(verdict.wrong for verdict in verdicts):
        sys.exit(ExitCode.WRONG)
    sys.exit(ExitCode.INFRASTRUCTURE if any(v.outcome.status.failed for v in verdicts) else ExitCode.FINE)


def _select(selectors: list[str] | None) -> list[DeviceInfo]:
    """Return the healthy devices that are meant. Raises `InfrastructureError` where there is none."""
    from .run.plan import select_devices

    chosen = select_devices(selectors or ["all"], _devices(), "--device")
    if not chosen:
        raise InfrastructureError(f"no usable device for {', '.join(selectors or ['all'])!r}; see perfport devices")
    return chosen


@app.command()
def count(
    what: Annotated[
        str | None,
        typer.Argument(help="WORKLOAD[/PROBLEM[/VARIANT]]; PROBLEM may be *, VARIANT a pattern. Default: all of them."),
    ] = None,
    device: DeviceOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder of the counts.", callback=_writable)
    ] = None,
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
    seed: Annotated[int, typer.Option(help="Seed of all random inputs.", callback=_seed)] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds for the variants of one problem at one size.")] = 1800.0,
    as_json: JsonOption = False,
) -> None:
    """Count the operations and bytes that variants cause, beside what they declare (docs/counting.md).

    On the simulator (the default), or with Nsight Compute on a CUDA device. Exit code: 3 a declared quantity is more
    than 5 % off, or a result is wrong; 4 a variant cannot be run, or the tool is missing; 2 bad input.
    """
    from .model.record import Status
    from .untimed.count import Verdict, survey

    options = survey.Options(
        what=what, devices=device or [], out=output, presets=preset or [], coalescing=coalescing,
        profiles=profile or [], stalls=stalls, parameters=parameter or [],
        workloads=[str(path) for path in workloads or []], seed=seed, timeout=timeout,
        command=["perfport", *sys.argv[1:]],
    )  # fmt: skip
    folder, counts = survey.run(options)
    print(survey.as_json(counts) if as_json else f"{survey.tables(counts)}\n{folder}: {len(counts)} counts")
    if any(one.verdict is Verdict.DEVIATES or one.status is Status.WRONG for one in counts):
        sys.exit(ExitCode.WRONG)
    sys.exit(ExitCode.INFRASTRUCTURE if any(one.verdict is Verdict.FAILED for one in counts) else ExitCode.FINE)


@app.command()
def ceilings(
    folders: Annotated[list[Path] | None, typer.Argument(help="With --report: folders of stored ceilings.")] = None,
    device: DeviceOption = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All kernel shapes, or those that have won somewhere.")
    ] = False,
    peer: Annotated[str | None, typer.Option("--peer", help="'clpeak': run it before and after, and compare.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder to store them in, a file each.", callback=_writable)
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Measure nothing: write this page from the ceilings in FOLDERS.", callback=_writable
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the ceilings of devices anew: bandwidths, arithmetic rates, atomics, launches, transfers."""
    from rich.console import Console

    from .measure.ceilings import survey
    from .report.pages.ceilings import render, terminal

    if peer not in (None, "clpeak"):
        raise UsageError(f"--peer: expected 'clpeak', got {peer!r}")
    if bool(folders) != bool(report):
        raise UsageError("ceilings: --report FILE and FOLDERS of stored ceilings belong together")
    if report:
        files = render(list(survey.read(folders or [])), report)
        print(f"{report}: {len(files) - 1} plots beside it")
        return
    found = []
    for info in _select(device):
        with Console(stderr=True).status(info.id) as status:
            one = survey.survey(info, full, bool(peer), ["perfport", *sys.argv[1:]], status.update)
        found.append(one)
        if output:
            survey.write(one, output)
        if not as_json:
            print(terminal(one), flush=True)
    if as_json:
        print(json.dumps([one.model_dump(mode="json") for one in found], indent=1))


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
    from .machine.device_profile import match_profile
    from .machine.discovery import discover

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
    from .run.listing import experiment_rows, print_rows, profile_rows, variant_rows
    from .workload import discover

    if profiles:
        print_rows(profile_rows(), as_json)
        return
    if experiments:
        print_rows(experiment_rows(), as_json)
        return
    found = discover(workloads or [])
    if what is not None and what not in found:
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
    results: Annotated[list[Path], typer.Argument(help="Run folders, folders of counts, or a folder of them.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Markdown file; plots go beside it. [reports/report.md or reports/suite.md]"
        ),
    ] = None,
    suite: Annotated[
        bool, typer.Option("--suite", help="All workloads in one summary, a page for each, claims, and one HTML file.")
    ] = False,
    workloads: WorkloadsOption = None,
) -> None:
    """Write a markdown roofline report with SVG plots from stored results; counts among them take part.

    With --suite: a summary of all of them instead (docs/reports.md).
    """
    destination = output or Path("reports/suite.md" if suite else "reports/report.md")
    check_writable(destination, "--output")
    if suite:
        from .judge.claims import ledger
        from .report.pages.suite import render as render_suite

        files = render_suite(_collect(results), ledger(workloads or []), _converged(results), destination)
        print(f"{destination}: {len(files) - 1} files beside it")
        return
    from .report.pages.run import render, stored

    runs, counted = stored(results)
    files = render(runs, destination, counted)
    print(f"{destination}: {len(files) - 1} plots beside it")


def _converged(results: list[Path]) -> list[Convergence]:
    from .untimed import convergence

    files = [path / convergence.FILE for path in results]
    return [one for file in files if file.exists() for one in convergence.read(file)]


@app.command("table")
def table_command(
    results: ResultsArgument,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    variant: VariantFilter = "",
    device: DeviceFilter = "",
    precision: PrecisionFilter = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Compare variants across devices: measured, beside the bounds and figures of archival devices."""
    from .report.pages.table import view

    chosen = {"workload": workload, "problem": problem, "variant": variant, "device": device, "precision": precision}
    _show(view(_collect(results, **chosen)), form, output)


@app.command()
def crosstuning(
    results: ResultsArgument,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    variant: VariantFilter = "",
    device: DeviceFilter = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Show what the tuning parameters of other devices cost on each device, with heat maps."""
    from .report.pages.crosstuning import view

    chosen = {"workload": workload, "problem": problem, "variant": variant, "device": device}
    _show(view(_collect(results, **chosen)), form, output)


@app.command()
def stale(
    results: ResultsArgument,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    variant: VariantFilter = "",
    device: DeviceFilter = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """List results that were measured with code that has changed since, and which files those are."""
    from .report.pages.stale import view
    from .workload import discover

    chosen = {"workload": workload, "problem": problem, "variant": variant, "device": device}
    found = discover(workloads) if workloads else None
    _show(view(_collect(results, **chosen), found), form, output)


@app.command()
def portability(
    results: ResultsArgument,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    precision: PrecisionFilter = "",
    platforms: Annotated[
        str | None, typer.Option("--platforms", help="NAME=DEVICE,DEVICE,...: a named platform set; default: all.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Also write every setting as CSV in p3-analysis columns.", callback=_writable),
    ] = None,
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Compute Pennycook's portability metric of every variant and problem, with cascade plots (docs/portability.md)."""
    from .report.pages import portability as portable
    from .report.parts.plots import write_page
    from .report.parts.view import as_csv
    from .store.collection import find_site

    found = _collect(results, workload=workload, problem=problem, precision=precision)
    name, _, listed = (platforms or "all").partition("=")
    if platforms and not listed:
        raise UsageError(f"--platforms: expected NAME=DEVICE,DEVICE,..., got {platforms!r}")
    sites = [find_site(found, one.strip()) for one in listed.split(",")] if listed else found.places
    if export:
        write_page(export, as_csv(portable.export(found, sites)).removesuffix("\n"), ())
    _show(portable.view(found, sites, name), form, output)


@app.command()
def convergence(
    workload: WorkloadFilter = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Store it for reports: FOLDER of results/convergence.json.", callback=_writable
        ),
    ] = None,
    form: FormatOption = "markdown",
    workloads: WorkloadsOption = None,
) -> None:
    """Count the kernel source lines that every backend compiles, by variant; needs no device."""
    from .report.pages.portability import convergence_table
    from .report.parts.view import View
    from .untimed.convergence import converge, store
    from .workload import discover

    chosen = [found for name, found in discover(workloads or []).items() if workload in name]
    if not chosen:
        raise UsageError(f"--workload: no workload's name contains {workload!r}")
    found = [one for each in chosen for one in converge(each)]
    if output:
        store(found, output)
        print(f"{output}: {len(found)} entries")
        return
    rows = [{**one.model_dump(exclude={"lines"}), **{f"lines {k}": v for k, v in one.lines.items()}} for one in found]
    _show(View("Code convergence", convergence_table(found, variants=True), rows), form, None)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A folder of runs, a device, or a variant.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What to compare with it, of the same kind.")],
    results: Annotated[
        list[Path] | None, typer.Option("--results", help="Where devices and variants are looked for. [results]")
    ] = None,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    variant: VariantFilter = "",
    device: DeviceFilter = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """Compare two runs, devices or variants case by case: how many times faster B is, with interval and verdict.

    Exit code: 0 nothing got worse; 3 a result of B is wrong or impossible; 4 a case that A has a result of has none in
    B; 5 a case of B is slower, its whole interval; 2 bad input. The first of 3, 4, 5 that applies.
    """
    from .judge.compare import contrast
    from .report.pages.compare import view
    from .store.collection import Filter

    chosen = Filter(workload=workload, problem=problem, variant=variant, device=device)
    kind, pairs = contrast(a, b, results or [Path("results")], chosen)
    _show(view(kind, a, b, pairs), form, output)
    if any(pair.wrong for pair in pairs):
        sys.exit(ExitCode.WRONG)
    if any(pair.lost for pair in pairs):
        sys.exit(ExitCode.INFRASTRUCTURE)
    sys.exit(ExitCode.SLOWER if any(pair.slower for pair in pairs) else ExitCode.FINE)


@app.command()
def claims(
    results: ResultsArgument,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    device: DeviceFilter = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Judge the publications' claims on every device that stored results hold (docs/reports.md)."""
    from .judge.claims import evaluate, ledger
    from .report.pages.claims import view
    from .store.collection import Filter

    found = _collect(results, device=device)
    listed = [(name, claim) for name, claims in ledger(workloads or []).items() for claim in claims]
    wanted = Filter(workload=workload, problem=problem)
    chosen: dict[str, list[Claim]] = {}
    for name, claim in listed:
        if wanted.names(name, claim.problem, "", "", ""):
            chosen.setdefault(name, []).append(claim)
    if not chosen:
        raise UsageError(wanted.complaint([(name, claim.problem) for name, claim in listed], "the claims"))
    _show(view(evaluate(chosen, found), found), form, output)


def _collect(results: list[Path], **chosen: str) -> Collection:
    from .report.pages.run import stored
    from .store.collection import Filter, collect

    runs, _ = stored(results)
    return collect(runs, Filter(**chosen), ", ".join(map(str, results)))


def _show(view: View, form: str, output: Path | None) -> None:
    from .report.parts.plots import plot_folder, write_page

    if output is None:
        print(view.render(form), end="")
        return
    content = view.render(form, f"{plot_folder(output).name}/")
    files = write_page(output, content.removesuffix("\n"), view.plots if form == "markdown" else ())
    print(f"{output}: {len(files) - 1} plots beside it")


@app.command()
def quotes(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Markdown files. [README.md workloads/*/README.md]")
    ] = None,
    results: Annotated[Path, typer.Option("--results", help="Folder of the runs that they name.")] = Path(
        "results/committed"
    ),
    write: Annotated[bool, typer.Option("--write", help="Put the numbers right.")] = False,
) -> None:
    """Check the numbers that texts quote from stored runs against the records (docs/reports.md).

    Exit code: 0 all are right, or were put right; 3 one is not; 2 bad input.
    """
    from .report.quotes import Quotes, texts

    held, wrong = Quotes(results), 0
    for file in texts(files or []):
        try:
            content = file.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: cannot be read ({error.strerror})") from None
        checked = held.check(content)
        for complaint in checked.complaints:
            print(f"{file}: {complaint}")
        if write and checked.text != content:
            file.write_text(checked.text, encoding="utf-8")
        wrong += len(held.check(checked.text).complaints) if write else len(checked.complaints)
    sys.exit(ExitCode.WRONG if wrong else ExitCode.FINE)


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
    from .untimed import show

    subject = show.find(case, results, preset, [str(path) for path in workloads or []])
    wanted = False
    for chosen, action in (
        (source, lambda: show.source(subject, target)),
        (ptx, lambda: show.ptx(subject, target)),
        (sass, lambda: show.sass(subject, target)),
        (log, lambda: show.log(subject)),
    ):
        if chosen:
            print(action())
            wanted = True
    if rerun:
        records = show.rerun(subject, device, ["perfport", *sys.argv[1:]])
        sys.exit(_exit_code(records))
    if not wanted:
        print(show.describe(subject))


@app.command()
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
        typer.Option("-o", "--output", help="Write this file; otava writes a .yaml beside it.", callback=_writable),
    ],
) -> None:
    """Write stored results in the format of another tool (docs/integrations.md)."""
    from .interop import exports
    from .store.results import Run, find_runs

    runs = [Run(folder) for path in results for folder in find_runs(path)]
    for file in exports.export(runs, form, output):
        print(file)


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="What another tool wrote.")],
    form: Annotated[str, typer.Option("--format", help="pytest-benchmark, google-benchmark or pyperf.")],
    beside: Annotated[Path, typer.Option("--beside", metavar="RUN", help="The run folder to stand beside.")],
    case: Annotated[
        str, typer.Option("--as", help="What was measured: WORKLOAD/PROBLEM[/PRESET][@DEVICE] of that run.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The new run folder.", callback=_writable)],
) -> None:
    """Take results of another tool as peers of a run's problem: a run folder that all commands on results read."""
    from .interop.imports import adopt
    from .store.results import Run

    records = adopt(file, form, Run(beside), case, out, ["perfport", *sys.argv[1:]])
    print(f"{out}: {len(records)} peers of {case}")


@app.command()
def validate(
    path: Annotated[Path, typer.Argument(help="An experiment file, or a folder of results.")],
    workloads: WorkloadsOption = None,
) -> None:
    """Check an experiment file or a folder of results; says what is wrong and where, of every run.

    Exit code: 0 all valid; 2 something is not.
    """
    if path.is_dir():
        _validate_runs(path)
        return
    from .run.experiment import find, load
    from .run.plan import make, select_devices
    from .workload import discover

    experiment = load(find(path))
    devices = select_devices(experiment.devices, _devices(), f"{path}: devices")
    groups = make(experiment, str(path), discover(workloads or []), devices, seed=0)
    print(f"{path}: valid; {sum(len(group.cases) for group in groups)} cases on the devices here")


def _validate_runs(path: Path) -> None:
    from .run.completeness import incomplete
    from .store.results import Run, faults, find_runs

    folders = find_runs(path, without_records=True)
    bad = 0
    for folder in folders:
        found = faults(folder)
        bad += bool(found)
        for fault in found[:MOST_FAULTS]:
            print(f"perfport: {fault}", file=sys.stderr)
        if len(found) > MOST_FAULTS:
            print(f"perfport: {folder}: and {len(found) - MOST_FAULTS} more", file=sys.stderr)
        if not found:
            run = Run(folder)
            lacks = incomplete(run)  # of an older run, which does not say how many cases were planned
            print(f"{folder}: {len(run.records)} records, valid" + (f"; incomplete: {lacks}" if lacks else ""))
    if bad:
        raise UsageError(f"{path}: {bad} of {len(folders)} runs are not valid")


@app.command()
def schema(
    which: Annotated[str, typer.Argument(help="experiment, record or profile.")] = "experiment",
) -> None:
    """Print a JSON Schema, for editors and validators."""
    from .machine.device_profile import DeviceProfile
    from .model.record import Record
    from .run.experiment import Experiment

    models: dict[str, Any] = {"experiment": Experiment, "record": Record, "profile": DeviceProfile}
    if which not in models:
        raise UsageError(f"schema: {which!r} is not one of {', '.join(models)}")
    print(json.dumps(models[which].model_json_schema(), indent=1))


history_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, add_completion=False)
app.add_typer(history_app, name="history")


@history_app.callback()
def history(
    context: typer.Context,
    folder: Annotated[Path, typer.Option("--in", help="The history's folder.")] = Path("history"),
    page: Annotated[
        Path | None,
        typer.Option("--html", help="Write one self-contained page with a chart per case.", callback=_writable),
    ] = None,
    workload: WorkloadFilter = "",
    problem: ProblemFilter = "",
    variant: VariantFilter = "",
    device: DeviceFilter = "",
    form: FormatOption = "markdown",
    output: OutputOption = None,
) -> None:
    """List every case over the nights of a history, or write the history's page; ``history add`` adds runs."""
    if context.invoked_subcommand:
        return
    from .nightly.history import History
    from .report.pages import history as pages
    from .report.parts.plots import write_page
    from .store.collection import Filter

    held = History(folder)
    for complaint in held.left_out:
        print(f"perfport: left out: {complaint}", file=sys.stderr)
    wanted = Filter(workload=workload, problem=problem, variant=variant, device=device)
    chosen = pages.select(held, wanted)
    if not chosen and wanted != Filter():
        raise UsageError(wanted.complaint([one.place.names for one in held.series.values()], str(folder)))
    if page:
        write_page(page, pages.page(held, chosen).removesuffix("\n"), ())
        print(f"{page}: {len(chosen)} cases over {len(held.nights)} nights")
        return
    _show(pages.view(held, chosen), form, output)


@history_app.command("add")
def history_add(
    results: Annotated[list[Path], typer.Argument(help="Run folders, or a folder of them; any number.")],
    into: Annotated[Path, typer.Option("--into", help="The history's folder; made where there is none.")] = Path(
        "history"
    ),
) -> None:
    """Add runs to a history: one file each; older files are never touched, and the same run again changes nothing."""
    from .nightly.history import add
    from .store.results import Run, find_runs

    for path in results:
        for folder in find_runs(path):
            print(add(Run(folder), into))


@app.command("check")
def check_command(
    results: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to judge.")],
    baseline: Annotated[Path | None, typer.Option("--baseline", help="Compare with this run folder.")] = None,
    history_folder: Annotated[
        Path | None, typer.Option("--history", help="Compare with the last nights of this history.")
    ] = None,
    last: Annotated[int, typer.Option("--last", min=3, help="With --history: so many nights.")] = 7,
    change_points: Annotated[
        bool, typer.Option("--change-points", help="With --history: look for change points, too (extra otava).")
    ] = False,
    remeasure: Annotated[
        bool, typer.Option("--remeasure", help="Measure what looks slower again, in fresh workers, before it counts.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Also write the findings as JUnit XML.", callback=_writable)
    ] = None,
    form: FormatOption = "markdown",
    output: OutputOption = None,
    workloads: WorkloadsOption = None,
) -> None:
    """Judge a run: what is wrong, vanished, newly failing or slower than the baseline or the last nights.

    Exit code: 0 no alarm; 3 a result is wrong or impossible; 4 a case vanished or newly fails, or the suite cannot do
    its job here; 5 a case is slower; 2 bad input. The first of 3, 4, 5 that applies (docs/nightly.md).
    """
    from .machine.discovery import discover
    from .nightly import check
    from .nightly.changepoints import change_points as detector
    from .nightly.check import AgainstNights, AgainstRun, Outcome
    from .nightly.history import History
    from .nightly.remeasure import WORKERS, measure_again, stored
    from .report.pages import check as pages
    from .report.parts.plots import write_page
    from .store.results import Run

    if (baseline is None) == (history_folder is None):
        raise UsageError("check: give either --baseline RUN or --history HISTORY")
    if change_points and history_folder is None:
        raise UsageError("--change-points needs --history")
    run = Run(results)
    base: AgainstRun | AgainstNights
    if baseline:
        base = AgainstRun(Run(baseline), run)
    else:
        assert history_folder
        # The first night of all has no history yet.
        held = History(history_folder)
        base = AgainstNights(held, run, last, detector if change_points else None)
    judgement = check.judge(run, base, stored(run))
    if remeasure and (wanted := check.suspects(judgement, WORKERS)):
        folders = [str(path) for path in workloads or []]
        again = measure_again(run, wanted, discover(), folders, ["perfport", *sys.argv[1:]])
        judgement = check.judge(run, base, again)
    if junit:
        write_page(junit, pages.junit(judgement).removesuffix("\n"), ())
    _show(pages.view(judgement), form, output)
    print(f"perfport check: {pages.headline(judgement)}", file=sys.stderr)
    if judgement.of(Outcome.WRONG):
        sys.exit(ExitCode.WRONG)
    if judgement.of(Outcome.VANISHED, Outcome.FAILED):
        sys.exit(ExitCode.INFRASTRUCTURE)
    sys.exit(ExitCode.SLOWER if judgement.of(Outcome.SLOWER) else ExitCode.FINE)


if __name__ == "__main__":
    main()
