"""`perfport ceilings`: the peer's output, what is stored, the page made of it, and the command."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from perfport.backend.offline import cuda_info
from perfport.measure.ceilings import Ceiling, Ceilings, clpeak, load_cached, survey
from perfport.measure.ceilings.clpeak import Peer, PeerValue, below, collect, parse
from perfport.measure.ceilings.survey import Survey
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UnavailableError, UsageError
from perfport.report.pages.ceilings import render, terminal

DATA = Path(__file__).parents[2] / "data" / "clpeak"
POCL = "pthread-skylake-avx512-Intel(R) Xeon(R) Processor"
INTEL = "Intel(R) Xeon(R) Processor"


def test_captured_output_is_read() -> None:
    """Values and best shapes as clpeak 1.1.2 printed them beside the files."""
    assert parse((DATA / "pocl.xml").read_text(), POCL) == {
        "dram_read": (pytest.approx(15.7437e9), "float16"),
        "fp32_fma": (pytest.approx(17.7162e9), "float16"),
        "int32_mad": (pytest.approx(12.8918e9), "int16"),
        "h2d_pageable": (pytest.approx(12.438e9), "enqueuewritebuffer"),
        "d2h_pageable": (pytest.approx(12.2662e9), "enqueuereadbuffer"),
        "launch_latency": (pytest.approx(6.03335e-6), ""),
    }
    found = parse((DATA / "intel.xml").read_text(), INTEL)
    assert found["h2d_pageable"] == (pytest.approx(7.17374e9), "enqueuewritebuffer_nonblocking")
    assert found["fp32_fma"][1] == "float16" and found["dram_read"][1] == "float16"


def test_what_is_no_output_of_the_device_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="no valid XML"):
        parse("Platform: nothing", POCL)
    with pytest.raises(UnavailableError, match="does not list the device 'another'"):
        parse((DATA / "pocl.xml").read_text(), "another")
    with pytest.raises(UnavailableError, match="does not list"):
        parse("<clpeak></clpeak>", POCL)


def test_runs_are_collected_with_the_better_one_s_shape() -> None:
    found = collect([
        {"dram_read": (2.0, "float4"), "launch_latency": (3.0, "")},
        {"dram_read": (3.0, "float8"), "launch_latency": (4.0, ""), "fp32_fma": (1.0, "float")},
    ])  # fmt: skip
    assert found["dram_read"] == PeerValue(values=[2.0, 3.0], shape="float8")
    assert found["fp32_fma"].values == [1.0] and found["launch_latency"].values == [3.0, 4.0]


def made(value: float, unit: str = "B/s", **more: Any) -> Ceiling:
    """A ceiling with an interval of 10 % to either side."""
    return Ceiling(value=value, low=0.9 * value, high=1.1 * value, unit=unit, **more)


@pytest.mark.parametrize(("peer", "expected"), [([12.0, 13.0], True), ([10.5, 13.0], False), ([5.0], False)])
def test_below_the_peer_means_beyond_the_noise_of_both(peer: list[float], expected: bool) -> None:
    assert below(made(10.0), PeerValue(values=peer, shape="")) == expected


def example(info: DeviceInfo | None = None) -> Survey:
    """A survey with a peer, flags, a curve and an absent ceiling."""
    info = info or cuda_info("sm_90").model_copy(update={"chip": "A <chip>_|x", "driver": "1.2"})
    curve = [(float(1 << power), 1e12 / power) for power in range(12, 20)]
    entries = {
        "dram_read": made(4.5e12, theory=4.8e12, theory_basis="profile h200", sweep={"a": 1.0, "b": 2.0}, spread=0.5),
        "l1_read": made(2e13, shape={"width": 4, "set_bytes": 1 << 14, "groups": 132}, curve=curve),
        "fp32_fma": made(7e13, "FLOP/s", theory=6e13, theory_basis="clock", above_theory=True),
        "launch_latency": made(2e-6, "s", direction="lower"),
    }
    peer = Peer(
        version="1.1.2",
        entries={
            "dram_read": PeerValue(values=[5.1e12, 5.2e12], shape="float4"),
            "launch_latency": PeerValue(values=[1e-6, 1.1e-6], shape=""),
        },
    )
    found = Ceilings(
        device=info.id, driver="1.2", date="2026-01-02T03:04:05+00:00", working_set_bytes=4 << 30, entries=entries,
        absent={"l3_read": "no such part is known of this device"},
    )  # fmt: skip
    return Survey(
        device=info, ceilings=found, peer=peer, host={"cpu": "c", "os": "o"}, versions={},
        commit={"hash": "abc", "dirty": True}, command=["perfport", "ceilings"],
    )  # fmt: skip


def test_surveys_survive_the_disk(tmp_path: Path) -> None:
    first = example()
    second = example(first.device.model_copy(update={"id": "opencl:x:0"}))
    paths = [survey.write(one, tmp_path / "folder") for one in (first, second)]
    assert len(set(paths)) == 2 and list(survey.read([tmp_path / "folder"])) == [first, second]
    (tmp_path / "folder" / "zz.json").write_text("{}")
    with pytest.raises(UsageError, match=r"zz\.json: not a file of perfport ceilings"):
        list(survey.read([tmp_path / "folder"]))
    with pytest.raises(UsageError, match="no ceilings"):
        list(survey.read([tmp_path]))
    with pytest.raises(InfrastructureError, match="cannot write"):
        survey.write(first, paths[0])


def test_the_page_shows_flags_and_is_the_same_when_made_again(tmp_path: Path) -> None:
    surveys = [example(), example(cuda_info("sm_80"))]
    files = render(surveys, tmp_path / "page.md")
    page = files[0].read_text()
    assert len(files) == 3 and all(path.exists() for path in files)
    assert "4.50 TB/s" in page and "**above**" in page and "0.865 **below**" in page and "5.20 TB/s (float4)" in page
    assert "`l3_read` is absent: no such part is known of this device." in page and "A &lt;chip>" in page
    latency = next(line for line in page.splitlines() if "launch_latency" in line and "1.00 µs" in line)
    assert "below" not in latency, "clpeak's latency is another quantity"
    for plot in files[1:]:
        assert f"](page/{plot.name})" in page and b"l1_read" in plot.read_bytes()
    before = [path.read_bytes() for path in files]
    assert [path.read_bytes() for path in render(surveys, tmp_path / "page.md")] == before
    with pytest.raises(UsageError, match="no ceilings to report on"):
        render([], tmp_path / "page.md")


def test_the_terminal_shows_the_same(tmp_path: Path) -> None:
    shown = terminal(example())
    assert "4.50 TB/s" in shown and "116.7 % above" in shown and "0.865 below" in shown
    assert "absent: l3_read" in shown and "2026-01-02" in shown


def test_a_missing_peer_is_unavailable(opencl_infos: list[DeviceInfo], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnavailableError, match="clpeak is not installed"):
        clpeak.run(opencl_infos[0])
    assert clpeak.version() == ""


def test_the_peer_runs_on_the_device_s_own_runtime(
    opencl_infos: list[DeviceInfo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of clpeak's form, that tells what it was called with."""
    info = opencl_infos[0]
    xml = (DATA / "pocl.xml").read_text().replace(POCL, info.name)
    script = f"""#!/bin/sh
cat "$OCL_ICD_VENDORS"/*.icd >> {tmp_path}/calls; echo " $*" >> {tmp_path}/calls
while [ "$1" != --xml-file ]; do [ "$1" = -p ] && platform=$2; shift; done
if [ "$platform" = 1 ]; then cp {tmp_path}/peak.xml "$2"; else echo '<clpeak></clpeak>' > "$2"; fi
"""
    (tmp_path / "peak.xml").write_text(xml)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "clpeak"
    program.write_text(script)
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    found = clpeak.run(info)
    assert found["dram_read"] == (pytest.approx(15.7437e9), "float16")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 3 and all(info.runtime in call for call in calls)
    assert "-p 0" in calls[0] and "-p 1" in calls[1] and "--compute-sp" in calls[2]
    with pytest.raises(UnavailableError, match="does not list the device 'another'"):
        clpeak.run(info.model_copy(update={"name": "another"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peer", "other"], "--peer: expected 'clpeak', got 'other'"),
        (["--report", "x.md"], "--report FILE and FOLDERS of stored ceilings belong together"),
        (["folder"], "--report FILE and FOLDERS of stored ceilings belong together"),
        (["-d", "nothing"], "no device matches 'nothing'"),
    ],
)
def test_bad_arguments_are_named(perfport: Any, arguments: list[str], message: str) -> None:
    done = perfport("ceilings", *arguments)
    assert done.returncode == 2 and message in done.stderr


def test_the_command_makes_the_page(perfport: Any, tmp_path: Path) -> None:
    survey.write(example(), tmp_path / "stored")
    done = perfport("ceilings", "--report", tmp_path / "page.md", tmp_path / "stored")
    assert done.returncode == 0, done.stderr
    assert "1 plots beside it" in done.stdout and (tmp_path / "page.md").exists()


def test_a_survey_measures_stores_and_tells(
    opencl_infos: list[DeviceInfo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child process and the rest of the way, with a peer that is missing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(clpeak, "PROGRAM", "a program that is not there")
    told: list[str] = []
    # Told that memory and cache are small, the whole sweep takes short arrays.
    small = {"memory_bytes": 32 << 20, "max_alloc_bytes": 64 << 20, "last_level_cache_bytes": 1 << 20}
    info = opencl_infos[0].model_copy(update=small)
    found = survey.survey(info, peer=True, command=["typed"], step=told.append)
    assert found.peer is not None and found.peer.status == "unavailable" and "not installed" in found.peer.reason
    assert f"{info.id}: dram_read" in told and found.command == ["typed"]
    assert found.ceilings.entries["dram_read"].value > 0 and load_cached(info) == found.ceilings
    assert json.loads(found.model_dump_json())["host"]["cores"] >= 1


def test_a_child_that_fails_says_why(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    gone = opencl_infos[0].model_copy(update={"id": "opencl:none:7", "name": "gone", "driver": "none"})
    with pytest.raises(InfrastructureError, match="not visible in this process"):
        survey.survey(gone)
