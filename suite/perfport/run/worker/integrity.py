"""What times and verifies is the harness's own: code of it that a variant replaces is seen, and put back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from ...model.errors import RefusedError

#: Whose functions decide what is measured and what is right, beside the harness and the workloads.
FOREIGN = ("hashlib", "numpy", "numpy.linalg", "pyopencl", "secrets", "time")


class Integrity:
    """A snapshot of the functions, classes and methods that a run rests on, and objects whose methods stay their own.

    No sandbox: a variant runs in the process that judges it, and what changes data in place of code is not seen.
    """

    def __init__(self, *objects: Any) -> None:
        self._objects = [(each, set(_shadowing(each))) for each in objects]
        self._code = [(vars(owner), name, value, owner) for owner, name, value in _members()]

    def restore(self, *more: Any) -> None:
        """Put back what was replaced since the snapshot; ``more``: further objects, of one variant.

        Raises
        ------
        RefusedError
            Afterwards, with the names of what was replaced.
        """
        replaced = []
        for members, name, value, owner in self._code:
            if members.get(name) is not value:
                setattr(owner, name, value)
                replaced.append(f"{owner.__name__}.{name}")
        for each, before in (*self._objects, *((each, set[str]()) for each in more)):
            for name in set(_shadowing(each)) - before:
                del vars(each)[name]
                replaced.append(f"{type(each).__name__}.{name}")
        if replaced:
            raise RefusedError(f"refused: {', '.join(sorted(replaced))} was replaced")


def _members() -> Iterator[tuple[Any, str, Any]]:
    """Yield module or class, name and value of all code of the harness, of the workloads and of `FOREIGN`."""
    modules = [module for name, module in list(sys.modules.items()) if _judges(name) and isinstance(module, ModuleType)]
    for module in modules:
        for name, value in list(vars(module).items()):
            if not _is_code(value):
                continue
            yield module, name, value
            if isinstance(value, type) and value.__module__ == module.__name__ and _judges(value.__module__):
                yield from (
                    (value, member, code) for member, code in list(vars(value).items())
                    if _is_code(code)
                )  # fmt: skip


def _is_code(value: Any) -> bool:
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def _judges(name: str) -> bool:
    """Whether a module has code that a run rests on."""
    return name in FOREIGN or name.partition(".")[0] == "perfport"


def _shadowing(each: Any) -> list[str]:
    """Names of an object's own attributes that hide methods of its class."""
    return [
        name for name, value in vars(each).items()
        if callable(value) and isinstance(getattr(type(each), name, None), FunctionType)
    ]  # fmt: skip
