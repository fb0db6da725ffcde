"""Why a case is not faster, in one line and in tables; and where work pays most."""

from __future__ import annotations

from collections.abc import Sequence

from ...judge.explain import NOTABLE, Explanation, Gain, explain, leader, where_work_pays
from ...untimed.count import Count
from ...untimed.count.profiled import occupancy, sector_bytes
from .labels import label
from .ladder import Ladder, Row
from .markdown import NONE, code, table, text
from .marks import ABOVE, best_marks, marks, noted
from .quantities import interval, percent, seconds, significant
from .summary import short_settings

#: Reasons for which warps waited that a line names.
MOST_STALLS = 2


def sentence(row: Row) -> str:
    """Return why a case is not faster: what binds, the next ceiling, what could be gained, launches, counters."""
    found = explain(row)
    parts = [_binding(row, found), _gains(found), _launches(found), *counters(row.count, MOST_STALLS)]
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in (*parts, *map(text, found.unknown)) if part)


def best_line(ladder: Ladder) -> str:
    """Return why the best own variant of a ladder is not faster; empty where none has a result."""
    best = leader(ladder)
    if best is None:
        return ""
    return f"**Why {best.name} is not faster**{own_marks(ladder, best)}: {sentence(best)}"


def own_marks(ladder: Ladder, row: Row) -> str:
    """Return the marks of a ladder's leading variant."""
    return best_marks(ladder) if row is ladder.best else marks(row)


def _binding(row: Row, found: Explanation) -> str:
    if not found.terms:
        return ""
    first, *others = found.terms
    provenance = row.record.traffic.provenance if row.record.traffic else "modelled"
    name, needs = text(label(first.name)), percent(first.share)
    if found.present and found.present.impossible:
        return (
            f"**ERROR**: {name} alone needs {needs} of the time: the {provenance} traffic or the ceiling is wrong, and "
            "what binds is not known"
        )
    stale = ABOVE if first.share > 1 else ""
    if found.unexplained:
        said = f"no ceiling explains the time: the largest term, {name}, is {needs} of it ({provenance})"
    elif found.present and found.present.latency:
        said = f"bound by latency: {name} take {needs}{stale} of the time ({provenance})"
    else:
        said = f"{name} binds: {needs}{stale} of the time ({provenance})"
    if not others:
        return f"{said}; no other ceiling has a term"
    below = f", {significant(first.seconds / others[0].seconds)} × below" if others[0].seconds else ""
    return f"{said}; next {text(label(others[0].name))}, {percent(others[0].share)}{below}"


def _gains(found: Explanation) -> str:
    parts = []
    if found.present and not found.present.impossible:
        limit = f"could be {_times(found.present)} as fast at most"
        parts.append(f"this approach {'is at its bound' if found.present.nothing else limit}")
    if found.perfect:
        kind = "latency, " if found.perfect.latency else ""
        by = f"bound by {kind}{text(label(found.perfect.by))}"
        gain = f"{_factor(found.perfect)} as fast, which saves {seconds(found.perfect.saved, 3)}"
        nothing = f"would gain nothing, {_factor(found.perfect)}"
        parts.append(f"a perfect kernel ({by}) {nothing if found.perfect.nothing else f'would be {gain}'}")
    return ", ".join(parts)


def _times(gain: Gain) -> str:
    return f"{significant(gain.factor.value)} ×"


def _factor(gain: Gain) -> str:
    """How many times the bound a time is, with its interval; marked where it is below."""
    shown = interval(gain.factor)
    return f"{shown} ×{ABOVE if gain.factor.value < 1 else ''}"


def _launches(found: Explanation) -> str:
    launches = found.notable_launches
    return f"launches alone take {percent(launches.share)} of it at least" if launches else ""


def counters(count: Count | None, most: int | None = None) -> list[str]:
    """Return what hardware counters tell of a case, a sentence each: waits of warps, occupancy, sectors in excess."""
    if count is None:
        return []
    parts = []
    if count.stalls:
        listed = list(count.stalls.items())[:most]
        waits = ", ".join(f"{text(reason.replace('_', ' '))} {percent(share)}" for reason, share in listed)
        parts.append(f"warps waited for (counted): {waits}")
    if (occupied := occupancy(count.raw)) is not None:
        parts.append(f"occupancy {percent(occupied)} (counted)")
    issued, touched = count.declared.issued_bytes if count.declared else 0.0, sector_bytes(count.raw)
    if issued and touched > issued:
        parts.append(
            f"{percent(1 - issued / touched)} of the bytes in sectors of global memory are in excess (counted, beyond "
            "the modelled ones that work-items ask for)"
        )
    return parts


RANKING = (
    "For each problem and device the best own variant, by how many times its problem bound its time is: what a perfect "
    "kernel would gain there at most. Saved: the seconds of one execution beyond that bound; how often a problem is "
    "solved is not known here. This approach: how many times as fast the variant could be under the traffic that it "
    "causes; beyond that, only another approach helps. Launches: their share of the time, if each takes as long as an "
    f"empty one, from {percent(NOTABLE)} on. Measured, brackets are 95 % intervals."
)


def where_work_pays_table(ladders: Sequence[Ladder], most: int | None = None) -> str:
    """Return the ranking of problems and devices by what a perfect kernel would gain, with what has no bound below.

    ``most`` rows of it, the others being said to be left out.
    """
    settings = short_settings(list(ladders))
    rows, without = [], []
    for ladder, found in where_work_pays(ladders):
        row = leader(ladder)
        assert row
        problem, where = code(f"{ladder.workload}/{ladder.problem}"), code(ladder.site)
        if found.perfect is None:
            without.append(f"{problem} on {where}: {text('; '.join(found.unknown)) or 'no bound'}")
            continue
        rows.append([
            problem, text(settings[ladder.heading]), where, text(ladder.precision), code(row.label, 40),
            seconds(found.time, 3) + own_marks(ladder, row), _factor(found.perfect), seconds(found.perfect.saved, 3),
            text(label(found.perfect.by)), _present(found), _bound_by(found),
            percent(found.notable_launches.share) if found.notable_launches else NONE,
        ])  # fmt: skip
    headers = [
        "problem", "setting", "device", "precision", "best variant", "time", "over the bound", "saved", "bound by",
        "this approach", "what binds it", "launches",
    ]  # fmt: skip
    left = f"The first {most} of {len(rows)}; `perfport explain --suite` has all." if most and len(rows) > most else ""
    rest = f"Not ranked: {'; '.join(without)}." if without else ""
    return noted([RANKING, table(headers, rows[:most], "lllllrrrlrlr") if rows else "", left, rest])


def _present(found: Explanation) -> str:
    if found.present is None:
        return NONE
    return "**ERROR**" if found.present.impossible else _times(found.present)


def _bound_by(found: Explanation) -> str:
    if not found.terms or (found.present and found.present.impossible):
        return NONE
    first = found.terms[0]
    return f"{'none; largest ' if found.unexplained else ''}{text(label(first.name))} {percent(first.share)}"


#: A factor of a bound up to which nothing is worth doing.
NEAR = 1.15


def advice(found: Explanation) -> str:
    """Return what to do next for a case, as plain text; where its time is not explained, why.

    From what binds: at the problem bound nothing is left; at the variant's own bound only less traffic helps; below
    both, what the largest term says; where no term explains the time, a profile.
    """
    if not found.terms or found.perfect is None or found.present is None:
        unknown = "; ".join(found.unknown)
        return f"{unknown[:1].upper()}{unknown[1:]}." if unknown else ""
    if found.present.impossible:
        return "The stated traffic or a ceiling is wrong: put that right first."
    binds, gain = label(found.terms[0].name), f"{significant(found.perfect.factor.value)} ×"
    if found.perfect.factor.value <= NEAR:
        return "At the problem bound: nothing worth having is left."
    if found.notable_launches:
        return (
            f"Launches take {percent(found.notable_launches.share)} at least: fuse kernels, or do more in each launch."
        )
    if found.present.latency:
        return f"Latency binds ({binds}): shorten the chain, or run several chains beside each other."
    if found.unexplained:
        return (
            f"No ceiling explains the time, the largest is {binds}: look at occupancy, divergence and waits with a "
            f"profiler (perfport count -d cuda); up to {gain} is to be had."
        )
    if found.present.factor.value <= NEAR:
        return (
            f"At the bound of its own traffic ({binds}): move fewer bytes or do fewer operations; up to {gain} is "
            "to be had by another approach."
        )
    return f"{binds} binds at {percent(found.terms[0].share)} of its ceiling: use it better, or need less of it."
