/* What passes on matrix units share: sums of points as products with one-hot labels, and the best of a row's scores. */
#include "warp.h"

/* Bytes of `labels` (below 128) that equal k, as ones. */
__device__ __forceinline__ uint equal(uint labels, uint k) {
    return (~((labels ^ k * 0x01010101u) + 0x7F7F7F7Fu) & 0x80808080u) >> 7;
}

/* A row of one-hot labels to a class: 16 classes by 32 points, as the product's first operand, of the 32 bytes of `label`. The points are
   taken in the order in which `load_transposed` brings their bytes side by side. */
__device__ __forceinline__ void one_hot(uint *hot, const uchar *label, uint g, uint t) {
    const ushort *pairs = (const ushort *)label;
    uint low = pairs[t] | pairs[4 + t] << 16, high = pairs[8 + t] | pairs[12 + t] << 16;
    hot[0] = equal(low, g);
    hot[1] = equal(low, g + 8);
    hot[2] = equal(high, g);
    hot[3] = equal(high, g + 8);
}

/* added[parity] (16 classes x 8 columns) += one-hot labels times the bytes of a unit of 32 rows: dimension 2 column + parity. */
__device__ __forceinline__ void add_unit(int (*added)[4], const uint *hot, const void *row) {
    uint y[4]; /* bytes 2 g and 2 g + 1 of the unit, of points 2 t and 2 t + 1, and 8, 16, 24 further */
    load_transposed(y, row);
    multiply(added[0], hot, __byte_perm(y[0], y[1], 0x6420), __byte_perm(y[2], y[3], 0x6420));
    multiply(added[1], hot, __byte_perm(y[0], y[1], 0x7531), __byte_perm(y[2], y[3], 0x7531));
}

/* The larger of the scores that the four lanes of a row hold, the lowest label of equal ones, in all of them. */
__device__ __forceinline__ void best_of_row(int *score, uint *label) {
    int own = *score;
    #pragma unroll
    for (int across = 1; across < 4; across *= 2) *score = max(*score, __shfl_xor_sync(~0u, *score, across));
    if (own < *score) *label = ~0u;
    #pragma unroll
    for (int across = 1; across < 4; across *= 2) *label = min(*label, __shfl_xor_sync(~0u, *label, across));
}
