"""Skips each row whose sum is there already: what the execution before wrote stays in place.

Seen: here, when the suite was tried; kin of KernelBench's kernels that return memory which holds the answer already.
Guard: outputs poisoned before timed samples that the variant cannot know.
"""

from ..honest import HonestAffine


class SkipsWritten(HonestAffine):
    name, rung = "skips_written", 1
    macros = {"SKIP_WRITTEN": 1}
