/* The source's ladder: raw[i][j][p] = t[i,p] * w[j,p]^2 for all pairs of channels, summed over p by reduction.cl.
   N channels, P positions in images of `pixels`. */
#include "term.h"

#define PARAMETERS                                                                                     \
    __global const float *RESTRICT delta, __global const float *RESTRICT w, __global const float *RESTRICT d, \
        uint channels, uint positions, uint pixels, __global float *RESTRICT raw

#if NHWC
#define AT(c, p) ((size_t)(p) * channels + (c))
#else
#define AT(c, p) (((size_t)((p) / pixels) * channels + (c)) * pixels + (p) % pixels)
#endif

#ifdef REPLICATED
/* "Less than naive": t's rows and w^2's columns copied until all products are one flat multiplication. */
__kernel void replicate(PARAMETERS, __global float *RESTRICT columns) {
    size_t at = get_global_id(0), count = (size_t)channels * channels * positions;
    if (at >= count) return;
    uint p = at % positions, j = at / positions % channels, i = at / positions / channels;
    size_t row = AT(i, p);
    float v = w[AT(j, p)];
    raw[at] = TERM(delta[row], w[row], d[row]);
    columns[at] = v * v;
}

__kernel void multiply(__global float *RESTRICT raw, __global const float *RESTRICT columns, ulong count) {
    size_t at = get_global_id(0);
    if (at < count) raw[at] *= columns[at];
}
#endif

#ifdef NAIVE
/* Row i alone, one work-item per element of N x P; of row i's vectors it reads the element at its index modulo P. */
__kernel void naive(PARAMETERS, uint i) {
    size_t at = get_global_id(0);
    if (at >= (size_t)channels * positions) return;
    uint p = at % positions, j = at / positions;
    size_t row = AT(i, p);
    float v = w[AT(j, p)];
    raw[(size_t)i * channels * positions + at] = TERM(delta[row], w[row], d[row]) * (v * v);
}
#endif

#ifdef SHARED_MEMORY
/* A work-group per row and tile of positions: delta, w and D of the tile in local memory, a loop over the columns. */
__kernel void shared_memory(PARAMETERS) {
    LOCAL_ARRAY(float, delta_tile, GROUP);
    LOCAL_ARRAY(float, w_tile, GROUP);
    LOCAL_ARRAY(float, d_tile, GROUP);
    uint tiles = (positions + GROUP - 1) / GROUP;
    uint i = get_group_id(0) / tiles, item = get_local_id(0), p = get_group_id(0) % tiles * GROUP + item;
    if (p < positions) {
        size_t row = AT(i, p);
        delta_tile[item] = delta[row];
        w_tile[item] = w[row];
        d_tile[item] = d[row];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (p < positions) {
        for (uint j = 0; j < channels; ++j) {
            float v = w[AT(j, p)];
            float t = TERM(delta_tile[item], w_tile[item], d_tile[item]);
            raw[((size_t)i * channels + j) * positions + p] = t * (v * v);
        }
    }
}
#endif

#ifdef REGISTERS
/* The same with delta, w and D in registers: each is read once and by one work-item, so nothing is shared. */
__kernel void registers(PARAMETERS) {
    uint tiles = (positions + GROUP - 1) / GROUP;
    uint i = get_group_id(0) / tiles, p = get_group_id(0) % tiles * GROUP + get_local_id(0);
    if (p >= positions) return;
    size_t row = AT(i, p);
    float t = TERM(delta[row], w[row], d[row]);
    for (uint j = 0; j < channels; ++j) {
        float v = w[AT(j, p)];
        raw[((size_t)i * channels + j) * positions + p] = t * (v * v);
    }
}
#endif

#ifdef ROW_BY_ROW
/* The same for row i alone, whose N x P products the next row's replace. */
__kernel void row_by_row(PARAMETERS, uint i) {
    uint p = get_global_id(0);
    if (p >= positions) return;
    size_t row = AT(i, p);
    float t = TERM(delta[row], w[row], d[row]);
    for (uint j = 0; j < channels; ++j) {
        float v = w[AT(j, p)];
        raw[(size_t)j * positions + p] = t * (v * v);
    }
}
#endif

#ifdef SEPARATE
/* t alone, N x P words: its sums over positions are dL/dbeta. */
__kernel void terms(PARAMETERS) {
    size_t at = get_global_id(0);
    if (at >= (size_t)channels * positions) return;
    size_t row = AT((uint)(at / positions), (uint)(at % positions));
    raw[at] = TERM(delta[row], w[row], d[row]);
}

/* dL/dw of one element to a work-item: gamma's column and the position's t, from the cache. */
__kernel void input_gradient(__global const float *RESTRICT delta, __global const float *RESTRICT w,
                             __global const float *RESTRICT d, uint channels, uint positions, uint pixels,
                             __global const float *RESTRICT t, __global const float *RESTRICT gamma,
                             __global float *RESTRICT dw) {
    size_t at = get_global_id(0);
    if (at >= (size_t)channels * positions) return;
    uint j = at / positions, p = at % positions;
    float sum = 0.0f;
    for (uint i = 0; i < channels; ++i) sum = fma(gamma[i * channels + j], t[(size_t)i * positions + p], sum);
    size_t to = AT(j, p);
    dw[to] = delta[to] * (INVERSE ? 1.0f / d[to] : d[to]) + 2.0f * w[to] * sum;
}
#endif

#ifdef COLUMN_PER_GROUP
/* A work-group per column and tile of positions: only w is shared by its products. */
__kernel void column_per_group(PARAMETERS) {
    LOCAL_ARRAY(float, w_tile, GROUP);
    uint tiles = (positions + GROUP - 1) / GROUP;
    uint j = get_group_id(0) / tiles, item = get_local_id(0), p = get_group_id(0) % tiles * GROUP + item;
    if (p < positions) w_tile[item] = w[AT(j, p)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (p < positions) {
        for (uint i = 0; i < channels; ++i) {
            size_t row = AT(i, p);
            float v = w_tile[item];
            raw[((size_t)i * channels + j) * positions + p] = TERM(delta[row], w[row], d[row]) * (v * v);
        }
    }
}
#endif
