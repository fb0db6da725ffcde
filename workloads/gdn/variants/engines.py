"""The variants beyond the source: each engine of products in each problem."""

from __future__ import annotations

from abc import ABCMeta
from itertools import product
from typing import Any, NamedTuple

from .engine import Engine
from .fused import Fused, FusedBackward, FusedForward, FusedGammaGradient, FusedStep
from .streams import Streams
from .tensor_core import TensorCores, TensorCoresBf16, TensorCoresPlain
from .tiled import Tiled


class Listing(NamedTuple):
    """An engine's place in the tables; its names and titles say ``{problem}`` and ``{what}``, as of `PROBLEMS`."""

    engine: type[Engine]
    rung: int
    name: str
    title: str


PROBLEMS: dict[type[Fused], tuple[str, str]] = {
    FusedForward: ("forward", "square, product, root and multiplication in one tiled kernel"),
    FusedGammaGradient: ("gamma_gradient", "tiled product over positions, sums on chip"),
    FusedBackward: ("backward", "the three gradients from tiled kernels, sums on chip"),
    FusedStep: ("step", "fused_forward and fused_backward"),
}
ENGINES = (
    Listing(Tiled, 10, "fused_{problem}", "{what}"),
    Listing(Streams, 11, "fused_{problem}_streams", "fused_{problem} by few work-items with wide vectors"),
    Listing(TensorCores, 12, "tensor_core", "fused_{problem} on matrix units, three TF32 products"),
    Listing(TensorCoresBf16, 13, "tensor_core_bf16", "fused_{problem} on matrix units, three bf16 products"),
    Listing(TensorCoresPlain, 14, "tensor_core_tf32", "fused_{problem} on matrix units, plain TF32"),
)


def variant(base: type[Fused], listing: Listing) -> type[Fused]:
    """Return the variant of an engine in the problem of ``base``.

    Its module is the engine's: a variant rests on the files of its own engine, not on those of all that stand here.
    """
    problem, what = PROBLEMS[base]
    engine = listing.engine
    made: Any = ABCMeta(
        base.__name__.replace("Fused", engine.__name__), (base,),
        {
            "__module__": engine.__module__, "__doc__": engine.__doc__, "engine": engine, "rung": listing.rung,
            "name": listing.name.format(problem=problem), "title": listing.title.format(problem=problem, what=what),
            "tunables": base.tunables_of(engine), "needs": engine.needs, "unit": engine.unit,
            "precision": engine.precision,
        },
    )  # fmt: skip
    return made


VARIANTS = {cls.__name__: cls for cls in (variant(*pair) for pair in product(PROBLEMS, ENGINES))}
globals().update(VARIANTS)  # where discovery looks for them
