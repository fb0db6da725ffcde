"""The tables of one ladder: time and speed-up, bounds, overheads and verification, peers, published figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

from ...model.names import ROLES, plain, seeds
from ...model.record import Record, Status, Summary
from ...model.untrusted import line
from ...store.comparable import leading
from ...store.ratios import common_clock, compare, is_measured, time_of
from .bounds import bounds_tables, problem_bound_note
from .energy import energy_table
from .explained import best_line
from .failures import reason
from .ladder import PICTURE, Ladder, Published, Row
from .markdown import NONE, code, details, join, table, text, titled
from .marks import ABOVE, marks, noted
from .quantities import column, noise, percent, scaled, seconds, significant, size, time_scale
from .summary import ratio


def ladder_tables(ladder: Ladder) -> str:
    """Return all tables of a ladder but the published figures, with the footnotes that they need."""
    blocks = [
        _base_note(ladder),
        _speed(ladder),
        _instances(ladder),
        _peers(ladder),
        bounds_tables(ladder),
        energy_table(ladder),
        best_line(ladder),
    ]
    if folded := join([_overheads(ladder), _kernels(ladder), _extra(ladder)]):
        blocks.append(details("Overheads, verification, kernels, further figures", folded))
    return noted(blocks)


def problem_facts(ladder: Ladder) -> str:
    """Return the useful work of a problem: what its bound is made of."""
    work = next((row.record.work for row in ladder.rows if row.record.work), None)
    metric = next((row.record.metric for row in ladder.rows if row.record.metric), None)
    stated = ladder.info.get("metric") or {}
    facts = [f"{text(ladder.setting[0].upper() + ladder.setting[1:])}."]
    if stated or metric:
        unit = stated.get("unit") or (metric.unit if metric else "")
        direction = stated.get("direction") or (metric.direction if metric else "")
        description = f": {text(str(stated['description']).rstrip('.'))}" if stated.get("description") else ""
        facts.append(f"Metric in {text(unit)}, {text(direction)} is better{description}.")
    if work:
        parts = [scaled(work.flops, "FLOP")] if work.flops else []
        parts += [scaled(work.integer_ops, "OP") + " on integers"] if work.integer_ops else []
        parts.append(f"{scaled(work.read_bytes, 'B')} read and {scaled(work.write_bytes, 'B')} written at least")
        parts += [f"{scaled(work.host_bytes, 'B')} from host memory"] if work.host_bytes else []
        intensity = f" ({significant(work.intensity)} {'FLOP' if work.flops else 'OP'}/B)" if work.bytes else ""
        facts.append(f"Useful work of one execution: {', '.join(parts)}{intensity}.")
    return " ".join(facts)


def _base_note(ladder: Ladder) -> str:
    base, missing = ladder.first_rung, ladder.missing_first
    notes = [problem_bound_note(ladder)]
    if missing and base:
        notes.append(
            f"**The first rung, {code(missing.label)}, has no result ({missing.record.status.value})**: speed-ups "
            f"refer to {code(base.label)}."
        )
    elif base:
        notes.append(
            f"Speed-ups refer to {code(base.label)} (first rung) and to the next lower rung that has a result."
        )
    if ladder.clock == "wall" and any(
        row.record.timing and row.record.timing.rank == "span" for row in ladder.measured
    ):
        notes.append("The best variant is chosen by wall time, because not all have device events of their own.")
    caches = sorted({row.record.timing.cache for row in ladder.measured if row.record.timing})
    if caches:
        notes.append(f"Cache: {' and '.join(caches)}.")
    if ladder.measured:
        inputs = ladder.measured[0].record.inputs
        mean = f"times are geometric means of {len(inputs)} instances of the inputs" if len(inputs) > 1 else "inputs"
        notes.append(f"{mean[0].upper()}{mean[1:]}: {seeds(inputs)}.")
    return " ".join(filter(None, notes))


def _state(record: Record) -> str:
    if record.status == Status.OK:
        return ""
    return record.status.value if record.status == Status.CONTENDED else f"**{record.status.value}**"


def _speed(ladder: Ladder) -> str:
    results = {id(row): row.record for row in ladder.measured}
    times = [time_of(row.record) if id(row) in results else None for row in ladder.rows]
    factor, unit = time_scale(times)
    shown = column([t * factor if t is not None else None for t in times])
    metrics = [row.record.metric.value if id(row) in results and row.record.metric else None for row in ladder.rows]
    metric = next((row.record.metric for row in ladder.measured if row.record.metric), None)
    rows = []
    for row, time, value in zip(ladder.rows, shown, column(metrics), strict=True):
        record = row.record
        timing = record.timing if id(row) in results else None
        mark = marks(row) if timing else ""
        first = "1 (base)" if row is ladder.first_rung else ratio(ladder.over_first(row))
        summary = timing.summary[timing.rank] if timing else None
        rows.append([
            record.identity.role, f"**{row.name}**" if row is ladder.best else row.name, _state(record),
            time + mark, noise(summary) if summary else NONE, _count(summary) if summary else NONE,
            timing.rank if timing else NONE, value, first, ratio(ladder.over_previous(row)),
        ])  # fmt: skip
    headers = [
        "role", "variant", "status", f"time, {unit}", "± %", "n", "clock", text(metric.unit) if metric else "metric",
        "speed-up over first rung", "over previous rung",
    ]  # fmt: skip
    if {row[6] for row in rows} <= {"span", NONE}:
        rows, headers = [[*row[:6], *row[7:]] for row in rows], [*headers[:6], *headers[7:]]
        return join(["**Time and speed-up** (measured)", table(headers, rows, "lllrrrrrr")])
    return join(["**Time and speed-up** (measured)", table(headers, rows, "lllrrrlrrr")])


def _count(summary: Summary) -> str:
    """The number of samples, and of how many independent ones they are worth where that is known to be less."""
    if summary.effective is None or round(summary.effective) >= summary.n:
        return str(summary.n)
    return f"{summary.n} ({summary.effective:.0f})"


def _instances(ladder: Ladder) -> str:
    """Times on each instance of the inputs, where there are several: what one number for all of them hides."""
    timed = [(row, row.record.timing.instances) for row in ladder.measured if row.record.timing]
    shown = [(row, instances) for row, instances in timed if instances]
    if not shown:
        return ""
    names = list(shown[0][1])
    medians = [[instances[name].summary.median for name in names] for _, instances in shown]
    factor, unit = time_scale([time for times in medians for time in times])
    columns = [column([times[i] * factor for times in medians]) for i in range(len(names))]
    widths = [[noise(instances[name].summary, " %") for name in names] for _, instances in shown]
    rows = [
        [row.name, *(f"{taken[at]} ± {percents[i]}" for i, taken in enumerate(columns)),
         significant(max(times) / min(times), 3)]
        for at, ((row, _), times, percents) in enumerate(zip(shown, medians, widths, strict=True))
    ]  # fmt: skip
    inputs = shown[0][0].record.inputs
    headers = ["variant", *(f"{text(name)} (seed {inputs[name]}), {unit}" for name in names), "slowest over fastest"]
    title = "**By instance of the inputs** (measured): medians, with half of their 95 % intervals"
    return join([title, table(headers, rows, "l" + "r" * (len(names) + 1))])


def _overheads(ladder: Ladder) -> str:
    shown = [row for row in ladder.rows if is_measured(row.record) or row.record.verification]
    layouts = [row.record.overheads.layout_s for row in shown]
    factor, unit = time_scale(layouts)
    layout = column([value * factor if value is not None else None for value in layouts])
    rows = []
    for row, relaid in zip(shown, layout, strict=True):
        record = row.record
        over, check = record.overheads, record.verification
        result = is_measured(record)
        launches = str(record.timing.launches) if result and record.timing else NONE
        passed = NONE if check is None else ("passed" if check.passed else "**FAILED**")
        compared = total = 0
        if check:
            compared = sum(out.checked for out in check.outputs.values())
            total = sum(out.total for out in check.outputs.values())
        upload = seconds(over.upload_s, 3)
        rows.append([
            row.name, launches, seconds(over.compile_s, 3), upload,
            size(over.device_bytes), relaid, _with_layout(record) if result else NONE,
            significant(check.worst, 2) if check and check.outputs else NONE,
            f"{compared} of {total}" if check and check.outputs else NONE, passed,
        ])  # fmt: skip
    if not rows:
        return ""
    metric = next((row.record.metric for row in ladder.measured if row.record.metric), None)
    headers = [
        "variant", "launches", "compile", "upload", "memory", f"layout, {unit}",
        f"{text(metric.unit) if metric else 'metric'} incl. layout", "relative L2", "checked", "outcome",
    ]  # fmt: skip
    note = ""
    if any(value is not None for value in layouts):
        note = "“Incl. layout” charges the whole re-layout of the data to one execution."
    return join(["**Overheads and verification**", table(headers, rows, "lrrrrrrrrl"), note])


def _with_layout(record: Record) -> str:
    layout = record.overheads.layout_s
    if layout is None or record.metric is None:
        return NONE
    slower = (time_of(record) + layout) / time_of(record)
    value = record.metric.value
    return significant(value / slower if record.metric.direction == "higher" else value * slower)


def _peers(ladder: Ladder) -> str:
    peers = [row for row in ladder.rows if row.record.identity.role == "peer"]
    if not peers:
        return ""
    best = ladder.best
    rows = []
    for row in peers:
        record = row.record
        compared = ladder.best_over(row) or compare(record, best.record) if best else None
        clock = compared.clock if compared else None
        own = seconds(time_of(record, clock)) + marks(row) if is_measured(record) else NONE
        common = best and clock and common_clock([record, best.record])
        beside = seconds(time_of(best.record, clock)) if best and common else NONE
        state = _state(record) or "ok"
        if not is_measured(record):
            state += f": {text(reason(record), 60)}"
        elif best and not compared:
            state += ": no clock in common"
        rows.append([row.name, state, clock or NONE, own, beside, ratio(compared)])
    named = f"{code(best.label, 40)}, time" if best else "best variant"
    headers = ["peer", "status", "clock", "peer, time", named, "speed-up of the best variant"]
    intro = f"**Peers** beside the best variant, {code(best.label)} (measured)" if best else "**Peers** (measured)"
    return join([intro, table(headers, rows, "lllrrr")])


def _kernels(ladder: Ladder) -> str:
    rows = []
    for row in ladder.measured:
        kernels = row.record.timing.kernels if row.record.timing else {}
        total = sum(kernels.values())
        if len(kernels) < 2 or not total:
            continue
        for name, busy in sorted(kernels.items(), key=lambda item: (-item[1], item[0])):
            rows.append([row.name, code(name, 60), seconds(busy, 3), percent(busy / total)])
    return titled("**Busy time by kernel** (measured)", ["variant", "kernel", "busy", "of all"], rows, "llrr")


def _extra(ladder: Ladder) -> str:
    rows = [
        [row.name, text(name, 60), text(plain(value), 70)]
        for row in ladder.measured
        for name, value in sorted(row.record.extra.items())
        if name != PICTURE
    ]
    return titled("**Further figures** of the last execution (measured)", ["variant", "figure", "value"], rows, "llr")


def published_table(ladders: list[Ladder]) -> str:
    """Return what the publication states for a problem beside what the same variants reach here.

    Parameters
    ----------
    ladders : list of Ladder
        All ladders of one problem with one set of parameters: one per device and precision class.
    """
    figures = {_figure_key(figure): figure for ladder in ladders for figure in ladder.published}
    for ladder in ladders:
        for figure in ladder.published:
            if figure.share is not None:
                figures[_figure_key(figure)] = figure
    if not figures:
        return ""
    order = {row.label: i for i, row in reversed(list(enumerate(row for ladder in ladders for row in ladder.rows)))}
    listed = sorted(figures.values(), key=lambda f: (order.get(f.variant, len(order)), f.variant, f.title, f.value))
    rows = []
    for figure in listed:
        here = [
            f"{percent(row.record.problem_bound.share.value)} ({code(ladder.site)})"
            for ladder in ladders
            for row in ladder.measured
            if row.record.identity.variant == figure.variant and row.record.problem_bound
        ]
        note = "; ".join(line(figure.entry[name], 160) for name in ("source", "note") if figure.entry.get(name))
        rows.append((figure, here, note))
    numbered: dict[str, int] = {}
    for *_, note in rows:
        if note:
            numbered.setdefault(note, len(numbered) + 1)
    cells = []
    for figure, here, note in rows:
        more = f", … {len(here) - 3} more" if len(here) > 3 else ""
        cells.append([
            code(figure.variant, 40), text(figure.title, 40), f"{_figure_value(figure)} {text(figure.unit)}",
            percent(figure.stated_share), percent(figure.share), ", ".join(here[:3]) + more,
            f"({numbered[note]})" if note else NONE,
        ])  # fmt: skip
    headers = [
        "variant", "published on", "published", "share, published", "share, modelled",
        "share here (measured)", "source",
    ]  # fmt: skip
    notes = [f"({number}) {text(note, 400)}" for note, number in numbered.items()]
    intro = (
        "**Published figures.** The modelled share puts the published value under the problem bound that the named "
        "device's datasheet gives at the parameters of this run; the published share is what the source itself states."
    )
    return join([intro, table(headers, cells, "llrrrrl"), "  \n".join(notes)])


def _figure_value(figure: Published) -> str:
    """As it is stated: no digits are added or taken."""
    ends = [figure.value] if figure.high is None else [figure.value, figure.high]
    return "–".join(f"{value:.10g}" for value in ends)


def _figure_key(figure: Published) -> tuple[str, ...]:
    source = str(figure.entry.get("source"))
    return (*(str(getattr(figure, name)) for name in ("variant", "title", "value", "unit")), source)


def device_comparison(ladders: Sequence[Ladder], settings: Sequence[str] = ()) -> str:
    """Return variant x device for one problem and precision class, the fastest variants first.

    Parameters
    ----------
    ladders : sequence of Ladder
        One for each device.
    settings : sequence of str
        At which setting each ladder is, where that is not the same for all.
    """
    several = False
    rows = []
    for role, rung, variant in _fastest_first(ladders):
        cells = [role, code(variant, 60)]
        for ladder in ladders:
            same = [r for r in ladder.rows if (r.record.identity.role, r.record.identity.rung) == (role, rung)]
            same = [r for r in same if r.record.identity.variant == variant]
            several = several or len(same) > 1
            cells.append(_compared_cell(ladder, same))
        rows.append(cells)
    names = [code(ladder.site) for ladder in ladders]
    headers = ["role", "variant", *(f"{n}<br>{text(at, 60)}" for n, at in zip_longest(names, settings, fillvalue=""))]
    headers = [header.removesuffix("<br>") for header in headers]
    note = "Share of the device's own problem bound, and time (measured); the fastest first. Bold: the device's best."
    note += " Of several settings of a variant the fastest is shown." if several else ""
    body = table(headers, rows, "ll" + "r" * len(ladders))
    return noted([note, body])


def _fastest_first(ladders: Sequence[Ladder]) -> list[tuple[str, int, str]]:
    """Return role, rung and name of the variants of some ladders by speed: by the least times of any device's least."""
    names: dict[tuple[str, int, str], float] = {}
    for ladder in ladders:
        least = min((time_of(row.record) for row in ladder.measured), default=0.0)
        for row in ladder.rows:
            identity = row.record.identity
            name = (identity.role, identity.rung, identity.variant)
            slower = time_of(row.record) / least if is_measured(row.record) and least else math.inf
            names[name] = min(names.get(name, math.inf), slower)
    return sorted(names, key=lambda name: (names[name], ROLES.index(name[0]), *name[1:]))


def _compared_cell(ladder: Ladder, same: list[Row]) -> str:
    row = leading(same)
    if row is None:
        ended = dict.fromkeys(row.record.status for row in same)
        return ", ".join(f"**{s.value}**" if s == Status.IMPOSSIBLE else s.value for s in ended) or NONE
    record = row.record
    bound = record.problem_bound
    stale = ABOVE if bound and bound.stale else ""
    reached = percent(bound.share.value) + stale if bound else "no bound"
    cell = f"{reached} · {seconds(time_of(record), 3)}{marks(row)}"
    return f"**{cell}**" if row is ladder.best else cell
