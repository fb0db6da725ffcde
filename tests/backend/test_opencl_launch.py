"""Launches through the runtime's own function do what PyOpenCL's do, and fail as they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.backend.opencl_launch import Launch

SOURCE = """
__kernel void REQD_GROUP(4) put(__global uint *x, uint a, float b, uchar c) {
    x[get_global_id(0)] = a + (uint)b + c + get_local_size(0);
}
__kernel void where(__global uint *x) {
    x[get_global_id(0) + 6 * get_global_id(1)] = 10 * get_group_id(1) + get_group_id(0);
}
"""


class Own:
    """A device, a buffer, and kernels."""

    def __init__(self, opencl: OpenDevice) -> None:
        self.device: Any = opencl
        module = self.device.load(backend.get("opencl").build("launch.cl", SOURCE, {}, None))
        self.put, self.where = module.kernel("put"), module.kernel("where")
        self.queue = cl.CommandQueue(self.device.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.x = self.device.upload(np.zeros(24, np.uint32))

    def read(self) -> np.ndarray:
        self.queue.finish()
        return np.asarray(self.device.read(self.x, np.uint32, (24,)))


@pytest.fixture
def own(opencl: OpenDevice) -> Own:
    return Own(opencl)


@pytest.mark.parametrize("how", [Launch.enqueue, Launch.traced])
def test_both_ways_launch_the_same(own: Own, how: Any) -> None:
    own.put.set([own.x.handle, np.uint32(2**32 - 8), np.float32(3), np.uint8(200)])
    event = how(Launch(own.put, own.queue, (8,), (4,)))
    assert (own.read() == [*[199] * 8, *[0] * 16]).all()
    assert (event is None) == (how is Launch.enqueue)
    own.where.set([own.x.handle])
    how(Launch(own.where, own.queue, (6, 4), (3, 2)))
    y, x = np.mgrid[:4, :6]
    assert np.array_equal(own.read().reshape(4, 6), 10 * (y // 2) + x // 3)


def test_an_event_has_times(own: Own) -> None:
    own.where.set([own.x.handle])
    event = Launch(own.where, own.queue, (6, 4), (3, 2)).traced()
    event.wait()
    assert event.profile.start <= event.profile.end


def test_scalars_of_another_type_are_passed_as_what_they_are(own: Own) -> None:
    for a in (np.uint32(3_000_000_000), np.int32(-1), np.uint32(7)):
        own.put.set([own.x.handle, a, np.float32(0), np.uint8(0)])
        Launch(own.put, own.queue, (4,), (4,)).enqueue()
        assert own.read()[0] == (int(a) + 4) % 2**32


@pytest.mark.parametrize("number", [0, 1, 3, 5])
def test_a_wrong_number_of_arguments(own: Own, number: int) -> None:
    given = [own.x.handle, np.uint32(0), np.float32(0), np.uint8(0), np.uint8(0)][:number]
    with pytest.raises(TypeError):
        own.put.set(given)


@pytest.mark.parametrize(
    ("size", "group", "error"),
    [((8,), (8,), "INVALID_WORK_GROUP_SIZE"), ((6,), (4,), "INVALID_WORK_GROUP_SIZE")],
    ids=["not as declared", "no multiple"],
)
def test_errors_are_those_of_pyopencl(own: Own, size: Any, group: Any, error: str) -> None:
    own.put.set([own.x.handle, np.uint32(0), np.float32(0), np.uint8(0)])
    launch = Launch(own.put, own.queue, size, group)
    with pytest.raises(cl.LogicError, match=error) as one:
        launch.traced()
    with pytest.raises(cl.LogicError) as other:
        launch.enqueue()
    assert str(one.value) == str(other.value) and one.value.code == other.value.code
    assert (own.read() == 0).all()
