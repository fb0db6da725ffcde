"""Runs of the workload of cheats (tests/cheats/adversary): their experiments, verdicts, and the table of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from perfport.model.record import Record
from perfport.workload import Variant, discover

ADVERSARY = Path(__file__).parents[1] / "cheats" / "adversary"
HONEST, LEAVES = "honest", "leaves"
#: Samples are few, and none of them so long that the warm-up ends early.
MEASUREMENT = {"min_samples": 5, "max_samples": 5, "time_budget": 1.0, "cache": "warm"}
SEED = 7
Verdicts = dict[tuple[str, str, str], Record]  # by device, problem, variant
START, END = "<!-- verdicts -->", "<!-- end of verdicts -->"


@dataclass(frozen=True)
class Cheat:
    """A cheat as its module says it; ``reach`` is what it would spoil for others: variant, group or process."""

    name: str
    problem: str
    reach: str
    does: str
    seen: str
    guard: str

    @classmethod
    def of(cls, variant: type[Variant], reach: str) -> Cheat:
        """Read the module of a variant: a sentence, then ``Seen:`` and ``Guard:``."""
        module = inspect.getmodule(variant)
        assert module
        texts = re.split(r"\n\nSeen: |\nGuard: ", (module.__doc__ or "").strip())
        does, seen, guard = (" ".join(text.split()) for text in texts)
        return cls(variant.name, variant.problem.name, reach, does, seen.rstrip("."), guard.rstrip("."))


@cache
def cheats() -> dict[str, Cheat]:
    """Every cheat by name, in the order of their names."""
    workload = discover([ADVERSARY], ADVERSARY.name)[ADVERSARY.name]
    variants = sorted((each for known in workload.variants.values() for each in known.values()), key=lambda v: v.name)
    reaches = {variant: re.search(r"\.within_(\w+)\.", variant.__module__) for variant in variants}
    return {variant.name: Cheat.of(variant, reach[1]) for variant, reach in reaches.items() if reach}


def studies(names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the entries of an experiment: a group for each problem, and one for each cheat that wants its own."""
    chosen = [cheats()[name] for name in names]
    for problem in sorted({cheat.problem for cheat in chosen}):
        together = [cheat.name for cheat in chosen if cheat.problem == problem and cheat.reach == "variant"]
        yield {"problem": problem, "presets": ["tiny"], "variants": [HONEST, *together]}
    apart = sorted((cheat for cheat in chosen if cheat.reach != "variant"), key=lambda cheat: (cheat.reach, cheat.name))
    for number, cheat in enumerate(apart, 1):  # other sizes are other groups
        yield {"problem": cheat.problem, "parameters": {"n": 256 + number, "m": 256}, "variants": [cheat.name]}
        if cheat.reach == "process":
            yield {"problem": "extremes", "parameters": {"n": number, "m": 1}, "variants": [LEAVES]}


def experiment(folder: Path, names: Iterable[str], devices: Iterable[str] = ("opencl",)) -> Path:
    """Write an experiment of these cheats, with the honest variants of their problems, on devices of OpenCL."""
    content = {
        "name": "cheats",
        "devices": [*devices],
        "measurement": MEASUREMENT,
        "timeout": 60,
        "seed": SEED,
        "experiments": [{"workload": ADVERSARY.name, **study} for study in studies(names)],
    }
    path = folder / "cheats.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def verdict(record: Record) -> str:
    """A record's status with its reason."""
    reason = f": {' '.join(record.failure.reason.split())}" if record.failure else ""
    return f"{record.status}{reason}"


def rows(verdicts: Verdicts) -> list[str]:
    """The table of cheats and what became of each, as lines of markdown."""
    devices = sorted({device for device, _, _ in verdicts})
    head = ["cheat", "what it does", "seen", "guard", *(f"`{device}`" for device in devices)]
    table = [head, ["---"] * len(head)]
    for cheat in cheats().values():
        records = [verdicts[device, cheat.problem, cheat.name] for device in devices]
        ends = ["**ranked**" if record.status.measured else str(record.status) for record in records]
        table.append([f"`{cheat.name}`", cheat.does, cheat.seen, cheat.guard, *ends])
    return [_line(row) for row in table]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def columns(lines: Iterable[str]) -> dict[str, list[str]]:
    """The columns of a table by their heads."""
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line]
    return {head: list(rest) for head, *rest in zip(*cells, strict=True)}


def merged(page: dict[str, list[str]], here: dict[str, list[str]]) -> dict[str, list[str]]:
    """The columns of this machine, and those of devices that only the page has: what is new was not run there."""
    names = here["cheat"]
    elsewhere = {}
    for head in page.keys() - here.keys():
        known = dict(zip(page["cheat"], page[head], strict=True))
        elsewhere[head] = ["---", *(known.get(name, "not run") for name in names[1:])]
    texts = [head for head in here if not head.startswith("`")]
    return {head: {**here, **elsewhere}[head] for head in [*texts, *sorted({*here, *elsewhere} - {*texts})]}


def write(page: Path, verdicts: Verdicts) -> None:
    """Put the table between the marks of a page; columns of devices that are not here stay."""
    before, rest = page.read_text().split(START)
    table, after = rest.split(END)
    made = merged(columns(table.splitlines()), columns(rows(verdicts)))
    lines = [_line(row) for row in zip(*([head, *cells] for head, cells in made.items()), strict=True)]
    page.write_text("\n".join([before + START, "", *lines, "", END + after]))
