"""clpeak as the peer of a sweep: its output read, collected and compared."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from perfport.measure.ceilings import Ceiling, clpeak
from perfport.measure.ceilings.clpeak import PeerValue, below, collect, parse
from perfport.model.device import DeviceInfo
from perfport.model.errors import UnavailableError

DATA = Path(__file__).parents[2] / "data" / "clpeak"
POCL = "pthread-skylake-avx512-Intel(R) Xeon(R) Processor"
INTEL = "Intel(R) Xeon(R) Processor"


def made(value: float, unit: str = "B/s", **more: Any) -> Ceiling:
    """A ceiling with an interval of 10 % to either side."""
    return Ceiling(value=value, low=0.9 * value, high=1.1 * value, unit=unit, **more)


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


@pytest.mark.parametrize(("unit", "value", "complaint"), [
    ("furlongs", "1", "one of the units .* got 'furlongs'"), ("gbps", "fast", "a number, got 'fast'"),
    ("gbps", "nan", "a number, got 'nan'"), ("gbps", "-1", "a number, got '-1'"),
    ("gbps", "1e999", "a number, got '1e999'"),
])  # fmt: skip
@pytest.mark.parametrize("form", ["<float>{}</float>", "{}"])
def test_what_is_no_number_or_unit_is_named(unit: str, value: str, complaint: str, form: str) -> None:
    part = f'<global_memory_bandwidth unit="{unit}">{form.format(value)}</global_memory_bandwidth>'
    with pytest.raises(UnavailableError, match=f"clpeak: global_memory_bandwidth: expected {complaint}"):
        parse(f'<clpeak><platform><device name="one">{part}</device></platform></clpeak>', "one")


def test_runs_are_collected_with_the_better_one_s_shape() -> None:
    found = collect([
        {"dram_read": (2.0, "float4"), "launch_latency": (3.0, "")},
        {"dram_read": (3.0, "float8"), "launch_latency": (4.0, ""), "fp32_fma": (1.0, "float")},
    ])  # fmt: skip
    assert found["dram_read"] == PeerValue(values=[2.0, 3.0], shape="float8")
    assert found["fp32_fma"].values == [1.0] and found["launch_latency"].values == [3.0, 4.0]


@pytest.mark.parametrize(("peer", "expected"), [([12.0, 13.0], True), ([10.5, 13.0], False), ([5.0], False)])
def test_below_the_peer_means_beyond_the_noise_of_both(peer: list[float], expected: bool) -> None:
    assert below(made(10.0), PeerValue(values=peer, shape="")) == expected


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
