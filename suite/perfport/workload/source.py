"""Kernel files: what one includes of the others in its folder stands in it once."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from ..model.errors import CompileError

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def read_source(path: Path) -> str:
    """Return the text of a kernel file, with the files that it includes in place of their ``#include "NAME"``.

    No backend is given a folder to look in: what it compiles, hashes and shows is this text. A file that is included
    twice stands there once. ``#line`` makes compilers name the files themselves.

    Raises
    ------
    CompileError
        If an included file is not in the folder.
    """
    if not INCLUDE.search(text := path.read_text(encoding="utf-8")):
        return text
    return "".join(_lines(path, text, {path}))


def _lines(path: Path, text: str, seen: set[Path]) -> Iterator[str]:
    for number, line in enumerate(io.StringIO(text), 1):  # str.splitlines also ends lines where compilers do not
        if not (found := INCLUDE.match(line)):
            yield line
            continue
        other = path.parent / found[1]
        if other in seen:
            yield "\n"
            continue
        if other.parent != path.parent or not other.is_file():
            raise CompileError(f'{path.name}:{number}: #include "{found[1]}": expected a file of {path.parent.name}/')
        seen.add(other)
        yield f'#line 1 "{other.name}"\n'
        yield from _lines(other, other.read_text(encoding="utf-8").rstrip("\n") + "\n", seen)
        yield f'#line {number + 1} "{path.name}"\n'
