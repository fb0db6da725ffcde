"""One group: instances sampled in turn, verification on inputs of its own, times held to bounds."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import pytest
from faulty_runs import command, experiment

from perfport.model.record import Status
from perfport.store.results import Run


def test_a_wrong_work_model_is_loud(selector: str, perfport: Any, tmp_path: Path) -> None:
    file = experiment(tmp_path, {"problem": "exaggerated", "measurement": {"cache": "cold"}})
    done = perfport(*command(file, selector, tmp_path / "out"), cwd=tmp_path)
    (record,) = Run(tmp_path / "out").records
    assert record.status is Status.IMPOSSIBLE and record.problem_bound and record.problem_bound.share.low > 1.02
    assert record.failure and "the declared work, the clock or the ceiling is wrong" in record.failure.reason
    assert done.returncode == 3 and "impossible" in done.stderr and "dram bound" in done.stderr


def test_what_may_do_fewer_operations_is_held_to_bytes_alone(selector: str, perfport: Any, tmp_path: Path) -> None:
    file = experiment(tmp_path, {"problem": "roundabout", "measurement": {"cache": "cold"}})
    for attempt in range(3):  # other load makes a case contended, and is no fault of the bound
        out = tmp_path / str(attempt)
        perfport(*command(file, selector, out), cwd=tmp_path)
        by_name = {record.identity.variant: record for record in Run(out).records}
        if by_name["direct"].status is not Status.CONTENDED:
            break
    assert by_name["good"].status is Status.IMPOSSIBLE and by_name["direct"].status.measured
    counted, moved = by_name["good"].problem_bound, by_name["direct"].problem_bound
    assert counted and counted.binding == "fp32_fma"
    assert moved and moved.terms.keys() == counted.terms.keys() - {"fp32_fma"}


def test_instances_are_timed_apart_and_what_knows_them_is_found_out(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    file = experiment(tmp_path, {"problem": "drawn"}, workers=2)
    done = perfport(*command(file, selector, tmp_path / "out"), env=no_ceilings, cwd=tmp_path)
    by_name = {record.identity.variant: record for record in Run(tmp_path / "out").records}
    good, memorised = by_name["good"], by_name["memorised"]
    assert good.status.measured and good.inputs == {"a": 7, "b": 1007, "c": 2007} == memorised.inputs
    assert good.timing and len(good.timing.wall) == 6, "three rounds by each of two workers"
    apart = {name: found.summary.median for name, found in good.timing.instances.items()}
    pauses = {name: 0.01 * np.random.default_rng(seed).uniform(1.0, 2.0) for name, seed in good.inputs.items()}
    assert {name: apart[name] >= pause for name, pause in pauses.items()} == dict.fromkeys("abc", True), (apart, pauses)
    ordered = zip(*([found.samples[i] for found in good.timing.instances.values()] for i in range(6)), strict=True)
    assert [len(samples) for samples in ordered] == [6, 6, 6]
    for i, sample in enumerate(good.timing.wall):
        assert sample == pytest.approx(geometric_mean([f.samples[i] for f in good.timing.instances.values()]))
    for name in ("raises_elsewhere", "dies_elsewhere"):
        failure = by_name[name].failure
        assert by_name[name].status is Status.CRASHED and failure, name
        assert re.search(r"verify on inputs drawn from seed \d+", failure.reason), failure.reason
    assert memorised.status is Status.WRONG and memorised.verification
    assert memorised.verification.seed not in memorised.inputs.values() and done.returncode == 3


def test_each_run_verifies_on_inputs_of_its_own(selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path) -> None:
    """The same cases, keys and timed inputs; what verification draws is new."""
    seeds, keys = set(), set()
    file = experiment(tmp_path, {"problem": "drawn", "variants": ["memorised"], "instances": 1})
    for number in "12":
        perfport(*command(file, selector, tmp_path / number), env=no_ceilings, cwd=tmp_path)
        (record,) = Run(tmp_path / number).records
        assert record.inputs == {"a": 7} and record.verification
        seeds.add(record.verification.seed)
        keys.add(record.key)
    assert len(seeds) == 2 and len(keys) == 1
