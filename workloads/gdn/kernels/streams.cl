/* The same products for processors with few cores and wide vectors, one work-item to a group: a block of positions is
   staged in local memory (which is cache), then ROWS x VECTORS vectors of WIDTH sums are held in registers while one
   operand is read as vectors and the other word by word. The vectors lie along what is contiguous in memory:
     NCHW  positions; gamma is the operand of words, packed in panels of ROWS channels
     NHWC  channels; gamma is the operand of vectors, packed in panels of VECTORS * WIDTH channels
   FORWARD, INPUT and GAMMA as in fused.cl; CHANNELS is a macro, because it sizes local memory. OpenCL alone: vectors of
   16 integers and their reinterpretation are not in the dialect. */
#include "term.h"
#include "vectors.h"

#define SUM JOIN(hsum, WIDTH)
#define SPAN (VECTORS * WIDTH)
#define ROUND_UP(n, to) (((n) + (to) - 1) / (to) * (to))

/* sum[r][v] += words[k, r] * vectors[k, v] over `count` values of k; word (k, r) is at k * WORD_K + r * WORD_ROW. */
#define MULTIPLY(sum, count, vectors, pitch, words, WORD_K, WORD_ROW)                                   \
    for (uint k = 0; k < (count); ++k) {                                                                \
        vec x[VECTORS];                                                                                 \
        _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) x[v] = VLOAD(v, (vectors) + k * (pitch));   \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                              \
            vec y = SPLAT((words)[k * (WORD_K) + r * (WORD_ROW)]);                                      \
            _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) sum[r][v] = fma(y, x[v], sum[r][v]);    \
        }                                                                                               \
    }

#ifdef PACK
/* packed[panel][k][r] = weight of input k in output panel * PANEL + r; 0 beyond the channels. */
__kernel void pack(__global const float *RESTRICT gamma, __global float *RESTRICT packed) {
    uint at = get_global_id(0);
    if (at >= ROUND_UP(CHANNELS, PANEL) * CHANNELS) return;
    uint r = at % PANEL, k = at / PANEL % CHANNELS, i = at / (PANEL * CHANNELS) * PANEL + r;
    float value = 0.0f;
    if (i < CHANNELS) value = gamma[TRANSPOSED ? k * CHANNELS + i : i * CHANNELS + k];
    packed[at] = value;
}
#endif

#if defined(FORWARD) || defined(INPUT)
/* Reads and writes of `count` neighbouring words that may be fewer than a vector. */
vec read_some(__global const float *x, uint count) {
    float part[WIDTH];
    for (uint n = 0; n < WIDTH; ++n) part[n] = n < count ? x[n] : 1.0f;
    return VLOAD(0, part);
}

void write_some(vec v, __global float *x, uint count) {
    float part[WIDTH];
    VSTORE(v, 0, part);
    for (uint n = 0; n < count; ++n) x[n] = part[n];
}

#ifdef FORWARD
#define SOURCE w
#define STAGED(at) w[at] * w[at]
#define STAGED_VECTOR(at) VLOAD(0, w + (at)) * VLOAD(0, w + (at))
#else
#define STAGED(at) TERM(delta[at], w[at], d[at])
#define STAGED_VECTOR(at) TERM(VLOAD(0, delta + (at)), VLOAD(0, w + (at)), VLOAD(0, d + (at)))
#endif
#define MULTIPLY_BY(...) MULTIPLY(sum, CHANNELS, vectors, __VA_ARGS__)
#define STRIP(c, n) (((n) / SPAN * CHANNELS + (c)) * SPAN + (n) % SPAN)
#define GET(x, at, count) ((count) == WIDTH ? VLOAD(0, (x) + (at)) : read_some((x) + (at), (count)))
#define SET(value, x, at, count)                                                                       \
    do {                                                                                                \
        if ((count) == WIDTH) VSTORE((value), 0, (x) + (at));                                           \
        else write_some((value), (x) + (at), (count));                                                  \
    } while (0)

#ifdef FORWARD
__kernel REQD_GROUP(1) void stream_forward(__global const float *RESTRICT packed, __global const float *RESTRICT beta,
                                           __global const float *RESTRICT w, uint positions, uint pixels, uint batch,
#if SAVE
                                           __global float *RESTRICT saved,
#endif
                                           __global float *RESTRICT u) {
#else
__kernel REQD_GROUP(1) void stream_input(__global const float *RESTRICT packed, __global const float *RESTRICT delta,
                                         __global const float *RESTRICT w, __global const float *RESTRICT d,
                                         uint positions, uint pixels, uint batch, __global float *RESTRICT dw) {
#endif
    LOCAL_ARENA(float, tile, BLOCK * CHANNELS + ROWS * SPAN);
    __local float *sums = tile + BLOCK * CHANNELS;
    uint per_image = (pixels + BLOCK - 1) / BLOCK, blocks = batch * per_image;
    uint per_item = (blocks + get_global_size(0) - 1) / get_global_size(0);
    uint first = get_global_id(0) * per_item, last = min(first + per_item, blocks);
    for (uint block = first; block < last; ++block) {
        uint pixel = block % per_image * BLOCK, here = min((uint)BLOCK, pixels - pixel);
#if NHWC
        uint base = pixel * CHANNELS, at = 0;
        for (; at + WIDTH <= here * CHANNELS; at += WIDTH) VSTORE(STAGED_VECTOR(base + at), 0, tile + at);
        for (; at < here * CHANNELS; ++at) tile[at] = STAGED(base + at);
        for (; at < ROUND_UP(here, ROWS) * CHANNELS; ++at) tile[at] = 0.0f;
#else
        uint base = block / per_image * CHANNELS * pixels + pixel;
        for (uint c = 0; c < CHANNELS; ++c) { /* in strips of SPAN positions, each of them contiguous */
            uint n = 0;
            for (; n + WIDTH <= here; n += WIDTH) VSTORE(STAGED_VECTOR(base + c * pixels + n), 0, tile + STRIP(c, n));
            for (; n < here; ++n) tile[STRIP(c, n)] = STAGED(base + c * pixels + n);
            for (; n < ROUND_UP(here, SPAN); ++n) tile[STRIP(c, n)] = 0.0f;
        }
#endif
#if NHWC
        for (uint panel = 0; panel < CHANNELS; panel += PANEL) {
            for (uint place = 0; place < here; place += ROWS) {
                __global const float *vectors = packed + panel * CHANNELS;
                __local const float *words = tile + place * CHANNELS;
#define CHANNEL(r, v) (panel + (v) * WIDTH)
#define PLACE(r, v) (place + (r))
#define COUNT(r, v) (PLACE(r, v) < here && CHANNEL(r, v) < CHANNELS ? min((uint)WIDTH, CHANNELS - CHANNEL(r, v)) : 0)
#define AT(r, v) (base + PLACE(r, v) * CHANNELS + CHANNEL(r, v))
#define PITCHES PANEL, words, 1, CHANNELS
#define BIAS(r, v, count) GET(beta, CHANNEL(r, v), count)
#else
        for (uint place = 0; place < here; place += SPAN) {
            for (uint panel = 0; panel < CHANNELS; panel += PANEL) {
                __local const float *vectors = tile + place * CHANNELS;
                __global const float *words = packed + panel * CHANNELS;
#define CHANNEL(r, v) (panel + (r))
#define PLACE(r, v) (place + (v) * WIDTH)
#define COUNT(r, v) (CHANNEL(r, v) < CHANNELS && PLACE(r, v) < here ? min((uint)WIDTH, here - PLACE(r, v)) : 0)
#define AT(r, v) (base + CHANNEL(r, v) * pixels + PLACE(r, v))
#define PITCHES SPAN, words, PANEL, 1
#define BIAS(r, v, count) SPLAT(beta[CHANNEL(r, v)])
#endif
                vec sum[ROWS][VECTORS];
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    #pragma unroll
                    for (int v = 0; v < VECTORS; ++v) sum[r][v] = SPLAT(0.0f);
                }
                MULTIPLY_BY(PITCHES)
                /* By way of memory, so that what ends the sums need not be unrolled with them. */
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    #pragma unroll
                    for (int v = 0; v < VECTORS; ++v) VSTORE(sum[r][v], v, sums + r * SPAN);
                }
                #pragma unroll 1
                for (int r = 0; r < ROWS; ++r) {
                    #pragma unroll 1
                    for (int v = 0; v < VECTORS; ++v) {
                        uint count = COUNT(r, v), at = AT(r, v);
                        if (count > 0) {
                            vec x = GET(w, at, count), s = VLOAD(v, sums + r * SPAN);
#ifdef FORWARD
                            s = s + BIAS(r, v, count);
                            vec root = inverse_root(s);
#if SAVE
                            SET(root, saved, at, count);
#endif
                            SET(x * (INVERSE ? s * root : root), u, at, count);
#else
                            vec slope = GET(d, at, count);
                            if (INVERSE) slope = SPLAT(1.0f) / slope;
                            vec e = GET(delta, at, count);
                            SET(fma(e, slope, SPLAT(2.0f) * x * s), dw, at, count);
#endif
                        }
                    }
                }
            }
        }
    }
}
#endif

#if defined(GAMMA) || defined(FINISH)
#define SIDE ROUND_UP(CHANNELS, ROWS)
#define PITCH ROUND_UP(CHANNELS, SPAN)
#define PART (SIDE * PITCH + PITCH)
#endif

#ifdef GAMMA
/* Each work-item sums over its own positions, in an array of its own: SIDE x PITCH words of dgamma, PITCH of dbeta. */
__kernel REQD_GROUP(1) void stream_gamma(__global const float *RESTRICT delta, __global const float *RESTRICT w,
                                         __global const float *RESTRICT d, uint pixels, uint batch,
                                         __global float *RESTRICT partial) {
    LOCAL_ARENA(float, tile, BLOCK * (SIDE + PITCH));
    /* terms: NHWC [position][channel], else [channel][position]; squares: [position][channel] */
    __local float *terms = tile, *squares = tile + BLOCK * SIDE;
    uint per_image = (pixels + BLOCK - 1) / BLOCK, blocks = batch * per_image;
    uint per_item = (blocks + get_global_size(0) - 1) / get_global_size(0);
    uint first = get_global_id(0) * per_item, last = min(first + per_item, blocks);
    partial += (size_t)get_global_id(0) * PART;
    __global float *row_sums = partial + SIDE * PITCH;
    for (uint n = 0; n < PART; ++n) partial[n] = 0.0f;
    for (uint n = 0; n < BLOCK * (SIDE + PITCH); ++n) tile[n] = 0.0f;
    for (uint block = first; block < last; ++block) {
        uint pixel = block % per_image * BLOCK, here = min((uint)BLOCK, pixels - pixel);
#if NHWC
#define TERMS(i, k) terms[(k) * SIDE + (i)]
#define ADDRESS(c, n) ((pixel + (n)) * CHANNELS + (c))
        for (uint n = 0; n < here; ++n) {
            for (uint c = 0; c < CHANNELS; ++c) {
#else
#define TERMS(i, k) terms[(i) * BLOCK + (k)]
        uint base = block / per_image * CHANNELS * pixels + pixel;
#define ADDRESS(c, n) (base + (c) * pixels + (n))
        for (uint c = 0; c < CHANNELS; ++c) {
            for (uint n = 0; n < here; ++n) {
#endif
                uint at = ADDRESS(c, n);
                float x = w[at];
                TERMS(c, n) = TERM(delta[at], x, d[at]);
                squares[n * PITCH + c] = x * x;
            }
        }
        for (uint c = 0; c < CHANNELS; ++c) {
            for (uint n = here; n < BLOCK; ++n) TERMS(c, n) = 0.0f; /* what is left of the block before */
        }
        for (uint i = 0; i < SIDE; i += ROWS) {
            for (uint j = 0; j < PITCH; j += SPAN) {
                vec sum[ROWS][VECTORS];
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    #pragma unroll
                    for (int v = 0; v < VECTORS; ++v) sum[r][v] = VLOAD(v, partial + (i + r) * PITCH + j);
                }
#if NHWC
                MULTIPLY(sum, BLOCK, squares + j, PITCH, terms + i, SIDE, 1)
#else
                MULTIPLY(sum, BLOCK, squares + j, PITCH, terms + i * BLOCK, 1, BLOCK)
#endif
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    #pragma unroll
                    for (int v = 0; v < VECTORS; ++v) VSTORE(sum[r][v], v, partial + (i + r) * PITCH + j);
                }
            }
        }
#if BETA
#if NHWC
        for (uint c = 0; c < CHANNELS; ++c) {
            float row_sum = 0.0f;
            for (uint n = 0; n < BLOCK; ++n) row_sum += TERMS(c, n);
            row_sums[c] += row_sum;
        }
#else
        for (uint c = 0; c < CHANNELS; ++c) {
            vec row_sum = SPLAT(0.0f);
            for (uint n = 0; n < BLOCK / WIDTH; ++n) row_sum = row_sum + VLOAD(n, terms + c * BLOCK);
            row_sums[c] += SUM(row_sum);
        }
#endif
#endif
    }
}
#endif

#ifdef FINISH
/* Sums of the work-items' arrays, in their order. */
__kernel void stream_finish(__global const float *RESTRICT partial, uint items, __global float *RESTRICT dgamma
#if BETA
                            , __global float *RESTRICT dbeta
#endif
) {
    uint n = get_global_id(0);
    if (n >= CHANNELS * (CHANNELS + BETA)) return;
    uint i = n / CHANNELS, j = n % CHANNELS, at = (i < CHANNELS ? i * PITCH : SIDE * PITCH) + j;
    float sum = 0.0f;
    for (uint s = 0; s < items; ++s) sum += partial[(size_t)s * PART + at];
#if BETA
    if (i >= CHANNELS) dbeta[j] = sum;
    else
#endif
        dgamma[n] = sum;
}
#endif
