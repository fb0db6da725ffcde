"""What a space looks like, of a log whose space is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import search_log

from perfport.model.record import Status
from perfport.tune.anatomy import found


def test_shares_are_of_what_was_timed(tmp_path: Path) -> None:
    known = found(search_log.write(tmp_path))
    (anatomy,) = known.anatomies
    assert (anatomy.tried, anatomy.size, len(anatomy.relative), anatomy.hopeless) == (24, 24, 20, 2)
    assert anatomy.failed == {Status.TIMEOUT: 2}
    assert anatomy.relative[0] == 1.0 and anatomy.default == pytest.approx(4.0)
    assert anatomy.near == pytest.approx(6 / 20)  # the smallest group, whatever the others
    assert anatomy.best["group"] == 16 and anatomy.best["unroll"] == 1
    assert known.search and known.search.name == "demo" and known.results[0].gain


def test_what_the_profile_had_stands_beside_the_defaults(tmp_path: Path) -> None:
    log = search_log.write(tmp_path) / "tune.jsonl"
    assert found(tmp_path).anatomies[0].profile is None
    content = log.read_text()
    for config, relative in (({"group": 32, "unroll": 1, "form": "b"}, 2.0), ({"group": 17}, None)):
        log.write_text(content.replace('"profile":null', f'"profile":{json.dumps(config)}'))
        (anatomy,) = found(tmp_path).anatomies
        assert anatomy.profile == (pytest.approx(relative) if relative else None), "none where it was not timed"


def test_where_the_reference_was_not_measured_beside_itself_seconds_count(tmp_path: Path) -> None:
    """In such logs each was measured beside the best so far, and errors of ratios multiply."""
    log = search_log.write(tmp_path) / "tune.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    trials = [line for line in lines if line["kind"] == "trial" and line["relative"]]
    for number, trial in enumerate(trials):
        trial["relative"] *= 0.9**number
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    (known,) = found(tmp_path).anatomies
    assert known.default == pytest.approx(4.0) and known.relative[-1] == pytest.approx(8.24, rel=0.01)
    reference = next(trial for trial in trials if trial["config"] == search_log.DEFAULTS)
    reference["ratio"] = {"value": 1.0, "low": 0.99, "high": 1.01}
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    (known,) = found(tmp_path).anatomies
    assert known.default != pytest.approx(4.0, rel=0.1)


def test_importance_tells_what_decides(tmp_path: Path) -> None:
    (anatomy,) = found(search_log.write(tmp_path)).anatomies
    first, *_ = anatomy.importance
    assert first == "group" and anatomy.importance["group"] > 1.0 > 10 * abs(anatomy.importance["form"])
    assert found(tmp_path).anatomies[0].importance == anatomy.importance


def test_of_few_nothing_is_said(tmp_path: Path) -> None:
    search_log.write(tmp_path)
    log = tmp_path / "tune.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:10]))
    (anatomy,) = found(tmp_path).anatomies
    assert anatomy.importance == {} and anatomy.tried == 8


def test_the_last_result_of_a_variant_counts(tmp_path: Path) -> None:
    assert len(found(search_log.write(tmp_path, search_log.VARIANT, search_log.VARIANT, "demo/rows/x")).results) == 2
