"""Where and how a run took place, as its folder says it: checked where it is read, what is damaged left out by name.

    RUN/environment.json   host, versions, commit, devices, seed, planned cases; written when a run begins
    RUN/ceilings.jsonl     a line for each set of ceilings that came into use, and for each probe of them; appended

Runs that are written as a whole (merged, imported), and those older than the second file, have all of it in the first.
Nothing here keeps a run from being read or resumed: what cannot be used is told, and counts as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..model import files
from ..model.device import DeviceInfo
from ..model.errors import UsageError, shown
from ..model.schema import explain
from .reading import lines

#: Of the file, apart from that of records.
ENVIRONMENT_VERSION = 2
ENVIRONMENT = "environment.json"
CEILINGS = "ceilings.jsonl"

Rate = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    """What readers rely on; further keys are shown or passed over."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class _Experiment(_Part):
    name: str = ""
    title: str = ""
    file: str = ""
    sha256: str = ""


class _Host(_Part):
    cpu: str | None = None
    cores: Count | None = None
    memory_bytes: Count | None = None


class _Commit(_Part):
    hash: str = ""
    dirty: bool = False


class _Code(_Part):
    measuring: str
    variants: dict[str, str]
    files: dict[str, str] = {}
    made_of: dict[str, list[str]] = {}


class _Probed(_Part):
    value: Rate
    low: Rate
    high: Rate


class _Ceiling(_Probed):
    unit: str = "B/s"
    shape: dict[str, Any] = {}
    sweep: dict[str, float] = {}
    spread: float | None = None
    theory: float | None = None
    theory_basis: str = ""
    above_theory: bool = False


class _Renewal(_Part):
    date: str = ""
    reason: str = ""
    names: list[str] = []
    outcome: str = ""
    verdict: bool = False
    before: dict[str, _Probed] = {}
    fresh: dict[str, _Probed] = {}


class _Ceilings(_Part):
    date: str = ""
    working_set_bytes: Count | None = None
    entries: dict[str, _Ceiling] = {}
    absent: dict[str, str] = {}
    contended: dict[str, str] = {}
    renewals: list[_Renewal] = []


class _Probe(_Part):
    device: str
    when: str
    date: str = ""
    entries: dict[str, _Probed]


class _Profile(_Part):
    name: str = ""
    title: str = ""
    bandwidth: Rate | None = None
    fp32: Rate | None = None
    nominal: dict[str, Rate] = {}


class _Metric(_Part):
    tag: str = ""
    unit: str = ""
    direction: str = ""
    description: str = ""


class _Problem(_Part):
    title: str = ""
    metric: _Metric | None = None
    figures: dict[str, list[str]] = {}
    headline: dict[str, dict[str, Any]] = {}
    defaults: dict[str, Any] = {}


class _Figure(_Part):
    value: float
    high: float | None = None
    share: float | None = None


class _Workload(_Part):
    title: str = ""
    problems: dict[str, _Problem] = {}
    published: list[_Figure] = []


Form = TypeAdapter[Any]
#: What a field of the environment file is; one that is not so is left out whole.
FIELDS: dict[str, Form] = {
    "run": Form(str), "started": Form(str), "seed": Form(Count), "planned": Form(Count), "command": Form(list[str]),
    "experiment": Form(_Experiment), "host": Form(_Host), "versions": Form(dict[str, str]), "commit": Form(_Commit),
    "code": Form(_Code), "report": Form(dict[str, Any]), "imported": Form(dict[str, str]),
}  # fmt: skip
#: What each entry of a field is; one that is not so is left out alone.
ENTRIES: dict[str, Form] = {
    "devices": Form(DeviceInfo), "broken_devices": Form(str), "defaults": Form(dict[str, dict[str, Any]]),
    "ceilings": Form(_Ceilings), "profiles": Form(_Profile), "workloads": Form(_Workload),
}  # fmt: skip
PROBE = Form(_Probe)
MAPPING, LIST = Form(dict[str, Any]), Form(list[Any])


def read_environment(folder: Path) -> tuple[dict[str, Any], list[UsageError]]:
    """Return what a run's folder says of where and how it took place, and what was left out and why.

    Returns
    -------
    content : dict
        As of `read_fixed`, with the ceilings that were last in use (``ceilings``) and all probes (``probes``).
    left_out : list of UsageError
        What is wrong with each part that cannot be used.

    Raises
    ------
    UsageError
        If the file is of another version of the schema.
    """
    content, left_out = read_fixed(folder)
    path = folder / CEILINGS
    if not path.exists():
        return content, left_out
    ceilings, probes = dict(content.get("ceilings") or {}), list(content.get("probes") or [])
    try:
        for number, line, torn in lines(path):
            where = f"{path}:{number}"
            try:
                match files.parse_json(line, where):
                    case {"ceilings": {"device": str(device)} as values}:
                        ceilings[device] = _checked(ENTRIES["ceilings"], values, where)
                    case {"probe": probe}:
                        probes.append(_checked(PROBE, probe, where))
                    case _:
                        raise UsageError(f"{where}: expected ceilings of a device, or a probe")
            except UsageError as error:
                if not torn:
                    left_out.append(error)
    except UsageError as error:
        left_out.append(error)
    return {**content, "ceilings": ceilings, "probes": probes}, left_out


def read_fixed(folder: Path, versioned: bool = True) -> tuple[dict[str, Any], list[UsageError]]:
    """Return the content of a folder's environment file, and what was left out of it and why.

    Parameters
    ----------
    versioned : bool
        Whether the file says of which version of the records' schema it is.

    Raises
    ------
    UsageError
        If it is of another version.
    """
    path = folder / ENVIRONMENT
    try:
        content = files.read_json(path)
    except UsageError as error:
        return {}, [error]
    if not isinstance(content, dict) or (versioned and "schema_version" not in content):
        return {}, [UsageError(f"{path}: expected a mapping with a schema version")]
    if versioned and (version := content["schema_version"]) != ENVIRONMENT_VERSION:
        raise UsageError(
            f"{path}: schema version {shown(version)}; this version of perfport reads {ENVIRONMENT_VERSION}"
        )
    left_out: list[UsageError] = []
    return dict(_kept(content, path, left_out)), left_out


def _kept(content: Mapping[str, Any], path: Path, left_out: list[UsageError]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that can be used, without the entries that cannot."""
    for name, value in content.items():
        where = f"{path}: {name}"
        try:
            if value is None:
                yield name, value
            elif name in ENTRIES:
                entries = _checked(MAPPING, value, where)
                yield name, dict(_each(ENTRIES[name], where, entries.items(), left_out))
            elif name == "probes":
                probes = _checked(LIST, value, where)
                yield name, [probe for _, probe in _each(PROBE, where, enumerate(probes), left_out)]
            else:
                yield name, _checked(FIELDS[name], value, where) if name in FIELDS else value
        except UsageError as error:
            left_out.append(error)


def _each(
    form: Form, where: str, entries: Iterable[tuple[Any, Any]], left_out: list[UsageError]
) -> Iterator[tuple[Any, Any]]:
    """Yield the entries that have a form, with their keys."""
    for key, entry in entries:
        try:
            yield key, _checked(form, entry, f"{where}[{key!r}]")
        except UsageError as error:
            left_out.append(error)


def _checked(form: Form, value: Any, where: str) -> Any:
    """Return a value as it is. Raises `UsageError` with the first of its faults if it has not the form."""
    try:
        form.validate_python(value, strict=True)
    except ValidationError as error:
        first, *more = explain(error, DeviceInfo).splitlines()
        raise UsageError(f"{where}: {first}" + (f"; and {len(more)} more" if more else "")) from None
    return value
