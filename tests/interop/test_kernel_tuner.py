"""Kernel Tuner's files: caches are read as they are, strange ones refused; T4 has what a search has measured."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import search_log

from perfport.interop.kernel_tuner import read_cache, write_t4
from perfport.model.errors import UsageError

CACHE: dict[str, Any] = {
    "device_name": "A GPU", "kernel_name": "k", "problem_size": [4], "tune_params_keys": ["block", "tile"],
    "tune_params": {"block": [16, 32], "tile": [1, 2]}, "objective": "time",
    "cache": {
        "16,1": {"block": 16, "tile": 1, "time": 3.5, "times": [3.4, 3.6]},
        "16,2": {"block": 16, "tile": 2, "time": "RuntimeFailedConfig"},
        "32,1": {"block": 32, "tile": 1, "time": 2.5},
    },
}  # fmt: skip


def write(path: Path, **change: Any) -> Path:
    text = json.dumps({**CACHE, **change}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_cache_is_a_space_with_times(tmp_path: Path, name: str) -> None:
    measured = read_cache(write(tmp_path / name))
    assert (measured.device, measured.kernel, measured.best) == ("A GPU", "k", 2.5)
    assert sorted(measured.times.values(), key=str) == [2.5, 3.5, None]
    assert [config["block"] for config in measured.space.every()] == [16, 16, 32]  # what has no entry cannot exist


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cache": {}}, "at least one configuration with a time"),
        ({"cache": {"x": {"block": 16, "time": 1.0}}}, "a value of 'tile'"),
        ({"cache": {"x": {"block": 16, "tile": 1, "time": 1e20}}}, "at least one configuration with a time"),
        ({"tune_params": {"block": [16]}}, "values of 'tile'"),
        ({"tune_params_keys": []}, "tune_params_keys"),
        ({"device_name": None}, "device_name"),
    ],
)
def test_what_is_no_cache_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_cache(write(tmp_path / "a.json", **change))
    assert told in str(raised.value) and "a.json" in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", gzip.compress(b"{}")[:-6], gzip.compress(b"[1]")],
    ids=["empty", "text", "cut off", "a list"],  # not the bytes, which hold the time: two workers would differ
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"a\.json\.gz"):
        read_cache(path)


def test_t4_has_every_configuration_that_was_tried(tmp_path: Path) -> None:
    (file,) = write_t4(search_log.write(tmp_path / "search"), tmp_path / "t4")
    written = json.loads(file.read_text())
    assert written["schema_version"] == "1.0.0" and len(written["results"]) == 22  # two were not worth timing
    first = written["results"][0]
    assert first["configuration"] == {"group": 16, "unroll": 1, "form": "a"}
    assert first["invalidity"] == "correct" and first["correctness"] == 1 and first["objectives"] == ["time"]
    assert first["measurements"] == [{"name": "time", "value": pytest.approx(1.01), "unit": "ms"}]
    assert first["times"]["runtimes"] == pytest.approx([1.01] * 3)
    failed = [each for each in written["results"] if each["invalidity"] != "correct"]
    assert {each["invalidity"] for each in failed} == {"timeout"} and all(not each["measurements"] for each in failed)
