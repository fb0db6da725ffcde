"""Every planted bug is found, in its kernel and at its line; a clean kernel passes; tools that fail are not clean."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from started_children import Started

from perfport.backend.offline import cuda_info
from perfport.machine import simulator
from perfport.machine.device_profile import load_profile
from perfport.model.errors import UnavailableError, UsageError
from perfport.untimed.child import Wrapping
from perfport.untimed.verify import Task, on_devices, run
from perfport.untimed.verify.compute_sanitizer import SANITIZED
from perfport.untimed.verify.finding import Finding
from perfport.workload import discover

PLANTED = Path(__file__).parents[1] / "data" / "planted"
BUGS = {
    "race_local": "Read-write data race at local memory",
    "race_global": "Write-write data race at global memory",
    "read_outside": "Invalid read of size 4 at global memory",
    "write_outside": "Invalid write of size 4 at global memory",
    "unwritten_local": "Uninitialised read of size 4 at local memory",
    "unwritten_global": "Uninitialised read of size 4 at global memory",
    "divergent_barrier": "Work-group divergence detected",
}


def installed() -> bool:
    try:
        simulator.plugin(Path(str(files("perfport.untimed.verify"))) / "initialised.cpp")
    except UnavailableError:
        return False
    return True


needs_oclgrind = pytest.mark.skipif(not installed(), reason="Oclgrind, its headers or a C++ compiler are not installed")


@pytest.fixture(scope="module")
def planted(perfport: Callable[..., Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """Verdicts by variant and size."""
    done = perfport("verify", "planted/", "--sanitize", "--workloads", PLANTED, "--json")
    assert done.returncode == 3, done.stderr
    return {(row["variant"], row["parameters"]["n"]): row for row in json.loads(done.stdout)}


@needs_oclgrind
@pytest.mark.parametrize("bug", BUGS)
def test_each_planted_bug_is_found(planted: dict[tuple[str, int], dict[str, Any]], bug: str) -> None:
    source = (PLANTED / "kernels" / "planted.cl").read_text().splitlines()
    for n in (65, 131):
        row = planted[bug, n]
        found = [finding for finding in row["findings"] if finding["kind"].startswith(BUGS[bug])]
        assert found and all(finding["kernel"] == bug for finding in row["findings"])
        if "race" not in bug:  # Oclgrind gives a race's place only where it knows both accesses
            line = int(found[0]["where"].rsplit(" ", 1)[1])
            first = next(number for number, text in enumerate(source, 1) if f"void {bug}(" in text)
            assert first < line <= first + 8


@needs_oclgrind
def test_a_clean_kernel_and_its_results_pass(planted: dict[tuple[str, int], dict[str, Any]]) -> None:
    for n in (65, 131):
        assert planted["clean", n]["findings"] == [] and planted["clean", n]["status"] == "ok"
    assert len(planted) == 2 * (len(BUGS) + 1)


@needs_oclgrind
def test_limits_of_an_archival_device_are_imitated() -> None:
    limits = simulator.limits(load_profile("hd5870"))
    info = simulator.find(limits)
    assert (info.max_work_group, info.local_memory_bytes) == (256, 32768)


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime = tmp_path / "runtime.so"
    runtime.write_text("")
    monkeypatch.setattr(simulator, "library", lambda: str(runtime))
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    source = tmp_path / "new.cpp"
    source.write_text("// never built")
    with pytest.raises(UnavailableError, match=r"no C\+\+ compiler .* new\.cpp"):
        simulator.plugin(source)


def test_a_plugin_that_does_not_compile_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime, compiler = tmp_path / "runtime.so", tmp_path / "compiler"
    runtime.write_text("")
    compiler.write_text("#!/bin/sh\necho 'x.cpp:1: error: no such header' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(simulator, "library", lambda: str(runtime))
    monkeypatch.setenv("CXX", str(compiler))
    source = tmp_path / "bad.cpp"
    source.write_text("#include <nothing>")
    with pytest.raises(UnavailableError, match="error: no such header"):
        simulator.plugin(source)


def test_nothing_is_timed_where_times_mean_nothing(opencl_infos: list[Any]) -> None:
    found = discover([str(PLANTED)], "planted")
    tasks = on_devices({"planted": found["planted"]}, opencl_infos[:1], 1)
    assert tasks and not any(job.timed for task in tasks for job in task.jobs)


@dataclass(frozen=True)
class Silent:
    """A tool that finds one thing in each case, and prints the findings of two cases at most."""

    started: Started
    name: str = "silent"
    most: int = 2

    def wrapping(self) -> Wrapping:
        return self.started.wrapping

    def findings(self, log: str) -> list[Finding]:
        return [Finding("fault", "kernel")]


def test_what_comes_after_a_tool_fell_silent_is_run_again(opencl_infos: list[Any], tmp_path: Path) -> None:
    started = Started(tmp_path)
    found = discover([str(PLANTED)], "planted")
    (plain,) = on_devices({"planted": found["planted"]}, opencl_infos[:1], 1, "clean")
    verdicts = list(run([Task(plain.jobs * 3, Silent(started))], [str(PLANTED)]))
    sizes = [job.parameters["n"] for job in plain.jobs] * 3
    assert [verdict.job.parameters["n"] for verdict in verdicts] == sizes and all(one.findings for one in verdicts)
    assert started.children == len(sizes) // 2


def test_a_cpu_cannot_be_watched_by_compute_sanitizer(opencl_infos: list[Any]) -> None:
    with pytest.raises(UsageError, match=f"{opencl_infos[0].id}.* expected CUDA devices"):
        on_devices({}, opencl_infos[:1], 1, sanitize=True)


def test_kernels_know_that_compute_sanitizer_watches_them() -> None:
    planted, device = discover([str(PLANTED)], "planted")["planted"], cuda_info("sm_90")
    for sanitize, expected in ((False, {}), (True, SANITIZED)):
        tasks = on_devices({"planted": planted}, [device], 1, "clean", sanitize=sanitize)
        assert {str(case.macros) for task in tasks for job in task.jobs for case in job.cases} == {str(expected)}


@needs_oclgrind
@pytest.mark.minutes
@pytest.mark.timeout(1800)
def test_every_variant_that_ships_is_clean(perfport: Callable[..., Any]) -> None:
    done = perfport("verify", "--sanitize", "--json", timeout=1800)
    bad = [row for row in json.loads(done.stdout) if row["findings"] or row["status"] not in ("ok", "unsupported")]
    assert not bad, json.dumps(bad, indent=1)[:4000]
