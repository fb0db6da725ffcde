"""The page as one file: its scripts are readable and in the package, its libraries those that are pinned."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import vendored

from perfport.report.viewer import document

FOLDER = Path(document.__file__).parent


def test_every_script_of_the_folder_is_in_the_page() -> None:
    assert sorted(document.SCRIPTS) == sorted(file.name for file in (FOLDER / "page").glob("*.js"))
    made = document.document("T", "{}")
    assert made.count("<script>") == len(document.LIBRARIES) + 1
    style = (FOLDER / "page" / "page.css").read_text()
    assert "@import" not in style and "url(" not in style


@pytest.mark.parametrize("name", document.SCRIPTS)
def test_scripts_are_short_and_make_no_markup(name: str) -> None:
    lines = (FOLDER / "page" / name).read_text().splitlines()
    assert len(lines) <= 200 and lines[0].startswith("// ")
    assert not any(word in line for line in lines for word in ("innerHTML", "insertAdjacentHTML", "fetch(", "http"))


@pytest.mark.parametrize("package", vendored.FILES)
def test_libraries_are_those_that_are_pinned(package: str) -> None:
    version, file, digest = vendored.FILES[package]
    content = (FOLDER / "vendor" / Path(file).name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest and Path(file).name in document.LIBRARIES
    assert f"{package} {version} (" in (FOLDER / "vendor" / "LICENSES.txt").read_text()
    assert b"</script" not in content
