"""The matrix: one line for each problem and class, the cell that stands for a device, peers and published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.record import Record, Status
from perfport.report.parts import ladder
from perfport.report.parts.marks import best_marks
from perfport.report.parts.material import Material
from perfport.report.parts.matrix import bar, columns, lines, matrix_table
from perfport.run.sources import Age, Verdict
from perfport.store.collection import Collection


def material(folder: Path, *runs: tuple[list[Record], dict[str, Any]]) -> Material:
    """Return what some runs give."""
    stored = [data.store(folder / str(n), records, environment) for n, (records, environment) in enumerate(runs)]
    return Material.of(Collection(stored), {}, [])


def test_a_line_for_each_problem_and_class_and_a_column_for_each_device(tmp_path: Path) -> None:
    listed = lines(material(tmp_path, (data.demonstration(), data.environment())))
    names = [(line.ladder.problem, line.ladder.precision) for line in listed]
    assert names == sorted(names, key=lambda name: (name[0], name[1] != "fp32")) and ("rows", "fp16") in names
    assert [column.platform for column in columns(listed)] == ["opencl:nvidia", "opencl:intel", "opencl:pocl"], (
        "GPUs first"
    )
    assert not any(line.ladder.problem == "nothing" for line in listed)


def test_of_peers_alone_there_is_no_line(tmp_path: Path) -> None:
    records = [data.record("a"), data.record("library", precision="tf32", role="peer")]
    listed = lines(material(tmp_path, (records, data.environment())))
    assert [line.ladder.precision for line in listed] == ["fp32"]


def on_two_hosts(folder: Path, device: str) -> list[Any]:
    """Return the cells of a problem by a device of one name on hosts of other cores, the second the faster one."""
    slow = [data.record("a", 0.05, device=device)]
    fast = [data.record("a", 0.02, device=device, time="2020-01-01T00:00:00+00:00")]
    other = data.environment(host={"cpu": "other", "cores": 99, "memory_bytes": 1 << 35})
    (line,) = lines(material(folder, (slow, data.environment()), (fast, other)))
    return list(line.cells.items())


def test_of_several_hosts_of_a_gpu_the_best_of_the_bound_stands(tmp_path: Path) -> None:
    ((_, cell),) = on_two_hosts(tmp_path, data.GPU)
    assert "99-core" in cell.ladder.site


def test_the_code_as_it_is_stands_before_more_of_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A faster result of code that is gone stood for an H200 beside the peer that was weakest then."""
    ages = {"AMD EPYC 9999": Age.CURRENT, "other": Age.STALE}
    monkeypatch.setattr(ladder, "age", lambda run, _: Verdict(ages[run.environment["host"]["cpu"]], "a file"))
    ((_, cell),) = on_two_hosts(tmp_path, data.GPU)
    assert "99-core" not in cell.ladder.site


def test_a_cpu_of_more_cores_is_another_device(tmp_path: Path) -> None:
    """Virtual machines of two and of 32 cores name the same processor."""
    cells = on_two_hosts(tmp_path, data.POCL)
    assert len(cells) == 2 and any("99 cores" in column.chip for column, _ in cells)


def test_peers_are_said_whatever_became_of_them(tmp_path: Path) -> None:
    own = data.record("a", 0.02, clock="span")
    cases: dict[str, list[Record]] = {
        "no peer": [], "▲ ": [data.record("p", 0.04, role="peer", clock="span")],
        "▼ ": [data.record("p", 0.015, role="peer", clock="span")],
        "no peer ran (unavailable)": [data.record("p", role="peer", status=Status.UNAVAILABLE)],
        "the peers were contended": [
            data.record("p", 0.04, role="peer", status=Status.CONTENDED),
            data.record("q", role="peer", status=Status.UNSUPPORTED),
        ],
        "no clock in common with p": [
            data.record("p", 0.04, role="peer", clock="wall"), data.record("q", role="peer", status=Status.UNSUPPORTED),
        ],
    }  # fmt: skip
    for number, (said, peers) in enumerate(cases.items()):
        page = matrix_table(lines(material(tmp_path / str(number), ([own, *peers], data.environment()))))
        assert said in page and ("`p`" in page) == (said in ("▲ ", "▼ ")), said


@pytest.mark.parametrize(
    ("own", "theirs", "said"),
    [
        ("fp32", "tf32", "▲ 2.99 × `fast` (tf32)"),
        ("tf32", "fp32", "no peer ran"),
        ("fp32", "fp32", "▼ 0.750 × `exact`<br>"),
    ],
)
def test_a_less_precise_peer_stands_for_those_that_did_not_run(
    tmp_path: Path, own: str, theirs: str, said: str
) -> None:
    """FAISS does not run on a GPU here, flash-kmeans does: "no peer ran" hid it. A more precise one would flatter."""
    status = Status.OK if own == theirs else Status.UNSUPPORTED
    records = [
        data.record("a", 0.02, precision=own), data.record("fast", 0.06, role="peer", precision=theirs),
        data.record("exact", 0.015, role="peer", precision=own, status=status),
    ]  # fmt: skip
    (line,) = lines(material(tmp_path, (records, data.environment())))
    assert said in matrix_table([line]) + "<br>", matrix_table([line])


def test_a_ratio_has_the_marks_of_its_peer_and_its_clock(tmp_path: Path) -> None:
    noisy = data.record("p", 0.04, role="peer", clock="wall", noise=0.4, n=9)
    assert noisy.timing and not noisy.timing.target_met
    (line,) = lines(material(tmp_path, ([data.record("a", 0.02), noisy], data.environment())))
    assert "§" not in best_marks(line.ladder)
    page = matrix_table([line])
    assert "`p` (wall) §" in page and "(wall): " in page and "§ the noise target" in page


def test_published_figures_of_the_same_metric_stand_beside_the_measured_ones(tmp_path: Path) -> None:
    page = matrix_table(lines(material(tmp_path, (data.ladder(data.POCL), data.environment()))))
    best = data.PUBLISHED[1]["value"] if len(data.PUBLISHED) > 1 else data.PUBLISHED[0]["value"]
    assert "× published" in page and f"{best:.0f} GFLOP/s" in page and "HD 5870" in page


def test_figures_of_a_certain_setting_are_compared_at_no_other(tmp_path: Path) -> None:
    """Frames per second of 1080p say nothing of 4K; neither does the share of a bound at 4K."""
    for number, (points, compared) in enumerate(((data.SIZES["points"], True), (12345, False))):
        environment = data.environment()
        figure = {**data.PUBLISHED[0], "parameters": {"points": points}}
        environment["workloads"]["demo"]["published"] = [figure]
        (line,) = lines(material(tmp_path / str(number), ([data.record("row_major")], environment)))
        assert ("× published" in matrix_table([line])) == compared
        assert f"points={points}" in matrix_table([line])
        (shown,) = line.ladder.published
        assert (shown.share is not None) == compared


def test_bars_end_at_their_ends() -> None:
    assert bar(0.0) == bar(-1.0) == "░" * 6 and bar(1.0) == bar(1.3) == "█" * 6 and bar(0.5) == "███░░░"
