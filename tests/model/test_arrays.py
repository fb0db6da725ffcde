"""Arrays of files: headers are judged before anything is allocated, and nothing but the project's error comes out."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from perfport.model import arrays
from perfport.model.arrays import REAL, TEXT, read_npy, read_npz
from perfport.model.errors import UsageError


def header(shape: Any, descr: Any = "<f4", version: tuple[int, int] = (1, 0)) -> bytes:
    """A header that states this, whatever follows."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return npy.magic(*version) + len(text).to_bytes(2 if version == (1, 0) else 4, "little") + text


def members(path: Path, compression: int = zipfile.ZIP_STORED, **contents: bytes) -> Path:
    """An archive of these members, as they are."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(5, np.uint8),
        np.empty((0, 3), np.int16), np.array([True, False]), np.arange(4, dtype=">i8"), np.arange(4, dtype=np.float16),
    ],
)  # fmt: skip
def test_real_numbers_are_read_as_they_were_written(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", one=array, two=array)
    np.savez_compressed(tmp_path / "b.npz", one=array)
    for read in (
        read_npy(tmp_path / "a.npy"),
        *read_npz(tmp_path / "a.npz").values(),
        read_npz(tmp_path / "b.npz", ["one"])["one"],
    ):
        assert read.dtype == array.dtype and np.array_equal(read, array) and read.flags.writeable


def test_other_names_are_not_read(tmp_path: Path) -> None:
    path = members(tmp_path / "a.npz", good=header((1,)) + bytes(4), bad=b"nothing", text=b"")
    assert list(read_npz(path, ["good"])) == ["good"]
    with pytest.raises(UsageError, match=r"a\.npz: holds no array better and no best, only 'bad', 'good', 'text'$"):
        read_npz(path, ["better", "good", "best"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            header((10**9, 10**9)),
            r"expected the 40{18} bytes of float32 \(10{9}, 10{9}\), got 0",
        ),
        (header((10**40,)) + bytes(8), "expected the 4000.* bytes"),
        (header((3,)) + bytes(11), r"expected the 12 bytes of float32 \(3,\), got 11"),
        (header((3,)) + bytes(13), r"expected the 12 bytes of float32 \(3,\), got 13"),
        (header((-3,)) + bytes(12), "expected a shape of numbers from 0"),
        (header((-3, -1)) + bytes(12), "expected a shape of numbers from 0"),
        (header((0, 10**30)), "damaged one"),
        (header((1,) * 65) + bytes(4), "damaged one"),
        (header((1,), "|O") + pickle.dumps([1]), "expected real numbers, got object"),
        (header((1,), "<c8") + bytes(8), "expected real numbers, got complex64"),
        (header((1,), "<U4") + bytes(16), "expected real numbers, got <U4"),
        (header((1,), [("a", "<f4")]) + bytes(4), "expected real numbers, got"),
        (header((1,), "(2,)<f4") + bytes(8), "expected real numbers, got"),
        (header((1,), "<M8[s]") + bytes(8), "expected real numbers, got datetime"),
        (header((1,), "no such type") + bytes(8), "damaged one"),
        (header("3") + bytes(8), "damaged one"),
        (header((1.5,)) + bytes(8), "damaged one"),
        (header((1,), version=(3, 0)) + bytes(4), "expected the .npy format 1.0 or 2.0, got 3.0"),
        (npy.magic(1, 0) + b"\xff\xff" + b"(" * 65535, "damaged one"),
        (npy.magic(1, 0) + b"\x20\x4e" + b"(" * 20_000, "damaged one"),
        (npy.magic(2, 0) + b"\xff\xff\xff\xff", "damaged one"),
        (b"\x93NUMPY", "damaged one"),
        (b"", "damaged one"),
        (pickle.dumps([1]), "damaged one"),
    ],
)
def test_damaged_arrays_are_refused_alone_and_in_an_archive(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(UsageError, match=rf"a\.npy:? .*{message}"):
        read_npy(tmp_path / "a.npy")
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with pytest.raises(UsageError, match=rf"^w: .*a\.npz:? .*{message}"):
            read_npz(members(tmp_path / "a.npz", compression, w=content), where=f"w: {tmp_path / 'a.npz'}")


def test_text_is_read_where_it_is_expected(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", header=np.array("text"), empty=np.array(""))
    assert read_npz(tmp_path / "a.npz", ["header"], REAL + TEXT)["header"].item() == "text"
    with pytest.raises(UsageError, match=r"a\.npz: header: expected real numbers, got <U4"):
        read_npz(tmp_path / "a.npz", ["header"])
    path = members(tmp_path / "b.npz", none=header((10**30,), "<U0"))
    with pytest.raises(UsageError, match="expected a shape of numbers from 0"):
        read_npz(path, kinds=REAL + TEXT)


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    whole = members(tmp_path / "a.npz", zipfile.ZIP_DEFLATED, one=header((100,)) + bytes(range(200)) * 2).read_bytes()
    path = tmp_path / "b.npz"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match=r"b\.npz: is not an \.npz file, or a damaged one"):
            read_npz(path)
    seen = 0
    for at in range(len(whole)):
        for mask in (0x01, 0x80):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            try:
                (array,) = read_npz(path).values()
                assert array.tobytes() == bytes(range(200)) * 2
            except UsageError as error:
                assert str(path) in str(error)
                seen += 1
    assert seen > len(whole) // 2


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_a_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for _ in range(2):
            archive.writestr("one.npy", header((0,)))
    with pytest.raises(UsageError, match=r"a\.npz: has two arrays of one name"):
        read_npz(tmp_path / "a.npz")


def test_an_archive_may_not_unpack_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is on all arrays together; one that is as large as the file itself is no bomb."""
    monkeypatch.setattr(arrays, "UNPACKED", 10_000)
    np.savez_compressed(tmp_path / "a.npz", one=np.zeros(700), two=np.zeros(700))
    assert read_npz(tmp_path / "a.npz", ["one"])["one"].size == 700
    with pytest.raises(UsageError, match=r"a\.npz: two: unpacks to 5728 bytes, 1456 more than are allowed"):
        read_npz(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", one=np.arange(1400.0))
    assert read_npz(tmp_path / "b.npz")["one"].size == 1400


def bomb(path: Path, size: int) -> None:
    """An archive with an array of ``size`` bytes of zeros, deflated: one block, over and over."""
    packer, block = zlib.compressobj(9, zlib.DEFLATED, -15), 1 << 20
    start = header((size // 4,))
    content = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    content += (packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)) * (size // block) + packer.flush()
    archive = bytearray(members(path, one=content).read_bytes())
    directory = archive.rindex(b"PK\1\2")
    for method, unpacked in ((8, 22), (directory + 10, directory + 24)):  # of the member's header and the directory's
        archive[method : method + 2] = zipfile.ZIP_DEFLATED.to_bytes(2, "little")
        archive[unpacked : unpacked + 4] = (len(start) + size).to_bytes(4, "little")
    path.write_bytes(archive)


READ = """
import resource, sys
from pathlib import Path
from perfport.model.arrays import read_npz
from perfport.model.errors import UsageError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_npz(Path(sys.argv[1]))
except UsageError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_zip_bomb_takes_no_memory(tmp_path: Path) -> None:
    """3 GiB of zeros in 3 MiB, under a header that states them rightly."""
    path = tmp_path / "a.npz"
    bomb(path, 3 << 30)
    assert path.stat().st_size < 4 << 20
    with zipfile.ZipFile(path) as archive, archive.open("one.npy") as member:
        assert len(member.read(5 << 20)) == 5 << 20
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    said, grown = done.stdout.splitlines()
    assert "one: unpacks to 3221225600 bytes" in said and "more than are allowed" in said and int(grown) < 100


def test_a_size_that_is_not_true_is_refused(tmp_path: Path) -> None:
    """The directory says 12 bytes fewer than the member unpacks to, or 12 more."""
    start = header((3,))
    for change in (-12, 12):
        path = members(tmp_path / "a.npz", zipfile.ZIP_DEFLATED, one=start + bytes(12))
        content, right = path.read_bytes(), (len(start) + 12).to_bytes(4, "little")
        assert content.count(right) == 2  # of the member and of the directory
        path.write_bytes(content.replace(right, (len(start) + 12 + change).to_bytes(4, "little")))
        with pytest.raises(UsageError, match=r"a\.npz.*(: one: expected the 12 bytes of|Bad CRC)"):
            read_npz(path)


def test_a_wrong_checksum_is_seen_in_stored_members(tmp_path: Path) -> None:
    path = members(tmp_path / "a.npz", one=header((3,)) + np.arange(3, dtype=np.float32).tobytes())
    path.write_bytes(path.read_bytes().replace(np.float32(2).tobytes(), np.float32(3).tobytes()))
    with pytest.raises(UsageError, match=r"damaged one \(Bad CRC-32"):
        read_npz(path)
