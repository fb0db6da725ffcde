"""pytest entry: an experiment file on pytest's command line becomes one benchmark for each of its cases.

Nothing is imported and no file is read unless an experiment is named: on the command line, or by the ini option
``perfport_experiments``. The cases run through the usual path of plan, runner and worker into a run folder; the samples
that it stored are handed to pytest-benchmark by a timer that shows them one after the other.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..model.record import Record
    from ..run.local import Options, Prepared
    from ..run.plan import Group

#: A YAML file without such a line belongs to somebody else.
EXPERIMENT = re.compile(r"^experiments:", re.M)
UNUSED = "ignore:Benchmark fixture was not used:pytest.PytestWarning"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of experiments, and where else than on the command line they are named."""
    group = parser.getgroup("perfport", "perfport: experiment files as benchmarks")
    group.addoption("--perfport-device", action="append", metavar="SELECTOR", help="Devices, as -d of perfport run.")
    group.addoption("--perfport-out", metavar="DIR", help="Folder for run folders, one for each file. [results]")
    group.addoption("--perfport-workloads", action="append", default=[], metavar="PATH", help="Further workloads.")
    group.addoption("--perfport-seed", type=int, metavar="N", help="Seed of the inputs that are timed.")
    parser.addini("perfport_experiments", "Patterns of experiment files to collect in a tree.", type="args", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect an experiment file that is named."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    patterns = parent.config.getini("perfport_experiments")
    named = parent.session.isinitpath(file_path) or any(file_path.match(pattern) for pattern in patterns)
    if not named or not EXPERIMENT.search(file_path.read_text(errors="replace")):
        return None
    return ExperimentFile.from_parent(parent, path=file_path)


class ExperimentFile(pytest.File):
    """The cases of an experiment on the devices here. Its run folder is open while its items run."""

    prepared: Prepared

    def collect(self) -> Iterator[CaseItem]:
        """Plan the experiment.

        Raises
        ------
        CollectError
            For a bad file, without a device, without pytest-benchmark, or under pytest-xdist.
        """
        from ..model.errors import PerfportError, check_writable
        from ..model.names import names
        from ..model.untrusted import distinct_line
        from ..run.experiment import load
        from ..run.local import prepare, report_file

        if not self.config.pluginmanager.hasplugin("benchmark"):
            raise self.CollectError("experiments need pytest-benchmark: pip install perfport[bench]")
        if hasattr(self.config, "workerinput"):
            raise self.CollectError("cases are measured one after the other: run experiments without -n")
        try:
            if (definition := load(self.path)).executor.kind != "local":
                raise self.CollectError("benchmarks run on this machine: use perfport run for this executor")
            self.prepared = prepare(self.path, definition, self._options())
            if report := report_file(self.prepared.definition, self.prepared.folder, self._whole):
                check_writable(report, f"{self.path}: report.path")
        except PerfportError as error:
            raise self.CollectError(str(error)) from None
        self.records: dict[str, Record] = {}
        groups = self.prepared.groups
        labels = map(distinct_line, names([case.identity for group in groups for case in group.cases]))
        for group in groups:
            for case in group.cases:
                yield CaseItem.from_parent(self, name=next(labels), callobj=_hand_over, group=group, key=case.key)

    @property
    def _whole(self) -> bool:
        """Whether the session may be all of the experiment, kept where runs are kept."""
        return not self.config.getoption("--perfport-device") and not self.config.getoption("--perfport-out")

    def _options(self) -> Options:
        from ..run.local import RESULTS, Options
        from ..run.runner import stamp

        option = self.config.getoption
        seed = option("--perfport-seed")
        if seed is not None and not 0 <= seed < 2**31:
            raise self.CollectError(f"--perfport-seed: expected an integer from 0 to {2**31 - 1}, got {seed}")
        out = Path(option("--perfport-out") or RESULTS) / f"{self.path.stem}-{stamp()}"
        return Options(
            devices=option("--perfport-device"), out=out, workloads=option("--perfport-workloads"),
            seed=seed, command=["pytest", *sys.argv[1:]],
        )  # fmt: skip

    def setup(self) -> None:
        """Open the run folder."""
        from ..run.local import opened

        self._open = contextlib.ExitStack()
        self._writer, self._environment = self._open.enter_context(opened(self.prepared))

    def teardown(self) -> None:
        """Close the run folder and write the report that the experiment asks for."""
        from ..model.untrusted import say
        from ..report.pages.run import render
        from ..run.local import again, conclude, report_file
        from ..store.results import Run

        self._open.close()
        if not self.records:
            return
        prepared = self.prepared
        every = len(self.records) == sum(len(group.cases) for group in prepared.groups)
        conclude(list(self.records.values()), [prepared.folder], say, again(prepared.options.command))
        if report := report_file(prepared.definition, prepared.folder, self._whole and every):
            render([Run(prepared.folder)], report)
            say(f"report: {report}")

    def record(self, item: CaseItem) -> Record:
        """Return the record of a case; the first one of a group runs those of the group that were not deselected."""
        from ..run.progress import RunProgress
        from ..run.runner import Runner

        if item.key not in self.records:
            mine = (each for each in self.session.items if isinstance(each, CaseItem) and each.parent is self)
            chosen = {each.key for each in mine}
            cases = [case for case in item.group.cases if case.key in chosen]
            with RunProgress(len(cases)) as progress:
                runner = Runner(self._writer, self._environment, self.prepared.options.workloads, progress)
                new = runner.run([item.group.model_copy(update={"cases": cases})])
            self.records |= {record.key: record for record in new}
        return self.records[item.key]


class CaseItem(pytest.Function):
    """A case as a benchmark: its verification is the outcome, its samples are the data."""

    def __init__(self, *, group: Group, key: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.group, self.key = group, key
        self.samples = Samples()
        size = f"{group.workload}/{group.problem} on {group.device.id}"
        self.add_marker(pytest.mark.benchmark(timer=self.samples.device_time, group=size))
        self.add_marker(pytest.mark.filterwarnings(UNUSED))  # a case that fails has nothing to hand over
        if self.config.pluginmanager.hasplugin("timeout"):
            self.add_marker(pytest.mark.timeout(0))  # the runner has time-outs of its own, for each step of a case

    def runtest(self) -> None:
        """Run the case, or skip or fail by its status; then hand the samples over."""
        record = self.parent.record(self)  # type: ignore[union-attr]
        reason = record.failure.reason if record.failure else ""
        if record.status in ("unsupported", "unavailable"):
            pytest.skip(f"{record.status}: {reason}")
        if record.status.failed:
            log = f"\n{record.failure.log}" if record.failure and record.failure.log else ""
            pytest.fail(f"{record.status}: {reason}{log}", pytrace=False)
        self.samples.record = record
        super().runtest()

    def reportinfo(self) -> tuple[Path, int, str]:
        """The experiment's file, not the module of this class."""
        return self.path, 0, self.name


class Samples:
    """A clock whose time moves by one stored sample whenever the benchmarked function is called."""

    record: Record

    def __init__(self) -> None:
        self._now = 0.0

    def device_time(self) -> float:
        """The time of this clock in seconds."""
        return self._now

    def replay(self, benchmark: Any) -> None:
        """Let a benchmark measure the samples, one round each."""
        from .exports import description, samples

        benchmark.extra_info.update(description(self.record))
        left = iter(values := samples(self.record))
        benchmark.pedantic(lambda: self._set(next(left, 0.0)), setup=lambda: self._set(0.0), rounds=len(values))

    def _set(self, now: float) -> None:
        self._now = now


def _hand_over(request: pytest.FixtureRequest, benchmark: Any) -> None:
    request.node.samples.replay(benchmark)
