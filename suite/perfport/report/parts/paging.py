"""Pages of markdown that are too long for a reader and for git hosts, as several files."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Lines of a file, head and foot aside.
MOST_LINES = 1900
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")


def split(content: str, most: int = MOST_LINES) -> list[str]:
    """Return a page as pages of at most ``most`` lines each, cut between blocks; of long tables between rows.

    Nothing is cut that is folded or fenced, however long: such blocks are short by themselves.
    """
    if content.count("\n") < most:
        return [content]
    pages: list[list[str]] = [[]]
    lines = 0
    for block in (piece for whole in _blocks(content) for piece in _rows(whole, most)):
        length = block.count("\n") + 2
        if lines and lines + length > most:
            pages.append([])
            lines = 0
        pages[-1].append(block)
        lines += length
    return ["\n\n".join(page) for page in pages]


def _blocks(content: str) -> Iterator[str]:
    """Yield the blocks of a page; a fold or a fence is one block with all that it holds."""
    held: list[str] = []
    depth, fence = 0, ""
    for block in content.split("\n\n"):
        held.append(block)
        for line in block.split("\n"):
            if found := _FENCE.match(line):
                fence = "" if fence and line.strip().startswith(fence) else fence or found[1]
            elif not fence:
                depth += (line.strip() == "<details>") - (line.strip() == "</details>")
        if depth <= 0 and not fence:
            yield "\n\n".join(held)
            held = []
    if held:
        yield "\n\n".join(held)


def _rows(block: str, most: int) -> Iterator[str]:
    """Yield a block, or the parts of a table that is longer than a page, each with the table's head."""
    lines = block.split("\n")
    if len(lines) <= most or not all(line.startswith("|") for line in lines):
        yield block
        return
    head, rows = lines[:2], lines[2:]
    step = most - len(head) - 2
    for start in range(0, len(rows), step):
        yield "\n".join([*head, *rows[start : start + step]])
