"""The cross-tuning matrix: slowdown against the device's own best."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import report_data as data

from perfport.collection import Collection
from perfport.crosstuning import slowdowns
from perfport.record import Record, Status
from perfport.report.crosstuning import view


def records() -> list[Record]:
    """Return a variant with its own and two other devices' parameters, and one with its own alone."""
    found = []
    for device, factor in ((data.POCL, 1.0), (data.INTEL, 2.0)):
        common = {"device": device, "ceilings": data.CEILINGS}
        found += [
            data.record("tuned", 0.020, key=f"n{device}", **common),
            data.record("tuned", 0.018, key=f"t{device}", tunables={"group": 64}, **common),
            data.record("tuned", 0.018 * (1 + factor), key=f"a{device}", profile="hd7970", **common),
            data.record("tuned", key=f"b{device}", profile="gtx680", status=Status.UNSUPPORTED, **common),
            data.record("plain", 0.020, key=f"p{device}", **common),
        ]  # fmt: skip
    return found


def test_slowdown_refers_to_the_devices_own_best(tmp_path: Path) -> None:
    found = slowdowns(Collection([data.store(tmp_path / "run", records())]))
    assert {one.variant for one in found} == {"tuned"}
    by = {(one.profile, one.site.name): one for one in found}
    assert len(by) == len(found) == 6
    for device, factor in ((data.POCL, 2.0), (data.INTEL, 3.0)):
        native, other, missing = (by[name, device] for name in ("native", "hd7970", "gtx680"))
        assert native.ratio and native.ratio.value == 1.0 and native.record.key == native.best.key == f"t{device}"
        assert other.ratio and other.ratio.value == pytest.approx(factor, rel=0.02)
        assert other.ratio.low <= other.ratio.value <= other.ratio.high
        assert missing.ratio is None and missing.status is Status.UNSUPPORTED


def test_view_has_the_numbers_and_a_heat_map(tmp_path: Path) -> None:
    collection = Collection([data.store(tmp_path / "run", records())])
    shown = view(collection)
    assert "`hd7970`" in shown.markdown and "unsupported" in shown.markdown
    (plot,) = shown.plots
    assert b"no result" in plot.content and b"slowdown" in plot.content
    slow = [row for row in shown.rows if row["profile"] == "hd7970"]
    assert len(slow) == 2 and all(row["slowdown"] > 1.9 and row["record"] != row["best record"] for row in slow)


def test_without_other_devices_parameters_there_is_no_matrix(tmp_path: Path) -> None:
    shown = view(Collection([data.store(tmp_path / "run", [data.record("a")])]))
    assert "No variant ran with the parameters" in shown.markdown and not shown.rows and not shown.plots
