"""What more devices give: time, speed-up and efficiency of the same case by one, two and more devices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ...model.names import settings
from ...model.record import DEVICES, Interval
from ...store.ratios import compare, time_of
from .ladder import Ladder, Row
from .markdown import code, table, text
from .marks import marks, noted
from .quantities import interval, percent, seconds

READING = (
    "The same variant with equal tunables by several devices of one host (measured). Speed-up is over the fewest "
    "devices, efficiency the speed-up over how many times as many devices took part; 95 % intervals."
)


def scaling_section(ladders: Sequence[Ladder], heading: str = "###") -> Iterator[str]:
    """Yield a table for each setting and place where a case ran on different numbers of devices, if any did."""
    tables = []
    ordered = sorted(ladders, key=_where)
    for (workload, problem, setting, precision, place), same in groupby(ordered, key=_where):
        rows = list(_rows(list(same)))
        if rows:
            name = f"{code(f'{workload}/{problem}')}, {text(setting, 100)}, {text(precision)}, on {code(place)}"
            headers = ["variant", "devices", "time", "speed-up", "efficiency"]
            tables.append(noted([f"{heading} {name}", table(headers, rows, "lrrrr")]))
    if tables:
        yield READING
        yield from tables


def _where(ladder: Ladder) -> tuple[str, str, str, str, str]:
    return (*ladder.heading, ladder.place)


def _rows(ladders: Iterable[Ladder]) -> Iterator[list[str]]:
    groups: dict[str, list[Row]] = {}
    for ladder in ladders:
        for row in ladder.measured:
            identity = row.record.identity
            others = {name: value for name, value in identity.tunables.items() if name != DEVICES}
            key = json.dumps([identity.variant, others, identity.profile], sort_keys=True)
            groups.setdefault(key, []).append(row)
    several = [sorted(rows, key=_count) for rows in groups.values() if len(set(map(_count, rows))) > 1]
    for rows in several:
        first = rows[0]
        tunables = {name: value for name, value in first.record.identity.tunables.items() if name != DEVICES}
        name = first.record.identity.variant + (f" [{settings(tunables)}]" if len(several) > 1 and tunables else "")
        for row in rows:
            time = seconds(time_of(row.record)) + marks(row)
            compared = compare(first.record, row.record) if row is not first else None
            gain, share = "1 (base)", percent(1.0)
            if row is not first:
                gain = interval(compared.ratio) if compared else ""
                share = _efficiency(compared.ratio, _count(row) / _count(first)) if compared else ""
            yield [code(name), str(_count(row)), time, gain, share]


def _count(row: Row) -> int:
    return row.record.identity.device_count


def _efficiency(gain: Interval, times: float) -> str:
    low, high = (percent(end / times, unit=False) for end in (gain.low, gain.high))
    return f"{percent(gain.value / times)} ({low}–{high})"
