"""Defaults of tunables: as the run says, or as they are today."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.model.device import DeviceInfo
from perfport.run import plan
from perfport.run.defaults import defaults, describe
from perfport.run.experiment import Experiment
from perfport.workload import discover

STUDY = {"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"], "variants": ["vectorized", "row_major"]}


def test_a_run_says_what_they_were(tmp_path: Path) -> None:
    experiment = Experiment.model_validate({"name": "e", "experiments": [STUDY]})
    workloads, device = discover(only="svm_rbf"), DeviceInfo.model_validate(data.device(data.POCL))
    groups = plan.make(experiment, "e.yaml", workloads, [device], 1)
    described = describe(groups)
    size = '{"dims": 37, "points": 131}'
    named = {name: f"svm_rbf/rbf_rows/{name} {size}" for name in ("vectorized", "row_major")}
    assert set(described[data.POCL]) == {*named.values()}
    assert described[data.POCL][named["vectorized"]] == {"group": 64}
    identity = next(c.identity for g in groups for c in g.cases if c.identity.variant == "vectorized")
    for number, key in enumerate(("svm_rbf/rbf_rows/vectorized", named["vectorized"])):  # as older runs say it, and now
        held = {data.POCL: {key: {"group": 32}}}
        run = data.store(tmp_path / f"run{number}", [data.record("x")], data.environment(defaults=held))
        assert defaults(run, identity) == {"group": 32}, "a later default changes nothing"


def test_an_older_run_has_those_of_today_if_anybody_knows_them(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [data.record("x")], data.environment())
    identity = data.record("x").identity.model_copy(
        update={"workload": "svm_rbf", "problem": "rbf_rows", "variant": "vectorized", "tunables": {"group": 128}}
    )
    assert defaults(run, identity) == {"group": 64}
    assert defaults(run, identity.model_copy(update={"tunables": {}})) == {}, "it had none then"
    for unknown in ({"variant": "nosuch"}, {"workload": "nosuch"}, {"devices": ["a:b:9"]}):
        assert defaults(run, identity.model_copy(update=unknown)) is None
