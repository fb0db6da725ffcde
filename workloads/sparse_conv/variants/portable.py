"""One generator for every device: the walk over the weights is the same, which engine writes its code is a tunable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from perfport.workload import Buffer, DeviceInfo, Setup, Tunable, UnsupportedError

from ..problems import Layer
from .engine import Convolution, EngineVariant
from .generated import GeneratedSource
from .tiled import Tiled


class Portable(EngineVariant):
    """A variant whose engine follows the device: PTX where that is taken, else C, on a CPU in vectors."""

    engine = GeneratedSource  # runs everywhere
    tunables: ClassVar[dict[str, Tunable]] = {
        "engine": Tunable("device", ("device", "c", "ptx"), "language of the code; device: ptx where it is taken"),
        "height": Tunable(0, (0, 1, 2, 4), "output rows of a work-item; 0: as the engine chooses"),
        "filters": Tunable(0, Tiled.TUNABLES["filters"].values, "filters of a slice; 0: as the engine chooses"),
        **{name: GeneratedSource.TUNABLES[name] for name in ("width", "tail", "group", "program")},
        **{name: tunable for name, tunable in Tiled.TUNABLES.items() if name not in ("height", "filters")},
    }

    def convolve(self, setup: Setup, layer: Layer, source: Buffer, result: Buffer) -> Convolution:
        chosen, info = setup.tunables, setup.device.info
        self.written = language(chosen["engine"], info)
        if self.written == "c":
            return GeneratedSource(setup, layer, source, result, _of_source(chosen, info))
        return Tiled(setup, layer, source, result, {name: chosen[name] for name in Tiled.TUNABLES})

    def notes(self) -> dict[str, Any]:
        return {"engine": self.written, **super().notes()}


def language(asked: str, info: DeviceInfo) -> str:
    """``c`` or ``ptx``.

    Raises
    ------
    UnsupportedError
        Where PTX is asked for and the device does not take it.
    """
    if asked == "c":
        return asked
    try:
        Tiled.require(info)
    except UnsupportedError:
        if asked == "ptx":
            raise
        return "c"
    return "ptx"


def _of_source(chosen: Mapping[str, Any], info: DeviceInfo) -> dict[str, Any]:
    """Tunables of generated source, which calls the height rows and has a number where nothing is chosen."""
    own = GeneratedSource.TUNABLES
    given = {**chosen, "rows": chosen["height"]}
    return {name: given[name] or tunable.default_for(info) for name, tunable in own.items()}
