"""Cases: hosts, sites and subjects, by what tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import report_data as data

from perfport.store.case import Host, Site, Subject, by_inputs, cases_of, devices_name


def environment(cores: int, memory: int) -> dict[str, Any]:
    """Return what an environment file says of a machine."""
    return {"host": {"cpu": "AMD EPYC 9999", "cores": cores, "memory_bytes": memory}}


def test_hosts_are_told_apart_by_what_differs() -> None:
    one, more = Host("a", 8, 16), Host("a", 8, 32)
    assert one.name() == one.name([one, Host("a", 4, 16)]) == "8-core host"
    assert one.name([more]) == "8-core host; 16 GiB" and one.name([Host("b", 8, 16)]) == "8-core host; 16 GiB; a"
    # What a kernel keeps for itself changes with its version, by less than a GiB.
    assert Host.of(environment(8, (16 << 30) - 300_000_000)) == Host.of(environment(8, (16 << 30) - 200_000_000))


def test_a_site_says_how_many_devices_have_no_id() -> None:
    four = Site(("cuda:nvidia:0",), ("H200",), count=4)
    assert four.several and four.name == "cuda:nvidia:0 + 3 more" == devices_name(four.devices, 4)
    assert not four.alone.several and four.alone.name == "cuda:nvidia:0" and four.alone != four


def test_a_subject_is_the_setting_whatever_preset_named_it() -> None:
    named, bare = data.record("a"), data.record("a", preset=None)
    assert Subject.of(named) == Subject.of(bare)
    assert Subject.of(named).family == ("demo", "rows", "fp32")
    assert Subject.of(named).values == named.identity.parameters


def test_every_record_of_a_run_is_a_case(tmp_path: Path) -> None:
    records = [data.record("a"), data.record("b", provenance="modelled"), data.record("c", device=data.GPU)]
    cases = cases_of(data.store(tmp_path / "run", records))
    assert [case.record.identity.variant for case in cases] == ["a", "b", "c"]
    assert [case.site.chip for case in cases] == ["AMD EPYC 9999", "AMD EPYC 9999", "NVIDIA H200"]


def test_inputs_are_named_where_one_site_has_several(tmp_path: Path) -> None:
    records = [data.record("a"), data.record("a", key="b" * 16, inputs={"a": 9}), data.record("a", problem="other")]
    cases = cases_of(data.store(tmp_path / "run", records))
    assert [case.subject.inputs for case in cases] == ["seed 0", "seed 9", ""]
    assert {case.subject.on_any_inputs for case in cases[:2]} == {Subject.of(records[0])}
    named = by_inputs([cases[2]], {cases[2].subject})
    assert named[0].subject.inputs == "seed 0"
