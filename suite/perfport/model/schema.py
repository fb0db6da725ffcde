"""What comes from files: the base of its models, the one way to read YAML, and what is said of bad input.

YAML itself lets the last of two equal keys win in silence; here each key counts once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from . import files
from .errors import UsageError, cut, nearest, shown

Form = TypeVar("Form")
#: Faults of one content that are told.
MOST_FAULTS = 20
#: Characters of what a validator says, which may name all that is allowed.
MOST_TOLD = 2000
#: PyYAML reads some hundred kilobytes in a second.
MOST_YAML_BYTES = 4 * files.MIB
#: Of a YAML text; the largest of the suite's own have some thousand values on ten levels.
MOST_NODES, MOST_LEVELS = 200_000, 50


class Model(BaseModel):
    """Base of what is read from files: a key that the model does not have is an error."""

    model_config = ConfigDict(extra="forbid")


class Finite(Model):
    """One whose numbers are neither infinite nor NaN, which YAML can say."""

    model_config = ConfigDict(allow_inf_nan=False)


class _Loader(yaml.SafeLoader):
    """Refuses what is no sane file, before anything is built of it.

    A mapping with two equal keys (those that ``<<`` merges in may be given again, as YAML has it); and more nodes or
    levels than any file of the suite has, aliases counted as what they stand for: ten lines can stand for a billion.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._level = 0
        self._sizes: dict[yaml.Node, int] = {}  # of what is composed: nodes, with all that aliases stand for

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        event = self.peek_event()
        self._level += 1
        if self._level > MOST_LEVELS:
            raise _RefusedError(event, f"nested too deeply; expected at most {MOST_LEVELS} levels")
        node = super().compose_node(parent, index)
        assert node is not None  # there is an event
        self._level -= 1
        if isinstance(event, yaml.AliasEvent):
            if node not in self._sizes:
                raise _RefusedError(event, f"alias {event.anchor!r} stands for what it is part of")
        else:
            self._sizes[node] = 1 + sum(self._sizes[part] for part in _parts(node))
            if self._sizes[node] > MOST_NODES:
                size = f"{self._sizes[node]:,} values, with what aliases stand for"
                raise _RefusedError(event, f"expected at most {MOST_NODES:,} values, got {size}")
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        try:
            node.value.encode()
        except UnicodeEncodeError:  # "\ud800", half of a character, which no text can hold
            raise _RefusedError(node, f"{shown(node.value)} is no text") from None
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line, same = key.start_mark.line + 1, (key.tag, key.value)
                if same in lines:
                    first = f"first on line {lines[same]}; expected each key once"
                    raise _RefusedError(key, f"key {shown(key.value)} is given twice, {first}")
                lines[same] = line
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError) as error:  # !!int '', !!bool x, 31st of June
            tag = node.tag.rpartition(":")[2]
            raise _RefusedError(node, f"{shown(node.value)} is no value of {tag!r} ({cut(error)})") from None


def _parts(node: yaml.Node) -> Iterable[yaml.Node]:
    """The nodes within a node."""
    if isinstance(node, yaml.MappingNode):
        return itertools.chain.from_iterable(node.value)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


class _RefusedError(Exception):
    """What is refused of a YAML text, and on which line."""

    def __init__(self, at: yaml.Node | yaml.Event, message: str) -> None:
        super().__init__(message)
        self.line = at.start_mark.line + 1 if at.start_mark else 1


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
        If it cannot be read, is not YAML, gives a key twice, or is larger or deeper than any file of the suite; the
        text names the file and, where known, the line.
    """
    return parse(files.read_text(file, MOST_YAML_BYTES), where or str(file))


def parse(text: str, where: str) -> Any:
    """Return the content of a YAML text. Raises as `read` does; ``where`` names the text in messages."""
    try:
        return yaml.load(text, _Loader)
    except _RefusedError as error:
        raise UsageError(f"{where}:{error.line}: {error}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{where}: not valid YAML ({cut(error)})") from None


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
    """Return a validation error as text: one line per fault with key path, what is allowed and what is given.

    Of more than `MOST_FAULTS` the first, and how many there are.
    """
    more = error.error_count() - MOST_FAULTS
    lines = [_explain(fault, form) for fault in error.errors(include_url=False)[:MOST_FAULTS]]
    return "\n".join([*lines, f"and {more:,} faults more"] if more > 0 else lines)


def key_path(location: tuple[int | str, ...]) -> str:
    """Return a location as ``experiments[0].variants``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{cut(part)}" if text else cut(part)
    return text


def _explain(fault: Any, form: Any) -> str:
    location = tuple(part for part in fault["loc"] if part != "[key]")  # a key of a mapping that is itself at fault
    where = f"{key_path(location)}: " if location else ""
    if fault["type"] == "extra_forbidden":
        allowed = [field.alias or name for name, field in _model_at(form, location[:-1]).model_fields.items()]
        return f"{where}unknown key{nearest(str(location[-1]), allowed)}; allowed: {', '.join(allowed)}"
    if fault["type"] == "value_error":  # of a validator of the suite, which says itself what is given
        return f"{where}{cut(fault['ctx']['error'], MOST_TOLD)}"
    if fault["type"] == "missing":
        return f"{where}required key is missing"
    hint = " (YAML reads 1e9 as text: write 1.0e+9)" if fault["type"] == "float_type" else ""
    return f"{where}{fault['msg'][0].lower()}{fault['msg'][1:]}, got {shown(fault['input'])}{hint}"


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
