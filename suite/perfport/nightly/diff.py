"""Two states of the code, measured in turn on one device: commits, or a commit and the working tree.

Both are laid out side by side (`perfport.nightly.checkout`) and measured by fresh workers, round by round, as suspects
of `perfport check` are (`perfport.nightly.inturn`). Cases whose kernels differ come first; when the time is up, what
has been measured by then counts.
"""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..machine import discovery
from ..measure.ceilings import Ceilings
from ..measure.ceilings.cached import cache_file
from ..measure.repeats import worker_medians
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError
from ..model.record import Identity, Record, Status
from ..run import plan
from ..run.experiment import Experiment, find, load
from ..run.keys import harness_files
from ..run.local import choose
from ..run.signals import heeded
from ..run.sources import KERNELS, variant_files
from ..store.ratios import is_measured, is_ranked
from ..store.results import EXPERIMENT, Run, find_runs
from ..workload import Workload, discover
from .base import Before
from .checkout import Checkout, changed_files, checked_out, own_repository, resolved
from .finding import Finding, Judgement, Outcome
from .inturn import ROUNDS, Round, for_sides, in_turn, of_cases, records_of, run_side
from .place import Place, compact
from .trials import PairedTrial, settle

#: Rounds that a verdict needs.
LEAST_ROUNDS = 3
#: Cases that are measured together: of fewer the processes would take longer than the measurements.
TOGETHER = 12
BASE, HEAD = "base", "head"
WORKING_TREE = "the working tree"


@dataclass(frozen=True)
class Options:
    """Options of ``perfport diff``.

    Attributes
    ----------
    experiment : str
        File or name; its cases are those that the code of this process has.
    patterns : tuple of str
        Only cases whose ``workload/problem/variant`` contains one of these; without any, all.
    devices : list of str, optional
        Selectors.
    limit : float
        Seconds that it may take.
    workloads : list of str
        Further workload folders.
    every : bool
        Whether cases are measured, too, of whose code nothing differs.
    """

    experiment: str = "nightly"
    patterns: tuple[str, ...] = ()
    devices: list[str] | None = None
    limit: float = 600.0
    workloads: list[str] = field(default_factory=list)
    every: bool = False


@dataclass(frozen=True)
class Planned:
    """A case: ``series`` is its key, ``changed`` what of its code differs (`CHANGES`), from 0, nothing."""

    identity: Identity
    series: str
    changed: int

    @property
    def title(self) -> str:
        """Its name, with the device."""
        return f"{self.identity.workload}/{self.identity.problem}/{self.identity.variant}@{self.identity.devices[0]}"


#: What of a case's code may differ, the least telling first.
CHANGES = ("nothing", "the measuring code", "its host code", "a kernel")


@dataclass(frozen=True)
class Sides:
    """States of the code by name, and how they are measured: ``None`` is the working tree."""

    codes: Mapping[str, Checkout | None]
    definition: Experiment
    folder: Path
    workloads: Sequence[str]
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Difference:
    """What came of it.

    Attributes
    ----------
    base, head : str
        What was compared, in words.
    judgement : Judgement, optional
        ``None`` where there was nothing to measure.
    same : int
        Cases that were not measured, since nothing of their code differs.
    seconds : float
        That it took.
    """

    base: str
    head: str
    judgement: Judgement | None
    same: int
    seconds: float


def diff(base: str, head: str | None, options: Options, say: Callable[[str], None]) -> Difference:
    """Measure two states of the code in turn, and judge every case.

    Parameters
    ----------
    base, head : str
        Names of commits; without ``head`` the working tree that this process runs from.
    options : Options
    say : callable
        Takes a line on the progress.

    Raises
    ------
    UsageError
        For a name that is no commit, or a filter that leaves no case.
    InfrastructureError
        If there is no repository, a side does not run here, or nothing could be measured.
    """
    began = time.monotonic()
    repository = own_repository()
    first, second = resolved(repository, base), resolved(repository, head) if head else None
    definition = load(path := find(options.experiment))
    devices = choose(options.devices or definition.devices, discovery.discover(), "--device")
    planned = planned_cases(path, definition, options, devices, changed_files(repository, first, second))
    wanted = [each for each in planned if each.changed or options.every]
    words = [f"{base} ({first[:12]})", f"{head} ({second[:12]})" if second else WORKING_TREE]
    judgement = None
    if wanted:
        with heeded(), laid_out({BASE: first, HEAD: second}, definition, options, devices) as sides:
            rounds = measured(sides, wanted, began + options.limit, say)
            judgement = judged(sides, wanted, rounds, words[0])
    return Difference(words[0], words[1], judgement, len(planned) - len(wanted), time.monotonic() - began)


def planned_cases(
    path: Path, definition: Experiment, options: Options, devices: list[DeviceInfo], changed: frozenset[Path]
) -> list[Planned]:
    """Return the cases, those first whose measurement tells most: of a kernel that differs, of any file, of none."""
    workloads = discover(options.workloads)
    groups = plan.make(definition, str(path), workloads, devices, definition.seed, patterns=options.patterns)
    measuring = bool(changed & {each.resolve() for each in harness_files()})
    planned = []
    for group in groups:
        for case in group.cases:
            series = series_of(definition.name, case.identity, group.device, group.inputs)
            planned.append(Planned(case.identity, series, _change(workloads, case.identity, changed, measuring)))
    return sorted(planned, key=lambda each: -each.changed)


def series_of(experiment: str, i: Identity, device: DeviceInfo, inputs: Mapping[str, int]) -> str:
    """Return the key of the series of a case that has no record yet."""
    what = [experiment, i.workload, i.problem, i.parameters, i.variant, i.tunables, i.devices, [device.chip]]
    return compact([*what, i.backend, i.profile, i.precision, dict(inputs)])


def _change(workloads: Mapping[str, Workload], i: Identity, changed: frozenset[Path], measuring: bool) -> int:
    workload = workloads[i.workload]
    own = variant_files(workload, workload.variant(i.problem, i.variant)) & changed
    if any(path.suffix in KERNELS for path in own):
        return 3
    return 2 if own else int(measuring)


@contextlib.contextmanager
def laid_out(
    commits: Mapping[str, str | None], definition: Experiment, options: Options, devices: Sequence[DeviceInfo]
) -> Iterator[Sides]:
    """Hold the code of some commits, by the names of the sides; of ``None`` it is that of this process."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perfport-diff-")))
        codes = {side: stack.enter_context(checked_out(commit)) if commit else None for side, commit in commits.items()}
        yield Sides(codes, definition, folder, options.workloads, _without_ceilings(folder / "cache", devices))


def _without_ceilings(cache: Path, devices: Iterable[DeviceInfo]) -> dict[str, str]:
    """Return variables with which no ceilings are swept: that takes minutes, and a ratio of times has no bound."""
    (folder := cache / "perfport" / "ceilings").mkdir(parents=True)
    for info in devices:
        none = Ceilings(device=info.id, driver=info.driver, date="", entries={})
        (folder / cache_file(info).name).write_text(json.dumps(none.model_dump()))
    return {"XDG_CACHE_HOME": str(cache)}


def measured(
    sides: Sides, wanted: Sequence[Planned], until: float, say: Callable[[str], None]
) -> dict[str, list[Round]]:
    """Measure cases by both sides in turn until a time of the monotonic clock; returns the rounds by series.

    Some cases after the others, each in up to `ROUNDS` rounds. Where even `LEAST_ROUNDS` of the first ones would take
    too long, there are fewer of them.
    """
    rounds: dict[str, list[Round]] = {}
    waiting, longest = list(wanted), 0.0
    while waiting and time.monotonic() + longest * LEAST_ROUNDS < until:
        together, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
        for number in range(ROUNDS):
            began = time.monotonic()
            if began + longest > until:
                break
            say(f"round {number + 1} of {ROUNDS}: {len(together)} cases, {until - began:.0f} s left")
            for series, each in _round(sides, together, number, until).items():
                rounds.setdefault(series, []).append(each)
            took = time.monotonic() - began
            room = (until - time.monotonic()) / took / (LEAST_ROUNDS - 1)
            if number == 0 and room < 1:
                together = together[: max(1, int(len(together) * room))]
                took = 0.0  # with fewer cases nobody knows
            longest = max(longest if number else 0.0, took)
    return rounds


def _round(sides: Sides, together: Sequence[Planned], number: int, until: float) -> dict[str, Round]:
    """Measure each side once, by a fresh worker; returns what each case gave, by series.

    Where the time is up meanwhile, what a side has no record of says nothing of the case, and is left out.
    """
    folder = Path(tempfile.mkdtemp(dir=sides.folder, prefix="round-"))
    file = folder / EXPERIMENT
    file.write_text(for_sides(of_cases(sides.definition, [each.identity for each in together], sides.definition.seed)))
    held: dict[str, dict[str, Record]] = {}
    for side, code in in_turn(number, sides.codes):
        limit = max(until - time.monotonic(), 1.0)
        run_side(file, folder / side, sides.workloads, code, limit=limit, variables=sides.variables)
        held[side] = records_of(folder / side, sides.definition.name)
    first, second = (held[side] for side in sides.codes)
    rounds = {each.series: Round(_of(each, first), _of(each, second)) for each in together}
    cut = time.monotonic() >= until
    return {series: each for series, each in rounds.items() if not cut or (each.base and each.now)}


def _of(planned: Planned, records: Mapping[str, Record]) -> Record | None:
    """Return the record of a case; where its default tunables are others there, the one that is otherwise the same."""
    if planned.series in records:
        return records[planned.series]
    place = Place.of(planned.series)
    alike = [record for series, record in records.items() if Place.of(series).loose == place.loose]
    return alike[0] if len(alike) == 1 else None


def judged(sides: Sides, wanted: Sequence[Planned], rounds: Mapping[str, list[Round]], against: str) -> Judgement:
    """Judge every case by its rounds, with false discoveries controlled over all of them.

    Raises
    ------
    InfrastructureError
        If nothing was measured.
    """
    findings, trials = [], []
    for each in wanted:
        held = sides.definition.checked(each.identity)
        of_case = rounds.get(each.series, [])
        heads = [taken.now for taken in of_case if taken.now]
        finding = Finding(each.series, Outcome.CANNOT_TELL, heads[-1] if heads else None, threshold=held.threshold)
        findings.append(finding)
        if _has_results(finding, of_case) and (trial := _trial(finding, of_case, against)):
            trials.append(trial)
    disturbed = [(trial.finding.why, trial) for trial in trials if trial.finding.why]
    settle([trial for trial in trials if not trial.finding.why])
    for why, trial in disturbed:  # the ratio is told, and is no verdict
        settle([trial])
        trial.finding.outcome, trial.finding.why = Outcome.CANNOT_TELL, why
    runs = [path for folder in sides.folder.glob("round-*") for path in _runs(folder)]
    if not runs:
        raise InfrastructureError("nothing was measured in the time given")
    order = list(Outcome)
    findings.sort(key=lambda found: (order.index(found.outcome), found.ratio.value if found.ratio else 1, found.series))
    least = sides.definition.check.min_judged
    return Judgement(Run(runs[-1]), against, findings, remeasured=True, min_judged=least)


def _runs(folder: Path) -> list[Path]:
    return find_runs(folder) if any(folder.glob("*/records.jsonl")) else []


def _has_results(finding: Finding, rounds: Sequence[Round]) -> bool:
    """Whether both sides measured a case; the finding says what became of it otherwise."""
    bases, heads = [each.base for each in rounds if each.base], [each.now for each in rounds if each.now]
    if wrong := next((each for each in heads if each.status in (Status.WRONG, Status.IMPOSSIBLE)), None):
        finding.outcome, finding.why = Outcome.WRONG, _reason(wrong)
        return False
    before = any(is_measured(each) for each in bases)
    if failed := next((each for each in heads if not is_measured(each)), None):
        finding.outcome = Outcome.FAILED if before or (not bases and failed.status.failed) else Outcome.NO_RESULT
        finding.why = _reason(failed)
        return False
    if heads and not before:
        finding.outcome = Outcome.NEW
        finding.why = _reason(bases[0]) if bases else "not in the base"
        return False
    if before and not heads:
        finding.outcome, finding.why = Outcome.VANISHED, "no result with the head's code"
        return False
    return True


def _reason(record: Record) -> str:
    reason = record.failure.reason.splitlines()[0] if record.failure and record.failure.reason else "no reason recorded"
    return f"{record.status.value}: {reason}"


def _trial(finding: Finding, rounds: Sequence[Round], against: str) -> PairedTrial | None:
    """Return the comparison of both sides, by rounds without other load where there are enough."""
    pairs = [(each.base, each.now) for each in rounds if each.base and each.now]
    quiet = [pair for pair in pairs if all(is_ranked(record) for record in pair)]
    if len(pairs) < LEAST_ROUNDS:
        finding.why = f"{len(pairs)} rounds in the time given; {LEAST_ROUNDS} are needed"
        return None
    if len(quiet) < LEAST_ROUNDS:
        loud = next(record for pair in pairs for record in pair if not is_ranked(record))
        finding.disturbed, finding.why = True, f"{len(pairs) - len(quiet)} of {len(pairs)} rounds {_reason(loud)}"
    else:
        pairs = quiet
    finding.again = len(pairs)
    base, now = ([math.log(worker_medians(record)[0]) for record in side] for side in zip(*pairs, strict=True))
    return PairedTrial(finding, Before(f"{against}, {len(pairs)} times in turn", base), now)
