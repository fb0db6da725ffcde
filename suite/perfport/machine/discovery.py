"""Which devices there are and whether each works, asked in child processes.

A broken OpenCL runtime can crash the process that loads it, or hang in its compiler. So each runtime, and
CUDA, is listed and tried in a child of its own; what does not come back is listed with its reason.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .. import backend
from ..model.device import DeviceInfo
from ..model.errors import PerfportError
from . import platforms, private
from .children import die_with_parent
from .device_profile import match_profile
from .trials import tried

CHECK_TIMEOUT_S = 60.0
#: Signals that say more of why a child is gone.
_CAUSES: dict[int, str] = {
    signal.SIGKILL: ", as the kernel does when memory runs out",
    signal.SIGXCPU: ", as the kernel does at a limit of processor time",
}
_PROBE = """
__kernel void probe(__global float *x, int n) {
    size_t i = get_global_id(0);
    if (i < n) x[i] = x[i] * 2.0f + 1.0f;
}
"""


def check(name: str, info: DeviceInfo) -> DeviceInfo:
    """Build and run a trivial kernel in this process; returns the device with its health filled in."""
    try:
        device = backend.get(name).open(info)
        artifact = backend.get(name).build("probe.cl", _PROBE, {}, device.target)
        x = np.arange(1, 1001, dtype=np.float32)
        buffer = device.upload(x)
        device.launch(device.load(artifact).kernel("probe"), 16, 64, buffer, np.int32(x.size))
        ok = np.array_equal(device.read(buffer, np.float32, x.shape), x * 2 + 1)
        return info.model_copy(update={"healthy": ok, "reason": "" if ok else "a trivial kernel gives wrong results"})
    except Exception as error:
        text = getattr(error, "log", "") or str(error)
        line = next((part.strip() for part in text.splitlines() if part.strip()), type(error).__name__)
        return info.model_copy(update={"healthy": False, "reason": f"a trivial kernel fails: {line[:300]}"})


def _broken(name: str, backend_name: str, reason: str, library: str = "", lost: bool = False) -> DeviceInfo:
    return DeviceInfo(
        id=f"{backend_name}:{name}:0", backend=backend_name, platform=name, name=name, chip="", runtime=library,
        kind="accelerator", compute_units=0, memory_bytes=0, max_alloc_bytes=0, local_memory_bytes=0,
        max_work_group=0, healthy=False, reason=reason, lost=lost,
    )  # fmt: skip


def ask_child(
    backend_name: str, name: str, library: str, environment: Mapping[str, str] | None = None
) -> list[DeviceInfo]:
    """List and try the devices of one runtime in a child process; one that fails is a broken device with its reason."""
    command = [sys.executable, "-m", "perfport.machine.discovery", backend_name, library]
    env = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False, env=env)
    except subprocess.TimeoutExpired:
        return [_broken(name, backend_name, f"did not answer within {CHECK_TIMEOUT_S:.0f} s", library, lost=True)]
    for line in done.stdout.splitlines():
        if line.startswith("DEVICES "):
            listed = [DeviceInfo.model_validate(device) for device in json.loads(line[8:])]
            devices = [tried(info, environment) if info.healthy else info for info in listed]
            if library and not devices:
                return [
                    _broken(name, backend_name, f"the runtime {library} cannot be loaded or has no device", library)
                ]
            return devices
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    if done.returncode < 0:
        last = f"killed by signal {-done.returncode}{_CAUSES.get(-done.returncode, '')}"
    reason = f"the runtime {library or name} fails to load: {last[:300]}"
    return [_broken(name, backend_name, reason, library, lost=True)]


def discover() -> list[DeviceInfo]:
    """List the devices of every backend, healthy or not, each runtime in a child process.

    Where caches had to be moved it says so, once (`private.prepare`).

    Returns
    -------
    list of DeviceInfo
        Ids are unique; unhealthy ones carry their reason.
    """
    private.prepare()
    jobs = [("opencl", name, library) for name, library in platforms.runtimes().items()]
    jobs.append(("cuda", "nvidia", ""))
    with ThreadPoolExecutor(max_workers=2) as pool:
        devices = [device for answer in pool.map(lambda job: ask_child(*job), jobs) for device in answer]
    unique: dict[str, DeviceInfo] = {}
    for device in devices:
        stem, number = device.id.rsplit(":", 1)
        while f"{stem}:{number}" in unique:
            number = str(int(number) + 1)
        unique[f"{stem}:{number}"] = device.model_copy(update={"id": f"{stem}:{number}"})
    return list(unique.values())


def profiled() -> list[DeviceInfo]:
    """List the devices as `discover` does, each healthy one with the name of the device profile that matches it."""
    devices = []
    for device in discover():
        profile = match_profile(device.name, device.kind) if device.healthy else None
        devices.append(device.model_copy(update={"profile": profile.name if profile else None}))
    return devices


def main(backend_name: str, library: str) -> None:
    """Child: list and check the devices of one runtime, print them as one line of JSON."""
    die_with_parent()  # a runtime may hang: nobody would be left to end it
    if library:
        platforms.use([library])
    try:
        infos = backend.get(backend_name).discover()
    except (ImportError, PerfportError):
        infos = []
    devices = [check(backend_name, info).model_copy(update={"runtime": library}) for info in infos]
    print("DEVICES " + json.dumps([device.model_dump() for device in devices]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
