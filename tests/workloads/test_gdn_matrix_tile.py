"""gdn by matrix tiles: every number of channels, other tiles, and matrix units emulated where there are none."""

from __future__ import annotations

import itertools
from typing import Any

import lockstep
import numpy as np
import pytest
from gdn_solver import Solver, problem_of, right, solve

from perfport import workload
from perfport.backend.offline import OfflineDevice, cuda_info, opencl_info
from perfport.untimed.verify.compute_sanitizer import SANITIZED
from perfport.workload import Session, Setup, UnavailableError, UnsupportedError

GDN = workload.discover()["gdn"]
H100 = cuda_info("sm_90").model_copy(update={"local_memory_bytes": 227 << 10, "compute_units": 132})
__all__ = ["solve"]  # a fixture
CHANNELS = (8, 37, 100, 192, 200, 320, 511, 512)
ODD_PLANE = {"height": 5, "width": 7, "batch": 2}


@pytest.mark.parametrize(
    ("channels", "layout"), [*((channels, "nchw") for channels in CHANNELS), (37, "nhwc"), (511, "nhwc")]
)
def test_every_number_of_channels(solve: Solver, channels: int, layout: str) -> None:
    problem = problem_of("gdn_forward", channels=channels, layout=layout, **ODD_PLANE)
    right(problem, solve(problem, "matrix_tile"))


@pytest.mark.parametrize("channels", [8, 100, 511])
@pytest.mark.parametrize("name", ["fused_step", "fused_step_streams", "matrix_tile"])
def test_no_step_is_refused_for_its_channels(solve: Solver, name: str, channels: int) -> None:
    problem = problem_of("gdn_step", channels=channels, **ODD_PLANE)
    right(problem, solve(problem, name))


#: A GPU's, which CPUs run, too; several turns of what is staged once; parts of the channels without staging gamma.
SHAPES: list[dict[str, int]] = [
    {
        "width": 4, "tile_rows": 12, "tile_columns": 4, "turn_channels": 256, "turn_positions": 32, "staged": 32,
        "stage_gamma": 1, "block": 1, "fetches": 4, "unroll": 4, "newton": 0,
        "group": 256, "gamma_rows": 96, "gamma_depth": 32,
    },
    {
        "width": 4, "tile_rows": 4, "tile_columns": 8, "group": 1, "staged": 512, "block": 48,
    },
    {"width": 4, "tile_rows": 8, "tile_columns": 4, "turn_channels": 64, "group": 64, "staged": 8, "newton": 3},
    {
        "width": 8, "tile_rows": 6, "tile_columns": 16, "group": 1, "staged": 64,
        "stage_gamma": 1,
    },
]  # fmt: skip


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_other_tiles(solve: Solver, shape: int, layout: str) -> None:
    if solve.device.info.kind != "cpu" and SHAPES[shape]["width"] != 4:
        pytest.skip("vectors of CPUs")
    for size in ({"channels": 45, **ODD_PLANE}, {"channels": 36, "height": 6, "width": 10}):
        problem = problem_of("gdn_backward", layout=layout, **size)
        right(problem, solve(problem, "matrix_tile", **SHAPES[shape]))


@pytest.mark.parametrize(
    ("tunables", "expected"),
    [
        ({"width": 8, "tile_columns": 4}, r"tile_columns \(4\) must be a multiple of width \(8\)"),
        ({"width": 4, "tile_rows": 6}, r"tile_rows \(6\) must be a multiple of 4 where width is 4"),
    ],
)
def test_tiles_that_are_no_vectors_are_refused(solve: Solver, tunables: dict[str, int], expected: str) -> None:
    if solve.device.info.kind != "cpu":
        expected = "must be"
    with pytest.raises(UnsupportedError, match=expected):
        solve(problem_of("gdn_forward", channels=13, **ODD_PLANE), "matrix_tile", **tunables)


def test_vectors_of_other_than_4_words_are_refused_on_a_gpu() -> None:
    with pytest.raises(UnsupportedError, match=r"width \(8\) must be 4 on a GPU"):
        emulated("gdn_forward", "matrix_tile", {"width": 8}, channels=13, height=3, width=5)


#: Of one instruction, 16 x 8 sums of 16 bf16 or 8 TF32 products. What else is declared: squares, t, roots, last sums.
OPERATIONS = {"matrix_tile": 2 * 16 * 8 * 16, "matrix_tile_tf32": 2 * 16 * 8 * 8}
MOSTLY_PRODUCTS = 0.9


def emulated(
    problem: str, name: str, tunables: dict[str, int], local_kib: int = 227, *, macros: Any = (), **parameters: Any
) -> lockstep.Lockstep:
    """Run a variant in lock step, as NVIDIA's OpenCL takes it, and compare its outputs with the reference."""
    info = cuda_info("sm_90").model_copy(update={"backend": "opencl", "local_memory_bytes": local_kib << 10})
    cls, device = GDN.variants[problem][name], lockstep.Lockstep(info)
    cls.require(info)
    made = cls.problem(cls.problem.Parameters(**parameters), 1)
    chosen = {key: tunable.default_for(info) for key, tunable in cls.tunables.items()} | tunables
    setup = Setup(Session(device, made, GDN.folder), chosen, dict(macros))  # type: ignore[arg-type]
    variant = cls(setup)
    unit = {"matrix_tile": "bf16_mma", "matrix_tile_tf32": "tf32_mma"}[name]
    assert variant.unit == (unit if tunables.get("units", 1) else None)
    variant.launch()
    values = {key: device.read(one.buffer, np.float32, one.shape) for key, one in setup.outputs.items()}
    checks = made.check(values, "", cls.precision)
    counted, declared = device.matrix_instructions * OPERATIONS[name], variant.traffic().flops
    assert bool(counted) == (variant.unit is not None)
    assert not counted or MOSTLY_PRODUCTS * declared <= counted <= declared, (parameters, counted / declared)
    assert checks and all(check.passed for check in checks.values()), (parameters, checks)
    return device


needs_compiler = pytest.mark.skipif(lockstep.COMPILER is None, reason="needs g++")


@needs_compiler
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("channels", [8, 37, 200, 511])
@pytest.mark.parametrize("name", ["matrix_tile", "matrix_tile_tf32"])
def test_emulated_matrix_units(name: str, channels: int, layout: str) -> None:
    """Fragments, their places in memory and what is stored of them; the least local memory stages channels in parts."""
    size = {"channels": channels, "layout": layout, "height": 5, "width": 7}
    emulated("gdn_forward", name, {}, training=True, **size)
    emulated("gdn_backward", name, {}, 32, inverse=True, **size)


@needs_compiler
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_emulated_tiles_of_other_shapes(layout: str) -> None:
    size = {"channels": 100, "layout": layout, "height": 4, "width": 25, "batch": 2}
    emulated("gdn_forward", "matrix_tile", {"unit_rows": 16, "unit_columns": 48, "turn_channels": 64}, **size)
    emulated(
        "gdn_forward", "matrix_tile", {"unit_rows": 48, "unit_columns": 16, "turn_positions": 64, "block": 192}, **size
    )
    emulated("gdn_forward", "matrix_tile", {}, **{**size, "channels": 530})  # sums apart
    emulated("gdn_gamma_gradient", "matrix_tile", {"gamma_units": 16, "gamma_rows": 48, "gamma_depth": 64}, **size)


@pytest.mark.parametrize(("rows", "layout", "tails"), [(48, "nhwc", 1), (96, "nhwc", 0), (48, "nchw", 0)])
def test_vectors_of_a_last_tile_of_dgamma_end_within_the_maps(
    solve: Solver, rows: int, layout: str, tails: int
) -> None:
    """Tiles of 36 rows: vectors of 16 of the second one begin at channel 36, and would reach past the last of 64."""
    chosen = {"gamma_rows": rows, "gamma_columns": 96, "tile_rows": 12, "width": 16}
    cls, info = GDN.variants["gdn_gamma_gradient"]["matrix_tile"], opencl_info("cpu")
    made = problem_of("gdn_gamma_gradient", channels=64, height=4, width=8, batch=2, layout=layout)
    defaults = {key: tunable.default_for(info) for key, tunable in cls.tunables.items()}
    engine = cls.engine(Setup(Session(lockstep.Lockstep(info), made, GDN.folder), defaults | chosen, {}))
    assert engine._gamma_shape()["TAILS"] == tails
    right(made, solve(made, "matrix_tile", **chosen))


@needs_compiler
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_gpu_without_matrix_units(layout: str) -> None:
    """A team per work-item, several teams to a group, gamma by way of local memory: what no CPU has as its default."""
    for size in ({"channels": 37, "height": 5, "width": 7}, {"channels": 100, "height": 4, "width": 24}):
        emulated("gdn_step", "matrix_tile", {"units": 0}, 32, layout=layout, **size)


#: Planes whose lines begin anywhere and at multiples of 4 words, several images, steps that are not whole.
PLANES: list[dict[str, int]] = [{"height": 5, "width": 11, "batch": 3}, {"height": 4, "width": 22, "batch": 2}]
#: "resident" 1: a small tile leaves no other groups room beside its copies.
COPYING = {"resident": 1, "gamma_depth": 32}


#: Each class in each layout with two numbers of copies and of channels.
COPIES = [
    (copies, channels, layout, name)
    for number, (copies, channels) in enumerate([(1, 37), (2, 100), (2, 200), (3, 48)])
    for name, layout in zip(("matrix_tile", "matrix_tile_tf32"), ("nchw", "nhwc", "nchw")[number % 2 :], strict=False)
]


@needs_compiler
@pytest.mark.parametrize(("copies", "channels", "layout", "name"), COPIES)
def test_copies_ahead(name: str, copies: int, channels: int, layout: str) -> None:
    """Both operands of one copy of w, or with more channels than a tile holds each of its own."""
    for plane, inverse in itertools.product(PLANES, (False, True)):
        made = {"channels": channels, "layout": layout, "inverse": inverse, **plane}
        device = emulated("gdn_gamma_gradient", name, {"gamma_copies": copies, **COPYING}, **made)
        assert device.asynchronous_copies
    device = emulated("gdn_backward", name, {"gamma_copies": copies, **COPYING}, **made)  # dbeta from what is staged
    assert device.asynchronous_copies


@needs_compiler
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_sanitizer_sees_no_copy_past_the_end_of_a_buffer(layout: str) -> None:
    """To compute-sanitizer it is as wide as its instruction; the maps are no multiple of 4 words."""
    made = {"channels": 37, "layout": layout, "height": 5, "width": 11, "batch": 3}
    given = ("gdn_gamma_gradient", "matrix_tile_tf32", {"gamma_copies": 1, **COPYING})
    assert emulated(*given, **made).copies_outside  # type: ignore[arg-type]
    watched = emulated(*given, macros=SANITIZED, **made)  # type: ignore[arg-type]
    assert watched.asynchronous_copies and not watched.copies_outside


FAULTS = {
    "no wait for copies": ("copies_there();", ""),
    "a place is copied to that is still read": ("copy_step(copy, ", "copy_step(copies + STEP_WORDS, "),
    "one place is read": ("copy = copy == copies +", "copy = copies == copies ? copies : copies +"),
    "no barrier": ("barrier(CLK_LOCAL_MEM_FENCE)", ""),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_copies_is_seen(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Local memory is nonsense until a copy's own work-item has waited for it."""
    source, (text, instead) = Session.source, FAULTS[fault]

    def faulty(self: Session, file: str) -> str:
        assert text in source(self, file)
        return source(self, file).replace(text, instead)

    monkeypatch.setattr(Session, "source", faulty)
    with pytest.raises(AssertionError, match="dgamma"):
        emulated("gdn_gamma_gradient", "matrix_tile", {"gamma_copies": 2, **COPYING}, channels=48, **PLANES[0])


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("name", ["matrix_tile", "matrix_tile_tf32"])
def test_maps_reach_operands_by_copies_alone(name: str, layout: str) -> None:
    """In CUDA C++: NVRTC knows which memory each pointer is of."""
    cls, device = GDN.variants["gdn_gamma_gradient"][name], OfflineDevice(H100)
    chosen = {key: tunable.default_for(H100) for key, tunable in cls.tunables.items()}
    made = cls.problem(cls.problem.Parameters(channels=192, height=9, width=7, layout=layout), 1)
    try:
        cls(Setup(Session(device, made, GDN.folder), chosen, {}))  # type: ignore[arg-type]
    except UnavailableError as error:
        pytest.skip(str(error))
    ptx = device.artifacts[0].listing["ptx"]
    assert "cp.async.cg.shared.global" in ptx and "ld.global" not in ptx and "ld.f32" not in ptx
    assert ".local" not in ptx.replace(".local_", "")  # no array is kept outside registers


@pytest.mark.parametrize(
    ("local_kib", "copies", "expected"),
    [(227, 2, (2, 32)), (99, 2, (1, 16)), (227, 1, (1, 32)), (99, 1, (1, 16)), (64, 1, (0, 32))],
)
def test_what_local_memory_holds_is_copied(local_kib: int, copies: int, expected: tuple[int, int]) -> None:
    """A tile of all of 192 channels rather than copies, short steps of copies rather than long ones without."""
    info = cuda_info("sm_90").model_copy(update={"local_memory_bytes": local_kib << 10})
    cls = GDN.variants["gdn_gamma_gradient"]["matrix_tile"]
    chosen = {key: tunable.default_for(info) for key, tunable in cls.tunables.items()} | {"gamma_copies": copies}
    made = cls.problem(cls.problem.Parameters(channels=192, height=4, width=8), 1)
    engine = cls.engine(Setup(Session(lockstep.Lockstep(info), made, GDN.folder), chosen, {}))
    shape = engine._gamma_shape()
    assert (shape["COPIES"], shape["DEPTH"]) == expected and shape["ROWS"] == shape["COLUMNS"] == 192


@needs_compiler
def test_a_missing_barrier_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local memory holds NaN at first, and each work-item runs ahead until it has to wait."""
    source, wait = Session.source, "barrier(CLK_LOCAL_MEM_FENCE)"
    monkeypatch.setattr(Session, "source", lambda self, file: source(self, file).replace(wait, ""))
    with pytest.raises(AssertionError):
        emulated("gdn_forward", "matrix_tile", {}, channels=37, height=5, width=7)
