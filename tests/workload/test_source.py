"""Kernel files that include others of their folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.model.errors import CompileError
from perfport.workload.source import read_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kernel that includes two files, of which one includes the other."""
    (tmp_path / "twice.cl").write_text("int twice(int x) { return 2 * x; }")
    (tmp_path / "four.cl").write_text('#include "twice.cl"\nint four(int x) { return twice(twice(x)); }\n')
    (tmp_path / "all.cl").write_text(
        '#include "twice.cl"\n  #  include "four.cl"\n\n'
        "__kernel void whole(__global int *y) { y[get_global_id(0)] = four(3) + twice(1); }\n"
    )
    return tmp_path


def test_a_file_stands_once_and_lines_keep_their_names(folder: Path) -> None:
    text = read_source(folder / "all.cl")
    assert text.count("int twice(") == 1 and "#include" not in text
    for name, line, content in (
        ("four.cl", 2, "int four("),
        ("all.cl", 4, "void whole("),
        ("twice.cl", 1, "int twice("),
    ):
        at, number = "", 0
        for one in text.splitlines():
            if one.startswith("#line"):
                _, start, at = one.split()
                number = int(start) - 1
            elif content in one:
                assert (at, number + 1) == (f'"{name}"', line)
            if not one.startswith("#line"):
                number += 1


def test_a_file_without_includes_is_as_it_stands(folder: Path) -> None:
    assert read_source(folder / "twice.cl") == (folder / "twice.cl").read_text()


@pytest.mark.parametrize("name", ["three.cl", "../four.cl"])
def test_what_is_not_in_the_folder_is_named(folder: Path, name: str) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "bad.cl").write_text(f'\n#include "{name}"\n')
    with pytest.raises(CompileError, match=rf'bad\.cl:2: #include "{name}": expected a file of inner/'):
        read_source(inner / "bad.cl")


def test_circles_end(tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text('#include "b.cl"\nint a;\n')
    (tmp_path / "b.cl").write_text('#include "a.cl"\nint b;\n')
    assert read_source(tmp_path / "a.cl").count("int a;") == 1


def test_it_compiles_and_errors_name_the_file(device: OpenDevice, folder: Path) -> None:
    builder = backend.get(device.info.backend)
    built = device.load(builder.build("all.cl", read_source(folder / "all.cl"), {}, device.target))
    buffer = device.empty(4)
    device.launch(built.kernel("whole"), 1, 1, buffer)
    assert device.read(buffer, np.int32, (1,)).tolist() == [14]
    (folder / "twice.cl").write_text("int twice(int x) { return 2 * nothing; }")
    with pytest.raises(CompileError) as failed:
        device.load(builder.build("all.cl", read_source(folder / "all.cl"), {}, device.target))
    assert "twice.cl" in failed.value.log
