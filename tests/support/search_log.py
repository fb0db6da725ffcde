"""The log of a search of two variants, as `perfport tune` writes it."""

from __future__ import annotations

import itertools
from pathlib import Path

from perfport.model.record import Interval, Status
from perfport.tune.log import Entry, Log, Result, Search, Space, Trial

DEVICE, VARIANT = "opencl:pocl:0", "demo/rows/tuned"
VALUES: dict[str, list[int | float | str]] = {"group": [16, 32, 64, 128], "unroll": [1, 2, 4], "form": ["a", "b"]}
DEFAULTS: dict[str, int | float | str] = {"group": 64, "unroll": 1, "form": "a"}


def entries(variant: str = VARIANT) -> list[Entry]:
    """A whole space in which the group decides most, the unrolling a little, the form nothing; ``group=128`` fails."""
    device = {"name": "cpu-AMD EPYC 9999", "chip": "AMD EPYC 9999", "driver": "3.1", "kind": "cpu"}
    made: list[Entry] = [
        Search(
            name="demo", started="2026-11-24", seed=1, objective="mean", commit="c", code="d", devices={DEVICE: device}
        ),
        Space(device=DEVICE, variant=variant, size=24, values=VALUES, defaults=DEFAULTS, presets={"quick": 1.0}),
    ]
    for group, unroll, form in itertools.product(*VALUES.values()):
        config = {"group": group, "unroll": unroll, "form": form}
        seconds = 1e-3 * {16: 1.0, 32: 2.0, 64: 4.0, 128: 8.0}[int(group)] * (1 + 0.01 * int(unroll))
        failed, hopeless = group == 128 and unroll == 1, group == 128 and unroll == 2
        trial = Trial(
            device=DEVICE, variant=variant, preset="quick", config=config,
            status=Status.TIMEOUT if failed else Status.OK, reason="a step took too long" if failed else "",
            seconds=None if failed else seconds, relative=None if failed else seconds / 4.04e-3,
            times=[] if failed or hopeless else [seconds] * 3, hopeless=hopeless, took=0.5,
        )  # fmt: skip
        made.append(trial)
    gain = Interval(value=4.0, low=3.9, high=4.1)
    won = {"group": 16, "unroll": 1, "form": "a"}
    made.append(
        Result(device=DEVICE, variant=variant, presets={"quick": 1.0}, parameters=won, gain=gain, tried=24, of=24)
    )
    return made


def write(folder: Path, *variants: str) -> Path:
    """Write a log into a folder, and return that."""
    log = Log(folder)
    for variant in variants or (VARIANT,):
        for entry in entries(variant):
            log.append(entry)
    log.close()
    return folder
