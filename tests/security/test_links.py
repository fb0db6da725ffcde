"""Links that somebody left in a folder of results: what is yours elsewhere is neither emptied nor written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import report_data as data

from perfport.model.errors import InfrastructureError
from perfport.nightly import inturn
from perfport.run import local
from perfport.run.experiment import Experiment
from perfport.store.results import ENVIRONMENT, RECORDS, Run, Writer
from perfport.untimed.count import counts


def resume(run: Path) -> None:
    """Go on with a run."""
    with Writer(run) as writer:
        writer.environment({})
        writer.append(data.record("a"))


def count(run: Path) -> None:
    """Count into a folder."""
    counts.begin(run, {})
    counts.append(run, data.count(data.record("a"), data.levels()))


def side(run: Path) -> None:
    """Measure a side of a round again."""
    inturn.run_side(run / "experiment.yaml", run / "base", [], None)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (resume, "lock"), (resume, RECORDS), (resume, f"{ENVIRONMENT}.part"), (count, counts.COUNTS),
        (count, ENVIRONMENT), (side, "base.log"),
    ],
)  # fmt: skip
def test_a_link_in_a_folder_of_results_is_not_followed(
    tmp_path: Path, write: Callable[[Path], None], name: str
) -> None:
    mine, run = tmp_path / "mine.txt", tmp_path / "run"
    mine.write_text("mine\n")
    run.mkdir()
    (run / name).symlink_to(mine)
    with pytest.raises(InfrastructureError, match="leaves the folder"):
        write(run)
    assert mine.read_text() == "mine\n"
    (run / name).unlink()
    if write is not side:
        write(run)


def test_the_report_of_a_part_of_an_experiment_is_in_its_folder(tmp_path: Path) -> None:
    definition = Experiment.model_validate({
        "name": "a", "experiments": [{"workload": "w", "problem": "p"}], "report": {"path": "reports/a.md"},
    })  # fmt: skip
    run = tmp_path / "run"
    run.mkdir()
    assert local.report_file(definition, run, whole=False) == run / local.REPORT
    (run / local.REPORT).symlink_to(tmp_path / "mine.md")
    with pytest.raises(InfrastructureError, match="leaves the folder"):
        local.report_file(definition, run, whole=False)


def test_links_within_a_folder_of_results_are_followed(tmp_path: Path) -> None:
    """A run whose records lie in another file of the same folder, or that is itself a link, is yours to arrange so."""
    (tmp_path / "held").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "held")
    (tmp_path / "held" / RECORDS).symlink_to(tmp_path / "held" / "all.jsonl")
    with Writer(tmp_path / "run") as writer:
        writer.environment(data.environment())
        writer.append(data.record("a"))
    assert [record.identity.variant for record in Run(tmp_path / "run").records] == ["a"]
