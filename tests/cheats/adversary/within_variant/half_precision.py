"""Rounds to the 10 bits of mantissa of half precision, ranked with FP32.

Seen: as "precision downgrade" in KernelArena's field guide and DeepReinforce's.
Guard: the tolerance of FP32.
"""

from ..honest import HonestAffine


class HalfPrecision(HonestAffine):
    name, rung = "half_precision", 11
    macros = {"SHORT_MANTISSA": 1}
