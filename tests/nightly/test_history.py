"""The history: files never touched again, whatever is killed or torn; series, events, the list and the page."""

from __future__ import annotations

import html
import json
import math
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import history_data
import numpy as np
import pytest
import report_data as data

from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import Status
from perfport.nightly.history import History, add, read_night, store
from perfport.nightly.night import night
from perfport.nightly.place import Place
from perfport.report.pages import history as pages
from perfport.report.parts import tracks
from perfport.store.collection import Filter
from perfport.store.results import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with every status."""
    return data.store(tmp_path_factory.mktemp("runs") / "demo", data.demonstration())


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a history."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_becomes_one_file_that_reads_back(run: Run, tmp_path: Path) -> None:
    path = add(run, tmp_path / "h")
    assert path.name.startswith("20261121-120000-demo-20261121-") and len(contents(tmp_path / "h")) == 1
    held, made = read_night(path), night(run)
    for name in vars(made):
        one, other = getattr(held, name), getattr(made, name)
        assert np.array_equal(one, other, equal_nan=True) if name in ("time", "low", "high", "bound") else one == other
    assert len(held.series) == len(run.records) and set(held.status) == {r.status.value for r in run.records}
    by_name = {Place.of(key).variant: row for row, key in enumerate(held.series)}
    record = next(r for r in run.records if r.identity.variant == "copy")
    assert record.timing and record.problem_bound
    row = by_name["copy"]
    assert held.time[row] == pytest.approx(record.timing.summary["span"].median, rel=1e-5)
    assert held.bound[row] == pytest.approx(record.problem_bound.seconds, rel=1e-5)
    assert math.isnan(held.time[by_name["case_crashed"]]) and held.reason[by_name["case_crashed"]]
    assert Place.of(held.series[row]).chips == ["AMD EPYC 9999"] and held.driver[row].startswith("3.1")


def test_adding_touches_no_older_file(run: Run, tmp_path: Path) -> None:
    add(run, tmp_path)
    before = contents(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    other = data.store(tmp_path / "runs" / "other", data.ladder(data.POCL), data.environment(run="other"))
    add(other, tmp_path / "h")
    assert add(run, tmp_path) in stamps, "the same run again is the same file"
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert contents(tmp_path / "h").keys().isdisjoint(before)


def test_a_run_that_goes_on_after_it_was_added_is_one_night(tmp_path: Path) -> None:
    whole = history_data.night(0, np.array([0.05, 0.06, 0.07]))
    part = history_data.night(0, np.array([0.05, 0.06, 0.07]), failed=[2])
    fewer = history_data.night(0, np.array([0.05, 0.06]))
    other = history_data.night(0, np.array([0.05]))
    other.series = [history_data.series(7)]
    for held in (part, whole, fewer, other):
        store(held, tmp_path)
    history = History(tmp_path)
    assert sorted(len(held.series) for held in history.nights) == [1, 3] and not history.left_out
    (series,) = (each for key, each in history.series.items() if key == whole.series[2])
    assert list(history.times(series).values()) == [0.07], "the state in which it has a result"


def test_two_machines_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    nights = [history_data.night(7, np.exp(rng.normal(size=40))) for _ in range(16)]  # one name and one time for all
    threads = [threading.Thread(target=store, args=(one, tmp_path)) for one in nights]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history = History(tmp_path)
    assert len(history.nights) == 16 and not history.left_out and len(contents(tmp_path)) == 16


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not JSON"),
        (b"TORN", "not JSON"),
        (b"[1, 2]", "no file of a history that this version reads"),
        (b'{"perfport_history": 99}', "perfport_history is 99"),
        (b'{"perfport_history": 1, "run": {}, "texts": [], "cases": {}}', "damaged"),
        (b"SHORT", "expected columns of one length"),
    ],
)
def test_a_bad_file_is_named_and_the_rest_is_read(
    tmp_path: Path, content: bytes, complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    good = [history_data.write_night(tmp_path, number, np.full(3, 0.1)) for number in range(3)]
    whole = good[1].read_bytes()
    torn = {b"TORN": whole[: len(whole) // 2], b"SHORT": whole.replace(b'"workers": [3,3,3]', b'"workers": [3,3]')}
    (tmp_path / "bad.json").write_bytes(torn.get(content, content))
    history = History(tmp_path)
    assert len(history.nights) == 3
    (left,) = history.left_out
    assert str(tmp_path / "bad.json") in left and complaint in left
    assert data.call(monkeypatch, "history", "--in", tmp_path) == 0
    told = capsys.readouterr()
    assert "bad.json" in told.err and "3 cases over 3 nights" in told.out


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        *(("time", seconds, "cases.time[0]") for seconds in (0.0, -0.1, 1e308, float("nan"), "x")),
        *(
            ("series", key, "cases.series: expected the key of a series")
            for key in ("", "{}", "[1]", "3", '["a", "b"]')
        ),
        ("status", 10**6, "a number of a text that is not among the texts"),
        ("status", 0, "cases.status: expected one of ok, wrong"),
        ("driver", -1, "cases.driver[0]"),
        ("workers", None, "cases.workers[0]"),
    ],
)
def test_an_entry_that_cannot_be_is_named(tmp_path: Path, column: str, value: Any, complaint: str) -> None:
    path = history_data.write_night(tmp_path, 0, np.full(3, 0.1))
    content = json.loads(path.read_bytes())
    content["cases"][column][0] = value
    path.write_text(json.dumps(content))
    (left,) = History(tmp_path).left_out
    assert left.startswith(f"{path}: a file of a history, but damaged: ") and complaint in left


def test_a_history_that_cannot_be_written_or_found(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="cannot write the history"):
        add(run, tmp_path / "file" / "h")
    with pytest.raises(UsageError, match="perfport history add"):
        History(tmp_path / "nowhere")


def test_what_changes_begins_a_new_segment(tmp_path: Path) -> None:
    changes = [{}, {}, {"driver": "4.0"}, {"driver": "4.0", "failed": [0]}, {"driver": "4.0", "source": "ffff"}]
    for number, change in enumerate(changes):
        history_data.write_night(tmp_path, number, np.array([0.1, 0.2]), **change)
    history = History(tmp_path)
    series = history.series[history_data.series(0)]
    events = history.events(series)
    assert [event.night for event in events] == [2, 4]
    assert events[0].what == "driver 3.1 -> 4.0"
    assert events[1].what == "source changed"
    for source, changed in (("0123456789abcdef", ["source"]), ("ffff", [])):
        now = history_data.night(9, np.array([0.1, 0.2]), driver="4.0", source=source)
        stretches, since = history.stretches(series, now, 0)
        assert [list(stretch.logs) for stretch in stretches] == [[0, 1], [2], [4]], "night 3 has no result"
        assert [[change.kind for change in stretch.events] for stretch in stretches] == [[], ["driver"], ["source"]]
        assert [change.kind for change in since] == changed and stretches[0].logs[1] == math.log(0.1)
    earlier = history_data.night(2, np.array([0.1, 0.2]), driver="4.0")
    assert [list(stretch.logs) for stretch in history.stretches(series, earlier, 0)[0]] == [[0, 1]]
    assert history.times(series) == {0: 0.1, 1: 0.1, 2: 0.1, 4: 0.1}


def test_files_of_earlier_versions_say_nothing_of_their_code(tmp_path: Path) -> None:
    path = history_data.write_night(tmp_path, 0, np.full(2, 0.1))
    content = json.loads(path.read_bytes())
    del content["cases"]["code"]
    path.write_text(json.dumps(content))
    (held,) = History(tmp_path).nights
    assert held.code == ["", ""] and held.driver[0].startswith("3.1")


def test_of_several_conditions_those_that_differ_are_told(run: Run) -> None:
    one, two = history_data.night(0, np.array([1.0])), history_data.night(1, np.array([1.0]))
    two.settings = [one.settings[0].replace("max_samples: 30", "max_samples: 60")]
    (said,) = two.changed(0, one, 0)
    assert str(said) == "measurement settings max_samples: 30 -> max_samples: 60"


def test_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for number in range(9):
        history_data.write_night(tmp_path, number, np.array([0.1, 0.2]) * (1.5 if number == 8 else 1.0))
    assert data.call(monkeypatch, "history", "--in", tmp_path, "--variant", "variant_1", "--format", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["nights"] == 9 and row["seconds"] == pytest.approx(0.3) and row["ratio"] == pytest.approx(1 / 1.5)
    assert data.call(monkeypatch, "history", "--in", tmp_path) == 0
    assert "+50.0 %" in capsys.readouterr().out
    assert data.call(monkeypatch, "history", "--in", tmp_path / "none") == 2


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> History:
    """450 nights of four cases, more than a chart draws one by one: a new driver, failures, a change of level."""
    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(2)
    for number in range(450):
        times = np.array([1e-5, 2e-3, 0.4, 30.0]) * np.exp(0.01 * rng.standard_normal(4))
        times[1] *= 1.3 if number > 300 else 1
        driver = "3.1" if number < 200 else "<4> & more"
        history_data.write_night(folder, number, times, driver=driver, failed=[2] if number in (100, 449) else [])
    return History(folder)


def test_the_page_has_a_chart_for_each_case_and_fetches_nothing(long: History) -> None:
    page = pages.page(long, pages.select(long, Filter()))
    assert page.count("<article") == page.count("<svg") == 4
    assert not re.search(r'(src|href)="?(https?:)?//|@import|url\(', page)
    assert "<4>" not in page and html.escape("<4> & more") in page, "what comes from a record is escaped"
    assert page.count('class="fail"') == 2 and "crashed" in page
    assert page.count('class="event"') == 4 and page.count('class="bound"') == 2, "two bounds are far below"
    assert page.count("below</text>") == 2
    drawn = [len(line.split()) for line in re.findall(r'class="line" d="M([^"]+)"', page)]
    assert len(drawn) == 8 and max(drawn) <= tracks.MOST_POINTS, "broken where a series begins anew"


def test_the_page_is_searchable(long: History) -> None:
    page = pages.page(long, pages.select(long, Filter()))
    names = re.findall(r'data-name="([^"]*)"', page)
    assert len(names) == 4 and all("svm_rbf/problem" in name and "opencl:pocl:0" in name for name in names)
    assert '<input type="search"' in page and "card.hidden" in page
    assert len(pages.select(long, Filter(variant="variant_2"))) == 1


def test_a_case_without_any_result_has_a_chart(tmp_path: Path) -> None:
    history_data.write_night(tmp_path, 0, np.array([1.0, 2.0]), failed=[0])
    history = History(tmp_path)
    page = pages.page(history, pages.select(history, Filter()))
    assert page.count("<svg") == 2 and page.count('class="fail"') == 1
    assert "nan" not in page.lower().replace("nanosecond", "")


ADD = """
import sys
sys.path.insert(0, {here!r})
import history_data, numpy as np
from pathlib import Path
print("ready", flush=True)
number = 0
while True:
    history_data.write_night(Path(sys.argv[1]), number, np.arange(1.0, 400.0) + number)
    print(number, flush=True)
    number += 1
"""


def test_kill_while_adding_leaves_whole_files(tmp_path: Path) -> None:
    luck = random.Random(6)
    command = [sys.executable, "-c", ADD.format(here=str(Path(__file__).parents[1] / "support")), str(tmp_path / "h")]
    for _ in range(4):
        (tmp_path / "h").mkdir(exist_ok=True)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout and child.stdout.readline() == "ready\n"
            time.sleep(luck.uniform(0.0, 0.15))
            child.send_signal(signal.SIGKILL)
            done = [int(line) for line in child.stdout.read().splitlines()]
        history = History(tmp_path / "h")
        assert not history.left_out
        assert {held.name for held in history.nights} >= {f"nightly-{number}" for number in done}
        assert all(len(held.series) == 399 for held in history.nights)


def test_statuses_of_the_store_are_those_of_records(run: Run) -> None:
    assert {Status(status) for status in night(run).status} == {record.status for record in run.records}
