"""Kernels compiled ahead, on the host's other cores, while the device measures.

For CUDA alone: its compiler needs no device. OpenCL runtimes compile what they load, and on a CPU the cores that
compile are those that are measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from ..backend import Artifact
from ..backend.offline import OfflineDevice
from ..machine.children import obey_parent
from ..machine.environment import usable_cores
from ..model.device import DeviceInfo
from ..workload import Session, build, discover
from .space import Config, name_of

#: Processes that compile: each holds inputs of its own.
MOST = 4
_sessions: dict[str, Session] = {}


def compile_ahead(info: DeviceInfo, paths: list[str], what: Mapping[str, Any], config: Config) -> dict[str, Artifact]:
    """Return what building a configuration compiles, as of `Session.artifacts`; what fails here fails again in earnest.

    Parameters
    ----------
    what : mapping
        ``workload``, ``problem``, ``variant``, ``parameters`` and ``seed``.
    """
    key = f"{what['workload']}/{what['problem']} {sorted(what['parameters'].items())}"
    workload = discover(paths, what["workload"])[what["workload"]]
    if key not in _sessions:
        _sessions.clear()
        cls = workload.problem(what["problem"])
        problem = cls(cls.Parameters.model_validate(what["parameters"]), what["seed"])
        _sessions[key] = Session(OfflineDevice(info), problem, workload.folder, timed=False)
    session = _sessions[key]
    known = set(session.artifacts)
    with contextlib.suppress(Exception):
        build(workload.variant(what["problem"], what["variant"]), session, config, {})
    return {name: artifact for name, artifact in session.artifacts.items() if name not in known}


class Ahead:
    """Compiles configurations before they are measured.

    Parameters
    ----------
    info : DeviceInfo
    paths : list of str
        Further workload folders.
    """

    def __init__(self, info: DeviceInfo, paths: list[str]) -> None:
        self._info, self._paths = info, paths
        self.processes = min(MOST, usable_cores() - 1) if "cuda" in info.capabilities else 0
        self._pool: ProcessPoolExecutor | None = None
        self._jobs: dict[str, Future[dict[str, Artifact]]] = {}

    def begin(self, what: Mapping[str, Any], config: Config) -> None:
        """Begin to compile a configuration, where that can be done ahead."""
        if self.processes < 1:
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.processes, get_context("spawn"), initializer=obey_parent)
        self._jobs[name_of(config)] = self._pool.submit(compile_ahead, self._info, self._paths, dict(what), config)

    def take(self, config: Config, patience: float) -> dict[str, Artifact]:
        """Return what was compiled of a configuration; nothing where that took longer, or ended a process."""
        job = self._jobs.pop(name_of(config), None)
        try:
            return job.result(patience) if job else {}
        except Exception:  # a broken pool, too: the measuring process compiles, and says what is wrong
            self.close()
            return {}

    def close(self) -> None:
        """End the processes."""
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None
        self._jobs.clear()
