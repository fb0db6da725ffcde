"""Counts under Nsight Compute (``ncu``) on a CUDA device."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...backend.base import MARKER
from ...model.device import DeviceInfo
from ...model.errors import InfrastructureError, UnavailableError
from ...model.record import Status
from ...model.work import Traffic
from .. import child
from ..child import Job, Outcome, Wrapping
from .counts import SECTOR_BYTES, SECTORS
from .simulated import Tally

#: Counters by kernel and name, summed over launches.
Raw = Mapping[str, Mapping[str, float]]

#: SASS instructions by thread, bytes by memory level, accesses of global and shared memory.
METRICS = (
    *(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "fmul", "ffma", "integer")),
    "smsp__inst_executed_pipe_xu.sum",
    "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum",
    *(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")), *SECTORS.values(),
    *(f"smsp__inst_executed_op_shared_{op}.sum" for op in ("ld", "st")),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
)  # fmt: skip
#: Operations of matrix units (an FMA is 2), by the unit that a variant names; devices without them lack the metrics.
MATRIX_METRICS = {
    "tf32_mma": "sm__ops_path_tensor_src_tf32_dst_fp32.sum", "bf16_mma": "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    "int8_mma": "sm__ops_path_tensor_src_int8.sum",
}  # fmt: skip
#: What a warp that did not issue waited for, in Nsight Compute's words.
REASONS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "short_scoreboard",
    "sleeping", "tex_throttle", "wait",
)  # fmt: skip
_ISSUES = "smsp__issue_active.sum"
#: Active warps of an SM over those that it can hold, while it has any, in %; and the cycles in which it has.
_OCCUPANCY, _ACTIVE = "sm__warps_active.avg.pct_of_peak_sustained_active", "sm__cycles_active.sum"
_OCCUPIED = "occupied_cycles"
_WAITING = {f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio": reason for reason in REASONS}
#: Quantities of `Traffic` that these make up.
COUNTED = ("flops", "dram_read", "dram_write")
#: Units whose operations are in ``flops``; ``dp4a`` and 8-bit matrix units are not.
FLOATING_UNITS = (None, "tf32_mma", "bf16_mma")
#: Most FP32 instructions that one instruction of the special-function unit comes with: a division or a function of the
#: mathematical library is expanded into that many. It lengthens the tolerance of FLOPs upward.
EXPANSION = 16
_WARP = 32
_HINT = "Nsight Compute comes with the CUDA toolkit and as nsight-compute-* packages; its ncu must be on PATH"
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def version() -> str:
    """Return the version of ``ncu``. Raises `UnavailableError` where there is none."""
    program = shutil.which("ncu")
    if not program:
        raise UnavailableError(f"ncu is not here; {_HINT}")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    matched = re.search(r"Version ([\d.]+)", done.stdout)
    return matched.group(1) if matched else "unknown"


def command(log: Path, device: DeviceInfo, stalls: bool = False) -> tuple[str, ...]:
    """Return the words in front of a child's command line; ``ncu`` writes its table to ``log``."""
    further = [*MATRIX_METRICS.values()] if "mma" in device.capabilities else []
    if stalls:
        further += [_ISSUES, *_WAITING, _OCCUPANCY, _ACTIVE]
    return (
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--profile-from-start", "off", "--target-processes", "all", "--log-file", str(log),
        "--metrics", ",".join((*METRICS, *further)),
    )  # fmt: skip


def count(job: Job, timeout: float, stalls: bool = False) -> list[tuple[Outcome, Tally]]:
    """Profile a job's cases in one child process, or in one each where a child did not live to show all of them.

    Parameters
    ----------
    job : Job
    timeout : float
        Seconds for each case.
    stalls : bool
        Also count what warps waited for, and how many of them there were.

    Raises
    ------
    InfrastructureError
        If ``ncu`` gives no counters, with its own message.
    """
    with tempfile.TemporaryDirectory(prefix="perfport-count-") as folder:
        log, marks = Path(folder) / "ncu.csv", Path(folder) / "marks"
        marks.touch()
        wrapping = Wrapping(command(log, job.device, stalls), {child.MARKS: str(marks), "LC_ALL": "C"})
        outcomes = child.run([job], wrapping, timeout)
        begun = [line.partition(" ")[2] for line in marks.read_text().splitlines() if line.startswith("begin ")]
        text = log.read_text(errors="replace") if log.exists() else ""
    if not begun:
        return [(outcome, Tally()) for outcome in outcomes]
    windows = by_window(parse(text)) if '"Kernel Name"' in text else []
    if len(windows) == len(begun):
        tallies = dict(zip(begun, windows, strict=True))
        return [(outcome, tallies.get(outcome.case.variant, Tally())) for outcome in outcomes]
    if len(job.cases) > 1:
        return [pair for case in job.cases for pair in count(job.model_copy(update={"cases": [case]}), timeout, stalls)]
    (outcome,) = outcomes
    if outcome.status is not Status.OK:
        return [(outcome, Tally())]
    said = [line for line in [*text.splitlines(), *outcome.log.splitlines()] if line.startswith("==")]
    errors = [line for line in said if "ERROR" in line] or said[-3:]
    raise InfrastructureError("ncu gave no counters: " + (" ".join(errors) or "its log is empty"))


def parse(text: str) -> list[tuple[str, dict[str, float]]]:
    """Read ``ncu --csv --page raw``: kernels in launch order, each with its metrics in base units.

    Lines ahead of the header (messages of ``ncu`` and of the program) are passed over. The row below the header gives
    units; a prefix of thousands in it (``Kbyte``, ``Ginst``) scales the column. Empty cells and ``n/a`` are left out.
    Averages become sums, which launches can be added up by: warps that waited, for each issued instruction, one over
    cycles (``stalled_REASON``), and the occupancy one over the SMs' active cycles (``occupied_cycles``).

    Raises
    ------
    InfrastructureError
        If there is no table.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if '"Kernel Name"' in line), None)
    if start is None:
        raise InfrastructureError("ncu printed no table: " + " ".join(line for line in lines if line.startswith("==")))
    rows = csv.reader(line for line in lines[start:] if line.startswith('"'))
    header = next(rows)
    name_at = header.index("Kernel Name")
    known = {*METRICS, *MATRIX_METRICS.values(), _ISSUES, *_WAITING, _OCCUPANCY, _ACTIVE}
    wanted = [number for number, name in enumerate(header) if name in known]  # device attributes stand beside them
    scales = dict.fromkeys(wanted, 1.0)
    launches = []
    for row in rows:
        if len(row) < len(header):
            continue
        if not row[name_at]:
            scales = {number: _scale(row[number]) for number in wanted}
            continue
        metrics = {header[n]: value * scales[n] for n in wanted if (value := _number(row[n])) is not None}
        launches.append((row[name_at], _summable(metrics)))
    return launches


def _summable(metrics: dict[str, float]) -> dict[str, float]:
    issues = metrics.get(_ISSUES, 0.0)
    waited = {f"stalled_{reason}": metrics[name] * issues for name, reason in _WAITING.items() if name in metrics}
    averages = {*_WAITING, _OCCUPANCY}
    sums = {name: value for name, value in metrics.items() if name not in averages} | waited
    if _OCCUPANCY in metrics and _ACTIVE in metrics:
        sums[_OCCUPIED] = metrics[_OCCUPANCY] / 100 * metrics[_ACTIVE]
    return sums


def _scale(unit: str) -> float:
    match = re.match(r"([KMGT]?)(byte|inst|sector|request)", unit)
    return _SCALES[match.group(1)] if match else 1.0


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def by_window(kernels: Sequence[tuple[str, dict[str, float]]]) -> list[Tally]:
    """Split kernels at each marker; the k-th tally is of the k-th window."""
    windows: list[Tally] = []
    for name, metrics in kernels:
        if name.split("(")[0].split()[-1] == MARKER:
            windows.append(Tally())
        elif windows:
            windows[-1].add(name, metrics)
    return windows


def traffic(tally: Tally) -> Traffic:
    """The quantities that Nsight Compute counts; an FMA is 2 FLOP, on matrix units too."""
    fadd, fmul, ffma = (
        _total(tally.raw, f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum") for op in ("fadd", "fmul", "ffma")
    )
    matrix = sum(_total(tally.raw, MATRIX_METRICS[unit]) for unit in FLOATING_UNITS if unit)
    return Traffic(
        flops=fadd + fmul + 2 * ffma + matrix, dram_read=_total(tally.raw, "dram__bytes_read.sum"),
        dram_write=_total(tally.raw, "dram__bytes_write.sum"), l2_bytes=_total(tally.raw, "lts__t_bytes.sum"),
        provenance="counted",
    )  # fmt: skip


def stalls(tally: Tally) -> dict[str, float]:
    """What warps that did not issue waited for: shares of their cycles by reason, the largest first."""
    waited = {reason: _total(tally.raw, f"stalled_{reason}") for reason in REASONS}
    total = sum(waited.values())
    ordered = sorted(waited, key=lambda reason: -waited[reason])
    return {reason: waited[reason] / total for reason in ordered if waited[reason]}


def expanded_flops(tally: Tally) -> float:
    """Upper limit of the FLOPs that divisions and mathematical functions were expanded into."""
    return 2.0 * EXPANSION * _WARP * _total(tally.raw, "smsp__inst_executed_pipe_xu.sum")


def occupancy(raw: Raw) -> float | None:
    """Active warps over those that the SMs can hold, averaged over their active cycles; ``None`` where not counted."""
    active = _total(raw, _ACTIVE)
    return _total(raw, _OCCUPIED) / active if active else None


def sector_bytes(raw: Raw) -> float:
    """Bytes of the sectors of global memory that loads and stores touched; 0 where that was not counted."""
    return SECTOR_BYTES * sum(_total(raw, metric) for metric in SECTORS.values())


def _total(raw: Raw, metric: str) -> float:
    return sum(kernel.get(metric, 0.0) for kernel in raw.values())
