"""Contents of buffers: exchanged whole, and checksums that see any change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from perfport.backend import OpenDevice
from perfport.measure.contents import Contents

SIZES = [0, 1, 3, 4, 7, 4096, 100_003]


@pytest.fixture(scope="module")
def contents(device: OpenDevice) -> Iterator[Contents]:
    made = Contents(device)
    yield made
    made.close()


def arrays(nbytes: int) -> list[np.ndarray]:
    return list(np.random.default_rng(nbytes).integers(0, 256, (2, nbytes), np.uint8))


@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_is_exchanged(device: OpenDevice, contents: Contents, nbytes: int) -> None:
    held = arrays(nbytes)
    one, other = (device.upload(array) for array in held)
    contents.exchange(one, other)
    for buffer, array in zip((one, other), reversed(held), strict=True):
        assert (device.read(buffer, np.uint8, (nbytes,)) == array).all()
        buffer.free()


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_checksum_is_of_every_byte_and_of_its_place(device: OpenDevice, contents: Contents, nbytes: int) -> None:
    array = arrays(nbytes)[0]
    changed = [array]
    for place in range(0, nbytes, max(1, nbytes // 7)):
        changed.append(array.copy())
        changed[-1][place] ^= 0x80
    if nbytes > 8:
        changed += [np.roll(array, 4), np.concatenate([array[4:8], array[:4], array[8:]])]
    buffers = [device.upload(each) for each in changed]
    sums = contents.checksums(buffers)
    assert len(set(sums)) == len(changed) and sums == contents.checksums(buffers)
    for buffer in buffers:
        buffer.free()


@pytest.mark.parametrize("nbytes", [*SIZES, 16, 47, 48])
def test_a_mixture_has_runs_of_either_and_no_strangers(device: OpenDevice, contents: Contents, nbytes: int) -> None:
    held = arrays(nbytes)
    one, other, out = (device.upload(array) for array in (*held, np.zeros(nbytes, np.uint8)))
    contents.blend(one, other, out)
    mixed, whole = device.read(out, np.uint8, (nbytes,)), nbytes // 16 * 16
    runs = [array[:whole].reshape(-1, 16) for array in (mixed, *held)]
    from_one, from_other = ((runs[0] == each).all(axis=1) for each in runs[1:])
    assert (from_one | from_other).all() and (mixed[whole:] == held[0][whole:]).all()
    if nbytes >= 4096:
        assert 0.25 < from_other.mean() < 0.75, "by chance: beyond 6 sigma of 256 runs"
    assert contents.strangers(out, one, other) == 0
    for buffer in (one, other, out):
        buffer.free()


@pytest.mark.parametrize("nbytes", [each for each in SIZES if each])
def test_every_byte_that_neither_has_is_counted(device: OpenDevice, contents: Contents, nbytes: int) -> None:
    one, other = arrays(nbytes)
    mixed = np.where(np.arange(nbytes) % 3 == 0, one, other)
    places = sorted({0, nbytes // 2, nbytes - 1})
    for place in places:
        mixed[place] = next(value for value in range(3) if value not in (one[place], other[place]))
    buffers = [device.upload(array) for array in (mixed, one, other)]
    assert contents.strangers(*buffers) == len(places)
    for buffer in buffers:
        buffer.free()


def test_checksums_of_fewer_buffers_follow_those_of_more(device: OpenDevice, contents: Contents) -> None:
    buffers = [device.upload(array) for array in arrays(10)]
    both = contents.checksums(buffers)
    assert [contents.checksums([buffer]) for buffer in buffers] == [[each] for each in both]
    for buffer in buffers:
        buffer.free()


def test_its_memory_is_given_back(device: OpenDevice) -> None:
    before, buffer = device.allocated, device.upload(np.ones(10, np.uint8))
    contents, held = Contents(device), device.allocated
    assert contents.checksums([]) == [] and device.allocated == held, "a checksum is formed where there is a buffer"
    contents.checksums([buffer, buffer])
    assert device.allocated == held + 2 * contents._items * np.dtype(np.uint64).itemsize, "a sum for each work-item"
    contents.close()
    assert device.allocated == held
    buffer.free()
    assert device.allocated == before


def test_checksums_are_of_one_object_alone(device: OpenDevice, contents: Contents) -> None:
    """Who does not know its key cannot make contents of a checksum that is wanted."""
    other = Contents(device)
    buffer = device.upload(arrays(4096)[0])
    assert contents.checksums([buffer]) != other.checksums([buffer])
    buffer.free()
    other.close()


def test_two_changes_do_not_undo_each_other(device: OpenDevice, contents: Contents) -> None:
    """A weaker mixing let the changes of two sign bits cancel in a good part of all pairs."""
    array = np.zeros(1024, np.uint32)
    buffer = device.upload(array)
    rng = np.random.default_rng(3)
    sums = contents.checksums([buffer])
    for bit in (1 << 31, 1 << 30, 1 << 16, 1):
        for pair in rng.permutation(1024).reshape(-1, 2)[:64]:
            changed = array.copy()
            changed[pair] = bit
            device.write(buffer, changed)
            assert contents.checksums([buffer]) != sums
    buffer.free()
