"""Progress of a run: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..measure.repeats import workers_of
from ..model.names import telling
from ..model.record import Record, Status
from ..model.untrusted import indented, line, opening, printable
from .cases import Case, Group

#: Characters of a reason below a case.
LONGEST_REASON = 600
#: Seconds without a line after which one tells the step, where there is no terminal.
QUIET_S = 60.0


class RunProgress:
    """Shows case, elapsed and remaining time, and the best so far of the group that runs; long steps on any output.

    Parameters
    ----------
    total : int
        Number of measurements: cases times their workers.
    """

    def __init__(self, total: int) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._started = self._said = time.monotonic()
        self._total = total
        self._done = 0
        self._best: Record | None = None
        self._left: dict[str, int] = {}
        self._counted: set[str] = set()
        self._ended: set[str] = set()
        self._names: dict[str, str] = {}
        self._reason = ""
        self._step = "starting"
        self._live: Progress | None = None
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
                TimeRemainingColumn(), TextColumn("{task.fields[best]}"),
            )  # fmt: skip
            self._live = Progress(*columns, console=self._console, transient=True)
            self._task = self._live.add_task("starting", total=total, best="")

    def __enter__(self) -> RunProgress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._said = time.monotonic()
        self._console.print(escape(printable(text)), soft_wrap=True)

    def group(self, group: Group) -> None:
        """A group begins."""
        self._best = None
        self._reason = ""
        self._counted.clear()
        self._left = {case.key: group.workers - workers_of(case.earlier) for case in group.cases}
        settings = telling([case.identity for case in group.cases])
        self._names = {
            case.key: f"{case.identity.variant} [{own}]" if own else case.identity.variant
            for case, own in zip(group.cases, settings, strict=True)
        }
        self.say(f"{group.title}: {len(group.cases)} cases")

    def expect(self, measurements: int) -> None:
        """So many are to come from here on: further workers measure in place of disturbed ones."""
        self._total = self._done + measurements
        if self._live:
            self._live.update(self._task, total=self._total)

    def step(self, case: Case | None, step: str) -> None:
        """A case (or the group, without one) takes a step."""
        self._step = line(f"{self._names[case.key] if case else 'group'}: {step}")
        if self._live:
            self._live.update(self._task, description=escape(self._step))
        self.waiting()

    def waiting(self) -> None:
        """The step goes on."""
        now = time.monotonic()
        if not self._live and now - self._said > QUIET_S:
            self.say(f"  {self._step}  [{self._done}/{self._total}, {now - self._started:.0f} s]")

    def record(self, record: Record) -> None:
        """A case is done: by one more worker, or for good where it has no result.

        A record that replaces another of the same group, or one without a result, is told, and counts no more.
        """
        if record.key not in self._counted | self._ended:
            self._done += 1 if record.status.measured else self._left.get(record.key, 1)
        self._counted.add(record.key)
        if not record.status.measured:
            self._ended.add(record.key)
        text = f"  {self._name(record):<26} {record.status.value}"
        if record.timing and record.metric:
            summary = record.timing.summary[record.timing.rank]
            text += f"  {summary.median * 1e3:.4g} ms  {record.metric.value:.4g} {line(record.metric.unit)}"
            if record.problem_bound:
                text += f"  {record.problem_bound.share.value:.0%} of bound"
            if self._best is None or _better(record, self._best):
                self._best = record
        elapsed = time.monotonic() - self._started
        text += f"  [{self._done}/{self._total}, {elapsed:.0f} s]"
        if record.failure:
            compiler = record.failure.log if record.status is Status.COMPILE_ERROR else ""
            reason = line(record.failure.reason, LONGEST_REASON)
            text += f"  {record.key}" + indented("as above" if reason == self._reason else reason, opening(compiler))
            self._reason = reason
        self.say(text)
        if self._live:
            best = f"best: {self._name(self._best)}" if self._best else ""
            self._live.update(self._task, completed=self._done, best=escape(line(best)))

    def _name(self, record: Record) -> str:
        return line(self._names.get(record.key, record.identity.variant))


def _better(one: Record, other: Record) -> bool:
    assert one.metric and other.metric
    if one.metric.direction == "higher":
        return one.metric.value > other.metric.value
    return one.metric.value < other.metric.value
