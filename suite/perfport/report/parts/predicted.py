"""What is modelled, as tables: one device in detail, variants by devices, how far the model can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ...judge.predict import CONFIDENCE, WIDEST, Coverage, Device, Outcome, Pair, Prediction, Published, figure_of
from ...model.names import setting, settings
from ...model.record import Interval
from .ladder import Row
from .markdown import NONE, code, details, join, table, text, titled
from .marks import marks, noted
from .quantities import interval, percent, seconds, significant, time_interval

#: Precedes whatever is modelled.
MARK = "≈ "
PUBLISHED = " (published)"
READING = (
    f"Without {MARK.strip()}: measured, with the marks of results. {MARK.strip()} modelled, with an interval at "
    f"{percent(CONFIDENCE)}; it is in no claim, portability metric or ratio. *published*: by others, at a size of "
    f"theirs. *no ground*: the interval would span more than a factor of {WIDEST:g}, or nothing can be carried over. "
    "*unsupported*: a limit or a capability fails."
)
#: Reasons that a page lists; of more, the most frequent.
MOST_REASONS = 12
#: Cases of a pair of devices that a page lists; `perfport predict --check --format csv` has all.
MOST_CASES = 40


def heading(prediction: Prediction) -> str:
    """Return problem, setting and precision class of a prediction, as a heading."""
    i = prediction.case.record.identity
    return f"{code(f'{i.workload}/{i.problem}')}: {text(setting(i.preset, i.parameters), 100)}, {text(i.precision)}"


def name_of(prediction: Prediction, several: bool) -> str:
    """Return the variant, with its tunables where it stands several times."""
    i = prediction.case.record.identity
    own = [settings(i.tunables) if several else "", f"profile {i.profile}" if i.profile else ""]
    told = "; ".join(filter(None, own))
    return code(f"{i.variant} [{told}]" if told else i.variant, 70)


def by_setting(predictions: Iterable[Prediction]) -> list[list[Prediction]]:
    """Return predictions by what is solved, in their order."""
    groups: dict[tuple[object, str], list[Prediction]] = {}
    for each in predictions:
        groups.setdefault((each.key.subject, each.key.cache), []).append(each)
    return list(groups.values())


def device_table(predictions: Sequence[Prediction]) -> str:
    """Return one setting of a problem on one device: a row for each case, with what a time was carried over from."""
    times = Counter(each.key.variant for each in predictions)
    listed = []
    for each in predictions:
        estimate, modelled = each.estimate, each.outcome is Outcome.MODELLED
        shown = each.outcome in (Outcome.MODELLED, Outcome.MEASURED)
        mark = MARK if modelled else ""
        listed.append([
            name_of(each, times[each.key.variant] > 1), each.outcome.value,
            mark + time_interval(each.seconds) + _marks(each) if shown and each.seconds else NONE,
            mark + interval(each.metric) if shown and each.metric else NONE,
            code(estimate.binding) if estimate and modelled else NONE,
            percent(estimate.share) if estimate and modelled else NONE,
            code(estimate.source.device.name) if estimate and modelled else NONE,
            text("; ".join(filter(None, [each.reason, *(estimate.notes if estimate and modelled else ())]))),
        ])  # fmt: skip
    metric = next((each.case.record.metric for each in predictions if each.case.record.metric), None)
    unit = f"metric, {text(metric.unit)}" if metric else "metric"
    headers = [
        "variant",
        "outcome",
        "time",
        unit,
        "bound by",
        "explained",
        "carried over from",
        "why, or what is assumed",
    ]
    return noted([table(headers, listed, "llrrlrll")])


def _marks(prediction: Prediction) -> str:
    """Return the marks of the result that stands for a prediction; what is modelled has none."""
    if prediction.outcome is not Outcome.MEASURED:
        return ""
    case = prediction.case
    return marks(Row(case.run, case.record, case.site, case.subject, case.later))


def matrix(columns: Sequence[Sequence[Prediction]]) -> str:
    """Return one setting as variant x device; each column holds the same keys on one device.

    Of several tunables of a variant the fastest on the device is shown.
    """
    metric = next((each.case.record.metric for each in columns[0] if each.case.record.metric), None)
    names = dict.fromkeys(each.key.variant for each in columns[0])
    listed = [[code(name), *(_cell(column, name) for column in columns)] for name in names]
    devices = [called(column[0].device) for column in columns]
    note = f"{text(metric.unit)}, {metric.direction} is better." if metric else "Times."
    body = noted([table(["variant", *devices], listed, "l" + "r" * len(devices))])
    return join([note, body, _reasons(each for column in columns for each in column)])


def called(device: Device) -> str:
    """Return what a table calls a device: a live one by its platform too, since one chip may be behind two."""
    return code(device.name) if device.runtime else text(device.title)


@dataclass(frozen=True)
class Told:
    """What a table tells of a variant on a device: a number and where it is from, or the outcomes without one.

    Attributes
    ----------
    kind : str
        ``measured``, ``published`` or ``modelled``; else the outcomes, parted by ``/``.
    value : Interval or None
        In the problem's metric, or in seconds where it has none; of a published figure both ends are the figure.
    why : str
        What a modelled time was carried over from; the source of a figure; why there is no number.
    marks : str
        Of a measured one (`parts.marks`).
    """

    kind: str
    value: Interval | None = None
    why: str = ""
    marks: str = ""


def told(column: Sequence[Prediction], variant: str) -> Told:
    """Return what is told of a variant on a device: measured, else published, else modelled, else why not.

    Of several tunables the fastest on the device counts.
    """
    own = [each for each in column if each.key.variant == variant]
    for outcome in (Outcome.MEASURED, Outcome.MODELLED):
        timed = [each for each in own if each.outcome is outcome]
        best = min(timed, key=lambda each: each.seconds.value if each.seconds else 0.0, default=None)
        if outcome is Outcome.MODELLED and (stated := next(filter(None, map(figure_of, own)), None)):
            return Told("published", Interval(value=stated.value, low=stated.value, high=stated.value), stated.source)
        if best and best.seconds:
            source = best.estimate.source.device.name if best.estimate and outcome is Outcome.MODELLED else ""
            return Told(outcome.value, best.metric or best.seconds, source, _marks(best))
    outcomes = "/".join(dict.fromkeys(each.outcome.value for each in own))
    return Told(outcomes, why="; ".join(dict.fromkeys(each.reason for each in own if each.reason)))


def _cell(column: Sequence[Prediction], variant: str) -> str:
    said, metric = told(column, variant), column[0].case.record.metric
    if said.value is None:
        return said.kind or NONE
    mark = MARK if said.kind == "modelled" else ""
    if metric is None:
        return mark + time_interval(said.value) + said.marks
    if said.kind == "published":
        return significant(said.value.value) + PUBLISHED
    return mark + (interval(said.value) if mark else significant(said.value.value)) + said.marks


def _reasons(predictions: Iterable[Prediction]) -> str:
    """Return why there is no number, folded: the reasons of each device, the most frequent first."""
    listed = Counter((called(each.device), each.outcome.value, each.reason) for each in predictions if each.reason)
    rows = [[title, what, text(why), str(n)] for (title, what, why), n in listed.most_common(MOST_REASONS)]
    return details("why there is no number", table(["device", "", "reason", "cases"], rows, "lllr")) if rows else ""


def pair_table(pairs: Sequence[Pair]) -> str:
    """Return how far live devices predict each other, a row for each ordered pair."""
    listed = []
    for pair in pairs:
        held, of = pair.held
        listed.append([
            code(pair.source.name), code(pair.target.name), pair.relation.value, str(len(pair.rows)),
            percent(median(pair.errors)), percent(median(pair.unchanged)),
            percent(sum(error <= 0.25 for error in pair.errors) / len(pair.errors)),
            f"{percent(held / of)} of {of}" if of else NONE,
        ])  # fmt: skip
    headers = [
        "measured on", "predicted and measured on", "relation", "cases", "median error", "had nothing changed",
        "within 25 %", "within the interval",
    ]  # fmt: skip
    return table(headers, listed, "lllrrrrr")


def cases_table(pair: Pair) -> str:
    """Return the cases of a pair, folded: predicted, measured, error; the farthest first, at most `MOST_CASES`."""
    ordered = sorted(pair.rows, key=lambda row: -row[0].off)[:MOST_CASES]
    listed = []
    for residual, ends in ordered:
        i = residual.estimate.source.record.identity
        listed.append([
            code(f"{residual.problem}/{i.variant}", 70), text(setting(i.preset, i.parameters), 60),
            MARK + (time_interval(ends) if ends else seconds(residual.estimate.seconds)), seconds(residual.seconds),
            signed(residual.error), percent(residual.estimate.share), code(residual.estimate.binding),
        ])  # fmt: skip
    headers = ["case", "setting", "predicted (modelled)", "measured", "error", "explained", "bound by"]
    return details(
        f"{pair.target.name} from {pair.source.name}: the {len(listed)} cases of {len(pair.rows)} that are most off",
        table(headers, listed, "llrrrrl")
    )  # fmt: skip


def coverage_table(coverages: Sequence[Coverage]) -> str:
    """Return how often intervals held what was measured, by relation."""
    listed = [
        [
            each.kind.relation.value, text(each.kind.device), "host" if each.kind.by_host else "device",
            str(each.residuals), percent(each.median_error), percent(each.within_quarter),
            percent(each.share) if each.share is not None else NONE, str(each.grounded),
        ]
        for each in coverages
    ]  # fmt: skip
    headers = [
        "relation", "kind", "driven by", "held-out cases", "median error", "within 25 %",
        f"within their {percent(CONFIDENCE)} interval", f"narrower than a factor of {WIDEST:g}",
    ]  # fmt: skip
    return table(headers, listed, "lllrrrrr")


def published_table(figures: Sequence[Published]) -> str:
    """Return published figures beside what the model says; those it says nothing of are folded, with the reason."""
    compared = [each for each in figures if each.predicted]
    listed = [
        [
            code(each.figure.device), code(f"{each.figure.problem}/{each.figure.variant}"), text(each.what),
            significant(each.stated), MARK + interval(each.predicted), signed(each.error or 0.0),
            "yes" if each.covered else "**no**", text(each.setting, 60), text(each.sees, 200),
            text(each.figure.note or "", 120),
        ]
        for each in compared if each.predicted
    ]  # fmt: skip
    headers = [
        "device", "figure", "what", "published", "predicted (modelled)", "error", "within", "predicted at",
        "what the model sees", "the publication's note",
    ]  # fmt: skip
    left = [
        [code(each.figure.device), code(f"{each.figure.problem}/{each.figure.variant}"), text(each.what),
         text(each.reason)]
        for each in figures if not each.predicted
    ]  # fmt: skip
    rest = table(["device", "figure", "what", "why nothing is compared"], left, "llll")
    folded = details(f"{len(left)} figures that nothing is compared with", rest) if left else ""
    return join([_summary(compared), table(headers, listed, "lllrrrllll") if listed else "", folded])


def _summary(compared: Sequence[Published]) -> str:
    """Return error and coverage of figures as stated, and of ratios, in a line each."""
    lines = []
    as_stated = [each for each in compared if each.what == each.figure.unit]
    ratios = [each for each in compared if each.what != each.figure.unit]
    for title, own in (("times and rates as stated", as_stated), ("ratios of rungs", ratios)):
        if own:
            errors = [abs(each.error or 0.0) for each in own]
            held = sum(bool(each.covered) for each in own)
            lines.append(f"- {len(own)} {title}: median error {percent(median(errors))}, {held} within the interval.")
    return "\n".join(lines)


def ceilings_table(device: Device) -> str:
    """Return the ceilings that a device is modelled with, and where each comes from."""
    listed = [
        [code(name), significant(value.value), device.origins[name].value]
        for name, value in sorted(device.ceilings.items())
    ]  # fmt: skip
    return titled("Ceilings, SI units:", ["ceiling", "value", "origin"], listed, "lrl")


def signed(error: float) -> str:
    """Return a relative error with its sign."""
    return f"{100 * error:+.1f} %"
