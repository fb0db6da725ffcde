"""What was tried of each library: its forms and settings, with their times."""

from __future__ import annotations

from itertools import groupby

from ...model.names import settings
from ...store.comparable import fastest, is_peer
from ...store.ratios import is_measured, time_of
from .failures import reason
from .ladder import Ladder
from .markdown import NONE, code, table, text
from .marks import marks, noted
from .quantities import seconds, significant
from .summary import short_settings

HEADERS = ["problem", "setting", "device", "precision", "peer", "form", "time", "over its fastest form"]


def forms_table(ladders: list[Ladder]) -> str:
    """Return the time of each form of each peer, and how many times that of the peer's fastest form it is."""
    named = short_settings(ladders)
    rows = []
    for ladder in ladders:
        where = [
            code(f"{ladder.workload}/{ladder.problem}"), text(named[ladder.heading]), code(ladder.site),
            text(ladder.precision),
        ]  # fmt: skip
        peers = [row for row in ladder.rows if is_peer(row)]
        for peer, same in groupby(peers, key=lambda row: row.record.identity.variant):
            forms = list(same)
            best = fastest(forms)
            for row in forms:
                record, shown, share = row.record, NONE, NONE
                if is_measured(record):
                    shown = seconds(time_of(record)) + marks(row)
                    share = significant(time_of(record) / time_of(best.record), 3) if best else NONE
                else:
                    shown = text(f"{record.status.value}: {reason(record)}", 60)
                rows.append([*where, code(peer), text(settings(record.identity.tunables)), shown, share])
    return noted(["**Forms of peers** (measured)", table(HEADERS, rows, "llllllrr")])
