"""vocab_tree: builds give the same tree in every mode, on any number of devices, and fail clean."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfport.backend import OpenDevice
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UsageError
from perfport.workload import UnsupportedError
from perfport.workloads.vocab_tree import data, passes, reference, tree, tree_problems
from perfport.workloads.vocab_tree.builder.build import Build
from perfport.workloads.vocab_tree.builder.host_memory import PrivatePoints, SharedPoints
from perfport.workloads.vocab_tree.builder.jobs import Nodes, Settings
from perfport.workloads.vocab_tree.builder.queues import Node
from perfport.workloads.vocab_tree.builder.workers import LocalWorker, ProcessWorker, loader_of
from perfport.workloads.vocab_tree.variants import peers, tree_peers

CLUSTERS, LEVELS, ITERATIONS, SEED, DIMS = 5, 4, 5, 11, 32
LIMIT = 120_000  # bytes: a chunk holds about 1400 points
SOURCE = {"two_kernels": True, "resident": False}
LOADERS: dict[str, passes.Loader] = {}


def settings(**changes: Any) -> Settings:
    """The settings of all builds here."""
    return Settings(CLUSTERS, LEVELS, ITERATIONS, SEED, DIMS, threads=2, **changes)


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """Points with duplicates, so that classes become empty."""
    made = data.generate(6000, DIMS, 3)
    made[:300], made[1000:1400] = made[300:600], made[1000]
    return made


@pytest.fixture(scope="module")
def expected(points: np.ndarray) -> tree.Tree:
    return reference.build(points, CLUSTERS, LEVELS, ITERATIONS, SEED)


@pytest.fixture
def local(device: OpenDevice) -> Iterator[Callable[[Settings], LocalWorker]]:
    """Makes workers on a device of this process."""
    loader = LOADERS.setdefault(device.info.id, loader_of(device))
    made: list[LocalWorker] = []

    def make(chosen: Settings) -> LocalWorker:
        made.append(
            LocalWorker(device, loader, chosen, passes.defaults(device.info, chosen.clusters, chosen.two_kernels))
        )
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"resident": False},
        {"resident": False, "batch": 1},
        {"resident": False, "fragment": 100},
        {"batch": 3},
        {"memory_limit": LIMIT},
        {"memory_limit": LIMIT, "kept": 0},
        {"memory_limit": LIMIT, "kept": 2},
        {"memory_limit": LIMIT, "places": 5, "kept": 5},
        {"memory_limit": LIMIT, "host_limit": 1000},
        {"memory_limit": 30_000, "host_limit": 1000, "fragment": 300},
        SOURCE,
        {**SOURCE, "batch": 1},
        {**SOURCE, "fragment": 100, "batch": 3},
        {**SOURCE, "memory_limit": LIMIT},
        {**SOURCE, "memory_limit": LIMIT, "kept": 0},
        {**SOURCE, "memory_limit": 30_000, "host_limit": 1000, "fragment": 300},
    ],
    ids=str,
)
def test_every_mode_gives_the_reference_tree(
    local: Callable[[Settings], LocalWorker], points: np.ndarray, expected: tree.Tree, changes: dict[str, Any]
) -> None:
    chosen = settings(**changes)
    worker = local(chosen)
    before = worker.inner.device.allocated
    build = Build(PrivatePoints(points), chosen, [worker])
    assert build.run().same_as(expected)
    report = build.report
    assert report.reseeded > 0 and sum(report.nodes.values()) >= 1
    assert report.chunk_loads == report.chunk_loads_expected
    assert set(report.seconds_by_level) == set(range(LEVELS))
    streamed = "memory_limit" in changes
    assert (report.nodes["large"] > 0) is streamed and (report.chunk_loads > 0) is streamed
    if streamed:
        assert (report.chunk_loads < report.chunk_loads_naive) is (chosen.kept > 0)
    worker.inner.rest()
    assert worker.inner.device.allocated == before


@pytest.mark.parametrize("changes", [{}, {"memory_limit": LIMIT}, SOURCE, {**SOURCE, "memory_limit": LIMIT}], ids=str)
def test_empty_classes_of_points_of_any_length(
    local: Callable[[Settings], LocalWorker], changes: dict[str, Any]
) -> None:
    """Descriptors have one length, so that a centre without its own half of the square would hardly be seen."""
    rng = np.random.default_rng(5)
    few = (rng.integers(0, 256, (40, DIMS)) * rng.uniform(0.02, 1, (40, 1))).astype(np.uint8)
    points = few[rng.integers(0, 40, 3000)]
    points[::50] = rng.integers(0, 256, points[::50].shape)
    chosen = settings(**changes)
    build = Build(PrivatePoints(points), chosen, [local(chosen)])
    assert build.run().same_as(reference.build(points, CLUSTERS, LEVELS, ITERATIONS, SEED))
    assert build.report.reseeded > 10


@pytest.mark.parametrize("changes", [{}, SOURCE], ids=str)
def test_host_threads_in_pieces_give_the_same_tree(
    local: Callable[[Settings], LocalWorker],
    points: np.ndarray,
    expected: tree.Tree,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
) -> None:
    """What is split among threads for large trees alone is so here for a small one."""
    monkeypatch.setattr("perfport.workloads.vocab_tree.builder.resident.NODES_EACH", 3)
    monkeypatch.setattr("perfport.workloads.vocab_tree.builder.resident.BYTES_EACH", 5 * 2 * CLUSTERS * DIMS)
    monkeypatch.setattr("perfport.workloads.vocab_tree.builder.assembly.LEAVES", 7)
    monkeypatch.setattr("perfport.workloads.vocab_tree.builder.merging.MERGED", 2)
    monkeypatch.setattr("perfport.workloads.vocab_tree.builder.preparing.BLOCK", 64)
    chosen = settings(**changes)
    assert Build(PrivatePoints(points), chosen, [local(chosen)]).run().same_as(expected)


def test_jobs_hold_no_host_memory_once_loaded_and_the_largest_comes_first(
    local: Callable[[Settings], LocalWorker], points: np.ndarray, expected: tree.Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings(memory_limit=LIMIT)
    worker = local(chosen)
    build = Build(PrivatePoints(points), chosen, [worker])
    held, sizes, split, put = [], [], worker.split, build.queues.put

    def comes() -> bool:
        """Whether a job beside the one that is being split is taken or waits."""
        return build.queues._running > 1 or any(build.queues._waiting.values())

    def watched(nodes: Nodes) -> Any:
        deadline = time.monotonic() + 10  # it is gathered by another thread, which may not have got there
        while comes() and not build.staging._held and time.monotonic() < deadline:
            time.sleep(0.001)
        held.append(len(build.staging._held))
        return split(nodes)

    def noted(node: Node) -> None:
        sizes.append((node.level, node.size))
        put(node)

    monkeypatch.setattr(worker, "split", watched)
    monkeypatch.setattr(build.queues, "put", noted)
    assert build.run().same_as(expected)
    assert max(held) == 1  # of the job that comes next
    children = [size for level, size in sizes if level == 1]
    assert len(children) > 2 and children == sorted(children, reverse=True)


@pytest.mark.parametrize("changes", [{}, SOURCE], ids=str)
def test_reversed_traversal_loads_as_the_source_says(
    local: Callable[[Settings], LocalWorker], points: np.ndarray, changes: dict[str, Any]
) -> None:
    """One level, no empty classes: C + (passes - 1)(C - 1) for the only large node, also where kernels pass in turn."""
    chosen = Settings(2, 1, 7, SEED, DIMS, memory_limit=LIMIT, **changes)
    worker = local(chosen)
    build = Build(PrivatePoints(points[2000:]), chosen, [worker])
    build.run()
    report, number = build.report, -(-4000 // worker.plan.chunk)
    assert report.reseeded == 0 and number > 2 and report.passes > 2
    assert not changes or report.passes % 2 == 1  # and the last one, which classifies alone
    assert report.chunk_loads == number + (report.passes - 1) * (number - 1)
    assert report.chunk_loads_naive == number * report.passes
    assert report.loaded_bytes == report.chunk_loads * 4000 * DIMS // number


@pytest.mark.parametrize("changes", [{}, SOURCE], ids=str)
def test_a_build_keeps_to_its_memory(
    local: Callable[[Settings], LocalWorker], points: np.ndarray, changes: dict[str, Any]
) -> None:
    """Neither device memory nor prepared host memory exceeds what is allowed; the source prepares whole nodes."""
    chosen = settings(memory_limit=LIMIT, host_limit=40_000, **changes)
    worker = local(chosen)
    device, most = worker.inner.device, [0]
    before, empty = device.allocated, device.empty

    def watched(nbytes: int) -> Any:
        buffer = empty(nbytes)
        most[0] = max(most[0], device.allocated - before)
        return buffer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "empty", watched)
        build = Build(PrivatePoints(points), chosen, [worker])
        build.run()
    assert 0 < most[0] <= LIMIT
    assert (
        0
        < build.report.prepared_bytes
        <= (points.nbytes + passes.RUN * DIMS if changes else max(40_000, worker.plan.points * DIMS))
    )


def test_quality_is_that_of_faiss(local: Callable[[Settings], LocalWorker]) -> None:
    """Real descriptors, the same first points and iterations: residuals within 0.5 %."""
    pytest.importorskip("faiss")
    pytest.importorskip("cv2")
    parameters = tree_problems.TreeBuild.Parameters(points=8000, levels=1, source="sift")
    problem = tree_problems.TreeBuild(parameters, 7)
    chosen = Settings(10, 1, 10, 7, 128)
    found = Build(PrivatePoints(problem.points), chosen, [local(chosen)]).run()
    peer = object.__new__(peers.FaissTree)
    peer.data = problem
    peer.prepare()
    words = peer.compute()["words"]
    own, theirs = (tree_problems.residual_of_words(problem.points, w) for w in (found.points, words))
    assert abs(own / theirs - 1) < 0.005


@pytest.mark.parametrize("padding", [2, 4])
def test_a_tree_by_pytorch_is_the_reference_s(padding: int) -> None:
    """What it does on a GPU, on the host; FP32 decides few points otherwise than fixed point does."""
    torch = pytest.importorskip("torch")
    parameters = tree_problems.TreeBuild.Parameters(points=997, dims=32, levels=4, clusters=5, iterations=6)
    problem = tree_problems.TreeBuild(parameters, 7)
    peer = object.__new__(tree_peers.TorchTree)
    peer.data, peer.torch, peer.setup = problem, torch, SimpleNamespace(tunables={"padding": padding})
    peer.uploaded = lambda: torch.from_numpy(problem.points).float()  # type: ignore[method-assign]
    peer.outputs = peer.compute()
    words = peer.results()["words"]
    errors = problem.check({"words": words}, tree_problems.WORDS)
    assert words.dtype == np.uint64 and all(error.passed for error in errors.values()), errors
    assert words.min() >> np.uint64(59) < words.max() >> np.uint64(59), "leaves of different depth"
    own, expected = (np.unique(w, return_inverse=True)[1] for w in (words, problem.tree.points))
    together = (own[:, None] == own) == (expected[:, None] == expected)
    assert together.mean() > 0.99 and abs(len(np.unique(own)) / len(np.unique(expected)) - 1) < 0.05
    with pytest.raises(UnsupportedError, match="memory_share"):
        limited = tree_problems.TreeBuild.Parameters(**{**parameters.model_dump(), "memory_share": 0.5})
        peer.data = tree_problems.TreeBuild(limited, 7)
        peer.prepare()


def test_bad_settings_are_refused(local: Callable[[Settings], LocalWorker], points: np.ndarray) -> None:
    with pytest.raises(
        UsageError, match=r"memory_limit: expected at least \d+ bytes, for chunks of 32 points, got 5000"
    ):
        local(settings(memory_limit=5000))
    worker = local(settings())
    with pytest.raises(UsageError, match="expected dtype uint8, got float32"):
        Build(PrivatePoints(points.astype(np.float32)), settings(), [worker])
    with pytest.raises(UsageError, match="at least as many points as clusters"):
        Build(PrivatePoints(points[:4]), settings(), [worker])


def test_an_error_on_the_device_ends_the_build(
    local: Callable[[Settings], LocalWorker], points: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = local(settings(resident=False))
    calls = []

    def split(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise RuntimeError("the device failed")
        return worker.inner.split(*args)

    monkeypatch.setattr(worker, "split", split)
    with pytest.raises(RuntimeError, match="the device failed"):
        Build(PrivatePoints(points), settings(resident=False), [worker]).run()


def test_an_error_of_the_sorting_thread_ends_the_build(
    local: Callable[[Settings], LocalWorker], points: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise MemoryError("no room for the leaves")

    monkeypatch.setattr(Build, "_note", fail)
    with pytest.raises(MemoryError, match="no room for the leaves"):
        Build(PrivatePoints(points), settings(), [local(settings())]).run()


# --- several devices ----------------------------------------------------------------------------------------------


@pytest.fixture
def crew(opencl_infos: list[DeviceInfo], points: np.ndarray) -> Iterator[Callable[..., Any]]:
    """Makes points and workers in processes, one for each of two devices (or one device twice)."""
    shared = SharedPoints(points.shape)
    shared.array[:] = points
    infos = [*opencl_infos, *opencl_infos][:2]
    made: list[ProcessWorker] = []

    def make(chosen: Settings) -> tuple[SharedPoints, list[ProcessWorker]]:
        tunables = [passes.defaults(info, chosen.clusters, chosen.two_kernels) for info in infos]
        made.extend(ProcessWorker(info, chosen, own) for info, own in zip(infos, tunables, strict=True))
        return shared, made[-2:]

    yield make
    for worker in made:
        worker.close()
    shared.free()


@pytest.mark.parametrize(
    "changes",
    [{"memory_limit": LIMIT}, {"resident": False, "fragment": 200}, SOURCE, {**SOURCE, "memory_limit": LIMIT}],
    ids=str,
)
def test_two_devices_give_the_same_tree(crew: Callable[..., Any], expected: tree.Tree, changes: dict[str, Any]) -> None:
    chosen = settings(**changes)
    shared, workers = crew(chosen)
    build = Build(shared, chosen, workers)
    assert build.run().same_as(expected)
    report = build.report
    assert report.nodes["shared"] == 1 and not report.lost  # the root: no child has more than half of the points
    assert (report.nodes["large"] > 0) is ("memory_limit" in changes)  # by one device each
    assert report.chunk_loads == report.chunk_loads_expected
    assert 0 < report.streamed_seconds < report.seconds and report.pass_seconds < 2 * report.seconds


@pytest.mark.parametrize(
    ("changes", "method", "fatal"),
    [
        ({"memory_limit": LIMIT}, "run_pass", 4),  # of the root, with the other
        ({"memory_limit": LIMIT}, "open_node", 3),  # of a child, alone
        ({"resident": False, "fragment": 200}, "split", 2),
        ({**SOURCE, "memory_limit": LIMIT}, "run_pass", 4),
    ],
    ids=str,
)
def test_a_killed_worker_is_reported_and_the_others_finish(
    crew: Callable[..., Any], expected: tree.Tree, changes: dict[str, Any], method: str, fatal: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    chosen = settings(**changes)
    shared, workers = crew(chosen)
    calls: list[ProcessWorker] = []

    def killing(worker: ProcessWorker, call: Callable[..., Any], *args: Any) -> Any:
        calls.append(worker)
        if len(calls) == fatal:
            os.kill(worker.pid, signal.SIGKILL)
        return call(*args)

    for worker in workers:
        monkeypatch.setattr(worker, method, partial(killing, worker, getattr(worker, method)))
    build = Build(shared, chosen, workers)
    assert build.run().same_as(expected)
    (lost,) = build.report.lost
    assert "SIGKILL" in lost and calls[fatal - 1].name in lost


def test_a_build_without_workers_left_fails_clean(
    crew: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings()
    shared, workers = crew(chosen)
    monkeypatch.chdir(tmp_path)
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
    threads = threading.active_count()
    with pytest.raises(InfrastructureError, match=r"no device worker is left: .*SIGKILL"):
        Build(shared, chosen, workers).run()
    assert not list(tmp_path.iterdir()) and threading.active_count() <= threads


def test_errors_of_a_process_reach_the_build(opencl_infos: list[DeviceInfo]) -> None:
    info = opencl_infos[0]
    with pytest.raises(UsageError, match="memory_limit: expected at least"):
        ProcessWorker(info, settings(memory_limit=100), passes.defaults(info, CLUSTERS))


def test_a_process_ends_quietly_when_its_build_is_gone(
    opencl_infos: list[DeviceInfo], capfd: pytest.CaptureFixture[str]
) -> None:
    info = opencl_infos[0]
    worker = ProcessWorker(info, settings(), passes.defaults(info, CLUSTERS))
    os.kill(worker.pid, signal.SIGSTOP)
    worker._sender.send(("rest", ()))
    worker._connection.close()
    os.kill(worker.pid, signal.SIGCONT)
    worker.close()
    assert worker._process.returncode == 0 and "Traceback" not in capfd.readouterr().err
