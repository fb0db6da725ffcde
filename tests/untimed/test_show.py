"""One case, shown to the author of its kernel: by name without any device, or by the key of a record."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.model.errors import UnavailableError, UsageError
from perfport.untimed import show


def named(**change: str) -> show.Subject:
    """A variant that ships, by its name."""
    return show.find(change.get("case", first_variant()), Path("nowhere"), change.get("preset", "tiny"), [])


def first_variant() -> str:
    """Name of the first rung of a ladder that ships."""
    from perfport.workload import discover

    rungs = discover(only="svm_rbf")["svm_rbf"].variants["rbf_rows"]
    return f"svm_rbf/rbf_rows/{next(name for name, variant in rungs.items() if variant.role == 'rung')}"


def test_a_variant_is_described_and_compiled_without_a_device() -> None:
    subject = named()
    described = show.described(subject)
    assert described["variant"] == subject.identity.variant
    assert described["problem"]["headline"] == {"cpu": "full", "gpu": "large"}
    assert ".target sm_90" in show.ptx(subject, "sm_90")
    assert show.log(subject) == "no failure is recorded for this case"


def test_source_needs_no_cuda_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise UnavailableError("planted: no NVRTC")

    monkeypatch.setattr("perfport.backend.nvrtc._library", missing)
    subject = named()
    text = show.source(subject, None)
    assert "__kernel void" in text and "-cl-std=CL1.2" in text
    with pytest.raises(UnavailableError, match="planted"):
        show.source(subject, "sm_90")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"case": "svm_rbf/rbf_rows/nothing"}, "nothing"),
        ({"case": "svm_rbb/rbf_rows/naive"}, "did you mean 'svm_rbf'"),
        ({"preset": "huge"}, "--preset: 'huge' is not one of tiny"),
    ],
)
def test_what_there_is_not_is_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        named(**change)


def test_a_target_is_a_compute_capability() -> None:
    with pytest.raises(UsageError, match="--target gfx90a: expected"):
        show.ptx(named(), "gfx90a")


def test_a_record_is_found_by_its_key(tmp_path: Path) -> None:
    record = data.record("a")
    data.store(tmp_path / "run", [record], data.environment((data.POCL,)))
    subject = show.find(record.key, tmp_path, "tiny", [])
    assert subject.record == record and show.described(subject)["key"] == record.key
    with pytest.raises(UsageError, match="no record of this key"):
        show.find("0" * 16, tmp_path, "tiny", [])
