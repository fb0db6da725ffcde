"""Variants of the problem of one operator: each is one engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfport.workload import Setup

from ..operators import index_overhead
from ..problems import SparseConv
from .compressed import CompressedRows, Escoin
from .direct import ConstantTemplate, Template, TemplateWithoutPrefetch
from .engine import EngineVariant
from .generated import ConstantSource, GeneratedSource
from .im2col import DenseProduct, SparseProduct
from .portable import Portable
from .ptx import PtxTemplate, PtxTemplateConstants, PtxTemplateWithoutPrefetch
from .tiled import Tiled


class _Single(EngineVariant):
    """One engine on the problem's layer."""

    problem = SparseConv

    def __init__(self, setup: Setup) -> None:
        self.data: SparseConv = setup.problem
        source = setup.input("x", lambda: setup.device.upload(self.data.x))
        result = setup.output("y", np.float32, self.data.shape)
        self.convolution = self.convolve(setup, self.data.layer, source, result)
        self.steps = self.convolution.steps

    def notes(self) -> dict[str, Any]:
        layer, o = self.data.layer, self.data.operator
        return {
            "nonzero": layer.nonzero,
            "operational_intensity": o.intensity(layer.batch, layer.nonzero),
            "csr_index_overhead_16_bit": index_overhead(layer.nonzero, o.filters, 2),
            "csr_index_overhead_32_bit": index_overhead(layer.nonzero, o.filters, 4),
            **self.convolution.notes(),
        }


class DenseDirect(_Single):
    """The 1.0 of the ladder."""

    engine = Template
    name, title, rung = "dense_direct", "template, every weight", 1
    source = "operator template"


class DenseDirectWithoutPrefetch(_Single):
    """What fetching the next tile early gives."""

    engine = TemplateWithoutPrefetch
    name, title, role, rung = "dense_direct_no_prefetch", "template, tiles fetched when needed", "control", 1
    source = "operator template"


class CsrDirect(_Single):
    """Sparse direct convolution with index loads."""

    engine = CompressedRows
    name, title, rung = "csr_direct", "compressed rows with stretched offsets", 2
    source = "index overhead"


class EscoinDirect(_Single):
    """The published kernel that the source compares with."""

    engine = Escoin
    name, title, rung = "escoin", "Escoin's kernel: rows in local memory, inputs by cache; any stride", 2
    source = "comparison with Escoin"


class Im2colDense(_Single):
    """The product written as a kernel."""

    engine = DenseProduct
    name, title, rung = "im2col_dense", "im2col and a dense product", 3
    source = "comparison with cuBLAS"


class Im2colCsr(_Single):
    """The sparse product written as a kernel."""

    engine = SparseProduct
    name, title, rung = "im2col_csr", "im2col and a product of compressed rows", 4
    source = "comparison with cuSPARSE"


class ConstantWeights(_Single):
    """What the constant path alone gives."""

    engine = ConstantTemplate
    name, title, role, rung = "constant_weights", "template, every weight read from constant memory", "control", 5
    source = "operator template"


class ConstantWeightsSparse(_Single):
    """The constant path with the zeros skipped."""

    engine = ConstantSource
    name, title, role, rung = "constant_weights_sparse", "generated source, weights in constant memory", "control", 6
    source = "operator template"


class GeneratedLiterals(_Single):
    """Only non-zero multiply-adds, weights as literals: every device."""

    engine = GeneratedSource
    name, title, rung = "generated_source", "generated source, weights as literals", 7
    source = "code generation"


class GeneratedPtx(_Single):
    """The source's method."""

    engine = PtxTemplate
    name, title, rung = "generated_ptx", "PTX template, specialised and assembled; weights as immediates", 8
    source = "IR template and specialisation"


class GeneratedPtxWithoutPrefetch(_Single):
    """What fetching the next tile early gives the specialised code."""

    engine = PtxTemplateWithoutPrefetch
    name, title, role, rung = "generated_ptx_no_prefetch", "the same, tiles fetched when needed", "control", 8
    source = "IR template and specialisation"


class GeneratedPtxConstants(_Single):
    """What weights as immediates give: the source's GPU reads them from constant memory."""

    engine = PtxTemplateConstants
    name, title, role, rung = "generated_ptx_constants", "the same, weights in constant memory", "control", 8
    source = "IR template and specialisation"


class GeneratedTiled(_Single):
    """What today's GPUs ask for."""

    engine = Tiled
    name, title, role, rung = "generated_tiled", "PTX for the weights: tiled, copies overlapped", "beyond", 9


class Generated(Portable, _Single):
    """One generator, everywhere."""

    name, title, role, rung = "generated", "one generator: PTX, C or vectors, as the device takes", "beyond", 10
