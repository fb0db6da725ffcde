"""What there is here, in rows: devices, workloads with their variants, device profiles, experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..machine.device_profile import all_profiles, tuned
from ..machine.discovery import profiled
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, UnavailableError, UnsupportedError, UsageError, nearest
from ..workload import Variant, Workload, discover
from .experiment import load
from .plan import select_devices


def usable_devices(selectors: Sequence[str] | None, where: str = "--device") -> list[DeviceInfo]:
    """Return the healthy devices that ``--device``, or another key (``where``), means, all of them by default.

    Raises
    ------
    UsageError
        If a selector names nothing.
    InfrastructureError
        If there is no healthy device.
    """
    devices = select_devices(selectors or ["all"], profiled(), where)
    if not devices:
        raise InfrastructureError(f"no usable device for {', '.join(selectors or ['all'])!r}; see perfport devices")
    return devices


def device_rows(devices: Sequence[DeviceInfo]) -> list[dict[str, Any]]:
    """Return one row per device. Raises `InfrastructureError` if there is none."""
    if not devices:
        raise InfrastructureError(
            "no device found; 'pip install perfport[cpu]' brings an OpenCL runtime for x86-64 CPUs"
        )
    return [
        {
            "id": device.id,
            "name": device.name,
            "driver": device.driver,
            "units": device.compute_units,
            "memory": f"{device.memory_bytes / 2**30:.1f} GiB",
            "local": f"{device.local_memory_bytes / 2**10:.0f} KiB",
            "max group": device.max_work_group,
            "image width": f"{device.image2d_max_width}" if "images" in device.capabilities else "no",
            "profile": device.profile or "",
            "tuned": _tuned(device) if device.healthy else "",
            "health": "ok" if device.healthy else f"broken: {device.reason}",
        }
        for device in devices
    ]


def _tuned(device: DeviceInfo) -> str:
    """How many variants have other defaults here than the code's, by the profile that they are of."""
    own = [{name for name, each in entries if each.parameters} for entries in tuned(device).values()]
    numbers = Counter(name for names in own for name in names)
    return ", ".join(f"{number} by {name}" for name, number in sorted(numbers.items()))


def workloads(name: str | None, paths: Sequence[str]) -> list[Workload]:
    """Return the workload of that name, or all of them. Raises `UsageError` where there is none."""
    known = discover(paths)
    if name is None:
        return list(known.values())
    if name not in known:
        raise UsageError(f"no workload {name!r}{nearest(name, known)}; there are: {', '.join(known)}")
    return [known[name]]


def problems(workload: Workload) -> str:
    """Return a workload's title and a line for each of its problems, with metric, presets and headline sizes."""
    lines = [f"{workload.name}: {workload.title}"]
    for problem in workload.problems.values():
        at = ", ".join(f"{preset} ({kind})" for kind, preset in problem.headline.items())
        lines.append(
            f"  {problem.name}: {problem.title} [{problem.metric.unit}]; presets: {', '.join(problem.presets)}; "
            f"headline size: {at or 'the largest that ran'}"
        )
    return "\n".join([*lines, "", ""])


def variant_rows(workload: Workload, devices: Sequence[DeviceInfo]) -> list[dict[str, Any]]:
    """One row per variant: what it is, and on which devices it runs or why not."""
    return [
        {
            "problem": problem,
            "role": variant.role,
            "variant": name,
            "runs here": _runnable(variant, devices),
            "title": variant.title,
        }
        for problem, variants in workload.variants.items()
        for name, variant in variants.items()
    ]


def _runnable(variant: type[Variant], devices: Sequence[DeviceInfo]) -> str:
    able, reasons = [], []
    for device in devices:
        if not device.healthy:
            continue
        try:
            variant.require(device)
            able.append(device.id)
        except (UnsupportedError, UnavailableError) as error:
            reasons.append(str(error))
    if able:
        return ", ".join(able)
    return f"no: {reasons[0]}" if reasons else "no: no working device"


def profile_rows() -> list[dict[str, Any]]:
    """One row per device profile."""
    return [
        {
            "profile": profile.name,
            "title": profile.title,
            "status": profile.status,
            "GB/s": profile.bandwidth / 1e9 if profile.bandwidth else None,
            "GFLOP/s": profile.fp32 / 1e9 if profile.fp32 else None,
            "tuning": ", ".join(f"{workload}: {', '.join(keys)}" for workload, keys in profile.tuning.items()),
        }
        for profile in all_profiles().values()
    ]


def experiment_rows() -> list[dict[str, Any]]:
    """One row per experiment that ships."""
    names = sorted(file.name for file in files("perfport.experiments").iterdir() if file.name.endswith(".yaml"))
    rows = []
    for name in names:
        experiment = load(Path(str(files("perfport.experiments") / name)))
        rows.append(
            {"experiment": experiment.name, "title": experiment.title, "devices": ", ".join(experiment.devices)}
        )
    return rows
