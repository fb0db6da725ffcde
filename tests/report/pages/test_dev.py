"""The screen of a round: 24 lines of 100 characters, whatever there is to say."""

from __future__ import annotations

import report_data as data

from perfport.measure.intervals import Ratio
from perfport.model.record import Status
from perfport.report.pages.dev import ROWS, WIDTH, screen
from perfport.untimed.bench import Report
from perfport.untimed.dev import Round


def shown(**reports: Report) -> list[str]:
    """The lines of a round."""
    rows = screen(Round(3, data.record("a").identity, ("kernels/a.cl",), reports, 1.23)).splitlines()
    assert len(rows) <= ROWS and max(map(len, rows)) <= WIDTH
    return rows


def test_a_right_save_has_its_time_ratios_and_bound() -> None:
    before, rival = Ratio(value=1.5, low=1.4, high=1.6), Ratio(value=0.8, low=0.7, high=0.9)
    rows = shown(one=Report(sizes=5, record=data.record("a"), before=before, rival=rival, rival_name="b"))
    text = "\n".join(rows)
    assert "kernels/a.cl; 1.2 s to the verdict" in rows[1] and "RIGHT at 5 sizes" in rows[2]
    assert "faster: 1.50 (1.40–1.60) × as fast as the version before" in text
    assert "slower: 0.800 (0.700–0.900) × as fast as b" in text and "of the problem bound" in text and "binds" in text


def test_an_error_has_its_places_and_nothing_steers_the_terminal() -> None:
    log = "a.cl:3:1: oops\n    line\n    ^\n\nthe whole log"
    rows = shown(one=Report(Status.COMPILE_ERROR, "does not \x1b[2Jcompile", log), two=Report(Status.OK))
    assert rows[2:] == [
        "one                    DOES NOT COMPILE", "    does not compile",
        "    a.cl:3:1: oops", "        line", "        ^",
        "two                    RIGHT: compiles (not run here)",
    ]  # fmt: skip


def test_more_than_fits_is_cut() -> None:
    long = Report(Status.CRASHED, "word " * 300, "row\n" * 100)
    rows = shown(one=long, two=long, three=Report(Status.UNSUPPORTED, "needs " + "x" * 300))
    assert rows[-1].startswith("... ") and rows[-1].endswith("more lines")
