"""The pruned network as one kernel: generated code for its layers, images in local memory from first to last."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from perfport import backend
from perfport.workload import Artifact, Enqueue, Setup, Traffic, Tunable, UnsupportedError, Variant, ceil_div

from .. import fused
from ..problems import PrunedNetwork
from .network import accuracies


class FusedNetwork(Variant):
    """One launch, where the others have five."""

    problem = PrunedNetwork
    name, title, role, rung = "generated_fused", "generated source, all layers in one launch", "beyond", 6
    tunables: ClassVar[dict[str, Tunable]] = {
        "images": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8), "images of a work-group, at most"),
        "block": Tunable({"cpu": 20, "gpu": 5}, (1, 2, 4, 5, 10, 20), "channels after which work-items meet"),
    }

    def __init__(self, setup: Setup) -> None:
        self.setup, self.data = setup, setup.problem
        conv1, conv2, full = self.data.layers
        first, second, last = conv1.operator, conv2.operator, full.operator
        self.lanes = second.pixels // last.filters * last.filters
        self.table = fused.last_layer(full.weights, self.lanes, second.pixels, second.out_width)
        self.area = first.inputs + second.inputs
        self.images = self._images(second.pixels)
        self.items, self.groups = self.images * second.pixels, ceil_div(self.data.batch, self.images)
        self.code = fused.first_layer(conv1.weights, first.width, second.height * second.width)
        self.code += fused.second_layer(conv2.weights, second.width, setup.tunables["block"])
        macros = {
            "IMAGES": self.images, "BATCH": self.data.batch, "SIDE": first.width, "FIRST": first.filters,
            "MIDDLE": second.width, "SECOND": second.filters, "LAST": second.out_width, "CLASSES": last.filters,
            "LANES": self.lanes, "ENTRIES": len(self.table),
        }  # fmt: skip
        source = setup.input("x", lambda: setup.device.upload(self.data.x))
        logits = setup.output("logits", np.float32, self.data.expected.shape)
        kernel, table = setup.load("network", partial(self._artifact, macros)), setup.upload(self.table)
        launch = partial(setup.device.launch, kernel, self.groups, self.items, source, table, logits)
        local_bytes = 4 * (self.images * self.area + self.table.size)
        self.steps = [Enqueue(partial(launch, local_bytes=local_bytes), self._traffic())]

    def _images(self, items: int) -> int:
        """Images of a work-group: as many as asked for, as fit local memory, and as keep every compute unit busy."""
        info = self.setup.device.info
        room = (info.local_memory_bytes // 4 - self.table.size) // (self.area + items)
        if room < 1:
            raise UnsupportedError(
                f"an image needs {4 * (self.area + items + self.table.size)} bytes of local memory, {info.id} has "
                f"{info.local_memory_bytes}"
            )
        return min(self.setup.tunables["images"], room, ceil_div(self.data.batch, info.compute_units))

    def _artifact(self, macros: dict[str, int]) -> Artifact:
        device, text = self.setup.device, f"{self.code}#line 1\n{self.setup.session.source('network.cl')}"
        return backend.get(device.info.backend).build("network.cl", text, macros, device.target)

    def _traffic(self) -> Traffic:
        conv1, conv2, full = self.data.layers
        first, second, batch = conv1.operator, conv2.operator, float(self.data.batch)
        items, pooled, table = float(self.groups * self.items), first.pixels / 4, 4.0 * self.table.size
        entries = items / second.pixels * self.table.size / 2
        parts = batch * (self.lanes - full.operator.filters)
        read, written = 4 * batch * first.inputs, 4.0 * self.data.expected.size
        return Traffic(
            flops=conv1.flops + 2 * items * conv2.nonzero + 2 * entries + parts,
            local_write=read + self.groups * table + 4 * (batch * (second.inputs + second.outputs) + items),
            local_read=8 * batch * pooled * self.code.count("= vload2(") + 4 * items * self.code.count("x = from[")
            + 24 * entries + 4 * parts,
            global_read=read + self.groups * table, global_write=written, dram_read=read + table, dram_write=written,
        )  # fmt: skip

    def notes(self) -> dict[str, Any]:
        logits = self.setup.outputs["logits"]
        values = self.setup.device.read(logits.buffer, np.float32, logits.shape)
        nonzero = [layer.nonzero for layer in self.data.layers]
        return {**accuracies(self.data, values), "nonzero": sum(nonzero), "index_bytes": 2 * self.table.size}
