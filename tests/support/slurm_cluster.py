"""A real Slurm of two nodes on this machine, without systemd, for as long as a test runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
STARTS_WITHIN_S = 30
CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=0
KillWait=2
SchedulerParameters=batch_sched_delay=1,sched_interval=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=short Nodes=n1,n2 Default=YES MaxTime=INFINITE
"""


def missing() -> str:
    """Why no cluster can be started here; empty if one can."""
    absent = [name for name in COMMANDS if not _find(name)]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)}); apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need root"


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Run a cluster with one partition, ``short``, of two nodes; yields the variables that its users need."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    host = socket.gethostname().split(".")[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=host, folder=folder, ports=ports))
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    for name in ("state", "spool-n1", "spool-n2"):
        (folder / name).mkdir()
    variables = {"SLURM_CONF": str(configuration)}
    munge = [f"--{what}={folder}/munge.{what}" for what in ("socket", "seed-file", "pid-file", "log-file")]
    daemons = [
        ["munged", "--foreground", "--force", f"--key-file={key}", *munge],
        ["slurmctld", "-D", "-f", str(configuration)],
        *(["slurmd", "-D", "-N", node, "-f", str(configuration)] for node in ("n1", "n2")),
    ]
    with contextlib.ExitStack() as running:
        for command in daemons:
            running.enter_context(_daemon(command, {**os.environ, **variables}, folder))
            if command[0] == "munged":
                _until(lambda: (folder / "munge.socket").exists(), folder)
        _until(lambda: _idle(variables) == 2, folder)
        try:
            yield variables
        finally:
            _call(variables, "scancel", "--signal=KILL", "--full", "--state=RUNNING")
            _call(variables, "scancel", "--state=PENDING")
            _until(lambda: not _call(variables, "squeue", "--noheader"), folder)


@contextlib.contextmanager
def _daemon(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[None]:
    program = _find(command[0])
    assert program
    with (folder / "daemons.log").open("a") as log:
        process = subprocess.Popen([program, *command[1:]], env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _call(variables: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _idle(variables: dict[str, str]) -> int:
    return _call(variables, "sinfo", "--noheader", "--Node", "--format=%T").split().count("idle")


def _until(condition: object, folder: Path) -> None:
    assert callable(condition)
    ends = time.monotonic() + STARTS_WITHIN_S
    while not condition():
        assert time.monotonic() < ends, f"Slurm did not start or end: {(folder / 'daemons.log').read_text()[-2000:]}"
        time.sleep(0.1)
