"""Values that are names or paths: what is neither is refused where an experiment is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.workload import name_or_path

check = name_or_path(("composite", "astronaut"))


@pytest.mark.parametrize(
    "value", ["composite", "astronaut", "folder/picture", "zoo/picture", "/picture", "picture.png", "./picture"]
)
def test_names_and_what_may_be_a_path_pass(value: str) -> None:
    assert check(value) == value


def test_a_file_without_a_suffix_is_a_path_where_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'a9a' is neither one of composite, astronaut, nor a file$"):
        check("a9a")
    Path("a9a").touch()
    assert check("a9a") == "a9a"


@pytest.mark.parametrize(("value", "shown"), [
    ("astronought", r"'astronought' is neither one of .* \(did you mean 'astronaut'\?\)"), ("", "''"),
    ("x" * 5000, "'x{50,200}"), ("\0", r"'\\x00'"),
])  # fmt: skip
def test_anything_else_is_shown(value: str, shown: str) -> None:
    with pytest.raises(ValueError, match=shown) as caught:
        check(value)
    assert len(str(caught.value)) < 400
