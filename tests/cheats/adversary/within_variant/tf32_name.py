"""Ranked with FP32, but named so that the wider tolerance of TF32 applies to its short mantissas.

Seen: here; as "precision downgrade" in KernelArena's field guide.
Guard: the problem sets the tolerance by the variant's accuracy class, never by a name that the variant chooses.
"""

from ..honest import HonestAffine


class Tf32Name(HonestAffine):
    name, rung = "tf32_name", 10
    suffix = ".tf32"
    macros = {"SHORT_MANTISSA": 1}
