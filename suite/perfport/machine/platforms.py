"""Find every OpenCL runtime on this machine and make the loader see the ones that are wanted.

The OpenCL loader reads ``.icd`` files, each naming one runtime's library. There are three kinds of runtime:
the system's own ``.icd`` files, Intel's CPU runtime installed by pip (the ``.icd`` in its wheel points to a
path that does not exist, and its support libraries must be loaded first), and NVIDIA's library where the
driver came without an ``.icd`` file. This module must run before ``pyopencl`` is first imported.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..model.errors import InfrastructureError
from . import private
from .environment import usable_cores

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
INTEL_SUPPORT = ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so")
#: The number of PoCL's threads: its name since version 4, and before.
POCL_THREADS = ("POCL_CPU_MAX_CU_COUNT", "POCL_MAX_PTHREAD_COUNT")
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

    The loader runs the code of every library that an ``.icd`` file names: the folder of these files is a new one that
    no other user can enter.

    Parameters
    ----------
    libraries : iterable of str
        Library paths or names as `runtimes` returns them.

    Raises
    ------
    InfrastructureError
        If no such folder can be made.
    """
    libraries = sorted(libraries)
    os.environ.setdefault("PERFPORT_ICD_VENDORS", os.environ.get("OCL_ICD_VENDORS") or str(SYSTEM_VENDORS))
    try:
        folder = Path(tempfile.mkdtemp(prefix="icd-", dir=private.folder()))
        for number, library in enumerate(libraries):
            (folder / f"{number}.icd").write_text(library)
    except OSError as error:
        raise InfrastructureError(
            f"{error.filename}: cannot be written for the OpenCL loader ({error.strerror})"
        ) from None
    if any("intelocl" in library for library in libraries):
        _load_intel_support()
    if any("pocl" in library for library in libraries):
        _pin_pocl()
    os.environ["OCL_ICD_VENDORS"] = str(folder)


def _pin_pocl() -> None:
    """Let PoCL start a thread for each core that this process may use, and not for each of the machine's."""
    if usable_cores() < (os.cpu_count() or 1) and not any(name in os.environ for name in POCL_THREADS):
        os.environ.update(dict.fromkeys(POCL_THREADS, str(usable_cores())))


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
