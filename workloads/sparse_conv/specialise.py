"""The specialisation pass: a template's PTX and the weights in, PTX with only the non-zero multiply-adds out.

The template was compiled with weights that are random, all distinct and none zero, so that an immediate tells which
weight an instruction multiplies by, wherever the compiler has put it. One linear pass; two maps: template value to
weight, and register to the operand that it equals. A multiply-add by a weight of zero is deleted, and its destination
equals its addend from then on. That holds only if nothing defines the addend again, which is counted beforehand: the
compiler does put zeros that sums start from into registers that it uses again later.

Today's compiler does not put the literal into the multiply-add: it moves it into a register first. The pass follows
that register's only definition, deletes the move, and writes the immediate form, which the assembler takes as well.
Where weights are to come from constant memory, the move becomes a load from a table of the non-zero ones, which the
assembler makes an operand of the multiply-add.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfport.workload import CompileError

from .ptx import REGISTER, Instruction, Program, bits, immediate, immediate_bits

MULTIPLY_ADD, MULTIPLY = "fma.rn.f32", ("mul.rn.f32", "mul.f32")
MOVES = ("mov.f32", "mov.b32")
STORES = ("st.global", "st.shared")
#: Operands of the instructions that the pass looks into.
OPERANDS = {MULTIPLY_ADD: 4, **dict.fromkeys(MULTIPLY, 3), **dict.fromkeys(MOVES, 2)}
ZERO = immediate(0.0)
TABLE = "constant_weights"
TABLE_WORDS = 64 * 1024 // 4
LABEL = re.compile(r"\s*([$\w]+):")


@dataclass(frozen=True)
class Specialised:
    """What the pass made.

    Attributes
    ----------
    text : str
        PTX.
    instructions : int
        Instructions of the template.
    deleted : int
        Of those, how many are gone, moves of literals included.
    multiply_adds_deleted : int
        Multiply-adds among them.
    """

    text: str
    instructions: int
    deleted: int
    multiply_adds_deleted: int


def template_values(count: int, seed: int) -> np.ndarray:
    """Return ``count`` random values in (1, 2), no two of them alike, float32.

    Raises
    ------
    CompileError
        If FP32 has not so many.
    """
    patterns = 1 << 23
    if count >= patterns:
        raise CompileError(f"a template of {count} weights: only {patterns - 1} values between 1 and 2 differ in FP32")
    chosen = np.random.default_rng(seed).choice(patterns - 1, count, replace=False) + 1
    return (chosen.astype(np.uint32) | np.uint32(0x3F800000)).view(np.float32)


def value_map(values: np.ndarray, weights: np.ndarray) -> dict[int, float]:
    """Map the bits of each template value to the weight at its place.

    Raises
    ------
    CompileError
        For a template value that occurs twice or is zero, a weight that is not finite, or different numbers of them.
    """
    if values.size != weights.size:
        raise CompileError(f"{values.size} template values for {weights.size} weights")
    if not np.isfinite(weights).all():
        raise CompileError("weights must be finite")
    weight_of = dict(
        zip(values.astype(np.float32).view(np.uint32).reshape(-1).tolist(), weights.reshape(-1).tolist(), strict=True)
    )
    if len(weight_of) != values.size:
        raise CompileError(f"template values must be distinct: {values.size} values, {len(weight_of)} different ones")
    if bits(0.0) in weight_of or bits(-0.0) in weight_of:
        raise CompileError("a template value is zero")
    return weight_of


def specialise(template: Program, values: Mapping[int, float], in_constants: bool = False) -> Specialised:
    """Put weights into a template, which is left as it is: the next slice of filters takes it, too.

    Parameters
    ----------
    template : Program
        PTX of straight-line multiply-adds; loads, barriers and guarded stores around them.
    values : mapping
        Of `value_map`.
    in_constants : bool
        Weights are read from constant memory in place of immediates.

    Raises
    ------
    CompileError
        Naming line and instruction, for anything that touches a sum or a template value and is not understood; and
        where template values are missing from the text.
    """
    return _Pass(template, values, in_constants).run()


class _Pass:
    def __init__(self, template: Program, values: Mapping[int, float], in_constants: bool) -> None:
        self.template, self.values = template, values
        self.table = [literal for literal, weight in values.items() if weight] if in_constants else []
        self.places = {literal: 4 * i for i, literal in enumerate(self.table)}
        self.definitions = template.definitions
        self.literals: dict[str, int] = {}  # register: bits of the template value in it
        self.equals: dict[str, str] = {}  # register: the operand that it equals
        self.sums: set[str] = set()  # destinations of what was kept
        self.known: dict[str, str] = {}  # register: the other immediate that it holds at this point
        self.seen: set[int] = set()
        self.instructions = self.deleted = self.multiply_adds_deleted = 0

    def run(self) -> Specialised:
        labels: set[str] = set()
        out: list[str] = []
        for item in self.template.items:
            if isinstance(item, str):
                out.append(item)
                if label := LABEL.match(item):
                    labels.add(label[1])
                    # Paths meet here: what holds is what nothing else defines.
                    self.known = {name: held for name, held in self.known.items() if self.definitions.get(name) == 1}
                continue
            self.instructions += 1
            if item.opcode.startswith("bra") and not labels.isdisjoint(item.operands):
                raise self._refusal(item, "branches backwards: the template must be straight")
            line = self._instruction(item)
            if line is None:
                self.deleted += 1
            else:
                out.append(line)
        if missing := len(self.values) - len(self.seen):
            raise CompileError(f"{missing} of {len(self.values)} template values do not occur in the PTX")
        if self.table:
            entry = next(i for i, line in enumerate(out) if line.startswith(".visible"))
            out.insert(entry, self._declaration())
        return Specialised("\n".join(out), self.instructions, self.deleted, self.multiply_adds_deleted)

    def _declaration(self) -> str:
        """The table in constant memory."""
        if len(self.table) > TABLE_WORDS:
            raise CompileError(f"{len(self.table)} weights, a program has {TABLE_WORDS} words of constants")
        weights = ", ".join(immediate(self.values[literal]) for literal in self.table)
        return f".const .align 4 .f32 {TABLE}[{len(self.table)}] = {{{weights}}};"

    def _instruction(self, item: Instruction) -> str | None:
        """The instruction's new text, or None where it goes."""
        opcode, operands = item.opcode, item.operands
        expected = OPERANDS.get(opcode, 2 if opcode.startswith(STORES) else len(operands))
        if len(operands) != expected:
            raise self._refusal(item, f"has {len(operands)} operands, not {expected}")
        if opcode == MULTIPLY_ADD or opcode in MULTIPLY:
            factors = self._template_value(item)
            if factors is not None:
                return self._product(item, factors, self._addend(item) if opcode == MULTIPLY_ADD else None)
        elif opcode in MOVES and not item.guard:
            target, source = operands
            literal = self._template_bits(source)
            if literal is not None:
                self._only_definition(item, target)
                self.literals[target] = literal
                if literal in self.places:
                    return f"\tld.const.f32 \t{target}, [{TABLE}+{self.places[literal]}];"
                return None
            if source in self.sums or source in self.equals:
                self._only_definition(item, target)
                self.sums.add(target)
                return str(replace(item, operands=[target, self.equals.get(source, source)]))
            if immediate_bits(source) is not None:
                line = self._other(item)
                self.known[target] = source
                return line
        elif opcode.startswith(STORES):
            return self._store(item)
        return self._other(item)

    def _template_bits(self, operand: str) -> int | None:
        literal = immediate_bits(operand)
        return literal if literal in self.values else None

    def _template_value(self, item: Instruction) -> tuple[str, float, str] | None:
        """The factor that is no weight, the weight, and its operand; None where neither factor is of the template."""
        left, right = item.operands[1], item.operands[2]
        for operand, factor in ((right, left), (left, right)):
            literal = self.literals.get(operand)
            if literal is None:
                literal = self._template_bits(operand)
            if literal is not None:
                if item.guard:
                    raise self._refusal(item, "multiplies under a guard")
                if self._touched(factor) or self._template_bits(factor) is not None:
                    raise self._refusal(item, "multiplies a sum or a template value")
                if literal in self.places and operand not in self.literals:
                    raise self._refusal(item, "holds a template value that is to come from constant memory")
                self.seen.add(literal)
                weight = self.values[literal]
                return factor, weight, operand if literal in self.places else immediate(weight)
        return None

    def _addend(self, item: Instruction) -> str:
        """What a multiply-add adds to, valid from here to the end of the text."""
        addend = item.operands[3]
        if addend in self.literals or self._template_bits(addend) is not None:
            raise self._refusal(item, "adds a template value")
        addend = self.equals.get(addend, self.known.get(addend, addend))
        if self.definitions.get(addend, 0) > 1:
            raise self._refusal(item, f"adds {addend}, which is defined more than once")
        return addend

    def _product(self, item: Instruction, known: tuple[str, float, str], addend: str | None) -> str | None:
        factor, weight, operand = known
        target = item.operands[0]
        self._only_definition(item, target)
        if weight == 0:
            self.equals[target] = ZERO if addend is None else addend
            self.multiply_adds_deleted += 1
            return None
        self.sums.add(target)
        if addend is None:
            return f"\t{item.opcode} \t{target}, {factor}, {operand};"
        return f"\t{MULTIPLY_ADD} \t{target}, {factor}, {operand}, {addend};"

    def _store(self, item: Instruction) -> str:
        address, value = item.operands
        if any(register in self.literals for register in item.registers()) or self._template_bits(value) is not None:
            raise self._refusal(item, "stores a template value")
        if any(self._touched(register) for register in REGISTER.findall(f"{item.guard} {address}")):
            raise self._refusal(item, "takes a sum for an address")
        if value.startswith("{"):
            parts = [part.strip() for part in value[1:-1].split(",")]
            value = "{" + ", ".join(self.equals.get(part, part) for part in parts) + "}"
        else:
            value = self.equals.get(value, value)
        return str(replace(item, operands=[address, value]))

    def _other(self, item: Instruction) -> str:
        for register in item.registers():
            if self._touched(register):
                raise self._refusal(item, f"touches {register}, which is a sum or a template value")
        if any(self._template_bits(operand) is not None for operand in item.operands):
            raise self._refusal(item, "uses a template value")
        for register in item.defined():
            self.known.pop(register, None)
        return str(item)

    def _touched(self, register: str) -> bool:
        return register in self.sums or register in self.equals or register in self.literals

    def _only_definition(self, item: Instruction, register: str) -> None:
        count = self.definitions.get(register, 0)
        if count != 1:
            raise self._refusal(
                item, f"defines {register}, which is {'defined more than once' if count else 'no register'}"
            )

    @staticmethod
    def _refusal(item: Instruction, why: str) -> CompileError:
        return CompileError(f"the pass refuses line {item.line} of the PTX, `{str(item).strip()}`: it {why}")
