"""Numbers that texts quote from stored runs: checked against the records, and put right.

A comment behind bold numbers on the same line says where each of them comes from::

    **0.319 ms**; PyTorch **18.4** <!-- from h200-vocab_tree: kmeans_iteration large tensor_core; torch -->

A query for each number, parted by semicolons, is a list of words. ``NAME=VALUE`` asks for a parameter, a tunable, or
one of `FIELDS`; what it sets holds for the queries behind it, and ``NAME=`` sets it free again. Three words may stand
bare: problem, preset and variant, of which the last ones are meant where there are fewer. Without ``profile`` the
variants' own parameters are meant; ``NAME=null`` asks for what is not set, ``role=own`` for all roles but peers, and
``tunables=default`` for the defaults of all tunables that the query does not name. Of several cases of one setting the
fastest counts.

``A over B`` is the ratio of two such numbers, in `%` or times a factor if that is the unit; of times it is the speed-up
that reports have. ``gmean``, ``min`` or ``max`` takes it over all settings that have both, and ``along=PARAMETER`` asks
from where on along it B is the faster one. ``unit`` is `ms` (default), `s`, `us`, `%` or a factor; ``value`` a dotted
path into the record in place of the time, or a sum of such, in the record's own unit where none is given.

A table between ``<!-- best RUN WORDS -->`` and ``<!-- end -->`` is that of the best variants of the run's cases that
the words select, one behind ``<!-- peers RUN WORDS -->`` that of all forms of their peers. In place of a table may
stand `UNMEASURED`, as long as there is no such run, or none of its cases are of these words.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..judge.crosstuning import defaults
from ..model import files, schema
from ..model.errors import UsageError
from ..model.names import NATIVE
from ..model.record import Record
from ..store.crossfit import compare_best, fastest_record
from ..store.ratios import is_measured, time_of
from ..store.results import RECORDS, Run

if TYPE_CHECKING:
    from .parts.ladder import Ladder

FIELDS = ("problem", "preset", "variant", "device", "profile", "precision", "role")
#: Words that say of no case which it is.
OTHERS = ("run", "unit", "value", "along")
BARE = ("problem", "preset", "variant")
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "%": 100.0}
_OverAll = Callable[[Sequence[float]], float]
OVER_ALL: dict[str, _OverAll] = {
    "gmean": lambda values: math.exp(sum(map(math.log, values)) / len(values)),
    "min": min,
    "max": max,
}
QUOTE = re.compile(r"<!-- from (\S+): (.*?) -->")
BLOCK = re.compile(r"(<!-- (best|peers) (\S+)(.*?) -->\n\n)(.*?)(\n\n<!-- end -->)", re.DOTALL)
UNMEASURED = "Not measured yet."
#: Where texts quote numbers.
TEXTS = ("README.md", "docs/*.md", "workloads/*/README.md")
BOLD = re.compile(r"\*\*(?!\s)(.+?)\*\*")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")
#: Bytes of a text.
MOST_TEXT = 16 * files.MIB
#: Headings of sections in which every bold number is a quotation.
LOG = re.compile(r"## Performance log\b")


@dataclass(frozen=True)
class Checked:
    """A text with every quotation as the records have it, and what was not so: a line for each."""

    text: str
    complaints: list[str]


class Quotes:
    """The records that texts quote.

    Parameters
    ----------
    results : Path
        Folder of the run folders that comments name.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self._runs: dict[str, Run] = {}

    def has(self, name: str) -> bool:
        """Whether there is a run of this name."""
        return (self.results / name / RECORDS).exists()

    def run(self, name: str) -> Run:
        """Return a run. Raises `UsageError` where there is none of the name."""
        if name not in self._runs:
            if not self.has(name):
                raise UsageError(f"no run {name!r} in {self.results}")
            self._runs[name] = Run(self.results / name)
        return self._runs[name]

    def check(self, content: str) -> Checked:
        """Return a text with its quotations put right."""
        complaints: list[str] = []

        def block(quoted: re.Match[str]) -> str:
            begin, kind, run, words, body, end = quoted.groups()
            if body == UNMEASURED and not (self.has(run) and self._selected(run, words)):
                return quoted[0]
            try:
                table = self._table(kind, run, words)
            except UsageError as error:
                complaints.append(f"{kind} {run}: {error}")
                return quoted[0]
            if body != table:
                complaints.append(f"{kind} {run}{words}: the table is not what the records give")
            return f"{begin}{table}{end}"

        content = BLOCK.sub(block, content)
        lines, logging = [], False
        for number, line in enumerate(content.split("\n"), 1):
            logging = bool(LOG.match(line)) if line.startswith("## ") else logging
            try:
                mended = self._line(line, logging)
            except UsageError as error:
                complaints.append(f"line {number}: {error}")
                mended = line
            if mended != line:
                complaints.append(f"line {number}: {_difference(line, mended)}")
            lines.append(mended)
        return Checked("\n".join(lines), complaints)

    def _line(self, line: str, logging: bool) -> str:
        made, begin = "", 0
        for comment in QUOTE.finditer(line):
            before = line[begin : comment.start()]
            values = self.values(comment[1], comment[2])
            places = [
                (bold.start(1) + number.start(), number[0])
                for bold in BOLD.finditer(before)
                for number in NUMBER.finditer(bold[1])
            ]
            if len(places) != len(values):
                raise UsageError(f"{len(places)} bold numbers, {len(values)} queries: {comment[0]}")
            for (at, written), value in reversed(list(zip(places, values, strict=True))):
                digits = len(written.partition(".")[2])
                before = before[:at] + f"{value:.{digits}f}" + before[at + len(written) :]
            made += before + comment[0]
            begin = comment.end()
        rest = line[begin:]
        if logging and any(NUMBER.search(bold[1]) for bold in BOLD.finditer(rest)):
            raise UsageError(f"bold numbers of which no comment says where they come from: {rest.strip()[-100:]}")
        return made + rest

    def values(self, run: str, queries: str) -> list[float]:
        """Return the numbers that a comment's queries ask for. Raises `UsageError` for one that has no answer."""
        held: dict[str, Any] = {"run": run}
        numbers = []
        for query in queries.split(";"):
            words = shlex.split(query)
            over_all = next((OVER_ALL[word] for word in words if word in OVER_ALL), None)
            words = [word for word in words if word not in OVER_ALL]
            sides = []
            for part in _split(words, "over"):
                _read(part, held)
                sides.append(_Query(self.run(str(held["run"])), dict(held)))
            numbers.append(_answer(sides, over_all, query.strip()))
        return numbers

    def _table(self, kind: str, name: str, words: str) -> str:
        from .parts.forms import forms_table
        from .parts.summary import best_tables

        chosen = self._selected(name, words)
        if not chosen:
            raise UsageError(f"no case with {words.strip()}")
        return forms_table(chosen) if kind == "peers" else best_tables(chosen, peers=False)

    def _selected(self, name: str, words: str) -> list[Ladder]:
        """Return the ladders of a run that words such as ``workload=gdn`` select."""
        from .parts.ladder import ladders_of

        wanted = {key: value.split(",") for key, _, value in (word.partition("=") for word in words.split())}
        return [
            ladder
            for ladder in ladders_of([self.run(name)])
            if all(str(getattr(ladder, key)) in values for key, values in wanted.items())
        ]


def _split(words: Sequence[str], at: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == at:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _read(words: Iterable[str], held: dict[str, Any]) -> None:
    """Take the words of a query over into what holds."""
    bare = []
    for word in words:
        name, equal, value = word.partition("=")
        if not equal:
            bare.append(word)
        elif value:
            held[name] = value if name in (*FIELDS, *OTHERS) else schema.parse(value, word)
        else:
            held.pop(name, None)
    if len(bare) > len(BARE):
        raise UsageError(f"at most {len(BARE)} bare words ({', '.join(BARE)}), got: {' '.join(bare)}")
    held.update(zip(BARE[len(BARE) - len(bare) :], bare, strict=True))


@dataclass(frozen=True)
class _Query:
    """What is asked of a run."""

    run: Run
    asked: Mapping[str, Any]

    @cached_property
    def by_setting(self) -> dict[str, list[Record]]:
        """The records of each setting on the device of the fastest one, which comes first."""
        measured: dict[str, list[Record]] = {}
        for record in self.run.records:
            if is_measured(record) and self._takes(record):
                setting = f"{record.identity.problem}, {sorted(record.identity.parameters.items())}"
                measured.setdefault(setting, []).append(record)
        for setting, records in measured.items():
            best = fastest_record(records)
            others = [each for each in records if each.identity.devices == best.identity.devices and each is not best]
            measured[setting] = [best, *others]
        return measured

    def _takes(self, record: Record) -> bool:
        identity = record.identity
        own = {
            **identity.parameters, **identity.tunables, **{name: getattr(identity, name, None) for name in FIELDS},
            "device": identity.devices[0], "profile": identity.profile or NATIVE,
        }  # fmt: skip
        asked = {"profile": NATIVE, **self.asked}
        if asked.pop("tunables", None) == "default":
            known = defaults(self.run, identity)
            if known is None or identity.tunables != {name: asked.get(name, value) for name, value in known.items()}:
                return False
        asked = {name: value for name, value in asked.items() if name not in OTHERS}
        if asked.get("role") == "own":
            asked["role"] = identity.role if identity.role not in ("peer", "control") else "own"
        return all(own.get(name) == value for name, value in asked.items())

    def value(self, record: Record) -> float:
        """The number that is asked for, without its unit."""
        path = self.asked.get("value")
        if path is None:
            return time_of(record)
        return sum(self._number(record, each) for each in str(path).split("+"))

    def _number(self, record: Record, path: str) -> float:
        value: Any = record.model_dump()
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not isinstance(value, int | float):
            raise UsageError(f"{record.identity.variant} has no number {path!r}")
        return float(value)

    @property
    def scale(self) -> float:
        """What the number is multiplied with."""
        unit = str(self.asked.get("unit", "s" if "value" in self.asked else "ms"))
        try:
            return UNITS[unit] if unit in UNITS else float(unit)
        except ValueError:
            raise UsageError(f"unit: {unit!r} is not one of {', '.join(UNITS)}, nor a factor") from None


def _answer(sides: Sequence[_Query], over_all: _OverAll | None, query: str) -> float:
    if len(sides) > 2:
        raise UsageError(f"{query!r}: 'over' parts two sides")
    common = [setting for setting in sides[0].by_setting if all(setting in side.by_setting for side in sides)]
    if not common:
        raise UsageError(f"{query!r}: no such measured case")
    if len(common) > 1 and over_all is None and "along" not in sides[-1].asked:
        raise UsageError(f"{query!r}: several settings: {'; '.join(common)}")
    if len(sides) == 2 and not any("value" in side.asked for side in sides):
        return _gain(sides, common, over_all, query)
    values = [[side.value(side.by_setting[setting][0]) for side in sides] for setting in common]
    unit = str(sides[-1].asked.get("unit", ""))
    factor = UNITS["%"] if unit == "%" else 1.0 if unit in ("", *UNITS) else sides[-1].scale
    numbers = [factor * value[0] / value[1] if len(sides) == 2 else value[0] * sides[0].scale for value in values]
    return over_all(numbers) if over_all else numbers[0]


def _gain(sides: Sequence[_Query], settings: Sequence[str], over_all: _OverAll | None, query: str) -> float:
    """How many times as fast one side is as reports have it: by samples that did not choose its fastest case."""
    (base, other), points = sides, []
    for setting in settings:
        compared = compare_best(base.by_setting[setting], other.by_setting[setting])
        if compared is None:
            raise UsageError(f"{query!r}: no clock in common")
        axis = other.by_setting[setting][0].identity.parameters.get(str(other.asked.get("along")), 0)
        points.append((float(axis), compared.ratio.value))
    if "along" not in other.asked:
        values = [ratio for _, ratio in points]
        return over_all(values) if over_all else values[0]
    from .parts.sweeps import crossings

    upwards = [at for at, up in crossings(sorted(points)) if up]
    if not upwards:
        raise UsageError(f"{query!r}: never becomes the faster one along {other.asked['along']}")
    return upwards[-1]


def _difference(line: str, mended: str) -> str:
    old, new = (
        [number[0] for bold in BOLD.finditer(each) for number in NUMBER.finditer(bold[1])] for each in (line, mended)
    )
    return ", ".join(
        f"{written} is {recorded} in the records"
        for written, recorded in zip(old, new, strict=True)
        if written != recorded
    )


def texts(paths: Sequence[Path]) -> list[Path]:
    """Return the files that are meant: those named, or what the current folder has of `TEXTS`."""
    return list(paths) or [path for pattern in TEXTS for path in sorted(Path().glob(pattern))]


def check_files(paths: Sequence[Path], results: Path, write: bool = False) -> Iterator[tuple[Path, list[str], bool]]:
    """Check the quotations of texts, one file after the other, and with ``write`` put them right.

    Yields
    ------
    file, complaints, wrong
        ``wrong`` says whether complaints are left, after writing if the file was written.

    Raises
    ------
    UsageError
        If a file cannot be read.
    """
    quotes = Quotes(results)
    for file in texts(paths):
        content = files.read_text(file, MOST_TEXT)
        checked = quotes.check(content)
        if write and checked.text != content:
            files.write(file, checked.text)
        left = quotes.check(checked.text).complaints if write else checked.complaints
        yield file, checked.complaints, bool(left)
