"""Every kind of damage to every file that a command reads: never a traceback, a hang or an undocumented code.

What is left out is named, and what is undamaged beside it is still read. Randomness is seeded by the names of damage
and command, so that a failure repeats.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import history_data
import numpy as np
import pytest
import report_data as data
import yaml
from commands import experiment
from damage import DAMAGE, HOPELESS
from matplotlib.backends.backend_svg import FigureCanvasSVG
from minimal_workload import MINIMAL

from perfport import cli
from perfport.cli.options import ExitCode
from perfport.machine import discovery
from perfport.model.device import DeviceInfo
from perfport.store.results import EXPERIMENT, RECORDS

BAD, GOOD = f"runs/bad/{RECORDS}", f"runs/good/{RECORDS}"
CASE = f"demo/rows/quick@{data.POCL}"


@dataclass(frozen=True)
class Reader:
    """A command that reads a file.

    Attributes
    ----------
    file : str
        What is damaged.
    arguments : str
        Of the command line.
    codes : set of int
        How it ends where nothing of the file is left.
    still : str
        What it then prints or writes of what is undamaged beside it.
    """

    file: str
    arguments: str
    codes: frozenset[int] = frozenset({ExitCode.USAGE})
    still: str = ""


def beside(arguments: str, still: str = "", file: str = BAD, code: int = ExitCode.FINE) -> Reader:
    """A command that reads an undamaged file, too."""
    return Reader(file, arguments, frozenset({code}), still)


READERS = {
    "report": beside("report runs -o out.md", "out.md"),
    "report --suite": beside("report --suite runs -o suite.md", "suite.md"),
    "table": beside("table runs", "demo"),
    "explain": beside("explain --suite runs", "demo"),
    "claims": beside("claims runs", "svm_rbf"),
    "portability": beside("portability runs", "demo"),
    "crosstuning": Reader(BAD, "crosstuning runs", frozenset({ExitCode.FINE, ExitCode.USAGE})),
    "compare": Reader(BAD, "compare runs/good runs/bad"),
    "compare variants": beside("compare row_major local_memory --results runs", "row_major", code=ExitCode.FINE),
    "stale": beside("stale runs", "demo"),
    "history add": beside("history add runs --into added", "good"),
    "history add of settings": beside("history add runs --into added", "good", f"runs/bad/{EXPERIMENT}"),
    "history": beside("history --in nights", "svm_rbf", "nights/bad.json"),
    "check --history": beside("check runs/good --history nights", "good", "nights/bad.json", ExitCode.INCONCLUSIVE),
    "check": Reader(BAD, "check runs/bad --baseline runs/good"),
    "check of settings": Reader(f"runs/bad/{EXPERIMENT}", "check runs/bad --baseline runs/good"),
    "check --baseline": Reader(BAD, "check runs/good --baseline runs/bad"),
    "quotes": Reader("text.md", "quotes text.md --results runs"),
    "quotes of a run": Reader(BAD, "quotes text.md --results runs", frozenset({ExitCode.WRONG})),
    "export": beside("export runs --format otava -o out.csv", "out.csv"),
    "export of one": Reader(BAD, "export runs/bad --format pyperf -o out.json"),
    "import": Reader("theirs.json", f"import theirs.json --format pyperf --beside runs/good --as {CASE} --out new"),
    "import --beside": Reader(BAD, f"import theirs.json --format pyperf --beside runs/bad --as {CASE} --out new"),
    "validate": Reader(BAD, "validate runs"),
    "validate an experiment": Reader("experiment.yaml", "validate experiment.yaml"),
    "run": Reader("experiment.yaml", "run experiment.yaml --dry-run"),
    # What is no file cannot be added to; and a line without an end is cut off in silence, as after a kill.
    "run --resume": Reader(BAD, "run experiment.yaml --resume --out runs/bad", frozenset({2, 4})),
    "show": beside("show 0000 --results runs", "0000 ok"),
    "counts": beside("report --suite runs -o suite.md", "suite.md", "runs/counts/counts.jsonl"),
    "claims of a workload": Reader("mine/claims.yaml", "claims runs --workloads mine"),
    "published figures": Reader("mine/published.yaml", "run mine.yaml --workloads mine --out new"),
    "code convergence": Reader("runs/convergence.json", "report --suite runs -o suite.md"),
    "device profile": Reader("profile.yaml", "verify nosuch --profile profile.yaml"),
}
#: Of a text whose only form is that it is one.
HOPELESS_TEXT = {"line of 100 MB", "not UTF-8", "a folder", "unreadable", "FIFO"}
ROOT = Path(__file__).parents[2]


ledger = import_module("perfport.judge.claims.ledger")  # the package has a function of that name
read = ledger.read
shipped = cache(read)  # claims that are not damaged: most of the time of a report


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that `READERS` names, undamaged."""
    folder = tmp_path_factory.mktemp("whole")
    for name, seconds in {"good": 0.05, "bad": 0.04}.items():
        records = [
            data.record("row_major", seconds, key="0000" if name == "good" else "1111"),
            data.record("local_memory", 0.8 * seconds),
        ]
        content = data.environment((data.POCL,), run=name)
        data.store(folder / "runs" / name, [one.model_copy(update={"run": name}) for one in records], content)
        definition = {"name": "demo", "experiments": [{"workload": "demo", "problem": "rows", "presets": ["quick"]}]}
        (folder / "runs" / name / EXPERIMENT).write_text(yaml.safe_dump(definition))
    counted = data.record("row_major")
    assert counted.traffic
    data.store_counts(folder / "runs" / "counts", 2 * [data.count(counted, counted.traffic)])
    convergence = {"workload": "demo", "problem": "*", "variant": "*", "lines": {"opencl": 3, "cuda": 2}}
    (folder / "runs" / "convergence.json").write_text(
        json.dumps([{**convergence, "common": 2, "total": 3, "convergence": 0.5}])
    )
    for number, name in enumerate(("bad", "good")):
        night = history_data.write_night(folder / "nights", number, np.array([0.01, 0.02]))
        night.rename(folder / "nights" / f"{name}.json")
    theirs = [{"metadata": {"name": f"theirs {n}"}, "runs": [{"values": [0.03, 0.031, 0.029]}]} for n in range(2)]
    (folder / "theirs.json").write_text(json.dumps({"version": "1.0", "metadata": {}, "benchmarks": theirs}))
    experiment(folder)
    mine = {"name": "mine", "experiments": [{"workload": "mine", "problem": "p", "presets": ["tiny"]}]}
    (folder / "mine.yaml").write_text(yaml.safe_dump(mine))
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text(MINIMAL)
    shutil.copy(ROOT / "workloads" / "gdn" / "claims.yaml", folder / "mine")
    shutil.copy(ROOT / "results" / "published" / "gdn.yaml", folder / "mine" / "published.yaml")
    shutil.copy(ROOT / "device_profiles" / "hd5870.yaml", folder / "profile.yaml")
    (folder / "text.md").write_text("# A text\n\nIt takes **50.0** ms. <!-- from bad: rows quick row_major -->\n")
    return folder


@pytest.fixture
def call(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[[str], tuple[int, str]]:
    """Call the command line in a copy of the whole folder, on a machine whose one device measures nothing."""

    class Idle:
        """Takes the place of the runner."""

        def __init__(self, *given: Any) -> None: ...

        def run(self, groups: Any) -> list[Any]:
            return []

    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(ledger, "read", lambda file: shipped(file) if ROOT in file.parents else read(file))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(discovery, "discover", lambda: [DeviceInfo(**data.device(data.POCL))])
    monkeypatch.setattr("perfport.run.local.Runner", Idle)

    def call(arguments: str) -> tuple[int, str]:
        if not arguments.startswith("report runs"):  # that draws everything that the others draw
            monkeypatch.setattr(FigureCanvasSVG, "print_svg", lambda self, file, **_: file.write("<svg/>"))
        monkeypatch.setattr(sys, "argv", ["perfport", *arguments.split()])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        return int(ended.value.code or 0), "".join(capsys.readouterr())

    return call


def damaged(name: str, kind: str) -> None:
    """Damage the file of a reader, in the working folder."""
    if kind == "unreadable" and os.geteuid() == 0:
        pytest.skip("root may read everything")
    DAMAGE[kind](Path(READERS[name].file), random.Random(zlib.crc32(f"{name} {kind}".encode())))


def hopeless(name: str, kind: str) -> bool:
    """Whether nothing of the file is left."""
    return kind in (HOPELESS_TEXT if READERS[name].file.endswith(".md") else HOPELESS)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", READERS)
def test_damage_is_named(call: Any, name: str, kind: str) -> None:
    damaged(name, kind)
    code, said = call(READERS[name].arguments)
    assert code in set(ExitCode)
    assert "Traceback" not in said and len(said) < 100_000
    if hopeless(name, kind) and (name, kind) != ("run --resume", "line of 100 MB"):
        assert code in READERS[name].codes, said
        assert READERS[name].file in said and READERS[name].still in said


@pytest.mark.parametrize("name", READERS)
def test_what_is_whole_is_read(call: Any, name: str) -> None:
    code, said = call(READERS[name].arguments)
    assert "perfport: left out" not in said and READERS[name].still in said
    assert code in (ExitCode.FINE, ExitCode.SLOWER, ExitCode.INCONCLUSIVE) or name in (
        "quotes",
        "quotes of a run",
        "device profile",
    ), said


@pytest.mark.parametrize(
    ("name", "kind"), [("table", "FIFO"), ("validate an experiment", "alias bomb"), ("import", "not UTF-8")]
)
def test_a_process_of_its_own_ends_the_same(whole: Path, tmp_path: Path, call: Any, name: str, kind: str) -> None:
    damaged(name, kind)
    command = [sys.executable, "-m", "perfport.cli", *READERS[name].arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "".join((done.stdout, done.stderr))) == call(READERS[name].arguments)
