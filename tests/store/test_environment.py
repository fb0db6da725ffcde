"""What a run says of its machine: written once, then appended to; damaged parts are named, and no run is lost."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.errors import UsageError
from perfport.store import environment
from perfport.store.environment import CEILINGS, ENVIRONMENT, read_environment, read_fixed
from perfport.store.results import Run, Writer

COMMITTED = sorted((Path(__file__).parents[2] / "results" / "committed").glob("*/environment.json"))
PROBE = data.probe(data.POCL, "before", 0.9)


def stored(folder: Path, content: Any) -> Path:
    """A run's folder with this as its environment file: bytes as they are, anything else as JSON."""
    folder.mkdir(exist_ok=True)
    (folder / ENVIRONMENT).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def told(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What is read, and what is said of the rest, without the folder."""
    content, left_out = read_environment(folder)
    return content, [str(error).removeprefix(f"{folder}/") for error in left_out]


def test_what_comes_in_while_a_run_goes_on_is_appended(tmp_path: Path) -> None:
    fixed = {**data.environment((data.POCL,)), "ceilings": {}, "probes": []}
    swept = data.ceilings(data.POCL)
    raised = {**swept, "date": "2026-11-22T00:00:00+00:00"}
    with Writer(tmp_path / "run") as writer:
        writer.environment(fixed)
        before = (tmp_path / "run" / ENVIRONMENT).read_bytes()
        for values in (swept, swept, raised, raised):
            writer.ceilings(data.POCL, values)
            writer.probe(PROBE)
    assert (tmp_path / "run" / ENVIRONMENT).read_bytes() == before
    assert len((tmp_path / "run" / CEILINGS).read_bytes().splitlines()) == 6, "ceilings where they changed"
    assert told(tmp_path / "run") == ({**fixed, "ceilings": {data.POCL: raised}, "probes": [PROBE] * 4}, [])


def test_a_group_costs_as_much_at_the_end_of_a_run_as_at_its_begin(tmp_path: Path) -> None:
    """1500 groups wrote 3.3 GB when the environment file was written again for each."""
    with Writer(tmp_path / "run") as writer:
        writer.environment(data.environment())
        sizes = []
        for _ in range(100):
            writer.ceilings(data.POCL, data.ceilings(data.POCL))
            writer.probe(PROBE)
            sizes.append((tmp_path / "run" / CEILINGS).stat().st_size)
    added = {after - before for before, after in itertools.pairwise(sizes)}
    assert len(added) == 1 and added.pop() < 1.1 * len(json.dumps(PROBE))


def test_runs_that_were_written_as_a_whole_are_read(tmp_path: Path) -> None:
    """Merged and imported runs, and those that are older than the file that is appended to."""
    whole = data.environment()
    assert told(stored(tmp_path / "run", whole)) == (whole, [])
    with Writer(tmp_path / "run") as writer:  # resumed
        writer.probe(PROBE)
    assert told(tmp_path / "run") == ({**whole, "probes": [*whole["probes"], PROBE]}, [])


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_nothing_of_a_committed_run_is_left_out(path: Path) -> None:
    content, left_out = read_fixed(path.parent, versioned=not (path.parent / "counts.jsonl").exists())
    assert not left_out and content == json.loads(path.read_text())


DEEP = 100_000


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "not JSON"),
        (b"\n", "not JSON"),
        (b'{"schema_version": 2, "run"', "not JSON"),
        (b"\x00" * 300, "not JSON"),
        (b'{"run": "\xff"}', "not JSON"),
        (b"[" * DEEP + b"]" * DEEP, "not JSON"),
        (b"[2]", "expected a mapping with a schema version"),
        (b"null", "expected a mapping with a schema version"),
        (b"{}", "expected a mapping with a schema version"),
    ],
)
def test_a_file_that_is_none_is_named_and_the_run_read(
    tmp_path: Path, content: bytes | None, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    data.store(tmp_path / "run", data.ladder(data.POCL), data.environment())
    (tmp_path / "run" / ENVIRONMENT).unlink() if content is None else stored(tmp_path / "run", content)
    known, (complaint,) = told(tmp_path / "run")
    assert not known and complaint.startswith(f"{ENVIRONMENT}: {expected}")
    caplog.clear()
    run = Run(tmp_path / "run")
    assert len(run.records) == 11 and run.name == "run" and run.planned is None
    assert [record.getMessage() for record in caplog.records] == [f"left out: {tmp_path / 'run' / complaint}"]


def test_a_folder_or_a_file_without_end_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "folder" / ENVIRONMENT).mkdir(parents=True)
    assert "expected a file, got a folder" in told(tmp_path / "folder")[1][0]
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / ENVIRONMENT)
    assert "expected a file, got a FIFO" in told(tmp_path / "fifo")[1][0], "and nobody waits for its writer"


def test_another_version_is_refused(tmp_path: Path) -> None:
    stored(tmp_path / "run", {**data.environment(), "schema_version": 1})
    with pytest.raises(UsageError, match=f"{ENVIRONMENT}: schema version 1; this version of perfport reads 2"):
        read_environment(tmp_path / "run")


BAD_DEVICE = {**data.device(data.POCL), "memory_bytes": "much"}
FIGURE = {"problem": "rows", "variant": "v", "device": "d", "value": "fast", "unit": "s", "source": "s"}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("seed", -1, "seed: input should be greater than or equal to 0"),
        ("seed", True, "seed: input should be a valid integer"),
        ("planned", "many", "planned: input should be a valid integer"),
        ("started", 1e9, "started: input should be a valid string"),
        ("command", "perfport run", "command: input should be a valid list"),
        ("host", "a machine", "host: input should be a valid dictionary"),
        ("host", {"cores": "2"}, "host: cores: input should be a valid integer"),
        ("host", {"memory_bytes": -1}, "host: memory_bytes: input should be greater"),
        ("versions", {"numpy": 2}, "versions: numpy: input should be a valid string"),
        ("commit", "0123abcd", "commit: input should be a valid dictionary"),
        ("experiment", ["demo"], "experiment: input should be a valid dictionary"),
        ("code", {"measuring": "ab"}, "code: variants: required key is missing"),
        ("imported", [1], "imported: input should be a valid dictionary"),
        ("devices", [], "devices: input should be a valid dictionary"),
        ("probes", {}, "probes: input should be a valid list"),
    ],
)
def test_a_field_of_another_shape_is_named_and_left_out(tmp_path: Path, field: str, value: Any, expected: str) -> None:
    whole = data.environment()
    known, (complaint,) = told(stored(tmp_path / "run", {**whole, field: value}))
    assert complaint.startswith(f"{ENVIRONMENT}: {expected}"), complaint
    assert known == {name: held for name, held in whole.items() if name != field}


@pytest.mark.parametrize(
    ("field", "entry", "expected"),
    [
        ("devices", BAD_DEVICE, "memory_bytes: input should be a valid integer"),
        ("devices", {"id": "x"}, "backend: required key is missing; and 9 more"),
        ("broken_devices", 5, "input should be a valid string"),
        ("defaults", {"demo/rows/v": 3}, "demo/rows/v: input should be a valid dictionary"),
        ("ceilings", {"entries": {"dram_read": {"value": 0.0, "low": 1.0, "high": 1.0}}}, "entries.dram_read.value"),
        ("ceilings", {"entries": {"dram_read": 4e9}}, "entries.dram_read: input should be a valid dictionary"),
        ("ceilings", {"entries": {}, "absent": {"dp4a": None}}, "absent.dp4a: input should be a valid string"),
        ("profiles", {"bandwidth": float("inf")}, "bandwidth: input should be a finite number"),
        ("profiles", {"nominal": {"exp": 0.0}}, "nominal.exp: input should be greater than 0"),
        ("workloads", {"problems": {"rows": {"figures": "all"}}}, "problems.rows.figures"),
        ("workloads", {"published": [FIGURE]}, "published[0].value: input should be a valid number"),
    ],
)
def test_an_entry_of_another_shape_is_left_out_alone(tmp_path: Path, field: str, entry: Any, expected: str) -> None:
    whole = data.environment(broken_devices={})
    changed = {**whole, field: {**whole[field], "odd": entry}}
    known, (complaint,) = told(stored(tmp_path / "run", changed))
    assert known == whole and complaint.startswith(f"{ENVIRONMENT}: {field}['odd']: {expected}"), complaint


@pytest.mark.parametrize("change", [{"device": 0}, {"when": None}, {"entries": {"dram_read": {"value": 1.0}}}])
def test_a_probe_of_another_shape_is_left_out_alone(tmp_path: Path, change: dict[str, Any]) -> None:
    odd = {**PROBE, **change}
    known, (complaint,) = told(stored(tmp_path / "run", data.environment(probes=[PROBE, odd, PROBE])))
    assert known["probes"] == [PROBE] * 2 and complaint.startswith(f"{ENVIRONMENT}: probes[1]: {next(iter(change))}")


def test_bad_lines_of_ceilings_are_named_and_a_torn_one_is_not(tmp_path: Path) -> None:
    stored(tmp_path / "run", data.environment(ceilings={}, probes=[]))
    lines = [
        {"probe": PROBE}, {"probe": {**PROBE, "when": 1}}, {"ceilings": {"entries": {}}}, [], {"ceilings": None},
        {"ceilings": {**data.ceilings(data.POCL), "entries": []}}, {"ceilings": data.ceilings(data.POCL)},
    ]  # fmt: skip
    content = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "run" / CEILINGS).write_text(content + "no JSON\n" + '{"probe": {"dev')
    known, complaints = told(tmp_path / "run")
    assert known["probes"] == [PROBE] and known["ceilings"] == {data.POCL: data.ceilings(data.POCL)}
    assert [complaint.partition(": ")[0] for complaint in complaints] == [f"{CEILINGS}:{n}" for n in (2, 3, 4, 5, 6, 8)]
    assert complaints[0].endswith("when: input should be a valid string, got 1")
    assert complaints[1].endswith("expected ceilings of a device, or a probe")


def test_every_field_that_a_run_writes_has_a_form() -> None:
    known = {*environment.FIELDS, *environment.ENTRIES, "schema_version", "probes"}
    assert set(data.environment()) <= known
