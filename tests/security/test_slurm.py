"""Slurm: what an experiment says is no line of a batch script, and nothing of somebody else's folder is executed."""

from __future__ import annotations

import json
import os
import pickle
import re
import stat
from pathlib import Path
from typing import Any

import hostile
import pytest
import yaml

from perfport.model.errors import InfrastructureError, UsageError
from perfport.run import jobs, local, slurm
from perfport.run.executor import OWN_OPTIONS
from perfport.run.experiment import load
from perfport.store.results import Writer

NOBODY = 65534
FAULTY = Path(__file__).parents[1] / "data" / "faulty"
#: Values that would be lines, options, or commands of their own.
HOSTILE = [
    "a\ntouch /tmp/x",
    "a\r",
    "-x",
    "--wrap=x",
    "$(touch x)",
    "`x`",
    "a'b",
    'a"b',
    "a\\",
    "a\x1b[2J",
    "",
    "a\x00",
    "x" * 2000,
]


def written(tmp_path: Path, sbatch: dict[str, Any] | None = None, partition: str = "gpu") -> Path:
    """Write an experiment for Slurm."""
    executor = {"kind": "slurm", "partitions": {partition: {"devices": ["cuda"], "sbatch": sbatch or {}}}}
    study = {"workload": "faulty", "problem": "double", "variants": ["slow"], "parameters": {"n": [1000]}}
    path = tmp_path / "hostile.yaml"
    path.write_text(yaml.safe_dump({"name": "hostile", "executor": executor, "experiments": [study]}))
    return path


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_that_is_more_than_a_value_is_refused_by_its_key(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"executor\.partitions\.gpu\.sbatch: 'comment': expected one line"):
        load(written(tmp_path, {"comment": value}))


@pytest.mark.parametrize(
    "name", ["a\nb", "-a", "A b", "a=b", "", "gres\n#SBATCH --wrap", *sorted(OWN_OPTIONS), "job_name"]
)
def test_an_option_that_is_none_or_not_the_users_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"executor\.partitions\.gpu\.sbatch: "):
        load(written(tmp_path, {name: "1"}))


@pytest.mark.parametrize("partition", ["../x", "/x", "-p", "a\nb", "a b", "", "a'b", "$x", "x" * 200])
def test_a_partition_that_is_no_name_is_refused(tmp_path: Path, partition: str) -> None:
    with pytest.raises(UsageError, match=r"executor\.partitions: .*: expected letters"):
        load(written(tmp_path, partition=partition))


def test_what_people_write_is_allowed(tmp_path: Path) -> None:
    options = {
        "gres": "gpu:h100:2", "account": "benchmarks", "constraint": "[a|b]&c*2", "nodelist": "n[1-3],m4", "mem": 0,
        "licenses": "x@y:1", "begin": "2026-11-23T09:00:00", "exclusive": False, "cpus_per_task": 4, "nice": 100,
        "comment": "one line, with spaces",
    }  # fmt: skip
    for partition in ("gpu", "GPU_2.long", "a-b", "a,b"):
        assert load(written(tmp_path, options, partition)).executor.partitions[partition].sbatch == options


def commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put programs on the path that answer as Slurm's: jobs are taken and are gone at once. Returns what sbatch got."""
    folder.mkdir()
    script = folder / "script.sh"
    for name, body in {
        "sbatch": f'cat "$1" > {script}; echo "Submitted batch job 4711"', "srun": "exit 0", "squeue": "exit 0",
    }.items():  # fmt: skip
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return script


def share(top: Path) -> jobs.Share:
    """What a job would execute."""
    return jobs.Share(
        experiment=top / "e.yaml", folder=top / "jobs" / "x", devices=["cuda"], part=0, parts=1, seed=1, patterns=(),
        retry=(), workloads=[], command=[],
    )  # fmt: skip


class Exploit:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.file,)


def foreign(top: Path, proof: Path, state: str = "RUNNING") -> None:
    """Make the run folder of somebody else, with pickles wherever results and submissions of jobs have lain."""
    logs = top / "jobs" / "submitit"
    logs.mkdir(parents=True)
    for name in ("7_0_result.pkl", "7_submitted.pkl", "4711_submitted.pkl", "4711_0_result.pkl", "7.json"):
        (logs / name).write_bytes(pickle.dumps(("success", Exploit(proof))))
    job = {"partition": "gpu", "part": 0, "parts": 1, "ids": ["7"], "state": state, "node": "", "reason": ""}
    (top / slurm.JOBS).write_text(json.dumps({"seed": 1, "jobs": [job]}))


def test_the_exploit_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Exploit(tmp_path / "proof")))
    assert (tmp_path / "proof").exists()


def test_a_resumed_run_unpickles_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder from elsewhere that was copied and so is the user's own: its results are never loaded, nor executed."""
    pytest.importorskip("submitit")
    top, proof = tmp_path / "foreign", tmp_path / "proof"
    foreign(top, proof)
    commands(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr(slurm, "POLL_S", (0.0, 0.0))
    definition = load(written(tmp_path))
    options = local.Options(resume=True, out=top, workloads=[str(FAULTY)])
    slurm.run(tmp_path / "hostile.yaml", definition, options)
    stored = jobs.read(top / slurm.JOBS, jobs.Stored)
    (job,) = stored.jobs
    assert job.ids[:2] == ["7", "4711"] and job.state == slurm.GONE, "it did look for the job, and submitted it again"
    assert not proof.exists()
    session = top / "jobs" / job.session
    assert job.session != "submitit" and stat.S_IMODE(session.stat().st_mode) == 0o700
    assert (session / "4711_submitted.pkl").exists(), "what the job executes lies in a folder of this session alone"


def test_what_submitit_writes_is_one_line_for_each_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    script = commands(tmp_path / "bin", monkeypatch)
    top = tmp_path / "out #1"
    cluster = slurm.Cluster(top, load(written(tmp_path, {"comment": "a b|c; d", "gres": "gpu:1"}, "a,b")))
    job = jobs.Job(partition="a,b", part=0, parts=1)
    cluster.submit(job, share(top))
    lines = script.read_text().splitlines()
    assert "#SBATCH --comment='a b|c; d'" in lines and "#SBATCH --partition=a,b" in lines
    executed = [line for line in lines if line and not line.startswith("#")]
    assert len(executed) == 2 and executed[0].startswith("export ") and executed[1].startswith("srun "), executed
    names = [line for line in lines if "--job-name" in line]
    assert len(names) == 1 and " " not in names[0].removeprefix("#SBATCH ")


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
@pytest.mark.parametrize("where", [".", "jobs"])
def test_a_folder_where_others_write_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int, where: str
) -> None:
    pytest.importorskip("submitit")
    commands(tmp_path / "bin", monkeypatch)
    top = tmp_path / "out"
    (top / "jobs").mkdir(parents=True)
    (top / where).chmod(mode)
    with pytest.raises(InfrastructureError, match="nobody else can write to"):
        slurm.Cluster(top, load(written(tmp_path)))


def test_a_link_in_place_of_the_folder_of_jobs_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    commands(tmp_path / "bin", monkeypatch)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "jobs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InfrastructureError, match="nobody else can write to"):
        slurm.Cluster(tmp_path / "out", load(written(tmp_path)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be handed a folder of somebody else")
@pytest.mark.parametrize("where", [".", "jobs"])
def test_the_folder_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str) -> None:
    """Made by ``nobody``: root resumes the run that lies there."""
    pytest.importorskip("submitit")
    commands(tmp_path / "bin", monkeypatch)
    top, proof = tmp_path / "foreign", tmp_path / "proof"
    foreign(top, proof)
    os.chown(top / where, NOBODY, NOBODY)
    with pytest.raises(InfrastructureError, match="nobody else can write to"):
        slurm.run(
            written(tmp_path), load(written(tmp_path)), local.Options(resume=True, out=top, workloads=[str(FAULTY)])
        )
    assert not proof.exists()


def test_folders_that_a_run_makes_are_its_users_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    commands(tmp_path / "bin", monkeypatch)
    before = os.umask(0)
    try:
        slurm.Cluster(tmp_path / "results" / "out", load(written(tmp_path)))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / "results" / path).stat().st_mode) for path in ("out", "out/jobs")]
    assert modes == [0o755, 0o700]


def test_a_folder_whose_name_would_be_lines_of_a_script_is_refused(tmp_path: Path) -> None:
    options = local.Options(out=tmp_path / "a\ntouch x", workloads=[str(FAULTY)])
    with pytest.raises(UsageError, match="no batch script can name this folder"):
        slurm.run(written(tmp_path), load(written(tmp_path)), options)


@pytest.mark.parametrize("name", ["../x", "/x", "a\nb", hostile.ESCAPE])
def test_pools_of_merged_runs_are_names_in_their_folder(tmp_path: Path, name: str) -> None:
    import report_data as data

    from perfport.run.merge import Merged, Part, write

    top = tmp_path / "a" / "b" / "top"
    top.mkdir(parents=True)
    Writer(top).text("experiment.yaml", "x")
    data.store(tmp_path / "part", [data.record("a")])
    before = hostile.files_of(tmp_path)
    part = Part(name, tmp_path / "part", None, "")
    folders = write(top, [part], Merged([part.stored], [[]], []))
    assert [folder.parent for folder in folders] == [top] and re.fullmatch("top-[a-z0-9-]+", folders[0].name)
    assert all(top in path.parents for path in hostile.files_of(tmp_path) - before)


def test_no_module_of_the_suite_unpickles_a_file() -> None:
    loads = re.compile(
        r"pickle\.loads?\(|pickle_load|allow_pickle=True|joblib|yaml\.(?:unsafe_|full_)?load\((?!text, _Loader)"
    )
    modules = {path: path.read_text() for path in Path(str(slurm.__file__)).parents[1].rglob("*.py")}
    assert [str(path) for path, source in modules.items() if loads.search(source)] == []
