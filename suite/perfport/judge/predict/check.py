"""How far the model can be trusted: live devices that predict each other, and figures that others published."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...machine.device_profile import all_profiles
from ...model.published import Figure, figures
from ...model.record import Interval
from ..headline import by_amount
from .devices import Device, Relation, of_profile
from .model import Estimate, carry_over, interval
from .predictor import Key, Predictor, unsupported_case
from .widths import Residual, Widths

#: The preset that has the sizes of a publication.
PAPER = "paper"
_TIMES = re.compile(r"times (?P<base>\w+)")
_SLOWER = re.compile(r"% slower than (?P<base>\w+)")


@dataclass(frozen=True)
class Pair:
    """Two live devices, of which the first predicts the second.

    Attributes
    ----------
    rows : list of (Residual, Interval or None)
        Each common case with its interval at 90 %, of widths that the case's problem did not enter.
    """

    source: Device
    target: Device
    relation: Relation
    rows: list[tuple[Residual, Interval | None]]

    @property
    def errors(self) -> list[float]:
        """Absolute relative errors, in rising order."""
        return sorted(abs(residual.error) for residual, _ in self.rows)

    @property
    def unchanged(self) -> list[float]:
        """What the errors would be if each case took on the second device what it took on the first."""
        return sorted(abs(each.estimate.source.seconds / each.seconds - 1) for each, _ in self.rows)

    @property
    def held(self) -> tuple[int, int]:
        """How many intervals held what was measured, of how many."""
        ends = [(each, found) for each, found in self.rows if found]
        return sum(found.low <= each.seconds <= found.high for each, found in ends), len(ends)


def live_pairs(predictor: Predictor) -> list[Pair]:
    """Return every ordered pair of live devices with common cases, which are of the same code on both."""
    rows: dict[tuple[Device, Device], list[Residual]] = defaultdict(list)
    for key, by_device in predictor.sources.items():
        for source, target in itertools.permutations(by_device.values(), 2):
            if not source.same_code(target) or unsupported_case(source, target.device):
                continue
            if not (estimate := carry_over(source, target.device)):
                continue
            problem = f"{key.subject.workload}/{key.subject.problem}"
            residual = Residual(estimate, estimate.own, target.seconds, target.device.name, problem)
            rows[source.device, target.device].append(residual)
    return [_pair(predictor, *devices, residuals) for devices, residuals in rows.items()]


def _pair(predictor: Predictor, source: Device, target: Device, residuals: list[Residual]) -> Pair:
    widths = {
        problem: Widths.of(each for each in predictor.residuals if each.problem != problem)
        for problem in {residual.problem for residual in residuals}
    }
    rows = []
    for residual in residuals:
        half = widths[residual.problem].half(residual.estimate, residual.half)
        rows.append((residual, None if half is None else interval(residual.estimate.seconds, half)))
    return Pair(source, target, residuals[0].estimate.relation, rows)


@dataclass(frozen=True)
class Published:
    """A published figure beside what the model says, or why there is nothing to say.

    Attributes
    ----------
    what : str
        What the figure is: a unit, or the ratio of two rungs.
    stated : float
        The figure; of a range the geometric middle.
    predicted : Interval or None
        In the figure's unit, with an interval at 90 %.
    setting : str
        Parameters that were predicted: publications seldom tell theirs.
    reason : str
        Why nothing is compared, or why there is no ground.
    sees : str
        What binds in the model, and what leaves it most unsure: where to look when it is off.
    """

    workload: str
    figure: Figure
    what: str
    stated: float
    predicted: Interval | None
    setting: str = ""
    reason: str = ""
    sees: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over published, less 1."""
        return self.predicted.value / self.stated - 1 if self.predicted else None

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the figure."""
        return self.predicted.low <= self.stated <= self.predicted.high if self.predicted else None


def published(predictor: Predictor) -> list[Published]:
    """Return every published figure of the workloads that ran, with what the model says of it.

    Figures are compared with and never fitted to. After the figures come the ratios of neighbouring rungs that they
    imply, where two of one device have the same unit.
    """
    found = []
    for workload in predictor.collection.workloads:
        listed = list(figures(workload))
        judged = [_judge(predictor, workload, figure) for figure in listed]
        found += judged + list(_implied(judged, predictor))
    return found


def _judge(predictor: Predictor, workload: str, figure: Figure) -> Published:
    stated = math.sqrt(figure.value * (figure.high or figure.value))
    if figure.device not in all_profiles():
        return Published(workload, figure, figure.unit, stated, None, reason="of a device that has no profile here")
    if ratio := _TIMES.fullmatch(figure.unit) or _SLOWER.fullmatch(figure.unit):
        told = 1 / (1 + stated / 100) if "slower" in figure.unit else stated
        pair = _same_setting(predictor, workload, figure, ratio["base"])
        if pair is None:
            why = f"{ratio['base']} was not measured here beside it"
            return Published(workload, figure, figure.unit, stated, None, reason=why)
        return _ratio(predictor, workload, figure, f"speed over {ratio['base']}", (told, *pair))
    return _absolute(predictor, workload, figure, stated)


def _absolute(predictor: Predictor, workload: str, figure: Figure, stated: float) -> Published:
    keys = _keys(predictor, workload, figure.problem, figure.variant)
    units = {
        source.record.metric.unit: key
        for key in reversed(keys) for source in predictor.sources[key].values() if source.record.metric
    }  # fmt: skip
    if not keys:
        return Published(
            workload, figure, figure.unit, stated, None, reason="no GPU of these results measured this variant"
        )
    if figure.unit not in (*units, "s"):
        return Published(workload, figure, figure.unit, stated, None, reason=_no_model(figure.unit))
    key = units.get(figure.unit, keys[0])
    prediction = predictor.predict(key, of_profile(figure.device), of_any_size=True)
    value = prediction.seconds if figure.unit == "s" else prediction.metric
    sees = _sees(prediction.estimate) if prediction.estimate else ""
    return Published(workload, figure, figure.unit, stated, value, key.subject.parameters, prediction.reason, sees)


def _sees(estimate: Estimate) -> str:
    widest = max(estimate.parts, key=lambda name: estimate.parts[name])
    return f"bound by {estimate.binding}; {estimate.share:.0%} explained on {estimate.source.device.title}; {widest}"


def _no_model(unit: str) -> str:
    if unit.startswith("times ") or " OpenCV" in unit:
        return "of another program's code on that device, which nothing models"
    return "no time or rate of a kernel"


def _keys(predictor: Predictor, workload: str, problem: str, variant: str) -> list[Key]:
    """Return the keys of a variant on GPUs: at the publication's size where a preset has it, else the largest first."""
    subjects = [each for each in predictor.collection.subjects if each.family[:2] == (workload, problem)]
    place = {each.on_any_inputs: number for number, each in enumerate(by_amount(predictor.collection, subjects))}
    keys = [
        key for key in predictor.sources
        if key.variant == variant and key.subject in place and not key.profile
        and any(source.device.kind == "gpu" for source in predictor.sources[key].values())
    ]  # fmt: skip

    def of_paper(key: Key) -> bool:
        return any(source.record.identity.preset == PAPER for source in predictor.sources[key].values())

    return sorted(keys, key=lambda key: (not of_paper(key), place[key.subject], key.tunables))


def _same_setting(predictor: Predictor, workload: str, figure: Figure, base: str) -> tuple[Key, Key] | None:
    """Return a variant and another one at the largest setting that both ran at."""
    others = {key.subject: key for key in reversed(_keys(predictor, workload, figure.problem, base))}
    own = _keys(predictor, workload, figure.problem, figure.variant)
    return next(((key, others[key.subject]) for key in own if key.subject in others), None)


def _ratio(
    predictor: Predictor, workload: str, figure: Figure, what: str, stated: tuple[float, Key, Key]
) -> Published:  # fmt: skip
    """Compare a ratio of rates. Nobody tells how much both are off alike: the interval is that of independent times."""
    told, key, base = stated
    device = of_profile(figure.device)
    pair = [predictor.predict(each, device, of_any_size=True) for each in (key, base)]
    known = [(each.estimate, each.seconds) for each in pair if each.estimate and each.seconds]
    if len(known) < 2:
        return Published(workload, figure, what, told, None, key.subject.parameters, pair[0].reason or pair[1].reason)
    (own, time), (other, longer) = known
    half = math.hypot(*(math.log(seconds.high / seconds.value) for seconds in (time, longer)))
    sees = f"bound by {own.binding} against {other.binding}"
    value = interval(longer.value / time.value, half)
    return Published(workload, figure, what, told, value, key.subject.parameters, "", sees)


def _implied(judged: Sequence[Published], predictor: Predictor) -> Iterator[Published]:
    """Yield the ratios of neighbouring figures of one device, problem and unit, in the order of the source."""
    for _, same in itertools.groupby(judged, key=lambda each: (each.figure.device, each.figure.problem, each.what)):
        rungs = [each for each in same if each.predicted and not each.what.startswith("speed over")]
        for lower, upper in itertools.pairwise(rungs):
            pair = _same_setting(predictor, lower.workload, upper.figure, lower.figure.variant)
            if pair and upper.figure.unit != "s":
                told = (upper.stated / lower.stated, *pair)
                yield _ratio(
                    predictor, upper.workload, upper.figure, f"speed over {lower.figure.variant} (implied)", told
                )  # fmt: skip
