"""PTX as NVIDIA's OpenCL runtime takes it for a program's binary.

The runtime's own binaries are PTX, and it loads that of others, of NVRTC or generated, where three things are as its
own compiler writes them (found by trial; no document says so): pointers among a kernel's parameters are declared as
such, local memory has a size, and the version is not newer than the driver.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(r"(\.entry\s+\w+\s*\()([^)]*)\)")
_POINTER = re.compile(r"\.param\s+\.u64\s+(?!\.ptr)")
_DYNAMIC = re.compile(r"\.extern(\s+\.shared\s+(?:\.align\s+\d+\s+)?\.b8\s+\w+)\s*\[\s*\]")
_KERNELS = re.compile(r"(?=\.(?:entry|func)\b)")
_RESIDENT = re.compile(r"// perfport\.resident (\d+) (\d+)")
_HEADER = re.compile(r"\.entry[^{]*")
_VERSION = re.compile(r"^(\s*\.version\s+)(\d+)\.(\d+)", re.M)


def for_opencl(ptx: str, local_bytes: int) -> str:
    """Return PTX with 64-bit parameters of kernels declared as pointers, and with dynamic local memory of a fixed size.

    Parameters
    ----------
    ptx : str
        Kernels whose 64-bit parameters are all pointers to global memory: the handle of a buffer would arrive in
        place of its address otherwise.
    local_bytes : int
        What ``.extern .shared`` arrays without a size get.
    """
    declared = _ENTRY.sub(
        lambda entry: f"{entry[1]}{_POINTER.sub('.param .u64 .ptr .global .align 4 ', entry[2])})", ptx
    )
    return _DYNAMIC.sub(rf"\1[{local_bytes}]", declared)


def version(ptx: str) -> tuple[int, int] | None:
    """Return the version of the instruction set that a text names; ``None`` where it names none."""
    found = _VERSION.search(ptx)
    return (int(found[2]), int(found[3])) if found else None


def at_most(ptx: str, newest: tuple[int, int] | None) -> str:
    """Return PTX under the driver's version where it names a newer one, as a compiler newer than the driver does.

    What only the newer version has is then an error of the driver's assembler.
    """
    named = version(ptx)
    if newest is None or named is None or named <= newest:
        return ptx
    return _VERSION.sub(rf"\g<1>{newest[0]}.{newest[1]}", ptx, count=1)


def with_residency(ptx: str) -> str:
    """Return PTX in which kernels save registers for as many resident work-groups as their text asks for.

    OpenCL C has no attribute for it: what the dialect's ``RESIDENT_GROUPS`` leaves in a kernel's body is a comment with
    work-items of a group and groups of a multiprocessor. The number of groups counts beside that of work-items alone,
    which the compiler of ``reqd_work_group_size`` may have written, in a form that excludes a second one.
    """
    return "".join(_saving(part) for part in _KERNELS.split(ptx))


def _saving(kernel: str) -> str:
    """Return the text from one kernel's or function's name to the next."""
    asked, header = _RESIDENT.search(kernel), _HEADER.match(kernel)
    if not asked or not header:
        return kernel
    items = "" if "ntid" in header[0] else f".maxntid {asked[1]}, 1, 1\n"
    return f"{header[0]}{items}.minnctapersm {asked[2]}\n{kernel[header.end() :]}"
