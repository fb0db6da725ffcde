"""Code convergence: lines that both backends compile, from what each is really given."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport import workload
from perfport.model.errors import UsageError
from perfport.untimed import convergence
from perfport.untimed.convergence import ALL, Convergence, converge
from perfport.workload.source import read_source

PACKAGE = '''
"""Doubling."""
from perfport.backend import Artifact
from perfport.workload import HostPeer, Metric, Problem, UnsupportedError, Variant
from pydantic import BaseModel


class Size(BaseModel):
    """Of nothing."""

    n: int = 1


class P(Problem):
    name = "p"
    metric = Metric("t", "s", "lower", "d")
    Parameters = Size
    presets = {"tiny": {}}
    check_sizes = ({"n": 1}, {"n": 2})

    def work(self): ...
    def metric_value(self, seconds): ...
    def outputs(self, *which): ...
    def check(self, outputs, *which): ...


class Portable(Variant):
    problem = P
    name, rung = "portable", 1
    macros = {}

    def __init__(self, setup):
        self.kernel = setup.kernel("k.cl", "k", **self.macros)

    def launch(self): ...


class Wide(Portable):
    name, rung, macros = "wide", 2, {"WIDTH": 4}


class CudaOnly(Portable):
    name, rung, needs = "cuda_only", 3, ("cuda",)


class Own(Portable):
    name, rung, needs = "own", 4, ("ptx",)

    def __init__(self, setup):
        self.kernel = setup.kernel("own.cu", "own")


class Written(Portable):
    name, rung, needs = "written", 6, ("ptx",)

    def __init__(self, setup):
        text = ".version 8.0\\n.target sm_90\\n"
        setup.load("w", lambda: Artifact("cuda", "w.ptx", b"", (), "w", "cubin", listing={"source": text}))


class OnCpus(Portable):
    name, rung = "on_cpus", 5

    def __init__(self, setup):
        if setup.device.info.kind != "cpu":
            raise UnsupportedError("a CPU's")
        super().__init__(setup)


class Library(HostPeer):
    problem, name, role = P, "library", "control"
    needs = ()

    def prepare(self):
        raise AssertionError("a library's code is not compiled")
'''
KERNEL = """\
/* A comment is no line of code. */
__kernel void k(__global float* x) {  // 2

#ifdef __CUDACC__
    float a = 1.0f;  // 5
#else
    float a = 2.0f;  // 7
    a += 1.0f;  // 8
#endif
#if WIDTH == 4
    a *= 4.0f;  // 11
#endif
    x[get_global_id(0)] = a;  // 13
#ifdef PERFPORT_WARP_SYNC
    x[0] = a;  // 15
#endif
}
"""
OWN = """\
#ifdef __CUDACC__
extern "C" __global__ void own(float* x) {
    x[0] = 1.0f;
}
#endif
"""


@pytest.fixture
def found(tmp_path: Path) -> dict[tuple[str, str], Convergence]:
    """Convergences by problem and variant."""
    folder = tmp_path / "doubling"
    (folder / "kernels").mkdir(parents=True)
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "kernels" / "k.cl").write_text(KERNEL)
    (folder / "kernels" / "own.cu").write_text(OWN)
    listed = converge(workload.discover([folder])["doubling"])
    return {(one.problem, one.variant): one for one in listed}


def by_target(cpu: int, gpu: int, nvidia: int, cuda: int) -> dict[str, int]:
    return dict(zip(("OpenCL, CPU", "OpenCL, GPU", "OpenCL, NVIDIA", "CUDA"), (cpu, gpu, nvidia, cuda), strict=True))


def test_lines_are_counted_after_preprocessing(found: dict[tuple[str, str], Convergence]) -> None:
    """Lines 2 7 8 13 17 by OpenCL, 15 by NVIDIA's, whose compiler knows of warps, and 2 5 13 17 by CUDA."""
    portable = found["p", "portable"]
    assert portable.lines == by_target(5, 5, 6, 4)
    assert (portable.common, portable.total) == (3, 7) and portable.share == 3 / 7
    wide = found["p", "wide"]
    assert (wide.lines, wide.common, wide.total) == (by_target(6, 6, 7, 5), 4, 8)


def test_convergence_is_the_mean_over_pairs_of_targets(found: dict[tuple[str, str], Convergence]) -> None:
    """CPU and GPU compile the same five lines."""
    pairs = [1.0, 5 / 6, 3 / 6, 5 / 6, 3 / 6, 3 / 7]
    assert found["p", "portable"].convergence == pytest.approx(sum(pairs) / 6)


def test_cuda_c_plus_plus_is_compiled_by_its_own_dialect_on_both(found: dict[tuple[str, str], Convergence]) -> None:
    own = found["p", "own"]
    assert (own.lines, own.share, own.convergence) == (by_target(0, 0, 3, 3), 1.0, 1.0)


def test_a_target_that_cannot_run_it_compiles_nothing(found: dict[tuple[str, str], Convergence]) -> None:
    """And is none of those that are compared."""
    cuda, cpus = found["p", "cuda_only"], found["p", "on_cpus"]
    assert cuda.lines == by_target(0, 0, 0, 4) and cuda.share == 0 and cuda.convergence is None
    assert cpus.lines == by_target(5, 0, 0, 0) and cpus.share == 0 and cpus.convergence is None


def test_what_a_variant_writes_as_ptx_is_no_source(found: dict[tuple[str, str], Convergence]) -> None:
    assert ("p", "written") not in found


def test_problem_and_workload_unite_their_variants_and_peers_have_no_part(
    found: dict[tuple[str, str], Convergence],
) -> None:
    variants = {"portable", "wide", "cuda_only", "own", "on_cpus"}
    assert set(found) == {*(("p", name) for name in variants), ("p", ALL), (ALL, ALL)}
    for whole in (found["p", ALL], found[ALL, ALL]):
        assert (whole.lines, whole.common, whole.total) == (by_target(6, 6, 10, 8), 7, 11)


def test_a_shipped_workload_is_written_once_for_all() -> None:
    (whole,) = [one for one in converge(workload.discover()["svm_rbf"]) if one.problem == ALL]
    assert whole.share > 0.8 and min(whole.lines.values()) > 100


def test_stored_convergence_is_read_back_and_anything_else_refused(
    tmp_path: Path, found: dict[tuple[str, str], Convergence]
) -> None:
    file = tmp_path / convergence.FILE
    convergence.store(list(found.values()), file)
    assert convergence.read(file) == list(found.values())
    file.write_text("[1]")
    with pytest.raises(UsageError, match=r"convergence\.json: \[0\]: input should be a valid dictionary"):
        convergence.read(file)


def test_a_shared_file_has_its_lines_once(tmp_path: Path) -> None:
    """Its lines count under its own name, in whichever kernel it is included."""
    (tmp_path / "shared.cl").write_text("int a;\nint b;\n")
    for name in ("x.cl", "y.cl"):
        (tmp_path / name).write_text(f'int {name[0]};\n#include "shared.cl"\nint z;\n')
    lines = {
        name: convergence._surviving("opencl", (name, read_source(tmp_path / name), ())) for name in ("x.cl", "y.cl")
    }
    assert lines["x.cl"] == {("x.cl", 1), ("x.cl", 3), ("shared.cl", 1), ("shared.cl", 2)}
    assert lines["x.cl"] & lines["y.cl"] == {("shared.cl", 1), ("shared.cl", 2)}
