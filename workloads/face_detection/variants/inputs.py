"""Device copies of frames and cascade: made once per group, shared by the variants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfport.workload import Buffer, Setup

from ..problems import Windows
from ..pyramid import coefficients
from . import layout
from .tile import TileImage


def frames(setup: Setup) -> Buffer:
    """The frames, bytes."""
    problem: Windows = setup.problem
    return setup.input("frames", lambda: setup.device.upload(problem.scene.pixels))


@dataclass(frozen=True)
class Nodes:
    """A cascade's nodes on the device, and whether they are packed."""

    buffer: Buffer
    packed: bool = False


def nodes(setup: Setup, offsets: bool) -> Nodes:
    """The cascade's nodes for the atlas: corners as offsets or as coordinates."""
    cascade, pyramid = setup.problem.cascade, setup.problem.pyramid

    def make() -> Buffer:
        corners = cascade.offsets(pyramid.pitch, 2 * pyramid.pitch * pyramid.lines) if offsets else None
        return setup.device.upload(layout.nodes(cascade, corners))

    return Nodes(setup.input(f"nodes {offsets} {pyramid.pitch}", make))


def tile_nodes(setup: Setup, image: TileImage) -> Nodes:
    """The cascade's nodes for a tile's image, packed where they fit.

    Where the image has halves a second table follows, for levels whose windows are 2 pixels apart.
    """
    cascade, halves = setup.problem.cascade, (0, image.half) if image.half else (0,)
    corners = [cascade.offsets(image.row, image.row * image.lines, half) for half in halves]
    packed = [table for of_half in corners if (table := layout.packed_nodes(cascade, of_half)) is not None]
    fits = len(packed) == len(corners)

    def make() -> Buffer:
        tables = packed if fits else [layout.nodes(cascade, of_half) for of_half in corners]
        return setup.device.upload(np.concatenate(tables))

    return Nodes(setup.input(f"tile nodes {image}", make), fits)


def rest_of_cascade(setup: Setup, packed: bool) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Roots of trees, leaves, first tree of each stage, thresholds of stages; gains for leaves where packed."""
    cascade = setup.problem.cascade
    if packed:
        gains, thresholds = layout.gains(cascade)

    def part(name: str, array: np.ndarray) -> Buffer:
        return setup.input(name, lambda: setup.device.upload(array))

    return (
        part("roots", cascade.tree_first),
        part("gains", gains) if packed else part("leaves", cascade.leaves),
        part("stage_first", cascade.stage_first),
        part("thresholds of gains", thresholds) if packed else part("stage_threshold", cascade.stage_threshold),
    )


def levels(setup: Setup, strip: int, tile: int = 0) -> Buffer:
    """The table of levels."""
    pyramid = setup.problem.pyramid
    return setup.input(f"levels {strip} {tile}", lambda: setup.device.upload(layout.level_table(pyramid, strip, tile)))


def interpolation(setup: Setup) -> Buffer:
    """Offset (20 bits) and weight of the second pixel (above) for each column and row of each level."""
    problem: Windows = setup.problem

    def make() -> Buffer:
        parts = []
        for level in problem.pyramid.levels:
            for source, target in ((problem.width, level.width), (problem.height, level.height)):
                offset, weight = coefficients(source, target)
                parts.append(offset.astype(np.uint32) | weight.astype(np.uint32) << np.uint32(20))
        return setup.device.upload(np.concatenate(parts))

    return setup.input("interpolation", make)
