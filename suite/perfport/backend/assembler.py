"""PTX to machine code without a device, through NVIDIA's nvJitLink library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..model.errors import CompileError, UnavailableError

PTX_INPUT = 2  # nvJitLinkInputType, of nvJitLink.h


@cache
def _library() -> Any:
    """Return the library, found where CuPy finds its own.

    Raises
    ------
    UnavailableError
        Where it is not installed.
    """
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return _Entry(ctypes.CDLL(load_nvidia_dynamic_lib("nvJitLink").abs_path))
    except Exception as error:
        raise UnavailableError(
            f"nvJitLink is not usable here: {error} (install perfport[cuda], or perfport[cuda12])"
        ) from error


class _Entry:
    """The library's functions; its header gives most of them names that carry the version."""

    def __init__(self, library: Any) -> None:
        major, minor = ctypes.c_uint(), ctypes.c_uint()
        library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor))
        self._library, self._suffix = library, f"_{major.value}_{minor.value}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, f"__nvJitLink{name}{self._suffix}")


def assemble(name: str, ptx: str, options: Sequence[str]) -> tuple[bytes, str]:
    """Assemble one PTX text; calls from several threads run side by side.

    Parameters
    ----------
    name : str
        Stands in error messages.
    options : sequence of str
        For nvJitLink, the target among them (``-arch=sm_90``).

    Returns
    -------
    cubin : bytes
    log : str

    Raises
    ------
    CompileError
        With the assembler's log.
    UnavailableError
        Where the library is not installed.
    """
    library = _library()
    handle, text = ctypes.c_void_p(), ptx.encode()
    flags = [option.encode() for option in options]
    status = library.Create(ctypes.byref(handle), len(flags), (ctypes.c_char_p * len(flags))(*flags))
    if status:
        raise CompileError(f"{name}: nvJitLink refuses {' '.join(options)} (status {status})")
    try:
        status = library.AddData(handle, PTX_INPUT, text, ctypes.c_size_t(len(text) + 1), name.encode())
        status = status or library.Complete(handle)
        log = _text(library, handle, "Error") + _text(library, handle, "Info")
        if status:
            raise CompileError(f"{name} does not assemble for {' '.join(options)}", log)
        size = ctypes.c_size_t()
        library.GetLinkedCubinSize(handle, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        library.GetLinkedCubin(handle, cubin)
        return cubin.raw, log
    finally:
        library.Destroy(ctypes.byref(handle))


def _text(library: Any, handle: ctypes.c_void_p, kind: str) -> str:
    size = ctypes.c_size_t()
    getattr(library, f"Get{kind}LogSize")(handle, ctypes.byref(size))
    if size.value <= 1:
        return ""
    log = ctypes.create_string_buffer(size.value)
    getattr(library, f"Get{kind}Log")(handle, log)
    return log.value.decode(errors="replace")
