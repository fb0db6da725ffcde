"""The page of what tuning tells, and the summary of a search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import search_log

from perfport.report.pages.tune import summary, view
from perfport.tune.anatomy import Found, found
from perfport.tune.log import WITHIN_NOISE, Result
from perfport.tune.tune import Done


def test_the_page_has_gains_spaces_and_a_plot(tmp_path: Path) -> None:
    page = view([found(search_log.write(tmp_path))])
    text = page.render("markdown")
    assert "4.000 (3.900–4.100)" in text and "group=16, unroll=1, form=a" in text
    row = next(
        line for line in text.splitlines() if "24 of 24" in line and "importance" not in line and "30.0 %" in line
    )
    assert "`group`" in row and "4.00" in row
    (plot,) = page.plots
    assert b"mathdefault" not in plot.content, "labels of decades are numbers"
    assert b"<svg" in plot.content and f"]({plot.name})" in page.markdown
    assert view([found(tmp_path)]).plots == page.plots  # the same bytes
    (known,) = json.loads(page.render("json"))
    assert (known["tried"], known["timed"], known["not timed"], known["without a result"]) == (24, 20, 2, 2)
    assert page.render("html").startswith("<!DOCTYPE html>")


def _other_seed(folder: Path, chip: str = "AMD EPYC 9999", gain: str = "4.0") -> Path:
    """A search by seed 2 of the same space, on another chip or with another gain."""
    log = search_log.write(folder) / "tune.jsonl"
    content = log.read_text().replace('"seed":1', '"seed":2').replace("AMD EPYC 9999", chip)
    assert '"value":4.0' in content
    log.write_text(content.replace('"value":4.0', f'"value":{gain}'))
    return folder


def test_two_seeds_of_one_chip_are_told_side_by_side(tmp_path: Path) -> None:
    searches = [found(search_log.write(tmp_path / "one")), found(_other_seed(tmp_path / "two", gain="3.95"))]
    text = view(searches).markdown
    again = text[text.index("## Searched with several seeds") :].split("## ")[1]
    assert "4.000 (seed 1); 3.950 (seed 2)" in again and "1.3 %" in again
    assert [row.split("|")[2].strip() for row in text.splitlines() if "| `demo`" in row] == ["1", "2"]


def test_devices_of_two_machines_with_one_id_are_kept_apart(tmp_path: Path) -> None:
    page = view([found(search_log.write(tmp_path / "one")), found(_other_seed(tmp_path / "two", "Xeon"))])
    assert "Searched with several seeds" not in page.markdown
    assert "## The spaces on AMD EPYC 9999, opencl:pocl:0" in page.markdown
    assert "## The spaces on Xeon, opencl:pocl:0" in page.markdown
    assert len({plot.name for plot in page.plots}) == 2


def test_the_mean_takes_one_for_a_variant_without_a_gain(tmp_path: Path) -> None:
    log = search_log.write(tmp_path) / "tune.jsonl"
    lost = Result(
        device=search_log.DEVICE, variant="demo/rows/other", presets={"quick": 1.0}, tried=1, of=9, reason="no gain"
    )
    log.write_text(log.read_text() + lost.model_dump_json() + "\n")
    row = next(line for line in view([found(tmp_path)]).markdown.splitlines() if "| `demo`" in line)
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[4:7] == ["2", "1", "2.000 (1.975–2.025)"] and "4.00 `rows/tuned`" in row


def _at(folder: Path, started: str, preset: str, profile: str = "null", **replaced: str) -> Found:
    """A search of another day at some size, where the device's profile had something or nothing."""
    log = search_log.write(folder) / "tune.jsonl"
    content = log.read_text().replace("2026-11-24", started).replace('"quick"', f'"{preset}"')
    for was, now in {'"profile":null': f'"profile":{profile}', **replaced}.items():
        assert was in content
        content = content.replace(was, now)
    log.write_text(content)
    return found(folder)


def medians(page: str) -> list[list[str]]:
    """The rows of the table of what is lost at sizes that were held out."""
    _, lost = page.split("searches had used before")
    lines = [line for line in lost.splitlines() if line.startswith("|")]
    ends = next((number for number, line in enumerate(lines) if "more is lost by" in line), len(lines))
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:ends]]


HELD = '{"group":32,"unroll":1,"form":"b"}'


def test_what_the_profile_loses_at_a_size_that_was_held_out_is_told(tmp_path: Path) -> None:
    first, then = _at(tmp_path / "a", "2026-11-25", "quick"), _at(tmp_path / "b", "2026-11-26", "full", HELD)
    assert "searches had used before" not in view([first]).markdown
    text = view([then, first]).markdown
    assert medians(text) == [["1", "1", "2.000", "0", "4.000", "0"]]
    _, lost = text.split("searches had used before")
    (row,) = (line for line in lost.splitlines() if "| full" in line)
    assert [cell.strip() for cell in row.split("|")[2:6]] == ["full", "1", "2.00", "4.00"]
    heads, _, *rows = (line.split("|") for line in text[text.index("\n| variant ") + 1 :].splitlines()[:4])
    names = [head.strip() for head in heads]
    assert [dict(zip(names, map(str.strip, row), strict=True))["profile"] for row in rows] == ["2.00", "–"]


def test_without_an_entry_the_code_s_defaults_lose(tmp_path: Path) -> None:
    searches = [_at(tmp_path / "a", "2026-11-25", "quick"), _at(tmp_path / "b", "2026-11-26", "full")]
    assert medians(view(searches).markdown) == [["1", "1", "4.000", "0", "4.000", "0"]]


def test_a_size_of_another_variant_is_none_of_this_one(tmp_path: Path) -> None:
    first, then = _at(tmp_path / "a", "2026-11-25", "quick"), _at(tmp_path / "b", "2026-11-26", "full", HELD)
    (result,) = first.results
    first.results[:] = [result.model_copy(update={"variant": "demo/rows/other"})]
    assert "searches had used before" not in view([first, then]).markdown


def test_what_is_lost_is_told_by_how_many_sizes_were_known(tmp_path: Path) -> None:
    third = _at(tmp_path / "c", "2026-11-27", "large", HELD)
    searches = [_at(tmp_path / "a", "2026-11-25", "quick"), third, _at(tmp_path / "b", "2026-11-26", "full")]
    assert medians(view(searches).markdown) == [
        ["1", "1", "4.000", "0", "4.000", "0"],
        ["2", "1", "2.000", "0", "4.000", "0"],
    ]


@pytest.mark.parametrize(
    ("started", "preset", "chip"),
    [
        ("2026-11-26", "quick", "AMD EPYC 9999"),  # the size was searched before
        ("2026-11-24", "full", "AMD EPYC 9999"),  # nothing was searched before
        ("2026-11-26", "full", "Xeon"),  # on another chip
    ],
)
def test_what_was_not_held_out_is_not_told(tmp_path: Path, started: str, preset: str, chip: str) -> None:
    first = _at(tmp_path / "a", "2026-11-25", "quick")
    other = _at(tmp_path / "b", started, preset, HELD, **{"AMD EPYC 9999": chip})
    page = view([first, other]).markdown
    if started < "2026-11-25":  # then the first is the one that was held out, by the code's defaults
        assert medians(page) == [["1", "1", "4.000", "0", "4.000", "0"]]
    else:
        assert "searches had used before" not in page


def test_the_final_s_own_comparison_with_the_profile_counts(tmp_path: Path) -> None:
    first = _at(tmp_path / "a", "2026-11-25", "quick")
    over = '"over_profile":{"value":1.25,"low":1.2,"high":1.3}'
    told = _at(tmp_path / "b", "2026-11-26", "full", HELD, **{'"over_profile":null': over})
    assert medians(view([first, told]).markdown)[0][2] == "1.250"


def test_a_gain_within_noise_is_no_loss(tmp_path: Path) -> None:
    first, then = _at(tmp_path / "a", "2026-11-25", "quick"), _at(tmp_path / "b", "2026-11-26", "full")
    (result,) = then.results
    then.results[:] = [result.model_copy(update={"parameters": None, "reason": WITHIN_NOISE})]
    assert medians(view([first, then]).markdown) == [["1", "1", "1.000", "1", "1.000", "0"]]


def test_parameters_that_fail_at_a_size_are_no_loss_and_are_counted(tmp_path: Path) -> None:
    first = _at(tmp_path / "a", "2026-11-25", "quick")
    failing = _at(tmp_path / "b", "2026-11-26", "full", '{"group":128,"unroll":1,"form":"b"}')
    assert failing.anatomies[0].held is None
    assert "searches had used before" not in view([first, failing]).markdown
    lost = Result(
        device=search_log.DEVICE, variant="demo/rows/tuned", presets={"large": 1.0}, tried=1, of=9, reason="no result"
    )
    other = _at(tmp_path / "c", "2026-11-27", "large", HELD)
    other.results[:] = [lost]
    fine = _at(tmp_path / "d", "2026-11-28", "other", HELD)
    expected = [["1", "0", "–", "0", "–", "1"], ["2", "1", "2.000", "0", "4.000", "0"]]
    assert medians(view([first, other, fine]).markdown) == expected
    other.anatomies.clear()  # the budget was too small to try any
    assert medians(view([first, other, fine]).markdown) == expected


def test_names_of_others_are_shown_as_text(tmp_path: Path) -> None:
    text = view([found(search_log.write(tmp_path, "demo/<script>alert(1)</script>/a|b"))]).render("html")
    assert "<script>alert" not in text


def test_without_anything_timed_it_says_so(tmp_path: Path) -> None:
    search_log.write(tmp_path)
    log = tmp_path / "tune.jsonl"
    log.write_text(log.read_text().splitlines()[0] + "\n")
    assert "No configuration was timed." in view([found(tmp_path)]).markdown


def test_the_summary_says_what_was_written_and_why_not(tmp_path: Path) -> None:
    won = found(search_log.write(tmp_path)).results[0]
    lost = Result(
        device="d", variant="w/p/v", presets={"quick": 1.0}, tried=1, of=9, reason="no gain beyond its interval"
    )
    text = summary(Done(tmp_path, [won, lost], {Path("own.yaml"): ["demo/rows/tuned"]}))
    assert "own.yaml: 1 variants written" in text and "no gain beyond" in text and "4.000 (3.900–4.100)" in text
