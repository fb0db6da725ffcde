"""Device workers: one per device, in this process or in one of its own, all with the same operations."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from perfport import backend
from perfport.workload import DeviceInfo, OpenDevice, read_source

from .. import passes
from .host_memory import Block, Points, PrivatePoints, SharedPoints, grown
from .jobs import Nodes, Outcome, Settings
from .mail import Receiver, Sender
from .memory import Plan, plan
from .merging import MergedResident, TwiceStreamed
from .resident import Kernels, Resident
from .streamed import PassResult, Streamed

KERNELS = Path(__file__).parent.parent / "kernels"


class WorkerLost(Exception):
    """The process of a device worker ended.

    Parameters
    ----------
    worker : Worker
    reason : str
    """

    def __init__(self, worker: Worker, reason: str) -> None:
        super().__init__(reason)
        self.worker = worker


def loader_of(device: OpenDevice) -> passes.Loader:
    """Return a function that compiles and loads a kernel of this workload, each build of a file once."""
    built: dict[tuple[str, str], Any] = {}

    def load(file: str, name: str, **macros: Any) -> Any:
        key = file, str(sorted(macros.items()))
        if key not in built:
            source = read_source(KERNELS / file)
            artifact = backend.get(device.info.backend).build(file, source, macros, device.target)
            built[key] = device.load(artifact)
        return built[key].kernel(name)

    return load


class DeviceWorker:
    """The operations of a build on one open device.

    Parameters
    ----------
    device : OpenDevice
    loader : callable
        As `loader_of` returns.
    settings : Settings
    tunables : dict
        Of the pass's kernel.
    """

    def __init__(
        self, device: OpenDevice, loader: passes.Loader, settings: Settings, tunables: Mapping[str, Any]
    ) -> None:
        self.device, self.settings = device, settings
        free = device.free_bytes()
        limit = settings.memory_limit or free - free // 10
        self.plan: Plan = plan(min(limit, free), settings.clusters, settings.dims, settings.batch, settings.places)
        self.kernels = Kernels(device, loader, settings, tunables)
        self._pool = ThreadPoolExecutor(settings.threads)
        resident = MergedResident if settings.two_kernels else Resident
        self._resident = resident(device, self.kernels, settings, self.plan, self._pool)
        self._streamed: Streamed | None = None

    def load(self, rows: np.ndarray, order: np.ndarray) -> None:
        """Bring the points of a job to the device; see `Resident.load`."""
        self.device.attach()
        self._resident.load(rows, order)

    def split(self, nodes: Nodes) -> Outcome:
        """Split the nodes whose points are loaded; see `Resident.split`."""
        self.device.attach()
        return self._resident.split(nodes)

    def open_node(self, points: np.ndarray, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """Begin with a large node; ``chunks`` are this device's.

        Its points are ``points``, or those of ``index``, which are then gathered at every load.
        """
        self.device.attach()
        self.rest()

        def rows(first: int, last: int, out: np.ndarray) -> None:
            assert index is not None
            gather(self._pool, self.settings.threads, points, index[first:last], out)

        streamed = TwiceStreamed if self.settings.two_kernels else Streamed
        source = points if index is None else rows
        self._streamed = streamed(self.device, self.kernels, self.settings, source, chunks)

    def run_pass(self, centres: np.ndarray, last: bool) -> PassResult:
        """Do a pass over the open node's chunks; see `Streamed.run`."""
        assert self._streamed
        self.device.attach()
        return self._streamed.run(centres, last)

    def farthest(self, centres: np.ndarray, new: np.ndarray, count: int) -> tuple[list[tuple[int, int]], int]:
        """Find candidates for empty classes; see `Streamed.farthest`."""
        assert self._streamed
        self.device.attach()
        return self._streamed.farthest(centres, new, count)

    def close_node(self) -> None:
        """End with the open node, if there is one."""
        self.device.attach()
        if self._streamed is not None:
            self._streamed.free()
            self._streamed = None

    def rest(self) -> None:
        """Give the device's memory back; the next job takes it again."""
        self.close_node()
        self._resident.free()

    def close(self) -> None:
        """Give memory and threads back."""
        self.rest()
        self._pool.shutdown()


def gather(pool: ThreadPoolExecutor, threads: int, points: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """Copy rows of points by index, by several threads."""
    cuts = np.linspace(0, len(index), threads + 1).astype(int)

    def part(first: int, last: int) -> None:
        np.take(points, index[first:last], axis=0, out=out[first:last], mode="clip")

    list(pool.map(part, cuts[:-1], cuts[1:]))


class Worker(Protocol):
    """What a build asks of a device."""

    name: str
    plan: Plan

    def share(self, nbytes: int) -> Block:
        """Return host memory that this worker, and every other of its kind, reaches; the next call takes it back."""
        ...

    def load(self, rows: Points, order: np.ndarray) -> None:
        """As of `DeviceWorker`; the rows may be given back afterwards."""
        ...

    def split(self, nodes: Nodes) -> Outcome:
        """As of `DeviceWorker`."""
        ...

    def open_node(self, points: Points, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """As of `DeviceWorker`."""
        ...

    def run_pass(self, centres: np.ndarray, last: bool) -> PassResult:
        """As of `DeviceWorker`."""
        ...

    def farthest(self, centres: np.ndarray, new: np.ndarray, count: int) -> tuple[list[tuple[int, int]], int]:
        """As of `DeviceWorker`."""
        ...

    def close_node(self) -> None:
        """As of `DeviceWorker`."""
        ...

    def close(self) -> None:
        """End the worker."""
        ...


class LocalWorker:
    """A device that is open in this process."""

    def __init__(
        self, device: OpenDevice, loader: passes.Loader, settings: Settings, tunables: Mapping[str, Any]
    ) -> None:
        self.inner = DeviceWorker(device, loader, settings, tunables)
        self.name, self.plan = device.info.id, self.inner.plan
        inner = self.inner
        self.split, self.run_pass, self.farthest = inner.split, inner.run_pass, inner.farthest
        self.close_node = inner.close_node
        self._block: np.ndarray = np.empty(0, np.uint8)

    def share(self, nbytes: int) -> PrivatePoints:
        """Page-locked memory, where the device has it; it stays until the worker closes."""
        if self._block.size < nbytes:
            self.inner.device.attach()
            self._block = self.inner.device.pinned(nbytes)
        return PrivatePoints(self._block[:nbytes])

    def close(self) -> None:
        """As of `Worker`."""
        self.inner.close()
        self._block = np.empty(0, np.uint8)

    def load(self, rows: Points, order: np.ndarray) -> None:
        """As of `DeviceWorker`."""
        self.inner.load(rows.array, order)

    def open_node(self, points: Points, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """As of `DeviceWorker`."""
        self.inner.open_node(points.array, index, chunks)


class ProcessWorker:
    """A device in a process of its own, which may die without taking the build along."""

    def __init__(self, info: DeviceInfo, settings: Settings, tunables: Mapping[str, Any]) -> None:
        self.name = info.id
        self._lock = threading.Lock()
        self._connection, theirs = multiprocessing.Pipe()
        self._sender, self._receiver = Sender(self._connection), Receiver(self._connection)
        self._block: SharedPoints | None = None
        # Not a multiprocessing.Process: those may not be started by the harness's own workers, which are daemons.
        command = [sys.executable, "-m", f"{__package__}.serving", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self._sender.send((info, settings, dict(tunables)))
        self.plan: Plan = self._answer()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def _answer(self) -> Any:
        try:
            ok, value = self._receiver.receive()
        except (EOFError, ConnectionError, OSError):
            raise WorkerLost(self, f"{self.name}: its worker ended ({self._ending()})") from None
        if not ok:
            raise value
        return value

    def _call(self, method: str, *args: Any) -> Any:
        with self._lock:
            try:
                self._sender.send((method, args))
            except (ConnectionError, OSError):
                raise WorkerLost(self, f"{self.name}: its worker ended ({self._ending()})") from None
            return self._answer()

    def share(self, nbytes: int) -> SharedPoints:
        """Shared memory; it stays until the worker closes."""
        self._block = grown(self._block, nbytes)
        return self._block

    def load(self, rows: Points, order: np.ndarray) -> None:
        """As of `DeviceWorker`."""
        self._call("load", rows.token, order)

    def split(self, nodes: Nodes) -> Outcome:
        """As of `DeviceWorker`."""
        return self._call("split", nodes)

    def open_node(self, points: Points, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """As of `DeviceWorker`."""
        self._call("open_node", points.token, index, chunks)

    def run_pass(self, centres: np.ndarray, last: bool) -> PassResult:
        """As of `DeviceWorker`."""
        return self._call("run_pass", centres, last)

    def farthest(self, centres: np.ndarray, new: np.ndarray, count: int) -> tuple[list[tuple[int, int]], int]:
        """As of `DeviceWorker`."""
        return self._call("farthest", centres, new, count)

    def close_node(self) -> None:
        """As of `DeviceWorker`."""
        self._call("close_node")

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._receiver.close()
        self._sender.close()
        if self._block is not None:
            self._block.free()
            self._block = None

    def _ending(self) -> str:
        """How the process ended."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "no exit code yet"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
