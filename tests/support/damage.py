"""Kinds of damage to a file, drawn by a seed: what disks, editors, copies, other tools and strangers make of one."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

BOMB = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 10)) for name in b"bcdefghi"
)
OTHER = b'{"version": "5.1", "schema_version": "otlp", "resourceSpans": [{"scopeSpans": [1, 2, 3]}]}\n'
Change = Callable[[Any, random.Random], Any]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value within a value."""
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in entries:
        yield (*path, key)
        yield from _places(part, (*path, key))


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def _put(value: Callable[[random.Random], Any]) -> Change:
    """Put a value in a random place."""

    def change(content: Any, rng: random.Random) -> Any:
        if not (places := list(_places(content))):
            return value(rng)
        path = rng.choice(places)
        _holder(content, path)[path[-1]] = value(rng)
        return content

    return change


def _without(content: Any, rng: random.Random) -> Any:
    places = [path for path in _places(content) if isinstance(_holder(content, path), dict)]
    if places:
        path = rng.choice(places)
        del _holder(content, path)[path[-1]]
    return content


def _numbers(value: float) -> Change:
    """Put a number in place of each number."""

    def replaced(content: Any, rng: random.Random) -> Any:
        if isinstance(content, dict):
            return {key: replaced(part, rng) for key, part in content.items()}
        if isinstance(content, list):
            return [replaced(part, rng) for part in content]
        return value if type(content) in (int, float) and content != 2 else content  # 2: the version of records

    return replaced


def _version(number: int) -> Change:
    def change(content: Any, rng: random.Random) -> Any:
        names = ("schema_version", "perfport_history", "version")
        name = next((name for name in names if name in content), names[0]) if isinstance(content, dict) else ""
        return {**content, name: number} if name else [{names[0]: number}]

    return change


def _wrong_type(rng: random.Random) -> Any:
    return rng.choice([None, True, -1, 0.5, "text", "", [], {}, [[]], {"a": [1]}, "\x1b[31m", 10**20])


CHANGES: dict[str, Change] = {
    "wrong type": _put(_wrong_type),
    "missing key": _without,
    "huge number": _put(lambda rng: rng.choice([1e308, 10**400, -(10**400), 1e300])),
    "NaN": _numbers(float("nan")),
    "Infinity": _numbers(float("inf")),
    "foreign version": _version(-7),
    "future version": _version(99),
}


def _changed(path: Path, change: Change, rng: random.Random) -> None:
    """Change what a file says, the first line of several that are JSON each."""
    if path.suffix in (".yaml", ".md"):
        content = yaml.safe_load(path.read_text()) if path.suffix == ".yaml" else [path.read_text()]
        path.write_text(yaml.safe_dump(change(content, rng)))
        return
    first, end, rest = path.read_bytes().partition(b"\n") if path.suffix == ".jsonl" else (path.read_bytes(), b"", b"")
    path.write_bytes(json.dumps(change(json.loads(first), rng)).encode() + end + rest)


def _bytes(change: Callable[[bytes, random.Random], bytes]) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, rng: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), rng))

    return apply


def _flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(8):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _nulled(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(1, len(content) // 2)
    return content[:at] + bytes(64) + content[at + 64 :]


def _twice(content: bytes, rng: random.Random) -> bytes:
    """Give the first key of each mapping of JSON twice, or each line of YAML."""
    lines = content.splitlines(keepends=True)
    if content.startswith((b"{", b"[")):
        return b"".join(line.replace(b'{"', b'{"a": 1, "a": 2, "', 1) for line in lines)
    return b"".join(line + line for line in lines)


def _long(path: Path, rng: random.Random) -> None:
    """A line of 100 MB, most of it a hole: neither memory nor disk is asked for so much."""
    path.write_bytes(b'{"schema_version": 2, "key": "')
    with path.open("ab") as file:
        file.truncate(100_000_000)


def _in_place(make: Callable[[Path], Any]) -> Callable[[Path, random.Random], None]:
    """Put something else in the place of the file."""

    def apply(path: Path, rng: random.Random) -> None:
        path.unlink()
        make(path)

    return apply


#: What each kind does to a file, which exists.
DAMAGE: dict[str, Callable[[Path, random.Random], None]] = {
    **{
        name: lambda path, rng, change=change: _changed(path, change, rng)  # type: ignore[misc]
        for name, change in CHANGES.items()
    },
    "empty": _bytes(lambda content, rng: b"\n \n\n"),
    "zero length": _bytes(lambda content, rng: b""),
    "truncated": _bytes(lambda content, rng: content[: rng.randrange(1, len(content) - 1)]),
    "bits flipped": _bytes(_flipped),
    "nested deep": _bytes(lambda content, rng: b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"),
    "nested deep, block": _bytes(lambda content, rng: b"".join(b" " * n + b"- \n" for n in range(1500))),
    "line of 100 MB": _long,
    "not UTF-8": _bytes(lambda content, rng: content.replace(b"a", b"\xff\xfe")),
    "byte order mark": _bytes(lambda content, rng: b"\xef\xbb\xbf" + content),
    "CRLF": _bytes(lambda content, rng: content.replace(b"\n", b"\r\n")),
    "NUL bytes": _bytes(_nulled),
    "lines twice": _bytes(lambda content, rng: b"".join(2 * line for line in content.splitlines(True))),
    "keys twice": _bytes(_twice),
    "a folder": _in_place(Path.mkdir),
    "unreadable": lambda path, rng: path.chmod(0),
    "link to itself": _in_place(lambda path: path.symlink_to(path.name)),
    "FIFO": _in_place(os.mkfifo),
    "alias bomb": _bytes(lambda content, rng: BOMB),
    "YAML tags": _bytes(lambda content, rng: b"!!python/object/apply:os.system ['exit 1']\n"),
    "another tool's": _bytes(lambda content, rng: OTHER),
}
#: Kinds that leave nothing to be read of what they are done to: a message has to name it.
HOPELESS = {
    "nested deep", "nested deep, block", "line of 100 MB", "not UTF-8", "a folder", "unreadable", "FIFO", "alias bomb",
    "YAML tags", "another tool's",
}  # fmt: skip
