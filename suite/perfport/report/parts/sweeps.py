"""One problem at several settings: speed-ups over each peer, where they end along an axis, figures of variants."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import geometric_mean

from ...measure.intervals import Verdict
from ...model.names import plain, settings
from ...store.ratios import Comparison, is_ranked, time_of
from .ladder import Ladder, Row
from .markdown import NONE, code, join, table, text, titled
from .quantities import seconds, significant

LEAST_VALUES = 3  # of an axis
EXACT = "fp32"  # the class beside which others may stand

Over = dict[str, Comparison | None]  # by peer


def sweeps_section(ladders: list[Ladder]) -> Iterator[str]:
    """Return the tables of each problem that one device ran at several settings.

    Parameters
    ----------
    ladders : list of Ladder
        All ladders of the report, in its order.
    """
    for (workload, problem), same in groupby(ladders, key=lambda ladder: (ladder.workload, ladder.problem)):
        group = list(same)
        for site in dict.fromkeys(ladder.site for ladder in group):
            sweep = Sweep([ladder for ladder in group if ladder.site == site])
            blocks = [sweep.speedups(precision) for precision in sweep.precisions] if len(sweep.settings) > 1 else []
            blocks += [sweep.figures(title, names) for title, names in sweep.declared.items()]
            if any(blocks):
                yield f"### {code(f'{workload}/{problem}')}, {code(site)}"
                yield from blocks


class Sweep:
    """The ladders of one problem on one device.

    Attributes
    ----------
    settings : dict
        By preset and parameters: the ladders, one for each precision class.
    precisions : list of str
        Classes that variants other than peers have.
    declared : dict
        Names of figures by title of their table, as the problem states them.
    """

    def __init__(self, ladders: list[Ladder]) -> None:
        self.settings: dict[tuple[str, str], list[Ladder]] = {}
        for ladder in ladders:
            key = (ladder.preset or "", json.dumps(ladder.parameters, sort_keys=True))
            self.settings.setdefault(key, []).append(ladder)
        self.precisions = list(dict.fromkeys(ladder.precision for ladder in ladders if ladder.best))
        self.declared: dict[str, list[str]] = ladders[0].info.get("figures") or {}
        self._varying: dict[str | None, list[str]] = {}  # parameters that differ between settings of a preset
        for preset in dict.fromkeys(same[0].preset for same in self.settings.values()):
            given = [same[0].parameters for same in self.settings.values() if same[0].preset == preset]
            names = sorted({name for parameters in given for name in parameters})
            self._varying[preset] = [n for n in names if len({plain(parameters.get(n)) for parameters in given}) > 1]

    def _named(self, ladder: Ladder, without: str = "") -> str:
        """A setting by what differs between settings; ``without`` one of its parameters."""
        varying = [name for name in self._varying[ladder.preset] if name in ladder.parameters and name != without]
        own = settings({name: ladder.parameters[name] for name in varying})
        preset = (ladder.preset or "no preset") if len(self._varying) > 1 else ""
        return "; ".join(filter(None, (preset, own)))

    def speedups(self, precision: str) -> str:
        """Return the best variant's speed-up over each peer of its class, by setting.

        Beside the exact class stand peers of the others, named as such.
        """
        rows: list[tuple[Ladder, Row, Over]] = []
        for same in self.settings.values():
            own = next((ladder for ladder in same if ladder.precision == precision), None)
            if own and own.best:
                beside = same if precision == EXACT else [own]
                rows.append((own, own.best, dict(_over_peers(own, beside))))
        peers = list(dict.fromkeys(peer for *_, over in rows for peer in over))
        if len(rows) < 2 or not peers:
            return ""
        cells = [
            [
                text(self._named(ladder), 100),
                code(best.label, 40),
                seconds(time_of(best.record)),
                *(_cell(over.get(peer)) for peer in peers),
            ]
            for ladder, best, over in rows
        ]
        means = [_geometric([comparison for *_, over in rows if (comparison := over.get(peer))]) for peer in peers]
        cells.append(["geometric mean", "", "", *means])
        headers = ["setting", "best variant", "time", *(f"over {peer}" for peer in peers)]
        blocks = [
            f"**Speed-up over each peer**, {text(precision)} (measured; bold: slower)",
            table(headers, cells, "llr" + "r" * len(peers)), *self._ends(rows, peers),
        ]  # fmt: skip
        return join(blocks)

    def _ends(self, rows: Sequence[tuple[Ladder, Row, Over]], peers: Sequence[str]) -> Iterator[str]:
        """Where the best variant begins or ceases to be faster, along each axis of numbers."""
        held: dict[tuple[str, str], list[tuple[float, Over]]] = {}
        for ladder, _, over in rows:
            for axis in self._varying[ladder.preset]:
                value = ladder.parameters.get(axis)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    held.setdefault((axis, self._named(ladder, axis)), []).append((float(value), over))
        lines = []
        for (axis, name), points in held.items():
            outcomes: dict[str, list[str]] = {}
            for peer in peers:
                along = sorted((value, compared.ratio.value) for value, over in points if (compared := over.get(peer)))
                if len(along) >= LEAST_VALUES:
                    outcomes.setdefault(break_even(along), []).append(peer)
            lines += [[text(name, 100), code(axis), ", ".join(alike), said] for said, alike in outcomes.items()]
        if lines:
            yield "**Break-even** with each peer along an axis (measured; between two settings, interpolated)"
            yield table(["at", "axis", "peers", "the best variant is"], lines, "llll")

    def figures(self, title: str, names: Sequence[str]) -> str:
        """Return figures of the variants' last executions, by setting."""
        rows = [
            [
                text(self._named(ladder), 100),
                code(row.label, 40),
                *(text(plain(row.record.extra.get(name, NONE)), 70) for name in names),
            ]
            for same in self.settings.values()
            for ladder in same
            for row in ladder.measured
            if any(name in row.record.extra for name in names)
        ]
        headers = ["setting", "variant", *(text(name.replace("_", " ")) for name in names)]
        return titled(f"**{text(title)}** (measured)", headers, rows, "ll" + "r" * len(names))


def crossings(points: Sequence[tuple[float, float]]) -> list[tuple[float, bool]]:
    """Return where ratios along an axis pass 1, and whether upwards; ``points`` as for `break_even`."""
    roots = []
    for (x, left), (y, right) in pairwise(points):
        a, b = math.log(left), math.log(right)
        if (a < 0) != (b < 0):
            roots.append((x + (y - x) * a / (a - b), b >= 0))
    return roots


def break_even(points: Sequence[tuple[float, float]]) -> str:
    """Say where ratios along an axis pass 1, by linear interpolation of their logarithms.

    Parameters
    ----------
    points : sequence of (float, float)
        Value of the axis, ascending, and ratio.
    """
    roots = crossings(points)
    low, high = significant(points[0][0]), significant(points[-1][0])
    if not roots:
        return f"{'slower' if points[0][1] < 1 else 'faster'} from {low} to {high}"
    return ", ".join(f"{'faster' if up else 'slower'} from {significant(at)} on" for at, up in roots)


def _over_peers(own: Ladder, same: Sequence[Ladder]) -> Iterator[tuple[str, Comparison | None]]:
    for ladder in same:
        for row in ladder.peers:
            if is_ranked(row.record):
                of_class = f" ({text(ladder.precision)})" if ladder.precision != own.precision else ""
                yield code(row.label) + of_class, own.best_over(row)


def _cell(comparison: Comparison | None) -> str:
    if comparison is None:
        return NONE
    value = significant(comparison.ratio.value)
    return f"**{value}**" if comparison.verdict is Verdict.SLOWER else value


def _geometric(comparisons: Sequence[Comparison]) -> str:
    return significant(geometric_mean(comparison.ratio.value for comparison in comparisons)) if comparisons else NONE
