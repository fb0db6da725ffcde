"""`count: true`: cases of a run on a device of NVIDIA, played by an OpenCL device under a stand-in for ``ncu``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_ncu
import pytest
import report_data as data
import yaml
from counted import PLANTED
from fake_ncu import LEFT, row

from perfport.model.device import DeviceInfo
from perfport.model.record import Record
from perfport.report.parts.counted import Counts
from perfport.run.experiment import Experiment
from perfport.store.results import Writer
from perfport.untimed.count import Verdict, after, read
from perfport.untimed.count.counts import COUNTS

pytestmark = pytest.mark.any_device

GPU = "cuda:nvidia:0"
NAMES = ["dram__bytes_read.sum", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"]
HEAD = "\n".join([
    ",".join(f'"{name}"' for name in (*LEFT, *NAMES)), ",".join(['""'] * 11 + ['"byte"', '"inst"']), "",
])  # fmt: skip
#: What a case causes: 12 FLOP for each of 64 work-items, as `wide` declares.
EACH = "\n".join([row(0, "perfport_marker", "0", "0"), row(1, "work", "4,096", "768"), ""])


@pytest.fixture
def gpu(opencl_infos: list[DeviceInfo], monkeypatch: pytest.MonkeyPatch) -> DeviceInfo:
    info = opencl_infos[0].model_copy(update={"id": GPU, "kind": "gpu"})
    monkeypatch.setattr(after, "usable_devices", lambda selectors: [info])
    return info


def timed(variant: str, **more: Any) -> Record:
    """A record of a case that was timed."""
    where = {"workload": "counted", "problem": "anything", "preset": "tiny", "parameters": {"n": 64}}
    return data.record(variant, **{"device": GPU, "backend": "cuda", "ceilings": None, **where, **more})


def stored(folder: Path, *records: Record) -> Path:
    """Store them as a run."""
    with Writer(folder) as writer:
        writer.environment(data.environment())
        for record in records:
            writer.append(record)
    return folder


def counting(folder: Path, *studies: dict[str, Any], **keys: Any) -> list[str]:
    """Count the cases of a run, all of them unless entries of its experiment say otherwise; what is said."""
    said: list[str] = []
    every = {"profiles": ["native", "own"]}
    entries = [{"workload": "counted", "problem": "anything", **study} for study in studies or [every]]
    content = {"name": "counted", "experiments": entries, **(keys or {"count": True})}
    after.count_run(folder, Experiment.model_validate(content), [str(PLANTED)], said.append)
    return said


def test_each_case_is_counted_at_its_tunables_and_no_other(
    gpu: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.install(tmp_path, monkeypatch, HEAD, EACH)
    one, other = timed("tuned", tunables={"shade": 1}), timed("tuned", tunables={"shade": 2})
    elsewhere = timed("wide", device=data.POCL, backend="opencl")
    several = timed("tuned", tunables={"shade": 1, "devices": 2})
    folder = stored(tmp_path / "run", timed("wide"), one, other, elsewhere, several, timed("peer", role="peer"))
    said = counting(folder)
    counts = read(folder)
    assert [count.identity for count in counts] == [timed("wide").identity, one.identity, other.identity]
    assert [count.verdict for count in counts] == [Verdict.AGREES, Verdict.AGREES, Verdict.DEVIATES]
    assert all(count.counted and count.counted.dram_read == 4096 and count.tool == "ncu" for count in counts)
    assert len((tmp_path / "arguments").read_text().splitlines()) == 2, "a variant has one window in a process"
    assert said[-1].startswith("count: 3 cases are counted; what 1 of them declare deviates")
    assert Counts(folder).counts == counts, "a report finds them where the records are"


def test_what_was_counted_since_it_was_timed_is_not_counted_again(
    gpu: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.install(tmp_path, monkeypatch, HEAD, EACH)
    folder = stored(tmp_path / "run", timed("wide"), timed("builtins"))
    counting(folder)
    assert counting(folder) == [] and len(read(folder)) == 2
    stored(folder, timed("wide", time="2999-01-01T00:00:00.000+00:00"))
    assert counting(folder)[-1].startswith("count: 1 cases are counted")
    assert [count.identity.variant for count in read(folder)] == ["wide", "builtins", "wide"]


def test_an_entry_may_be_counted_alone(gpu: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ncu.install(tmp_path, monkeypatch, HEAD, EACH)
    folder = stored(tmp_path / "run", timed("wide"), timed("builtins"), timed("hash"))
    counting(folder, {"variants": ["wide", "hash"], "count": True}, {"variants": ["builtins", "hash"]}, count=False)
    assert [count.identity.variant for count in read(folder)] == ["wide", "hash"]
    counting(folder, {"variants": ["wide"], "count": False}, {"variants": ["builtins"]}, count=True)
    assert [count.identity.variant for count in read(folder)] == ["wide", "hash", "builtins"]
    assert "issue_stalled_no_instruction" in (tmp_path / "arguments").read_text()


def test_a_profile_s_parameters_are_compiled_in(
    gpu: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.install(tmp_path, monkeypatch, HEAD, EACH)
    set_ = {"LANES": 7, "shade": 2}
    monkeypatch.setattr(after, "load_profile", lambda name: name)
    monkeypatch.setattr(after, "parameters_for", lambda profile, workload: set_ if profile == "own" else {})
    asked: list[Any] = []
    count = after.profiled.count
    monkeypatch.setattr(
        after.profiled, "count", lambda job, *more, **keys: asked.extend(job.cases) or count(job, *more, **keys)
    )
    counting(stored(tmp_path / "run", timed("tuned", tunables={"shade": 2}, profile="own")))
    (case,) = asked
    assert case.macros == {"LANES": 7} and case.tunables == {"shade": 2}


def test_without_the_tool_that_is_said_once_and_is_no_error(
    gpu: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    folder = stored(tmp_path / "run", timed("wide"), timed("builtins"))
    (said,) = counting(folder)
    assert said.startswith("count: none: ncu is not here") and not (folder / COUNTS).exists()


def test_a_tool_that_gives_nothing_is_told_with_its_message(
    gpu: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.install(tmp_path, monkeypatch, "==ERROR== ERR_NVGPUCTRPERM - no permission\n")
    said = counting(stored(tmp_path / "run", timed("wide"), timed("builtins")))
    assert said[-1].startswith("count: none: ncu gave no counters: ==ERROR== ERR_NVGPUCTRPERM")


def test_a_run_goes_on_where_no_device_has_a_profiler(
    opencl_infos: list[DeviceInfo], perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    """The whole command: the case is timed, what is missing is said, the exit code is that of the results."""
    measurement = {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm"}
    study = {"workload": "counted", "problem": "anything", "presets": ["tiny"], "variants": ["wide"]}
    content = {"name": "counted", "count": True, "measurement": measurement, "experiments": [study]}
    (tmp_path / "counted.yaml").write_text(yaml.safe_dump(content))
    words = ["run", "counted.yaml", "-d", opencl_infos[0].id, "--workloads", PLANTED, "--out", "out"]
    done = perfport(*words, env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("count: none: no case was timed that launches kernels through CUDA") == 1
    assert json.loads((tmp_path / "out" / "records.jsonl").read_text())["status"] in ("ok", "contended")
