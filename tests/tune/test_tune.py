"""The whole of a search: what is written, what a killed one keeps, what may not be resumed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tunable_workload as tunable
import yaml

from perfport.machine.device_profile import load_profile
from perfport.model.device import DeviceInfo
from perfport.model.errors import UsageError
from perfport.store import ratios
from perfport.store.reading import read_records
from perfport.tune import final, tune
from perfport.tune.log import Trial, read
from perfport.tune.space import name_of
from perfport.tune.tune import Done, Options

pytestmark = [pytest.mark.any_device, pytest.mark.minutes]

#: Faults that cost a process or a time-out are left out.
SMALL = tunable.PYTHON.replace(', "no_compile", "crash", "hang", "unsupported"', "")
Run = Callable[..., Done]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tunable.write(tmp_path)
    (folder / "__init__.py").write_text(SMALL)
    return folder


@pytest.fixture
def run(
    own: Path, tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:  # fmt: skip
    """Run a search in a folder of its own; what a busy machine disturbed counts as any other."""
    monkeypatch.setenv("XDG_CACHE_HOME", no_ceilings["XDG_CACHE_HOME"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tune, "usable_devices", lambda *selectors: opencl_infos[:1])
    monkeypatch.setattr(final, "WORKERS", 1)
    monkeypatch.setattr(final, "is_ranked", ratios.is_measured)
    monkeypatch.setattr(tune.discovery, "discover", lambda: opencl_infos)

    def called(**change: Any) -> Done:
        given = {"target": tunable.VARIANT, "budget": 600.0, "seed": 1, "profile": tmp_path / "own.yaml"}
        given |= {"out": tmp_path / "search", "workloads": [str(own)], "timeout": 20.0, "cache": "warm"}
        options = Options(**{**given, **change})
        return tune.run(options, lambda text: None, lambda text: None)

    return called


def trials(folder: Path) -> list[Trial]:
    return [each for each in read(folder / "tune.jsonl") if isinstance(each, Trial)]


def test_a_search_ends_in_a_profile(run: Run, tmp_path: Path) -> None:
    done = run()
    (result,) = done.results
    assert (result.tried, result.of) == (6, 6) and result.gain and result.gain.low > 1.2, result
    assert result.parameters == {"turns": 4, "fault": "none"} and result.next
    found = load_profile(tmp_path / "own.yaml").tuned
    ((family, variants),) = found.items()
    assert family.startswith("opencl:") and variants[tunable.VARIANT][0].parameters == result.parameters
    records = list(read_records(tmp_path / "search" / "final" / "records.jsonl"))
    assert {name_of(record.identity.tunables) for record in records} >= {
        name_of({"turns": turns, "fault": "none"}) for turns in (4, 64)
    }
    log = trials(tmp_path / "search")
    again = run(resume=True)  # nothing is left to do, but for finalists that others disturbed
    assert trials(tmp_path / "search") == log and again.results[0].parameters == result.parameters


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"resume": True}, "no search is here"),
        ({"target": "tunable/double/bare"}, "no variant with tunables is left"),
        ({"presets": {"huge": 1.0}}, "preset 'huge'"),
        ({"presets": {"quick": -1.0}}, r"^--presets\.quick: input should be greater than 0, got -1\.0"),
        ({"budget": 0.0}, r"^--budget: input should be greater than 0, got 0\.0"),
    ],
)
def test_mistakes_end_it_first(run: Run, tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        run(**change)
    assert not (tmp_path / "search").exists() and not tunable.built(tmp_path / "tunable")


def test_another_code_or_seed_is_another_search(run: Run, own: Path, tmp_path: Path) -> None:
    run(budget=1e-3)
    with pytest.raises(UsageError, match="holds a search already"):
        run()
    with pytest.raises(UsageError, match="seed was 1 and is 2"):
        run(resume=True, seed=2)
    with pytest.raises(UsageError, match="the cache was 'warm' and is 'cold'"):
        run(resume=True, cache="cold")
    with pytest.raises(UsageError, match=r"presets of .* were {'quick': 1.0} and are {'more': 1.0}"):
        run(resume=True, presets={"more": 1.0})
    (own / "kernels" / "scale.cl").write_text(tunable.KERNEL + "\n")
    with pytest.raises(UsageError, match="code was"):
        run(resume=True)


def test_a_profile_of_another_device_is_refused_first(run: Run, tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "device_profiles" / "hd7970.yaml"
    (tmp_path / "own.yaml").write_text(shipped.read_text())
    with pytest.raises(UsageError, match="expected a pattern that finds"):
        run()
    assert (tmp_path / "own.yaml").read_text() == shipped.read_text()


def test_a_command_that_is_killed_goes_on(
    own: Path, tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str]
) -> None:
    """SIGKILL between two configurations: what the log has is not measured again."""
    tune_ = yaml.safe_dump({
        "name": "own", "experiments": [{"workload": "tunable", "problem": "double", "presets": ["quick"]}],
        "tune": {"budget": 60.0, "seed": 3},
    })  # fmt: skip
    (tmp_path / "own.experiment.yaml").write_text(tune_)
    command = [
        sys.executable, "-m", "perfport.cli", "tune", str(tmp_path / "own.experiment.yaml"), "-d", opencl_infos[0].id,
        "--workloads", str(own), "--out", str(tmp_path / "search"), "-o", str(tmp_path / "own.yaml"), "--warm",
    ]  # fmt: skip
    with subprocess.Popen(command, env=no_ceilings, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as child:
        until = time.monotonic() + 120
        while time.monotonic() < until and len(logged(tmp_path)) < 2 and child.poll() is None:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
    before = logged(tmp_path)
    assert len(before) >= 2
    ended = subprocess.run([*command, "--resume"], env=no_ceilings, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    after = logged(tmp_path)
    assert after[: len(before)] == before and len(after) == len(set(after)) > len(before)
    assert "tunable/double/turns" in ended.stdout


def logged(folder: Path) -> list[str]:
    """The configurations and sizes of whole lines of the log."""
    path = folder / "search" / "tune.jsonl"
    known = trials(path.parent) if path.exists() and path.stat().st_size else []
    return [f"{name_of(each.config)} {each.preset}" for each in known]
