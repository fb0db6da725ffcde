/* The products over positions on matrix units. Gamma is rounded, split and put into the order of fragments ahead (PACK), so
   that warps take it from the cache without any staging; what stands for all channels of a tile of positions is staged at once
   (WORDS words, in several turns where there are more), and between two barriers nothing but fragments and products is left. */
#include "matrix_units.h"

#ifdef PACK
/* Gamma (INPUT: its transpose) as operand A: [16 rows][8 words][part][lane] of the four words of a fragment; zeros beyond
   the channels. One work-item to `count` fragments of a lane, all parts. */
__kernel void pack(__global const float *RESTRICT gamma, uint channels, uint steps, uint count,
                   __global uint4 *RESTRICT packed) {
    uint i = get_global_id(0);
    if (i >= count) return;
    uint lane = i % 32, row = i / 32 / steps * 16 + lane / 4, word = i / 32 % steps * 8 + lane % 4;
    uint hi[4], lo[4];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        uint m = row + r % 2 * 8, k = PER_WORD * (word + r / 2 * 4);
#if HELD && !FORMAT /* in the order in which tensor_core_held.cu takes channels from copies */
        k = i / 32 % steps * 8 + lane % 4 * 2 + r / 2;
#endif
        float v[2] = {0.0f, 0.0f};
        #pragma unroll
        for (int e = 0; e < PER_WORD; ++e) {
            if (m < channels && k + e < channels) v[e] = gamma[OF_TRANSPOSE ? (k + e) * channels + m : m * channels + k + e];
        }
        hi[r] = round_word(v[0], v[1]);
        lo[r] = round_rest(v[0], v[1], hi[r]);
    }
    packed += i / 32 * 32 * PARTS + lane;
    packed[0] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    if (PARTS == 2) packed[32] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
}
#else
#define QUAD (4 * PER_WORD) /* values to 16 bytes of a staged row */
#define QUADS (WORDS / 4)
#define SLOTS(n) ((QUADS * (n) + ITEMS - 1) / ITEMS)
#define FITS(slot, n) (QUADS * (n) % ITEMS == 0 || (slot) < QUADS * (n))

/* A slot is QUAD values of one row. Neighbouring items take what lies side by side in memory. */
#define SLOT_ROW(slot, n) (ALONG ? (slot) / QUADS : (slot) % (n))
#define SLOT_QUAD(slot, n) (ALONG ? (slot) % QUADS : (slot) / (n))
#define PLACE(slot, n) (SLOT_ROW(slot, n) * PITCH + 4 * SLOT_QUAD(slot, n))

/* QUAD values from `at` on, `stride` apart; 0 from the `left`-th value of the inner dimension on. */
void fetch(float *v, const float *RESTRICT x, uint at, uint stride, uint depth, uint left) {
    #pragma unroll
    for (uint e = 0; e < QUAD; e += ALONG ? VECTOR : 1) {
        bool there = depth != ~0u && depth + e < left;
        if (ALONG && VECTOR == 4) {
            float4 four = there ? vload4(0, x + at + e) : SPLAT_FLOAT4(0.0f);
            v[e] = four.x;
            v[e + 1] = four.y;
            v[e + 2] = four.z;
            v[e + 3] = four.w;
        } else {
            v[e] = there ? x[at + e * stride] : 0.0f;
        }
    }
}

__kernel void REQD_GROUP_RESIDENT(ITEMS, RESIDENT) PRODUCT(PRODUCT_PARAMETERS(uint4)) {
    LOCAL_ARENA(uint, staged, PARTS * COLUMNS * PITCH);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint row_tiles = (channels + ROWS - 1) / ROWS, first_column = get_group_id(0) / row_tiles * COLUMNS;
    uint warp_row = get_group_id(0) % row_tiles * ROWS + warp / WARPS_ACROSS * WARP_ROWS;
    uint warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    uint steps = (channels + 8 * PER_WORD - 1) / (8 * PER_WORD);
    packed += warp_row / 16 * steps * PARTS * 32 + lane;
    /* Lanes address the rows of four matrices in turn: along, then down. */
    const uint *b_row = staged + (warp_column + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 4;

    float sum[TILES_DOWN][TILES_ACROSS][4];
    #pragma unroll
    for (int i = 0; i < TILES_DOWN; ++i) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            float start = 0.0f;
#ifdef FORWARD
            uint row = warp_row + 16 * i + r / 2 * 8 + g;
            if (r % 2 == 0 && row < channels) start = beta[row];
#endif
            #pragma unroll
            for (int j = 0; j < TILES_ACROSS; ++j) sum[i][j][r] = r % 2 ? sum[i][j][r - 1] : start;
        }
    }

    for (uint first = 0; first < steps; first += WORDS / 8) {
        if (first) barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll FETCHES
        for (uint s = 0; s < SLOTS(COLUMNS); ++s) {
            uint slot = item + s * ITEMS, p = first_column + SLOT_ROW(slot, COLUMNS);
            uint channel = first * 8 * PER_WORD + QUAD * SLOT_QUAD(slot, COLUMNS);
            uint depth = p < positions && FITS(slot, COLUMNS) ? channel : ~0u;
            uint at = BASE(p) + channel * CHANNEL_STRIDE;
            float v[QUAD];
            fetch(v, w, at, CHANNEL_STRIDE, depth, channels);
#ifdef FORWARD
            #pragma unroll
            for (int e = 0; e < QUAD; ++e) v[e] *= v[e];
#else
            float from[QUAD], root[QUAD];
            fetch(from, delta, at, CHANNEL_STRIDE, depth, channels);
            fetch(root, d, at, CHANNEL_STRIDE, depth, channels);
            #pragma unroll
            for (int e = 0; e < QUAD; ++e) v[e] = TERM(from[e], v[e], root[e]);
#endif
            if (FITS(slot, COLUMNS)) put<4>(staged + PLACE(slot, COLUMNS), COLUMNS * PITCH, v);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint turns = min((uint)WORDS / 8, steps - first);
        uint next[PARTS][TILES_DOWN][4];
        auto fetch_rows = [&](uint k) {
            #pragma unroll
            for (int i = 0; i < TILES_DOWN; ++i) {
                #pragma unroll
                for (int q = 0; q < PARTS; ++q) {
                    unpack(next[q][i], packed[((i * steps + first + k) * PARTS + q) * 32]);
                }
            }
        };
        fetch_rows(0);
        #pragma unroll UNROLL
        for (uint k = 0; k < turns; ++k) {
            uint x[PARTS][TILES_DOWN][4];
            #pragma unroll
            for (int i = 0; i < PARTS * TILES_DOWN * 4; ++i) (&x[0][0][0])[i] = (&next[0][0][0])[i];
            if (k + 1 < turns) fetch_rows(k + 1);
            multiply_words<APART>(sum, x, b_row + 8 * k);
        }
    }

    /* Results are stored as what is not needed again (__stcs), so that the operands, which are, stay in the cache. */
    auto finish = [&](uint at, float s) {
        float x = w[at];
#ifdef FORWARD
        float root = native_rsqrt(s);
#if SAVE
        __stcs(saved + at, root);
#endif
        __stcs(u + at, x * (INVERSE ? s * root : root));
#else
        float slope = INVERSE ? 1.0f / d[at] : d[at];
        __stcs(dw + at, delta[at] * slope + 2.0f * x * s);
#endif
    };
    auto finish_two = [&](uint at, float2 s) {
        float2 x = vload2(0, w + at);
#ifdef FORWARD
        float2 root = MAKE_FLOAT2(native_rsqrt(s.x), native_rsqrt(s.y));
#if SAVE
        __stcs(reinterpret_cast<float2 *>(saved + at), root);
#endif
        __stcs(reinterpret_cast<float2 *>(u + at), x * (INVERSE ? s * root : root));
#else
        float2 slope = vload2(0, d + at);
        if (INVERSE) slope = 1.0f / slope;
        __stcs(reinterpret_cast<float2 *>(dw + at), vload2(0, delta + at) * slope + 2.0f * x * s);
#endif
    };
    #pragma unroll
    for (int j = 0; j < TILES_ACROSS; ++j) {
        uint p = first_column + warp_column + 8 * j + 2 * t;
        if (p >= positions) continue;
        uint base = BASE(p), next = BASE(p + 1);
        #pragma unroll
        for (int i = 0; i < TILES_DOWN; ++i) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                uint row = warp_row + 16 * i + 8 * h + g;
                if (row >= channels) continue;
                float first = sum[i][j][2 * h], second = sum[i][j][2 * h + 1];
                if (VECTOR == 4 && !NHWC) {
                    finish_two(base + row * CHANNEL_STRIDE, MAKE_FLOAT2(first, second));
                } else {
                    finish(base + row * CHANNEL_STRIDE, first);
                    if (p + 1 < positions) finish(next + row * CHANNEL_STRIDE, second);
                }
            }
        }
    }
}
#endif
