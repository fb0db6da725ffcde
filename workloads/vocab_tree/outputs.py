"""What variants compute, how far their labels may be off, which of many outputs are compared."""

from __future__ import annotations

import numpy as np

SAMPLE = 100_000  # outputs that are compared where there are more
FLOAT_SLACK = 1.0  # squared distance by which a label computed in FP32 may miss the nearest centre
#: The same by products of 11-bit significands, FP16 or TF32: descriptors and centres have a norm of at most 512, a
#: centre cut to TF32 is off by 2^-10, a score 2 x c by 512, and two of them are compared.
ROUNDED_SLACK = 1024.0
#: What is computed in place of exact labels and sums: sums by labels from distances in FP32, which may differ where two
#: centres are about equally near; labels and means by such distances, or in TF32 or FP16; means alone.
FLOAT, MEANS, MEANS_ONLY = "FP32 labels", "means", "means only"


def sampled(count: int, seed: int) -> np.ndarray:
    """Return the numbers of the outputs that are compared: all, or a sample with the first and the last."""
    if count <= SAMPLE:
        return np.arange(count)
    drawn = np.random.default_rng(seed).integers(0, count, SAMPLE)
    return np.unique(np.concatenate([drawn, [0, count - 1]]))


#: What a product of a byte and a centre's element takes: two products of bytes (or of what holds a byte exactly) where
#: centres keep their 16 bits, one where a class rounds them.
EXACT_UNITS = {
    **dict.fromkeys(("int32_mad", "int32_logic", "int24_mad", "int16_mad", "fp32_fma"), 1.0),
    **dict.fromkeys(("dp4a", "int8_mma", "bf16_mma", "tf32_mma"), 2.0),
}
ROUNDED_UNITS = dict.fromkeys(EXACT_UNITS, 1.0)
