"""Oclgrind, an OpenCL device simulator, as a device: reached only when asked for, never part of an ordinary run."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, UnavailableError
from . import private
from .device_profile import DeviceProfile
from .discovery import ask_child

RUNTIME = "liboclgrind-rt-icd.so"
HINT = "Debian has it: apt-get install oclgrind"
PLUGIN_HINT = "Debian has it: apt-get install g++ liboclgrind-dev llvm-14-dev opencl-c-headers"


def library() -> str:
    """Return the path of Oclgrind's OpenCL runtime. Raises `UnavailableError`."""
    program = shutil.which("oclgrind")
    folders = [Path(program).resolve().parent.parent / "lib"] if program else []
    for folder in [*folders, Path("/usr/lib"), Path("/usr/local/lib")]:
        for path in (folder / "oclgrind" / RUNTIME, folder / RUNTIME):
            if path.exists():
                return str(path)
    raise UnavailableError(f"Oclgrind is not installed ({RUNTIME} not found); {HINT}")


def limits(profile: DeviceProfile) -> dict[str, str]:
    """Return environment variables that give the simulator a device profile's limits, where those are known."""
    keys = {"max_work_group": "OCLGRIND_MAX_WGSIZE", "local_memory": "OCLGRIND_LOCAL_MEM_SIZE"}
    figures = {name: profile.hierarchy[key].value for key, name in keys.items() if key in profile.hierarchy}
    return {name: str(int(value)) for name, value in figures.items() if value is not None}


def find(environment: Mapping[str, str] = {}) -> DeviceInfo:
    """Return the simulator as a device, with the limits that ``environment`` sets.

    Raises
    ------
    UnavailableError
        If Oclgrind is not installed.
    InfrastructureError
        If it does not run a trivial kernel.
    """
    private.prepare()
    (info,) = ask_child("opencl", "oclgrind", library(), environment)
    if not info.healthy:
        raise InfrastructureError(f"Oclgrind: {info.reason}")
    return info


def plugin(source: Path) -> Path:
    """Compile an Oclgrind plugin, once for each text of it, and return the library's path.

    Parameters
    ----------
    source : Path
        One C++ file.

    Raises
    ------
    UnavailableError
        Without a C++ compiler or the headers of Oclgrind and LLVM, with the compiler's complaint.
    """
    runtime = library()
    headers = _llvm_headers(runtime)
    key = hashlib.sha256(source.read_bytes() + Path(runtime).read_bytes() + headers.encode()).hexdigest()[:16]
    built = Path(platformdirs.user_cache_dir("perfport")) / "plugins" / f"{source.stem}-{key}.so"
    if built.exists():
        return built
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise UnavailableError(f"no C++ compiler for Oclgrind's plugin {source.name}; {PLUGIN_HINT}")
    built.parent.mkdir(parents=True, exist_ok=True)
    partial = built.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    command = [
        compiler, "-std=c++17", "-O2", "-fno-rtti", "-shared", "-fPIC", f"-I{headers}",
        str(source), "-o", str(partial), "-loclgrind",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:300])
        raise UnavailableError(f"Oclgrind's plugin {source.name} does not compile ({complaint}); {PLUGIN_HINT}")
    partial.replace(built)
    return built


def _llvm_headers(runtime: str) -> str:
    """Headers of the LLVM release that Oclgrind runs on: with those of another one a plugin crashes."""
    linked = subprocess.run(["ldd", runtime], capture_output=True, text=True, check=False).stdout
    release = re.search(r"libLLVM-(\d+)", linked)
    return f"/usr/lib/llvm-{release[1]}/include" if release else "/usr/include"
