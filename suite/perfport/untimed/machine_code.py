"""Machine code of CUDA kernels, as ``nvdisasm -c`` prints it: what the bodies of loops consist of."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

KERNEL = re.compile(r"\.text\.(\w+):")
LABEL = re.compile(r"(\.L_\w+):")
INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?([A-Z]\w*)(.*)")
TARGET = re.compile(r"`\((\.L_\w+)\)")
SHOWN = 8  # kinds of instructions


@dataclass(frozen=True)
class Loop:
    """A loop by its kernel and first label; instructions of its body by kind, those of inner loops once."""

    kernel: str
    label: str
    kinds: Counter[str]


def loops(code: str) -> list[Loop]:
    """Return the loops of a disassembly, in the order in which they end: what a branch to an earlier label spans."""
    found, kernel, labels, kinds = [], "", dict[str, int](), list[str]()
    for line in code.splitlines():
        if section := KERNEL.match(line):
            kernel = section[1]
        elif label := LABEL.match(line):
            labels[label[1]] = len(kinds)
        elif instruction := INSTRUCTION.match(line):
            kinds.append(instruction[1])
            target = TARGET.search(instruction[2])
            begin = labels.get(target[1]) if target and instruction[1] == "BRA" else None
            if target and begin is not None and len(kinds) - begin > 1:  # a branch to itself ends the code
                found.append(Loop(kernel, target[1], Counter(kinds[begin:])))
    return found


def outline(code: str) -> str:
    """Return a line of comment for each loop: how many instructions its body has, and the most frequent kinds."""
    lines = []
    for loop in loops(code):
        kinds = [f"{kind} {count}" for kind, count in loop.kinds.most_common(SHOWN)]
        others = ["..."] if len(loop.kinds) > SHOWN else []
        total = f"{loop.kinds.total()} instructions"
        lines.append(f"// {loop.kernel}, loop at {loop.label}: {total}: {', '.join(kinds + others)}\n")
    return "".join(lines)
