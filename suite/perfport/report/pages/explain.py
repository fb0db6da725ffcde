"""The views of `perfport explain`: why one case is not faster, and where work pays most over a suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...judge.explain import Explanation, Gain, explain, find_case, leader, where_work_pays
from ...model.errors import UsageError, nearest
from ...model.names import settings
from ...model.untrusted import line
from ...store.case import Case
from ...store.collection import Collection
from ...store.ratios import is_measured, time_of
from ...untimed.count.profiled import occupancy
from ..parts.bounds import MERGED, WARM
from ..parts.counted import Recount, touched_lines
from ..parts.explained import counters, sentence, where_work_pays_table
from ..parts.labels import label
from ..parts.ladder import Ladder, Row, collected
from ..parts.markdown import NONE, code, join, text, titled
from ..parts.marks import marks, noted
from ..parts.material import headline
from ..parts.quantities import interval, noise, percent, seconds, significant
from ..parts.view import View

#: Candidates that a complaint names.
MOST_CANDIDATES = 12


def view(collection: Collection, name: str, recount: Recount | None = None) -> View:
    """Return why a case is not faster: one line, then the numbers behind it.

    Parameters
    ----------
    collection : Collection
    name : str
        A record's key, the beginning of one, or ``workload/problem/variant``.
    recount : Recount, optional
        What was counted: by hardware of the case, and in the simulator of its variant.

    Raises
    ------
    UsageError
        If no case is meant, or several are; the text names them.
    """
    case = _the_case(collection, name)
    ladder = Ladder([case], collection.label(case.site), collection.label(case.site.alone), recount)
    (row,) = ladder.rows
    found, identity = explain(row), row.record.identity
    trace = recount.traced(row.record) if recount else None
    title = f"Why {line('/'.join((identity.workload, identity.problem, identity.variant)), 120)} is not faster"
    blocks = [
        f"# {text(title)}", _about(collection, row), sentence(row), _limits(found), _terms(row, found, ladder.merged),
        _launched(row, found), *(f"{part[0].upper()}{part[1:]}." for part in counters(row.count)),
        touched_lines(trace) if trace and not ladder.merged else "",
    ]  # fmt: skip
    return View(title, noted(blocks), [_row(collection, row, found)])


def ranking(collection: Collection, recount: Recount | None = None) -> View:
    """Return where work pays most: problems and devices by what a perfect kernel would gain over the best variant."""
    ladders = list(headline(collection, collected(collection, recount)))
    title = "Where work pays most"
    rows = [
        _row(collection, row, found)
        for ladder, found in where_work_pays(ladders)
        if (row := leader(ladder)) is not None
    ]
    return View(title, join([f"# {title}", where_work_pays_table(ladders)]), rows)


def _the_case(collection: Collection, name: str) -> Case:
    found = find_case(collection.cases, name)
    if len(found) == 1:
        return found[0]
    if found:
        listed = [f"  {line(_candidate(collection, case))}" for case in found[:MOST_CANDIDATES]]
        listed += [f"  and {len(found) - MOST_CANDIDATES} more"] if len(found) > MOST_CANDIDATES else []
        message = f"CASE: {name!r} is {len(found)} cases; give the key of one, or filters:"
        raise UsageError("\n".join([message, *listed]))
    names = {"/".join(case.names[:3]) for case in collection.cases}
    raise UsageError(
        f"CASE: {name!r} is no key of a record here, no beginning of one, and no workload/problem/variant"
        f"{nearest(name, names)} (of several results of a case the latest counts)"
    )


def _candidate(collection: Collection, case: Case) -> str:
    identity = case.record.identity
    tunables = f" [{settings(identity.tunables)}]" if identity.tunables else ""
    profile = f" profile {identity.profile}" if identity.profile else ""
    where = f"{identity.precision}, on {collection.label(case.site)}: {case.record.status.value}"
    return (
        f"{case.record.key}  {'/'.join(case.names[:3])}, {collection.preset(case.subject)}{tunables}{profile}, {where}"
    )


def _about(collection: Collection, row: Row) -> str:
    record, identity = row.record, row.record.identity
    facts = [
        f"{text(collection.preset(row.subject))} on {code(collection.label(row.site))}, {text(identity.precision)}"
    ]
    facts += [f"tunables {code(settings(identity.tunables))}"] if identity.tunables else []
    facts += [f"profile {code(identity.profile)}"] if identity.profile else []
    facts.append(f"record {code(record.key)} of run {code(row.run.folder.name)}")
    if is_measured(record) and record.timing:
        summary = record.timing.summary[record.timing.rank]
        half, cache = noise(summary, " %"), record.timing.cache
        facts.append(f"**{seconds(time_of(record))}** ± {half} ({cache} cache, measured){marks(row)}")
    return f"{'; '.join(facts)}."


def _limits(found: Explanation) -> str:
    """What each bound leaves to gain."""
    bounds = [("this approach, with the traffic that it causes", found.present), ("a perfect kernel", found.perfect)]
    rows = [
        [name, text(label(gain.by)), seconds(gain.seconds, 3), interval(gain.factor), seconds(gain.saved, 3)]
        for name, gain in bounds
        if gain
    ]
    headers = ["limit", "bound by", "least time", "times as fast", "saved by one execution"]
    return titled("**What could be gained at most**", headers, rows, "llrrr")


def _terms(row: Row, found: Explanation, merged: bool) -> str:
    if not found.terms:
        return ""
    first = found.terms[0]
    rows = [
        [text(label(term.name)), seconds(term.seconds, 3), percent(term.share),
         significant(first.seconds / term.seconds) if term.seconds else NONE]
        for term in found.terms
    ]  # fmt: skip
    provenance = row.record.traffic.provenance if row.record.traffic else "modelled"
    title = f"**What binds it**: the time that each ceiling alone needs for the {provenance} traffic"
    headers = ["ceiling", "needs", "of the time", "times below the first"]
    warm = row.record.timing is not None and row.record.timing.cache == "warm"
    return join([titled(title, headers, rows, "lrrr"), WARM if warm else "", MERGED if merged else ""])


def _launched(row: Row, found: Explanation) -> str:
    if row.record.timing is None or found.time is None:
        return ""
    number = row.record.timing.launches
    if not number:
        return "How many launches one execution makes was not counted: its time is the host's."
    if found.launches is None:
        return ""
    return (
        f"{number} launch{'' if number == 1 else 'es'} of one execution: {seconds(found.launches.seconds, 3)} if each "
        f"takes as long as an empty one, {percent(found.launches.share)} of the time."
    )


def _row(collection: Collection, row: Row, found: Explanation) -> dict[str, Any]:
    identity, record = row.record.identity, row.record
    terms: Sequence[Any] = [*found.terms[:2], None, None][:2]
    listed: dict[str, Any] = {
        "workload": identity.workload, "problem": identity.problem, "variant": identity.variant,
        "setting": collection.preset(row.subject), "device": collection.label(row.site),
        "precision": identity.precision, "status": record.status.value, "age": row.age.value, "seconds": found.time,
    }  # fmt: skip
    for name, term in zip(("binding", "next"), terms, strict=True):
        listed |= {name: term and term.name, f"{name} seconds": term and term.seconds}
    for name, gain in (("approach", found.present), ("perfect", found.perfect)):
        listed |= _gain(name, gain)
    traffic, launches = record.traffic, found.launches
    return listed | {
        "traffic": traffic.provenance if traffic else None, "launch seconds": launches.seconds if launches else None,
        "occupancy": occupancy(row.count.raw) if row.count else None,
        "stalls": settings(row.count.largest_stalls) if row.count and row.count.stalls else None,
        "unknown": "; ".join(found.unknown) or None, "record": record.key,
    }  # fmt: skip


def _gain(name: str, gain: Gain | None) -> dict[str, Any]:
    """The columns of a bound."""
    values = (gain.by, gain.seconds, gain.factor.value, gain.factor.low, gain.factor.high) if gain else (None,) * 5
    return dict(zip((f"{name} bound by", f"{name} seconds", name, f"{name} low", f"{name} high"), values, strict=True))
