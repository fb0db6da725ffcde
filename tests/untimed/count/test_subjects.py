"""What is counted: patterns, sizes, and values in place of a preset's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from counted import PLANTED

from perfport.model.device import DeviceInfo
from perfport.untimed.count import simulated, survey
from perfport.untimed.count.subjects import Options, Subject
from perfport.workload import Peer, discover


def test_patterns_name_variants(plugin: simulated.Counter, tmp_path: Path) -> None:
    options = survey.Options(what="counted/*/no_*", workloads=[str(PLANTED)], out=tmp_path / "counts")
    _, found = survey.run(options)
    names = {count.identity.variant for count in found}
    assert "no_atomics" in names and all(name.startswith("no_") for name in names)


def test_values_in_place_of_a_presets(plugin: simulated.Counter, tmp_path: Path) -> None:
    options = survey.Options(
        what="counted/anything/wide", workloads=[str(PLANTED)], out=tmp_path / "counts", presets=["tiny"],
        parameters=["n=32,96"],
    )  # fmt: skip
    _, found = survey.run(options)
    assert [(one.identity.preset, one.identity.parameters) for one in found] == [
        ("tiny", {"n": 32}),
        ("tiny", {"n": 96}),
    ]
    assert "tiny: n=32" in survey.tables(found) and "tiny: n=96" in survey.tables(found)


def test_a_library_is_counted_where_asked_for_whatever_its_role(opencl_infos: list[DeviceInfo]) -> None:
    found = discover()["sparse_conv"]
    known, problem = found.variants["sparse_conv"], found.problems["sparse_conv"]
    subject = Subject(found, problem, "tiny", dict(problem.presets["tiny"]), ())
    counted = {
        peers: {case.variant for case in subject.job(opencl_infos[0], Options(), peers).cases}
        for peers in (False, True)
    }
    libraries = {name for name, cls in known.items() if issubclass(cls, Peer)}
    assert counted[False] == known.keys() - libraries and "cudnn_both" in libraries
    assert counted[True] - counted[False] == {name for name in libraries if not known[name].host}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing"], "no workload 'nothing'"),
        (["counted/*/wid*h"], "no such variant"),
        (["counted/everything"], "everything"),
        (["counted/anything/wid"], "did you mean 'wide'"),
        (["a/b/c/d"], "expected WORKLOAD"),
        (["counted", "--preset", "tyni"], "did you mean 'tiny'"),
        (["counted", "--profile", "hd7979"], "did you mean 'hd7970'"),
        (["counted", "--stalls"], "choose a CUDA device"),
        (["counted", "--set", "n=64"], "needs the --preset"),
        (["counted", "--preset", "tiny", "--set", "n"], "expected NAME=VALUE"),
        (["counted", "--preset", "tiny", "--set", "n=33"], "--set n: "),
    ],
)
def test_bad_arguments(
    perfport: Callable[..., CompletedProcess[str]], tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = perfport("count", *arguments, "--workloads", PLANTED, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr
    assert not (tmp_path / "results").exists()
