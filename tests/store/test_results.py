"""The store: append-only, exclusive, and whole after a kill or on a full disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import report_data as data

from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import SCHEMA_VERSION, Failure, Identity, Record, Status
from perfport.store.environment import CEILINGS, ENVIRONMENT, ENVIRONMENT_VERSION
from perfport.store.reading import read_records
from perfport.store.results import EXPERIMENT, RECORDS, Run, Writer, faults, find_runs

HERE = Path(__file__).parent


def record(key: str, status: Status = Status.CRASHED, reason: str = "r") -> Record:
    identity = Identity(workload="w", problem="p", variant="v", devices=["opencl:pocl:0"], backend="opencl")
    return Record(
        key=key,
        run="r",
        time="2026-11-21T12:00:00+00:00",
        status=status,
        identity=identity,
        failure=Failure(reason=reason),
    )


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run of three records."""
    with Writer(tmp_path / "run") as writer:
        writer.environment({"schema_version": ENVIRONMENT_VERSION, "run": "run", "seed": 5})
        for key in "abc":
            writer.append(record(key))
    return tmp_path / "run"


def keys(folder: Path) -> list[str]:
    return [one.key for one in read_records(folder / RECORDS)]


def test_what_is_written_is_read(stored: Path) -> None:
    run = Run(stored)
    assert [one.key for one in run.records] == ["a", "b", "c"]
    assert run.records[0] == record("a") and run.environment["seed"] == 5 and run.name == "run"


def test_appending_changes_no_byte_before(stored: Path) -> None:
    before = (stored / RECORDS).read_bytes()
    with Writer(stored) as writer:
        writer.append(record("d"))
    after = (stored / RECORDS).read_bytes()
    assert after.startswith(before) and keys(stored) == ["a", "b", "c", "d"]
    assert b"null" not in after, "what is unknown is left out"


def test_the_latest_record_of_a_key_counts(stored: Path) -> None:
    with Writer(stored) as writer:
        writer.append(record("a", reason="again"))
    found = Run(stored).records
    assert [one.key for one in found] == ["b", "c", "a"] and found[-1].failure == Failure(reason="again")


@pytest.mark.parametrize(
    "torn", [f'{{"schema_version":{SCHEMA_VERSION},"key":"d"', "{", '{"a": "\u00e9'.encode()[:-1], b"\x00\x00"]
)
def test_a_torn_last_line_is_skipped_and_cut(stored: Path, torn: str | bytes) -> None:
    path = stored / RECORDS
    whole = path.read_bytes()
    path.write_bytes(whole + (torn.encode() if isinstance(torn, str) else torn))
    assert keys(stored) == ["a", "b", "c"]
    with Writer(stored) as writer:
        assert path.read_bytes() == whole
        writer.append(record("d"))
    assert keys(stored) == ["a", "b", "c", "d"]


def test_every_cut_of_the_file_leaves_the_whole_records_before_it(stored: Path) -> None:
    path = stored / RECORDS
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for cut in range(0, len(whole), 37):
        path.write_bytes(whole[:cut])
        with Writer(stored):
            pass
        assert len(keys(stored)) == sum(end <= cut for end in ends)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("not json", f"{RECORDS}:2: not JSON"),
        ('{"schema_version": 1}', f"{RECORDS}:2: schema version 1; this version of perfport reads {SCHEMA_VERSION}"),
        ("{}", f"{RECORDS}:2: schema version None"),
        ("[]", f"{RECORDS}:2: schema version None"),
        (f'{{"schema_version": {SCHEMA_VERSION}, "key": "x"}}', f"{RECORDS}:2: run: field required"),
    ],
)
def test_a_bad_line_within_the_file_is_named_and_left_out(
    stored: Path, line: str, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = stored / RECORDS
    lines = path.read_text().splitlines()
    lines[1] = line
    path.write_text("\n".join(lines) + "\n")
    assert [one.key for one in Run(stored).records] == ["a", "c"]
    assert len(caplog.messages) == 1 and expected in caplog.messages[0]


def test_an_unknown_field_or_status_is_named(stored: Path) -> None:
    path = stored / RECORDS
    content = json.loads(path.read_text().splitlines()[0])
    for change in ({"colour": "red"}, {"status": "splendid"}):
        path.write_text(json.dumps({**content, **change}) + "\n")
        with pytest.raises(UsageError, match=next(iter(change))):
            Run(stored)


def test_one_writer_at_a_time(stored: Path) -> None:
    with Writer(stored) as first:
        with pytest.raises(InfrastructureError, match="another run is writing here"):
            Writer(stored)
        first.append(record("d"))
    with Writer(stored) as second:
        second.append(record("e"))
    assert keys(stored) == ["a", "b", "c", "d", "e"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InfrastructureError, match="cannot write results here"):
            Writer(folder)


def test_records_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / RECORDS).mkdir(parents=True)
    with pytest.raises(InfrastructureError, match="cannot write results here"), Writer(tmp_path):
        pass


FULL = """
import resource, sys
sys.path[:0] = [{tests!r}, {support!r}]
from pathlib import Path
from test_results import Writer, record, InfrastructureError
folder = Path({folder!r})
size = (folder / "records.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + {room}, size + {room}))
try:
    with Writer(folder) as writer:
        writer.append(record("d"))
        writer.append(record("e", reason="x" * 10_000))
except InfrastructureError as error:
    print("SAID", error)
"""


@pytest.mark.parametrize("room", [0, 100, 2000])
def test_a_full_disk_leaves_whole_records(stored: Path, room: int) -> None:
    before = (stored / RECORDS).read_bytes()
    script = FULL.format(tests=str(HERE), support=str(HERE.parent / "support"), folder=str(stored), room=room)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("SAID") and "cannot write a record" in done.stdout, done.stderr
    after = (stored / RECORDS).read_bytes()
    assert after.startswith(before) and after.endswith(b"\n")
    assert keys(stored) == ["a", "b", "c"] + (["d"] if room == 2000 else [])


def test_find_runs(stored: Path, tmp_path: Path) -> None:
    with Writer(tmp_path / "another") as writer:
        writer.append(record("z"))
    assert find_runs(stored) == [stored]
    assert find_runs(tmp_path) == [tmp_path / "another", stored]
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "absent"):
        with pytest.raises(UsageError, match="no results here"):
            find_runs(nothing)


def test_faults_of_a_run_are_named(stored: Path) -> None:
    """A torn line, a line that is no record, a status without what it needs, and cases that are missing."""
    assert faults(stored) == []
    with Writer(stored) as writer:
        writer.environment({"schema_version": ENVIRONMENT_VERSION, "run": "run", "seed": 5, "planned": 6})
        writer.append(record("d", Status.OK))
        writer.append(record("e").model_copy(update={"failure": None}))
    path = stored / RECORDS
    with path.open("a") as file:
        file.write('{"no": 1}\n{"key": ')
    said = faults(stored)
    assert said[0] == f"{path}:4: timing: expected samples with status 'ok', got none"
    assert said[1] == f"{path}:5: failure: expected a reason with status 'crashed', got none"
    assert said[2].startswith(f"{path}:6: schema version None")
    assert said[3] == f"{path}:7: torn, the run was stopped while it wrote" and len(said) == 4
    path.write_text("{\n" + path.read_text().splitlines()[0] + "\n")
    said = faults(stored)
    assert said == [
        f"{path}:1: not JSON (EOF while parsing an object at line 1 column 1)",
        f"{path}: expected records of the 6 planned cases, got 2: cut off or not finished",
    ]
    path.unlink()
    assert faults(stored)[0] == f"{path}: cannot be read (No such file or directory)"
    (stored / ENVIRONMENT).write_text("{")
    assert faults(stored)[0].startswith(f"{stored / ENVIRONMENT}: not JSON")
    (stored / ENVIRONMENT).unlink()
    (stored / CEILINGS).write_text("[]\n")
    assert [said.partition(": ")[0] for said in faults(stored)[:2]] == [
        f"{stored / ENVIRONMENT}",
        f"{stored / CEILINGS}:1",
    ]


@pytest.mark.parametrize(("status", "passed", "doubted"), [
    (Status.OK, True, False), (Status.OK, False, True), (Status.CONTENDED, False, True), (Status.WRONG, False, False),
])  # fmt: skip
def test_a_result_that_is_not_verified_is_a_fault(tmp_path: Path, status: Status, passed: bool, doubted: bool) -> None:
    one = data.record("a", status=status).model_copy(update={"verification": data.verification(passed)})
    folder = data.store(tmp_path / "run", [one]).folder
    told = f"{folder / RECORDS}:1: verification.passed: expected true with status {status.value!r}, got false"
    assert (told in faults(folder)) == doubted


@pytest.mark.parametrize(("planned", "incomplete"), [(None, False), ("4", False), (2, False), (3, False), (4, True)])
def test_a_run_is_incomplete_where_records_of_its_plan_are_missing(
    stored: Path, planned: object, incomplete: bool
) -> None:
    with Writer(stored) as writer:
        writer.environment({"schema_version": ENVIRONMENT_VERSION, "run": "run", "planned": planned})
    assert Run(stored).incomplete == incomplete
    assert any("planned cases" in fault for fault in faults(stored)) == incomplete


def test_a_writer_makes_its_folder_and_leaves_no_file_open(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with Writer(folder) as writer:
        writer.append(record("a"))
    opened = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()]
    assert writer.folder == folder and not [name for name in opened if name.startswith(str(folder))]


def test_a_run_without_records_counts_where_it_is_asked_for(stored: Path) -> None:
    (stored / RECORDS).unlink()
    with pytest.raises(UsageError, match="no results here"):
        find_runs(stored, without_records=True)
    (stored / EXPERIMENT).write_text("name: e")
    assert find_runs(stored, without_records=True) == [stored]
    with pytest.raises(UsageError, match="no results here"):
        find_runs(stored)
