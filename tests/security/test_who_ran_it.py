"""What a run stores tells nobody who ran it, and where that user keeps things."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from faulty_runs import FAULTY, experiment

from perfport.store.results import ENVIRONMENT, RECORDS, Run

ROOT = Path(__file__).parents[2]
COMMITTED = [*(ROOT / "results" / "committed").rglob("*.json*"), *(ROOT / "reports").rglob("*.md")]
#: Folders that are somebody's, or of one machine alone; of a text of somebody else's, as published figures are, no URL.
PRIVATE = re.compile(r"(?<![\w./~$-])/(?:root|home|Users|work|tmp|var/tmp|opt/v)\b[^\s\"]*")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Ann's home, with a link to the faulty workload in it."""
    folder = tmp_path / "u" / "ann"
    folder.mkdir(parents=True)
    (folder / "faulty").symlink_to(FAULTY)
    return folder


def test_a_run(opencl_infos: list[Any], perfport: Any, no_ceilings: dict[str, str], home: Path) -> None:
    info = opencl_infos[0]
    env = {**no_ceilings, "HOME": str(home), "USER": "ann"}
    file = experiment(home, {"variants": ["good", "raises", "no_compile"]}, report={"path": "report.md"})
    out = home / "out"
    arguments = ["run", file, "-d", info.id, "--out", out, "--workloads", home / "faulty"]
    done = perfport(*arguments, env=env, cwd=home)
    assert done.returncode in (3, 4), done.stderr
    stored = Run(out)
    assert stored.environment["command"][2:] == [
        "~/faults.yaml", "-d", info.id, "--out", "~/out", "--workloads", "~/faulty",
    ]  # fmt: skip
    logs = [record.failure.log for record in stored.records if record.failure]
    assert any("Traceback" in log and '.py", line' in log for log in logs), "a log that has paths"
    whole = (out / ENVIRONMENT).read_text() + (out / RECORDS).read_text()
    for folder in (str(home), sys.prefix, str(ROOT), no_ceilings["TMPDIR"], "/ann"):
        assert folder not in whole, folder
    report = (out / "report.md").read_text()
    assert "perfport run ~/faults.yaml" in report and str(home) not in report.replace(str(out), "")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_committed_results(path: Path) -> None:
    assert PRIVATE.findall(path.read_text()) == []


def test_ceilings_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from perfport.machine import paths
    from perfport.untimed.count import counts

    monkeypatch.setenv("HOME", "/u/ann")
    paths._of_this_machine.cache_clear()
    counts.begin(tmp_path / "counts", {"command": ["perfport", "count", "-o", "/u/ann/out"]})
    paths._of_this_machine.cache_clear()
    told = json.loads((tmp_path / "counts" / ENVIRONMENT).read_text())
    assert told["command"][3] == "~/out"
