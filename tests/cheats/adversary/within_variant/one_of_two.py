"""Computes one of two outputs, and declares that one alone.

Seen: here.
Guard: the problem declares its outputs; a missing one is wrong.
"""

from ..honest import HonestAffine


class OneOfTwo(HonestAffine):
    name, rung = "one_of_two", 8
    declared = ("y",)
    macros = {"NO_SUMS": 1}
