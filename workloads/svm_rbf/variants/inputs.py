"""Device copies of a problem's data, and its re-layouts: made once per group, shared by the variants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perfport.workload import Buffer, Setup, ceil_div, round_up

from ..problems import Extrema, RbfRows


class Matrix(NamedTuple):
    """A data matrix on the device: its buffer and its pitch, in words or in blocks of 4 words."""

    buffer: Buffer
    pitch: int


def _fill_generated(setup: Setup, buffer: Buffer, count: int, mean: float = 0.0, bits: int = 24) -> None:
    cpu = setup.device.info.kind == "cpu"
    kernel = setup.kernel("generate.cl", "generate")
    groups = setup.device.info.compute_units * (8 if cpu else 32)
    scalars = np.uint32(setup.problem.seed & 0xFFFFFFFF), np.float32(mean), np.uint32(bits)
    exponent = np.int32(setup.problem.parameters.exponent)
    setup.device.launch(kernel, groups, 64 if cpu else 256, buffer, np.uint64(count), *scalars, exponent)


def row_major(setup: Setup) -> Matrix:
    """The data as the problem states it: rows of NDIM words."""
    problem: RbfRows = setup.problem

    def make() -> Buffer:
        if not problem.generated:
            return setup.device.upload(problem.matrix)
        buffer = setup.device.empty(4 * problem.points * problem.dims)
        _fill_generated(setup, buffer, problem.points * problem.dims, problem.parameters.mean)
        return buffer

    return Matrix(setup.input("matrix", make), problem.dims)


def pitched(setup: Setup, multiple: int) -> Matrix:
    """Rows padded with zeros to a multiple of some words; the problem's own data where it has that form already."""
    problem: RbfRows = setup.problem
    pitch = round_up(problem.dims, multiple)
    rows = row_major(setup)
    if pitch == problem.dims:
        return rows

    def make() -> Buffer:
        out = setup.device.empty(4 * problem.points * pitch)
        kernel = setup.kernel("layout.cl", "pitched", NDIM=problem.dims)
        groups = min(ceil_div(problem.points * pitch, 256), 1 << 16)
        setup.device.launch(kernel, groups, 256, rows.buffer, out, np.uint32(problem.points), np.uint32(pitch))
        return out

    return Matrix(setup.layout(f"pitched {pitch}", make), pitch)


def _transposed(setup: Setup, kernel_name: str, pitch: int, words: int) -> Matrix:
    problem: RbfRows = setup.problem
    rows = row_major(setup)

    def make() -> Buffer:
        out = setup.device.empty(4 * pitch * words)
        kernel = setup.kernel("layout.cl", kernel_name, NDIM=problem.dims)
        groups = (ceil_div(problem.dims, 32), ceil_div(pitch, 32))
        args = (rows.buffer, out, np.uint32(problem.points), np.uint32(pitch))
        setup.device.launch(kernel, groups, (32, 8), *args)
        return out

    return Matrix(setup.layout(f"{kernel_name} {pitch}", make), pitch)


def column_major(setup: Setup, multiple: int) -> Matrix:
    """Transposed data, pitch rounded up to a multiple of some words."""
    problem: RbfRows = setup.problem
    pitch = round_up(problem.points, multiple)
    return _transposed(setup, "column_major", pitch, problem.dims)


def blocked(setup: Setup) -> Matrix:
    """Column-major blocks of 4 dimensions, zero-padded; the pitch is in blocks."""
    problem: RbfRows = setup.problem
    pitch = round_up(problem.points, 8)
    return _transposed(setup, "blocked", pitch, round_up(problem.dims, 4))


def vector(setup: Setup) -> Buffer:
    """The vector of an arg-extrema problem."""
    problem: Extrema = setup.problem

    def make() -> Buffer:
        buffer = setup.device.empty(4 * problem.n)
        _fill_generated(setup, buffer, problem.n, bits=problem.bits)
        return buffer

    return setup.input("vector", make)
