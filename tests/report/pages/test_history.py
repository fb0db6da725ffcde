"""The pages of a history: the list of cases, and one page that fetches nothing and escapes everything."""

from __future__ import annotations

from pathlib import Path

import history_data
import numpy as np
import pytest

from perfport.model.errors import UsageError
from perfport.nightly.history import History, store
from perfport.report.pages import history as pages
from perfport.report.pages.history import MOST_EVENTS, page, select, view
from perfport.store.collection import Filter


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Eight nights of two cases, each with another driver, and a file that is no night."""
    for number in range(8):
        driver = f"{number} <b>'\"&"
        history_data.write_night(
            tmp_path, number, np.array([0.1, 0.2]), driver=driver, failed=[1] if number == 7 else []
        )
    (tmp_path / "<bad>.json").write_text("x")
    return History(tmp_path)


def test_the_list_has_a_row_for_each_case_that_is_meant(history: History) -> None:
    shown = view(history, select(history, Filter()))
    assert [row["events"] for row in shown.rows] == [7, 6] and shown.rows[1]["status"] == "crashed"
    assert len(select(history, Filter(variant="variant_1"))) == 1


def test_the_page_escapes_what_comes_from_files(history: History) -> None:
    content = page(history, select(history, Filter()))
    assert "<b>" not in content and "&lt;b&gt;" in content and "&lt;bad&gt;.json" in content
    assert content.count("<article") == content.count("<svg") == 2 and content.count('data-news="1"') == 2
    assert '<span class="bad">crashed</span>' in content
    assert f"and {7 - MOST_EVENTS} earlier" in content, "events of long ago are drawn alone"
    assert content.endswith("</html>")


def test_events_are_told_with_their_step_and_lead_to_what_changed(tmp_path: Path) -> None:
    for number, seconds in enumerate([0.1, 0.1, 0.12, 0.12]):
        held = history_data.night(number, np.array([seconds]), source="old" if number < 2 else "new")
        held.commit = ("a1b2c3d4" if number < 2 else "c3d4e5f6") * 5
        store(held, tmp_path)
    history = History(tmp_path)
    shown = pages.page(history, list(history.series.values()), "https://git.example/x/compare/{old}...{new}?a=1&b")
    link = '<a href="https://git.example/x/compare/a1b2c3d...c3d4e5f?a=1&amp;b">source changed (a1b2c3d..c3d4e5f)</a>'
    assert f"<li>2026-01-03: {link}: +20.0 % time</li>" in shown
    assert "<a " not in pages.page(history, list(history.series.values()))
    history.nights[2].commit = "not/a/commit" + "0" * 40
    assert "<a " not in pages.page(history, list(history.series.values()), "https://x/{old}{new}"), (
        "of a stranger's file"
    )


@pytest.mark.parametrize(
    "address", ["javascript:{old}{new}", "https://x/{old}", "https://x/{old} {new}", "x/{old}{new}"]
)
def test_an_address_that_shows_no_changes_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="--compare: expected an address as in"):
        pages.check_compare(address)
