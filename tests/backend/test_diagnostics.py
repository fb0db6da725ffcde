"""What compilers say, in one form: file and line are those of the author's own file, whatever the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport import backend
from perfport.backend import OpenDevice, nvrtc
from perfport.backend.diagnostics import MOST, compile_error, errors
from perfport.model.errors import CompileError, UnavailableError
from perfport.workload.source import read_source


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("error: a.cl:3:9: no such thing\nwarning: a.cl:4:1: unused", ["a.cl:3:9: no such thing"]),
        ("error: a.cl:3:9 <Spelling=b.h:1:18>: oops", ["a.cl:3:9: oops (in a macro of b.h:1:18)"]),
        ("Compilation started\na.cl:3:9: error: oops\n    3 | x\na.cl:3:9: note: here", ["a.cl:3:9: oops"]),
        ("a.cl:7:1: fatal error: too many", ["a.cl:7:1: too many"]),
        (
            'a.cl(4): error: expected a ";"\n  x\n  ^\n\nb.h(5): error #20-D: gone',
            ['a.cl:4: expected a ";"', "b.h:5: gone"],
        ),
        ("a.cl:1:1: error: \x1b[31mred\x1b[0m\x07", ["a.cl:1:1: red"]),
        ("a.cl:1:1: error: twice\na.cl:1:1: error: twice", ["a.cl:1:1: twice"]),
        ("ld: nothing that is known", []),
    ],
)
def test_each_form_is_read(log: str, told: list[str]) -> None:
    assert list(map(str, errors(log))) == told


def test_an_error_shows_its_line_and_points_at_its_column() -> None:
    source = '#line 1 "dialect.h"\n#define A\n#line 1 "a.cl"\nfirst\n\t  second;\n'
    error = compile_error("a.cl", "here", "a.cl:2:4: error: oops", source)
    assert str(error) == "a.cl does not compile for here: a.cl:2:4: oops"
    assert error.log.split("\n\n") == ["a.cl:2:4: oops\n    second;\n    ^", "a.cl:2:4: error: oops"]


def test_of_many_errors_the_first_are_shown_and_all_are_counted() -> None:
    log = "\n".join(f"a.cl:{row}:1: error: oops" for row in range(1, MOST + 5))
    error = compile_error("a.cl", "here", log, "")
    assert str(error).endswith(f"a.cl:1:1: oops (and {MOST + 3} more)")
    assert error.log.split("\n\n")[0].splitlines()[-1] == "and 4 more errors"


def test_a_log_of_an_unknown_form_is_kept_and_its_first_error_told() -> None:
    error = compile_error("a.cl", "here", "chatter\n  Error: something else\n", "")
    assert str(error) == "a.cl does not compile for here: Error: something else" and "chatter" in error.log
    assert str(compile_error("a.cl", "here", "", "")) == "a.cl does not compile for here"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kernel with an error of its own before, between and behind what it includes, whose second one has one, too."""
    (tmp_path / "fine.cl").write_text("// a form feed \f ends no line\nint fine(int x) { return x; }")
    (tmp_path / "bad.cl").write_text('#include "fine.cl"\n\nint bad(int x) { return wrong_in_bad; }\n')
    (tmp_path / "all.cl").write_text(
        'int before(int x) { return wrong_before; }\n#include "fine.cl"\nint between(int x) { return wrong_between; }\n'
        '#include "bad.cl"\n#include "fine.cl"\n__kernel void whole(__global int *y) {\n    y[0] = wrong_behind;\n}\n'
    )
    return tmp_path


PLACES = {("all.cl", 1), ("all.cl", 3), ("bad.cl", 3), ("all.cl", 7)}


def test_opencl_compilers_name_the_files_and_their_lines(opencl: OpenDevice, folder: Path) -> None:
    with pytest.raises(CompileError) as caught:
        opencl.load(backend.get("opencl").build("all.cl", read_source(folder / "all.cl"), {}, None))
    assert {(each.file, each.line) for each in errors(caught.value.log)} == PLACES
    assert "y[0] = wrong_behind;\n" in caught.value.log and "all.cl:1:" in str(caught.value)


def test_nvrtc_names_the_files_and_their_lines(folder: Path) -> None:
    try:
        nvrtc.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    with pytest.raises(CompileError) as caught:
        nvrtc.build("all.cl", read_source(folder / "all.cl"), {})
    assert {(each.file, each.line) for each in errors(caught.value.log)} == PLACES


def test_a_kernel_of_another_name_is_told_with_those_that_there_are(opencl: OpenDevice) -> None:
    module = opencl.load(
        backend.get("opencl").build("k.cl", "__kernel void there(__global int *y) { y[0] = 1; }", {}, None)
    )
    with pytest.raises(CompileError, match=r"k\.cl has no kernel 'their'; it has: there"):
        module.kernel("their")
