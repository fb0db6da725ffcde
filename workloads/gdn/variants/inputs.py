"""Device copies of a problem's arrays, made once per group and shared by the variants."""

from __future__ import annotations

from functools import partial

import numpy as np

from perfport.workload import Buffer, Setup, UnsupportedError

from ..problems import Reduction


def array(setup: Setup, name: str) -> Buffer:
    """An array of the problem, by the name of its attribute: ``w``, ``delta``, ``d``, ``gamma``, ``beta``."""
    return setup.input(name, lambda: setup.device.upload(getattr(setup.problem, name)))


def ones(setup: Setup) -> Buffer:
    """The vector of ones, one for each position, that sums are products with."""
    return setup.input("ones", lambda: setup.device.upload(np.ones(setup.problem.positions, np.float32)))


def raw(setup: Setup) -> Buffer:
    """The N x N vectors of a reduction problem, from the counter-based generator."""
    problem: Reduction = setup.problem
    count = problem.vectors * problem.positions

    def make() -> Buffer:
        require_memory(setup, "the vectors", [4 * count])
        buffer = setup.device.empty(4 * count)
        cpu = setup.device.info.kind == "cpu"
        kernel = setup.kernel("generate.cl", "generate")
        groups = setup.device.info.compute_units * (8 if cpu else 32)
        args = (buffer, np.uint64(count), np.uint64(problem.seed & 0xFFFFFFFF))
        setup.device.launch(kernel, groups, 64 if cpu else 256, *args)
        return buffer

    return setup.input("raw", make)


def products(setup: Setup, count: int, nbytes: int) -> list[Buffer]:
    """Arrays of N x N x P words, too large for each variant to have its own.

    Raises
    ------
    UnsupportedError
        Before anything is allocated, where the device cannot hold them beside what it holds already.
    """
    held: dict[int, Buffer] = setup.session.shared("work products held", dict)[0]
    missing = [number for number in range(count) if number not in held]
    require_memory(setup, f"N x N x P products ({count} arrays)", [nbytes] * len(missing))
    for number in missing:
        held[number] = setup.device.empty(nbytes)
    return [setup.shared_scratch(f"products {number}", partial(held.__getitem__, number)) for number in range(count)]


def require_memory(setup: Setup, what: str, sizes: list[int]) -> None:
    """Refuse buffers that the device cannot hold beside what it holds already.

    Raises
    ------
    UnsupportedError
        With the bytes needed and the bytes free.
    """
    info = setup.device.info
    free = info.memory_bytes - setup.device.allocated
    if sum(sizes) > free:
        raise UnsupportedError(f"{what} need {sum(sizes)} bytes, {info.id} has {free} bytes free")
    if max(sizes, default=0) > info.max_alloc_bytes:
        raise UnsupportedError(
            f"{what} need a buffer of {max(sizes)} bytes, {info.id} allocates at most {info.max_alloc_bytes} at once "
            f"({free} bytes free)"
        )
