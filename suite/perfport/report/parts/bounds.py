"""The two bounds of a ladder, each in a table of its own with its definition."""

from __future__ import annotations

from ...measure.roofline import IMPOSSIBLE_SHARE, impossible
from ...model.record import Bound, Record, Status
from ...store.ratios import is_measured, time_of
from .labels import label, ordered
from .ladder import Ladder
from .markdown import NONE, join, table, text, titled
from .quantities import percent, scaled, seconds, share, significant

WARM = (
    "Warm cache: the inputs lie in a cache at the start, so the DRAM term is left out of both bounds (DRAM traffic "
    "that a variant causes all the same bounds nothing here)."
)
MERGED = (
    "The compiler of a CPU merges the accesses of neighbouring work-items: issued and local bytes are no bound there, "
    "and their terms are left out."
)


def problem_bound_note(ladder: Ladder) -> str:
    """Return the problem bound of a ladder in one sentence: the time, what the ceilings leave open, and all terms."""
    bound = next((row.record.problem_bound for row in ladder.measured if row.record.problem_bound), None)
    if bound is None:
        if ladder.ceilings and _warm(ladder):
            return "No problem bound: without the DRAM term (warm cache) no measured ceiling applies."
        return "No problem bound: this device has no measured ceilings for it." if ladder.measured else ""
    terms = ", ".join(f"{text(label(name))} {seconds(bound.terms[name], 3)}" for name in ordered(bound.terms))
    return (
        f"Problem bound under the measured ceilings: {seconds(bound.seconds, 3)}, by {text(label(bound.binding))} "
        f"({terms}); {seconds(bound.low, 3)} to {seconds(bound.high, 3)} by the ceilings' intervals."
    )


def bounds_tables(ladder: Ladder) -> str:
    """Return the share of the problem bound that each variant reaches, and what binds each variant."""
    tables = join([_problem(ladder), _variant(ladder)])
    return join([tables, WARM if tables and _warm(ladder) else "", MERGED if tables and ladder.merged else ""])


def _warm(ladder: Ladder) -> bool:
    return any(row.record.timing and row.record.timing.cache == "warm" for row in ladder.measured)


def _problem(ladder: Ladder) -> str:
    rows = []
    for row in ladder.rows:
        record = row.record
        if is_measured(record) or record.status == Status.IMPOSSIBLE:
            binding = text(label(record.problem_bound.binding)) if record.problem_bound else NONE
            rows.append([row.name, share(record.problem_bound), binding, share(record.datasheet_bound, "")])
    if not any(cell != NONE for cells in rows for cell in cells[1:]):
        return ""
    headers = [
        "variant", "share of problem bound (measured)", "bound by", "share of datasheet bound (published)",
    ]  # fmt: skip
    intro = (
        "**Problem bound**: the least time that any correct method of this precision class takes under the ceilings, "
        "the same for all variants. The interval of a share is that of the time."
    )
    return join([intro, table(headers, rows, "lrlr")])


def _variant(ladder: Ladder) -> str:
    bounded = [(row, row.record.variant_bound) for row in ladder.measured if row.record.variant_bound]
    terms = ordered(name for _, bound in bounded for name in bound.terms)
    if not terms:
        return ""
    rows = []
    for row, bound in bounded:
        provenance = row.record.traffic.provenance if row.record.traffic else "modelled"
        cells = [_term(row.record, bound, name) for name in terms]
        rows.append([row.name, text(label(bound.binding)), *cells, provenance])
    headers = ["variant", "what binds it", *(text(label(name)) for name in terms), "traffic"]
    intro = (
        "**What binds each variant** (variant bound): the time that each ceiling alone needs for the operations and "
        "bytes that this variant causes, in % of its measured time; the ceiling that binds in bold."
    )
    above = ""
    if any(impossible(bound) for _, bound in bounded):
        above = (
            "**ERROR**: more than 100 % of the time, with the whole interval above "
            f"{percent(IMPOSSIBLE_SHARE)}: the traffic is less than modelled or counted, or a ceiling is too low."
        )
    return join([intro, table(headers, rows, "ll" + "r" * len(terms) + "l"), above, _counted(ladder)])


def _term(record: Record, bound: Bound, name: str) -> str:
    if name not in bound.terms:
        return NONE
    shown = percent(bound.terms[name] / time_of(record), unit=False)
    if name != bound.binding:
        return shown
    return f"**ERROR: {shown}**" if impossible(bound) else f"**{shown}**"


def _counted(ladder: Ladder) -> str:
    """DRAM bytes of the variants whose traffic hardware counters gave, beside what the variant's own model says."""
    rows = []
    for row in ladder.measured:
        traffic = row.record.traffic
        if traffic and traffic.provenance == "counted":
            modelled = row.modelled.dram_bytes if row.modelled else 0.0
            ratio = significant(traffic.dram_bytes / modelled) if modelled else NONE
            rows.append([row.name, scaled(traffic.dram_bytes, "B"), scaled(modelled, "B") if modelled else NONE, ratio])
    headers = ["variant", "DRAM bytes (counted)", "DRAM bytes (modelled)", "counted / modelled"]
    intro = (
        "**Counted DRAM traffic.** Where the traffic above is `counted`, DRAM and L2 bytes come from hardware "
        "counters, in a run of the same case apart from its timing; all other quantities stay as modelled."
    )
    return titled(intro, headers, rows, "lrrr")
