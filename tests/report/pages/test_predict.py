"""Pages of modelled times: a device's column, the check, the suite's page, columns beside a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_data import two_devices

from perfport.judge.predict import COLUMNS, Predictor, changed, find_target, of_profile
from perfport.model.errors import UsageError
from perfport.report.pages import predict, suite, table
from perfport.store.collection import Collection, Filter


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    """Two chips with the same cases."""
    return two_devices(tmp_path)


def test_a_device_has_a_row_for_each_case(collection: Collection) -> None:
    predictor = Predictor(collection)
    target = changed(find_target(predictor, "Chip A"), ["dram_read=8TB/s"])
    shown = predict.view(predictor, target, Filter())
    assert len(shown.rows) == 6 and list(shown.rows[0]) == list(COLUMNS)
    assert {row["provenance"] for row in shown.rows} == {"modelled"}
    assert "# Modelled times: Chip A with dram_read=8TB/s" in shown.markdown
    assert shown.rows[0]["seconds_low"] < shown.rows[0]["seconds"] < shown.rows[0]["seconds_high"]
    assert len(predict.view(predictor, target, Filter(variant="v1")).rows) == 2
    with pytest.raises(UsageError, match="--variant"):
        predict.view(predictor, target, Filter(variant="nosuch"))


def test_the_check_lists_every_case_of_every_pair(collection: Collection) -> None:
    shown = predict.trust(Predictor(collection))
    assert len(shown.rows) == 12 and shown.markdown.startswith(f"# {predict.TRUST}")
    assert all(abs(float(row["error"])) < 0.01 for row in shown.rows)
    alone = Collection([run for run in collection.runs if "Chip A" in run.folder.name])
    assert predict.ALONE in predict.trust(Predictor(alone)).markdown


def test_columns_beside_a_table_are_of_its_settings(collection: Collection) -> None:
    predictor = Predictor(collection)
    chosen = Collection(collection.runs, Filter(variant="v1"))
    plain = table.view(chosen)
    beside = table.view(chosen, (predictor, [of_profile("gtx1080"), of_profile("hd5870")]))
    assert "NVIDIA GeForce GTX 1080" in beside.markdown and predict.READING in beside.markdown
    added = beside.rows[len(plain.rows) :]
    assert beside.rows[: len(plain.rows)] == plain.rows and {row["device"] for row in added} == {"gtx1080", "hd5870"}
    assert all(row.get("provenance") != "measured" for row in added)


def test_the_suite_links_its_page_of_predictions(collection: Collection, tmp_path: Path) -> None:
    files = suite.render(collection, {}, [], tmp_path / "suite.md")
    page = tmp_path / predict.PAGE
    assert page in files and f"({predict.PAGE})" in (tmp_path / "suite.md").read_text()
    text = page.read_text()
    assert text.startswith(f"# {predict.TRUST}") and "# Every device" in text and "Chip B" in text
    assert "(suite.md)" in text and "](suite/demo-rows-fp32-roofs.svg)" in text
    assert (tmp_path / "suite" / "demo-rows-fp32-roofs.svg").exists()


def test_what_is_modelled_enters_no_claim_metric_or_frame_of_cases(collection: Collection, tmp_path: Path) -> None:
    import perfport

    results = perfport.load([run.folder for run in collection.runs])
    found = results.predictions
    assert set(found.provenance.dropna()) == {"measured", "modelled"}
    assert set(results.cases.provenance) == {"measured"} and len(results.cases) == 12
    assert found.attrs["units"]["seconds"] == "s" and list(found.columns) == list(COLUMNS)
