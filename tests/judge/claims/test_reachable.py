"""Every claim can be judged: what it compares exists in the code, and a shipped experiment measures it side by side."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import pytest

from perfport import workload
from perfport.backend.offline import cuda_info, opencl_info
from perfport.judge.claims import Claim, ledger
from perfport.model.record import Identity
from perfport.run import plan
from perfport.run.experiment import find, load

#: A GPU and a CPU that have whatever a variant may need.
DEVICES = {info.id: info for info in (cuda_info("sm_90"), opencl_info("cpu"))}
CLAIMS = [(name, claim) for name, claims in ledger().items() for claim in claims]


@cache
def shipped() -> list[str]:
    """The names of the experiments that ship."""
    return sorted(file.name[:-5] for file in files("perfport.experiments").iterdir() if file.name.endswith(".yaml"))


@cache
def cases(experiment: str) -> list[Identity]:
    """What an experiment measures on the devices that it is for."""
    definition = load(find(experiment))
    devices = plan.select_devices(definition.devices, [*DEVICES.values()], experiment)
    groups = plan.make(definition, experiment, workload.discover(), devices, 1)
    return [case.identity for group in groups for case in group.cases]


def reached(name: str, claim: Claim, experiment: str) -> bool:
    """Whether an experiment measures all sides of a claim in one setting, on a device that the claim is about."""
    sides = [side for side in (claim.subject, claim.reference, claim.base) if side]
    differ = {parameter for side in sides for parameter in side.parameters}
    settings: list[set[str]] = [set() for _ in sides]
    for identity in cases(experiment):
        kind = DEVICES[identity.devices[0]].kind
        if (identity.workload, identity.problem) != (name, claim.problem) or kind not in (claim.applies_to or [kind]):
            continue
        common = {key: value for key, value in identity.parameters.items() if key not in differ}
        record: Any = SimpleNamespace(identity=identity)
        for side, met in zip(sides, settings, strict=True):
            if side.takes(record, claim.parameters):
                met.add(json.dumps([identity.devices, common], sort_keys=True))
    return bool(set.intersection(*settings))


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=[f"{name}-{claim.id}" for name, claim in CLAIMS])
def test_a_claim_is_measured_by_the_experiment_of_its_study(name: str, claim: Claim) -> None:
    assert claim.problem in workload.discover()[name].problems
    assert any(reached(name, claim, experiment) for experiment in (f"paper_{name}", f"paper_{name}_cpu"))


@pytest.mark.parametrize(
    "change",
    [
        {"problem": "gdn_backward"},
        {"parameters": {"channels": 77}},
        {"parameters": {"channels": {"min": 1000}}},
        {"subject": {"variant": "naiv"}},
        {"subject": {"variant": "naive", "tunables": {"group": 77}}},
        {"subject": {"variant": "naive", "profile": "hd7970"}},
        {"reference": {"variant": "replicated", "precision": "tf32"}},
    ],
)
def test_what_no_experiment_has_is_not_reached(change: dict[str, Any]) -> None:
    (claim,) = [claim for name, claim in CLAIMS if (name, claim.id) == ("gdn", "naive")]
    changed = Claim.model_validate({**claim.model_dump(exclude_unset=True), **change})
    assert [name for name in shipped() if reached("gdn", claim, name)] and not any(
        reached("gdn", changed, name) for name in shipped()
    )
