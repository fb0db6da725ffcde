"""Files of lines: on disk when they are said to be, whole after a kill or on a full disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfport.model.errors import InfrastructureError
from perfport.store import writing
from perfport.store.writing import LineFile, replace


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
@pytest.mark.parametrize("kept", [b"", b"one\n", b"one\ntwo\n", b"\n", b"one\n\n"])
@pytest.mark.parametrize("torn", [b"", b"t", b"torn by a kill"])
def test_a_torn_line_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bytes, torn: bytes, block: int
) -> None:
    monkeypatch.setattr(writing, "_BLOCK", block)
    path = tmp_path / "file"
    path.write_bytes(kept + torn)
    file = LineFile(path)
    assert path.read_bytes() == kept
    file.append(b"new\n", "a line")
    file.close()
    assert path.read_bytes() == kept + b"new\n"


def test_a_line_is_on_disk_when_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that loses power must lose neither the line nor the name of a new file."""
    flushed: list[tuple[Path, bytes]] = []

    def fsync(number: int) -> None:
        target = Path(f"/proc/self/fd/{number}").readlink()
        flushed.append((target, b"" if target.is_dir() else target.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    file = LineFile(tmp_path / "file")
    assert flushed == [(tmp_path, b"")], "the folder, once the file is in it"
    file.append(b"one\n", "a line")
    assert flushed[1:] == [(tmp_path / "file", b"one\n")]
    file.close()
    LineFile(tmp_path / "file").close()
    assert len(flushed) == 2, "the file was there"


def test_a_small_file_is_on_disk_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flushed = tmp_path / "file", []

    def fsync(number: int) -> None:
        target = Path(f"/proc/self/fd/{number}").readlink()
        flushed.append((target.name, path.read_text() if target.is_dir() else target.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    replace(path, "new")
    assert flushed == [("file.part", "new"), (tmp_path.name, "new")], "its content before its name"


def test_a_small_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace(path, "old")
    (tmp_path / "file.part").mkdir()
    with pytest.raises(InfrastructureError, match=r"file: cannot be written \(Is a directory\)"):
        replace(path, "new")
    assert path.read_text() == "old"
