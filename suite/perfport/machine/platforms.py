"""Find every OpenCL runtime on this machine and make the loader see the ones that are wanted.

The OpenCL loader reads ``.icd`` files, each naming one runtime's library. There are three kinds of runtime:
the system's own ``.icd`` files, Intel's CPU runtime installed by pip (the ``.icd`` in its wheel points to a
path that does not exist, and its support libraries must be loaded first), and NVIDIA's library where the
driver came without an ``.icd`` file. This module must run before ``pyopencl`` is first imported.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib.metadata
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
INTEL_SUPPORT = ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so")
NVIDIA_LIBRARY = "libnvidia-opencl.so.1"
NVIDIA_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/lib/aarch64-linux-gnu")


def runtimes() -> dict[str, str]:
    """Return ``{name: library}`` of every OpenCL runtime on this machine.

    A folder named by ``OCL_ICD_VENDORS`` replaces the system's; pip-installed runtimes are added to either. Oclgrind is
    left out: it simulates, so what it takes says nothing about a device (`machine.simulator` asks for it by name).
    """
    folder = Path(os.environ.get("PERFPORT_ICD_VENDORS") or os.environ.get("OCL_ICD_VENDORS") or SYSTEM_VENDORS)
    libraries: dict[str, str] = {}
    if folder.is_dir():
        for icd in sorted(folder.glob("*.icd")):
            if (lines := icd.read_text(errors="replace").split()) and "oclgrind" not in lines[0]:
                libraries[icd.stem] = lines[0]
    if (intel := _installed_file("intel-opencl-rt", "libintelocl.so")) and not _names(libraries, "intelocl"):
        libraries["intel-pip"] = str(intel)
    if (nvidia := _nvidia()) and not _names(libraries, "nvidia"):
        libraries["nvidia-driver"] = nvidia
    return libraries


def use(libraries: Iterable[str]) -> None:
    """Make exactly these runtimes visible to the OpenCL loader of this process.

    Parameters
    ----------
    libraries : iterable of str
        Library paths or names as `runtimes` returns them.
    """
    libraries = sorted(libraries)
    os.environ.setdefault("PERFPORT_ICD_VENDORS", os.environ.get("OCL_ICD_VENDORS") or str(SYSTEM_VENDORS))
    digest = hashlib.sha256("\n".join(libraries).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"perfport-icd-{os.getuid()}-{digest}"
    folder.mkdir(exist_ok=True)
    for number, library in enumerate(libraries):
        icd = folder / f"{number}.icd"
        if not icd.exists() or icd.read_text() != library:
            partial = icd.with_suffix(f".{os.getpid()}")
            partial.write_text(library)
            partial.replace(icd)  # another process may be reading this folder
        if "intelocl" in library:
            _load_intel_support()
    os.environ["OCL_ICD_VENDORS"] = str(folder)


def _names(libraries: dict[str, str], part: str) -> bool:
    return any(part in library for library in libraries.values())


def _installed_file(distribution: str, name: str) -> Path | None:
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == name and (path := Path(str(file.locate())).resolve()).exists():
            return path
    return None


def _load_intel_support() -> None:
    for name in INTEL_SUPPORT:
        if path := _installed_file("intel-cmplr-lib-rt", name):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _nvidia() -> str | None:
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *NVIDIA_FOLDERS]
    for folder in filter(None, folders):
        if (path := Path(folder) / NVIDIA_LIBRARY).exists():
            return str(path)
    return ctypes.util.find_library("nvidia-opencl")
