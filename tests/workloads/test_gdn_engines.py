"""Variants of gdn that are made by code: each engine in each problem, resting on the files of its own engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from perfport import workload
from perfport.backend.offline import cuda_info, opencl_info
from perfport.run.sources import variant_files
from perfport.workloads.gdn.variants.engine import Engine
from perfport.workloads.gdn.variants.fused import PROBLEMS, Fused
from perfport.workloads.gdn.variants.matrix_tile import MatrixTile, MatrixTilePlain
from perfport.workloads.gdn.variants.streams import Streams
from perfport.workloads.gdn.variants.tensor_core import TensorCores, TensorCoresBf16, TensorCoresPlain
from perfport.workloads.gdn.variants.tiled import Tiled

GDN = workload.discover()["gdn"]
MATRIX_UNITS = {
    "tensor_core.py", "tensor_core.cu", "tensor_core_held.cu", "tensor_core_gamma.cu", "matrix_units.h", "mma.h",
}  # fmt: skip
TILES = {"matrix_tile.py", "matrix_tunables.py", "matrix_tile.cl", "matrix_tile.h", "ahead.h", "mma.h", "vectors.h"}
OWN = {
    Tiled: {"tiled.py", "fused.cl"},
    Streams: {"streams.py", "streams.cl", "vectors.h"},
    TensorCores: MATRIX_UNITS,
    TensorCoresBf16: MATRIX_UNITS,
    TensorCoresPlain: MATRIX_UNITS,
    MatrixTile: TILES,
    MatrixTilePlain: TILES,
}
NAMED = {
    "fused_{problem}": Tiled,
    "fused_{problem}_streams": Streams,
    "tensor_core": TensorCores,
    "matrix_tile": MatrixTile,
}


def test_every_engine_is_a_variant_of_every_problem() -> None:
    made = [
        (cls.problem, cls.engine)
        for variants in GDN.variants.values() for cls in variants.values() if issubclass(cls, Fused)
    ]  # fmt: skip
    assert sorted(made, key=str) == sorted(((base.problem, engine) for base in PROBLEMS for engine in OWN), key=str)
    for base, (problem, _) in PROBLEMS.items():
        for name, engine in NAMED.items():
            variant = GDN.variants[f"gdn_{problem}"][name.format(problem=problem)]
            assert issubclass(variant, base) and getattr(variant, "engine", None) is engine


def test_what_ranks_a_variant_is_its_engines() -> None:
    stated = {name: (cls.needs, cls.unit, cls.precision) for name, cls in GDN.variants["gdn_step"].items()}
    assert stated["fused_step"] == ((), None, "fp32") and stated["fused_step_streams"] == (("cpu",), None, "fp32")
    assert stated["tensor_core"] == (("ptx",), "tf32_mma", "fp32")
    assert stated["tensor_core_bf16"] == (("ptx",), "bf16_mma", "fp32")
    assert stated["tensor_core_tf32"] == (("ptx",), "tf32_mma", "tf32")
    assert stated["matrix_tile"] == ((), None, "fp32") and stated["matrix_tile_tf32"] == (("mma",), "tf32_mma", "tf32")
    assert set(GDN.variants["gdn_forward"]["tensor_core"].tunables) == set(TensorCores.TUNABLES)
    assert set(GDN.variants["gdn_gamma_gradient"]["tensor_core"].tunables) == set(TensorCores.GAMMA_TUNABLES)
    assert set(GDN.variants["gdn_step"]["tensor_core"].tunables) == {
        *TensorCores.TUNABLES, *TensorCores.GAMMA_TUNABLES,
    }  # fmt: skip


def limited(info: Any, local_kib: int, most_items: int, *capabilities: str) -> Any:
    limits = {"local_memory_bytes": local_kib << 10, "max_work_group": most_items}
    return info.model_copy(update={**limits, "capabilities": [*info.capabilities, *capabilities]})


#: CUDA, OpenCL that takes the work-groups it states, smaller ones, fewer than it states; CPUs.
GPUS = [
    *(limited(cuda_info("sm_90"), kib, 1024) for kib in (48, 99, 227)),
    *(
        limited(opencl_info("gpu"), kib, most, *more)
        for kib in (32, 64)
        for most, more in ((256, ()), (1024, ()), (1024, ("mma",)))
    ),
]
CPUS = [limited(opencl_info("cpu"), kib, 4096) for kib in (96, 256, 1024)]
EVERYWHERE = ("fused_step", "matrix_tile")
ON_UNITS = ("tensor_core", "tensor_core_bf16", "tensor_core_tf32", "matrix_tile_tf32")
FITS = [
    *((name, info) for info in GPUS + CPUS for name in EVERYWHERE),
    *((name, info) for info in GPUS[:3] for name in ON_UNITS),
    *(("fused_step_streams", info) for info in CPUS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "info"), FITS)
def test_no_number_of_channels_is_refused(name: str, info: Any) -> None:
    cls = GDN.variants["gdn_step"][name]
    tunables = {key: tunable.default_for(info) for key, tunable in cls.tunables.items()}
    stated = info.backend == "opencl" and info.kind == "gpu"  # of the device, whatever it says of a kernel
    for channels in range(1, 513):
        for layout, width in (("nchw", 3), ("nchw", 4), ("nhwc", 4)):
            problem = SimpleNamespace(
                channels=channels, positions=width, pixels=width, batch=1, nhwc=layout == "nhwc", inverse=False
            )
            engine: Any = cls.engine(
                SimpleNamespace(problem=problem, device=SimpleNamespace(info=info), tunables=tunables)
            )
            if name == "fused_step_streams":
                block, side, pitch = engine._block_of_gamma()
                assert engine._reserve(engine._words_of_product()) and engine._reserve(block * (side + pitch))
                continue
            shape, gamma = engine._shape(), engine._gamma_shape()
            assert max(engine._staged_bytes(shape), engine._local_bytes(gamma)) <= info.local_memory_bytes
            most = min(256, info.max_work_group) if stated else info.max_work_group
            assert max(engine._items(shape), engine._items(gamma)) <= most, (channels, layout)


@pytest.mark.parametrize("engine", OWN)
def test_a_variant_rests_on_the_files_of_its_own_engine(engine: type[Engine]) -> None:
    for base, (problem, _) in PROBLEMS.items():
        variant = GDN.variants[base.problem.name][engine.name.format(problem=problem)]
        names = {path.name for path in variant_files(GDN, variant)}
        assert OWN[engine] | {"fused.py", "engine.py", "inputs.py", "problems.py"} <= names
        others = {name for other, own in OWN.items() if not issubclass(engine, other) for name in own}
        assert not names & (others - OWN[engine])
