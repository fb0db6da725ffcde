"""The data of the page: every number of the matrix leads to a case, and what has no room is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_data as data

from perfport.report.parts.material import Material
from perfport.report.viewer import data as page
from perfport.store.collection import Collection


def material(folder: Path) -> Material:
    """Return what the demonstration gives."""
    return Material.of(Collection([data.store(folder, data.demonstration())]), {}, [])


def test_cells_lead_to_ladders_and_ranks_to_cells(tmp_path: Path) -> None:
    made = material(tmp_path)
    held = page.content(made, "T")
    assert held["cases"] == len(made.collection.cases) and held["leftOut"] == 0
    measured = sum("time" in case for ladder in held["ladders"] for case in ladder["cases"])
    assert held["measured"] == measured < held["cases"]
    for row in held["rows"]:
        for column, cell in row["cells"].items():
            ladder = held["ladders"][cell["ladder"]]
            assert (ladder["workload"], ladder["problem"], ladder["precision"]) == (
                row["workload"], row["problem"], row["precision"],
            )  # fmt: skip
            assert ladder["column"] == column
    factors = [
        ladder["cases"][ladder["best"]]["perfect"][0]
        for ladder in (held["ladders"][entry["ladder"]] for entry in held["pays"])
    ]
    assert factors == sorted(factors, reverse=True) and len(factors) > 3
    assert held["archival"][0] == "AMD Radeon HD 5870"
    assert sum(sum(counts.values()) for counts in held["failures"].values()) == held["cases"]


def test_a_published_figure_of_one_setting_says_which(tmp_path: Path) -> None:
    environment = data.environment()
    first = {**data.PUBLISHED[0], "parameters": {"points": 12345}}
    environment["workloads"]["demo"]["published"] = [first]
    run = data.store(tmp_path, [data.record("row_major")], environment)
    (row,) = page.content(Material.of(Collection([run]), {}, []), "T")["rows"]
    assert [figure["setting"] for figure in row["published"].values()] == ["points=12345"]


def test_what_has_no_room_is_counted_and_headlines_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        data.record("a", parameters={"points": n}, preset=None, key=f"{n}", ceilings=None,
                    work=data.WORK.model_copy(update={"flops": n * 1e6}))
        for n in range(1, 9)
    ]  # fmt: skip
    monkeypatch.setattr(page, "MOST_CASES", 3)
    held = page.content(Material.of(Collection([data.store(tmp_path, records)]), {}, []), "T")
    assert [ladder["parameters"]["points"] for ladder in held["ladders"]] == [6, 7, 8] and held["leftOut"] == 5
    assert held["ladders"][held["rows"][0]["cells"][0]["ladder"]]["parameters"]["points"] == 8


def test_json_closes_no_element_and_shows_what_can_be_shown() -> None:
    text = page.as_json({"</script><!--": ["a\x1b[2J\u2028\u202e", 1.5, None]})
    assert "<" not in text and "\u2028" not in text
    (shown,) = json.loads(text).values()
    assert shown[0].startswith("a") and shown[0].isprintable() and shown[1:] == [1.5, None]
    with pytest.raises(ValueError, match="not JSON compliant"):
        page.as_json({"a": float("inf")})
