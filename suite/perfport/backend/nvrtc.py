"""CUDA C++ to PTX and machine code without a device, through NVIDIA's NVRTC library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ..model.errors import UnavailableError
from .base import Artifact, Macros, define_flags, digest, with_dialect
from .diagnostics import compile_error

HEADER = "dialect_cuda.h"
DIALECT = (files("perfport.backend") / HEADER).read_text()
# CuPy's own compile path adds -ftz=true; OpenCL builds keep subnormals, so both backends here do.
OPTIONS = ("--std=c++17", "-default-device", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=true")
TARGETS = ("sm_75", "sm_80", "sm_90")


@cache
def _library() -> Any:
    """Return CuPy's binding of the library.

    Raises
    ------
    UnavailableError
        Where it is not installed.
    """
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except Exception as error:
        raise UnavailableError(
            f"NVRTC is not usable here: {error} (install perfport[cuda], or perfport[cuda12])"
        ) from error
    return nvrtc


def version() -> str:
    """Return name and version of the compiler, for keys of what it has compiled."""
    return "nvrtc {}.{}".format(*_library().getVersion())


def build(name: str, source: str, macros: Macros, target: str | None = None, options: Sequence[str] = ()) -> Artifact:
    """Compile to a cubin for ``target`` (``sm_90``). Raises `CompileError` with the log.

    PTX of a newer toolkit than the driver's is refused by the driver; a cubin of the same major version runs.
    """
    text = _with_dialect(name, source)
    flags = (*OPTIONS, *options, f"-arch={target or TARGETS[-1]}", *define_flags(macros))
    cubin, ptx, log = _compile(name, text, flags)
    image = cubin + b"\0"  # CuPy takes the image for a string and drops its last byte
    return Artifact("cuda", name, image, flags, digest(text, *flags), "cubin", log, {"source": text, "ptx": ptx})


def build_ptx(name: str, source: str, macros: Macros, target: str | None = None, options: Sequence[str] = ()) -> str:
    """Compile to PTX alone, which takes a fraction of the time of a cubin. Raises `CompileError` with the log."""
    architecture = (target or TARGETS[-1]).replace("sm_", "compute_")
    flags = (*OPTIONS, *options, f"-arch={architecture}", *define_flags(macros))
    _, ptx, _ = _compile(name, _with_dialect(name, source), flags)
    return ptx


def _with_dialect(name: str, source: str) -> str:
    return with_dialect(HEADER, DIALECT, name, source)


def _compile(name: str, text: str, flags: Sequence[str]) -> tuple[bytes, str, str]:
    """Return cubin (empty for a virtual architecture), PTX and log."""
    nvrtc = _library()
    program = nvrtc.createProgram(text, name, (), ())
    try:
        try:
            nvrtc.compileProgram(program, tuple(flags))
        except nvrtc.NVRTCError:
            log = nvrtc.getProgramLog(program)
            target = next(flag for flag in flags if flag.startswith("-arch"))
            raise compile_error(name, target, log, text) from None
        virtual = any(flag.startswith("-arch=compute_") for flag in flags)
        cubin = b"" if virtual else nvrtc.getCUBIN(program)
        ptx = nvrtc.getPTX(program)
        return cubin, ptx.decode() if isinstance(ptx, bytes) else ptx, nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)
