"""The two bounds of a ladder: apart, with their terms, loud where they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
from report_page import report, rows_of

from perfport.model.record import Status
from perfport.store.ratios import time_of


def test_problem_and_variant_bound_are_apart(demonstration: tuple[Path, str, list[Path]]) -> None:
    problem = rows_of(demonstration[1], "of problem bound (measured)", "row_major")[0]
    variant = rows_of(demonstration[1], "what binds it", "row_major")[0]
    assert "what binds it" not in problem and "share of problem bound (measured)" not in variant
    share = float(problem["share of problem bound (measured)"].split()[0])
    assert float(variant["DRAM"].strip("*")) == pytest.approx(4 * share, rel=0.01)
    assert (variant["what binds it"], variant["traffic"], problem["bound by"]) == ("DRAM", "modelled", "DRAM")


def test_terms_are_shares_of_the_measured_time_and_the_largest_is_bold(
    demonstration: tuple[Path, str, list[Path]],
) -> None:
    row = next(row for row in rows_of(demonstration[1], "what binds it", "row_major") if "local memory" in row)
    traffic = data.levels(dram_read=4, l2_bytes=6, global_read=24)
    time = time_of(next(r for r in data.gpu_ladder() if r.identity.variant == "row_major"))
    for header, nbytes in (("L2", traffic.l2_bytes), ("issued (L1)", traffic.issued_bytes)):
        assert nbytes
        ceiling = data.GPU_CEILINGS[{"L2": "l2_read", "issued (L1)": "l1_read"}[header]]
        assert float(row[header]) == pytest.approx(100 * nbytes / ceiling / time, abs=0.06), header
    assert row["local memory"] == "–" and row["DRAM"].startswith("**") and row["what binds it"] == "DRAM"
    assert [header for header in row if row[header].startswith("**")] == ["DRAM"]
    with_exp = rows_of(demonstration[1], "what binds it", "with_exp")[0]
    assert with_exp["special"] != "–" and with_exp["global atomics"] != "–", "the faster special ceiling"
    matrix = rows_of(demonstration[1], "what binds it", "matrix_units")[0]
    assert matrix["FP32 FMA"] == "–" and matrix["TF32 matrix"] != "–"
    assert not rows_of(demonstration[1], "what binds it", "no_model"), "no traffic, no variant bound"


def test_traffic_that_cannot_be_is_an_error_of_the_variant_bound_alone(tmp_path: Path) -> None:
    too_much = data.record("a", 0.03, rung=1, traffic=data.levels(dram_read=5))
    assert too_much.status == Status.OK
    markdown = report(tmp_path, [too_much])
    assert rows_of(markdown, "what binds it", "a")[0]["DRAM"].startswith("**ERROR: 16")
    assert "the traffic is less than modelled or counted" in markdown
    assert "ERROR" not in markdown.split("\n## ")[0]


def test_binding_table_of_a_cpu_has_no_issued_bytes(tmp_path: Path) -> None:
    traffic = data.levels(global_read=24, local_read=8)
    markdown = report(tmp_path, [data.record("a", rung=1, traffic=traffic)])
    row = rows_of(markdown, "what binds it", "a")[0]
    assert not {"issued (L1)", "local memory"} & set(row) and "DRAM" in row
    assert "merges the accesses of neighbouring work-items" in markdown and "Warm cache" not in markdown
    gpu = report(tmp_path, [data.record("a", 2e-4, rung=1, device=data.GPU, ceilings=data.GPU_CEILINGS)])
    assert "merges the accesses" not in gpu


def test_warm_cache_is_said_where_the_dram_term_is_left_out(tmp_path: Path) -> None:
    traffic = data.levels(l2_bytes=2)
    markdown = report(tmp_path, [data.record("a", 0.003, rung=1, cache="warm", traffic=traffic)])
    assert "Warm cache: the inputs lie in a cache at the start, so the DRAM term is left out" in markdown
    row = rows_of(markdown, "what binds it", "a")[0]
    assert "DRAM" not in row and row["what binds it"] == "L2"
    assert "Warm cache: DRAM bounds nothing" in markdown
    bytes_only = report(tmp_path, [data.record("a", 0.003, rung=1, cache="warm", work=data.ONLY_BYTES, traffic=None)])
    assert "without the DRAM term (warm cache) no measured ceiling applies" in bytes_only


def test_variants_on_different_units_have_one_problem_bound(tmp_path: Path) -> None:
    common: dict[str, Any] = {"device": data.GPU, "ceilings": data.GPU_CEILINGS}
    common["work"] = data.WORK.model_copy(update={"float_units": {"fp32_fma": 1.0, "tf32_mma": 3.0}})
    records = [data.record("plain", 2e-4, **common), data.record("matrix", 1.2e-4, unit="tf32_mma", **common)]
    notes = [line for line in report(tmp_path, records).splitlines() if line.startswith("Problem bound under")]
    assert len(notes) == 1 and "by the ceilings' intervals" in notes[0] and "FP32 FMA" not in notes[0]
    bounds = [record.problem_bound for record in records]
    assert bounds[0] and bounds[1] and bounds[0].seconds == bounds[1].seconds
    assert bounds[0].share.value < bounds[1].share.value, "the faster has the higher share"
    own = [record.variant_bound.terms for record in records if record.variant_bound]
    assert "fp32_fma" in own[0] and "tf32_mma" in own[1]
