"""Checking searches: every fault of a log, and that what is committed has none."""

from __future__ import annotations

from pathlib import Path

import pytest
import search_log

from perfport.store.results import faults
from perfport.tune.log import Search, find_logs, read
from perfport.tune.validate import validate_searches

COMMITTED = find_logs(Path(__file__).parents[2] / "results" / "committed" / "searches")


def test_each_fault_of_a_log_is_told(tmp_path: Path) -> None:
    log = search_log.write(tmp_path / "one") / "tune.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:3], '{"kind":"trial"}\n', '{"kind":"other"}\n', *lines[3:], '{"kind":"tri']))
    (checked,) = validate_searches(tmp_path)
    assert checked.entries == len(lines), "a last line that is torn is of a search that was killed"
    first, second = checked.faults
    assert first.startswith(f"{log}:4: ") and second.startswith(f"{log}:5: expected a line with one of the kinds")


def test_where_there_is_no_search_nothing_is_checked(tmp_path: Path) -> None:
    assert list(validate_searches(tmp_path)) == []


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_a_committed_search_is_valid_and_of_a_clean_commit(folder: Path) -> None:
    (checked,) = validate_searches(folder)
    assert checked.faults == [] and checked.entries > 2
    assert not (folder / "final").exists() or faults(folder / "final") == []
    (search,) = (entry for entry in read(folder / "tune.jsonl") if isinstance(entry, Search))
    assert len(search.commit) == 40, search.commit
