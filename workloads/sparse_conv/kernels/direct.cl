/* The operator template with its weights as data: every multiply-add, zeros included.

   A work-group computes COLUMNS x (ROWS BH) outputs of BK filters of one image; a work-item BH of them, one below the
   other. One channel's part of the input lies in local memory. With EARLY there are two such tiles, and the next one
   is fetched while the present one is used. weights[block of filters][channel][r][s][BK], padded with zeros. */
#include "input.cl"

#define TILE_WIDTH ((COLUMNS - 1) * STRIDE + KERNEL_WIDTH)
#define TILE_HEIGHT ((ROWS * BH - 1) * STRIDE + KERNEL_HEIGHT)
#define TILE (TILE_WIDTH * TILE_HEIGHT)
#define ITEMS (COLUMNS * ROWS)
#define FETCHES ((TILE + ITEMS - 1) / ITEMS)
#define WINDOW ((BH - 1) * STRIDE + KERNEL_HEIGHT)
#define TAPS (KERNEL_HEIGHT * KERNEL_WIDTH)

#ifdef CONSTANT
#define FETCHED(i) (table[i])
#else
#define FETCHED(i) (weights[i])
#endif

float element_at(__global const float *RESTRICT maps, int channel, int element, int top, int left) {
    return input_at(maps, channel, top + element / TILE_WIDTH, left + element % TILE_WIDTH);
}

__kernel void direct(__global const float *RESTRICT in,
#ifndef CONSTANT
                     __global const float *RESTRICT weights,
#endif
                     __global float *RESTRICT out, int first_filter) {
    LOCAL_ARRAY(float, tiles, (1 + EARLY) * TILE);
    const int item = get_local_id(0), column = item % COLUMNS, row = item / COLUMNS;
    int group = get_group_id(0);
    const int across = group % TILES_ACROSS * COLUMNS;
    group /= TILES_ACROSS;
    const int down = group % TILES_DOWN * (ROWS * BH), image = group / TILES_DOWN;
    const int block = get_group_id(1);
    const int top = down * STRIDE - PADDING, left = across * STRIDE - PADDING;
    __global const float *maps = in + (size_t)image * (CHANNELS * HEIGHT * WIDTH);
    float sums[BH][BK], next[FETCHES];
#pragma unroll
    for (int b = 0; b < BH; ++b)
#pragma unroll
        for (int k = 0; k < BK; ++k) sums[b][k] = 0.0f;
#if EARLY
    for (int i = item; i < TILE; i += ITEMS) tiles[i] = element_at(maps, 0, i, top, left);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int c = 0; c < CHANNELS; ++c) {
#if EARLY
        __local const float *tile = tiles + (c & 1) * TILE;
        const int more = c + 1 < CHANNELS ? TILE : 0;
#pragma unroll
        for (int i = 0; i < FETCHES; ++i)
            if (item + i * ITEMS < more) next[i] = element_at(maps, c + 1, item + i * ITEMS, top, left);
#else
        __local const float *tile = tiles;
        for (int i = item; i < TILE; i += ITEMS) tiles[i] = element_at(maps, c, i, top, left);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        const int at = (block * CHANNELS + c) * (TAPS * BK);
        for (int s = 0; s < KERNEL_WIDTH; ++s) {
            float window[WINDOW];
#pragma unroll
            for (int y = 0; y < WINDOW; ++y)
                window[y] = tile[(row * BH * STRIDE + y) * TILE_WIDTH + column * STRIDE + s];
#pragma unroll
            for (int r = 0; r < KERNEL_HEIGHT; ++r)
#pragma unroll
                for (int k = 0; k < BK; ++k) {
                    const float w = FETCHED(at + (r * KERNEL_WIDTH + s) * BK + k);
#pragma unroll
                    for (int b = 0; b < BH; ++b) sums[b][k] = fma(w, window[b * STRIDE + r], sums[b][k]);
                }
        }
#if EARLY
#pragma unroll
        for (int i = 0; i < FETCHES; ++i)
            if (item + i * ITEMS < more) tiles[((c + 1) & 1) * TILE + item + i * ITEMS] = next[i];
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int x = across + column, filter = first_filter + block * BK;
#pragma unroll
    for (int b = 0; b < BH; ++b) {
        const int y = down + row * BH + b;
#pragma unroll
        for (int k = 0; k < BK; ++k)
            if (x < OUT_WIDTH && y < OUT_HEIGHT && filter + k < FILTERS)
                out[((size_t)image * FILTERS + filter + k) * (OUT_HEIGHT * OUT_WIDTH) + y * OUT_WIDTH + x] = sums[b][k];
    }
}
