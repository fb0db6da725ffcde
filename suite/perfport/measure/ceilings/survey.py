"""`perfport ceilings`: sweeps of several devices, each in a child process, stored with the environment and the peer."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ... import backend
from ...machine import environment, platforms
from ...machine.children import held_back, obey_parent
from ...machine.chip_lock import chip_lock
from ...machine.paths import shorten
from ...model.device import DeviceInfo
from ...model.errors import InfrastructureError, UnavailableError, UsageError
from ...model.schema import Model
from ...model.untrusted import inside
from . import clpeak
from .cached import store
from .entry import Ceilings
from .sweeping import sweep

FORMAT_VERSION = 1
STEP_TIMEOUT_S = 600.0  # for one ceiling


@dataclass(frozen=True)
class CeilingStarted:
    """Message of the child: it is about to take this step, which a ceiling or waiting is."""

    step: str


@dataclass(frozen=True)
class SweepFailed:
    """Message of the child: why there will be no ceilings."""

    reason: str


class Survey(Model):
    """The ceilings of one device, with the peer's and where they were measured."""

    format_version: int = FORMAT_VERSION
    device: DeviceInfo
    ceilings: Ceilings
    peer: clpeak.Peer | None = None
    host: dict[str, Any]
    versions: dict[str, str]
    commit: dict[str, Any] | None
    command: list[str]


def survey(
    info: DeviceInfo,
    full: bool = False,
    peer: bool = False,
    command: list[str] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> Survey:
    """Measure a device's ceilings in a child process and keep them in the user's cache.

    Parameters
    ----------
    info : DeviceInfo
    full : bool
        All shapes instead of the ones that have won somewhere.
    peer : bool
        Run clpeak before and after.
    command : list of str, optional
        What was typed, to be stored.
    step : callable
        Told what comes next.

    Raises
    ------
    InfrastructureError
        If the child fails, dies, or is silent for too long.
    """
    with chip_lock(info.processor, step):
        runs = []
        measured_peer = clpeak.Peer(version=clpeak.version()) if peer else None
        try:
            if peer:
                step(f"{info.id}: {clpeak.PROGRAM} before")
                runs.append(clpeak.run(info))
        except UnavailableError as error:
            measured_peer = clpeak.Peer(status="unavailable", reason=str(error))
        ceilings = _in_child(info, full, step)
        if measured_peer and measured_peer.status == "ok":
            step(f"{info.id}: {clpeak.PROGRAM} after")
            with contextlib.suppress(UnavailableError):  # it has just worked: one run is enough
                runs.append(clpeak.run(info))
            measured_peer.entries = clpeak.collect(runs)
    store(info, ceilings)
    return Survey(
        device=info, ceilings=ceilings, peer=measured_peer, host=environment.host(), versions=environment.versions(),
        commit=environment.commit(), command=command or [],
    )  # fmt: skip


def _in_child(info: DeviceInfo, full: bool, step: Callable[[str], None]) -> Ceilings:
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    process = context.Process(target=child, args=(other, info, full), daemon=True)
    with held_back():
        process.start()
    other.close()
    try:
        while pipe.poll(STEP_TIMEOUT_S):
            match pipe.recv():
                case CeilingStarted(started):
                    step(f"{info.id}: {started}")
                case SweepFailed(reason):
                    raise InfrastructureError(f"{info.id}: the ceilings cannot be measured: {reason}")
                case Ceilings() as ceilings:
                    return ceilings
        raise InfrastructureError(f"{info.id}: a ceiling took longer than {STEP_TIMEOUT_S:g} s")
    except EOFError:
        process.join(5)
        raise InfrastructureError(f"{info.id}: the measuring process ended with code {process.exitcode}") from None
    finally:
        process.kill()
        process.join(5)


def child(pipe: Connection, info: DeviceInfo, full: bool) -> None:
    """Open a device, sweep it, and send its `Ceilings`, or why there are none."""
    obey_parent()
    try:
        if info.runtime:
            platforms.use([info.runtime])
        device = backend.get(info.backend).open(info)
        pipe.send(sweep(device, full, lambda step: pipe.send(CeilingStarted(step))))
    except Exception:
        pipe.send(SweepFailed(traceback.format_exc().strip().splitlines()[-1]))


def file_name(info: DeviceInfo) -> str:
    """Return the name of a device's file: two machines' devices may have one id."""
    return re.sub(r"[^a-z0-9]+", "-", f"{info.chip} {info.id}".lower()).strip("-") + ".json"


def write(measured: Survey, folder: Path) -> Path:
    """Store a survey, with paths shortened. Raises `InfrastructureError` where the folder cannot be written."""
    path = inside(folder, file_name(measured.device))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(shorten(measured.model_dump(mode="json")), indent=1) + "\n")
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot write the ceilings ({error.strerror})") from None
    return path


def read(folders: list[Path]) -> Iterator[Survey]:
    """Yield the surveys of some folders, in the order of their file names.

    Raises
    ------
    UsageError
        If a folder holds none, or a file is not one.
    """
    for folder in folders:
        paths = sorted(folder.glob("*.json"))
        if not paths:
            raise UsageError(f"{folder}: no ceilings (files *.json of perfport ceilings -o) there")
        for path in paths:
            try:
                yield Survey.model_validate_json(path.read_text())
            except (OSError, ValidationError) as error:
                raise UsageError(f"{path}: not a file of perfport ceilings: {str(error).splitlines()[0]}") from None
