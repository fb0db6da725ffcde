"""The one way to read YAML: experiments, device profiles, published figures, claims, values of arguments.

YAML itself lets the last of two equal keys win in silence; here each key counts once.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from .errors import UsageError


class _Loader(yaml.SafeLoader):
    """Refuses a mapping with two equal keys. Keys that ``<<`` merges in may be given again, as YAML has it."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line, same = key.start_mark.line + 1, (key.tag, key.value)
                if same in lines:
                    raise _Twice(line, f"key {key.value!r} is given twice, first on line {lines[same]}")
                lines[same] = line
        return node


class _Twice(Exception):
    """A key that is given twice, and on which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read(file: Path | Traversable, where: str | None = None) -> Any:
    """Return the content of a YAML file.

    Parameters
    ----------
    file : Path or Traversable
    where : str, optional
        How messages call it; default: its path.

    Raises
    ------
    UsageError
        If it cannot be read, is not YAML, or gives a key twice; the text names the file and, where known, the line.
    """
    where = where or str(file)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{where}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: not valid YAML ({error})") from None
    return parse(text, where)


def parse(text: str, where: str) -> Any:
    """Return the content of a YAML text. Raises as `read` does; ``where`` names the text in messages."""
    try:
        return yaml.load(text, _Loader)
    except _Twice as error:
        raise UsageError(f"{where}:{error.line}: {error}; expected each key once") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no such date
        raise UsageError(f"{where}: not valid YAML ({' '.join(str(error).split())})") from None
