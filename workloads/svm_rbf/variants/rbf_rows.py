"""Variants of `rbf_rows`: the source's ladder, its control arms, and one rung beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Setup, Traffic, Tunable, UnsupportedError, Variant, ceil_div, round_up

from ..problems import RbfRows
from . import inputs
from .inputs import Matrix

GROUP = Tunable({"cpu": 64, "gpu": 256}, (16, 32, 64, 128, 256, 512), "work-items per work-group")
AHEAD = (0, 256, 512, 1024, 2048)


class _RbfVariant(Variant):
    """One work-item per point (or per few points); subclasses choose kernel, layout and macros."""

    problem = RbfRows
    kernel: ClassVar[str]
    points_per_item: ClassVar[int] = 1
    tunables: ClassVar[dict[str, Tunable]] = {"group": GROUP}

    def __init__(self, setup: Setup) -> None:
        self.device = setup.device
        self.setup = setup
        self.data: RbfRows = setup.problem
        self.matrix = self.layout(setup)
        self.group: int = setup.tunables["group"]
        self.blocks = ceil_div(self.data.dims, 4)
        self._kernel = setup.kernel("rbf_rows.cl", self.kernel, **self.macros())
        padded = round_up(self.data.points, 4)
        self.outputs = [
            setup.output(name, np.float32, self.data.points, padded) for name in ("high_kernel", "low_kernel")
        ]
        self.arguments = (
            self.matrix.buffer, np.uint32(self.data.points), np.uint32(self.matrix.pitch),
            np.uint32(self.data.high), np.uint32(self.data.low), self.data.gamma, *self.outputs,
        )  # fmt: skip

    def layout(self, setup: Setup) -> Matrix:
        """The form of the data that the kernel reads."""
        return inputs.blocked(setup)

    def macros(self) -> dict[str, int]:
        """Compile-time parameters beyond the tunables."""
        return {self.kernel.upper(): 1, "NDIM": self.data.dims}

    def groups(self) -> int:
        """Number of work-groups."""
        return ceil_div(self.data.points, self.group * self.points_per_item)

    def local_bytes(self) -> int:
        """Local memory of a work-group."""
        return 0

    def launch(self) -> None:
        local_bytes = self.local_bytes()
        self.device.launch(self._kernel, self.groups(), self.group, *self.arguments, local_bytes=local_bytes)

    def traffic(self) -> Traffic:
        """Modelled: the whole layout with its padding once (the two points stay cached), both outputs once."""
        points = float(self.data.points)
        issued = {"special_ops": 2 * points, "global_write": 8 * points, **self.issued()}
        return Traffic(dram_read=self.matrix.buffer.nbytes, dram_write=8 * points, **issued)

    def issued(self) -> dict[str, float]:
        """Operations and bytes as the kernel's work-items issue them; here a loop over single dimensions."""
        points, dims = float(self.data.points), self.data.dims
        return {"flops": (6 * dims + 2) * points, "global_read": 12 * dims * points}

    def block_flops(self) -> float:
        """Operations of a loop over blocks: 4 differences, a dot product of 7 and its addition, for both points."""
        return (24.0 * self.blocks + 2) * self.data.points


class RowMajor(_RbfVariant):
    """Direct translation of the C loop."""

    name, title, rung = "row_major", "one work-item per point, row-major data", 1
    source = "Catanzaro 2011, naive kernel"
    kernel = "row_major"

    def layout(self, setup: Setup) -> Matrix:
        return inputs.row_major(setup)


class RowMajorFloat4(_RbfVariant):
    """Control: vector loads without the transposition."""

    name, title, role, rung = "row_major_float4", "row-major data read by float4", "control", 1
    source = "control arm of Catanzaro 2011, vectorization"
    kernel = "row_major_float4"

    def layout(self, setup: Setup) -> Matrix:
        return inputs.pitched(setup, 4)

    def issued(self) -> dict[str, float]:
        return {"flops": self.block_flops(), "global_read": 48.0 * self.blocks * self.data.points}


class ColumnMajor(_RbfVariant):
    """Transposed data, padded pitch, index strided through memory."""

    name, title, rung = "column_major", "transposed data: neighbouring work-items read neighbouring words", 2
    source = "Catanzaro 2011, data layout"
    kernel = "column_major"
    recompute = 0
    PITCH = 32  # floats; the source's value, which a device profile may replace (`pitch_multiple`)

    def layout(self, setup: Setup) -> Matrix:
        return inputs.column_major(setup, int(setup.profile.get("PITCH_MULTIPLE", self.PITCH)))

    def macros(self) -> dict[str, int]:
        return {**super().macros(), "RECOMPUTE": self.recompute}


class ColumnMajorUnpadded(ColumnMajor):
    """Control: pitch equal to the number of points."""

    name, title, role, rung = "column_major_unpadded", "column_major without padding of the pitch", "control", 2
    source = "control arm of Catanzaro 2011, data layout"

    def layout(self, setup: Setup) -> Matrix:
        return inputs.column_major(setup, 1)


class ColumnMajorRecomputed(ColumnMajor):
    """Control: the index multiplied out in every iteration."""

    name, title, role, rung = "column_major_recomputed", "column_major with the index recomputed", "control", 3
    source = "control arm of Catanzaro 2011, data layout"
    recompute = 1


class Vectorized(_RbfVariant):
    """Four consecutive dimensions of a point at a time."""

    name, title, rung = "vectorized", "float4 blocks of 4 dimensions of one point", 3
    source = "Catanzaro 2011, vectorization"
    kernel = "vectorized"

    def issued(self) -> dict[str, float]:
        return {"flops": self.block_flops(), "global_read": 48.0 * self.blocks * self.data.points}


class VectorizedPoints(_RbfVariant):
    """Four neighbouring points per work-item."""

    name, title, role, rung = "vectorized_points", "4 neighbouring points per work-item", "control", 4
    source = "control arm: the other way to take four elements at a time, not in Catanzaro 2011"
    kernel = "vectorized_points"
    points_per_item = 4

    def layout(self, setup: Setup) -> Matrix:
        return inputs.column_major(setup, 32)

    def issued(self) -> dict[str, float]:
        """The last work-item computes up to 3 points past the end."""
        items, dims = ceil_div(self.data.points, 4), self.data.dims
        return {
            "flops": (24.0 * dims + 8) * items, "special_ops": 8.0 * items,
            "global_read": 24.0 * dims * items, "global_write": 32.0 * items,
        }  # fmt: skip


class _Images(_RbfVariant):
    """The two points come through the image path."""

    kernel = "image"
    needs = ("images",)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._fill = setup.kernel("rbf_rows.cl", "fill_images", **self.macros())
        self._gather = setup.kernel("rbf_rows.cl", "gather", GATHER=1, NDIM=self.data.dims)
        self._rows = [setup.scratch(16 * self.blocks) for _ in range(2)]
        self.images = self.make_images()
        self.arguments = (*self.arguments, *(image.read for image in self.images))

    def make_images(self) -> Sequence[Any]:
        """An image for each of the two points."""
        return [self.device.image(self.blocks, 1) for _ in range(2)]

    def _points(self) -> tuple[object, ...]:
        return self.matrix.buffer, np.uint32(self.matrix.pitch), np.uint32(self.data.high), np.uint32(self.data.low)

    def fill_by_kernel(self, images: Sequence[Any]) -> None:
        """Fill both images with ``write_imagef``."""
        handles = [image.write for image in images]
        self.device.launch(self._fill, ceil_div(self.blocks, 64), 64, *self._points(), *handles)

    def fill_by_copy(self) -> None:
        """Fill both images with copies from a buffer (which the blocked layout must be gathered into first)."""
        self.device.launch(self._gather, ceil_div(self.blocks, 64), 64, *self._points(), *self._rows)
        for row, image in zip(self._rows, self.images, strict=True):
            self.device.copy_to_image(row, image)

    def issued(self) -> dict[str, float]:
        blocks = float(self.blocks) * self.data.points
        return {"flops": self.block_flops(), "global_read": 16 * blocks, "image_read": 32 * blocks}


class Image(_Images):
    """Filled once, outside the timed window."""

    name, title, rung = "image", "the two points in images, filled beforehand (compute only)", 5
    source = "Catanzaro 2011, images"

    def make_images(self) -> Sequence[Any]:
        return self.setup.layout("images", self._filled)

    def _filled(self) -> Sequence[Any]:
        images = super().make_images()
        self.fill_by_kernel(images)
        return images


class ImageRefillKernel(_Images):
    """The hand-written fill in every iteration."""

    name, title, rung = "image_refill_kernel", "image, refilled every time by a kernel with write_imagef", 6
    source = "Catanzaro 2011, images (fill by kernel)"

    def launch(self) -> None:
        self.fill_by_kernel(self.images)
        super().launch()

    def issued(self) -> dict[str, float]:
        issued, points = super().issued(), 32.0 * self.blocks
        return {**issued, "global_read": issued["global_read"] + points, "image_write": points}


class ImageRefillCopy(_Images):
    """``clEnqueueCopyBufferToImage`` (or its CUDA counterpart) in every iteration."""

    name, title, rung = "image_refill_copy", "image, refilled every time by buffer-to-image copies of gathered rows", 7
    source = "Catanzaro 2011, images (fill by copy)"

    def launch(self) -> None:
        self.fill_by_copy()
        super().launch()

    def issued(self) -> dict[str, float]:
        """With the gathering kernel; the copies that follow it are not issued by work-items."""
        issued, points = super().issued(), 32.0 * self.blocks
        return {
            **issued, "global_read": issued["global_read"] + points, "global_write": 8.0 * self.data.points + points,
        }  # fmt: skip


class LocalMemory(_RbfVariant):
    """The work-group copies both points into local memory first."""

    name, title, rung = "local_memory", "the two points in local memory", 8
    source = "Catanzaro 2011, local memory"
    kernel = "local_memory"
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": GROUP,
        "unroll": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8, 16), "loads in flight per work-item"),
    }

    def local_bytes(self) -> int:
        return 32 * self.blocks

    def issued(self) -> dict[str, float]:
        """Each work-group copies both points; each work-item reads them back."""
        blocks, copies = float(self.blocks) * self.data.points, 32.0 * self.blocks * self.groups()
        return {
            "flops": self.block_flops(), "global_read": 16 * blocks + copies,
            "local_read": 32 * blocks, "local_write": copies,
        }  # fmt: skip


class SplitDimensions(_RbfVariant):
    """Several work-items per point, so that few points still fill the device."""

    name, title, role, rung = "split_dimensions", "local_memory with several work-items for a point", "beyond", 9
    kernel = "split_dimensions"
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": GROUP,
        "parts": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8), "work-items that share a point"),
        "unroll": Tunable(4, (1, 2, 4, 8), "loads in flight per work-item"),
    }

    def groups(self) -> int:
        return ceil_div(self.data.points, self.group // self.setup.tunables["parts"])

    def local_bytes(self) -> int:
        return 32 * self.blocks

    def issued(self) -> dict[str, float]:
        """As `LocalMemory`, for whole groups of points, and whole turns of the parts; then the sums of the parts."""
        parts: int = self.setup.tunables["parts"]
        points, groups = float(self.data.points), self.groups()
        padded = float(groups * (self.group // parts))
        loads = padded * parts * ceil_div(self.blocks, parts)
        copies = 32.0 * self.blocks * groups
        return {
            "flops": 24.0 * self.blocks * padded + 2 * parts * points, "global_read": 16 * loads + copies,
            "local_read": 32.0 * self.blocks * padded + 8 * (parts - 1) * points,
            "local_write": copies + 8.0 * self.group * groups,
        }  # fmt: skip


class CooperativeRows(_RbfVariant):
    """Row-major data without re-layout, read by teams of work-items."""

    name, title, role, rung = "cooperative_rows", "row-major data read by teams of work-items", "beyond", 10
    kernel = "cooperative_rows"
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 32, 64, 128, 256, 512), "work-items per work-group"),
        "lanes": Tunable({"cpu": 1, "gpu": 32}, (1, 8, 16, 32), "work-items that share a row"),
        "rows": Tunable({"cpu": 4, "gpu": 1}, (1, 2, 4, 8), "rows that a team walks together"),
        "width": Tunable({"cpu": 16, "gpu": 4}, (4, 8, 16), "words per load"),
        "unroll": Tunable({"cpu": 2, "gpu": 4}, (1, 2, 4, 8), "loads in flight per row and work-item"),
        "groups_per_unit": Tunable(
            {"cpu": 8, "gpu": 64}, (4, 8, 16, 32, 64, 1024), "persistent work-groups per compute unit"
        ),
        "runs": Tunable(
            {"cpu": 1, "gpu": 0}, (0, 1), "work-groups take neighbouring blocks of rows, not every so many"
        ),
        "ahead": Tunable({"cpu": 1024, "gpu": 0}, AHEAD, "words that prefetch is ahead; 0: none"),
    }

    def layout(self, setup: Setup) -> Matrix:
        tunables = setup.tunables
        if tunables["group"] % tunables["lanes"]:
            raise UnsupportedError(f"group ({tunables['group']}) must be a multiple of lanes ({tunables['lanes']})")
        self.block = tunables["group"] // tunables["lanes"] * tunables["rows"]
        return inputs.pitched(setup, tunables["width"])

    def groups(self) -> int:
        persistent = self.device.info.compute_units * self.setup.tunables["groups_per_unit"]
        return min(ceil_div(self.data.points, self.block), persistent)

    def local_bytes(self) -> int:
        return 8 * (self.matrix.pitch + self.block * (self.setup.tunables["lanes"] + 1))

    def issued(self) -> dict[str, float]:
        """Teams walk whole blocks of rows (past the end, the last row again) and whole vectors of each row."""
        lanes, rows, width, group = (self.setup.tunables[name] for name in ("lanes", "rows", "width", "group"))
        blocks, pitch = ceil_div(self.data.points, self.block), self.matrix.pitch
        copies = 8.0 * pitch * self.groups()
        # Per block: distances, the sum of each work-item's vectors, the sums of a team's lanes.
        flops = 6 * pitch * self.block + 2 * (width - 1) * rows * group + 2 * lanes * self.block
        return {
            "flops": float(blocks) * flops + 2 * self.data.points,
            "global_read": 4.0 * pitch * self.block * blocks + copies,
            "local_read": 8.0 * blocks * (pitch * group // lanes + lanes * self.block),
            "local_write": 8.0 * blocks * rows * group + copies,
        }  # fmt: skip


class RowStreams(_RbfVariant):
    """Row-major data without re-layout: one long stream per work-item, prefetched, 16 exponentials at a time."""

    name, title, role, rung = "row_streams", "row-major data streamed by few work-items with wide vectors", "beyond", 11
    kernel = "row_streams"
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 1, "gpu": 64}, (1, 32, 64, 128), "work-items per work-group"),
        "width": Tunable({"cpu": 16, "gpu": 4}, (4, 8, 16), "words per load"),
        "unroll": Tunable(2, (1, 2, 4), "vectors per turn of the loop over a row"),
        "ahead": Tunable({"cpu": 1024, "gpu": 0}, AHEAD, "words that prefetch is ahead; 0: none"),
        "items_per_unit": Tunable(
            {"cpu": 16, "gpu": 512}, (1, 2, 4, 8, 16, 32, 64, 128, 512), "work-items per compute unit"
        ),
    }

    def layout(self, setup: Setup) -> Matrix:
        # Where vector loads need their own alignment, rows are padded to 4 words.
        self.any_alignment = "unaligned_vload" in setup.device.info.capabilities
        return inputs.row_major(setup) if self.any_alignment else inputs.pitched(setup, 4)

    def macros(self) -> dict[str, int]:
        whole_vector = self.data.dims >= self.setup.tunables["width"]
        return {**super().macros(), "OVERLAP": int(self.any_alignment and whole_vector)}

    def groups(self) -> int:
        items = self.device.info.compute_units * self.setup.tunables["items_per_unit"]
        return ceil_div(min(items, ceil_div(self.data.points, 16)), self.group)

    def issued(self) -> dict[str, float]:
        """A row's last words: one more vector under a mask, or word by word. Sums are stored, read again and stored."""
        points, width = float(self.data.points), self.setup.tunables["width"]
        vectors, tail = divmod(self.data.dims, width)
        masked = tail and self.macros()["OVERLAP"]
        rest, words = (8 * width, width) if masked else (6 * tail, tail)
        return {
            "flops": (6 * width * vectors + rest + 2 * (width - 1) + 2) * points,
            "global_read": (12 * (width * vectors + words) + 8) * points, "global_write": 16 * points,
        }  # fmt: skip
