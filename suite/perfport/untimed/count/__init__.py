"""Counted work: what tools count of a variant's execution, beside what the variant declares (docs/counting.md).

`counts` is the record of one counted case, its comparison and its store; `simulated` counts under Oclgrind, `profiled`
under Nsight Compute; `coalescing` reads a trace of accesses; `survey` is the command.
"""

from .counts import Comparison, Count, Verdict, read

__all__ = ["Comparison", "Count", "Verdict", "read"]
