"""Writes indices as bytes; the reference, cast to the same type, wraps around as they do.

Seen: here, of `compare_exact`.
Guard: the problem declares the type of its outputs; another one is wrong.
"""

import numpy as np

from ..honest import HonestExtremes


class NarrowDtype(HonestExtremes):
    name, rung = "narrow_dtype", 2
    index = np.uint8
    macros = {"INDEX": "uchar"}
