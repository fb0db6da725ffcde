"""Mutations that keep the outer form of a file, so that they reach what lies behind it."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

import yaml

#: What stands in place of a value: of other types, without end, beyond every limit.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 255, 2**31, 2**63, 2**64, 10**30, 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), "", "x", "nan", "1", "../x", "/x", "a\nb", "\x1b[31m", "<b>", "\ud800", "ok", "cpu",
    [], {}, [[]], [None], {"": None}, [0] * 50, "y" * 5000,
)  # fmt: skip

_DEEP = "@deep@"  # stands for lists inside each other, more of them than an encoder writes

_NESTED = b"[" * 30

# Those in C, where PyYAML was built with them.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Bytes = Callable[[bytes, int], bytes]


def mutated(form: str, content: bytes, rng: random.Random, mutate: Bytes, most: int) -> bytes:
    """Return a changed content of at most ``most`` bytes.

    Parameters
    ----------
    form : str
        See `fuzz_targets.Target`.
    mutate : callable
        Mutates plain bytes, to a size.
    """
    if form != "bytes" and rng.random() < 0.7:
        try:
            made = _FORMS[form](content, rng, mutate)
        except Exception:  # a content that lost its form already
            made = b""
        if 0 < len(made) <= most:
            return made
    return mutate(content, most)


def _json(content: bytes, rng: random.Random, _: Bytes) -> bytes:
    return _deepened(json.dumps(_changed(json.loads(content), rng)), rng)


def _lines(content: bytes, rng: random.Random, _: Bytes) -> bytes:
    lines = content.rstrip(b"\n").split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = _json(lines[at], rng, _)
    return b"\n".join(lines) + b"\n"


def _yaml(content: bytes, rng: random.Random, _: Bytes) -> bytes:
    if _NESTED in content:  # libyaml's composer has no limit but the stack
        raise ValueError("nested too deeply to be changed")
    changed = _changed(yaml.load(content, _LOADER), rng)
    return _deepened(yaml.dump(changed, Dumper=_DUMPER, sort_keys=False), rng)


def _deepened(text: str, rng: random.Random) -> bytes:
    depth = rng.choice((30, 300, 3000, 30_000))
    for mark in (f'"{_DEEP}"', f"'{_DEEP}'"):
        text = text.replace(mark, "[" * depth + "]" * depth)
    return text.encode(errors="surrogatepass")


def _zip(content: bytes, rng: random.Random, mutate: Bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    at = rng.randrange(len(members))
    name, held = members[at]
    if rng.random() < 0.1:
        del members[at]
    else:
        members[at] = (name, mutate(held, len(held) + 100))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, held in members:
            archive.writestr(zipfile.ZipInfo(name), held)
    return made.getvalue()


def _words(content: bytes, rng: random.Random, _: Bytes) -> bytes:
    """One word becomes another of the file, or an odd one, is left out or given twice."""
    words = [match.span() for match in re.finditer(rb"[\w.$%+-]+", content)]
    begin, end = rng.choice(words)
    at = rng.choice(words)
    odd = str(rng.choice(ODD[:-6])).encode(errors="surrogatepass")
    word = rng.choice((content[slice(*at)], odd, odd, b"", content[begin:end] + b" " + content[begin:end]))
    return content[:begin] + word + content[end:]


_FORMS = {"json": _json, "lines": _lines, "yaml": _yaml, "zip": _zip, "words": _words}


def _changed(value: Any, rng: random.Random) -> Any:
    """Return a value in which one place, drawn evenly, holds something else."""
    holder = [value]
    places = list(_places(holder))
    container, key = places[rng.randrange(len(places))]
    choice = rng.random()
    if choice < 0.15 and container is not holder:
        del container[key]
    elif choice < 0.25 and isinstance(container, list):
        container.insert(key, container[key])
    elif choice < 0.35 and isinstance(container, dict):
        container[f"{key}x" if rng.random() < 0.5 else str(rng.choice(ODD))] = container[key]
    elif choice < 0.5:
        other, there = places[rng.randrange(len(places))]
        container[key] = json.loads(json.dumps(other[there])) if _small(other[there]) else None
    elif choice < 0.6 and isinstance(container[key], int | float) and not isinstance(container[key], bool):
        container[key] = container[key] * rng.choice((-1, 0, 0.1, 10, 1e300))
    elif choice < 0.62:
        container[key] = _DEEP
    else:
        container[key] = rng.choice(ODD)
    return holder[0]


def _small(value: Any) -> bool:
    return len(repr(value)) < 2000


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with the index or key of each entry."""
    places, open_ = [], [root]
    while open_:
        container = open_.pop()
        for key in container if isinstance(container, dict) else range(len(container)):
            places.append((container, key))
            if isinstance(container[key], dict | list):
                open_.append(container[key])
    return places
