"""The chart of a case over the nights: a line broken at events, a cross for a night without a result."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import history_data
import numpy as np
import pytest

from perfport.nightly.history import History
from perfport.report.parts.tracks import MOST_DOTS, MOST_POINTS, chart, track


def drawn(folder: Path, nights: int, driver: str = "3.1", failed: int = -1) -> str:
    """Return the chart of a case whose driver changes half-way and that fails in one night."""
    for number in range(nights):
        name = driver if number >= nights // 2 else "3.1"
        seconds = np.array([0.1 + 1e-4 * (number % 7)])
        history_data.write_night(folder, number, seconds, driver=name, failed=[0] if number == failed else [])
    history = History(folder)
    (series,) = history.series.values()
    return chart(history, track(history, series))


@pytest.mark.parametrize(("nights", "points"), [(MOST_DOTS, MOST_DOTS), (MOST_POINTS + 1, MOST_POINTS // 2 + 1)])
def test_many_nights_are_drawn_together(tmp_path: Path, nights: int, points: int) -> None:
    content = drawn(tmp_path, nights)
    (line,) = re.findall(r'class="line" d="M([^"]+)"', content)
    assert len(line.split()) == points and content.count("<circle") == (points if points <= MOST_DOTS else 0)


def test_an_event_breaks_the_line_and_its_text_is_escaped(tmp_path: Path) -> None:
    content = drawn(tmp_path, 20, driver="<4> & more", failed=3)
    ElementTree.fromstring(content)
    assert content.count('class="line"') == 2 and content.count('class="event"') == content.count('class="fail"') == 1
    assert "&lt;4&gt; &amp; more" in content and "<title>crashed</title>" in content


def test_each_night_tells_its_date_commit_and_time_and_the_axis_has_dates(tmp_path: Path) -> None:
    content = drawn(tmp_path, 20)
    told = re.findall(r'class="hit"[^>]*><title>([^<]*)</title>', content)
    assert len(told) == 20 and told[3].startswith(f"2026-01-04, commit {0:012x}: 100.3 ms (")
    days = re.findall(r">(\d{4}-\d\d-\d\d)<", content)
    assert days == sorted(set(days)) and days[0] == "2026-01-01" and days[-1] == "2026-01-20" and len(days) > 3


def test_nights_without_any_result_have_no_curve(tmp_path: Path) -> None:
    content = drawn(tmp_path, 1, failed=0)
    assert 'class="fail"' in content and "band" not in content and "nan" not in content


def test_the_step_at_an_event_is_drawn_and_told(tmp_path: Path) -> None:
    for number, seconds in enumerate([0.1, 0.1, 0.3, 0.12, 0.12, 0.12]):
        change = {"driver": "3.1" if number < 3 else "4.0"}
        history_data.write_night(tmp_path, number, np.array([seconds]), failed=[0] if number == 4 else [], **change)
    history = History(tmp_path)
    (series,) = history.series.values()
    tracked = track(history, series)
    assert tracked.levels() == [(0, 2, 0.1), (3, 5, 0.12)] and tracked.steps() == {3: pytest.approx(1.2)}
    (level,) = re.findall(r'class="level" d="M([^"]+)"', chart(history, tracked))
    corners = [tuple(map(int, corner.split(","))) for corner in level.split()]
    assert len(corners) == 4 and corners[0][1] == corners[1][1] > corners[2][1] == corners[3][1], "slower is higher up"
    assert corners[1][0] == corners[2][0], "the step is where the event is"


def test_a_level_without_a_result_has_no_step(tmp_path: Path) -> None:
    for number in range(3):
        driver = "3.1" if number < 1 else "4.0"
        history_data.write_night(tmp_path, number, np.array([0.1]), driver=driver, failed=[0] if number == 0 else [])
    history = History(tmp_path)
    (series,) = history.series.values()
    assert track(history, series).steps() == {} and 'class="level"' not in chart(history, track(history, series))
