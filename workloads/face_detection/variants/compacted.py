"""The variant of `windows` beyond the source's ladder: tiles, whose windows are packed or go as vectors."""

from __future__ import annotations

from typing import ClassVar

from perfport.workload import Setup, Tunable, UsageError

from . import streams
from .detector import Detector, Passing
from .windows import IMAGES, SWITCH, Tuned


class Compacted(Tuned):
    """Tiles in local memory: survivors packed after each stage, or neighbouring windows as vectors."""

    name, title, role, rung = (
        "compacted",
        "tiles in local memory, survivors packed, a node loaded once for several; or windows as vectors",
        "beyond",
        9,
    )
    source = "beyond the source"
    tunables: ClassVar[dict[str, Tunable]] = {
        **Tuned.tunables,
        "vector": Tunable(
            {"cpu": 8, "gpu": 0},
            (0, 8, 16),
            "neighbouring windows that go through the stages together, of a CPU's work-item to a tile, which leaves "
            "strip and tile alone to choose; 0: survivors are packed",
        ),
        "strip": Tunable({"cpu": 256, "gpu": 32}, (16, 32, 64, 256, 1024), IMAGES["strip"].description),
        "global_queue": Tunable(0, SWITCH, "windows from a queue in global memory"),
        "work_group": Tunable({"cpu": 16, "gpu": 256}, (16, 32, 64, 128, 256), "work-items of a work-group"),
        "groups_per_cu": Tunable({"cpu": 4, "gpu": 8}, (4, 6, 8, 12, 16, 32), "work-groups per compute unit"),
        "batch": Tunable(1024, (256, 512, 1024, 2048), "windows taken at a time, without tiles"),
        "tile": Tunable(
            32,
            (0, 16, 32, 64),
            "windows are taken by tiles of so many squared, with the image in local memory if that holds it; "
            "0: by rows",
        ),
        "by_bank": Tunable(
            128, (32, 64, 128, 256, 512, 4096), "waiting windows above which a tile's queue goes by banks"
        ),
        "per_item": Tunable(
            {"cpu": 1, "gpu": 2},
            (1, 2, 4),
            "windows that a work-item evaluates side by side, with cooperative_windows 0",
        ),
        "cooperative_windows": Tunable(0, (0, 2, 4, 8, 16), "windows from the local queue at a time; 0: by its length"),
        "single_item_stages": Tunable({"cpu": 1, "gpu": 0}, (0, 1, 2, 3, 5), "stages ahead of the local queue"),
        "unroll": Tunable({"cpu": 2, "gpu": 1}, (1, 2, 4), "trees per step of the loop over a stage"),
    }

    def detecting(self, setup: Setup, passing: Passing) -> Detector:
        """By vectors where the tunable says so; what they do not know has to be at its default: none is ignored."""
        if not setup.tunables["vector"]:
            return super().detecting(setup, passing)
        info = setup.device.info
        others = {
            name: setup.tunables[name]
            for name, tunable in self.tunables.items()
            if name not in streams.TUNABLES and setup.tunables[name] != tunable.default_for(info)
        }
        if others and info.kind == "cpu":
            known, given = ", ".join(streams.TUNABLES), ", ".join(f"{name} {value}" for name, value in others.items())
            raise UsageError(f"vector: with {setup.tunables['vector']}, expected {known} alone, got {given}")
        return streams.detector(setup, passing)
