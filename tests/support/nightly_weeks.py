"""Three weeks of nightly runs in one process: what each command answered, as JSON lines.

    python tests/support/nightly_weeks.py FOLDER              prints the story that docs/nightly.md tells
    python tests/support/nightly_weeks.py FOLDER DEVICE       for tests, with a device's description as JSON

What is tried is what the suite makes of a slow-down, a crash, a wrong result, a missing device, a new driver, a
contended machine, and a source that is changed and mended. Cases are really executed, but their times are drawn around
the planted ones: on a busy machine even what only sleeps (tests/data/nightly) takes longer. Workers are forked rather
than spawned: this process has opened no device, and importing everything again 30 times takes a minute.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from perfport import cli
from perfport.machine import discovery
from perfport.measure import contention
from perfport.measure.ceilings import Ceilings, store
from perfport.measure.sampling import Execution, Sampler, Subject
from perfport.model.device import DeviceInfo
from perfport.nightly import remeasure
from perfport.run import runner as runs
from perfport.run import sources

PLANTED = Path(__file__).parents[1] / "data" / "nightly"
VARIANTS = ("clock_a", "clock_b", "clock_c")
NOISE = random.Random(1)
OLD, NEW = "580.65", "590.12"


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
    """What happens, and what is to come of it: exit codes of ``run`` and ``check``, and words of the summary.

    ``told`` is its line in the story of docs/nightly.md; ``accept`` are words of a ``history accept`` before the check.
    """

    planted: dict[str, Any] = field(default_factory=dict)
    run: int = 0
    check: int = 0
    words: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    driver: str = OLD
    edit: tuple[str, str] | None = None
    commit: str = "a1b2c3d4" * 5
    accept: tuple[str, ...] = ()
    missing: bool = False
    calm: bool = False
    loud: bool = False
    told: str = ""


def later(planted: dict[str, Any] | None = None, *codes: int, words: tuple[str, ...] = (), **keys: Any) -> Night:
    """A night with the new driver, which made one clock slower."""
    return Night({**SLOW, **(planted or {})}, *codes, words=words, driver=NEW, **keys)


LOAD = "other processes used 60% of the processor meanwhile"
SLOW, SLOW_A = {"clock_b": {"factor": 3}}, {"clock_a": {"factor": 3}}
CRASH, WRONG = {"clock_c": {"fault": "crash"}}, {"clock_a": {"fault": "wrong"}}
GREEN = ("Green: no regression found",)
TOO_FEW = "Yellow: no regression found, but only 0 of 3 cases could be judged"
SLOWER_KERNEL, FIX = ("2.0f * v", "v * 2.0f"), ("v * 2.0f", "2.0f * v")
CHANGED, FIXED = "c3d4e5f6" * 5, "e5f6a7b8" * 5
AGAIN = ("--remeasure",)
WEEKS = [
    Night(check=6, words=(TOO_FEW, "an empty history"), told="the first night: nothing to be held to"),
    Night(check=6, words=(TOO_FEW, "1 night of this series; 3 are needed")), Night(check=6, words=(TOO_FEW,)),
    Night(words=(*GREEN, "compared with the last 3 nights"), told="a clean night"), Night(words=GREEN),
    Night(SLOW, 0, 5, ("Red: 1 slower, of 3 cases", "clock_b", "3 workers measured it again"), AGAIN),
    Night(words=(*GREEN, "5 nights (1 out of line)")),
    later(None, 0, 6, words=(f"Yellow: 1 slower since driver {OLD} -> {NEW}, of 3 cases",),
          told="a new driver, with which a kernel is slower"),
    later(None, 0, 6, words=("Yellow: 1 slower since driver",), told="the night after"),
    later(words=GREEN, accept=("--event", NEW, "--reason", "no way back"),
          told="the new level is accepted"),
    later(CRASH, 4, 4, words=("Red: 1 newly failing, of 3 cases", "crashed: the worker died of signal SIGSEGV")),
    later(words=GREEN), later(WRONG, 3, 3, words=("Red: 1 wrong, of 3 cases", "clock_a", "max abs error")),
    Night(run=4, missing=True, words=("no usable device",)),
    later(words=GREEN),
    later(SLOW_A, 0, 6, words=("3 workers measured it again", "only 2 of 3 cases could be judged (1 too noisy)"),
          more=AGAIN, calm=True),
    later(None, 0, 4, words=("Red: 2 vanished, of 3 cases", "no such case in this run"), more=("-b", "clock_a")),
    later(SLOW_A, 0, 5,
          words=("Red: 1 slower since source changed (a1b2c3d..c3d4e5f: nightly/kernels/rounds.cl), of 3 cases",
                 "measured again by the run's code alone"),
          more=AGAIN, edit=SLOWER_KERNEL, commit=CHANGED, told="a commit makes a kernel slower"),
    later(SLOW_A, 0, 6, words=(TOO_FEW, "(3 contended)"), loud=True, commit=CHANGED, told="others use the machine"),
    later(SLOW_A, 0, 5, words=("Red: 1 slower since source changed",), commit=CHANGED, told="it is still slower"),
    later(words=GREEN, edit=FIX, commit=FIXED, told="the kernel is fixed"),
    later({**SLOW_A, **WRONG}, 3, 3, words=("Red: 1 wrong, of 3 cases",), commit=FIXED),
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
    return Answer(night, " ".join(map(str, args[:2] if args[0] == "history" else args[:1])), int(code), said.getvalue())


def story(answers: Iterable[dict[str, Any]]) -> str:
    """Return the nights that are told: what happened, each command's exit code and the first line of its summary."""
    lines = []
    for answer in answers:
        night = WEEKS[answer["night"] - 1] if answer["night"] else Night()
        if not night.told or answer["command"] in ("run", "history add"):
            continue
        if answer["command"] == "check":
            again = " --remeasure" if "--remeasure" in night.more else ""
            heading = f"# night {answer['night']}: {night.told}\n"
            (said,) = (line for line in answer["said"].splitlines() if line.startswith("perfport check: "))
            command = f"perfport check night{answer['night']:02d} --history history{again}"
        else:
            heading, said = "", f"accepted: {answer['said'].count('accepted: ')} cases, in history/accepted.yaml"
            command = f"perfport history accept {shlex.join(night.accept)}"
        lines.append(f"{heading}$ {command}\n{said}\n[exit code {answer['code']}]")
    return "\n".join(lines) + "\n"


def weeks(folder: Path, device: DeviceInfo) -> Iterator[Answer]:
    """Run, check and add every night; yields what came of each command."""
    shutil.copytree(PLANTED, folder / "nightly", ignore=shutil.ignore_patterns("__pycache__"))
    file, history = folder / "weeks.yaml", folder / "history"
    file.write_text(yaml.safe_dump(definition(1)))
    history.mkdir()
    for number, night in enumerate(WEEKS, 1):
        info = device.model_copy(update={"driver": night.driver, "platform_version": "CUDA 13.0"})
        if night.missing:
            info = info.model_copy(update={"healthy": False, "reason": "planted: no answer"})
        find(info)
        if night.edit:
            kernel = folder / "nightly" / "kernels" / "rounds.cl"
            kernel.write_text(kernel.read_text().replace(*night.edit))
            sources.digest.cache_clear()  # every night is a process of its own, really
        os.environ["NIGHTLY_PLANTED"] = json.dumps(night.planted)
        os.environ["PERFPORT_COMMIT"] = night.commit
        contention.Watch.reason = lambda _, loud=night.loud: LOAD if loud else ""  # type: ignore[method-assign]
        out, shared = folder / f"night{number:02d}", ("--workloads", folder / "nightly")
        yield call(number, "run", file, "--out", out, *shared, *(night.more if "-b" in night.more else ()))
        if night.missing:
            continue
        if night.calm:  # what slowed the first measurement is over when it is taken again
            os.environ["NIGHTLY_PLANTED"] = "{}"
        if night.accept:
            yield call(number, "history", "accept", *night.accept, "--in", history)
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
    for driver in (device.driver, OLD, NEW):
        info = device.model_copy(update={"driver": driver})
        store(info, Ceilings(device=info.id, driver=driver, date="", entries={}))
    fork = multiprocessing.get_context("fork")
    runs.multiprocessing.get_context = lambda _: fork  # type: ignore[attr-defined]
    # A forked worker holds a copy of this process's end of its pipe, so it would not see that it is closed.
    runs.WorkerHandle.close = runs.WorkerHandle.kill  # type: ignore[method-assign]
    Sampler._wall = planted_time  # type: ignore[method-assign]
    os.register_at_fork(before=NOISE.random)  # each worker draws times of its own
    remeasure.WORKERS = 3
    if not given:
        print(story(map(vars, weeks(folder, device))), end="")
        return
    for answer in (*weeks(folder, device), *resumed(folder, device)):
        print(json.dumps(vars(answer)), flush=True)


if __name__ == "__main__":
    main()
