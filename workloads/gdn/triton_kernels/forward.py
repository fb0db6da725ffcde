"""The forward pass in Triton, as one writes it in an afternoon: a tiled product whose operand is squared on its way.

No package (there is no __init__.py): discovery imports packages, and Triton only who has it.
"""

import triton
import triton.language as tl


@triton.jit
def forward(
    w, gamma, beta, u, d, channels, pixels, image, channel, pixel,
    OUT: tl.constexpr, POSITIONS: tl.constexpr, IN: tl.constexpr, PRODUCT: tl.constexpr, INVERSE: tl.constexpr,
    TRAINING: tl.constexpr,
):  # fmt: skip
    """u and D of a tile of channels and positions; ``image``, ``channel`` and ``pixel`` are strides in words."""
    positions = (tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS)).to(tl.int64)
    rows = tl.program_id(1) * OUT + tl.arange(0, OUT)
    first = tl.program_id(2).to(tl.int64) * image
    here = positions[None, :] < pixels
    sums = tl.zeros((OUT, POSITIONS), tl.float32)
    for start in range(0, channels, IN):
        inputs = start + tl.arange(0, IN)
        weights = tl.load(
            gamma + rows[:, None] * channels + inputs[None, :],
            mask=(rows[:, None] < channels) & (inputs[None, :] < channels), other=0.0,
        )  # fmt: skip
        maps = tl.load(
            w + first + inputs[:, None] * channel + positions[None, :] * pixel,
            mask=(inputs[:, None] < channels) & here, other=0.0,
        )  # fmt: skip
        sums += tl.dot(weights, maps * maps, input_precision=PRODUCT)
    place = first + rows[:, None] * channel + positions[None, :] * pixel
    inside = (rows[:, None] < channels) & here
    z = sums + tl.load(beta + rows, mask=rows < channels, other=1.0)[:, None]
    own = tl.load(w + place, mask=inside, other=0.0)
    tl.store(u + place, own * tl.sqrt(z) if INVERSE else own * tl.rsqrt(z), mask=inside)
    if TRAINING:
        tl.store(d + place, tl.rsqrt(z), mask=inside)
