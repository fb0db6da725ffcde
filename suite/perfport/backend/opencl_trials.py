"""What NVIDIA's OpenCL takes that no query tells, found by kernels which must give the right numbers.

Its compiler takes PTX in ``asm`` and functions of one name for several address spaces; its runtime loads PTX as a
program's binary, runs work-groups four times as large as it states for every kernel, and gives them more local memory
than it states for the device. A trial can fail in a way that costs the process its device:
`perfport.machine.trials` runs them in child processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..model.device import DeviceInfo
from .base import Artifact
from .cuda import matrix_capabilities
from .opencl import OpenCLBackend
from .opencl_device import OpenCLDevice

GROUPS, GROUP = 8, 128  # a warpgroup
WORDS = 4  # of input and of output for each work-item
GROUP_SIZES = (1024, 768, 512, 384)
#: Of local memory: what a work-group may have by compute capability 9.0, 8.0, 8.6, 7.0 and 7.5, and 1 KiB less, which
#: the runtime may keep.
LOCAL_KIB = (227, 226, 163, 162, 99, 98, 96, 95, 64, 63)

DOT = """
__kernel void trial(__global const uint *in, __global uint *out) {
    size_t i = get_global_id(0);
    for (uint k = 0; k < 4; ++k) out[4 * i + k] = DOT4_U8(in[4 * i + k], in[4 * i + (k + 1) % 4], k);
}
"""

SYNC = """
__kernel void trial(__global const uint *in, __global uint *out) {
    LOCAL_ARRAY(uint, box, 128);
    uint item = get_local_id(0), value = in[4 * get_global_id(0)];
    for (uint k = 0; k < 4; ++k) {
        box[item] = value;
        HW_THREAD_SYNC();
        value += box[item ^ (1u << k)];
        HW_THREAD_SYNC();
        out[4 * get_global_id(0) + k] = value;
    }
}
"""

LOADS = """
__kernel void trial(__global const uint *in, __global uint *out) {
    LOCAL_ARRAY(uint, odd, 3);
    LOCAL_ARRAY(uint, box, 4 * 128);
    uint item = get_local_id(0);
    size_t i = get_global_id(0);
    if (item < 3) odd[item] = item;
    vstore4(vload4(i, in), item, box);
    barrier(CLK_LOCAL_MEM_FENCE);
    __local const uint *from = box;
    uint4 v = vload4(127 - item, from);
    uint own[4];
    vstore4(v, 0, own);
    vstore4(MAKE_UINT4(own[0], v.y, v.z, v.w + odd[item % 3]), i, out);
}
"""

EXCHANGE = """
__kernel void GROUP_ATTRIBUTE trial(__global const uint *in, __global uint *out) {
    LOCAL_ARENA(uint, box, SIZE);
    uint item = get_local_id(0), items = get_local_size(0), group = get_group_id(0);
    for (uint i = item; i < SIZE; i += items) box[i] = in[i % IN] + group;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint i = item; i < SIZE; i += items) sum += box[SIZE - 1 - i];
    out[get_global_id(0)] = sum;
}
"""

#: Of every kernel in PTX: %d0 and %d1 point to a work-item's words of input and output, %r0 is its number in the group.
PTX_HEAD = """
.version 8.0
.target {target}
.address_size 64
.extern .shared .align 16 .b8 box[];
.visible .entry trial(.param .u64 trial_param_0, .param .u64 trial_param_1)
{{
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    .reg .b64 %d<4>;
    .reg .pred %p0;
    ld.param.u64 %d0, [trial_param_0];
    ld.param.u64 %d1, [trial_param_1];
    cvta.to.global.u64 %d0, %d0;
    cvta.to.global.u64 %d1, %d1;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 128, %r0;
    mul.wide.u32 %d2, %r2, 4;
    add.s64 %d0, %d0, %d2;
    add.s64 %d1, %d1, %d2;
    ld.global.u32 %r3, [%d0];
"""

#: Turns the words of a work-group round, through local memory of a size that the launch says.
REVERSE_PTX = (
    PTX_HEAD
    + """
    mov.u32 %r4, box;
    mad.lo.u32 %r5, %r0, 4, %r4;
    st.shared.u32 [%r5], %r3;
    bar.sync 0;
    sub.u32 %r6, 127, %r0;
    mad.lo.u32 %r5, %r6, 4, %r4;
    ld.shared.u32 %r3, [%r5];
    st.global.u32 [%d1], %r3;
    ret;
}}
"""
)

#: Products of matrices of ones, by TF32: each result is the depth, 8, plus the sum's start, the word of the input
#: modulo 256. {product} makes it of sums in %f0 to %f3 and of the operands' ones in %r4.
MATRIX_PTX = (
    PTX_HEAD
    + """
    and.b32 %r3, %r3, 255;
    cvt.rn.f32.u32 %f0, %r3;
    mov.f32 %f1, %f0;
    mov.f32 %f2, %f0;
    mov.f32 %f3, %f0;
    mov.b32 %r4, 0x3f800000;
    {product}
    cvt.rni.u32.f32 %r5, %f2;
    st.global.u32 [%d1], %r5;
    ret;
}}
"""
)

#: Of a warp, 16 x 8.
MMA = """
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
        {%f0, %f1, %f2, %f3}, {%r4, %r4, %r4, %r4}, {%r4, %r4}, {%f0, %f1, %f2, %f3};
"""

#: Of a warpgroup, 64 x 8: the second operand lies in local memory, which the matrix units read past the work-items'
#: own order of accesses. Its descriptor: address, and distances of 128 bytes, all in units of 16.
WGMMA = """
    mov.u32 %r5, box;
    mad.lo.u32 %r6, %r0, 4, %r5;
    st.shared.u32 [%r6], %r4;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r5, %r5, 4;
    cvt.u64.u32 %d3, %r5;
    or.b64 %d3, %d3, 0x0000000800080000;
    setp.eq.u32 %p0, %r4, %r4;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32
        {%f0, %f1, %f2, %f3}, {%r4, %r4, %r4, %r4}, %d3, %p0, 1, 1;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
"""


def inputs() -> np.ndarray:
    """Return the words that every trial gets, uint32, ``WORDS`` for each work-item."""
    return np.random.default_rng(2013).integers(0, 2**32, GROUPS * GROUP * WORDS, np.uint32)


def _dots(x: np.ndarray) -> np.ndarray:
    byte = x.view(np.uint8).reshape(-1, WORDS, 4).astype(np.uint32)
    return ((byte * np.roll(byte, -1, axis=1)).sum(axis=2) + np.arange(WORDS)).astype(np.uint32).reshape(-1)


def _exchanged(x: np.ndarray) -> np.ndarray:
    value, out = x.reshape(-1, WORDS)[:, 0].copy(), np.empty((x.size // WORDS, WORDS), np.uint32)
    item = np.arange(value.size)
    for k in range(WORDS):
        value = value + value[item ^ (1 << k)]
        out[:, k] = value
    return out.reshape(-1)


def _turned(x: np.ndarray) -> np.ndarray:
    out = x.reshape(GROUPS, GROUP, WORDS)[:, ::-1].copy()
    out[..., 3] += (np.arange(GROUP) % 3).astype(np.uint32)
    return out.reshape(-1)


def _reversed(x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    out[: GROUPS * GROUP] = x[: GROUPS * GROUP].reshape(GROUPS, GROUP)[:, ::-1].reshape(-1)
    return out


def _products(x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    out[: GROUPS * GROUP] = x[: GROUPS * GROUP] % 256 + 8
    return out


def gives(device: OpenCLDevice, artifact: Artifact, expected: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether a kernel of one input and one output, 0 at first, gives what is expected."""
    x = inputs()
    source, result = device.upload(x), device.upload(np.zeros_like(x))
    device.launch(device.load(artifact).kernel("trial"), GROUPS, GROUP, source, result)
    return np.array_equal(device.read(result, np.uint32, x.shape), expected(x))


@dataclass(frozen=True)
class Feature:
    """Something that the runtime's compiler takes: a kernel in the dialect, which uses it where it is told to.

    Attributes
    ----------
    name : str
        A capability, of `FEATURES`.
    value : int
        1.
    """

    name: str
    source: str
    expected: Callable[[np.ndarray], np.ndarray]
    value: int = 1

    def artifact(self, target: str | None) -> Artifact:
        """Return what is loaded: with a target of ``None`` the dialect does without the feature."""
        return OpenCLBackend().build("trial.cl", self.source, {}, target)

    def works(self, device: OpenCLDevice) -> bool:
        """Whether it compiles with the feature and gives the right numbers."""
        return gives(device, self.artifact(f"{self.name}+"), self.expected)


@dataclass(frozen=True)
class Assembled:
    """PTX as a program's binary; ``product`` is what the device may lack, ``suffix`` of its target."""

    name: str
    text: str
    expected: Callable[[np.ndarray], np.ndarray]
    suffix: str = ""
    product: str = ""
    value: int = 1

    def artifact(self, capability: str) -> Artifact:
        """Return what is loaded, for a compute capability (``9.0``)."""
        target = f"sm_{capability.replace('.', '')}{self.suffix}"
        ptx = self.text.format(target=target, product=self.product)
        return OpenCLBackend().assemble("trial.ptx", ptx, target, 4 * GROUP)

    def works(self, device: OpenCLDevice) -> bool:
        """Whether it loads and gives the right numbers."""
        return gives(device, self.artifact(str(device.info.compute_capability)), self.expected)


@dataclass(frozen=True)
class Limit:
    """A limit of the device: work-items of a group, or bytes of local memory.

    Attributes
    ----------
    name : str
        ``full_groups`` or ``local_memory_bytes``.
    value : int
        The size that is tried.
    """

    name: str
    value: int

    def works(self, device: OpenCLDevice) -> bool:
        """Whether work-groups of that size exchange words through local memory, whether they are declared or not."""
        if self.name == "full_groups":
            return all(_exchanges(device, self.value, self.value, declared) for declared in (True, False))
        return _exchanges(device, 256, self.value // 4, True)


def _exchanges(device: OpenCLDevice, group: int, words: int, declared: bool) -> bool:
    groups, x = 4 * device.info.compute_units, inputs()
    macros: dict[str, int | str] = {
        "GROUP_ATTRIBUTE": f"REQD_GROUP({group})" if declared else "",
        "SIZE": words,
        "IN": x.size,
    }
    kernel = device.load(OpenCLBackend().build("trial.cl", EXCHANGE, macros, None)).kernel("trial")
    kernel.resources["max_work_group"] = group  # what it states is what is in question
    source, result = device.upload(x), device.upload(np.zeros(groups * group, np.uint32))
    device.launch(kernel, groups, group, source, result)
    box = np.zeros(-(-words // group) * group, np.uint32)  # its tail adds nothing
    box[:words] = x[np.arange(words) % x.size][::-1]
    counts = np.bincount(np.arange(words) % group, minlength=group).astype(np.uint32)
    sums = box.reshape(-1, group).sum(axis=0, dtype=np.uint32)
    expected = sums + np.arange(groups, dtype=np.uint32)[:, None] * counts
    return np.array_equal(device.read(result, np.uint32, (groups, group)), expected)


Trial = Feature | Assembled | Limit

TRIALS: tuple[Trial, ...] = (
    Feature("dp4a", DOT, _dots),
    Feature("warp_sync", SYNC, _exchanged),
    Feature("wide_loads", LOADS, _turned),
    Assembled("ptx", REVERSE_PTX, _reversed),
    Assembled("mma", MATRIX_PTX, _products, product=MMA),
    Assembled("wgmma", MATRIX_PTX, _products, "a", WGMMA),
    *(Limit("full_groups", size) for size in GROUP_SIZES),
    *(Limit("local_memory_bytes", kib << 10) for kib in LOCAL_KIB),
)


def trials(info: DeviceInfo) -> list[Trial]:
    """Return what is to be tried on a device of NVIDIA's, the larger of two sizes first."""
    major, minor = (int(part) for part in str(info.compute_capability).split("."))
    lacking = {"mma", "wgmma"} - set(matrix_capabilities((major, minor)))
    return [
        trial
        for trial in TRIALS
        if trial.name not in lacking
        and not (trial.name == "full_groups" and trial.value > info.max_work_group)
        and not (trial.name == "local_memory_bytes" and trial.value <= info.local_memory_bytes)
    ]
