"""A small model of PTX text: instructions with guard, opcode and operands; everything else is kept as it stands."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

REGISTER = re.compile(r"%[a-z]+\d+")
NO_RESULT = ("st.", "bra", "bar.", "red.", "cp.", "ret")
_IMMEDIATE = re.compile(r"0[fF]([0-9A-Fa-f]{8})")
_STATEMENT = re.compile(r"\s*(?:(@!?%\w+)\s+)?([a-z][\w.:]*)\s*(.*);\s*$")


@dataclass(slots=True)
class Instruction:
    """One instruction.

    Attributes
    ----------
    line : int
        Line of the text, from 1.
    guard : str
        Predicate with its ``@``, or empty.
    opcode : str
        With all its suffixes, ``fma.rn.f32``.
    operands : list of str
        At the top level: an address ``[%rd1+4]`` or a vector ``{%f1, %f2}`` is one.
    """

    line: int
    guard: str
    opcode: str
    operands: list[str]

    def __str__(self) -> str:
        guard = f"{self.guard} " if self.guard else ""
        return f"\t{guard}{self.opcode} \t{', '.join(self.operands)};"

    def registers(self) -> list[str]:
        """Every register that it names, its guard's among them."""
        return REGISTER.findall(f"{self.guard} {' '.join(self.operands)}")

    def defined(self) -> list[str]:
        """The registers that it defines: its first operand's, unless it stores or branches."""
        if self.opcode.startswith(NO_RESULT) or not self.operands:
            return []
        first = self.operands[0]
        return [first] if first.startswith("%") else REGISTER.findall(first)


@dataclass(frozen=True)
class Program:
    """A PTX text that was read once.

    Attributes
    ----------
    items : list of Instruction or str
        Instructions, and the text's other lines as they stand.
    definitions : dict
        How often the text defines each register.
    """

    items: list[Instruction | str]
    definitions: dict[str, int]

    @classmethod
    def of(cls, text: str) -> Program:
        """Read a text."""
        items = list(parsed(text))
        defined = Counter(name for item in items if isinstance(item, Instruction) for name in item.defined())
        return cls(items, dict(defined))


class Registers:
    """New registers of a PTX text that is being written: predicates, integers of 32 and 64 bits, FP32 values.

    Attributes
    ----------
    floats : int
        FP32 registers in use. Code of paths that do not meet may count them anew and leave the most of them here.
    """

    def __init__(self) -> None:
        self.predicates = self.integers = self.longs = self.floats = 0

    def p(self) -> str:
        """Return a new predicate."""
        self.predicates += 1
        return f"%p{self.predicates}"

    def r(self) -> str:
        """Return a new integer of 32 bits."""
        self.integers += 1
        return f"%r{self.integers}"

    def rd(self) -> str:
        """Return a new integer of 64 bits."""
        self.longs += 1
        return f"%rd{self.longs}"

    def f(self) -> str:
        """Return a new FP32 value."""
        self.floats += 1
        return f"%f{self.floats}"

    def declarations(self) -> Iterator[str]:
        """Yield the lines that declare all of them."""
        yield f"\t.reg .pred \t%p<{self.predicates + 1}>;"
        yield f"\t.reg .b32 \t%r<{self.integers + 1}>;"
        yield f"\t.reg .b64 \t%rd<{self.longs + 1}>;"
        yield f"\t.reg .f32 \t%f<{self.floats + 1}>;"


def parsed(text: str) -> Iterator[Instruction | str]:
    """Yield the instructions of a PTX text, and its other lines (directives, labels, comments) as they stand."""
    for number, line in enumerate(text.split("\n"), 1):
        # Without the first test, what does not match is tried at every length of the opcode: quadratic in the line.
        statement = _STATEMENT.match(line) if line.rstrip().endswith(";") else None
        if statement is None:
            yield line
        else:
            guard, opcode, operands = statement.groups()
            yield Instruction(number, guard or "", opcode, split_operands(operands))


def split_operands(text: str) -> list[str]:
    """Split at commas outside of brackets and braces."""
    if not text:
        return []
    if "{" not in text and "[" not in text and "(" not in text:
        return text.split(", ")
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def immediate(value: float) -> str:
    """A FP32 value as PTX writes it, by its bits."""
    return f"0f{bits(value):08X}"


def bits(value: float) -> int:
    """The bits of a FP32 value."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def immediate_bits(operand: str) -> int | None:
    """The bits of a FP32 immediate; None for anything else."""
    digits = _IMMEDIATE.fullmatch(operand)
    return int(digits[1], 16) if digits else None
