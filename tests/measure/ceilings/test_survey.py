"""`perfport ceilings`: the peer's output, what is stored, the page made of it, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfport.backend.offline import cuda_info
from perfport.measure.ceilings import Ceiling, Ceilings, clpeak, load_cached, survey
from perfport.measure.ceilings.clpeak import Peer, PeerValue
from perfport.measure.ceilings.survey import Survey
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UsageError
from perfport.report.pages.ceilings import render, terminal

pytestmark = [pytest.mark.any_device, pytest.mark.minutes]

DATA = Path(__file__).parents[2] / "data" / "clpeak"
POCL = "pthread-skylake-avx512-Intel(R) Xeon(R) Processor"
INTEL = "Intel(R) Xeon(R) Processor"


def made(value: float, unit: str = "B/s", **more: Any) -> Ceiling:
    """A ceiling with an interval of 10 % to either side."""
    return Ceiling(value=value, low=0.9 * value, high=1.1 * value, unit=unit, **more)


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
        contended={"fp32_fma": "others used 60%"},
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
    assert "- `fp32_fma` was **contended**: others used 60%." in page
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
    assert "contended: fp32_fma (others used 60%)" in shown
    assert "absent: l3_read" in shown and "2026-01-02" in shown


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
    assert f"{info.id}: measuring ceiling dram_read" in told and found.command == ["typed"]
    assert found.ceilings.entries["dram_read"].value > 0 and load_cached(info) == found.ceilings
    assert json.loads(found.model_dump_json())["host"]["cores"] >= 1


def test_a_child_that_fails_says_why(opencl_infos: list[DeviceInfo], tmp_path: Path) -> None:
    gone = opencl_infos[0].model_copy(update={"id": "opencl:none:7", "name": "gone", "driver": "none"})
    with pytest.raises(InfrastructureError, match="not visible in this process"):
        survey.survey(gone)
