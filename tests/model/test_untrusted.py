"""Names and text fit for paths, terminals and spreadsheets (`tests/security` tries to break them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.model.errors import InfrastructureError
from perfport.model.untrusted import cell, distinct_line, inside, line, printable, readable, say, slug


def test_text_that_can_be_shown_stays_as_it_is() -> None:
    text = "GFLOP/s ± 3 % – “μ” 你好\u00a0x\n\tnext"
    assert printable(text) == text and printable(7) == "7"


def test_what_steers_a_terminal_is_left_out() -> None:
    assert printable("\x1b[31mred\x1b[0m\x07 \u202eback\u202c\x00\ud800\ufffe") == "red back"
    assert printable("a\rb\x0bc\u2028d") == "a b c d"


def test_a_line_is_one_and_shortened() -> None:
    assert line(" a\n\tb ") == "a b" and line("x" * 400) == "x" * 299 + "…" and line("abc", 2) == "a…"


def test_lines_that_say_less_than_their_value_are_told_apart() -> None:
    assert distinct_line("rows/full a@opencl:pocl:0") == "rows/full a@opencl:pocl:0"
    lossy = [distinct_line(value) for value in ("a b", "a\nb", "a  b", "a\x1bb", "ab")]
    assert len(set(lossy)) == 5 and lossy[0] == "a b" and lossy[4] == "ab"
    assert distinct_line(lossy[1]) != lossy[1], "no value can be another's line"


def test_cells_are_no_formulas_and_numbers_stay() -> None:
    assert (
        cell("=1") == "'=1" and cell(" +1") == "' +1" and cell("a") == "a" and cell(None) is None and cell(-1.5) == -1.5
    )


def test_a_slug_reads_as_its_names() -> None:
    assert slug("rows") == "rows" and slug("demo", "rows") == "demo-rows"
    assert slug("Rows").startswith("rows-") and slug("../x").startswith("x-") and slug("").startswith("x-")
    assert slug("a-b", "c") != slug("a", "b-c") and len(slug("n" * 999)) == 120
    assert readable("demo", "", "opencl:pocl:0") == "demo-opencl-pocl-0"


def test_inside_holds_paths_to_their_folder(tmp_path: Path) -> None:
    assert inside(tmp_path, "a/b") == tmp_path / "a" / "b"
    for part in ("..", "/x", "a/../..", "\x00"):
        with pytest.raises(InfrastructureError, match="leaves the folder"):
            inside(tmp_path, part)


def test_what_is_said_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\x1b[2Jb", end="", flush=True)
    say("c\x07", error=True)
    assert capsys.readouterr() == ("ab", "c\n")
