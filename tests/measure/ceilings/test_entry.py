"""What a sweep leaves behind survives the disk, and unknown keys do not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from ceilings_bench import SmallBench
from pydantic import ValidationError

from perfport.backend.offline import OfflineDevice, cuda_info, opencl_info
from perfport.measure.ceilings import KINDS, caches
from perfport.measure.ceilings.entry import SWEEP_VERSION, Ceiling, Ceilings

#: Digest of all shapes of a sweep on a CPU of `CACHES`, by its version.
SHAPES = {13: "afffd425c334b8dd"}
CACHES = (("1", "Data", "32K", "0"), ("2", "Unified", "512K", "0"), ("3", "Unified", "32768K", "0-1"))


def test_shapes_that_change_have_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a user's stored ceilings are taken for those of the new shapes.

    A CPU's sets follow the caches that the system tells of, so these are told here.
    """
    for number, cache in enumerate(CACHES):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in zip(("level", "type", "size", "shared_cpu_list"), cache, strict=True):
            (folder / name).write_text(f"{value}\n")
    monkeypatch.setattr(caches, "SYSTEM_CACHES", tmp_path)
    shapes = []
    for info in (cuda_info("sm_90"), opencl_info("gpu"), opencl_info("cpu")):
        bench = SmallBench(OfflineDevice(info))  # type: ignore[arg-type]
        shapes += [[name, full, list(KINDS[name].shapes(bench, full))] for name in KINDS for full in (False, True)]
    digest = hashlib.sha256(json.dumps(shapes).encode()).hexdigest()[:16]
    assert SHAPES.get(SWEEP_VERSION) == digest, f"shapes {digest}: raise SWEEP_VERSION, and set both here"


def test_ceilings_survive_json() -> None:
    curve = [(1024.0, 2e11), (2048.0, 1e11)]
    entries = {"l1_read": Ceiling(value=1e11, low=9e10, high=1.1e11, unit="B/s", curve=curve)}
    made = Ceilings(device="d", driver="1", date="now", entries=entries, absent={"l2_read": "no such level"})
    assert Ceilings.model_validate_json(made.model_dump_json()) == made
    assert made.version == SWEEP_VERSION


@pytest.mark.parametrize("change", [{"colour": "red"}, {"direction": "sideways"}, {"value": "fast"}])
def test_what_is_no_ceiling_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(change))):
        Ceiling.model_validate({"value": 1.0, "low": 1.0, "high": 1.0, "unit": "B/s"} | change)
