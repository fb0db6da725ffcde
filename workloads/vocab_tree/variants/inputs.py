"""Device copies of a problem's arrays, made once per group and shared by the variants."""

from __future__ import annotations

import numpy as np

from perfport.workload import Buffer, Setup, round_up

from .. import fixed_point, passes


def points(setup: Setup) -> Buffer:
    """The points, rows of bytes."""
    return setup.input("points", lambda: setup.device.upload(setup.problem.points))


def centres(setup: Setup) -> Buffer:
    """The centres in fixed point."""
    return setup.input("centres", lambda: setup.device.upload(setup.problem.centres))


def halves(setup: Setup) -> Buffer:
    """H of each centre."""
    return setup.input("halves", lambda: setup.device.upload(fixed_point.halves(setup.problem.centres)))


def moving(setup: Setup) -> Buffer:
    """All nodes take part."""
    return setup.input("moving", lambda: setup.device.upload(np.ones(setup.problem.nodes, np.uint32)))


def float_centres(setup: Setup) -> Buffer:
    """The centres in FP32, which holds them exactly."""
    return setup.layout(
        "float centres",
        lambda: setup.device.upload(setup.problem.centres.astype(np.float32) / np.float32(fixed_point.ONE)),
    )


def float_points(setup: Setup) -> Buffer:
    """The points in FP32, four times their size."""
    return setup.layout("float points", lambda: setup.device.upload(setup.problem.points.astype(np.float32)))


def interleaved(setup: Setup) -> Buffer:
    """Words of four dimensions of neighbouring points side by side, zeros behind the last point."""

    def make() -> Buffer:
        points = setup.problem.points
        runs = np.zeros((round_up(len(points), passes.RUN), points.shape[1]), np.uint8)
        passes.interleave(points, runs)
        return setup.device.upload(runs)

    return setup.layout("interleaved", make)


def units(setup: Setup) -> Buffer:
    """16 dimensions of each point side by side: (dims / 16, count, 16)."""

    def make() -> Buffer:
        points = setup.problem.points
        return setup.device.upload(points.reshape(len(points), -1, 16).transpose(1, 0, 2))

    return setup.layout("units", make)


def grouped(setup: Setup, length: int) -> Buffer:
    """Dimension-major within groups of ``length`` points: (groups, dims, length), zeros behind the last point.

    A group of all points is the plain dimension-major layout.
    """

    def make() -> Buffer:
        points = setup.problem.points
        padded = np.zeros((round_up(len(points), length), points.shape[1]), np.uint8)
        padded[: len(points)] = points
        return setup.device.upload(padded.reshape(-1, length, points.shape[1]).transpose(0, 2, 1))

    return setup.layout(f"grouped {length}", make)
