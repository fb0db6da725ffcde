"""vocab_tree: every kernel variant is right on every device, exactly where it says so."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from peer_forms import forms

from perfport import workload
from perfport.backend import OpenDevice
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.model.errors import UnavailableError, UnsupportedError, UsageError
from perfport.workload import Session, Setup
from perfport.workloads.vocab_tree import fixed_point, outputs, passes, reference
from perfport.workloads.vocab_tree.variants import peers

TREE = workload.discover()["vocab_tree"]
LADDER = ("naive", "local_centres", "packed", "relayout")
KERNELS = [
    (problem, name) for problem, known in TREE.variants.items() for name, cls in known.items() if cls.role != "peer"
]
PEERS = [
    (problem, name, tunables)
    for problem, known in TREE.variants.items()
    for name, cls in known.items()
    if cls.role == "peer"
    for tunables in forms(cls, "cpu" if cls.host else "gpu")
]


def problem_of(name: str, **parameters: Any) -> Any:
    """A problem from a fresh seed."""
    cls = TREE.problems[name]
    return cls(cls.Parameters(**parameters), secrets.randbelow(2**31))


class Solver:
    """Runs variants as the harness does, outputs poisoned."""

    def __init__(self, device: OpenDevice) -> None:
        self.device = device
        self.sessions: dict[int, Session] = {}
        self.variant: Any = None
        self.notes: dict[str, Any] = {}

    def __call__(self, problem: Any, name: str, **tunables: Any) -> dict[str, np.ndarray]:
        cls = TREE.variants[problem.name][name]
        try:
            cls.require(self.device.info)
        except (UnsupportedError, UnavailableError) as error:
            pytest.skip(str(error))
        session = self.sessions.setdefault(id(problem), Session(self.device, problem, TREE.folder))
        chosen = {key: tunable.default_for(self.device.info) for key, tunable in cls.tunables.items()} | tunables
        setup = Setup(session, chosen, {})
        try:
            self.variant = cls(setup)
            for output in setup.outputs.values():
                self.device.fill(output.buffer, 0xFF)
            self.variant.launch()
            self.device.finish()
            self.variant.traffic()
            self.notes = self.variant.notes()
            outputs = {key: self.device.read(o.buffer, o.dtype, o.shape) for key, o in setup.outputs.items()}
            return {**outputs, **self.variant.results()}
        finally:
            setup.release()


@pytest.fixture
def solve(device: OpenDevice) -> Iterator[Solver]:
    """A `Solver` on the device."""
    solver = Solver(device)
    yield solver
    for session in solver.sessions.values():
        session.close()


def right(problem: Any, outputs: dict[str, np.ndarray], computes: str = "") -> None:
    """Every output that is declared is there, and within the problem's tolerance."""
    verified = problem.verify(outputs, computes)
    assert verified.passed, (problem.seed, problem.parameters, verified)


def test_every_variant_of_the_ladder_is_there() -> None:
    roles = {name: cls.role for name, cls in TREE.variants["kmeans_iteration"].items()}
    assert [roles[name] for name in LADDER] == ["rung"] * 4
    assert {"fused", "fused_pruned", "tiled", "tensor_core", "tensor_core_atomics"} <= set(roles)
    assert {"node_by_node", "batched_fragments"} <= set(TREE.variants["kmeans_fragments"])
    assert {"node_by_node", "batched", "streamed", "resident"} <= set(TREE.variants["tree_build"])
    assert all(cls.source and cls.title for known in TREE.variants.values() for cls in known.values())


@pytest.mark.parametrize(("problem", "name"), KERNELS)
def test_variants_are_right_at_every_check_size(solve: Solver, problem: str, name: str) -> None:
    for parameters in TREE.problems[problem].check_sizes:
        task = problem_of(problem, **parameters)
        try:
            right(task, solve(task, name), solve.variant.computes)
        except UnsupportedError as error:
            pytest.skip(str(error))


@pytest.mark.parametrize("name", ["fused", "fused_pruned", "tiled", "tensor_core", "tensor_core_atomics"])
def test_one_pass_at_its_real_shape(solve: Solver, name: str) -> None:
    """10 centres of 128 dimensions, and more points than 16-bit halves hold of one class."""
    task = problem_of("kmeans_iteration", points=3001)
    task.points[:1200] = task.points[0]
    right(task, solve(task, name), solve.variant.computes)
    assert 0 < solve.notes["inertia_per_point"] < 512**2


@pytest.mark.parametrize("sums", [0, 1, 2])
def test_the_ways_to_add_agree(solve: Solver, sums: int) -> None:
    task = problem_of("kmeans_iteration", points=2500, dims=32, clusters=6)
    task.points[:] = np.where(np.arange(2500)[:, None] % 3, 255, task.points)  # the most that halves must hold
    right(task, solve(task, "fused", sums=sums, group=64))


TILES: list[tuple[dict[str, Any], int, int]] = [
    ({}, 2, 16), ({}, 13, 112), ({"vector": 8}, 7, 48), ({"vector": 16, "byte_units": 0, "centres_held": 4}, 33, 80),
    ({"vector": 8, "byte_units": 0}, 17, 128), ({"vector": 0}, 7, 48), ({"vector": 0, "points_each": 2}, 33, 80),
    ({"vector": 0, "group": 32, "points_each": 4, "centres_held": 5}, 2, 16),
    ({"vector": 0, "group": 128, "centres_held": 16, "byte_units": 0}, 17, 128),
]  # fmt: skip


@pytest.mark.parametrize(("chosen", "clusters", "dims"), TILES)
def test_tiles_of_every_shape(solve: Solver, chosen: dict[str, Any], clusters: int, dims: int) -> None:
    """Clusters that are no multiple of a tile, points of none of a block, more of one class than 16-bit halves hold."""
    if chosen.get("vector") and "opencl" not in solve.device.info.capabilities:
        pytest.skip("no vectors of so many integers")
    task = problem_of("kmeans_iteration", points=1003, dims=dims, clusters=clusters)
    task.points[:600] = np.where(np.arange(600)[:, None] % 3, 255, task.points[:600])
    right(task, solve(task, "tiled", **chosen))
    nodes = problem_of("kmeans_fragments", nodes=4, node_points=90, dims=dims, clusters=clusters)
    right(nodes, solve(nodes, "batched_tiled", **chosen))


LITTLE: list[tuple[int, dict[str, Any], tuple[bool, bool, bool]]] = [
    (512, {}, (True, True, True)), (256, {}, (True, False, True)), (128, {}, (True, False, False)),
    (32, {}, (False, False, False)), (128, {"vector": 0}, (True, False, False)),
    (32, {"vector": 0}, (False, False, False)),
]  # fmt: skip


@pytest.mark.parametrize(("kib", "chosen", "kept"), LITTLE)
def test_tiles_of_many_clusters_in_less_local_memory(
    solve: Solver, monkeypatch: pytest.MonkeyPatch, kib: int, chosen: dict[str, Any], kept: tuple[bool, bool, bool]
) -> None:
    """Sums, their pairs and then centres leave local memory; a class has more points than pairs hold."""
    info = solve.device.info
    if info.kind != "cpu":
        pytest.skip("the sizes are those of a CPU's layouts")
    if info.local_memory_bytes < kib << 10:
        pytest.skip(f"less local memory than {kib} KiB")
    monkeypatch.setattr(solve.device, "info", info.model_copy(update={"local_memory_bytes": kib << 10}))
    task = problem_of("kmeans_iteration", points=1003, dims=128, clusters=256)
    task.points[:600] = 255
    right(task, solve(task, "tiled", **chosen))
    layout = solve.variant.kernel.layout
    assert (layout.resident >= 256, layout.sums, layout.pairs) == kept
    counts = np.full((1, 256), 3)
    counts[0, 0] = 600
    added = 3 + 255 if layout.pairs else int(counts.sum())  # a class's pairs are emptied every 256 points
    traffic = solve.variant.kernel.traffic(counts.sum(axis=1), counts)
    assert traffic.global_atomics == 256 + 128 * (256 if layout.sums else added)


def test_many_clusters_are_not_refused(solve: Solver) -> None:
    """256 clusters of 128 dimensions, in one node and in several."""
    for problem, name in ("kmeans_iteration", "tiled"), ("kmeans_fragments", "batched_tiled"):
        sizes = {"points": 700} if name == "tiled" else {"nodes": 3, "node_points": 400}
        task = problem_of(problem, dims=128, clusters=256, **sizes)
        right(task, solve(task, name))


@pytest.mark.parametrize(
    ("kib", "clusters", "expected"),
    [
        (227, 10, (16, True, 128, 2)), (227, 256, (256, True, 256, 1)), (163, 256, (256, False, 256, 2)),
        (64, 60, (64, True, 128, 1)), (48, 10, (16, True, 128, 2)), (48, 64, (64, False, 128, 1)),
        (32, 10, (16, True, 128, 1)), (32, 256, (48, False, 128, 1)),
    ],
)  # fmt: skip
def test_defaults_follow_local_memory(kib: int, clusters: int, expected: tuple[int, bool, int, int]) -> None:
    """On matrix units: fewer blocks in flight, no sums, then centres in chunks; many teams where they share much."""
    info = cuda_info("sm_90").model_copy(update={"local_memory_bytes": kib << 10})
    chosen = {name: tunable.default_for(info) for name, tunable in passes.TiledPass.TUNABLES.items()}
    made = passes.TiledPass(OfflineDevice(info), lambda *_, **macros: macros, clusters, 128, chosen)
    layout = made.layout
    assert (layout.resident, layout.sums, layout.group, layout.stages) == expected
    assert made.local_bytes <= kib << 10


@pytest.mark.parametrize("name", ["fused", "fused_pruned", "tiled", "tensor_core_atomics"])
def test_extreme_values_do_not_overflow(solve: Solver, name: str) -> None:
    """The largest and the smallest scores that there are."""
    task = problem_of("kmeans_iteration", points=400, dims=128, clusters=4)
    task.points[:200], task.points[200:] = 255, 0
    extreme = [np.full(128, 255 * fixed_point.ONE), np.zeros(128), np.full(128, 254 * 256 + 255), np.full(128, 1)]
    task.centres = np.array(extreme, np.uint16)[None]
    outputs = solve(task, name)
    right(task, outputs)
    assert np.array_equal(outputs["counts"], [[200, 200, 0, 0]])


@pytest.mark.parametrize("name", ["naive", "relayout", "fused", "fused_pruned", "tiled"])
def test_ties_go_to_the_lowest_index(solve: Solver, name: str) -> None:
    task = problem_of("kmeans_iteration", points=50, dims=16, clusters=4)
    task.centres = np.repeat(task.centres[:, :1], 4, axis=1)
    outputs = solve(task, name)
    assert (next(value for key, value in outputs.items() if key.startswith("labels")) == 0).all()


@pytest.mark.parametrize("clusters", [2, 5, 7, 10, 13, 30])
@pytest.mark.parametrize("dims", [16, 48, 64, 128])
def test_queries_by_vectors_at_other_trees(solve: Solver, clusters: int, dims: int) -> None:
    """Fours of centres that are not full, blocks of them, both widths of vectors, a last work-item that is not full."""
    task = problem_of(
        "tree_query", points=400, dims=dims, clusters=clusters, levels=2, iterations=2,
        queries=secrets.choice([1, 255, 301]),
    )  # fmt: skip
    for chosen in ({}, {"centres": 4, "held": 16}, {"centres": 8, "held": 1}, {"vnni": 0}):
        right(task, solve(task, "descent", vector=1, **chosen))


@pytest.mark.parametrize("held", [1, 16])
@pytest.mark.parametrize(("clusters", "dims", "lanes"), [(19, 48, 2), (2, 64, 16), (19, 128, 8), (256, 16, 1)])
def test_queries_by_teams_at_other_trees(solve: Solver, clusters: int, dims: int, lanes: int, held: int) -> None:
    """More lanes than classes and fewer, units that are no multiple of lanes, the last group and team not full."""
    task = problem_of(
        "tree_query", points=400, dims=dims, clusters=clusters, levels=2, iterations=2, queries=secrets.choice([1, 65])
    )
    right(task, solve(task, "descent", vector=0, lanes=lanes, group=64, held=held))


@pytest.mark.parametrize("held", [1, 64])
@pytest.mark.parametrize("form", [{"vector": 1}, {"vector": 0, "lanes": 4}])
def test_queries_whose_paths_end_at_different_levels(solve: Solver, form: dict[str, int], held: int) -> None:
    """Descriptors that are at their word wait for those that go on, and keep it."""
    task = problem_of("tree_query", points=90, dims=32, clusters=4, levels=5, iterations=2, queries=150)
    depths = task.tree.leaf_paths()[1]
    assert len(np.unique(depths)) > 1
    right(task, solve(task, "descent", held=held, **form))


@pytest.mark.parametrize("form", [{"vector": 1, "vnni": 0}, {"vector": 1, "vnni": 1}, {"vector": 0}])
def test_queries_at_the_largest_scores(solve: Solver, form: dict[str, int]) -> None:
    """Neither the sums of products less 32768 nor the scores overflow; of equal ones the lowest index counts."""
    task = problem_of("tree_query", points=97, dims=128, clusters=6, levels=1, iterations=1, queries=40)
    task.queries[:20], task.queries[20:30] = 255, 0
    centres = task.tree.levels[0].centres
    centres[:] = 0
    centres[0, 1::2], centres[0, 4] = 255 * fixed_point.ONE, 255 * fixed_point.ONE
    words = solve(task, "descent", **form)["words"]
    right(task, {"words": words})
    first = task.tables.leaves[0]
    assert (words[:20] == first[1]).all() and (words[20:30] == first[0]).all()


@pytest.mark.parametrize(("clusters", "spread"), [(60, 40_000), (60, 500), (60, 30), (9, 30), (5, 30)])
def test_pruning_keeps_the_nearest(solve: Solver, clusters: int, spread: int) -> None:
    """Centres so close that the upper bytes tell some of them apart, few, or none; equal ones among them."""
    task = problem_of("kmeans_iteration", points=700, dims=32, clusters=clusters)
    rng = np.random.default_rng(task.seed)
    near = task.points[0].astype(int) * fixed_point.ONE + rng.integers(-spread, spread, (clusters, 32))
    task.centres = np.clip(near, 0, 255 * fixed_point.ONE).astype(np.uint16)[None]
    task.centres[0, -1] = task.centres[0, 1]
    right(task, solve(task, "fused_pruned"))
    exactly, again = solve.variant.kernel.compared(task.points, task.centres[0])
    assert (again > 0.5) is (spread < 1000 and clusters > solve.variant.kernel.KEPT)
    assert 0 <= exactly <= clusters


def test_pruning_at_many_clusters(solve: Solver) -> None:
    """SIFT-like points: few are compared with more than one centre by both bytes."""
    task = problem_of("kmeans_iteration", points=3000, clusters=200)
    right(task, solve(task, "fused_pruned"))
    exactly, again = solve.variant.kernel.compared(task.points, task.centres[0])
    assert 0 < exactly < 2 and again < 0.01


def test_wrong_results_are_noticed() -> None:
    task = problem_of("kmeans_iteration", points=200, dims=16, clusters=3)
    exact = reference.one_pass(task.points, task.centres[0])
    sums, counts = exact.sums[None].astype(np.uint32), exact.counts[None].astype(np.uint32)
    good = {"labels": exact.labels.astype(np.uint8), "sums": sums, "counts": counts}
    right(task, good)
    for name, change in (("labels", 1), ("sums", 1), ("counts", 1)):
        bad = {key: value.copy() for key, value in good.items()}
        bad[name].flat[7 % bad[name].size] ^= change
        assert not all(check.passed for check in task.check(bad).values()), name
    right(task, good, outputs.FLOAT)
    missing = task.verify({"labels": good["labels"], "sums": sums}).outputs
    assert list(missing) == ["counts"] and missing["counts"].detail == "no such output was left"
    far = fixed_point.scores(task.points, task.centres[0]).argmin(axis=1).astype(np.uint8)
    assert not task.check({**good, "labels": far}, outputs.FLOAT)["labels"].passed


@pytest.mark.parametrize("clusters", [10, 256])
def test_half_precision_holds_points_over_their_norm(clusters: int) -> None:
    """What FP16 peers get is finite and exact but for centres, whose rounding keeps labels far within the tolerance."""
    task = problem_of("kmeans_iteration", points=4000, clusters=clusters)
    assert np.square(task.points.astype(np.float32)).sum(axis=1).max() > np.finfo(np.float16).max
    x = task.points.astype(np.float16) / np.float16(peers.NORM)
    c = (task.centres[0] / fixed_point.ONE).astype(np.float16) / np.float16(peers.NORM)
    assert np.array_equal(x.astype(np.float32) * peers.NORM, task.points)
    assert np.isfinite(np.square(x).sum(axis=1, dtype=np.float32).astype(np.float16)).all()
    x, c = x.astype(np.float32), c.astype(np.float32)
    labels = (np.square(c).sum(axis=1) - 2 * x @ c.T).argmin(axis=1).astype(np.uint8)
    check = task.check({"labels": labels}, outputs.MEANS, "fp16")["labels"]
    assert check.passed and check.max_abs < 64


@pytest.mark.parametrize("clusters", [10, 256])
def test_products_in_tf32_stay_within_the_tolerance(clusters: int) -> None:
    """Points are exact in TF32; centres are cut to 11 significant bits."""
    task = problem_of("kmeans_iteration", points=4000, clusters=clusters)
    c = (task.centres[0] / fixed_point.ONE).astype(np.float32)
    cut = (c.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    scores = np.square(c).sum(axis=1) - 2 * task.points.astype(np.float32) @ cut.T
    check = task.check({"labels": scores.argmin(axis=1).astype(np.uint8)}, outputs.MEANS, "tf32")["labels"]
    assert check.passed and check.max_abs < outputs.ROUNDED_SLACK / 4
    far = {"labels": scores.argmax(axis=1).astype(np.uint8)}
    assert not task.check(far, outputs.MEANS, "tf32")["labels"].passed


@pytest.mark.parametrize(("problem", "name", "tunables"), PEERS)
def test_peers_agree(solve: Solver, problem: str, name: str, tunables: dict[str, Any]) -> None:
    task = problem_of(
        problem, **TREE.problems[problem].presets["tiny"] | ({"equal": True} if "frag" in problem else {})
    )
    right(task, solve(task, name, **tunables), solve.variant.computes)


@pytest.mark.parametrize(
    ("problem", "parameters", "message"),
    [
        ("kmeans_iteration", {"points": 3, "clusters": 5}, "at least as many as clusters"),
        ("kmeans_iteration", {"points": 100, "source": "nowhere.txt"}, "neither 'generated' nor 'sift'"),
        ("kmeans_fragments", {"nodes": 3, "node_points": 6, "clusters": 8}, "nodes of at least as many points"),
        ("tree_build", {"points": 3, "clusters": 5, "levels": 1}, "at least as many as clusters"),
        ("tree_build", {"points": 300, "clusters": 256, "levels": 8}, "exceed 63 bits"),
    ],
)
def test_bad_parameters_are_refused(problem: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _ = problem_of(problem, **parameters).points


@pytest.mark.parametrize(
    "parameters",
    [{"clusters": 1}, {"clusters": 257}, {"dims": 12}, {"dims": 144}, {"points": 1}, {"colour": 1}],
)
def test_parameters_have_bounds(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(parameters))):
        TREE.problems["kmeans_iteration"].Parameters(**{"points": 100, **parameters})


def test_tiles_cover_nodes_without_gap() -> None:
    sizes = np.array([1, 7, 8, 9, 40])
    first = np.cumsum(sizes) - sizes
    table = passes.tiles(first, sizes, 8).astype(int)
    covered = np.concatenate([np.arange(start, start + length) for _, start, length, _ in table])
    assert np.array_equal(covered, np.arange(65)) and table[:, 2].max() == 8
    assert np.array_equal(np.bincount(table[:, 0], table[:, 2]), sizes)


def test_passes_refuse_what_does_not_fit(solve: Solver) -> None:
    task = problem_of("kmeans_iteration", points=300, dims=32, clusters=4)
    with pytest.raises(UnsupportedError, match="work-item per word"):
        solve(problem_of("kmeans_iteration", points=300), "fused", group=16)
    with pytest.raises(UnsupportedError, match="16-bit halves hold 257"):
        solve(task, "fused", group=256, points_each=2, sums=1)
    many = problem_of("kmeans_iteration", points=300, dims=32, clusters=40)
    with pytest.raises(UnsupportedError, match="lists of up to 32 classes"):
        solve(many, "fused", sums=2, group=64)
    with pytest.raises(UnsupportedError, match="sums as products take up to 16, got 40"):
        passes.MatrixPass(solve.device, solve.device.load, 40, 32, {"warps": 4, "stages": 2, "groups_per_unit": 8})
    cuda: Any = OfflineDevice(cuda_info("sm_75"))
    with pytest.raises(UnsupportedError, match="has no vectors of 8 integers"):
        passes.TiledPass(cuda, solve.device.load, 40, 32, {"vector": 8, "points_each": 1})
