"""Counted work: kernels of known work, planted errors, the tools' outputs, coalescing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from perfport.machine import simulator
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, PerfportError, UnavailableError, UsageError
from perfport.model.record import Identity, Status
from perfport.model.work import Traffic
from perfport.untimed.child import CheckCase, Job
from perfport.untimed.count import Count, Verdict, coalescing, counts, profiled, read, simulated, survey
from perfport.untimed.count.coalescing import ACCESS, DEFAULT_SHAPES, Shape

PLANTED = Path(__file__).parents[1] / "data" / "counted"
WIDE, NARROW = DEFAULT_SHAPES


@pytest.fixture(scope="module")
def plugin() -> simulated.Counter:
    try:
        simulator.find()
    except PerfportError as error:
        pytest.skip(f"no simulator: {error}")
    using, why = simulated.counter()
    if why:
        pytest.skip(f"the plugin cannot be built: {why}")
    return using


@pytest.fixture(scope="module")
def planted(plugin: simulated.Counter, tmp_path_factory: pytest.TempPathFactory) -> list[Count]:
    """All variants of the planted problem at its first two sizes, with a trace."""
    folder = tmp_path_factory.mktemp("counts") / "planted"
    options = survey.Options(what="counted", workloads=[str(PLANTED)], out=folder, coalescing=True)
    where, found = survey.run(options)
    assert where == folder and read(folder) == found
    return found


def of(found: list[Count], variant: str) -> list[Count]:
    return [count for count in found if count.identity.variant == variant]


EXACT = (
    "wide", "builtins", "special", "hash", "decide", "dot8", "tile", "atomics", "picture", "constants", "unit",
    "strided", "broadcast", "tuned",
)  # fmt: skip


@pytest.mark.parametrize("variant", EXACT)
def test_known_work_is_counted_exactly(planted: list[Count], variant: str) -> None:
    first, second = of(planted, variant)
    assert first.identity.parameters == {"n": 64} and second.identity.parameters == {"n": 160}
    for count in (first, second):
        assert count.status is Status.OK and count.verdict is Verdict.AGREES and not count.unknown
        assert count.counted is not None and count.counted.provenance == "counted"
        assert {name: q.ratio for name, q in count.quantities.items()} == dict.fromkeys(count.quantities, 1.0)
        assert count.quantities and count.launches == 1  # the launch of the constructor is outside the window


WRONG = {
    "too_many_flops": "flops", "too_few_flops": "flops", "no_reread": "global_read", "no_integers": "integer_ops",
    "counters": "integer_ops", "no_atomics": "global_atomics", "no_special": "special_ops", "no_local": "local_read",
}  # fmt: skip


@pytest.mark.parametrize("variant", WRONG)
def test_a_wrong_declaration_is_found(planted: list[Count], variant: str) -> None:
    for count in of(planted, variant):
        deviating = [name for name, q in count.quantities.items() if q.verdict is Verdict.DEVIATES]
        assert count.verdict is Verdict.DEVIATES and deviating == [WRONG[variant]]


def test_a_declaration_that_scales_wrongly_is_found_at_the_second_size(planted: list[Count]) -> None:
    assert [count.verdict for count in of(planted, "scales_wrong")] == [Verdict.AGREES, Verdict.DEVIATES]


def test_undeclared_unsupported_and_peers(planted: list[Count]) -> None:
    silent = of(planted, "silent")[0]
    assert silent.verdict is Verdict.UNDECLARED and silent.counted and silent.counted.flops == 768
    cuda = of(planted, "needs_cuda")[0]
    assert cuda.verdict is Verdict.UNSUPPORTED and "cuda" in cuda.reason and cuda.counted is None
    assert not of(planted, "peer")
    assert planted[0].identity.devices == ["opencl:oclgrind:0"] and planted[0].tool == "oclgrind"


def test_raw_counters_tell_what_is_not_an_operation(planted: list[Count]) -> None:
    raw = of(planted, "special")[0].raw["special"]
    assert all(raw[name] for name in ("branches", "min_max", "convert", "sign", "compare"))
    assert raw["work_items"] == 64 and raw["work_groups"] == 2
    tile = of(planted, "tile")[0].raw["tile"]
    assert tile["barriers"] == 2 and tile["private_store_bytes"] == 64 * 16


def test_coalescing_of_traced_kernels(planted: list[Count]) -> None:
    def lines(variant: str, shape: Shape) -> tuple[float, float]:
        count = of(planted, variant)[-1]
        (load,) = [p for p in count.coalescing if p.argument == "x" and p.place and p.shape == shape.name]
        assert load.kernel == "strided" and load.place.startswith("counted.cl:") and load.store is False
        return load.lines, load.ideal

    assert not of(planted, "unit")[0].coalescing  # of the largest size alone
    assert lines("unit", WIDE) == (1, 1)
    assert lines("strided", WIDE) == (32, 1)
    assert lines("broadcast", WIDE) == (1, 1)
    assert lines("unit", NARROW)[0] == 2  # work-groups of 32: half a hardware thread of 64
    assert lines("strided", NARROW)[0] == 32


def access(address: np.ndarray, group: int = 0, occurrence: int = 0, size: int = 4) -> np.ndarray:
    found = np.zeros(len(address), ACCESS)
    found["item"] = np.arange(len(address))
    found["address"], found["size"] = address, size
    found["group"], found["occurrence"] = group, occurrence
    return found


def pattern(trace: np.ndarray, shape: Shape) -> coalescing.AccessPattern:
    place = {"instruction": 0, "line": 7, "column": 3, "file": "k.cl", "space": "global", "store": True}
    launch = {"launch": 0, "kernel": "k", "accesses": [place], "arguments": {"0": "out"}}
    whole, site = coalescing.patterns(trace, [launch], [shape])
    assert whole.place is None and site.place == "k.cl:7:3" and site.store and whole.lines == site.lines
    return site


ITEMS = np.arange(64, dtype=np.uint64)


@pytest.mark.parametrize(
    "addresses, size, shape, lines, ideal, accesses",
    [
        (4 * ITEMS, 4, WIDE, 1, 1, 2),
        (4 * ITEMS, 4, NARROW, 4, 4, 1),
        (4 * ITEMS + 64, 4, WIDE, 2, 1, 2),  # half a line off
        (128 * ITEMS, 4, WIDE, 32, 1, 2),
        (0 * ITEMS, 4, NARROW, 1, 1, 1),
        (16 * ITEMS, 16, WIDE, 4, 4, 2),
        (20 * ITEMS, 16, NARROW, 20, 16, 1),  # some straddle a line
    ],
)
def test_lines_of_one_access(
    addresses: np.ndarray, size: int, shape: Shape, lines: float, ideal: float, accesses: int
) -> None:
    found = pattern(access(addresses, size=size), shape)
    assert (found.lines, found.ideal, found.accesses) == (lines, ideal, accesses)
    assert found.excess == lines / ideal


def test_random_accesses_against_sets() -> None:
    rng = np.random.default_rng(5)
    parts = [rng.integers(0, 4096, 64).astype(np.uint64) * np.uint64(4) for _ in range(6)]
    trace = np.concatenate([access(part, group=k // 3, occurrence=k % 3) for k, part in enumerate(parts)])
    found = pattern(trace, WIDE)
    halves = [half for part in parts for half in (part[:32], part[32:])]
    assert found.accesses == 12
    assert found.lines == pytest.approx(np.mean([len({int(a) // 128 for a in half}) for half in halves]))
    assert found.ideal == pytest.approx(np.mean([-(-4 * len(set(half.tolist())) // 128) for half in halves]))


def test_shapes_come_from_profiles() -> None:
    assert coalescing.shape_of("hd7970") == Shape("hd7970", 64, 64)
    with pytest.raises(UsageError, match="generic_cpu"):
        coalescing.shape_of("generic_cpu")


def test_tolerance_and_negligible_quantities() -> None:
    def verdict(declared: dict[str, float], counted: dict[str, float], name: str, **more: Any) -> Verdict:
        return counts.compare(Traffic(**declared), Traffic(**counted), **more)[name].verdict

    assert verdict({"flops": 105}, {"flops": 100}, "flops") is Verdict.AGREES
    assert verdict({"flops": 95}, {"flops": 100}, "flops") is Verdict.AGREES
    assert verdict({"flops": 94}, {"flops": 100}, "flops") is Verdict.DEVIATES
    assert verdict({"flops": 106}, {"flops": 100}, "flops") is Verdict.DEVIATES
    assert verdict({"flops": 1}, {}, "flops") is Verdict.DEVIATES
    many = {"flops": 1000.0, "global_read": 1000.0}
    assert verdict(many, {**many, "integer_ops": 9}, "integer_ops") is Verdict.NEGLIGIBLE
    assert verdict(many, {**many, "integer_ops": 11}, "integer_ops") is Verdict.DEVIATES
    assert verdict({**many, "integer_ops": 11}, many, "integer_ops") is Verdict.DEVIATES
    assert verdict(many, {**many, "local_write": 9}, "local_write") is Verdict.NEGLIGIBLE
    for name in ("special_ops", "global_atomics", "local_atomics"):  # these are dear: never negligible
        assert verdict(many, {**many, name: 1}, name) is Verdict.DEVIATES
    assert "constant_read" not in counts.compare(Traffic(), Traffic())
    assert verdict(many, {"flops": 1500}, "flops", expansion={"flops": 500.0}) is Verdict.AGREES
    assert verdict(many, {"flops": 900}, "flops", expansion={"flops": 500.0}) is Verdict.DEVIATES
    assert verdict(many, {"flops": 1700}, "flops", judged=(), shown=("flops",)) is Verdict.SHOWN


@pytest.mark.timeout(900)
def test_every_variant_that_ships_declares_what_is_counted(plugin: simulated.Counter, tmp_path: Path) -> None:
    _, found = survey.run(survey.Options(out=tmp_path / "counts"))
    ran = [count for count in found if count.status is not Status.UNSUPPORTED]
    undeclared = {c.identity.problem for c in ran if c.declared is None}
    off = {
        (c.identity.variant, *c.identity.parameters.values()): c.quantities
        for c in ran if c.verdict != "agrees" and c.declared is not None
    }  # fmt: skip
    assert undeclared == {"tree_build"}  # what a whole build moves depends on its schedule: shown, not judged
    assert ran and not off and not any(count.unknown for count in ran)


def test_row_major_touches_more_lines_than_column_major(plugin: simulated.Counter, tmp_path: Path) -> None:
    def lines(variant: str) -> float:
        what = f"svm_rbf/rbf_rows/{variant}"
        _, found = survey.run(survey.Options(what=what, out=tmp_path / variant, profiles=["hd5870"]))
        own = [p for p in found[-1].coalescing if p.argument == "data" and p.place]
        return max(p.lines for p in own)  # of the load of all points' words

    rows, columns = lines("row_major"), lines("column_major")
    assert rows > 10 * columns and columns <= 4


# ---------------------------------------------------------------------------------------------------------------------
# The command


def test_command_and_its_exit_codes(
    plugin: simulated.Counter, perfport: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    def call(what: str, *more: object) -> CompletedProcess[str]:
        return perfport("count", what, "--workloads", PLANTED, *more, cwd=tmp_path)

    good = call("counted/anything/wide", "-o", "good")
    assert good.returncode == 0 and "agrees" in good.stdout and "1.000" in good.stdout, good.stderr
    assert call("counted/anything/no_atomics", "-o", "bad").returncode == 3
    again = call("counted/anything/wide", "-o", "good")
    assert again.returncode == 2 and "holds counts already" in again.stderr
    preset = call("counted/anything/wide", "--preset", "tiny", "--json")
    content = json.loads(preset.stdout)
    assert preset.returncode == 0 and [count["identity"].get("preset") for count in content] == [None, None, "tiny"]
    (folder,) = (tmp_path / "results").iterdir()
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["tool"]["name"] == "oclgrind" and environment["seed"] == 1


def test_patterns_name_variants(plugin: simulated.Counter, tmp_path: Path) -> None:
    options = survey.Options(what="counted/*/no_*", workloads=[str(PLANTED)], out=tmp_path / "counts")
    _, found = survey.run(options)
    names = {count.identity.variant for count in found}
    assert "no_atomics" in names and all(name.startswith("no_") for name in names)


def test_values_in_place_of_a_presets(plugin: simulated.Counter, tmp_path: Path) -> None:
    options = survey.Options(
        what="counted/anything/wide", workloads=[str(PLANTED)], out=tmp_path / "counts", presets=["tiny"],
        parameters=["n=32,96"],
    )  # fmt: skip
    _, found = survey.run(options)
    assert [(one.identity.preset, one.identity.parameters) for one in found] == [
        ("tiny", {"n": 32}),
        ("tiny", {"n": 96}),
    ]
    assert "tiny: n=32" in survey.tables(found) and "tiny: n=96" in survey.tables(found)


def test_a_size_that_fails_takes_no_other_away(
    plugin: simulated.Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = simulated.count
    sizes: list[Any] = []

    def failing(job: Job, *rest: Any) -> Any:
        sizes.append(job.parameters)
        if job.parameters != sizes[0]:
            raise InfrastructureError("the tool failed")
        return count(job, *rest)

    monkeypatch.setattr(simulated, "count", failing)
    monkeypatch.setattr("perfport.untimed.child.parallel", lambda: 1)
    with pytest.raises(InfrastructureError, match="the tool failed"):
        survey.run(survey.Options(what="counted", workloads=[str(PLANTED)], out=tmp_path / "counts"))
    kept = read(tmp_path / "counts")
    assert kept and all(one.identity.parameters == sizes[0] for one in kept)


def test_a_killed_count_keeps_what_it_has(plugin: simulated.Counter, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perfport.cli", "count", "counted", "--workloads", str(PLANTED), "-o", "counts"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stored = tmp_path / "counts" / "counts.jsonl"
    end = time.monotonic() + 60
    while not (stored.exists() and b"\n" in stored.read_bytes()) and time.monotonic() < end and running.poll() is None:
        time.sleep(0.005)
    running.kill()
    running.wait()
    assert read(tmp_path / "counts")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing"], "no workload 'nothing'"),
        (["counted/*/wid*h"], "no such variant"),
        (["counted/everything"], "everything"),
        (["counted/anything/wid"], "did you mean 'wide'"),
        (["a/b/c/d"], "expected WORKLOAD"),
        (["counted", "--preset", "tyni"], "did you mean 'tiny'"),
        (["counted", "--profile", "hd7979"], "did you mean 'hd7970'"),
        (["counted", "--stalls"], "choose a CUDA device"),
        (["counted", "--set", "n=64"], "needs the --preset"),
        (["counted", "--preset", "tiny", "--set", "n"], "expected NAME=VALUE"),
        (["counted", "--preset", "tiny", "--set", "n=33"], "--set n: "),
    ],
)
def test_bad_arguments(
    perfport: Callable[..., CompletedProcess[str]], tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = perfport("count", *arguments, "--workloads", PLANTED, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr
    assert not (tmp_path / "results").exists()


def test_bad_stores(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"counts\.jsonl: cannot be read"):
        read(tmp_path)
    (tmp_path / "counts.jsonl").write_text('{"identity": 1}\n')
    with pytest.raises(UsageError, match=r"counts\.jsonl:1: identity"):
        read(tmp_path)
    with pytest.raises(InfrastructureError, match="cannot write counts here"):
        counts.begin(tmp_path / "counts.jsonl" / "below", {})


# ---------------------------------------------------------------------------------------------------------------------
# Oclgrind's own counter

STOCK = """Instructions executed for kernel 'before':
               5 - fadd

begin some
Instructions executed for kernel 'k':
             256 - call _Z7barrierj()
              40 - load global (160 bytes)
              30 - load constant (120 bytes)
              20 - store local (80 bytes)
              10 - call _Z6vload4mPU3AS1Kf()
              10 - call _Z8vstore16Dv16_fmPU3AS3f()
               8 - call _Z3expDv4_f()
               8 - call _Z12native_rsqrtf()
               7 - call _Z10atomic_addPU3AS1Vjj()
               6 - call _Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i()
               3 - fadd

Instructions executed for kernel 'k':
               4 - store global (16 bytes)

end some
Instructions executed for kernel 'after':
               5 - store global (20 bytes)
"""


def test_stock_counts_between_marks() -> None:
    tally = simulated.parse_stock(STOCK.splitlines())
    assert tally.launches == 2 and list(tally.raw) == ["k"]
    traffic = tally.traffic()
    assert traffic.global_read == 160 + 160 and traffic.constant_read == 120 and traffic.global_write == 16
    assert traffic.local_write == 80 + 640 and traffic.special_ops == 32 + 8
    assert traffic.global_atomics == 7 and traffic.image_read == 96
    assert tally.raw["k"]["fadd"] == 3 and traffic.flops == 0


def test_without_a_compiler_the_stock_counter_is_used(
    plugin: simulated.Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path) -> Path:
        raise UnavailableError("no C++ compiler")

    monkeypatch.setattr(simulator, "plugin", fail)
    using, why = simulated.counter()
    assert why == "no C++ compiler" and using.plugin is None and "flops" not in using.judged
    device = simulator.find().model_copy(update={"kind": "gpu"})
    job = Job(
        device=device, workloads=[str(PLANTED)], workload="counted", problem="anything", parameters={"n": 64}, seed=1,
        cases=[CheckCase(variant=name) for name in ("wide", "tile", "atomics", "picture", "special")],
    )  # fmt: skip
    for outcome, tally in simulated.count(job, using):
        assert outcome.traffic and tally.launches == 1
        found = counts.compare(outcome.traffic, tally.traffic(), using.judged)
        assert found and all(quantity.ratio == 1 for quantity in found.values()), outcome.case.variant


# ---------------------------------------------------------------------------------------------------------------------
# Nsight Compute

LEFT = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
]  # fmt: skip
OPS = [f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "fmul", "ffma")]
MATRIX = [f"sm__ops_path_tensor_src_{kind}.sum" for kind in ("tf32_dst_fp32", "bf16_dst_fp32", "int8")]
NAMES = ["dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "smsp__inst_executed_pipe_xu.sum", *OPS]


def row(number: int, kernel: str, *values: str) -> str:
    cells = [str(number), "9", "python3", "localhost", kernel, "1", "7", "(32, 1, 1)", "(2, 1, 1)", "0", "9.0", *values]
    return ",".join(f'"{cell}"' for cell in cells)


SAMPLE = "\n".join(
    [
        "==PROF== Connected to process 9 (/usr/bin/python3)",
        '==PROF== Profiling "perfport_marker" - 0: 0%....50%....100% - 2 passes',
        "perfport: a line of the program",
        ",".join(f'"{name}"' for name in (*LEFT, *NAMES)),
        ",".join(['""'] * 11 + ['"Kbyte"', '"byte"', '"byte"', '"inst"', '"inst"', '"inst"', '"inst"']),
        row(0, "perfport_marker", "0", "0", "32", "0", "0", "0", "0"),
        row(1, "fill(float *, int)", "1.5", "1,024", "4,096", "0", "0", "10", "0"),
        row(2, "work", "2", "512", "2,048", "2", "1,000", "10", "2,000"),
        row(3, "work", "2", "512", "2,048", "n/a", "1,000", "", "2,000"),
        row(4, "perfport_marker()", "0", "0", "32", "0", "0", "0", "0"),
        row(5, "other", "0", "0", "0", "0", "7", "0", "0"),
        "==PROF== Disconnected from process 9",
    ]
)


def test_ncu_table_by_window() -> None:
    first, second = profiled.by_window(profiled.parse(SAMPLE))
    assert first.launches == 3 and list(first.raw) == ["fill(float *, int)", "work"]
    traffic = profiled.traffic(first)
    assert traffic.flops == 2 * 4000 + 2000 + 20 and traffic.provenance == "counted"
    assert (traffic.dram_read, traffic.dram_write, traffic.l2_bytes) == (5500, 2048, 8192)
    assert profiled.expanded_flops(first) == 2 * 16 * 32 * 2
    assert second.launches == 1 and profiled.traffic(second).flops == 7


def test_ncu_without_a_table_passes_its_message_on() -> None:
    with pytest.raises(InfrastructureError, match="ERR_NVGPUCTRPERM"):
        profiled.parse("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n")


def test_ncu_counts_operations_of_matrix_units() -> None:
    names, units = ["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", *MATRIX], ["inst", "", "", ""]
    rows = (row(0, "perfport_marker", "0", "0", "0", "0"), row(1, "work", "5", "1,024", "3", "64"))
    header = (",".join(f'"{name}"' for name in (*LEFT, *names)), ",".join(['""'] * 11 + [f'"{u}"' for u in units]))
    (tally,) = profiled.by_window(profiled.parse("\n".join((*header, *rows))))
    assert profiled.traffic(tally).flops == 5 + 1024 + 3  # 8-bit operations are not floating-point ones


def test_ncu_adds_up_what_warps_waited_for() -> None:
    """Averages for each issued instruction: a launch counts by what it issued."""
    reasons = ("barrier", "no_instruction", "wait")
    names = ["smsp__issue_active.sum"]
    names += [f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in reasons]
    rows = (
        row(0, "perfport_marker", "9", "9", "9", "9"), row(1, "work", "1,000", "0.5", "2.0", "0"),
        row(2, "work", "3,000", "0.5", "1.0", "0"), row(3, "other", "500", "0", "2.0", "0"),
    )  # fmt: skip
    header = (",".join(f'"{name}"' for name in (*LEFT, *names)), ",".join(['""'] * 11 + ['"inst"', '""', '""', '""']))
    (tally,) = profiled.by_window(profiled.parse("\n".join((*header, *rows))))
    assert tally.raw["work"]["stalled_barrier"] == 2000 and tally.raw["work"]["stalled_no_instruction"] == 5000
    assert list(profiled.stalls(tally).items()) == [("no_instruction", 0.75), ("barrier", 0.25)]
    assert profiled.stalls(simulated.Tally()) == {}


GPU = DeviceInfo(
    id="cuda:nvidia:0", backend="cuda", platform="p", name="n", chip="c", kind="gpu", compute_units=1, memory_bytes=1,
    max_alloc_bytes=1, local_memory_bytes=1, max_work_group=1,
)  # fmt: skip


@pytest.mark.parametrize("capabilities", [["dp4a"], ["dp4a", "mma"]])
def test_metrics_of_matrix_units_only_where_they_are(tmp_path: Path, capabilities: list[str]) -> None:
    words = profiled.command(tmp_path / "log", GPU.model_copy(update={"capabilities": capabilities}))
    asked = set(words[words.index("--metrics") + 1].split(","))
    assert set(MATRIX) & asked == (set(MATRIX) if "mma" in capabilities else set())


def test_ncu_command(tmp_path: Path) -> None:
    words = profiled.command(tmp_path / "log", GPU)
    for pair in (("--page", "raw"), ("--clock-control", "none"), ("--profile-from-start", "off")):
        assert words[words.index(pair[0]) + 1] == pair[1]
    asked = words[words.index("--metrics") + 1]
    assert set(NAMES) <= set(asked.split(",")) and "issue_stalled" not in asked
    words = profiled.command(tmp_path / "log", GPU, stalls=True)
    metrics = words[words.index("--metrics") + 1].split(",")
    assert "smsp__issue_active.sum" in metrics and len([name for name in metrics if "issue_stalled" in name]) == 18


FAKE_NCU = """#!{python}
import os, subprocess, sys
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.0.0 (build 1)")
    sys.exit()
log = arguments[arguments.index("--log-file") + 1]
open({arguments!r}, "w").write(" ".join(arguments))
child = arguments[arguments.index("--metrics") + 2:]
code = subprocess.run(child).returncode
open(log, "w").write(open({sample!r}).read())
sys.exit(code)
"""


@pytest.fixture
def fake_ncu(plugin: simulated.Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Job]:
    """Stand in for ``ncu``: runs the child (on the simulator) and writes a given log."""
    import os
    import sys

    def install(log: str) -> Job:
        (tmp_path / "sample").write_text(log)
        program = tmp_path / "ncu"
        program.write_text(
            FAKE_NCU.format(
                python=sys.executable, sample=str(tmp_path / "sample"), arguments=str(tmp_path / "arguments")
            )
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        device = simulator.find().model_copy(update={"kind": "gpu"})
        return Job(
            device=device, workloads=[str(PLANTED)], workload="counted", problem="anything", parameters={"n": 64},
            seed=1, cases=[CheckCase(variant=name) for name in ("wide", "needs_cuda", "builtins")],
        )  # fmt: skip

    return install


def test_windows_go_to_the_cases_that_ran(fake_ncu: Callable[[str], Job]) -> None:
    found = profiled.count(fake_ncu(SAMPLE), 60.0)
    assert profiled.version() == "2025.3.0.0"
    assert [outcome.status.value for outcome, _ in found] == ["ok", "unsupported", "ok"]
    assert [tally.launches for _, tally in found] == [3, 0, 1]


def test_stalls_are_asked_for(fake_ncu: Callable[[str], Job], tmp_path: Path) -> None:
    profiled.count(fake_ncu(SAMPLE), 60.0, stalls=True)
    assert "issue_stalled_no_instruction" in (tmp_path / "arguments").read_text()


def test_tables_say_what_warps_waited_for() -> None:
    identity = Identity(
        workload="counted", problem="anything", preset="tiny", parameters={"n": 64}, variant="wide", role="rung",
        rung=1, tunables={}, devices=["cuda:nvidia:0"], backend="cuda", precision="fp32",
    )  # fmt: skip
    waits = {"wait": 0.4, "no_instruction": 0.3, "barrier": 0.2, "drain": 0.07, "misc": 0.03}
    one = Count(
        identity=identity,
        time="2026-01-01T00:00:00+00:00",
        seed=1,
        tool="ncu",
        tool_version="1",
        status=Status.OK,
        stalls=waits,
    )
    text = survey.tables([one])
    assert "30.0%" in text and "wait 40%, no_instruction 30%, barrier 20%, drain 7%" in text and "misc" not in text
    assert "waited for" not in survey.tables([one.model_copy(update={"stalls": {}})])


def test_ncu_that_fails_says_why(fake_ncu: Callable[[str], Job]) -> None:
    job = fake_ncu('==ERROR== Failed to find metric "no__such.sum"\n')
    with pytest.raises(InfrastructureError, match=r"no__such\.sum"):
        profiled.count(job, 60.0)


def test_a_missing_ncu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match="ncu is not here"):
        profiled.version()
