"""Device workers: one per device, in this process or in one of its own, all with the same four operations."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from perfport import backend
from perfport.backend import OpenDevice
from perfport.device import DeviceInfo

from .. import passes
from .jobs import Nodes, Outcome, Settings
from .memory import Plan, plan
from .resident import Kernels, Resident
from .streamed import PassResult, Streamed

KERNELS = Path(__file__).parent.parent / "kernels"


class WorkerLost(Exception):
    """The process of a device worker ended."""


class PrivatePoints:
    """Points in this process's memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def free(self) -> None:
        """Nothing to give back by hand."""


class SharedPoints:
    """Points in memory that processes share; a worker opens it by name."""

    def __init__(self, shape: Sequence[int], name: str | None = None, dtype: Any = np.uint8) -> None:
        self.shape, self.dtype, self.owner = tuple(shape), np.dtype(dtype), name is None
        nbytes = max(1, int(np.prod(self.shape)) * self.dtype.itemsize)
        self.memory = SharedMemory(name, create=self.owner, size=nbytes)
        if not self.owner:  # or this process would remove it at its end
            resource_tracker.unregister(self.memory._name, "shared_memory")  # type: ignore[attr-defined]
        self.array: np.ndarray = np.ndarray(self.shape, self.dtype, self.memory.buf)

    @property
    def token(self) -> tuple[Sequence[int], str]:
        """What another process opens it by."""
        return self.shape, self.memory.name

    def free(self) -> None:
        """Close it; the owner also removes it."""
        self.array = np.empty(0, self.dtype)
        self.memory.close()
        if self.owner:
            self.memory.unlink()


def loader_of(device: OpenDevice) -> passes.Loader:
    """Return a function that compiles and loads a kernel of this workload, each build of a file once."""
    built: dict[tuple[str, str], Any] = {}

    def load(file: str, name: str, **macros: Any) -> Any:
        key = file, str(sorted(macros.items()))
        if key not in built:
            text = (KERNELS / file).read_text()
            artifact = backend.get(device.info.backend).build(file, text, macros, device.target)
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
        self.plan: Plan = plan(min(limit, free), settings.clusters, settings.dims, settings.batch)
        self.kernels = Kernels(device, loader, settings, tunables)
        self._resident = Resident(device, self.kernels, settings, self.plan)
        self._streamed: Streamed | None = None
        self._gatherers = ThreadPoolExecutor(settings.threads)

    def split(self, nodes: Nodes, rows: np.ndarray, order: np.ndarray) -> Outcome:
        """Split resident nodes; see `Resident.split`."""
        self.device.attach()
        return self._resident.split(nodes, rows, order)

    def open_node(self, points: np.ndarray, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """Begin with a large node: the points of ``index`` (all unless given); ``chunks`` are this device's."""
        self.device.attach()
        self.rest()

        def rows(first: int, last: int, out: np.ndarray) -> np.ndarray:
            if index is None:
                return points[first:last]
            self._gather(points, index[first:last], out)
            return out

        self._streamed = Streamed(self.device, self.kernels, self.settings, rows, chunks)

    def _gather(self, points: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        gather(self._gatherers, self.settings.threads, points, index, out)

    def run_pass(self, centres: np.ndarray, labels: bool) -> PassResult:
        """Do a pass over the open node's chunks."""
        assert self._streamed
        self.device.attach()
        return self._streamed.run(centres, labels)

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
        self._gatherers.shutdown()


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

    def share(self, shape: Sequence[int]) -> PrivatePoints | SharedPoints:
        """Allocate host memory for points that this worker can reach."""
        ...

    def split(self, nodes: Nodes, rows: Any, order: np.ndarray) -> Outcome:
        """As of `DeviceWorker`, with points as `share` returned them."""
        ...

    def open_node(self, points: Any, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """As of `DeviceWorker`."""
        ...

    def run_pass(self, centres: np.ndarray, labels: bool) -> PassResult:
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
        self.run_pass, self.farthest = inner.run_pass, inner.farthest
        self.close_node, self.close = inner.close_node, inner.close

    def share(self, shape: Sequence[int]) -> PrivatePoints:
        """Ordinary memory."""
        return PrivatePoints(np.empty(shape, np.uint8))

    def split(self, nodes: Nodes, rows: PrivatePoints, order: np.ndarray) -> Outcome:
        """As of `DeviceWorker`."""
        return self.inner.split(nodes, rows.array, order)

    def open_node(self, points: PrivatePoints, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """As of `DeviceWorker`."""
        self.inner.open_node(points.array, index, chunks)


class ProcessWorker:
    """A device in a process of its own, which may die without taking the build along."""

    def __init__(self, info: DeviceInfo, settings: Settings, tunables: Mapping[str, Any]) -> None:
        self.name = info.id
        self._lock = threading.Lock()
        self._connection, theirs = multiprocessing.Pipe()
        # Not a multiprocessing.Process: those may not be started by the harness's own workers, which are daemons.
        command = [sys.executable, "-m", f"{__package__}.serving", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self._connection.send((info, settings, dict(tunables)))
        self.plan: Plan = self._answer()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def _answer(self) -> Any:
        try:
            ok, value = self._connection.recv()
        except (EOFError, ConnectionError, OSError):
            raise WorkerLost(f"{self.name}: its worker ended ({self._ending()})") from None
        if not ok:
            raise value
        return value

    def _call(self, method: str, *args: Any) -> Any:
        with self._lock:
            try:
                self._connection.send((method, args))
            except (ConnectionError, OSError):
                raise WorkerLost(f"{self.name}: its worker ended ({self._ending()})") from None
            return self._answer()

    def share(self, shape: Sequence[int]) -> SharedPoints:
        """Shared memory."""
        return SharedPoints(shape)

    def split(self, nodes: Nodes, rows: SharedPoints, order: np.ndarray) -> Outcome:
        """As of `DeviceWorker`."""
        return self._call("split", nodes, rows.token, order)

    def open_node(self, points: SharedPoints, index: np.ndarray | None, chunks: list[tuple[int, int]]) -> None:
        """As of `DeviceWorker`."""
        self._call("open_node", points.token, index, chunks)

    def run_pass(self, centres: np.ndarray, labels: bool) -> PassResult:
        """As of `DeviceWorker`."""
        return self._call("run_pass", centres, labels)

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

    def _ending(self) -> str:
        """How the process ended."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "no exit code yet"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
