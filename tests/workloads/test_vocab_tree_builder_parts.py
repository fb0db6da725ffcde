"""vocab_tree: the parts of a build, each for itself: chunks, plans, queues, host memory, messages, assembly."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfport.workload import UsageError
from perfport.workloads.vocab_tree import data, reference
from perfport.workloads.vocab_tree.builder import assembly, chunks, memory
from perfport.workloads.vocab_tree.builder.crew import Chunk, by_class
from perfport.workloads.vocab_tree.builder.host_memory import PrivatePoints, SharedPoints, Staging
from perfport.workloads.vocab_tree.builder.jobs import Nodes, Settings, Splits
from perfport.workloads.vocab_tree.builder.mail import Receiver, Sender
from perfport.workloads.vocab_tree.builder.queues import Node, Queues
from perfport.workloads.vocab_tree.builder.report import Report
from perfport.workloads.vocab_tree.variants import builds


@given(st.integers(1, 30), st.integers(1, 12), st.integers(2, 9), st.data())
def test_chunk_loads_follow_the_formula(number: int, rounds: int, places: int, drawn: st.DataObject) -> None:
    kept = drawn.draw(st.integers(0, places))
    traversal, held, loaded = chunks.Traversal(number, kept, places), {}, 0
    for turn in range(rounds):
        order = [traversal.advance() for _ in range(number)]
        assert [visit.chunk for visit in order if visit] == list(chunks.walk(number, turn, kept))
        assert sorted(visit.chunk for visit in order if visit) == list(range(number))
        for visit in order:
            assert visit and (visit.missing or held[visit.place] == visit.chunk)
            held[visit.place] = visit.chunk
            loaded += visit.missing
        assert traversal.advance(onward=False) is None
    assert loaded == chunks.loads(number, rounds, kept)
    if kept == 1:
        assert loaded == number + (rounds - 1) * (number - 1)
    if kept == 0:
        assert loaded == number * rounds


@given(st.integers(1, 12), st.integers(2, 5), st.data())
def test_a_busy_place_is_not_loaded_to(number: int, places: int, drawn: st.DataObject) -> None:
    kept = drawn.draw(st.integers(0, places))
    traversal, freely = chunks.Traversal(number, kept, places), chunks.Traversal(number, kept, places)
    for _ in range(4 * number):
        wanted = freely.advance()
        assert wanted
        busy = drawn.draw(st.sets(st.integers(0, places - 1)))
        visit = traversal.advance(busy)
        if wanted.missing and wanted.place in busy:
            assert visit is None
            visit = traversal.advance()
        assert visit == wanted


@given(
    st.integers(10**5, 2 * 10**11), st.integers(2, 256), st.sampled_from([16, 64, 128]), st.integers(1, 20_000),
    st.integers(2, 16),
)  # fmt: skip
def test_plans_fit_the_limit(limit: int, clusters: int, dims: int, batch: int, places: int) -> None:
    if limit < memory.least(clusters, dims, places):
        with pytest.raises(UsageError, match="memory_limit"):
            memory.plan(limit, clusters, dims, batch, places)
        return
    plan = memory.plan(limit, clusters, dims, batch, places)
    assert plan.chunk * (places * dims + 9 + 4 * clusters / 1024) < limit and plan.chunk >= memory.LEAST_CHUNK
    assert plan.points * (2 * dims + 9) + plan.nodes * memory.node_bytes(clusters, dims) <= limit
    assert 1 <= plan.nodes <= batch and plan.points >= memory.LEAST_CHUNK


def test_a_record_keeps_the_build_of_median_duration() -> None:
    reports = [Report(seconds=seconds, loaded_bytes=100, pass_seconds=seconds / 2) for seconds in (9.0, 1.0, 4.0)]
    kept = builds.summary(reports)
    assert kept["pass_seconds"] == 2.0 and kept["streamed_bytes_per_second"] == 50.0 and "seconds" not in kept


@given(st.integers(2, 256), st.lists(st.integers(0, 200), min_size=1, max_size=5), st.booleans(), st.integers(0, 99))
def test_points_by_class(clusters: int, sizes: list[int], indexed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, clusters, sum(sizes)).astype(np.uint8)
    index = np.sort(rng.choice(5000, len(labels), replace=False)).astype(np.uint32)
    parts, first = [], 0
    for size in sizes:
        own = labels[first : first + size]
        counted = np.bincount(own, minlength=clusters).astype(np.uint32)
        parts.append(Chunk(first, counted, np.argsort(own, kind="stable").astype(np.uint32)))
        first += size
    with ThreadPoolExecutor(2) as pool:
        classes = by_class(parts, index if indexed else None, pool)
    assert len(classes) == clusters
    for number, own in enumerate(classes):
        wanted = np.flatnonzero(labels == number)
        assert own.dtype == np.uint32 and np.array_equal(own, index[wanted] if indexed else wanted)


def test_later_queues_wait_for_earlier_ones() -> None:
    queues = Queues(shared=3000, large=1000, fragment=50, batch=3)
    for size in (20, 70, 30, 2000, 40, 80, 3001, 10, 3000):
        queues.put(Node(0, size, size))
    assert queues.nodes == {"shared": 1, "large": 2, "ordinary": 2, "fragment": 4}
    shared = queues.take_shared()
    assert shared and shared.streamed and shared.size == 3001 and queues.take_shared() is None
    jobs = []
    for _ in range(6):
        job = queues.take()
        assert job
        jobs.append((job.kind, [node.size for node in job.nodes]))
        queues.done()
    ordinary, fragments = [("ordinary", [70]), ("ordinary", [80])], [("fragment", [20, 30, 40]), ("fragment", [10])]
    assert jobs == [("large", [2000]), ("large", [3000]), *ordinary, *fragments]
    assert queues.take() is None


def test_a_job_that_is_given_back_comes_first() -> None:
    queues = Queues(shared=3000, large=1000, fragment=50, batch=2)
    for size in (10, 20, 30):
        queues.put(Node(0, size, size))
    job = queues.take()
    assert job
    queues.give_back(job)
    again = queues.take()
    assert again and [node.size for node in again.nodes] == [10, 20]


def test_staging_makes_others_wait() -> None:
    made: list[int] = []

    def share(nbytes: int) -> PrivatePoints:
        made.append(nbytes)
        return PrivatePoints(np.zeros(nbytes, np.uint8))

    staging, order = Staging(256, share), []
    first, give_first = staging.take((7, 10))
    second, give_second = staging.take((100,))
    first.array[:], second.array[:] = 1, 2
    assert first.array.sum() == 70 and second.array.sum() == 200
    thread = threading.Thread(target=lambda: (staging.take((75, 2)), order.append("third")))
    thread.start()
    order.append("before")
    give_first()  # 128 bytes at the front: 156 are free, but not in array piece
    thread.join(0.2)
    assert order == ["before"]
    give_second()
    thread.join(10)
    assert order == ["before", "third"] and staging.most == 170 and made == [256]


def test_staging_grows_for_what_is_larger_and_alone() -> None:
    staging = Staging(100, lambda nbytes: PrivatePoints(np.zeros(nbytes, np.uint8)))
    small, give = staging.take((100,))
    thread = threading.Thread(target=staging.take, args=((1000,),))
    thread.start()
    thread.join(0.1)
    assert thread.is_alive() and small.array.size == 100
    give()
    thread.join(10)
    assert not thread.is_alive() and staging.most == 1000


@given(st.lists(st.tuples(st.integers(1, 300), st.booleans()), max_size=30))
def test_pieces_never_overlap(steps: list[tuple[int, bool]]) -> None:
    staging, held = Staging(1000, lambda nbytes: PrivatePoints(np.zeros(nbytes, np.uint8))), []
    for number, (size, gives) in enumerate(steps):
        if gives and held:
            held.pop(number % len(held))[2]()
        elif staging._room(size) is not None:  # it would wait
            piece, give = staging.take((size,))
            piece.array[:] = number
            held.append((number, piece, give))
    assert all((piece.array == number).all() for number, piece, _ in held)


def test_shared_points_are_seen_by_their_token() -> None:
    points = SharedPoints((4, 8))
    points.array[:] = np.arange(32).reshape(4, 8)
    part = points.part(8, (2, 8))
    assert part.token
    name, size, first, shape = part.token
    whole = SharedPoints((size,), name)
    other = whole.part(first, shape).array
    assert np.array_equal(other, np.arange(8, 24).reshape(2, 8))
    other[0, 0] = 77
    assert points.array[1, 0] == 77
    del other
    whole.free()
    del part
    points.free()


def test_messages_arrive_whole() -> None:
    near, far = multiprocessing.Pipe()
    sender, receiver = Sender(near), Receiver(far)
    large = np.arange(3000.0).reshape(100, 30)
    values = np.arange(10.0), np.empty((0, 3), np.uint8), large, np.arange(50_000).reshape(100, 500)[::2, ::3]
    for number, value in enumerate(values):
        sender.send(("call", [value, {"n": number}, value.T]))
        word, (array, named, turned) = receiver.receive()
        assert word == "call" and named == {"n": number}
        assert np.array_equal(array, value) and np.array_equal(turned, value.T) and array.dtype == value.dtype
        sender.send(None)
        assert receiver.receive() is None
        assert np.array_equal(array, value)
        sender.send(-large)
        assert np.array_equal(receiver.receive(), -large)
        assert np.array_equal(array, value)  # a copy, not what the next message overwrites
    receiver.close()
    sender.close()


@pytest.mark.parametrize("last_first", [False, True])
def test_a_tree_is_assembled_in_whatever_order_its_parts_come(
    last_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "LEAVES", 3)
    expected = reference.build(data.generate(700, 16, 3), 3, 4, 2, 5)
    parts = assembly.Assembly(Settings(3, 4, 2, 5, 16), 700)
    for number, level in enumerate(expected.levels):
        for node in range(len(level.paths)):
            own = slice(node, node + 1)
            split = Splits(np.array([number]), level.paths[own], level.centres[own], level.counts[own])
            parts.splits.insert(0 if last_first else len(parts.splits), split)
    paths, depths = expected.leaf_paths()
    order = np.argsort(expected.points, kind="stable").astype(np.uint32)
    sizes = np.bincount(expected.points, minlength=expected.words)
    parts.leaves.append((Nodes(depths.astype(np.int64), paths, sizes), order))
    with ThreadPoolExecutor(2) as pool:
        assert parts.tree(pool).same_as(expected)


def test_a_report_adds_seconds_by_level() -> None:
    report = Report()
    for level, seconds in ((1, 2.0), (0, 1.0), (1, 0.5)):
        report.add_seconds(level, seconds)
    assert report.seconds_by_level == {1: 2.5, 0: 1.0}
