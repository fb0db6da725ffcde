"""Commands about the form of files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import report_data as data
import search_log
import yaml
from commands import Cli

from perfport.model.record import Record
from perfport.run.experiment import Experiment

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("which", "model"), [("experiment", Experiment), ("record", Record)])
def test_schema(main: Cli, which: str, model: Any) -> None:
    code, out, _ = main("schema", which, discover=False)
    assert code == 0 and set(json.loads(out)["properties"]) == set(model.model_fields)


def test_validate_shipped_experiments(main: Cli) -> None:
    code, out, _ = main("validate", "quick")
    assert code == 0 and re.search(r"valid; [1-9]\d* cases", out)


def test_a_device_profile_is_checked_as_one(main: Cli, tmp_path: Path) -> None:
    shipped = ROOT / "device_profiles" / "h200.yaml"
    code, out, _ = main("validate", shipped)
    assert code == 0 and re.search(r"valid; NVIDIA H200 SXM 141 GB, [1-9]\d+ entries of tuned variants", out)
    file = tmp_path / "own.yaml"
    file.write_text(shipped.read_text().replace("dram_bandwidth", "dram_bandwith", 1))
    code, _, err = main("validate", file)
    assert code == 2 and f"{file}: ceilings.dram_bandwith: unknown key (did you mean 'dram_bandwidth'?)" in err


def test_searches_are_checked_with_their_finals(main: Cli, tmp_path: Path) -> None:
    one, two = (search_log.write(tmp_path / name) for name in ("one", "two"))
    data.store(one / "final", [data.record("a")])
    code, out, _ = main("validate", tmp_path)
    entries = len(search_log.entries())
    assert code == 0 and out.count(f": {entries} entries of a search, valid") == 2
    assert out.count(": 1 records, valid") == 1
    assert main("validate", one)[1].count(": 1 records, valid") == 1
    data.store(tmp_path / "run", [data.record("a")])
    assert main("validate", tmp_path)[1].count(": 1 records, valid") == 2, "runs beside searches"
    log = two / "tune.jsonl"
    log.write_text(log.read_text().replace('"kind":"trial"', '"kind":"trail"', 1))
    code, out, err = main("validate", tmp_path)
    assert code == 2 and f"{log}:3: expected a line with one of the kinds" in err
    assert "1 of 4 runs and searches are not valid" in err and f"{one}: {entries} entries" in out
    log.write_text("x\n")
    assert f"{log}:1: not what 'perfport tune' writes" in main("validate", two)[2]


@pytest.mark.parametrize(
    ("tune", "told"),
    [
        ({"variants": ["tild"]}, "tune.variants: unknown variant 'tild' (did you mean 'tiled'?)"),
        ({"presets": {"nope": 1}}, "unknown vocab_tree/kmeans_iteration: preset 'nope'"),
    ],
)
def test_what_a_search_would_refuse_is_not_valid(main: Cli, tmp_path: Path, tune: dict[str, Any], told: str) -> None:
    entry = {"workload": "vocab_tree", "problem": "kmeans_iteration", "presets": ["tiny"]}
    file = tmp_path / "search.yaml"
    file.write_text(yaml.safe_dump({"name": "search", "experiments": [entry], "tune": tune}))
    code, _, err = main("validate", file)
    assert code == 2 and told in err
