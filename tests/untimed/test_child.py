"""The child that runs variants once: outcomes, attribution of crashes and hangs, marks around launches that count."""

from __future__ import annotations

import sys
from pathlib import Path

from started_children import Started

from perfport import workload
from perfport.model.device import DeviceInfo
from perfport.model.record import Status
from perfport.untimed import child
from perfport.untimed.child import MARKS, Job, Wrapping

DATA = Path(__file__).parents[1] / "data"
FAULTY, PLANTED = str(DATA / "faulty"), str(DATA / "planted")


def jobs(info: DeviceInfo, folder: str, problem: str, parameters: dict[str, int], *variants: str) -> list[Job]:
    found = workload.discover([folder])[Path(folder).name]
    known = {case.variant: case for case in child.cases(found, problem, info)}
    cases = [known[name] for name in variants]
    place = {"device": info, "workloads": [folder], "workload": found.name, "problem": problem}
    return [Job(**place, parameters=parameters, seed=1, cases=cases)]


def test_a_library_launches_no_kernel_of_ours_whatever_its_role(opencl_infos: list[DeviceInfo]) -> None:
    found = workload.discover()["sparse_conv"]
    known = found.variants["sparse_conv"]
    names = {case.variant for case in child.cases(found, "sparse_conv", opencl_infos[0])}
    assert known["cudnn_both"].role == known["constant_weights"].role == "control"
    assert names == {name for name, cls in known.items() if not issubclass(cls, workload.Peer)}


def test_outcomes_carry_verification(opencl_infos: list[DeviceInfo]) -> None:
    for info in opencl_infos:
        (outcome,) = child.run(jobs(info, PLANTED, "double", {"n": 65}, "clean"))
        assert outcome.status is Status.OK and outcome.verification and outcome.verification.passed
        assert outcome.verification.outputs["out"].checked == 65


def test_marks_stand_around_the_execution(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    path = tmp_path / "marks"
    child.run(
        jobs(opencl_infos[0], PLANTED, "double", {"n": 65}, "clean", "race_global"),
        Wrapping(environment={MARKS: str(path)}),
    )
    assert path.read_text().split("\n") == ["begin clean", "end clean", "begin race_global", "end race_global", ""]


def test_what_a_tool_prints_goes_to_its_case(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text(
        "import subprocess, sys; print('hello from the tool', flush=True); sys.exit(subprocess.call(sys.argv[1:]))"
    )
    one, two = child.run(
        jobs(opencl_infos[0], PLANTED, "double", {"n": 65}, "clean", "clean"), Wrapping((sys.executable, str(script)))
    )
    assert "hello from the tool" in one.log and "hello" not in two.log


def test_a_case_that_kills_its_child_costs_only_itself(opencl_infos: list[DeviceInfo]) -> None:
    variants = ("good", "segfault", "wrong", "exits", "raises", "no_compile", "memory", "also_good")
    outcomes = child.run(jobs(opencl_infos[0], FAULTY, "double", {"n": 65}, *variants))
    statuses = {outcome.case.variant: (outcome.status.value, outcome.reason) for outcome in outcomes}
    assert list(statuses) == list(variants)
    assert statuses["good"] == statuses["also_good"] == ("ok", "")
    assert statuses["segfault"] == ("crashed", "killed by signal 11")
    assert statuses["exits"] == ("crashed", "exit code 7")
    assert statuses["raises"] == ("crashed", "planted: raised in launch")
    assert statuses["wrong"][0] == "wrong" and "relative L2" in statuses["wrong"][1]
    assert (statuses["no_compile"][0], statuses["memory"][0]) == ("compile_error", "out_of_memory")


def test_jobs_share_a_child_until_one_of_their_cases_kills_it(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    """Each job's problem has its own size; the rest of the job that lost its child goes on in another one."""
    sizes = [
        jobs(opencl_infos[0], FAULTY, "double", {"n": n}, *names)[0]
        for n, names in ((65, ("good",)), (66, ("good", "segfault", "also_good")), (67, ("good", "wrong")))
    ]
    started = Started(tmp_path)
    outcomes = child.run(sizes, started.wrapping)
    assert [outcome.status.value for outcome in outcomes] == ["ok", "ok", "crashed", "ok", "ok", "wrong"]
    checked = [next(iter(o.verification.outputs.values())).checked for o in outcomes if o.verification]
    assert checked == [65, 66, 66, 67, 67]
    assert started.children == 2


def test_a_hang_ends_and_the_rest_goes_on(opencl_infos: list[DeviceInfo]) -> None:
    slow = [
        name
        for name in ("hang", "hangs", "slow_for_ever")
        if name in workload.discover([FAULTY])["faulty"].variants["double"]
    ]
    outcomes = child.run(jobs(opencl_infos[0], FAULTY, "double", {"n": 65}, *slow, "good"), timeout=6.0)
    assert [outcome.status for outcome in outcomes] == [Status.TIMEOUT, Status.OK]
    assert "no answer within 6 s" in outcomes[0].reason


def test_a_tool_that_cannot_start_its_child_ends_each_case(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text("import sys; print('no such device', file=sys.stderr); sys.exit(3)")
    wrapping = Wrapping((sys.executable, str(script)))
    outcomes = child.run(jobs(opencl_infos[0], PLANTED, "double", {"n": 65}, "clean", "race_local"), wrapping)
    assert [(o.status.value, o.reason) for o in outcomes] == 2 * [("crashed", "exit code 3")]
    assert "no such device" in outcomes[0].log


def test_a_warm_up_is_one_more_execution(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    for warm_up, executions in ((False, 1), (True, 2)):
        log = tmp_path / f"log {executions}"
        (one,) = jobs(opencl_infos[0], FAULTY, "double", {"n": 65}, "good")
        warm = one.model_copy(update={"warm_up": warm_up})
        (outcome,) = child.run([warm], Wrapping(environment={"FAULTY_LOG": str(log)}))
        assert outcome.status is Status.OK and len(log.read_text().splitlines()) == executions
