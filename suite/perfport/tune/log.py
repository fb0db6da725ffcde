"""What a search has measured: one line for each configuration and size, on disk before the next is begun.

A search that was killed reads the log and goes on: nothing in it is measured again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from ..model.errors import InfrastructureError, UsageError, cut, leave_out
from ..model.record import Interval, Status
from ..model.schema import Finite
from ..model.untrusted import inside
from ..store.reading import lines
from ..store.writing import LineFile

LOG = "tune.jsonl"
#: What is read of a line is shown in tables: names are names.
Name = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\p{C}]*$")]
Seconds = Annotated[float, Field(gt=1e-12, lt=1e9)]
Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
Value = Whole | Annotated[float, Field(strict=True)] | Annotated[str, Field(max_length=200)]
Count = Annotated[int, Field(ge=0, lt=10**30)]


class Search(Finite):
    """The first line: what was searched for, with which code, and on which devices.

    ``cache`` is ``None`` in a log that is older than the key.
    """

    kind: Literal["search"] = "search"
    version: Literal[1] = 1
    name: Name
    started: str
    seed: int
    objective: Literal["mean", "worst"]
    cache: Literal["cold", "warm"] | None = None
    commit: str
    code: str
    devices: dict[Name, dict[str, Any]]


class Space(Finite):
    """A variant's space on a device, as it is searched; the code's ``defaults`` are the reference of ``relative``.

    ``profile`` is what the device's profile had for the variant at the nearest size when the search began; ``None``
    where it had nothing else than the defaults, and in a log that is older than the key.
    """

    kind: Literal["space"] = "space"
    device: Name
    variant: Name
    size: Count
    values: dict[Name, list[Value]]
    defaults: dict[Name, Value]
    presets: dict[Name, float]
    profile: dict[Name, Value] | None = None


class Trial(Finite):
    """One configuration at one size.

    Attributes
    ----------
    status : Status
    reason : str
        Why there is no result, or why sampling ended early: what it cannot win by.
    seconds : float, optional
        Median time, or the least time where none was taken (`hopeless`).
    relative : float, optional
        Time over that of the reference at this size; ``ratio`` is that over the configuration that it was measured
        beside, with its interval: of the reference itself, over its own.
    times : list of float
        Samples, in seconds.
    share : float, optional
        Share of the problem bound.
    took : float
        Seconds that this took, builds and verification included: of the budget, unless it is of the code's defaults.
    hopeless : bool
        Its own bound is above the time of the best: it was not timed.
    disturbed : str
        Why times are not to be trusted; empty where nothing says so.
    """

    kind: Literal["trial"] = "trial"
    device: Name
    variant: Name
    preset: Name
    config: dict[Name, Value]
    status: Status
    reason: str = Field("", max_length=10_000)
    seconds: Seconds | None = None
    relative: Annotated[float, Field(gt=0, lt=1e12)] | None = None
    ratio: Interval | None = None
    times: list[Seconds] = Field(default_factory=list, max_length=1000)
    share: float | None = None
    took: float = Field(0.0, ge=0)
    hopeless: bool = False
    disturbed: str = Field("", max_length=1000)


#: Why a search that had results ends without parameters: the code's defaults stand.
NOTHING_FASTER = "nothing was found that is 1% faster than the code's defaults"
DEFAULTS_BEST = "the code's defaults are the best of the finalists"
WITHIN_NOISE = "no gain beyond its interval"


class Result(Finite):
    """How a variant's search ended: the winner, and what it gains over the code's defaults, by fresh workers.

    ``over_profile`` is what the answer gains over what the device's profile had when the search began, by the
    same; ``None`` where that had nothing else than the defaults.
    """

    kind: Literal["result"] = "result"
    device: Name
    variant: Name
    presets: dict[Name, float]
    parameters: dict[Name, Value] | None = None
    next: list[dict[Name, Value]] = Field(default_factory=list, max_length=20)
    gain: Interval | None = None
    over_profile: Interval | None = None
    share: float | None = None
    tried: Count
    of: Count
    reason: str = Field("", max_length=1000)

    @field_validator("gain", "over_profile")
    @classmethod
    def _speed_up(cls, gain: Interval | None) -> Interval | None:
        if gain and gain.low <= 0:
            raise ValueError("a gain is a ratio of times, above zero")
        return gain

    @property
    def answer(self) -> dict[str, Any] | None:
        """What to run with at these sizes: ``{}`` are the code's defaults; ``None`` where the search does not tell."""
        return {} if self.reason in (NOTHING_FASTER, DEFAULTS_BEST, WITHIN_NOISE) else self.parameters


Entry = Search | Space | Trial | Result
KINDS: dict[str, type[Search] | type[Space] | type[Trial] | type[Result]] = {
    "search": Search, "space": Space, "trial": Trial, "result": Result,
}  # fmt: skip


class Log:
    """The open log of a search in a folder; ``entries`` are those that it has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = inside(folder, LOG)
        self.entries = list(read(path)) if path.exists() else []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = LineFile(path)
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be written ({error.strerror})") from None

    def append(self, entry: Entry) -> None:
        """Keep an entry: it is on disk when this returns."""
        self._file.append(entry.model_dump_json(exclude_defaults=False).encode() + b"\n", "an entry of the search")
        self.entries.append(entry)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> Iterator[Entry]:
    """Yield the entries of a log. A line that is none is named and left out; the last one may be torn.

    Raises
    ------
    UsageError
        If it cannot be read, or is no log.
    """
    for entry in checked(path):
        if isinstance(entry, UsageError):
            leave_out(entry)
        else:
            yield entry


def checked(path: Path) -> Iterator[Entry | UsageError]:
    """Yield the entries of a log, and what is wrong with each line that is none. Raises as `read` does."""
    for number, line, torn in lines(path):
        kind = next((form for name, form in KINDS.items() if line.startswith(f'{{"kind":"{name}"'.encode())), None)
        where = f"{path}:{number}"
        if kind is None and number == 1:
            raise UsageError(f"{where}: not what 'perfport tune' writes")
        try:
            if kind is None:
                raise UsageError(f"{where}: expected a line with one of the kinds {', '.join(KINDS)}")
            yield kind.model_validate_json(line)
        except (UsageError, ValidationError) as error:
            if not torn:
                text = cut(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else str(error)
                yield UsageError(f"{where}: {text}" if isinstance(error, ValidationError) else text)


def find_logs(path: Path) -> list[Path]:
    """Return the folders of searches at or directly below a path. Raises `UsageError` if there is none."""
    if (path / LOG).exists():
        return [path]
    folders = sorted(folder for folder in path.iterdir() if (folder / LOG).exists()) if path.is_dir() else []
    if not folders:
        raise UsageError(f"{path}: no search here (expected a folder with {LOG}, or a folder of such folders)")
    return folders
