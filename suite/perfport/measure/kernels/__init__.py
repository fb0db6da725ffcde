"""Kernels of the harness itself: ceilings, cache flush, generators."""

from importlib.resources import files

from ... import backend
from ...backend import Module, OpenDevice


def load(device: OpenDevice, file: str) -> Module:
    """Build a kernel file of this package for a device, and load it."""
    source = (files(__package__) / file).read_text()
    return device.load(backend.get(device.info.backend).build(file, source, {}, device.target))
