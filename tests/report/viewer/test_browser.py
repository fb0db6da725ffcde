"""The page in a real browser, where one is there: every view is drawn without an error, and names stay text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import history_data
import hostile
import numpy as np
import pytest
import report_data as data

from perfport.model.record import Status
from perfport.nightly.history import History
from perfport.report.parts.material import Material
from perfport.report.parts.quantities import rate
from perfport.report.viewer import data as page
from perfport.report.viewer import document as documents
from perfport.report.viewer.document import document
from perfport.store.collection import Collection

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
FOLDER = Path(documents.__file__).parent
#: No process of the browser's own may go to the network.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
    "--virtual-time-budget=4000", "--window-size=1440,900",
)  # fmt: skip
Draw = Callable[[str], str]


def browser(file: Path, profile: Path) -> Draw:
    """Return a function that gives the elements of a view of a page, once its scripts have run without an error."""

    def draw(view: str) -> str:
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "--dump-dom", f"{file.as_uri()}{view}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not said, said
        return re.sub(r"<script.*?</script>|<style.*?</style>", "", done.stdout, flags=re.DOTALL)

    return draw


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Draw, dict[str, Any]]:
    """The page of the demonstration with a history, in a browser; and its data."""
    folder = tmp_path_factory.mktemp("viewer")
    for number in range(4):
        history_data.write_night(folder / "nights", number, np.array([0.01, 0.02 * (1 + 0.2 * (number == 3))]))
    collection = Collection([data.store(folder / "run", data.demonstration())])
    held = page.content(Material.of(collection, {}, []), "Title", History(folder / "nights"))
    (folder / "suite.html").write_text(document("Title", page.as_json(held)))
    return browser(folder / "suite.html", folder / "profile"), held


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("#", ["Rows of a kernel matrix", "no peer", "of the bound", "HD 5870"]),
        ("#tab=pays", ["Where work pays most", "row_major" "|" "local_memory"]),
        ("#tab=claims", ["Claims of the publications"]),
        ("#tab=portability", ["best variant on each", "demo/rows"]),
        ("#tab=tuning", ["No variant ran with the parameters of another device"]),
        ("#tab=ceilings", ["DRAM read"]),
        ("#tab=failures", ["case_crashed"]),
        ("#tab=history", ["4 nights", "1 of 2 cases are more than 2 % slower"]),
        ("#tab=runs", ["records"]),
        ("#device=0&q=tiles&sort=share", ["tiles"]),
        ("#role=peer&size=quick", ["numpy" "|" "GFLOP/s"]),
        ("#tab=none%20of%20these&open=99999&case=x", ["Rows of a kernel matrix"]),
    ],
)  # fmt: skip
def test_every_view_is_drawn(made: tuple[Draw, dict[str, Any]], view: str, shown: list[str]) -> None:
    drawn = made[0](view)
    for words in shown:
        assert re.search(words, drawn), (view, words)


def test_a_cell_opens_the_whole_story(made: tuple[Draw, dict[str, Any]]) -> None:
    draw, held = made
    number, ladder = next((n, of) for n, of in enumerate(held["ladders"]) if of["problem"] == "tiles")
    case = next(case for case in ladder["cases"] if case["variant"] == "local_memory")
    drawn = draw(f"#open={number}&case={case['key']}")
    story = drawn[drawn.index('id="drawer"') :]
    for words in ("What binds it", f"perfport show {case['key']} --rerun", "samples of the span clock", "Roofline"):
        assert words in story, words
    assert story.count("<svg") >= 2 and "local memory" in story and 'aria-expanded="true"' in story
    assert "rung 4" in story and "no_model" in story


def test_the_first_screen_counts_what_was_measured_and_explains_its_signs(
    made: tuple[Draw, dict[str, Any]],
) -> None:
    draw, held = made
    drawn = draw("#")
    assert f"{held['cases']} cases, {held['measured']} of them measured" in drawn
    legend = drawn[drawn.index('class="legend"') : drawn.index('class="matrix"')]
    assert all(sign in legend for sign in "▲▼=≈§◊○¤†")


def test_a_ratio_has_the_marks_of_its_peer_and_its_clock(tmp_path: Path) -> None:
    records = [data.record("a", 0.02), data.record("p", 0.04, role="peer", clock="wall", noise=0.4, n=9)]
    held = page.content(Material.of(Collection([data.store(tmp_path / "run", records)]), {}, []), "T")
    (tmp_path / "suite.html").write_text(document("T", page.as_json(held)))
    drawn = browser(tmp_path / "suite.html", tmp_path / "profile")("#")
    against = re.sub("<[^>]*>", "", drawn[drawn.index('class="against"') :])
    assert re.search(r"× p \(wall\) §", against[:200])


def test_a_less_precise_peer_stands_for_those_that_did_not_run(tmp_path: Path) -> None:
    records = [
        data.record("a", 0.02), data.record("exact", role="peer", status=Status.UNSUPPORTED),
        data.record("fast", 0.06, role="peer", precision="tf32", clock="wall", noise=0.4, n=9),
    ]  # fmt: skip
    held = page.content(Material.of(Collection([data.store(tmp_path / "run", records)]), {}, []), "T")
    (tmp_path / "suite.html").write_text(document("T", page.as_json(held)))
    drawn = browser(tmp_path / "suite.html", tmp_path / "profile")("#open=0")
    against = re.sub("<[^>]*>", "", drawn[drawn.index('class="against"') :])
    assert re.search(r"▲ [\d.]+ × fast \(tf32\) \(wall\) §", against[:200])
    assert re.search(r"▲ [\d.]+ × .*over the best peer, fast \(tf32\)", re.sub("<[^>]*>", "", drawn))


def test_where_work_pays_has_the_marks_of_its_times(tmp_path: Path) -> None:
    records = [data.record("a", noise=0.4, n=9), data.record("b", problem="tiles", status=Status.CONTENDED)]
    held = page.content(Material.of(Collection([data.store(tmp_path / "run", records)]), {}, []), "T")
    (tmp_path / "suite.html").write_text(document("T", page.as_json(held)))
    drawn = browser(tmp_path / "suite.html", tmp_path / "profile")("#tab=pays")
    cells = re.sub("<[^>]*>", "", drawn[drawn.index("<tbody") : drawn.index("</tbody")])
    assert re.search(r"× §", cells) and re.search(r"× ‡", cells)


def test_marks_of_a_contended_case_stand_once(tmp_path: Path) -> None:
    records = [data.record("a"), data.record("b", status=Status.CONTENDED)]
    held = page.content(Material.of(Collection([data.store(tmp_path / "run", records)]), {}, []), "T")
    (tmp_path / "suite.html").write_text(document("T", page.as_json(held)))
    drawn = browser(tmp_path / "suite.html", tmp_path / "profile")("#open=0")
    assert drawn[drawn.index('id="drawer"') :].count("‡") == 1


def test_rates_are_written_as_in_markdown(tmp_path: Path) -> None:
    """The two rules, in Python and on the page, are one."""
    values = [(103_000.0, "GFLOP/s"), (1.364e7, "images/s"), (4369.0, "Mwindows/s"), (0.0839, "s"), (5e6, "Matches/s")]
    script = (FOLDER / "page" / "words.js").read_text()
    calls = ", ".join(f"rate({value}, '{unit}')" for value, unit in values)
    (tmp_path / "a.html").write_text(f"<p id=a></p><script>{script};a.textContent = [{calls}].join('|');</script>")
    drawn = browser(tmp_path / "a.html", tmp_path / "profile")("")
    assert "|".join(rate(value, unit) for value, unit in values) in drawn


def test_names_of_others_are_text(tmp_path: Path) -> None:
    names = {key: hostile.NAMES[key] for key in ("script", "image", "attribute", "entity", "up", "cdata", "pipe")}
    collection = Collection([hostile.run(tmp_path / "run", names, plots=True)])
    held = page.content(Material.of(collection, {}, []), names["script"])
    (tmp_path / "suite.html").write_text(document(names["script"], page.as_json(held)))
    draw = browser(tmp_path / "suite.html", tmp_path / "profile")
    for view in ("#", "#tab=portability", "#tab=runs", "#open=0"):
        found = hostile.Page(draw(view))
        assert found.scripted == [] and not found.tags & {"script", "img", "iframe", "object"}, view
        assert all(reference.startswith("#") for reference in found.references)
