"""Shorten the paths in stored results and reports, by the rule of docs/records.md ("Paths").

    tox -e paths -- results/committed reports/committed --folder '/opt/v=$VENV'

What a run stores now is written so. This is for results from before, or of another machine, whose folders ``--folder``
names. Only paths change: of JSON, the texts that `perfport` itself would have shortened; of pages, paths in any line.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perfport.machine.paths import shorten, shortened

#: Texts of results that hold paths: by what leads to them from the top of a JSON object, `*` for any key.
PLACES = (
    ("command",), ("devices", "*", "runtime"), ("broken_devices", "*"), ("report",), ("tool", "reason"),
    ("device", "runtime"), ("failure",), ("options",), ("reason",),
)  # fmt: skip


def changes(content: Any, folders: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each text of a JSON object that is to be another, with that."""
    for place in PLACES:
        values = [content]
        for key in place:
            inner = [value for value in values if isinstance(value, dict)]
            values = [one for value in inner for name, one in value.items() if key in ("*", name)]
        yield from ((text, new) for value in values for text in texts(value) if (new := shorten(text, folders)) != text)


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def rewritten(path: Path, folders: Mapping[str, str]) -> str:
    """Return the content of a file with its paths shortened, and all else byte for byte."""
    text = path.read_text()
    if path.suffix == ".md":
        return shortened(text, folders)
    parts = text.splitlines(keepends=True) if path.suffix == ".jsonl" else [text]
    for number, part in enumerate(parts):
        for old, new in changes(json.loads(part), folders):
            for encoded in (True, False):  # as either of the two writers of JSON has it
                parts[number] = parts[number].replace(
                    json.dumps(old, ensure_ascii=encoded), json.dumps(new, ensure_ascii=encoded)
                )
    return "".join(parts)


def main() -> None:
    """Rewrite files in place, and say which."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, help="files, or folders with *.json, *.jsonl and *.md in them")
    parser.add_argument("--folder", action="append", default=[], metavar="FOLDER=NAME", help="of another machine")
    given = parser.parse_args()
    folders = dict(folder.rsplit("=", 1) for folder in given.folder)
    for place in given.places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in (".json", ".jsonl", ".md") and (new := rewritten(path, folders)) != path.read_text():
                path.write_text(new)
                print(path)


if __name__ == "__main__":
    main()
