"""A record that cannot be is refused where it is read: by line and key, with what is expected and what is given."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.errors import UsageError
from perfport.model.record import SCHEMA_VERSION
from perfport.store.reading import LONGEST, MOST_LINE, MOST_NAME, NotJsonError, lines, parse, read_records
from perfport.store.results import RECORDS, each_run, faults, find_runs, load_runs

COMMITTED = sorted((Path(__file__).parents[2] / "results" / "committed").glob(f"*/{RECORDS}"))
READS = f"this version of perfport reads {SCHEMA_VERSION}"
SPAN = ("timing", "summary", "span")
DEEP: Any = 0
for _ in range(40):
    DEEP = [DEEP]


def put(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set a value in a record."""

    def change(content: dict[str, Any]) -> None:
        at: Any = content
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = value

    return change


def all_times(seconds: float) -> Callable[[dict[str, Any]], None]:
    """Give every time of the ranked clock one value."""

    def change(content: dict[str, Any]) -> None:
        timing = content["timing"]
        timing["span"] = [seconds] * len(timing["span"])
        names = ("median", "ci_low", "ci_high", "q1", "q3", "minimum", "maximum")
        timing["summary"]["span"] |= dict.fromkeys(names, seconds)

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (all_times(0.0), "timing.span: expected seconds from 1e-12 to 1e+09, got 0.0"),
        (all_times(1e308), "timing.span: expected seconds from 1e-12 to 1e+09, got 1e+308"),
        (all_times(5e-324), "timing.span: expected seconds from 1e-12 to 1e+09, got 5e-324"),
        (all_times(-1.0), "timing.span.0: input should be greater than or equal to 0, got -1.0"),
        (all_times(float("nan")), "timing.span.0: input should be a finite number, got nan"),
        (put(*SPAN, "maximum", value=1e10), "timing.summary.span.maximum: expected seconds from 1e-12 to 1e+09"),
        (put(*SPAN, "minimum", value=0.0), "timing.summary.span.minimum: expected seconds from 1e-12"),
        (put(*SPAN, "ci_low", value=0.0), "timing.summary.span.ci_low: expected more than 0, got 0.0"),
        (put("timing", "summary", value={}), "timing: span: expected 0 samples, as in its summary"),
        (put("timing", "launches", value=10**400), "timing.launches: expected at most 1e+30, got <a number of"),
        (put("identity", "devices", value=[]), "identity.devices: expected at least one device, got none"),
        *(
            (put("identity", "devices", value=[name]), "identity.devices: expected the form backend:platform:number")
            for name in ("", "cpu", "a:b:c", "a:b:1\n", "../x:y:0", "opencl:pocl:", "a:b:" + 8 * "1", "a:\x1b[1m:0")
        ),
        (put("identity", "workload", value=""), "identity.workload: expected 1 to 500 printable characters, got ''"),
        (put("identity", "problem", value="a\x1b[31m"), "identity.problem: expected 1 to 500 printable characters"),
        (put("identity", "variant", value="v" * (MOST_NAME + 1)), "identity.variant: expected 1 to 500 printable"),
        (put("identity", "rung", value=10**40), "identity.rung: expected a number of at most 1e+30, got 1000"),
        (put("identity", "parameters", value={"n": 1e300}), "identity.parameters.n: expected a number of at most"),
        (put("extra", value={"a": [float("nan")]}), "extra.a.0: expected a number of at most 1e+30, got nan"),
        (put("extra", value={"a": DEEP}), ": expected at most 20 levels, got more"),
        (put("metric", "value", value=[1] * 1000), "metric.value: input should be a valid number"),
        (put("status", value="x" * 10_000), "status: input should be 'ok', "),
        (put("time", value="yesterday"), "time: expected a date and time in ISO 8601, got 'yesterday'"),
        (put("key", value=""), "key: expected 1 to 500 characters, got ''"),
        (put("schema_version", value=SCHEMA_VERSION + 1), f"schema version {SCHEMA_VERSION + 1}; {READS}"),
        (lambda content: content.pop("schema_version"), f"schema version None; {READS}"),
    ],
)
def test_what_cannot_be_is_named(change: Callable[[dict[str, Any]], None], complaint: str) -> None:
    content = json.loads(data.record("a", clock="span").model_dump_json(exclude_none=True))
    assert parse(json.dumps(content).encode(), "here").identity.variant == "a"
    change(content)
    with pytest.raises(UsageError) as error:
        parse(json.dumps(content).encode(), "here")
    said = str(error.value)
    assert said.startswith("here: ") and complaint in said and len(said) < 1000


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_committed_records_are_read(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    held = list(read_records(path))
    assert len(held) == path.read_bytes().count(b"\n") and not caplog.records
    longest = max(max(record.timing.span or [0]) for record in held if record.timing)
    assert longest < LONGEST / 1000, "the limit is far from what is measured"


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_committed_runs_hold_what_they_say(path: Path) -> None:
    assert not faults(path.parent)


def test_what_records_have_in_common_is_held_once_and_changes_none(tmp_path: Path) -> None:
    first, again, other = (data.record(name) for name in "abc")
    changed = {name: each.model_copy(update={"high": 2 * each.high}) for name, each in other.ceilings.items()}
    others = [
        again,
        other.model_copy(update={"ceilings": changed}),
        data.record("d").model_copy(update={"ceilings": {}}),
    ]
    path = data.store(tmp_path / "run", [first, *others]).folder / RECORDS
    held = list(read_records(path))
    assert held == [parse(line, "") for _, line, _ in lines(path)]
    assert held[0].ceilings and held[0].ceilings is held[1].ceilings
    assert held[2].ceilings != held[0].ceilings and held[3].ceilings == {}
    assert [each.model_fields_set for each in held] == [parse(line, "").model_fields_set for _, line, _ in lines(path)]
    assert held[0].model_fields_set is held[1].model_fields_set


def test_lines_are_read_one_by_one_and_never_too_much_of_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(b"\xef\xbb\xbfone\r\n \n")
        file.seek(3 * MOST_LINE)
        file.write(b"\nthree\ntorn")
    assert [(n, len(line), last) for n, line, last in lines(path)] == [
        (1, 3, False), (3, MOST_LINE + 1, False), (4, 5, False), (5, 4, True)
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"^here: expected at most 33,554,432 bytes in a line, got more"):
        parse(bytes(MOST_LINE + 1), "here")


def test_a_bad_line_is_named_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = data.store(tmp_path / "run", [data.record(name) for name in "abc"]).folder / RECORDS
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([content[0], b"{}\n", *content[1:], b'{"torn']))
    with caplog.at_level(logging.WARNING):
        assert [record.identity.variant for record in read_records(path)] == ["a", "b", "c"]
    assert caplog.messages == [f"left out: {path}:2: schema version None; {READS}"]
    path.write_bytes(b"[]\n{}\n")
    with pytest.raises(UsageError, match=r"none of 2 lines can be read; the first: .*:1: schema version None"):
        list(read_records(path))
    path.write_bytes(b"")
    assert list(read_records(path)) == [], "a run that has just begun"
    with pytest.raises(NotJsonError, match=r"^here: not JSON \(recursion limit exceeded"):
        parse(b"[" * 10_000, "here")


def test_of_several_runs_a_bad_one_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b", "c"):
        data.store(tmp_path / name, [data.record("v")])
    (tmp_path / "a" / RECORDS).write_text("no\n")
    (tmp_path / "b" / RECORDS).unlink()
    (tmp_path / "b" / RECORDS).symlink_to("nowhere")
    assert len(find_runs(tmp_path)) == 3
    assert [run.folder.name for run in each_run(tmp_path)] == ["c"]
    assert [message.partition(": cannot")[0] for message in caplog.messages] == [
        f"left out: {tmp_path}/a/{RECORDS}: none of 1 lines can be read; the first: {tmp_path}/a/{RECORDS}:1: "
        "not JSON (expected ident at line 1 column 2)",
        f"left out: {tmp_path}/b/{RECORDS}",
    ]
    with pytest.raises(UsageError, match="none of 1 lines"):
        load_runs([tmp_path / "a"])
    (tmp_path / "c" / RECORDS).write_text("no\n")
    with pytest.raises(UsageError, match="none of the 3 runs here can be read"):
        load_runs([tmp_path])
