"""Three weeks of nightly runs, really measured: each night ends in the right exit code and a summary that says why.

The cases are clocks that sleep (tests/data/nightly), so that a busy machine does not slow them: what is tested is what
the suite makes of a slow-down, a crash, a wrong result, a missing device, a new driver and a changed source.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import kill_runs

from perfport import cli, discovery, launch, remeasure
from perfport.device import DeviceInfo
from perfport.history import History
from perfport.results import Run

PLANTED = Path(__file__).parents[1] / "data" / "nightly"
VARIANTS = ("clock_a", "clock_b", "clock_c")


def definition(workers: int, **keys: Any) -> dict[str, Any]:
    """Return an experiment over the clocks that takes little time."""
    return {
        "name": "weeks", "workers": workers, "check": {"threshold": 0.5}, "timeout": 30,
        "measurement": {"cache": "warm", "min_samples": 3, "max_samples": 3, "time_budget": 0.2},
        "experiments": [{
            "workload": "nightly", "problem": "double", "variants": list(VARIANTS),
            "parameters": {"n": 64, "rounds": 1, "seconds": 0.01},
        }], **keys,
    }  # fmt: skip


@dataclass
class Night:
    """What happens, and what is to come of it: exit codes of ``run`` and ``check``, and words of the summary."""

    planted: dict[str, Any] = field(default_factory=dict)
    run: int = 0
    check: int = 0
    words: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    driver: str = ""
    edit: bool = False
    missing: bool = False
    calm: bool = False


SLOW = {"clock_b": {"factor": 3}}
CRASH, WRONG = {"clock_c": {"fault": "crash"}}, {"clock_a": {"fault": "wrong"}}
GREEN = ("Green: no regression found",)
NEW_DRIVER = ("3 | driver, source, settings or software changed", "to 99.1", "no alarm")
WEEKS = [
    Night(words=(*GREEN, "an empty history")), Night(words=(*GREEN, "1 night of this series; 3 are needed")),
    Night(words=GREEN), Night(words=(*GREEN, "compared with the last 3 nights")), Night(words=GREEN),
    Night(SLOW, 0, 5, ("Red: 1 slower, of 3 cases", "clock_b", "3 workers measured it again"), ("--remeasure",)),
    Night(words=(*GREEN, "5 nights (1 out of line)")),
    Night(words=(*GREEN, *NEW_DRIVER), driver="99.1"),
    Night(SLOW, 0, 0, (*GREEN, "1 night of this series; 3 are needed"), driver="99.1"),
    Night(words=GREEN, driver="99.1"), Night(words=GREEN, driver="99.1"),
    Night(CRASH, 4, 4, ("Red: 1 newly failing, of 3 cases", "clock_c", "crashed: the worker died of signal SIGSEGV"),
          driver="99.1"),
    Night(words=GREEN, driver="99.1"),
    Night(WRONG, 3, 3, ("Red: 1 wrong, of 3 cases", "clock_a", "max abs error"), driver="99.1"),
    Night(run=4, missing=True, words=("no usable device",)),
    Night(words=GREEN, driver="99.1"),
    Night(SLOW, 0, 0, ("3 workers measured it again", *GREEN), ("--remeasure",), driver="99.1", calm=True),
    Night(run=0, check=4, words=("Red: 2 vanished, of 3 cases", "no such case in this run"), more=("-b", "clock_a"),
          driver="99.1"),
    Night(words=(*GREEN, "source changed"), driver="99.1", edit=True),
    Night(words=GREEN, driver="99.1"),
    Night({**SLOW, **WRONG}, 3, 3, ("Red: 1 wrong, of 3 cases",), driver="99.1"),
]  # fmt: skip


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, no_ceilings: dict[str, str], opencl_infos: list[DeviceInfo]) -> DeviceInfo:
    """A device without ceilings, and locks of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", no_ceilings["XDG_CACHE_HOME"])
    monkeypatch.setattr(tempfile, "tempdir", no_ceilings["TMPDIR"])
    monkeypatch.setattr(remeasure, "WORKERS", 3)
    return opencl_infos[0]


def call(monkeypatch: pytest.MonkeyPatch, capsys: Any, *args: object) -> tuple[int, str]:
    """Return exit code and everything that a command said."""
    monkeypatch.setattr(sys, "argv", ["perfport", *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
        raise SystemExit(0)
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out + told.err


def test_three_weeks(machine: DeviceInfo, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PLANTED, tmp_path / "nightly", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "weeks.yaml"
    file.write_text(yaml.safe_dump(definition(1)))
    for number, night in enumerate(WEEKS, 1):
        info = machine.model_copy(update={"driver": night.driver or machine.driver})
        if night.missing:
            info = info.model_copy(update={"healthy": False, "reason": "planted: no answer"})
        for module in (launch, discovery):
            monkeypatch.setattr(module, "discover", lambda info=info: [info])
        if night.edit:
            kernel = tmp_path / "nightly" / "kernels" / "rounds.cl"
            kernel.write_text(kernel.read_text().replace("2.0f * v", "v * 2.0f"))
        monkeypatch.setenv("NIGHTLY_PLANTED", json.dumps(night.planted))
        out = tmp_path / f"night{number:02d}"
        shared = ("--workloads", tmp_path / "nightly")
        more = night.more if "-b" in night.more else ()
        code, said = call(monkeypatch, capsys, "run", file, "--out", out, *shared, *more)
        assert code == night.run, f"night {number}: {said}"
        if night.missing:
            assert all(word in said for word in (*night.words, machine.id, "planted: no answer")), said
            assert not out.exists()
            continue
        if night.calm:  # what slowed the first measurement is over when it is taken again
            monkeypatch.setenv("NIGHTLY_PLANTED", "{}")
        more = night.more if "--remeasure" in night.more else ()
        code, said = call(monkeypatch, capsys, "check", out, "--history", tmp_path / "history", *shared, *more)
        assert code == night.check, f"night {number}: {said}"
        assert all(word in " ".join(said.split()) for word in night.words), f"night {number}: {said}"
        code, said = call(monkeypatch, capsys, "history", "add", out, "--into", tmp_path / "history")
        assert code == 0 and str(tmp_path / "history") in said
    history = History(tmp_path / "history")
    assert len(history.nights) == len(WEEKS) - 1 and not history.left_out and len(history.series) == 3
    (series,) = [one for one in history.series.values() if one.place.variant == "clock_a"]
    assert [event.what.split(" changed")[0] for event in history.events(series)] == ["driver", "source"]


def test_each_case_is_measured_by_fresh_workers(
    machine: DeviceInfo, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(launch, "discover", lambda: [machine])
    monkeypatch.setenv("NIGHTLY_PLANTED", "{}")
    file, out = tmp_path / "weeks.yaml", tmp_path / "out"
    file.write_text(yaml.safe_dump(definition(1)))
    arguments = ("run", file, "--out", out, "--workloads", PLANTED)
    assert call(monkeypatch, capsys, *arguments)[0] == 0
    first = {record.key: record for record in Run(out).records}
    file.write_text(yaml.safe_dump(definition(3)))  # more workers are no other case: a resumed run adds them
    assert call(monkeypatch, capsys, *arguments, "--resume")[0] == 0
    for record in Run(out).records:
        assert record.timing and record.timing.workers == [0] * 3 + [1] * 3 + [2] * 3
        before = first[record.key].timing
        assert before and record.timing.wall[:3] == before.wall and len(set(record.timing.rounds)) == 9
    assert len((out / "records.jsonl").read_text().splitlines()) == 9, "each worker's result is stored when it is there"
    again = (out / "records.jsonl").read_bytes()
    call(monkeypatch, capsys, *arguments, "--resume")
    assert (out / "records.jsonl").read_bytes() == again


def test_kill_9_loses_nothing(machine: DeviceInfo, tmp_path: Path) -> None:
    kills = kill_runs.survive(8, tmp_path, machine, seed=9)
    assert kills.started == 8 and kills.finished >= 1 and kills.nights == kills.finished
