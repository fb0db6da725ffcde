"""The key of a case follows every file that decides a result, and no other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfport.model.device import DeviceInfo
from perfport.model.record import Identity
from perfport.run import keys
from perfport.run.keys import PACKAGE, case_key, digest_of, harness_digest, harness_files

BELONGING = [path.relative_to(PACKAGE).as_posix() for path in harness_files()]
#: Files without which results of old and new code would be mixed.
DECISIVE = {
    "backend/base.py", "backend/opencl.py", "backend/dialect_opencl.h", "measure/sampling.py", "measure/intervals.py",
    "measure/roofline.py", "measure/cache.py", "measure/contention.py", "measure/repeats.py",
    "measure/kernels/flush.cl", "measure/ceilings/sweeping.py", "workload/execution.py", "workload/outputs.py",
    "workload/setup.py", "workload/source.py", "run/worker/serving.py", "run/worker/group.py",
    "run/worker/placement.py", "model/work.py", "model/record.py", "model/arithmetic.py",
}  # fmt: skip
#: Code that judges, shows or starts, and changes no result.
OTHERS = [
    path.relative_to(PACKAGE).as_posix()
    for name in ("report", "interop", "nightly", "judge", "store", "untimed", "machine")
    for path in sorted((PACKAGE / name).rglob("*.py"))[:3]
] + ["cli/app.py", "run/runner.py", "run/progress.py", "run/local.py", "model/published.py"]  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package."""
    folder = tmp_path_factory.mktemp("copy") / "perfport"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def changed(path: Path) -> Iterator[None]:
    """Add a line to a file for a while."""
    before = path.read_bytes()
    path.write_bytes(before + b"\n# changed\n")
    yield
    path.write_bytes(before)


def test_what_belongs() -> None:
    assert set(BELONGING) >= DECISIVE, DECISIVE - set(BELONGING)
    assert not set(BELONGING) & set(OTHERS)


def test_a_copy_has_the_same_digest(copy: Path) -> None:
    assert digest_of(copy) == harness_digest()
    (copy / "measure" / "__pycache__").mkdir()
    (copy / "measure" / "__pycache__" / "sampling.pyc").write_text("what a run leaves behind")
    assert digest_of(copy) == harness_digest()


@pytest.mark.parametrize("name", BELONGING)
def test_a_change_of_what_belongs_is_another_digest(copy: Path, name: str) -> None:
    for _ in changed(copy / name):
        assert digest_of(copy) != harness_digest()


@pytest.mark.parametrize("name", OTHERS)
def test_a_change_elsewhere_is_none(copy: Path, name: str) -> None:
    for _ in changed(copy / name):
        assert digest_of(copy) == harness_digest()


def test_new_modules_and_names_count(copy: Path) -> None:
    new = copy / "measure" / "medians.py"
    new.write_text("")
    empty = digest_of(copy)
    new.rename(copy / "measure" / "means.py")
    assert len({harness_digest(), empty, digest_of(copy)}) == 3
    (copy / "measure" / "means.py").unlink()


IDENTITY = Identity(workload="w", problem="p", variant="v", devices=["d"], backend="opencl")
DEVICE = DeviceInfo(
    id="d", backend="opencl", platform="P", name="N", chip="c", kind="cpu", driver="1", compute_units=4,
    memory_bytes=1 << 30, max_alloc_bytes=1 << 28, local_memory_bytes=1 << 15, max_work_group=256,
)  # fmt: skip
CASE: dict[str, Any] = {
    "identity": IDENTITY, "macros": {"a": 1, "b": 2}, "device": DEVICE, "cache_state": "cold", "workload_digest": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"identity": IDENTITY.model_copy(update={"variant": "another"})}, {"macros": {"a": 1, "b": 3}},
        {"device": DEVICE.model_copy(update={"driver": "2"})}, {"device": DEVICE.model_copy(update={"chip": "d"})},
        {"cache_state": "warm"}, {"workload_digest": "1"},
    ],
)  # fmt: skip
def test_each_part_changes_the_key(other: dict[str, Any]) -> None:
    assert case_key(**{**CASE, **other}) != case_key(**CASE)


def test_the_harness_changes_the_key_and_the_order_of_macros_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    before = case_key(**CASE)
    assert case_key(**{**CASE, "macros": {"b": 2, "a": 1}}) == before
    monkeypatch.setattr(keys, "harness_digest", lambda: "another harness")
    assert case_key(**CASE) != before
