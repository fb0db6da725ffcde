"""Where cases run: this machine unless a file says otherwise, and what is wrong there by its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from perfport.model.errors import UsageError
from perfport.run.experiment import load


def experiment(folder: Path, executor: dict[str, Any], **keys: Any) -> Path:
    """Write an experiment."""
    path = folder / "e.yaml"
    study = {"workload": "faulty", "problem": "double"}
    path.write_text(yaml.safe_dump({"name": "e", "executor": executor, "experiments": [study], **keys}))
    return path


@pytest.mark.parametrize(
    ("executor", "complaint"),
    [
        ({"kind": "slurm"}, "'kind: slurm' needs 'partitions'"),
        ({"time": 5}, "belong to 'kind: slurm'"),
        ({"kind": "slrum"}, "executor.kind"),
        ({"kind": "slurm", "partitions": {"a": {"device": ["cpu"]}}}, "did you mean 'devices'?"),
        ({"kind": "slurm", "partitions": {"a": {"devices": []}}}, "executor.partitions.a.devices"),
    ],
)
def test_bad_executors_are_named(tmp_path: Path, executor: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match="executor") as error:
        load(experiment(tmp_path, executor))
    assert complaint in str(error.value)


def test_the_default_is_this_machine(tmp_path: Path) -> None:
    assert load(experiment(tmp_path, {})).executor.kind == "local"


def test_what_a_cluster_cannot_count_is_refused(tmp_path: Path) -> None:
    assert load(experiment(tmp_path, {}, count=True)).count and not load(experiment(tmp_path, {})).count
    cluster = {"kind": "slurm", "partitions": {"gpu": {"devices": ["cuda"]}}}
    with pytest.raises(UsageError, match="'count' belongs to"):
        load(experiment(tmp_path, cluster, count=True))
    entry = {"workload": "faulty", "problem": "double", "count": True}
    with pytest.raises(UsageError, match="'count' belongs to"):
        load(experiment(tmp_path, cluster, experiments=[entry]))
    with pytest.raises(UsageError, match="count: "):
        load(experiment(tmp_path, {}, count="some"))
