"""Writes infinities, with which a careless comparison agrees (inf - inf is NaN, and no NaN exceeds a limit).

Seen: NaN as a wildcard of a checker, in the exploits of GPU MODE's pygpubench.
Guard: an element that is not finite is wrong.
"""

from ..honest import HonestAffine


class Infinities(HonestAffine):
    name, rung = "infinities", 13
    macros = {"INFINITE": 1}
