"""Every reader takes its seeds and answers what fuzzing brought up with a documented error; a fault would be seen."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import pytest
from fuzz_mutations import mutated
from fuzz_targets import MESSAGE_LIMIT, TARGETS, Broken, Target, tried

from perfport.model.errors import CompileError, UsageError

HERE = Path(__file__).parent
KEPT = sorted(path for name in TARGETS for path in (HERE / "kept" / name).glob("*"))


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read(name: str, tmp_path: Path) -> None:
    seeds = TARGETS[name].seeds()
    assert seeds
    assert {seed: tried(TARGETS[name], content, tmp_path) for seed, content in seeds.items()} == dict.fromkeys(
        seeds, ""
    )


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_fuzzing_kept_is_read_or_refused(path: Path, tmp_path: Path) -> None:
    tried(TARGETS[path.parent.name], path.read_bytes(), tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_read_or_refused(name: str, tmp_path: Path) -> None:
    """A hundred, drawn by a fixed seed: what a reader forgets at once, no fuzzer needs to tell."""
    target, rng = TARGETS[name], random.Random(name)
    seeds = list(target.seeds().values())

    def flipped(content: bytes, most: int) -> bytes:
        changed = bytearray(content[:most] or b"\0")
        for _ in range(rng.choice((1, 1, 4))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.2 else changed)

    for _ in range(100):
        tried(target, mutated(target.form, rng.choice(seeds), rng, flipped, 1 << 16), tmp_path)


def raising(error: Exception) -> Any:
    def read(path: Path) -> None:
        raise error

    return read


def test_a_reader_that_raises_something_else_is_seen(tmp_path: Path) -> None:
    for error in (IndexError("x"), RecursionError(), MemoryError(), CompileError("a.json")):
        with pytest.raises(type(error)):
            tried(Target(raising(error), "a.json", dict), b"", tmp_path)
    with pytest.raises(Broken, match="does not name"):
        tried(Target(raising(UsageError("something is wrong")), "a.json", dict), b"", tmp_path)
    with pytest.raises(Broken, match="a message of"):
        tried(Target(raising(UsageError("a.json" + MESSAGE_LIMIT * "x")), "a.json", dict), b"", tmp_path)
    assert tried(Target(raising(UsageError("a.json: wrong")), "a.json", dict), b"", tmp_path) == "a.json: wrong"


def test_mutations_keep_the_outer_form() -> None:
    content = json.dumps({"a": [1, {"b": 2.5}], "c": "text"}).encode()
    made = [mutated("json", content, random.Random(seed), lambda old, most: b"", 1 << 16) for seed in range(100)]
    assert len(set(made)) > 30
    for each in filter(None, made):
        if not each.count(b"[[[["):
            json.loads(each)


def test_findings_are_kept_once_for_each_fault(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("fuzz", HERE / "fuzz.py")
    assert spec and spec.loader
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    findings = driver.Findings(tmp_path)
    for content, error in ((b"1", KeyError("a")), (b"2", KeyError("b")), (b"3", ValueError("c"))):
        try:
            raise error
        except Exception as raised:
            findings.add(content, raised)
    assert sorted(path.read_bytes() for path in tmp_path.glob("*.bin")) == [b"1", b"3"]
