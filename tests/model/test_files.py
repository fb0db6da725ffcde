"""Files are read within limits and without waiting, and written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.files import opened, parse_json, read, read_json, read_text, write


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, "cannot be read (No such file or directory)"),
        (Path.mkdir, "cannot be read (expected a file, got a folder)"),
        (os.mkfifo, "cannot be read (expected a file, got a FIFO)"),
        (lambda path: path.symlink_to("/dev/zero"), "cannot be read (expected a file, got a device)"),
        (lambda path: path.symlink_to(path), "cannot be read (Too many levels of symbolic links)"),
        (lambda path: path.write_bytes(b"12345"), "expected at most 4 bytes, got 5"),
    ],
)
def test_what_is_no_file_or_too_large_is_refused(tmp_path: Path, make: Any, complaint: str) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(UsageError) as error:
        read(path, 4)
    assert str(error.value) == f"{path}: {complaint}"


def test_a_file_within_the_limit_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbf\xc3\xa9")
    assert read(tmp_path / "file", 5) == b"\xef\xbb\xbf\xc3\xa9" and read_text(tmp_path / "file") == "é"
    with opened(tmp_path / "file") as file:
        assert file.readline() == b"\xef\xbb\xbf\xc3\xa9"


def test_a_path_with_a_nul_is_named() -> None:
    with pytest.raises(UsageError, match=r"^'a\\x00b': cannot be read"):
        read(Path("a\0b"))


def test_what_the_machine_lacks_is_not_the_file_s_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(InfrastructureError, match=r"file: cannot be read \(Too many open files\)"):
        read(tmp_path / "file")


def test_a_text_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"ab\xff")
    with pytest.raises(UsageError, match=r"file: not UTF-8 \(invalid start byte at byte 2\)$"):
        read_text(tmp_path / "file")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{} {}", b"[" * 10_000, b'"\xff"', b'"\\ud800"', b'"a\x00b"', b"1" * 5000, b'{"a": ' + b"9" * 5000],
    ids=range(9),
)
def test_what_is_no_json_is_named_in_a_line(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"^here: not JSON \(.{5,200}\)$"):
        parse_json(content, "here")


def test_json_may_have_a_mark_and_numbers_that_are_not_finite(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'\xef\xbb\xbf{"a": Infinity, "b": 1, "b": 2}')
    assert read_json(tmp_path / "file") == {"a": float("inf"), "b": 2}


def test_a_file_is_replaced_and_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    (tmp_path / "there").chmod(0o640)
    (tmp_path / "link").symlink_to("there")
    write(tmp_path / "link", "né\udcff")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there").read_bytes() == "né?".encode()
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o640
    write(tmp_path / "a" / "b" / "new", b"\x00")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "a" / "b" / "new").stat().st_mode & 0o777 == 0o666 & ~mask
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "link", "new", "there"]


@pytest.mark.parametrize("failing", ["write_bytes", "replace"])
def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(path: Path, *_: Any) -> None:
        path.touch()  # half of it
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(Path, failing, fail)
    with pytest.raises(InfrastructureError, match=r"file: cannot be written \(No space left on device\)"):
        write(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "old"


def test_a_device_is_written_to_as_it_is() -> None:
    write(Path("/dev/null"), "text")
    assert not Path("/dev/null").is_file()
    with pytest.raises(InfrastructureError, match=r"/dev/full: cannot be written \(No space left"):
        write(Path("/dev/full"), "text")
