"""The protocol of `perfport.backend.base`, on every device of either backend."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from perfport import backend
from perfport.backend import Kernel, OpenDevice
from perfport.model.errors import CompileError, DeviceMemoryError, UnsupportedError, UsageError

SOURCE = """
__kernel void scale(__global const float *x, __global float *y, uint n, float factor) {
    uint i = get_global_id(0);
    if (i < n) y[i] = x[i] * factor;
}

__kernel void where(__global uint *out) {
    uint i = get_global_id(0) + get_global_size(0) * get_global_id(1);
    out[4 * i] = get_local_id(0);
    out[4 * i + 1] = get_local_id(1);
    out[4 * i + 2] = get_group_id(0);
    out[4 * i + 3] = get_group_id(1);
}

__kernel void reverse(__global int *data) {
    LOCAL_ARENA(int, arena, COUNT);
    uint i = get_local_id(0);
    arena[i] = data[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    data[i] = arena[get_local_size(0) - 1 - i];
}

__kernel void spin(__global float *x, int turns) {
    float v = x[0];
    for (int i = 0; i < turns; ++i) v = v * 0.999f + 0.5f;
    x[0] = v;
}

__kernel void pass_on(__global const int *a, __global int *b, int more) { b[0] = a[0] + more; }
"""
IMAGES = """
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

__kernel void paint(__write_only image2d_t image, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    write_imagef(image, MAKE_INT2(x, y), MAKE_FLOAT4((float)x, (float)y, (float)(x + width * y), 0.25f));
}

__kernel void look(__read_only image2d_t image, __global float *out, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    vstore4(read_imagef(image, nearest, MAKE_INT2(x, y)), x + width * y, out);
}
"""


def kernel(device: OpenDevice, name: str, source: str = SOURCE, **macros: Any) -> Kernel:
    """Build, load and return a kernel."""
    artifact = backend.get(device.info.backend).build("test.cl", source, {"COUNT": 64, **macros}, device.target)
    return device.load(artifact).kernel(name)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.float64])
@pytest.mark.parametrize("shape", [(1,), (17, 3), (0,), (1 << 20,)])
def test_upload_and_read(device: OpenDevice, dtype: Any, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
    buffer = device.upload(data)
    assert buffer.nbytes == data.nbytes
    assert np.array_equal(device.read(buffer, dtype, shape), data)
    buffer.free()


def test_a_view_that_is_not_contiguous_is_uploaded_as_it_reads(device: OpenDevice) -> None:
    data = np.arange(20, dtype=np.int32).reshape(4, 5)
    assert np.array_equal(device.read(device.upload(data.T), np.int32, (5, 4)), data.T)


@pytest.mark.parametrize("nbytes", [1, 3, 4, 1001])
@pytest.mark.parametrize("byte", [0, 0xFF, 0x3C])
def test_fill_sets_every_byte(device: OpenDevice, nbytes: int, byte: int) -> None:
    buffer = device.upload(np.full(nbytes, 7, np.uint8))
    device.fill(buffer, byte)
    assert (device.read(buffer, np.uint8, (nbytes,)) == byte).all()


def test_memory_is_counted(device: OpenDevice) -> None:
    before = device.allocated
    one, two = device.empty(1000), device.empty(500)
    assert device.allocated == before + 1500
    one.free()
    two.free()
    assert device.allocated == before


def test_launch(device: OpenDevice) -> None:
    x = np.arange(1000, dtype=np.float32)
    source, target = device.upload(x), device.empty(4000)
    device.fill(target, 0xFF)
    device.launch(kernel(device, "scale"), 16, 64, source, target, np.uint32(999), np.float32(3))
    found = device.read(target, np.float32, (1000,))
    assert np.array_equal(found[:999], 3 * x[:999]) and np.isnan(found[999])


def test_launch_in_two_dimensions(device: OpenDevice) -> None:
    out = device.empty(16 * 6 * 6)
    device.launch(kernel(device, "where"), (3, 2), (2, 3), out)
    found = device.read(out, np.uint32, (6, 6, 4))
    y, x = np.mgrid[:6, :6]
    assert np.array_equal(found, np.stack([x % 2, y % 3, x // 2, y // 3], axis=-1))


def test_macros_reach_the_kernel_and_the_hash(device: OpenDevice) -> None:
    source = "__kernel void value(__global float *x) { x[0] = VALUE; }"
    build = backend.get(device.info.backend).build
    artifacts = [build("v.cl", source, {"VALUE": value}, device.target) for value in (1, 2, 2)]
    assert artifacts[0].source_hash != artifacts[1].source_hash == artifacts[2].source_hash
    assert "-DVALUE=1" in artifacts[0].options and source in artifacts[0].listing["source"]
    buffer = device.empty(4)
    for artifact, value in zip(artifacts, (1, 2, 2), strict=True):
        device.launch(device.load(artifact).kernel("value"), 1, 1, buffer)
        assert device.read(buffer, np.float32, (1,))[0] == value


def test_local_arena(device: OpenDevice) -> None:
    data = np.arange(64, dtype=np.int32)
    buffer = device.upload(data)
    device.launch(kernel(device, "reverse"), 1, 64, buffer, local_bytes=256)
    assert np.array_equal(device.read(buffer, np.int32, (64,)), data[::-1])


def test_limits_are_unsupported_not_errors(device: OpenDevice) -> None:
    buffer, reverse = device.empty(4096), kernel(device, "reverse")
    with pytest.raises(UnsupportedError, match="work-group of"):
        device.launch(reverse, 1, 2 * device.info.max_work_group, buffer)
    with pytest.raises(UnsupportedError, match="bytes of local memory"):
        device.launch(reverse, 1, 64, buffer, local_bytes=device.info.local_memory_bytes + 4)


@pytest.mark.parametrize("fault", ["planted_undeclared_name", "float x = ;", "#error planted directive"])
def test_compile_errors_carry_the_log(device: OpenDevice, fault: str) -> None:
    source = f"__kernel void broken(__global float *y) {{\n{fault};\n}}"
    with pytest.raises(CompileError, match=r"broken\.cl does not compile for") as caught:
        device.load(backend.get(device.info.backend).build("broken.cl", source, {}, device.target))
    log = caught.value.log
    assert "error" in log and (fault.split()[-1].strip(";") in log or "expression" in log)


def test_out_of_memory(device: OpenDevice) -> None:
    before = device.allocated
    with pytest.raises(DeviceMemoryError, match=device.info.id):
        device.empty(2 * device.info.memory_bytes)
    assert device.allocated == before
    assert device.read(device.upload(np.ones(3, np.float32)), np.float32, (3,)).sum() == 3, "the device goes on"


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (64, 1), (17, 33)])
def test_images(device: OpenDevice, size: tuple[int, int]) -> None:
    if "images" not in device.info.capabilities:
        pytest.skip(f"{device.info.id} has no images")
    width, height = size
    image, out = device.image(width, height), device.empty(16 * width * height)
    look = kernel(device, "look", IMAGES)
    device.launch(kernel(device, "paint", IMAGES), size, (1, 1), image.write, np.int32(width))
    device.launch(look, size, (1, 1), image.read, out, np.int32(width))
    y, x = np.mgrid[:height, :width]
    expected = np.stack([x, y, x + width * y, np.full_like(x, 0.25, float)], axis=-1).astype(np.float32)
    assert np.array_equal(device.read(out, np.float32, (height, width, 4)), expected)

    pixels = np.random.default_rng(2).normal(size=(height, width, 4)).astype(np.float32)
    device.copy_to_image(device.upload(pixels), image)
    device.launch(look, size, (1, 1), image.read, out, np.int32(width))
    assert np.array_equal(device.read(out, np.float32, (height, width, 4)), pixels)


def test_an_image_too_large_is_unsupported(device: OpenDevice) -> None:
    with pytest.raises(UnsupportedError):
        device.image(device.info.image2d_max_width + 1, 1)
    with pytest.raises(UnsupportedError):
        device.image(1, device.info.image2d_max_height + 1)


def test_times_are_consistent(device: OpenDevice) -> None:
    spin, x = kernel(device, "spin"), device.upload(np.ones(1, np.float32))
    scale, source = kernel(device, "scale"), device.upload(np.ones(64, np.float32))
    target = device.empty(256)

    def execute() -> None:
        device.launch(spin, 1, 1, x, np.int32(200_000))
        device.launch(scale, 1, 64, source, target, np.uint32(64), np.float32(2))

    times = device.timed(execute, split=True)
    assert times.launches == 2 and set(times.kernels) == {"spin", "scale"}
    assert times.busy is not None and 0 < times.busy <= times.span * 1.001
    assert times.busy == pytest.approx(sum(times.kernels.values())) and all(v > 0 for v in times.kernels.values())
    assert (device.read(target, np.float32, (64,)) == 2).all()


def test_the_span_holds_the_work_and_lies_within_the_hosts_time(device: OpenDevice) -> None:
    """Each turn waits for the one before: no device has less than 0.1 ns for it, and the host sees all of them pass."""
    spin, x = kernel(device, "spin"), device.upload(np.ones(1, np.float32))
    turns = 3_000_000
    before = time.perf_counter()
    times = device.timed(lambda: device.launch(spin, 1, 1, x, np.int32(turns)))
    host = time.perf_counter() - before
    assert turns * 1e-10 < times.span < 1.01 * host


def test_many_launches_are_all_counted_and_run(device: OpenDevice) -> None:
    count, more = device.upload(np.zeros(1, np.int32)), kernel(device, "pass_on")
    times = device.timed(lambda: [device.launch(more, 1, 1, count, count, np.int32(1)) for _ in range(300)])  # type: ignore[arg-type,return-value]
    assert times.launches == 300 and times.span > 0
    assert device.read(count, np.int32, (1,))[0] == 300


def test_what_runs_before_the_window_is_not_timed(device: OpenDevice) -> None:
    spin, earlier = kernel(device, "spin"), kernel(device, "earlier", SOURCE.replace("spin", "earlier"))
    x, y = (device.upload(np.ones(1, np.float32)) for _ in range(2))
    times = device.timed(
        lambda: device.launch(spin, 1, 1, x, np.int32(1_000_000)),
        before=lambda: device.launch(earlier, 1, 1, y, np.int32(3_000_000)),
        split=True,
    )
    assert times.launches == 1 and list(times.kernels) == ["spin"]
    assert times.span == pytest.approx(times.busy, rel=0.05), "the window holds that kernel and nothing else"
    assert device.read(y, np.float32, (1,))[0] != 1, "what runs before has run"


def test_a_fault_while_timing_leaves_the_device_usable(device: OpenDevice) -> None:
    def fail() -> None:
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        device.timed(fail)
    device.finish()
    assert device.timed(lambda: None).launches == 0


def test_queues_and_events_order_work(device: OpenDevice) -> None:
    spin, pass_on = kernel(device, "spin"), kernel(device, "pass_on")
    x = device.upload(np.ones(1, np.float32))
    a, b, c = (device.upload(np.array([value], np.int32)) for value in (1, 0, 0))
    first, second = device.queue(), device.queue()
    device.launch(spin, 1, 1, x, np.int32(2_000_000), queue=first)
    device.launch(pass_on, 1, 1, a, b, np.int32(10), queue=first)
    device.wait(device.record(first), second)
    device.launch(pass_on, 1, 1, b, c, np.int32(100), queue=second)
    device.wait(device.record(second))
    device.launch(pass_on, 1, 1, c, a, np.int32(1000))
    assert device.read(a, np.int32, (1,))[0] == 1111
    device.finish()


def test_asynchronous_copy_from_pinned_memory(device: OpenDevice) -> None:
    host = device.pinned(4000)
    assert host.nbytes == 4000 and host.dtype == np.uint8
    host.view(np.int32)[:] = np.arange(1000)
    queue, buffer = device.queue(), device.empty(4000)
    device.write(buffer, host, queue)
    device.wait(device.record(queue))
    assert np.array_equal(device.read(buffer, np.int32, (1000,)), np.arange(1000))


def test_unknown_backend() -> None:
    with pytest.raises(UsageError, match="opencl, cuda"):
        backend.get("metal")


def test_events_are_waited_for_on_the_host(device: OpenDevice) -> None:
    buffer, queue = device.empty(4096), device.queue()
    source = device.pinned(4096)
    source[:] = np.arange(4096) % 251
    device.write(buffer, source, queue)
    event = device.record(queue)
    device.synchronize(event)  # now the source may change
    source[:] = 0
    assert np.array_equal(device.read(buffer, np.uint8, (4096,)), np.arange(4096) % 251)


def test_free_memory_is_told(device: OpenDevice) -> None:
    assert 0 < device.free_bytes() <= max(device.info.memory_bytes, 2**34)


def test_another_thread_may_use_a_device(device: OpenDevice) -> None:
    found = []

    def work() -> None:
        device.attach()
        buffer = device.upload(np.arange(100, dtype=np.int32))
        found.append(device.read(buffer, np.int32, (100,)))
        buffer.free()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert np.array_equal(found[0], np.arange(100))


def test_memory_that_exists_can_be_pinned(device: OpenDevice) -> None:
    array = np.arange(1 << 16, dtype=np.uint8)
    undo = device.pin(array)
    buffer, queue = device.empty(array.nbytes), device.queue()
    device.write(buffer, array, queue)
    device.synchronize(device.record(queue))
    assert np.array_equal(device.read(buffer, np.uint8, array.shape), array)
    undo()
