"""Kernels compiled ahead are those that the measuring process would compile."""

from __future__ import annotations

from pathlib import Path

import pytest
import tunable_workload as tunable

from perfport.backend.offline import OfflineDevice, cuda_info, opencl_info
from perfport.model.errors import UnavailableError
from perfport.tune.compiling import Ahead, compile_ahead
from perfport.workload import Session, build, discover

WHAT = {"workload": "tunable", "problem": "double", "variant": "turns", "parameters": {"n": 500}, "seed": 1}
CONFIG = {"turns": 4, "fault": "none"}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tunable.write(tmp_path)


def test_nothing_is_compiled_again(own: Path) -> None:
    info = cuda_info("sm_90")
    try:
        artifacts = compile_ahead(info, [str(own)], WHAT, CONFIG)
    except UnavailableError as error:
        pytest.skip(str(error))
    if not artifacts:
        pytest.skip("no compiler for CUDA is installed")
    workload = discover([own], only="tunable")["tunable"]
    problem = workload.problem("double")
    session = Session(OfflineDevice(info), problem(problem.Parameters(n=500), 1), workload.folder)
    session.artifacts.update(artifacts)
    build(workload.variant("double", "turns"), session, CONFIG, {})
    assert session.artifacts.keys() == artifacts.keys() and len(artifacts) == 1
    assert compile_ahead(info, [str(own)], WHAT, CONFIG) == {}  # this process has it
    assert len(compile_ahead(info, [str(own)], WHAT, {**CONFIG, "turns": 64})) == 1


def test_what_does_not_compile_is_left_to_the_measuring_process(own: Path) -> None:
    assert compile_ahead(cuda_info("sm_90"), [str(own)], WHAT, {**CONFIG, "fault": "no_compile"}) == {}


def test_for_opencl_no_process_is_started(own: Path) -> None:
    ahead = Ahead(opencl_info("cpu"), [str(own)])
    ahead.begin(WHAT, CONFIG)
    assert ahead.processes == 0 and ahead._pool is None and ahead.take(CONFIG, 1.0) == {}
    ahead.close()


def test_a_process_compiles_while_another_measures_and_one_that_dies_costs_nothing(own: Path) -> None:
    ahead = Ahead(cuda_info("sm_90"), [str(own)])
    if ahead.processes < 1:
        pytest.skip("one core")
    ahead.begin(WHAT, CONFIG)
    assert len(ahead.take(CONFIG, 120.0)) in (0, 1)
    ahead.begin(WHAT, {**CONFIG, "fault": "crash"})
    assert ahead.take({**CONFIG, "fault": "crash"}, 120.0) == {}
    ahead.begin(WHAT, CONFIG)
    assert ahead.take(CONFIG, 0.0) == {}
    ahead.close()
