"""What comes from files: the base of its models, the one way to read YAML, and what is said of bad input.

YAML itself lets the last of two equal keys win in silence; here each key counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .errors import UsageError, nearest

Form = TypeVar("Form")


class Model(BaseModel):
    """Base of what is read from files: a key that the model does not have is an error."""

    model_config = ConfigDict(extra="forbid")


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


def validate(form: type[Form], content: Any, where: str) -> Form:
    """Return content as a model, or as a list of models.

    Raises
    ------
    UsageError
        With a line for each fault: ``where``, key path, what is allowed, what is given.
    """
    if isinstance(form, type) and issubclass(form, BaseModel) and not isinstance(content, dict):
        raise UsageError(f"{where}: expected a mapping with the keys {', '.join(form.model_fields)}")
    try:
        return TypeAdapter(form).validate_python(content)
    except ValidationError as error:
        raise UsageError("\n".join(f"{where}: {line}" for line in explain(error, form).splitlines())) from None


def explain(error: ValidationError, form: Any) -> str:
    """Return a validation error as text: one line per fault with key path, what is allowed and what is given."""
    return "\n".join(_explain(fault, form) for fault in error.errors())


def key_path(location: tuple[int | str, ...]) -> str:
    """Return a location as ``experiments[0].variants``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _explain(fault: Any, form: Any) -> str:
    location = tuple(part for part in fault["loc"] if part != "[key]")  # a key of a mapping that is itself at fault
    where = f"{key_path(location)}: " if location else ""
    if fault["type"] == "extra_forbidden":
        allowed = list(_model_at(form, location[:-1]).model_fields)
        return f"{where}unknown key{nearest(str(location[-1]), allowed)}; allowed: {', '.join(allowed)}"
    if fault["type"] == "value_error":  # of a validator of the suite, which says itself what is given
        return f"{where}{fault['ctx']['error']}"
    if fault["type"] == "missing":
        return f"{where}required key is missing"
    hint = " (YAML reads 1e9 as text: write 1.0e+9)" if fault["type"] == "float_type" else ""
    return f"{where}{fault['msg'][0].lower()}{fault['msg'][1:]}, got {fault['input']!r}{hint}"


def _model_at(form: Any, location: tuple[int | str, ...]) -> type[BaseModel]:
    """Follow a key path to the model that it leads into."""
    model: type[BaseModel] = next(_models_in(form))
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
