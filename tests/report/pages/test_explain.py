"""`perfport explain`: the page of one case, what it says of names that mean several, the ranking and its rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import report_data as data
from report_page import tables

from perfport.model.errors import UsageError
from perfport.model.record import Record, Status
from perfport.model.work import Traffic
from perfport.report.pages.explain import MOST_CANDIDATES, ranking, view
from perfport.report.parts.bounds import MERGED, WARM
from perfport.report.parts.view import FORMATS
from perfport.report.selection import counted_cases
from perfport.store.collection import Collection
from perfport.untimed.count.coalescing import AccessPattern

WIDE = Traffic(flops=6e8, dram_read=16e8, dram_write=8e5)


def held(folder: Path, *records: Record) -> Collection:
    """Return a collection of records."""
    return Collection([data.store(folder / "run", list(records))])


def test_the_page_of_a_case(tmp_path: Path) -> None:
    record = data.record("a", 0.06, traffic=WIDE, noise=0.0, key="0123456789abcdef", tunables={"width": 4})
    made = view(held(tmp_path, record), "012345")
    page = made.markdown
    assert page.startswith("# Why demo/rows/a is not faster\n")
    assert "`width=4`" in page and "`0123456789abcdef` of run `run`" in page and "**60.00 ms** ± 0 %" in page
    gains, terms = tables(page)
    assert gains[1:] == [
        ["this approach, with the traffic that it causes", "DRAM", "40.0 ms", "1.50 (1.50–1.50)", "20.0 ms"],
        ["a perfect kernel", "DRAM", "10.0 ms", "5.98 (5.98–5.98)", "50.0 ms"],
    ]
    assert terms[1:] == [["DRAM", "40.0 ms", "66.7 %", "1.00"], ["FP32 FMA", "1.50 ms", "2.5 %", "26.7"]]
    assert "1 launch of one execution: 4.00 µs" in page and "0.0067 % of the time" in page
    assert MERGED in page and WARM not in page
    (row,) = made.rows
    assert (row["binding"], row["next"], row["record"], row["traffic"]) == ("dram", "fp32_fma", record.key, "modelled")
    assert row["perfect"] == pytest.approx(5.98, abs=0.01) and row["approach"] == pytest.approx(1.5, abs=0.01)


def test_a_warm_case_of_a_gpu_by_its_name(tmp_path: Path) -> None:
    record = data.record("a", 0.003, device=data.GPU, ceilings=data.GPU_CEILINGS, cache="warm", clock="wall")
    assert record.timing
    alone = record.model_copy(update={"timing": record.timing.model_copy(update={"launches": 0})})
    page = view(held(tmp_path, alone), "demo/rows/a").markdown
    assert WARM in page and MERGED not in page and "How many launches one execution makes was not counted" in page


def test_a_case_without_a_result_has_no_tables(tmp_path: Path) -> None:
    page = view(held(tmp_path, data.record("a", status=Status.TIMEOUT)), "demo/rows/a").markdown
    assert "Timeout (timeout for a reason): there is no time to explain." in page and tables(page) == []
    assert "launches" not in page


def test_the_page_has_all_that_counters_tell(tmp_path: Path) -> None:
    record = data.record("a", 2e-3, device=data.GPU, ceilings=data.GPU_CEILINGS)
    raw = {"kernel": {"sm__cycles_active.sum": 4.0, "occupied_cycles": 1.0}}
    stalls = {"long_scoreboard": 0.5, "wait": 0.3, "barrier": 0.15, "drain": 0.05}
    seen = Traffic(dram_read=4e8, provenance="counted")
    count = data.count(record, seen).model_copy(update={"raw": raw, "stalls": stalls})
    data.store(tmp_path / "run", [record])
    data.store_counts(tmp_path / "counts", [count])
    collection, recount = counted_cases([tmp_path])
    made = view(collection, "demo/rows/a", recount)
    assert "long scoreboard 50.0 %, wait 30.0 %, barrier 15.0 %, drain 5.0 %" in made.markdown
    assert "Occupancy 25.0 % (counted)." in made.markdown and "for the counted traffic" in made.markdown
    assert (made.rows[0]["occupancy"], made.rows[0]["traffic"]) == (0.25, "counted")


def test_the_page_has_accesses_that_touch_too_many_lines(tmp_path: Path) -> None:
    """Of the variant at the size that was traced, and of GPUs alone; sums over a buffer are no place in the source."""

    def pattern(place: str | None, accesses: int, lines: float, shape: str = "32 x 128 B") -> AccessPattern:
        return AccessPattern(
            shape=shape, kernel="k", argument="x", place=place, store=False, accesses=accesses, lines=lines, ideal=1.0
        )

    patterns = [
        pattern("a.cl:1:1", 10, 32.0), pattern("a.cl:2:1", 1000, 2.0), pattern("a.cl:3:1", 9999, 1.0),
        pattern(None, 9999, 30.0), pattern("a.cl:4:1", 5, 2.0), pattern("a.cl:5:1", 4, 2.0),
        pattern("a.cl:6:1", 1, 9.0, "64 x 64 B"), pattern("a.cl:7:1", 1, 1.0, "64 x 64 B"),
    ]  # fmt: skip
    gpu = data.record("a", 2e-3, device=data.GPU, ceilings=data.GPU_CEILINGS)
    traced = data.count(gpu, Traffic(provenance="counted")).model_copy(update={"coalescing": patterns})
    traced.identity = traced.identity.model_copy(update={"devices": ["opencl:oclgrind:0"], "parameters": {"points": 7}})
    data.store(tmp_path / "run", [gpu, data.record("a"), data.record("b", device=data.GPU)])
    data.store_counts(tmp_path / "counts", [traced], "simulator")
    collection, recount = counted_cases([tmp_path])
    page = view(collection, gpu.key, recount).markdown
    *_, lines = tables(page)
    assert [(row[0], row[4], row[6]) for row in lines[1:]] == [
        ("32 x 128 B", "`a.cl:2:1`", "2.00"), ("32 x 128 B", "`a.cl:1:1`", "32.00"),
        ("32 x 128 B", "`a.cl:4:1`", "2.00"), ("64 x 64 B", "`a.cl:6:1`", "9.00"),
    ]  # fmt: skip
    assert "(counted in the simulator: `a` at points=7)" in page
    others = [case.record.key for case in collection.cases if case.record.key != gpu.key]
    assert not any("Cache lines" in view(collection, key, recount).markdown for key in others)


def test_a_name_of_several_cases_lists_them(tmp_path: Path) -> None:
    several = [data.record("a", key=f"{n:03}{'0' * 13}", tunables={"w": n}, device=data.GPU) for n in range(20)]
    collection = held(tmp_path, *several)
    with pytest.raises(UsageError, match="'demo/rows/a' is 20 cases; give the key of one, or filters:") as raised:
        view(collection, "demo/rows/a")
    _, *listed = str(raised.value).splitlines()
    assert len(listed) == MOST_CANDIDATES + 1 and listed[-1] == "  and 8 more"
    assert listed[1] == f"  {several[1].key} demo/rows/a, quick [w=1], fp32, on {data.GPU}: ok"
    with pytest.raises(UsageError, match="'00' is 10 cases"):
        view(collection, "00")
    assert view(collection, "007").rows[0]["record"] == several[7].key


def test_a_candidate_is_one_line(tmp_path: Path) -> None:
    several = [data.record("a", key=f"{n}bc", tunables={"w": f"{n}\n  0000 another"}) for n in range(2)]
    with pytest.raises(UsageError) as raised:
        view(held(tmp_path, *several), "demo/rows/a")
    assert len(str(raised.value).splitlines()) == 3


def test_a_name_of_no_case_says_what_is_near(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'demo/rows/local' is no key .* \(did you mean 'demo/rows/local_memory'\?\)"):
        view(held(tmp_path, data.record("local_memory")), "demo/rows/local")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_ranking(tmp_path: Path, form: str) -> None:
    records = [
        data.record("far", 0.5, problem="far"),
        data.record("near", 0.02),
        data.record("none", problem="c", ceilings=None),
    ]
    content = ranking(held(tmp_path, *records)).render(form)
    if form in ("csv", "json"):
        rows = json.loads(content) if form == "json" else list(csv.DictReader(io.StringIO(content)))
        assert [row["variant"] for row in rows] == ["far", "near", "none"]
        assert float(rows[0]["perfect low"]) < float(rows[0]["perfect"]) < float(rows[0]["perfect high"])
        assert not rows[2]["perfect"] and "no ceilings" in rows[2]["unknown"]
    else:
        assert content.index("demo/far") < content.index("demo/rows") and "Where work pays most" in content


def test_the_ranking_is_at_the_setting_that_stands_for_a_problem(tmp_path: Path) -> None:
    small = data.record("a", 0.5, preset="small", parameters={"points": 10}, work=data.WORK)
    large = data.record("a", 0.06, preset="large", work=data.WORK.model_copy(update={"flops": 12e8}))
    assert [row["setting"] for row in ranking(held(tmp_path, small, large)).rows] == ["large"]
