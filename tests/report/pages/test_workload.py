"""The suite report's page of one workload: it holds what concerns this workload, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.judge.claims import Claim
from perfport.report.pages import workload
from perfport.report.pages.workload import inconsistent, page
from perfport.report.parts.material import Material
from perfport.store.collection import Collection

CLAIM: dict[str, Any] = {
    "id": "faster", "statement": "It is faster.", "source": "s", "problem": "rows", "compare": "speedup",
    "subject": {"variant": "b"}, "reference": {"variant": "a"}, "at_least": 2,
}  # fmt: skip


def material(folder: Path, *more: Any) -> Material:
    """Return what a report of two workloads is made of."""
    records = [data.record("a", 0.05, rung=1), data.record("b", 0.02, rung=2)]
    records += [data.record("elsewhere", workload="other"), *more]
    claims = {name: [Claim.model_validate(CLAIM)] for name in ("demo", "other")}
    return Material.of(Collection([data.store(folder / "run", records)]), claims, [])


def test_a_page_is_of_one_workload(tmp_path: Path) -> None:
    made = material(tmp_path)
    only = made.only("demo")
    for name in ("ladders", "first", "metrics", "judgements"):
        assert 0 < len(getattr(only, name)) < len(getattr(made, name)), name
    content, plots = page("demo", made, "suite.md")
    assert content.startswith("# Demonstration workload (`demo`)\n\n[Summary](../suite.md)")
    assert "`b`" in content and "elsewhere" not in content
    assert plots and all(f"]({plot.name})" in content for plot in plots)


def test_of_many_ladders_those_at_the_headline_sizes_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a setting that is none the mark tells, and its parameters, for a preset's may have been changed."""
    monkeypatch.setattr(workload, "MOST_BEST", 0)
    sizes = {"headline": {"cpu": {"points": 1}, "gpu": {"points": 1}}}
    environment = data.environment(workloads={"demo": {"problems": {"rows": sizes}}})
    records = [
        data.record("a", device=device, parameters={"points": points}, preset=preset, key=f"{device}{points}")
        for device, preset, points in ((data.POCL, "quick", 1), (data.POCL, "large", 2), (data.INTEL, "large", 2))
    ]
    content, _ = page("demo", Material.of(Collection([data.store(tmp_path, records, environment)]), {}, []), "s.md")
    best = content[: content.index("## ")]
    lines = [line.split("|")[2:4] for line in best.splitlines() if line.startswith("| `demo/rows`")]
    rows = [(setting.strip(), site.strip(" `")) for setting, site in lines]
    assert rows == [("quick", data.POCL), ("large: points=2 ○", data.INTEL)]
    assert "○ not the headline size" in best


def test_settings_on_several_inputs_have_their_ladders(tmp_path: Path) -> None:
    """A second run on other inputs is other quantities: each has its tables, and no setting is lost."""
    made = material(tmp_path, *(data.record(v, 0.03, key=v * 16, inputs={"a": 9}, rung=1) for v in ("a", "b")))
    assert [ladder.subject.inputs for ladder in made.only("demo").ladders] == ["seed 0", "seed 9"]
    content, _ = page("demo", made, "suite.md")
    assert content.count("<summary>quick: ") == 1


def test_a_source_without_contradictions_has_none() -> None:
    assert inconsistent(["no such workload"]) == "None is known."
