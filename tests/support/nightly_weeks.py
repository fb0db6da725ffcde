"""Three weeks of nightly runs in one process: what each command answered, as JSON lines.

    python tests/support/nightly_weeks.py FOLDER [DEVICE]     prints the summaries; by hand, to read them

What is tried is what the suite makes of a slow-down, a crash, a wrong result, a missing device, a new driver and a
changed source. Cases are really executed, but their times are drawn around the planted ones: on a busy machine even
what only sleeps (tests/data/nightly) takes longer. Workers are forked rather than spawned: this process has opened no
device, and importing everything again 30 times takes a minute.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from perfport import cli
from perfport.machine import discovery
from perfport.measure.ceilings import Ceilings, store
from perfport.measure.sampling import Execution, Sampler, Subject
from perfport.model.device import DeviceInfo
from perfport.nightly import remeasure
from perfport.run import runner as runs

PLANTED = Path(__file__).parents[1] / "data" / "nightly"
VARIANTS = ("clock_a", "clock_b", "clock_c")
NOISE = random.Random(1)


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


@dataclass
class Answer:
    """Exit code and everything that a command said."""

    night: int
    command: str
    code: int
    said: str


def call(night: int, *args: object) -> Answer:
    """Run a command line in this process."""
    sys.argv = ["perfport", *map(str, args)]
    said = io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
    return Answer(night, str(args[0]), int(code), said.getvalue())


def weeks(folder: Path, device: DeviceInfo) -> Iterator[Answer]:
    """Run, check and add every night; yields what came of each command."""
    shutil.copytree(PLANTED, folder / "nightly", ignore=shutil.ignore_patterns("__pycache__"))
    file, history = folder / "weeks.yaml", folder / "history"
    file.write_text(yaml.safe_dump(definition(1)))
    history.mkdir()
    for number, night in enumerate(WEEKS, 1):
        info = device.model_copy(update={"driver": night.driver or device.driver})
        if night.missing:
            info = info.model_copy(update={"healthy": False, "reason": "planted: no answer"})
        find(info)
        if night.edit:
            kernel = folder / "nightly" / "kernels" / "rounds.cl"
            kernel.write_text(kernel.read_text().replace("2.0f * v", "v * 2.0f"))
        os.environ["NIGHTLY_PLANTED"] = json.dumps(night.planted)
        out, shared = folder / f"night{number:02d}", ("--workloads", folder / "nightly")
        yield call(number, "run", file, "--out", out, *shared, *(night.more if "-b" in night.more else ()))
        if night.missing:
            continue
        if night.calm:  # what slowed the first measurement is over when it is taken again
            os.environ["NIGHTLY_PLANTED"] = "{}"
        again = night.more if "--remeasure" in night.more else ()
        yield call(number, "check", out, "--history", history, *shared, *again)
        yield call(number, "history", "add", out, "--into", history)


def resumed(folder: Path, device: DeviceInfo) -> Iterator[Answer]:
    """Run with one worker, then go on with three, then once more with nothing to do."""
    find(device)
    os.environ["NIGHTLY_PLANTED"] = "{}"
    file, out = folder / "resumed.yaml", folder / "resumed"
    for workers in (1, 3, 3):
        file.write_text(yaml.safe_dump(definition(workers)))
        resume = ["--resume"] if out.exists() else []
        yield call(0, "run", file, "--out", out, "--workloads", PLANTED, *resume)
        shutil.copy(out / "records.jsonl", folder / f"records{len(list(folder.glob('records*')))}.jsonl")


def find(device: DeviceInfo) -> None:
    """Make this the one device that discovery finds."""
    discovery.discover = lambda: [device]


def planted_time(sampler: Sampler, subject: Subject, execution: Execution) -> float:
    """In place of `Sampler._wall`: execute, and return about the seconds that the variant is to take."""
    clock: Any = execution.execute.__self__.variant  # type: ignore[attr-defined]
    execution.execute()
    return clock.seconds * clock.factor * NOISE.lognormvariate(0.0, 0.01)


def main() -> None:
    """Run both; JSON lines where a device is given, else text."""
    folder = Path(sys.argv[1])
    given = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    device = (
        DeviceInfo.model_validate_json(given.read_text())
        if given
        else next(info for info in discovery.discover() if info.healthy)
    )
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = tempfile.tempdir = str(folder)
    for driver in {device.driver, *(night.driver for night in WEEKS if night.driver)}:
        info = device.model_copy(update={"driver": driver})
        store(info, Ceilings(device=info.id, driver=driver, date="", entries={}))
    fork = multiprocessing.get_context("fork")
    runs.multiprocessing.get_context = lambda _: fork  # type: ignore[attr-defined]
    # A forked worker holds a copy of this process's end of its pipe, so it would not see that it is closed.
    runs.WorkerHandle.close = runs.WorkerHandle.kill  # type: ignore[method-assign]
    Sampler._wall = planted_time  # type: ignore[method-assign]
    os.register_at_fork(before=NOISE.random)  # each worker draws times of its own
    remeasure.WORKERS = 3
    for answer in (*weeks(folder, device), *resumed(folder, device)):
        if given:
            print(json.dumps(vars(answer)), flush=True)
        else:
            print(f"--- night {answer.night}: perfport {answer.command}: exit code {answer.code}\n{answer.said}")


if __name__ == "__main__":
    main()
