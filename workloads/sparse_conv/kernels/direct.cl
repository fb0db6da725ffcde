/* The operator template with its weights as data: every multiply-add, zeros included.

   A work-item computes BN x BH x BW x BK outputs: of BN images and BK filters, BH rows below each other, BW columns
   COLUMNS apart, so that neighbouring work-items have neighbouring outputs. One channel's part of the input of a
   work-group lies in local memory. With EARLY there are two such tiles, and the next one is fetched while the present
   one is used. weights[block of filters][channel][r][s][BK], padded with zeros. */
#include "input.cl"

#define TILE_WIDTH ((COLUMNS * BW - 1) * STRIDE + KERNEL_WIDTH)
#define TILE_HEIGHT ((ROWS * BH - 1) * STRIDE + KERNEL_HEIGHT)
#define PLANE (TILE_WIDTH * TILE_HEIGHT)
#define TILE (BN * PLANE)
#define ITEMS (COLUMNS * ROWS)
#define FETCHES ((TILE + ITEMS - 1) / ITEMS)
#define WINDOW ((BH - 1) * STRIDE + KERNEL_HEIGHT)
#define TAPS (KERNEL_HEIGHT * KERNEL_WIDTH)
#define MAPS (CHANNELS * HEIGHT * WIDTH)

#ifdef CONSTANT
#define FETCHED(i) (table[i])
#else
#define FETCHED(i) (weights[i])
#endif

/* An element of a tile, whose first of `images` images is `maps`; zero behind the last image. */
float element_at(__global const float *RESTRICT maps, int images, int channel, int element, int top, int left) {
    const int image = BN == 1 ? 0 : element / PLANE, place = element - image * PLANE;
    float value = 0.0f;
    if (image < images)
        value = input_at(maps + (size_t)image * MAPS, channel, top + place / TILE_WIDTH, left + place % TILE_WIDTH);
    return value;
}

__kernel void direct(__global const float *RESTRICT in,
#ifndef CONSTANT
                     __global const float *RESTRICT weights,
#endif
                     __global float *RESTRICT out, int first_filter) {
    LOCAL_ARRAY(float, tiles, (1 + EARLY) * TILE);
    const int item = get_local_id(0), column = item % COLUMNS, row = item / COLUMNS;
    int group = get_group_id(0);
    const int across = group % TILES_ACROSS * (COLUMNS * BW);
    group /= TILES_ACROSS;
    const int down = group % TILES_DOWN * (ROWS * BH), image = group / TILES_DOWN * BN;
    const int block = get_group_id(1), images = BATCH - image;
    const int top = down * STRIDE - PADDING, left = across * STRIDE - PADDING;
    __global const float *maps = in + (size_t)image * MAPS;
    float sums[BN][BW][BH][BK], next[FETCHES];
#pragma unroll
    for (int n = 0; n < BN; ++n)
#pragma unroll
        for (int v = 0; v < BW; ++v)
#pragma unroll
            for (int b = 0; b < BH; ++b)
#pragma unroll
                for (int k = 0; k < BK; ++k) sums[n][v][b][k] = 0.0f;
#if EARLY
    for (int i = item; i < TILE; i += ITEMS) tiles[i] = element_at(maps, images, 0, i, top, left);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int c = 0; c < CHANNELS; ++c) {
#if EARLY
        __local const float *tile = tiles + (c & 1) * TILE;
        const int more = c + 1 < CHANNELS ? TILE : 0;
#pragma unroll
        for (int i = 0; i < FETCHES; ++i)
            if (item + i * ITEMS < more) next[i] = element_at(maps, images, c + 1, item + i * ITEMS, top, left);
#else
        __local const float *tile = tiles;
        for (int i = item; i < TILE; i += ITEMS) tiles[i] = element_at(maps, images, c, i, top, left);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        const int at = (block * CHANNELS + c) * (TAPS * BK);
        for (int s = 0; s < KERNEL_WIDTH; ++s) {
            float window[BN][BW][WINDOW];
#pragma unroll
            for (int n = 0; n < BN; ++n)
#pragma unroll
                for (int v = 0; v < BW; ++v)
#pragma unroll
                    for (int y = 0; y < WINDOW; ++y)
                        window[n][v][y] = tile[n * PLANE + (row * BH * STRIDE + y) * TILE_WIDTH +
                                               (v * COLUMNS + column) * STRIDE + s];
#pragma unroll
            for (int r = 0; r < KERNEL_HEIGHT; ++r)
#pragma unroll
                for (int k = 0; k < BK; ++k) {
                    const float w = FETCHED(at + (r * KERNEL_WIDTH + s) * BK + k);
#pragma unroll
                    for (int n = 0; n < BN; ++n)
#pragma unroll
                        for (int v = 0; v < BW; ++v)
#pragma unroll
                            for (int b = 0; b < BH; ++b)
                                sums[n][v][b][k] = fma(w, window[n][v][b * STRIDE + r], sums[n][v][b][k]);
                }
        }
#if EARLY
#pragma unroll
        for (int i = 0; i < FETCHES; ++i)
            if (item + i * ITEMS < more) tiles[((c + 1) & 1) * TILE + item + i * ITEMS] = next[i];
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int filter = first_filter + block * BK;
#pragma unroll
    for (int n = 0; n < BN; ++n)
#pragma unroll
        for (int v = 0; v < BW; ++v)
#pragma unroll
            for (int b = 0; b < BH; ++b) {
                const int x = across + v * COLUMNS + column, y = down + row * BH + b;
                __global float *to = out + ((size_t)(image + n) * FILTERS + filter) * (OUT_HEIGHT * OUT_WIDTH);
#pragma unroll
                for (int k = 0; k < BK; ++k)
                    if (n < images && x < OUT_WIDTH && y < OUT_HEIGHT && filter + k < FILTERS)
                        to[k * (OUT_HEIGHT * OUT_WIDTH) + y * OUT_WIDTH + x] = sums[n][v][b][k];
            }
}
