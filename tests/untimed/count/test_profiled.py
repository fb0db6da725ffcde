"""Counts under Nsight Compute: its command, its table, its failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fake_ncu
import pytest
from counted import PLANTED
from fake_ncu import LEFT, row

from perfport.machine import simulator
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UnavailableError
from perfport.untimed.child import CheckCase, Job
from perfport.untimed.count import profiled, simulated

OPS = [f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "fmul", "ffma")]


MATRIX = [f"sm__ops_path_tensor_src_{kind}.sum" for kind in ("tf32_dst_fp32", "bf16_dst_fp32", "int8")]


NAMES = ["dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "smsp__inst_executed_pipe_xu.sum", *OPS]


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


def test_ncu_occupancy_is_that_of_the_active_cycles() -> None:
    """A launch counts by the cycles in which it kept multiprocessors busy."""
    names = ["sm__warps_active.avg.pct_of_peak_sustained_active", "sm__cycles_active.sum"]
    rows = (
        row(0, "perfport_marker", "90", "9"), row(1, "work", "50", "1,000"), row(2, "work", "10", "3,000"),
        row(3, "other", "100", "1,000"),
    )  # fmt: skip
    header = (",".join(f'"{name}"' for name in (*LEFT, *names)), ",".join(['""'] * 11 + ['"%"', '"cycle"']))
    (tally,) = profiled.by_window(profiled.parse("\n".join((*header, *rows))))
    assert profiled.occupancy(tally.raw) == pytest.approx((500 + 300 + 1000) / 5000)
    assert names[0] not in tally.raw["work"], "averages of launches cannot be added up"
    assert profiled.occupancy({}) is None


def test_sectors_of_loads_and_stores_are_bytes() -> None:
    names = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")]
    raw = {"a": {names[0]: 3.0, names[1]: 2.0, "dram__bytes_read.sum": 7.0}, "b": {names[0]: 1.0}}
    assert profiled.sector_bytes(raw) == 6 * 32 and profiled.sector_bytes({}) == 0


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
    assert set(NAMES) <= set(asked.split(",")) and "issue_stalled" not in asked and "warps_active" not in asked
    words = profiled.command(tmp_path / "log", GPU, stalls=True)
    metrics = words[words.index("--metrics") + 1].split(",")
    assert {"sm__warps_active.avg.pct_of_peak_sustained_active", "sm__cycles_active.sum"} <= set(metrics)
    assert "smsp__issue_active.sum" in metrics and len([name for name in metrics if "issue_stalled" in name]) == 18


@pytest.fixture
def fake_job(plugin: simulated.Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Job]:
    """A job on the simulator, for a stand-in of ``ncu`` that writes a given log."""

    def make(log: str) -> Job:
        fake_ncu.install(tmp_path, monkeypatch, log)
        device = simulator.find().model_copy(update={"kind": "gpu"})
        return Job(
            device=device, workloads=[str(PLANTED)], workload="counted", problem="anything", parameters={"n": 64},
            seed=1, cases=[CheckCase(variant=name) for name in ("wide", "needs_cuda", "builtins")],
        )  # fmt: skip

    return make


def test_windows_go_to_the_cases_that_ran(fake_job: Callable[[str], Job]) -> None:
    found = profiled.count(fake_job(SAMPLE), 60.0)
    assert profiled.version() == "2025.3.0.0"
    assert [outcome.status.value for outcome, _ in found] == ["ok", "unsupported", "ok"]
    assert [tally.launches for _, tally in found] == [3, 0, 1]


def test_stalls_are_asked_for(fake_job: Callable[[str], Job], tmp_path: Path) -> None:
    profiled.count(fake_job(SAMPLE), 60.0, stalls=True)
    assert "issue_stalled_no_instruction" in (tmp_path / "arguments").read_text()


def test_ncu_that_fails_says_why(fake_job: Callable[[str], Job]) -> None:
    job = fake_job('==ERROR== Failed to find metric "no__such.sum"\n')
    with pytest.raises(InfrastructureError, match=r"no__such\.sum"):
        profiled.count(job, 60.0)


def test_a_missing_ncu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match="ncu is not here"):
        profiled.version()
