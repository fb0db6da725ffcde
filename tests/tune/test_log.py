"""The log of a search: what is written is read, what is torn or strange is left out."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import search_log

from perfport.model.errors import UsageError
from perfport.model.record import Status
from perfport.tune.log import LOG, Log, Result, Search, Trial, find_logs, read

HEADER = Search(name="x", started="2026-11-24", seed=1, objective="mean", commit="abc", code="def", devices={})
TRIAL = Trial(
    device="opencl:pocl:0", variant="w/p/v", preset="quick", config={"group": 64, "form": "a b", "part": 0.5},
    status=Status.OK, seconds=1e-3, relative=1.0, times=[1e-3, 2e-3],
)  # fmt: skip


def test_entries_are_kept_and_read(tmp_path: Path) -> None:
    result = Result(device="opencl:pocl:0", variant="w/p/v", presets={"quick": 1.0}, tried=1, of=9, reason="none")
    log = Log(tmp_path / "own")
    for entry in (HEADER, TRIAL, result):
        log.append(entry)
    log.close()
    again = Log(tmp_path / "own")
    assert again.entries == [HEADER, TRIAL, result] and isinstance(again.entries[1], Trial)
    assert again.entries[1].config == TRIAL.config
    again.close()


def test_a_torn_line_is_cut_off_and_a_strange_one_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / LOG
    broken = TRIAL.model_dump_json().replace('"relative":1.0', '"relative":-1.0')
    rows = [HEADER.model_dump_json(), broken, '{"kind":"other"}', TRIAL.model_dump_json()]
    path.write_text("\n".join(rows) + '\n{"kind":"trial","dev')
    with caplog.at_level(logging.WARNING):
        assert list(read(path)) == [HEADER, TRIAL]
    assert len(caplog.messages) == 2 and f"{path}:2" in caplog.messages[0] and f"{path}:3" in caplog.messages[1]
    log = Log(tmp_path)
    log.append(TRIAL)
    log.close()
    assert path.read_text().splitlines()[4] == TRIAL.model_dump_json()


@pytest.mark.parametrize("content", ["", "hello\n", '{"kind":"night"}\n', "[1]\n"])
def test_what_is_no_log_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / LOG).write_text(content)
    if not content:
        assert list(read(tmp_path / LOG)) == []
        return
    with pytest.raises(UsageError, match="not what 'perfport tune' writes"):
        list(read(tmp_path / LOG))


@pytest.mark.parametrize("name", ["a\x1b[2J", "x" * 999, ""])
def test_names_that_no_page_can_show_are_refused(tmp_path: Path, name: str) -> None:
    row = TRIAL.model_dump_json().replace('"w/p/v"', json.dumps(name))
    (tmp_path / LOG).write_text(f"{HEADER.model_dump_json()}\n{row}\n")
    assert list(read(tmp_path / LOG)) == [HEADER]


def test_searches_are_found(tmp_path: Path) -> None:
    for name in ("b", "a"):
        log = Log(tmp_path / name)
        log.append(HEADER)
        log.close()
    assert [folder.name for folder in find_logs(tmp_path)] == ["a", "b"]
    assert find_logs(tmp_path / "a") == [tmp_path / "a"]
    with pytest.raises(UsageError, match="no search here"):
        find_logs(tmp_path / "nowhere")


@pytest.mark.parametrize("gain", [0.0, -4.0])
def test_a_gain_that_is_no_ratio_is_left_out(tmp_path: Path, gain: float, caplog: pytest.LogCaptureFixture) -> None:
    log = search_log.write(tmp_path) / "tune.jsonl"
    log.write_text(log.read_text().replace('"low":3.9', f'"low":{gain}'))
    assert not [each for each in read(log) if isinstance(each, Result)]
    assert "a gain is a ratio of times, above zero" in caplog.text
