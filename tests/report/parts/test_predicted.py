"""Tables of modelled times: what is modelled is marked, and stands beside nothing unmarked."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_data import ON_SECOND, two_devices

from perfport.judge.predict import Outcome, Predictor, changed, find_target, live_pairs, of_profile, published, targets
from perfport.report.parts.marks import NOTES, UNMET
from perfport.report.parts.predicted import (
    MARK,
    MOST_CASES,
    cases_table,
    ceilings_table,
    device_table,
    matrix,
    pair_table,
    published_table,
    signed,
    told,
)


@pytest.fixture
def pair(tmp_path: Path) -> Predictor:
    """Two chips with the same cases."""
    return Predictor(two_devices(tmp_path))


def cells(table: str, row: str) -> list[str]:
    """Return the cells of the first row that begins with a name."""
    line = next(line for line in table.splitlines() if line.startswith(f"| {row}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_matrix_marks_what_is_modelled(pair: Predictor) -> None:
    devices = [*targets(pair)[:2], of_profile("hd5870"), of_profile("titan_xp")]
    keys = [key for key in pair.sources if '"points": 1' in key.subject.parameters]
    columns = [[pair.predict(key, device) for key in keys] for device in devices]
    text = matrix(columns)
    _, first, second, far, _ = cells(text, "`v0`")
    assert MARK not in first + second and "`cuda:nvidia (Chip A)`" in text
    outcome = columns[2][0].outcome
    assert far.startswith(MARK) == (outcome is Outcome.MODELLED) and "published" not in far
    assert (outcome is Outcome.NO_GROUND) == ("no ground" in far)


def test_what_is_measured_has_the_marks_of_its_result(pair: Predictor) -> None:
    device = next(device for device in targets(pair) if device.runtime)
    own = [each for each in pair.predictions(device) if each.outcome is Outcome.MEASURED]
    far = pair.predict(own[0].key, of_profile("titan_xp"))
    for each in (*own, far):
        assert each.case.record.timing and UNMET not in device_table([each]) + matrix([[each]])
        each.case.record.timing.target_met = False
    assert cells(device_table(own[:1]), "`v0`")[2].endswith(UNMET.strip())
    text = matrix([own[:1], [far]])
    _, here, there = cells(text, "`v0`")
    assert here.endswith(UNMET.strip()) and UNMET not in there and NOTES[UNMET] in text
    assert told(own[:1], own[0].key.variant).marks == UNMET and not told([far], far.key.variant).marks


def test_a_device_in_detail_says_from_where_and_by_what(pair: Predictor) -> None:
    target = changed(find_target(pair, "Chip B"), ["dram_read=3TB/s"])
    text = device_table(list(pair.predictions(target))[:1])
    name, outcome, time, metric, binding, explained, source, why = cells(text, "`v0`")
    assert (name, outcome, binding) == ("`v0`", "modelled", "`dram`")
    assert time.startswith(MARK) and metric.startswith(MARK) and "Chip" in source and "dram as set" in why
    assert explained.endswith("%")
    assert "| `dram_read`  |" in ceilings_table(target) or "`dram_read`" in ceilings_table(target)
    assert "set" in cells(ceilings_table(target), "`dram_read`")[2]


def test_without_a_number_there_is_a_reason(pair: Predictor) -> None:
    (each,) = [p for p in pair.predictions(of_profile("hd5870")) if p.key.variant == "v0"][:1]
    text = device_table([each])
    assert each.outcome.value in text and (each.outcome is Outcome.MODELLED or each.reason[:20] in text)


def test_pairs_and_their_cases(pair: Predictor) -> None:
    pairs = live_pairs(pair)
    row = cells(pair_table(pairs), "`cuda:nvidia (Chip A)`")
    as_before = f"{100 * (1 - 1.5e-3 / ON_SECOND):.1f} %"  # how far off they were with the first chip's times
    assert row[3] == "6" and row[6] == "100.0 %" and row[5] == as_before
    text = cases_table(pairs[0])
    assert text.count("demo/rows/v") == 6 <= MOST_CASES and MARK in text and "the 6 cases of 6" in text


def test_no_figures_no_table(pair: Predictor) -> None:
    assert published_table(published(pair)) == ""
    assert (signed(0.1), signed(-0.02)) == ("+10.0 %", "-2.0 %")
