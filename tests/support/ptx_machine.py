"""A machine that runs PTX on NumPy arrays, work-group by work-group, so that generated code is checked without a GPU.

Warps run one after another, each until its next barrier, so that a missing barrier shows as a wrong or unwritten value.
Asynchronous copies land when their group is waited for. Local memory starts as NaN; addresses
outside of the buffers fail.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfport.workload import round_up
from perfport.workloads.sparse_conv.ptx import Instruction, parsed

WARP = 32
COMPARE = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


class Memory:
    """Buffers of 32-bit words at byte addresses, with a gap between them."""

    def __init__(self) -> None:
        self.buffers: list[tuple[int, np.ndarray]] = []
        self.next = 4096

    def add(self, array: np.ndarray) -> int:
        """Place a buffer; its words are shared with the array, which must be contiguous."""
        base, self.next = self.next, self.next + round_up(array.nbytes, 256) + 4096
        self.buffers.append((base, array.reshape(-1)))
        return base

    def at(self, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The buffer that all addresses are in, and word indices."""
        for base, words in self.buffers:
            if base <= addresses[0] < base + words.nbytes:
                index, rest = np.divmod(addresses - base, 4)
                assert not rest.any() and (index >= 0).all() and (index < words.size).all(), (
                    "address outside of a buffer"
                )
                return words, index
        raise AssertionError(f"address {addresses[0]} is in no buffer")


@dataclass
class Warp:
    """Registers and position of some neighbouring work-items."""

    items: np.ndarray
    registers: dict[str, np.ndarray] = field(default_factory=dict)
    at: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    open: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    groups: list[list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=list)


class Lanes:
    """Those work-items of a warp that run an instruction: their operands and results."""

    def __init__(self, warp: Warp, run: np.ndarray, group: int, groups: int) -> None:
        self.warp, self.run, self.group, self.groups = warp, run, group, groups
        self.count = int(run.sum())
        self.full = bool(run.all())

    def value(self, operand: Any) -> Any:
        """A register's values, a special register's, or an immediate."""
        if isinstance(operand, str):
            if operand == "%nctaid.x":
                return self.groups
            values = self.warp.items if operand == "%tid.x" else self.warp.registers[operand]
            return values if self.full else values[self.run]
        return self.group if operand is GROUP else operand

    def set(self, register: str, result: Any, dtype: Any = None) -> None:
        """Write a register; of work-items that do not run it stays as it is."""
        result = np.broadcast_to(np.asarray(result, dtype), (self.count,))
        if self.full:
            self.warp.registers[register] = result
        else:
            old = self.warp.registers.get(register)
            new = np.zeros(self.run.size, result.dtype) if old is None else old.astype(result.dtype)
            new[self.run] = result
            self.warp.registers[register] = new

    def address(self, operand: tuple[Any, int]) -> np.ndarray:
        """Byte addresses, from a base and an offset."""
        return np.broadcast_to(np.asarray(self.value(operand[0]) + operand[1], np.int64), (self.count,))


class Machine:
    """Runs one kernel of a PTX text.

    Parameters
    ----------
    text : str
    local_bytes : int
        Size of local memory, static and dynamic together.
    """

    def __init__(self, text: str, local_bytes: int = 64 << 10) -> None:
        self.code: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.symbols: dict[str, int] = {}
        self.local_bytes = local_bytes
        self.multiply_adds = 0
        self.constants = np.zeros(0, np.float32)
        for item in parsed(text):
            if isinstance(item, Instruction):
                self.code.append(item)
            elif label := re.match(r"\s*([$\w]+):", item):
                self.labels[label[1]] = len(self.code)
            elif symbol := re.match(r"\s*(?:\.extern\s+)?\.shared\s.*?(\w+)\[\d*\]", item):
                self.symbols[symbol[1]] = 0
            elif table := re.match(r"\.const \.align 4 \.f32 (\w+)\[\d+\] = \{(.*)\};", item):
                self.symbols[table[1]] = 0
                self.constants = np.array([self._operand(value) for value in table[2].split(", ")])
        self.decoded = [self._decode(item) for item in self.code]

    def run(self, memory: Memory, groups: int, items: int, *parameters: int) -> None:
        """Execute every work-group."""
        self.groups = groups
        for group in range(groups):
            self.group, self.memory, self.parameters = group, memory, parameters
            self.local = np.full(self.local_bytes // 4, np.nan, np.float32)
            warps = [Warp(np.arange(first, min(first + WARP, items))) for first in range(0, items, WARP)]
            for warp in warps:
                warp.at = np.zeros(warp.items.size, np.int64)
            runs = [self._run(warp) for warp in warps]
            while runs:
                alive = [run for run in runs if next(run, "done") != "done"]
                assert len(alive) in (0, len(runs)), "a barrier that some warps do not reach"
                runs = alive

    def _run(self, warp: Warp) -> Iterator[str]:
        end = len(self.code)
        while (position := int(warp.at.min())) < end:
            active = warp.at == position
            decoded = self.decoded[position]
            guard = decoded.guard
            run = active
            if guard:
                value = warp.registers[guard.lstrip("@!")]
                run = active & (~value if "!" in guard else value)
            warp.at[active] += 1
            if decoded.kind == "bar":
                assert run.all(), "a barrier inside of a divergent branch"
                yield "barrier"
            elif decoded.kind == "ret":
                warp.at[run] = end
            elif decoded.kind == "bra":
                warp.at[run] = decoded.target
            elif run.any():
                self._execute(decoded, Lanes(warp, run, self.group, self.groups))

    def _execute(self, d: Decoded, lanes: Lanes) -> None:
        o, kind = d.operands, d.kind
        if kind in ("fma", "setp", "selp", "compute"):
            self._calculate(d, lanes)
        elif kind == "load":
            words, index = self._words(d, lanes.address(o[1]))
            for i, register in enumerate(o[0]):
                lanes.set(register, words[index + i])
        elif kind == "store":
            words, index = self._words(d, lanes.address(o[0]))
            for i, operand in enumerate(o[1]):
                words[index + i] = lanes.value(operand)
        elif kind == "atom":
            self._atomic(d, lanes)
        elif kind == "param":
            lanes.set(o[0], self.parameters[o[1]], np.int64)
        elif kind == "copy":
            size, present = lanes.value(o[2]), lanes.value(o[3] if len(o) > 3 else o[2])
            self._copy(lanes.warp, lanes.address(o[0]), lanes.address(o[1]), size, present)
        elif kind == "commit":
            lanes.warp.groups.append(lanes.warp.open)
            lanes.warp.open = []
        elif kind == "wait":
            while len(lanes.warp.groups) > o[0]:
                for index, words in lanes.warp.groups.pop(0):
                    self.local[index] = words
        else:
            raise AssertionError(f"{kind} is not known")

    def _calculate(self, d: Decoded, lanes: Lanes) -> None:
        o, value = d.operands, lanes.value
        if d.kind == "fma":
            self.multiply_adds += lanes.count
            lanes.set(o[0], np.float64(value(o[1])) * value(o[2]) + value(o[3]), np.float32)
        elif d.kind == "setp":
            lanes.set(o[0], COMPARE[d.detail](self._typed(value(o[1]), d.type), self._typed(value(o[2]), d.type)), bool)
        elif d.kind == "selp":
            lanes.set(o[0], np.where(value(o[3]), value(o[1]), value(o[2])))
        else:
            result = d.function(*[self._typed(value(operand), d.type) for operand in o[1:]])
            lanes.set(o[0], result if d.type == "pred" else self._wrapped(result, d.result))

    def _atomic(self, d: Decoded, lanes: Lanes) -> None:
        """``add`` adds; ``inc`` counts up to a limit, then from 0 again."""
        register, address, operand = d.operands
        words, index = self._words(d, lanes.address(address))
        old = np.zeros(index.size, np.int64)
        for lane, at in enumerate(index):
            old[lane] = words[at]
            if d.detail == "add":
                words[at] = old[lane] + operand
            else:
                words[at] = 0 if old[lane] >= lanes.value(operand)[lane] else old[lane] + 1
        lanes.set(register, old)

    def _words(self, d: Decoded, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = 1 if d.kind == "atom" else len(d.operands[0] if d.kind == "load" else d.operands[1])
        assert not (addresses % (4 * count)).any(), "a vector at an address that is not its multiple"
        if d.detail == "shared":
            assert (addresses >= 0).all() and (addresses + 4 * count <= self.local_bytes).all(), (
                "outside of local memory"
            )
            return self.local, addresses // 4
        if d.detail == "const":
            return self.constants, addresses // 4
        words, index = self.memory.at(addresses)
        assert (index + count <= words.size).all(), "a vector past a buffer's end"
        return words, index

    def _copy(self, warp: Warp, to: np.ndarray, source: np.ndarray, size: int, present: Any) -> None:
        present = np.broadcast_to(present, to.shape)
        assert not (to % size).any() and not (source[present > 0] % size).any(), "a copy at an odd address"
        self.memory.at(source + size - 4)  # as wide as the instruction: what is not to be read has to be there, too
        for i in range(size // 4):
            words = np.zeros(to.size, np.float32)
            inside = present > 4 * i
            if inside.any():
                buffer, index = self.memory.at(source[inside] + 4 * i)
                words[inside] = buffer[index]
            warp.open.append((to // 4 + i, words))

    @staticmethod
    def _typed(value: Any, type: str) -> Any:
        if type in ("u32", "b32"):
            return np.asarray(value, np.int64) & 0xFFFFFFFF
        return value

    @staticmethod
    def _wrapped(result: Any, type: str) -> Any:
        if type == "f32":
            return np.asarray(result, np.float32)
        if type.endswith("32"):
            return ((np.asarray(result, np.int64) + 2**31) & 0xFFFFFFFF) - 2**31
        return np.asarray(result, np.int64)

    def _decode(self, item: Instruction) -> Decoded:
        parts = item.opcode.split(".")
        name, type = parts[0], parts[-1]
        d = Decoded(name, item.guard, type=type, result=type)
        operands = [self._operand(text) for text in item.operands]
        if item.opcode.startswith("bar."):
            return d
        if name == "bra":
            d.target = self.labels[item.operands[0]]
        elif name == "fma":
            d.operands = operands
        elif item.opcode.startswith("ld.param"):
            d.kind, d.operands = "param", [operands[0], int(re.search(r"(\d+)\]", item.operands[1])[1])]  # type: ignore[index]
        elif name in ("ld", "st"):
            d.kind, d.detail = {"ld": "load", "st": "store"}[name], parts[1]
            at = 0 if name == "ld" else 1
            operands[at] = operands[at] if isinstance(operands[at], list) else [operands[at]]
            d.operands = operands
        elif name == "atom":
            d.detail, d.operands = parts[2], operands
        elif item.opcode.startswith("cp.async.commit"):
            d.kind = "commit"
        elif item.opcode.startswith("cp.async.wait_group"):
            d.kind, d.operands = "wait", operands
        elif item.opcode.startswith("cp.async"):
            d.kind, d.operands = "copy", operands
        elif name == "setp":
            d.detail, d.operands = parts[1], operands
        elif name == "selp":
            d.operands = operands
        elif name != "ret":
            d.kind, d.operands, d.function = "compute", operands, self._function(parts)
            if parts[1] == "wide":
                d.result = "s64"
            elif name == "cvt":
                d.result, d.type = parts[-2], parts[-1]
        return d

    @staticmethod
    def _function(parts: list[str]) -> Any:
        name = parts[0]
        if name == "mul" and "hi" in parts:
            return lambda a, b: (np.asarray(a, np.int64) * b) >> 32
        return {
            "mov": lambda a: a, "cvt": lambda a: a, "cvta": lambda a: a, "add": operator.add, "sub": operator.sub,
            "mul": operator.mul, "mad": lambda a, b, c: a * b + c, "and": operator.and_, "or": operator.or_,
            "xor": operator.xor, "not": lambda a: ~a, "shl": lambda a, b: np.asarray(a, np.int64) << b,
            "shr": lambda a, b: np.asarray(a, np.int64) >> b, "div": lambda a, b: a // b, "rem": lambda a, b: a % b,
            "min": np.minimum, "max": np.maximum,
        }[name]  # fmt: skip

    def _operand(self, text: str) -> Any:
        if text.startswith("["):
            address = re.fullmatch(r"\[([%$\w.]+?)(?:\+(-?\d+))?\]", text)
            assert address, text
            return (self._operand(address[1]), int(address[2] or 0)) if not address[1].startswith("0x") else text
        if text.startswith("{"):
            return [self._operand(part.strip()) for part in text[1:-1].split(",")]
        if text in ("%ctaid.x", "%smid"):  # each work-group on a compute unit of its own
            return GROUP
        if text.startswith("%"):
            return text
        if text.startswith("0f"):
            return np.uint32(int(text[2:], 16)).view(np.float32)
        if text in self.symbols:
            return self.symbols[text]
        return int(text, 0) if re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", text) else text


GROUP = object()


@dataclass
class Decoded:
    """An instruction with its operands taken apart."""

    kind: str
    guard: str
    operands: list[Any] = field(default_factory=list)
    type: str = ""
    result: str = ""
    detail: str = ""
    target: int = 0
    function: Any = None
