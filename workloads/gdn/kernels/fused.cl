/* The products of divisive normalization, fused with what stands before and behind them:
     FORWARD  z = beta + gamma w^2;  u = w z^(-1/2), inverse: w z^(1/2); with SAVE also D = z^(-1/2)
     INPUT    g = gamma^T t;         dw = delta D + 2 w g, inverse: delta / D + 2 w g
     GAMMA    dgamma = t (w^2)^T;    with BETA also dbeta = t 1; partial sums, which `finish` adds up
   Squares and t (term.h) are made while operands are staged.

   A work-group makes a tile of ROWS channels by COLUMNS positions (GAMMA: channels) in registers, ITEM_ROWS x
   ITEM_COLUMNS per work-item, and walks the inner dimension (GAMMA: positions) DEPTH at a time. Operands lie in local
   memory as [inner][row]. What is staged step by step lies there twice: while one step is multiplied the next is fetched
   to registers and then put beside it, so that one barrier per step is enough. An item's rows and columns are groups of
   4, spread over the tile, so that neighbours read neighbouring words. VECTOR is 4 where pixels and channels are
   multiples of 4, else 1.

   FORWARD, INPUT: what stands for STAGED channels of the positions is staged at once; gamma follows step by step from
   global memory, where it lies as it is staged (PACK).
   GAMMA: both operands are staged step by step. 32 neighbouring items are LANES columns by 32 / LANES rows. */
#include "products.h"

#define ITEMS ((ROWS / ITEM_ROWS) * (COLUMNS / ITEM_COLUMNS))
#define ROW_GAP (4 * ROWS / ITEM_ROWS)
#define COLUMN_GAP (4 * COLUMNS / ITEM_COLUMNS)
#define SLOTS(n) ((DEPTH * (n) / VECTOR + ITEMS - 1) / ITEMS)
#define FITS(slot, n) (DEPTH * (n) / VECTOR % ITEMS == 0 || (slot) < DEPTH * (n) / VECTOR)
#define OUTSIDE 0xFFFFFFFFu

#if VECTOR == 4
typedef float4 words;
#define LOAD(p) vload4(0, (p))
#define STORE(v, p) vstore4((v), 0, (p))
#define FILL(x) SPLAT_FLOAT4(x)
#else
typedef float words;
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define FILL(x) (x)
#endif

/* Where a slot of a staged operand lies. */
#if defined(GAMMA) && !NHWC && VECTOR == 1 /* single words: neighbouring items take neighbouring positions */
#define SLOT_ROW(slot, n) ((slot) / DEPTH)
#define SLOT_DEPTH(slot, n) ((slot) % DEPTH)
#else
#define SLOT_ROW(slot, n) (ALONG ? (slot) % (n) : VECTOR * ((slot) % ((n) / VECTOR)))
#define SLOT_DEPTH(slot, n) (ALONG ? VECTOR * ((slot) / (n)) : (slot) / ((n) / VECTOR))
#endif

words fetch(__global const float *x, uint at, int there) { return there ? LOAD(x + at) : FILL(0.0f); }

void put(__local float *tile, uint n, uint row, uint depth, words v) {
#if VECTOR == 4
    if (ALONG) {
        tile[depth * n + row] = v.x;
        tile[(depth + 1) * n + row] = v.y;
        tile[(depth + 2) * n + row] = v.z;
        tile[(depth + 3) * n + row] = v.w;
    } else {
        vstore4(v, 0, tile + depth * n + row);
    }
#else
    tile[depth * n + row] = v;
#endif
}

/* ITEM_ROWS or ITEM_COLUMNS words of a step, in groups of four. */
#define GET(count, to, from, gap)                                  \
    _Pragma("unroll") for (int q = 0; q < (count) / 4; ++q) {      \
        float4 four = vload4(0, (from) + q * (gap));               \
        to[4 * q] = four.x;                                        \
        to[4 * q + 1] = four.y;                                    \
        to[4 * q + 2] = four.z;                                    \
        to[4 * q + 3] = four.w;                                    \
    }

/* The three arrays that t is made of. */
typedef struct { words delta, w, d; } Triple;

words term(Triple x) { return TERM(x.delta, x.w, x.d); }

words inverse_root(words z) {
#if VECTOR == 4
    return MAKE_FLOAT4(rsqrt(z.x), rsqrt(z.y), rsqrt(z.z), rsqrt(z.w));
#else
    return rsqrt(z);
#endif
}

#ifdef PACK
/* Gamma (INPUT: its transpose), tile after tile of `rows` rows: [inner][row], zeros beyond the channels. */
__kernel void pack(__global const float *RESTRICT gamma, uint channels, uint rows, uint depth, uint count,
                   __global float *RESTRICT packed) {
    uint i = get_global_id(0), row = i / (rows * depth) * rows + i % rows, inner = i / rows % depth;
    if (i >= count) return;
    int there = row < channels && inner < channels;
    packed[i] = there ? gamma[OF_TRANSPOSE ? inner * channels + row : row * channels + inner] : 0.0f;
}
#endif

#if defined(FORWARD) || defined(INPUT)
#define A_SLOTS ((DEPTH * ROWS / 4 + ITEMS - 1) / ITEMS)
#define A_FITS(slot) (DEPTH * ROWS / 4 % ITEMS == 0 || (slot) < DEPTH * ROWS / 4)
#define B_SLOTS ((STAGED * COLUMNS / VECTOR + ITEMS - 1) / ITEMS)
#define B_FITS(slot) (STAGED * COLUMNS / VECTOR % ITEMS == 0 || (slot) < STAGED * COLUMNS / VECTOR)
__kernel REQD_GROUP_RESIDENT(ITEMS, RESIDENT) void PRODUCT(PRODUCT_PARAMETERS(float)) {
    RESIDENT_GROUPS(ITEMS, RESIDENT);
    LOCAL_ARENA(float, arena, STAGED * COLUMNS + 2 * DEPTH * ROWS);
    __local float *b_tile = arena, *a_tiles = arena + STAGED * COLUMNS;
    uint item = get_local_id(0), across = item % (COLUMNS / ITEM_COLUMNS), down = item / (COLUMNS / ITEM_COLUMNS);
    uint row_tiles = (channels + ROWS - 1) / ROWS, first_column = get_group_id(0) / row_tiles * COLUMNS;
    uint first_row = get_group_id(0) % row_tiles * ROWS + 4 * down;
    packed += get_group_id(0) % row_tiles * ((channels + DEPTH - 1) / DEPTH * DEPTH * ROWS);

    float sum[ITEM_ROWS][ITEM_COLUMNS];
    #pragma unroll
    for (int m = 0; m < ITEM_ROWS; ++m) {
        float start = 0.0f;
#ifdef FORWARD
        uint row = first_row + m / 4 * ROW_GAP + m % 4;
        if (row < channels) start = beta[row];
#endif
        #pragma unroll
        for (int n = 0; n < ITEM_COLUMNS; ++n) sum[m][n] = start;
    }

    float4 a[A_SLOTS];
#define FETCH()                                                             \
    _Pragma("unroll") for (int s = 0; s < A_SLOTS; ++s)                     \
        if (A_FITS(item + s * ITEMS)) a[s] = vload4(item + s * ITEMS, packed);
#define PUT(buffer)                                                         \
    _Pragma("unroll") for (int s = 0; s < A_SLOTS; ++s)                     \
        if (A_FITS(item + s * ITEMS)) vstore4(a[s], item + s * ITEMS, a_tiles + (buffer) * DEPTH * ROWS);
    for (uint first = 0; first < channels; first += STAGED) {
        uint count = min((uint)STAGED, channels - first);
        if (first) barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll FETCHES
        for (int s = 0; s < B_SLOTS; ++s) {
            uint slot = item + s * ITEMS, p = first_column + SLOT_ROW(slot, COLUMNS), k = SLOT_DEPTH(slot, COLUMNS);
            uint at = BASE(p) + (first + k) * CHANNEL_STRIDE;
            int there = p < positions && k < count;
#ifdef FORWARD
            words x = fetch(w, at, there);
            x = x * x;
#else
            Triple made;
            made.delta = fetch(delta, at, there);
            made.w = fetch(w, at, there);
            made.d = fetch(d, at, there);
            words x = term(made);
#endif
            if (B_FITS(slot)) put(b_tile, COLUMNS, SLOT_ROW(slot, COLUMNS), k, x);
        }
        FETCH();
        PUT(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint step = 0, buffer = 0; step < count; step += DEPTH, buffer ^= 1) {
            __local const float *a_tile = a_tiles + buffer * DEPTH * ROWS + 4 * down;
            packed += DEPTH * ROWS;
            int more = step + DEPTH < count;
            if (more) FETCH();
            #pragma unroll UNROLL
            for (int k = 0; k < DEPTH; ++k) {
                float x[ITEM_ROWS], y[ITEM_COLUMNS];
                GET(ITEM_ROWS, x, a_tile + k * ROWS, ROW_GAP);
                GET(ITEM_COLUMNS, y, b_tile + (step + k) * COLUMNS + 4 * across, COLUMN_GAP);
                #pragma unroll
                for (int m = 0; m < ITEM_ROWS; ++m) {
                    #pragma unroll
                    for (int n = 0; n < ITEM_COLUMNS; ++n) sum[m][n] = fma(x[m], y[n], sum[m][n]);
                }
            }
            if (more) PUT(buffer ^ 1);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

#if VECTOR == 1
#define SUMS(m, n) sum[m][n]
#elif NHWC
#define SUMS(m, n) MAKE_FLOAT4(sum[m][n], sum[(m) + 1][n], sum[(m) + 2][n], sum[(m) + 3][n])
#else
#define SUMS(m, n) MAKE_FLOAT4(sum[m][n], sum[m][(n) + 1], sum[m][(n) + 2], sum[m][(n) + 3])
#endif
    #pragma unroll
    for (int n = 0; n < ITEM_COLUMNS; n += NHWC ? 1 : VECTOR) {
        uint p = first_column + n / 4 * COLUMN_GAP + 4 * across + n % 4;
        if (p < positions) {
            uint base = BASE(p);
            #pragma unroll
            for (int m = 0; m < ITEM_ROWS; m += NHWC ? VECTOR : 1) {
                uint row = first_row + m / 4 * ROW_GAP + m % 4;
                if (row < channels) {
                    uint to = base + row * CHANNEL_STRIDE;
                    words v = LOAD(w + to), s = SUMS(m, n);
#ifdef FORWARD
                    words root = inverse_root(s);
#if SAVE
                    STORE(root, saved + to);
#endif
                    STORE(v * (INVERSE ? s * root : root), u + to);
#else
                    words slope = LOAD(d + to);
                    if (INVERSE) slope = 1.0f / slope;
                    STORE(LOAD(delta + to) * slope + 2.0f * v * s, dw + to);
#endif
                }
            }
        }
    }
}
#endif

#ifdef GAMMA
#define BANDS (COLUMNS / ITEM_COLUMNS / LANES)
#define ROW_SUMS ((ROWS + ITEMS - 1) / ITEMS)
__kernel REQD_GROUP(ITEMS) void gamma_gradient(GAMMA_PARAMETERS) {
    LOCAL_ARENA(float, arena, 2 * DEPTH * (ROWS + COLUMNS));
    uint item = get_local_id(0), lane = item % 32, band = item / 32;
    uint item_row = 4 * (band / BANDS * (32 / LANES) + lane / LANES);
    uint item_column = 4 * (band % BANDS * LANES + lane % LANES);
    uint stride = NHWC ? channels : 1;
    Split at = split_of_group(channels, pixels, batch, steps);

    /* Where each slot of this item's fetches lies: address at position 0, and position within a step. */
    uint a_at[SLOTS(ROWS)], a_depth[SLOTS(ROWS)], b_at[SLOTS(COLUMNS)], b_depth[SLOTS(COLUMNS)];
    Triple a[SLOTS(ROWS)];
    words b[SLOTS(COLUMNS)];
    #pragma unroll
    for (int s = 0; s < SLOTS(ROWS); ++s) {
        uint slot = item + s * ITEMS, row = at.first_row + SLOT_ROW(slot, ROWS), depth = SLOT_DEPTH(slot, ROWS);
        a_at[s] = row * CHANNEL_STRIDE + depth * stride;
        a_depth[s] = row < channels && FITS(slot, ROWS) ? depth : OUTSIDE;
    }
    #pragma unroll
    for (int s = 0; s < SLOTS(COLUMNS); ++s) {
        uint slot = item + s * ITEMS, row = at.first_column + SLOT_ROW(slot, COLUMNS), depth = SLOT_DEPTH(slot, COLUMNS);
        b_at[s] = row * CHANNEL_STRIDE + depth * stride;
        b_depth[s] = row < channels && FITS(slot, COLUMNS) ? depth : OUTSIDE;
    }
#define FETCH()                                                               \
    do {                                                                      \
        uint start = at.image + at.pixel * stride, left = pixels - at.pixel;  \
        _Pragma("unroll") for (int s = 0; s < SLOTS(ROWS); ++s) {             \
            a[s].delta = fetch(delta, start + a_at[s], a_depth[s] < left);    \
            a[s].w = fetch(w, start + a_at[s], a_depth[s] < left);            \
            a[s].d = fetch(d, start + a_at[s], a_depth[s] < left);            \
        }                                                                     \
        _Pragma("unroll") for (int s = 0; s < SLOTS(COLUMNS); ++s)            \
            b[s] = fetch(w, start + b_at[s], b_depth[s] < left);              \
    } while (0)
#define PUT(buffer)                                                                                            \
    do {                                                                                                       \
        __local float *to = arena + (buffer) * DEPTH * (ROWS + COLUMNS);                                       \
        _Pragma("unroll") for (int s = 0; s < SLOTS(ROWS); ++s) {                                              \
            uint slot = item + s * ITEMS;                                                                      \
            if (FITS(slot, ROWS)) put(to, ROWS, SLOT_ROW(slot, ROWS), SLOT_DEPTH(slot, ROWS), term(a[s]));     \
        }                                                                                                      \
        to += DEPTH * ROWS;                                                                                    \
        _Pragma("unroll") for (int s = 0; s < SLOTS(COLUMNS); ++s) {                                           \
            uint slot = item + s * ITEMS;                                                                      \
            if (FITS(slot, COLUMNS))                                                                           \
                put(to, COLUMNS, SLOT_ROW(slot, COLUMNS), SLOT_DEPTH(slot, COLUMNS), b[s] * b[s]);             \
        }                                                                                                      \
    } while (0)

    float sum[ITEM_ROWS][ITEM_COLUMNS];
    #pragma unroll
    for (int m = 0; m < ITEM_ROWS; ++m) {
        #pragma unroll
        for (int n = 0; n < ITEM_COLUMNS; ++n) sum[m][n] = 0.0f;
    }
#if BETA
    float row_sum[ROW_SUMS];
    for (int s = 0; s < ROW_SUMS; ++s) row_sum[s] = 0.0f;
#endif

    FETCH();
    PUT(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint buffer = 0; at.step < at.last; ++at.step, buffer ^= 1) {
        int more = at.step + 1 < at.last;
        if (more) {
            next_positions(&at, channels, pixels);
            FETCH();
        }
        __local const float *a_tile = arena + buffer * DEPTH * (ROWS + COLUMNS), *b_tile = a_tile + DEPTH * ROWS;
        #pragma unroll UNROLL
        for (int k = 0; k < DEPTH; ++k) {
            float x[ITEM_ROWS], y[ITEM_COLUMNS];
            GET(ITEM_ROWS, x, a_tile + k * ROWS + item_row, ROW_GAP);
            GET(ITEM_COLUMNS, y, b_tile + k * COLUMNS + item_column, COLUMN_GAP);
            #pragma unroll
            for (int m = 0; m < ITEM_ROWS; ++m) {
                #pragma unroll
                for (int n = 0; n < ITEM_COLUMNS; ++n) sum[m][n] = fma(x[m], y[n], sum[m][n]);
            }
        }
#if BETA
        if (at.first_column == 0) {
            for (int s = 0; s < ROW_SUMS; ++s) {
                uint row = item + s * ITEMS;
                if (row < ROWS) {
                    for (int k = 0; k < DEPTH; ++k) row_sum[s] += a_tile[k * ROWS + row];
                }
            }
        }
#endif
        if (more) PUT(buffer ^ 1);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    partial += (size_t)at.split * channels * (channels + BETA);
    #pragma unroll
    for (int m = 0; m < ITEM_ROWS; ++m) {
        uint row = at.first_row + m / 4 * ROW_GAP + item_row + m % 4;
        #pragma unroll
        for (int n = 0; n < ITEM_COLUMNS; n += VECTOR) {
            uint column = at.first_column + n / 4 * COLUMN_GAP + item_column + n % 4;
            if (row < channels && column < channels)
#if VECTOR == 4
                STORE(MAKE_FLOAT4(sum[m][n], sum[m][n + 1], sum[m][n + 2], sum[m][n + 3]), partial + row * channels + column);
#else
                partial[row * channels + column] = sum[m][n];
#endif
        }
    }
#if BETA
    if (at.first_column == 0) {
        for (int s = 0; s < ROW_SUMS; ++s) {
            uint row = item + s * ITEMS;
            if (row < ROWS && at.first_row + row < channels) partial[channels * channels + at.first_row + row] = row_sum[s];
        }
    }
#endif
}
#endif

#ifdef FINISH
/* Sums of the splits' partial results, in their order: the same bits every time. The first channels^2 words are dgamma,
   the rest dbeta. */
__kernel void finish(__global const float *RESTRICT partial, uint splits, uint size, uint channels,
                     __global float *RESTRICT dgamma
#if BETA
                     , __global float *RESTRICT dbeta
#endif
) {
    uint i = get_global_id(0);
    if (i >= size) return;
    float sum = 0.0f;
    for (uint s = 0; s < splits; ++s) sum += partial[(size_t)s * size + i];
#if BETA
    if (i >= channels * channels) dbeta[i - channels * channels] = sum;
    else
#endif
        dgamma[i] = sum;
}
#endif
