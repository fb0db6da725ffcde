"""Paths as results hold them: without who ran it, and without where that user keeps things.

| what a path begins with | in results |
| --- | --- |
| the Python environment | `$VENV` |
| the source tree of the suite | `$PERFPORT` |
| the temporary folder, also `/tmp` and `/var/tmp` | `$TMPDIR` |
| the user's home; `/root`, `/home/NAME` or `/Users/NAME` of anyone | `~` |

Any other folder that bears the user's name is `$USER`. Paths of the system stay as they are.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

#: What may stand ahead of a path: no part of another one, but an option of a compiler or the head of a URL.
_AHEAD = r"(?:(?<![\w./~$-])|(?<=-[FIL])|(?<=file://))"
#: The end of a folder's name: not "/home/ann" in "/home/anna" or "/home/ann.old", but before the end of a sentence.
_END = r"(?![\w-]|\.\w)"
_ANYONE = re.compile(rf"{_AHEAD}(?:/root{_END}|/(?:home|Users)/[\w@-]+(?:\.[\w@-]+)*)")
_PLAIN = re.compile(r"(?:~|\$[A-Z]+)(?:/[\w@%+=:,./-]*)?")
_SYSTEM = {"/", "/usr", "/usr/local"}


def shortened(text: str, folders: Mapping[str, str] = {}) -> str:
    """Return a text with the paths in it as results hold them.

    Parameters
    ----------
    text : str
        Paths anywhere in it, as in a log.
    folders : mapping
        Names of further folders: of another machine's environment, for a text that comes from there.
    """
    for pattern, name in (*_patterns(folders), *_of_this_machine()):
        text = pattern.sub(lambda _, name=name: name, text)  # type: ignore[misc]
    return text


def shorten(value: Any, folders: Mapping[str, str] = {}) -> Any:
    """Return a value of JSON with every text in it `shortened`; keys stay."""
    if isinstance(value, str):
        return shortened(value, folders)
    if isinstance(value, Mapping):
        return {key: shorten(inner, folders) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shorten(inner, folders) for inner in value]
    return value


def shell(command: Sequence[str]) -> str:
    """Return a stored command as a line for the shell, which expands the names of folders in it."""
    words = []
    for word in map(str, command):
        option, _equals, value = word.rpartition("=")
        plain = _PLAIN.fullmatch(value) and re.fullmatch(r"[\w-]*", option)
        words.append(word if plain else shlex.quote(word))
    return " ".join(words)


def _patterns(folders: Mapping[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """Return what finds each folder, the innermost first."""
    known = {form: name for folder, name in folders.items() for form in (os.path.realpath(folder), folder)}
    known = {folder.rstrip("/"): name for folder, name in known.items() if Path(folder).is_absolute()}
    return [
        (re.compile(f"{_AHEAD}{re.escape(folder)}{_END}"), known[folder])
        for folder in sorted(known, key=len, reverse=True)
        if folder and folder not in _SYSTEM
    ]


@functools.cache
def _of_this_machine() -> tuple[tuple[re.Pattern[str], str], ...]:
    source = Path(str(files("perfport"))).resolve().parent  # of a tree: its folder `suite`
    folders = {sys.prefix: "$VENV", os.path.expanduser("~"): "~"}  # noqa: PTH111 (no error where there is no home)
    folders |= dict.fromkeys(("/tmp", "/var/tmp", tempfile.gettempdir()), "$TMPDIR")
    folders |= {str(source.parent): "$PERFPORT"} if source.name == "suite" else {}
    users = {os.environ.get(name) for name in ("USER", "LOGNAME", "SUDO_USER")}
    with suppress(KeyError):
        account = pwd.getpwuid(os.geteuid())
        users.add(account.pw_name)
        folders.setdefault(account.pw_dir, "~")
    named = [re.escape(name) for name in sorted(filter(None, users)) if name != "root"]
    own = [(re.compile(rf"(?<=/)(?:{'|'.join(named)}){_END}"), "$USER")] if named else []
    return (*_patterns(folders), (_ANYONE, "~"), *own)
