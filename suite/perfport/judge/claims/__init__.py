"""The claims ledger: what the publications claim, as data, and whether it holds on each device that was measured.

A claim is an entry of a workload's ``claims.yaml``: a statement, its source, what to compare and a threshold. The
evaluator is the same for all; it knows quantities of records, not workloads.

A claim is evaluated for each site and each setting that it selects. With the 95 % interval of the number compared, the
threshold, and the value that the number has where there is no effect (1 for a speed-up):

    holds        the whole interval meets the threshold
    smaller      it misses the threshold, and lies on the claimed side of no effect
    absent       it misses the threshold, and contains no effect or is within 2 % of it
    opposite     it misses the threshold, and lies on the other side of no effect
    cannot tell  the interval contains the threshold, or settings disagree
    not measured a side has no result that may be ranked

A claim that cannot but hold is marked `by construction` where it does; one about another kind of device than the
site's is `not applicable`: its numbers are shown, and not judged.

`verdicts.combined` says what several settings amount to.
"""

from .evaluation import Evidence, Judgement, evaluate
from .ledger import Claim, Selector, ledger, read
from .measures import Number, OpenInterval
from .verdicts import DECIDED, MISSED, SILENT, Verdict, combined, judged

__all__ = [
    "DECIDED", "MISSED", "SILENT", "Claim", "Evidence", "Judgement", "Number", "OpenInterval", "Selector", "Verdict",
    "combined", "evaluate", "judged", "ledger", "read",
]  # fmt: skip
