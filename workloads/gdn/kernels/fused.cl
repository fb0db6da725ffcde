/* The products of divisive normalization, fused with what stands before and behind them:
     FORWARD  z = beta + gamma w^2;  u = w z^(-1/2), inverse: w z^(1/2); with SAVE also D = z^(-1/2)
     INPUT    g = gamma^T t;         dw = delta D + 2 w g, inverse: delta / D + 2 w g
     GAMMA    dgamma = t (w^2)^T;    with BETA also dbeta = t 1; partial sums, which `finish` adds up
   with t = -1/2 delta w D^3, inverse: 1/2 delta w D. Squares and t are made while operands are staged.

   A work-group makes a tile of ROWS channels by COLUMNS positions (GAMMA: channels) in registers, ITEM_ROWS x
   ITEM_COLUMNS per work-item, and walks the inner dimension (GAMMA: positions) DEPTH at a time. Both operands of a step
   lie in local memory as [depth][row], twice: while one step is multiplied the next is fetched to registers and then
   put beside it, so that one barrier per step is enough. VECTOR is 4 where pixels and channels are multiples of 4, else
   1.
   An item's rows are groups of 4, spread over the tile, so that neighbours read neighbouring words; 32 neighbouring
   items are LANES columns by 32 / LANES rows. */
#define ITEMS ((ROWS / ITEM_ROWS) * (COLUMNS / ITEM_COLUMNS))
#define ROW_GAP (4 * ROWS / ITEM_ROWS)
#define COLUMN_GAP (4 * COLUMNS / ITEM_COLUMNS)
#define BANDS (COLUMNS / ITEM_COLUMNS / LANES)
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

#if NHWC
#define CHANNEL_STRIDE 1
#define BASE(p) ((p) * channels)
#define ROW_STEP VECTOR
#define COLUMN_STEP 1
#else
#define CHANNEL_STRIDE pixels
#define BASE(p) ((p) / pixels * channels * pixels + (p) % pixels)
#define ROW_STEP 1
#define COLUMN_STEP VECTOR
#endif
#if INVERSE
#define POWER(d) (d)
#define SIGN 0.5f
#else
#define POWER(d) ((d) * (d) * (d))
#define SIGN -0.5f
#endif

/* Whether an operand's vectors lie along the inner dimension (else along the rows), and where a slot of it lies. */
#ifdef FORWARD
#define A_ALONG 1
#else
#define A_ALONG GAMMA_ALONG
#endif
#ifdef GAMMA
#define GAMMA_ALONG !NHWC
#define B_ALONG !NHWC
#else
#define GAMMA_ALONG 0
#define B_ALONG NHWC
#endif
#define SLOT_ROW(slot, n, along) ((along) ? (slot) % (n) : VECTOR * ((slot) % ((n) / VECTOR)))
#define SLOT_DEPTH(slot, n, along) ((along) ? VECTOR * ((slot) / (n)) : (slot) / ((n) / VECTOR))

words fetch(__global const float *x, uint at, int there) { return there ? LOAD(x + at) : FILL(0.0f); }

void put(__local float *tile, uint n, uint row, uint depth, int along, words v) {
#if VECTOR == 4
    if (along) {
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

/* The three arrays that t is made of. */
typedef struct { words delta, w, d; } Triple;

words term(Triple x) { return SIGN * x.delta * x.w * POWER(x.d); }

words inverse_root(words z) {
#if VECTOR == 4
    return MAKE_FLOAT4(rsqrt(z.x), rsqrt(z.y), rsqrt(z.z), rsqrt(z.w));
#else
    return rsqrt(z);
#endif
}

#if defined(FORWARD) || defined(INPUT) || defined(GAMMA)
#ifdef FORWARD
__kernel REQD_GROUP(ITEMS) void forward(__global const float *RESTRICT gamma, __global const float *RESTRICT beta,
                                        __global const float *RESTRICT w, uint channels, uint positions, uint pixels,
#if SAVE
                                        __global float *RESTRICT saved,
#endif
                                        __global float *RESTRICT u) {
#elif defined(INPUT)
__kernel REQD_GROUP(ITEMS) void input_gradient(__global const float *RESTRICT gamma,
                                               __global const float *RESTRICT delta, __global const float *RESTRICT w,
                                               __global const float *RESTRICT d, uint channels, uint positions,
                                               uint pixels, __global float *RESTRICT dw) {
#else
/* One split of `steps` steps of DEPTH positions; a step does not go beyond an image. */
__kernel REQD_GROUP(ITEMS) void gamma_gradient(__global const float *RESTRICT delta, __global const float *RESTRICT w,
                                               __global const float *RESTRICT d, uint channels, uint pixels, uint batch,
                                               uint steps, __global float *RESTRICT partial) {
#endif
    LOCAL_ARENA(float, arena, 2 * DEPTH * (ROWS + COLUMNS));
    uint item = get_local_id(0), lane = item % 32, band = item / 32;
    uint item_row = 4 * (band / BANDS * (32 / LANES) + lane / LANES);
    uint item_column = 4 * (band % BANDS * LANES + lane % LANES);
    uint row_tiles = (channels + ROWS - 1) / ROWS;
    uint first_row = get_group_id(0) % row_tiles * ROWS;

    /* Where each slot of this item's fetches lies: address at step 0, and place in the inner dimension. */
    uint a_at[SLOTS(ROWS)], a_depth[SLOTS(ROWS)], b_at[SLOTS(COLUMNS)], b_depth[SLOTS(COLUMNS)];
#ifdef GAMMA
    uint column_tiles = (channels + COLUMNS - 1) / COLUMNS;
    uint first_column = get_group_id(0) / row_tiles % column_tiles * COLUMNS;
    uint split = get_group_id(0) / (row_tiles * column_tiles);
    uint per_image = (pixels + DEPTH - 1) / DEPTH, step = split * steps, last = min(step + steps, batch * per_image);
    uint pixel = step % per_image * DEPTH, image = step / per_image * channels * pixels;
    #pragma unroll
    for (int s = 0; s < SLOTS(ROWS); ++s) {
        uint slot = item + s * ITEMS, row = first_row + SLOT_ROW(slot, ROWS, A_ALONG);
        uint depth = SLOT_DEPTH(slot, ROWS, A_ALONG);
        a_at[s] = row * CHANNEL_STRIDE + depth * (NHWC ? channels : 1);
        a_depth[s] = row < channels && FITS(slot, ROWS) ? depth : OUTSIDE;
    }
    #pragma unroll
    for (int s = 0; s < SLOTS(COLUMNS); ++s) {
        uint slot = item + s * ITEMS, row = first_column + SLOT_ROW(slot, COLUMNS, B_ALONG);
        uint depth = SLOT_DEPTH(slot, COLUMNS, B_ALONG);
        b_at[s] = row * CHANNEL_STRIDE + depth * (NHWC ? channels : 1);
        b_depth[s] = row < channels && FITS(slot, COLUMNS) ? depth : OUTSIDE;
    }
#define LEFT (pixels - pixel)
#define A_AT(s) (image + pixel * (NHWC ? channels : 1) + a_at[s])
#define B_AT(s) (image + pixel * (NHWC ? channels : 1) + b_at[s])
#define ADVANCE() do { pixel += DEPTH; if (pixel >= pixels) { pixel = 0; image += channels * pixels; } } while (0)
    Triple a[SLOTS(ROWS)];
    words b[SLOTS(COLUMNS)];
#define FETCH_A(s, there) do { a[s].delta = fetch(delta, A_AT(s), there); a[s].w = fetch(w, A_AT(s), there); \
                               a[s].d = fetch(d, A_AT(s), there); } while (0)
#define FETCH_B(s, there) (b[s] = fetch(w, B_AT(s), there))
#define VALUE_A(s) term(a[s])
#define VALUE_B(s) (b[s] * b[s])
#else
    uint first_column = get_group_id(0) / row_tiles * COLUMNS;
    uint step = 0, last = (channels + DEPTH - 1) / DEPTH, channel = 0;
    #pragma unroll
    for (int s = 0; s < SLOTS(ROWS); ++s) {
        uint slot = item + s * ITEMS, row = first_row + SLOT_ROW(slot, ROWS, A_ALONG);
        uint depth = SLOT_DEPTH(slot, ROWS, A_ALONG);
        a_depth[s] = row < channels && FITS(slot, ROWS) ? depth : OUTSIDE;
#ifdef FORWARD
        a_at[s] = row * channels + depth;
#else
        a_at[s] = depth * channels + row;
#endif
    }
    #pragma unroll
    for (int s = 0; s < SLOTS(COLUMNS); ++s) {
        uint slot = item + s * ITEMS, row = first_column + SLOT_ROW(slot, COLUMNS, B_ALONG);
        uint depth = SLOT_DEPTH(slot, COLUMNS, B_ALONG);
        b_at[s] = BASE(row) + depth * CHANNEL_STRIDE;
        b_depth[s] = row < positions && FITS(slot, COLUMNS) ? depth : OUTSIDE;
    }
#define LEFT (channels - channel)
#define B_AT(s) (channel * CHANNEL_STRIDE + b_at[s])
#define ADVANCE() (channel += DEPTH)
    words a[SLOTS(ROWS)];
#define VALUE_A(s) a[s]
#ifdef FORWARD
    words b[SLOTS(COLUMNS)];
#define FETCH_A(s, there) (a[s] = fetch(gamma, channel + a_at[s], there))
#define FETCH_B(s, there) (b[s] = fetch(w, B_AT(s), there))
#define VALUE_B(s) (b[s] * b[s])
#else
    Triple b[SLOTS(COLUMNS)];
#define FETCH_A(s, there) (a[s] = fetch(gamma, channel * channels + a_at[s], there))
#define FETCH_B(s, there) do { b[s].delta = fetch(delta, B_AT(s), there); b[s].w = fetch(w, B_AT(s), there); \
                               b[s].d = fetch(d, B_AT(s), there); } while (0)
#define VALUE_B(s) term(b[s])
#endif
#endif

    float sum[ITEM_ROWS][ITEM_COLUMNS];
    #pragma unroll
    for (int m = 0; m < ITEM_ROWS; ++m) {
        float start = 0.0f;
#ifdef FORWARD
        uint row = first_row + m / 4 * ROW_GAP + item_row + m % 4;
        if (row < channels) start = beta[row];
#endif
        #pragma unroll
        for (int n = 0; n < ITEM_COLUMNS; ++n) sum[m][n] = start;
    }
#if defined(GAMMA) && BETA
    float row_sum[(ROWS + ITEMS - 1) / ITEMS];
    for (int s = 0; s < (ROWS + ITEMS - 1) / ITEMS; ++s) row_sum[s] = 0.0f;
#endif

#define FETCH()                                                                                       \
    do {                                                                                              \
        _Pragma("unroll") for (int s = 0; s < SLOTS(ROWS); ++s) FETCH_A(s, a_depth[s] < LEFT);        \
        _Pragma("unroll") for (int s = 0; s < SLOTS(COLUMNS); ++s) FETCH_B(s, b_depth[s] < LEFT);     \
    } while (0)
#define PUT(buffer)                                                                                   \
    do {                                                                                              \
        __local float *to = arena + (buffer) * DEPTH * (ROWS + COLUMNS);                              \
        _Pragma("unroll") for (int s = 0; s < SLOTS(ROWS); ++s) {                                     \
            uint slot = item + s * ITEMS;                                                             \
            if (FITS(slot, ROWS))                                                                     \
                put(to, ROWS, SLOT_ROW(slot, ROWS, A_ALONG), SLOT_DEPTH(slot, ROWS, A_ALONG), A_ALONG, VALUE_A(s)); \
        }                                                                                             \
        to += DEPTH * ROWS;                                                                           \
        _Pragma("unroll") for (int s = 0; s < SLOTS(COLUMNS); ++s) {                                  \
            uint slot = item + s * ITEMS;                                                             \
            if (FITS(slot, COLUMNS))                                                                  \
                put(to, COLUMNS, SLOT_ROW(slot, COLUMNS, B_ALONG), SLOT_DEPTH(slot, COLUMNS, B_ALONG), B_ALONG, \
                    VALUE_B(s));                                                                      \
        }                                                                                             \
    } while (0)

    FETCH();
    PUT(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint buffer = 0; step < last; ++step, buffer ^= 1) {
        int more = step + 1 < last;
        if (more) {
            ADVANCE();
            FETCH();
        }
        __local const float *a_tile = arena + buffer * DEPTH * (ROWS + COLUMNS), *b_tile = a_tile + DEPTH * ROWS;
        #pragma unroll UNROLL
        for (int k = 0; k < DEPTH; ++k) {
            float x[ITEM_ROWS], y[ITEM_COLUMNS];
            #pragma unroll
            for (int q = 0; q < ITEM_ROWS / 4; ++q) {
                float4 v = vload4(0, a_tile + k * ROWS + q * ROW_GAP + item_row);
                x[4 * q] = v.x;
                x[4 * q + 1] = v.y;
                x[4 * q + 2] = v.z;
                x[4 * q + 3] = v.w;
            }
            #pragma unroll
            for (int q = 0; q < ITEM_COLUMNS / 4; ++q) {
                float4 v = vload4(0, b_tile + k * COLUMNS + q * COLUMN_GAP + item_column);
                y[4 * q] = v.x;
                y[4 * q + 1] = v.y;
                y[4 * q + 2] = v.z;
                y[4 * q + 3] = v.w;
            }
            #pragma unroll
            for (int m = 0; m < ITEM_ROWS; ++m) {
                #pragma unroll
                for (int n = 0; n < ITEM_COLUMNS; ++n) sum[m][n] = fma(x[m], y[n], sum[m][n]);
            }
        }
#if defined(GAMMA) && BETA
        if (first_column == 0) {
            for (int s = 0; s < (ROWS + ITEMS - 1) / ITEMS; ++s) {
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

#if VECTOR == 1
#define SUMS(m, n) sum[m][n]
#elif NHWC && !defined(GAMMA)
#define SUMS(m, n) MAKE_FLOAT4(sum[m][n], sum[(m) + 1][n], sum[(m) + 2][n], sum[(m) + 3][n])
#else
#define SUMS(m, n) MAKE_FLOAT4(sum[m][n], sum[m][(n) + 1], sum[m][(n) + 2], sum[m][(n) + 3])
#endif
#ifdef GAMMA
    partial += (size_t)split * channels * (channels + BETA);
    #pragma unroll
    for (int m = 0; m < ITEM_ROWS; ++m) {
        uint row = first_row + m / 4 * ROW_GAP + item_row + m % 4;
        #pragma unroll
        for (int n = 0; n < ITEM_COLUMNS; n += VECTOR) {
            uint column = first_column + n / 4 * COLUMN_GAP + item_column + n % 4;
            if (row < channels && column < channels) STORE(SUMS(m, n), partial + row * channels + column);
        }
    }
#if BETA
    if (first_column == 0) {
        for (int s = 0; s < (ROWS + ITEMS - 1) / ITEMS; ++s) {
            uint row = item + s * ITEMS;
            if (row < ROWS && first_row + row < channels) partial[channels * channels + first_row + row] = row_sum[s];
        }
    }
#endif
#else
    #pragma unroll
    for (int n = 0; n < ITEM_COLUMNS; n += COLUMN_STEP) {
        uint p = first_column + n / 4 * COLUMN_GAP + item_column + n % 4;
        if (p < positions) {
            uint base = BASE(p);
            #pragma unroll
            for (int m = 0; m < ITEM_ROWS; m += ROW_STEP) {
                uint row = first_row + m / 4 * ROW_GAP + item_row + m % 4;
                if (row < channels) {
                    uint at = base + row * CHANNEL_STRIDE;
                    words x = LOAD(w + at), s = SUMS(m, n);
#ifdef FORWARD
                    words root = inverse_root(s);
#if SAVE
                    STORE(root, saved + at);
#endif
                    STORE(x * (INVERSE ? s * root : root), u + at);
#else
                    words slope = LOAD(d + at);
                    if (INVERSE) slope = 1.0f / slope;
                    STORE(LOAD(delta + at) * slope + 2.0f * x * s, dw + at);
#endif
                }
            }
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
