"""A device that runs kernels of the dialect on the host, work-items in lock step, with an emulation of matrix units."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perfport.backend import Artifact
from perfport.backend.offline import OfflineDevice
from perfport.model.device import DeviceInfo

HEADER = Path(__file__).with_name("lockstep.h")
COMPILER = shutil.which("g++")


def emulated(asm: re.Match[str]) -> str:
    """Return what stands for a statement of inline PTX in mma.h, copies.h or ahead.h."""
    if "cvt.rn.bf16x2" in asm[0]:
        return "word = rounded_bf16(first) | rounded_bf16(second) << 16;"
    if "cvt.rna.tf32" in asm[0]:
        return "word = rounded_tf32(first);"
    if "cp.async.cg" in asm[0]:
        return "copy_async(to, from, bytes, 16);"
    if "cp.async.ca" in asm[0]:
        return "copy_async(to, from, bytes, 4);"
    if "cp.async.commit" in asm[0]:
        return "commit_parts();"
    if "cp.async.wait" in asm[0]:
        return "wait_for_copies(COPIES - 1);"
    return "mma_sync(c, a, b, PER_WORD);"


@dataclass
class Buffer:
    """Words in the host's memory, NaN at first."""

    nbytes: int
    words: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        whole = np.full(self.nbytes // 4 + 4, np.nan, np.float32)
        self.words = whole[(-whole.ctypes.data) % 16 // 4 :]

    def free(self) -> None:
        """Nothing to give back."""


@dataclass
class Kernel:
    """A compiled kernel, which is run by group and work-item."""

    name: str
    run: Any
    resources: dict[str, int] = field(default_factory=dict)


class Module:
    """A source, compiled for each of its kernels that is asked for."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    def kernel(self, name: str) -> Kernel:
        """Compile the kernel; its parameters are pointers and words."""
        text = self.artifact.code.decode().split(f'#line 1 "{self.artifact.name}"')[-1]  # without OpenCL's dialect
        source = re.sub(r"asm(?: volatile)?\(.*?\);", emulated, text, flags=re.S)
        macros = [option for option in self.artifact.options if option.startswith("-D")]
        return Kernel(name, (source, macros))


class Lockstep(OfflineDevice):
    """An `OfflineDevice` that runs what is launched."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self._folder = tempfile.TemporaryDirectory()
        self.matrix_instructions = self.asynchronous_copies = self.copies_outside = 0

    def load(self, artifact: Artifact) -> Any:
        return Module(artifact)

    def empty(self, nbytes: int) -> Any:
        return Buffer(nbytes)

    def upload(self, array: np.ndarray) -> Any:
        made = Buffer(array.nbytes)
        made.words[: array.size] = np.ascontiguousarray(array, np.float32).reshape(-1)
        return made

    def read(self, buffer: Any, dtype: Any, shape: Sequence[int], out: np.ndarray | None = None) -> np.ndarray:
        return np.array(buffer.words[: int(np.prod(shape))].reshape(shape))

    def launch(self, kernel: Any, groups: Any, group: Any, *args: Any, local_bytes: int = 0, queue: Any = None) -> None:
        source, macros = kernel.run
        types = ["float *" if isinstance(arg, Buffer) else "uint" for arg in args]
        given = ", ".join(f"a{n}" for n in range(len(types)))
        text = f"""
#define LOCKSTEP_ITEMS {group}
#define ARENA_WORDS {max(1, local_bytes // 4)}
#include "{HEADER}"
{source}
template <class... Parameters> struct Called {{
    void (*kernel)(Parameters...);
    template <class To, class From> static To of(From from) {{ return (To)(from); }}
    template <class... Given> void operator()(Given... given) const {{ kernel(of<Parameters>(given)...); }}
}};
template <class... Parameters> Called<Parameters...> called(void (*kernel)(Parameters...)) {{ return {{kernel}}; }}
extern "C" int entry({", ".join(f"{kind} a{n}" for n, kind in enumerate(types))}) {{
    return run_groups({groups}, {group}, [=] {{ called({kernel.name})({given}); }});
}}
"""
        path = Path(self._folder.name) / f"{len(list(Path(self._folder.name).iterdir()))}"
        path.with_suffix(".cpp").write_text(text)
        command = [str(COMPILER), "-std=c++20", "-O1", "-w", "-fno-strict-aliasing", "-fPIC", "-shared", *macros]
        done = subprocess.run(
            [*command, "-o", f"{path}.so", f"{path}.cpp"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:3000]
        values = [
            ctypes.c_void_p(a.words.ctypes.data) if isinstance(a, Buffer) else ctypes.c_uint(int(a)) for a in args
        ]
        library = ctypes.CDLL(f"{path}.so")
        for buffer in (arg for arg in args if isinstance(arg, Buffer)):
            library.add_buffer(ctypes.c_void_p(buffer.words.ctypes.data), ctypes.c_size_t(buffer.nbytes))
        assert library.entry(*values) == 0, "work-items of a group part ways"
        self.matrix_instructions += library.matrix_instructions()
        self.asynchronous_copies += library.asynchronous_copies()
        self.copies_outside += library.copies_outside()
