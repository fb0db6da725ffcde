/* What fused.cl and tensor_core.cu share: how maps lie in memory, parameters, and how dgamma's product is split. */
#include "term.h"

#if NHWC
#define CHANNEL_STRIDE 1u
#define BASE(p) ((p) * channels)
#else
#define CHANNEL_STRIDE pixels
#define BASE(p) ((p) / pixels * channels * pixels + (p) % pixels)
#endif

/* Whether vectors of a staged operand lie along the inner dimension, that is, whether neighbouring values of this are
   neighbours in memory (else those of its rows are). */
#ifdef GAMMA
#define ALONG !NHWC
#else
#define ALONG NHWC
#endif

#ifdef FORWARD
#if SAVE
#define SAVED __global float *RESTRICT saved,
#else
#define SAVED
#endif
#define PRODUCT forward
#define OPERANDS_AND_OUTPUTS __global const float *RESTRICT beta, SAVED __global float *RESTRICT u
#else
#define PRODUCT input_gradient
#define OPERANDS_AND_OUTPUTS \
    __global const float *RESTRICT delta, __global const float *RESTRICT d, __global float *RESTRICT dw
#endif
/* Of FORWARD and INPUT; gamma is packed in elements of a type. */
#define PRODUCT_PARAMETERS(type)                                                                                   \
    __global const type *RESTRICT packed, __global const float *RESTRICT w, uint channels, uint positions, uint pixels, \
        OPERANDS_AND_OUTPUTS

#ifdef GAMMA
#define GAMMA_PARAMETERS                                                                                             \
    __global const float *RESTRICT delta, __global const float *RESTRICT w, __global const float *RESTRICT d,        \
        uint channels, uint pixels, uint batch, uint steps, __global float *RESTRICT partial

/* A work-group's tile of dgamma and its split of `steps` steps of DEPTH positions; a step does not go beyond an image. */
typedef struct { uint first_row, first_column, split, step, last, pixel, image; } Split;

Split split_of_group(uint channels, uint pixels, uint batch, uint steps) {
    Split s;
    uint row_tiles = (channels + ROWS - 1) / ROWS, column_tiles = (channels + COLUMNS - 1) / COLUMNS;
    s.first_row = get_group_id(0) % row_tiles * ROWS;
    s.first_column = get_group_id(0) / row_tiles % column_tiles * COLUMNS;
    s.split = get_group_id(0) / (row_tiles * column_tiles);
    uint per_image = (pixels + DEPTH - 1) / DEPTH;
    s.step = s.split * steps;
    s.last = min(s.step + steps, batch * per_image);
    s.pixel = s.step % per_image * DEPTH;
    s.image = s.step / per_image * channels * pixels;
    return s;
}

/* To the positions of the next step: the image's next, or the next image's first. */
void next_positions(Split *s, uint channels, uint pixels) {
    s->pixel += DEPTH;
    if (s->pixel >= pixels) {
        s->pixel = 0;
        s->image += channels * pixels;
    }
}
#endif
