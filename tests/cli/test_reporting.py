"""Commands that make pages of stored results: each filter, format and exit code reaches its page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import predict_data
import pytest
import report_data as data
from commands import Cli


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs; in the second, one variant is twice as slow and one is missing."""
    folder: Path = tmp_path_factory.mktemp("results")
    data.store(folder / "a", [data.record("v", 0.02), data.record("w", 0.02)])
    data.store(folder / "b", [data.record("v", 0.04)])
    return folder


def rows(text: str) -> list[dict[str, Any]]:
    """The rows of a page in CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def test_filters_choose_what_a_table_has(main: Cli, results: Path) -> None:
    code, out, _ = main("table", results / "a", "--format", "csv", discover=False)
    assert code == 0 and {row["variant"] for row in rows(out)} >= {"v", "w"}
    code, out, _ = main("table", results / "a", "--variant", "v", "--format", "csv", discover=False)
    assert code == 0 and "w" not in {row["variant"] for row in rows(out)}
    code, _, err = main("table", results / "a", "--precision", "fp99", discover=False)
    assert code == 2 and "--precision: no precision in" in err


def test_compare_ends_with_what_became_worse(main: Cli, results: Path) -> None:
    code, out, _ = main("compare", results / "a", results / "b", "--variant", "v", discover=False)
    assert code == 5 and "slower" in out
    code, out, _ = main("compare", results / "a", results / "b", discover=False)
    assert code == 4 and "missing in B" in out
    assert main("compare", results / "b", results / "a", discover=False)[0] == 0


@pytest.mark.parametrize("command", ["crosstuning", "stale", "portability"])
def test_other_pages(main: Cli, results: Path, command: str) -> None:
    code, out, err = main(command, results / "a", "--problem", "rows", discover=False)
    assert code == 0 and out.startswith("#"), err
    code, _, err = main(command, results / "a", "--problem", "nosuch", discover=False)
    assert code == 2 and "--problem: no problem in" in err


def test_a_platform_set_names_devices(main: Cli, results: Path) -> None:
    code, out, _ = main("portability", results / "a", "--platforms", f"mine={data.POCL}", discover=False)
    assert code == 0 and "mine" in out
    code, _, err = main("portability", results / "a", "--platforms", "mine", discover=False)
    assert code == 2 and "--platforms: expected NAME=DEVICE" in err


def test_convergence_needs_no_device(main: Cli, tmp_path: Path) -> None:
    code, out, _ = main("convergence", "--workload", "svm", "--format", "csv", discover=False)
    assert code == 0 and {row["workload"] for row in rows(out)} == {"svm_rbf"}
    code, out, _ = main("convergence", "--workload", "svm", "-o", tmp_path / "convergence.json", discover=False)
    assert code == 0 and out.startswith(f"{tmp_path}/convergence.json: ")


def test_quotes_that_are_wrong_are_named_or_put_right(main: Cli, results: Path, tmp_path: Path) -> None:
    file = tmp_path / "text.md"
    file.write_text("**99.9 ms** <!-- from a: rows quick v -->\n")
    code, out, _ = main("quotes", file, "--results", results, discover=False)
    assert code == 3 and out.startswith(f"{file}: line 1: 99.9 is ")
    code, _, _ = main("quotes", file, "--results", results, "--write", discover=False)
    assert code == 0 and "99.9" not in file.read_text()
    assert main("quotes", file, "--results", results, discover=False)[:2] == (0, "")
    code, _, err = main("quotes", tmp_path / "none.md", discover=False)
    assert code == 2 and "cannot be read" in err


def test_a_case_is_explained_and_a_suite_ranked(main: Cli, results: Path) -> None:
    code, out, err = main("explain", "demo/rows/v", results / "a", discover=False)
    assert code == 0 and out.startswith("# Why demo/rows/v is not faster"), err
    code, out, _ = main("explain", "--suite", results / "a", results / "b", "--format", "csv", discover=False)
    assert code == 0 and [row["variant"] for row in rows(out)] == ["w"], "b's slower v counts"
    code, _, err = main("explain", "demo/rows/v", results / "a", "--variant", "w", discover=False)
    assert code == 2 and "CASE: 'demo/rows/v' is no key" in err
    code, _, err = main("explain", discover=False)
    assert code == 2 and "CASE: expected a record's key" in err


def test_results_are_those_of_the_working_folder_where_none_are_named(
    main: Cli, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(results.parent)
    assert results.name.startswith("results")
    (results.parent / "results").symlink_to(results)
    assert main("explain", "demo/rows/w", discover=False)[0] == 0
    code, out, _ = main("explain", "--suite", discover=False)
    assert code == 0 and "# Where work pays most" in out


@pytest.fixture(scope="module")
def chips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same cases on two chips."""
    folder: Path = tmp_path_factory.mktemp("chips")
    predict_data.two_devices(folder)
    return folder


def test_predict_models_a_device(main: Cli, chips: Path) -> None:
    code, out, err = main("predict", chips, "--device", "gtx1080", "--format", "csv", discover=False)
    assert code == 0 and {row["device"] for row in rows(out)} == {"gtx1080"} and len(rows(out)) == 6, err
    code, out, _ = main(
        "predict", chips, "--device", "Chip A", "--set", "dram_read=8TB/s", "--set", "dram_copy=7TB/s", discover=False
    )
    assert code == 0 and "Chip A with dram_read=8TB/s, dram_copy=7TB/s" in out
    code, out, _ = main("predict", chips, "--check", "--format", "csv", discover=False)
    assert code == 0 and len(rows(out)) == 12


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--device: expected a device, or --check"),
        (("--device", "gtx1080", "--check"), "--device: expected a device, or --check"),
        (("--check", "--set", "dram_read=8TB/s"), "--set: expected with --device"),
        (("--device", "gtx1081"), "unknown device 'gtx1081'"),
        (("--device", "gtx1080", "--set", "dram=8TB/s"), "unknown ceiling 'dram'"),
        (("--device", "gtx1080", "--variant", "nosuch"), "--variant: no variant in"),
    ],
)
def test_predict_says_what_is_wrong(main: Cli, chips: Path, arguments: tuple[str, ...], complaint: str) -> None:
    code, _, err = main("predict", chips, *arguments, discover=False)
    assert code == 2 and complaint in err


def test_a_table_has_a_column_for_each_profile(main: Cli, chips: Path) -> None:
    code, out, _ = main("table", chips, "--profiles", "all", "--variant", "v1", discover=False)
    assert code == 0 and "AMD Radeon HD 5870" in out and "NVIDIA GeForce GTX 1080" in out
    code, out, _ = main("table", chips, "--profiles", "gtx1080, k40m", "--format", "json", discover=False)
    assert code == 0
    assert {row["device"] for row in json.loads(out) if row.get("outcome")} == {"gtx1080", "k40m"}
    code, _, err = main("table", chips, "--profiles", "gtx1081", discover=False)
    assert code == 2 and "--profiles: unknown device 'gtx1081'" in err
