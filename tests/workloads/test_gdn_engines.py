"""Variants of gdn that are made by code: each engine in each problem, resting on the files of its own engine."""

from __future__ import annotations

import pytest

from perfport import workload
from perfport.run.sources import variant_files
from perfport.workloads.gdn.variants.engine import Engine
from perfport.workloads.gdn.variants.fused import PROBLEMS, Fused, FusedGammaGradient
from perfport.workloads.gdn.variants.matrix_tile import MatrixTile, MatrixTilePlain
from perfport.workloads.gdn.variants.streams import Streams
from perfport.workloads.gdn.variants.tensor_core import TensorCores, TensorCoresBf16, TensorCoresPlain
from perfport.workloads.gdn.variants.tiled import Tiled

GDN = workload.discover()["gdn"]
MATRIX_UNITS = {
    "tensor_core.py", "tensor_core.cu", "tensor_core_held.cu", "tensor_core_gamma.cu", "matrix_units.h", "mma.h",
}  # fmt: skip
TILES = {"matrix_tile.py", "matrix_tile.cl", "matrix_tile.h", "mma.h", "vectors.h"}
OWN = {
    Tiled: {"tiled.py", "fused.cl"},
    Streams: {"streams.py", "streams.cl", "vectors.h"},
    TensorCores: MATRIX_UNITS,
    TensorCoresBf16: MATRIX_UNITS,
    TensorCoresPlain: MATRIX_UNITS,
    MatrixTile: TILES,
    MatrixTilePlain: TILES,
}
HAVE_NONE = {(FusedGammaGradient, MatrixTile), (FusedGammaGradient, MatrixTilePlain)}  # dgamma's is the tiled engine's
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
    every = {(base, engine) for base in PROBLEMS for engine in OWN} - HAVE_NONE
    assert sorted(made, key=str) == sorted(((base.problem, engine) for base, engine in every), key=str)
    for base, (problem, _) in PROBLEMS.items():
        for name, engine in NAMED.items():
            if (base, engine) in HAVE_NONE:
                continue
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


@pytest.mark.parametrize("engine", OWN)
def test_a_variant_rests_on_the_files_of_its_own_engine(engine: type[Engine]) -> None:
    for base, (problem, _) in PROBLEMS.items():
        if (base, engine) in HAVE_NONE:
            continue
        variant = GDN.variants[base.problem.name][engine.name.format(problem=problem)]
        names = {path.name for path in variant_files(GDN, variant)}
        assert OWN[engine] | {"fused.py", "engine.py", "inputs.py", "problems.py"} <= names
        others = {name for other, own in OWN.items() if not issubclass(engine, other) for name in own}
        assert not names & (others - OWN[engine])
