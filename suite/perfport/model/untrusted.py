"""What comes from files and from other people, made fit for where it goes: paths, terminals, spreadsheets, pages.

Names in records, histories, YAML and imports are data. A part of a path is made of one by `slug`, and every path that
is made of names is asked of `inside`; what is shown passes `printable` or `line`; a program prints through `say`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from pathlib import Path

from .errors import InfrastructureError

#: Longest part of a path that is made of names: file systems take 255 bytes, and suffixes follow.
MOST = 120
#: Sequences that steer a terminal: CSI (``ESC [ ... letter``), OSC (``ESC ] ... BEL``) and those of two characters.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\^-~])")
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.]*")
_DIGEST = re.compile(r"(?:^|[ -])[0-9a-f]{12}$")
#: Spreadsheets take a cell that begins so for a formula; with the full-width forms of the same characters.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def printable(value: object) -> str:
    """Return text without what steers a terminal, hides or reorders characters, or is forbidden in XML 1.0.

    Terminal escapes, control characters, bidirectional and other format characters, surrogates, private and unassigned
    characters are left out; line breaks other than the newline become spaces. Newlines and tabs stay.
    """
    text = str(value)
    if text.isprintable():
        return text
    rows = text.split("\n")  # each apart: an escape that never ends hides its own line alone
    return "\n".join(row if row.isprintable() else "".join(map(_shown, _ESCAPES.sub("", row))) for row in rows)


def _shown(character: str) -> str:
    if character == "\t" or character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return " " if character.isspace() else ""


def line(value: object, limit: int = 300) -> str:
    """Return a value as one `printable` line of at most ``limit`` characters."""
    content = " ".join(printable(value).split())
    return content if len(content) <= limit else content[: limit - 1] + "…"


def indented(*texts: str, limit: int = 300) -> str:
    """Return texts as `line`-like rows below a line of output, each row indented; empty texts and rows are left out.

    Spaces at the beginning of a row stay: compilers point at columns.
    """
    rows = [printable(row).expandtabs(1).rstrip() for text in texts for row in text.split("\n") if row.strip()]
    return "".join(f"\n    {row if len(row) <= limit else row[: limit - 1] + '…'}" for row in rows)


def opening(text: str, most: int = 12) -> str:
    """Return the lines of a text up to its first empty one, ``most`` of them at most."""
    return "\n".join(text.split("\n\n", 1)[0].split("\n")[:most])


def distinct_line(value: str, limit: int = 300) -> str:
    """Return a value as one line by which other tools know it: different values have different lines."""
    content = line(value, limit)
    return content if content == value and not _DIGEST.search(content) else f"{content} {_digest(value)}"


def cell(value: object) -> object:
    """Return a value as a spreadsheet may have it: a text is `printable`, and none is a formula."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def say(text: object, end: str = "\n", error: bool = False, flush: bool = False) -> None:
    """Print text, `printable`; to standard error where it is an ``error``."""
    print(printable(text), end=end, file=sys.stderr if error else sys.stdout, flush=flush)


def readable(*parts: str) -> str:
    """Return names as one part of a path that a reader recognises. Different names may give the same one."""
    joined = "-".join(filter(None, parts)).lower()
    return re.sub(r"[^a-z0-9_.]+", "-", joined).strip("-.")[:MOST].rstrip("-.") or "x"


def slug(*parts: str) -> str:
    """Return names as one part of a path; different names give different ones, also where case is ignored.

    Names of small letters, digits, ``_`` and ``.`` stay as they are, joined by ``-``, which only a name that stands
    alone may have itself. All others get a digest (48 bits of SHA-256) behind what can be read of them.
    """
    name = readable(*parts)
    alone = [part for name in parts for part in name.split("-")] if len(parts) == 1 else parts
    if name == "-".join(parts) and all(map(_PLAIN.fullmatch, alone)) and not _DIGEST.search(name):
        return name
    digest = _digest(*parts)
    return f"{name[: MOST - len(digest) - 1].rstrip('-.')}-{digest}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def inside(folder: Path, *parts: str) -> Path:
    """Return a path below a folder.

    Raises
    ------
    InfrastructureError
        If it would leave the folder: by ``..``, as an absolute path, or through a symbolic link that lies there. Or if
        nobody can tell.
    """
    path = folder.joinpath(*parts)
    try:
        left = folder.resolve() not in path.resolve().parents
    except (ValueError, RuntimeError):  # NUL; links in a circle
        left = True
    except OSError as error:
        raise InfrastructureError(f"{line(path)}: cannot be written ({error.strerror})") from None
    if left:
        raise InfrastructureError(f"{line(path)}: leaves the folder {line(folder)}; nothing is written there")
    return path
