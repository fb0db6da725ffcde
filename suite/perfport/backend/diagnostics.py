"""What compilers say of a kernel, in one form: file, line and column in the author's own file, and the line itself."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..model.errors import CompileError, cut
from ..model.untrusted import printable

#: Errors that are shown; of more, their number.
MOST = 8
_LINE = re.compile(r'\s*#\s*line\s+(\d+)\s+"([^"]*)"')
_FILE = r"(?P<file>[^\s:()][^:()\n]*)"
_KIND = r"(?P<kind>(?:fatal |catastrophic )?error)"
_FORMS = (
    # PoCL: error: rbf_rows.cl:3:9 <Spelling=rbf_rows.cl:1:18>: text
    rf"{_KIND}: {_FILE}:(?P<line>\d+):(?P<column>\d+)(?: <Spelling=(?P<macro>[^>]*)>)?: (?P<text>.*)",
    # Clang, so Intel's runtime too: rbf_rows.cl:3:9: error: text
    rf"{_FILE}:(?P<line>\d+):(?P<column>\d+): {_KIND}: (?P<text>.*)",
    # NVRTC: rbf_rows.cl(3): error: text
    rf"{_FILE}\((?P<line>\d+)\): {_KIND}(?: #[\w-]+)?: (?P<text>.*)",
)
_ERROR = re.compile("|".join(f"^{re.sub(r'P<(?!=)', f'P<_{n}', form)}$" for n, form in enumerate(_FORMS)), re.M)


@dataclass(frozen=True)
class Diagnostic:
    """One error: where, counted from 1, and what; ``column`` is 0 where the compiler does not tell."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}: {self.text}"


def errors(log: str) -> list[Diagnostic]:
    """Return the errors in a compiler's log, in its order; a form that is not known gives none."""
    found = []
    for match in _ERROR.finditer(printable(log)):
        part = {key[2:]: value for key, value in match.groupdict().items() if value is not None}
        text = part["text"] + (f" (in a macro of {part['macro']})" if "macro" in part else "")
        found.append(Diagnostic(part["file"], int(part["line"]), int(part.get("column", 0)), text))
    return list(dict.fromkeys(found))


def compile_error(name: str, target: str, log: str, source: str) -> CompileError:
    """Return the error of a source that does not compile.

    Parameters
    ----------
    name, target : str
        Of the file, and of what it is compiled for.
    log : str
        The compiler's.
    source : str
        What was compiled, with its ``#line`` markers: some compilers do not show the line that they speak of.
    """
    refused = f"{name} does not compile for {target}"
    found = errors(log)
    if not found:
        told = next((row.strip() for row in printable(log).splitlines() if "error" in row.lower()), "")
        return CompileError(f"{refused}: {cut(told)}" if told else refused, log)
    lines = dict(_numbered(source))
    blocks = [_block(each, lines.get((each.file, each.line), "")) for each in found[:MOST]]
    more = [f"and {len(found) - MOST} more errors"] if len(found) > MOST else []
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return CompileError(f"{refused}: {found[0]}{others}", "\n".join([*blocks, *more, "", log]))


def _numbered(source: str) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield each line of a source by file and number, as ``#line`` has them."""
    file, number = "", 1
    for row in io.StringIO(source):
        if marker := _LINE.match(row):
            file, number = marker[2], int(marker[1])
            continue
        yield (file, number), row.rstrip("\n")
        number += 1


def _block(error: Diagnostic, row: str) -> str:
    """Return an error with the line that it is about, and a mark below its column."""
    if not row.strip():
        return str(error)
    shown = printable(row).replace("\t", " ")
    indent = len(shown) - len(shown.lstrip())
    mark = f"\n    {' ' * max(error.column - 1 - indent, 0)}^" if error.column > indent else ""
    return f"{error}\n    {shown.strip()}{mark}"
