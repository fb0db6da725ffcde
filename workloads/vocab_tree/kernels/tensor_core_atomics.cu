/* One pass of k-means on matrix units for many clusters; meaning as in fused.cl. CUDA C++, from compute
   capability 8.0: scores by `mma.sync` m16n8k32 of bytes with 32-bit sums (m16n8k16 for 16 dimensions that are left over), sums by
   atomics in local memory.

   Each warp works for itself, POINTS at a time. Nothing is staged: with lane = 4 g + t, a lane loads its part of rows g,
   g + 8, g + 16 and so on, 16 bytes at a time, and has them in the registers in which the product wants them, because a
   permutation of the inner dimension is free as long as both operands have it. What the eight bytes of step s stand for:
     s in a pair   dimensions 64 (s / 2) + 16 t + 8 (s % 2) and 7 more
     s left over   dimensions 32 s + 8 t and 7 more
   and the four of half a step, dimensions 32 STEPS + 4 t and 3 more.
   Centres lie in local memory as lanes load them, 16 bytes for a pair of steps: 8 centres are 512 bytes side by side.

   Sums come from the same registers. Byte e of step s goes to word 32 s + 8 t + e of its cluster, and a lane begins with
   e = g: the 32 lanes of an atomic hit 32 banks, whatever the labels are. Half a step has two sums of 16 words, one for rows g < 4,
   so that this holds for it, too.

   Macros: K, DIMS (a multiple of 16), WARPS, SHARING (tiles of 16 points that share a load of centres: 2 or 4). */
#include "matrix_units.h"
#include "pass.cl"

#define POINTS (16 * SHARING)
#define ROWS (2 * SHARING) /* of a lane */
#define STEPS (DIMS / 32)
#define HALF_STEP (DIMS % 32 != 0)
#define SLOTS ((STEPS + HALF_STEP) * 32) /* words of a cluster's sums */
#define PAIRS (STEPS / 2)
#define TILES ((K + 7) / 8)
#define PADDED (TILES * 8)
#define WORDS (DIMS / 4)
#define FRAGMENT (8 * DIMS) /* bytes: one half of 8 centres */

#define CENTRES_AT 0 /* bytes: of each 8 centres the upper fragment, then the lower one */
#define SUMS_AT (2 * TILES * FRAGMENT)
#define HALVES_AT (SUMS_AT + 4 * K * SLOTS)
#define COUNTS_AT (HALVES_AT + 4 * PADDED)
#define ARENA (COUNTS_AT + 4 * K)

/* Place of byte d of centre k % 8 in a fragment, and of the sum of dimension d in its cluster. */
#define PAIRED(d) ((d) < 64 * PAIRS)
#define PLACE(k, d)                                                                                      \
    (PAIRED(d)                                                                                           \
         ? (d) / 64 * 512 + (4 * ((k) % 8) + (d) % 64 / 16) * 16 + (d) % 16                              \
     : (d) < 32 * STEPS                                                                                  \
         ? PAIRS * 512 + (4 * ((k) % 8) + (d) % 32 / 8) * 8 + (d) % 8                                    \
         : STEPS * 256 + (4 * ((k) % 8) + (d) % 16 / 4) * 4 + (d) % 4)
#define SLOT(d) (PAIRED(d) ? (d) / 64 * 64 + (d) % 16 / 8 * 32 + (d) % 64 / 16 * 8 + (d) % 8 : (d))

__kernel void REQD_GROUP(32 * WARPS) pass(PARAMETERS(uint)) {
    LOCAL_ARENA(uchar, arena, ARENA);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint4 tile = vload4(get_group_id(0), tiles);
    uint node = tile.x, first = tile.y, length = moving[node] ? tile.z : 0;
    uint *sum = (uint *)(arena + SUMS_AT), *count = (uint *)(arena + COUNTS_AT);
    int *minus_half = (int *)(arena + HALVES_AT);

    for (uint i = item; i < PADDED * WORDS; i += 32 * WARPS) {
        uint k = i / WORDS, d = i % WORDS * 4, a = 0, b = 0;
        if (k < K) {
            a = centres[2 * ((size_t)node * K * WORDS + i)];
            b = centres[2 * ((size_t)node * K * WORDS + i) + 1];
        }
        uchar *at = arena + CENTRES_AT + k / 8 * 2 * FRAGMENT + PLACE(k, d);
        *(uint *)at = __byte_perm(a, b, 0x7531);
        *(uint *)(at + FRAGMENT) = __byte_perm(a, b, 0x6420);
    }
    for (uint i = item; i < K * SLOTS; i += 32 * WARPS) sum[i] = 0;
    for (uint i = item; i < PADDED; i += 32 * WARPS) minus_half[i] = i < K ? -halves[node * K + i] : -INT_MAX;
    for (uint i = item; i < K; i += 32 * WARPS) count[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const uchar *from = (const uchar *)(points + (size_t)first * WORDS);
    uint blocks = (length + POINTS - 1) / POINTS, turn = (0x3210 + 0x1111 * g) & 0x7777;
    for (uint block = warp; block < blocks; block += WARPS) {
        uint x[SHARING][STEPS + HALF_STEP][4]; /* row 16 m + g + 8 h: registers h and h + 2; rows past the end are zeros and add nothing */
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            uint point = block * POINTS + 8 * r + g, all = point < length ? ~0u : 0;
            const uchar *row = from + (size_t)min(point, length - 1) * DIMS;
            int m = r / 2, h = r % 2;
            #pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                uint4 v = *(const uint4 *)(row + 64 * p + 16 * t);
                x[m][2 * p][h] = v.x & all;
                x[m][2 * p][h + 2] = v.y & all;
                x[m][2 * p + 1][h] = v.z & all;
                x[m][2 * p + 1][h + 2] = v.w & all;
            }
            if (STEPS % 2) {
                uint2 v = *(const uint2 *)(row + 64 * PAIRS + 8 * t);
                x[m][STEPS - 1][h] = v.x & all;
                x[m][STEPS - 1][h + 2] = v.y & all;
            }
            if (HALF_STEP) x[m][STEPS][h] = *(const uint *)(row + 32 * STEPS + 4 * t) & all;
        }
        #pragma unroll
        for (int i = 0; i < POINTS; i += 32) { /* the lines of the next block, while the scores are computed */
            uint next = min((block + WARPS) * POINTS + i + lane, length - 1);
            prefetch_l2(from + (size_t)next * DIMS);
        }

        int best[ROWS];
        uint nearest[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            best[r] = -INT_MAX - 1;
            nearest[r] = 0;
        }
        #pragma unroll 1
        for (int n = 0; n < TILES; ++n) {
            const uchar *part = arena + CENTRES_AT + n * 2 * FRAGMENT;
            int2 minus = *(const int2 *)(minus_half + 8 * n + 2 * t);
            int score[2][SHARING][4]; /* upper and lower bytes; each tile and half is a chain of its own */
            #pragma unroll
            for (int i = 0; i < 4 * SHARING; ++i) {
                score[0][i / 4][i % 4] = 0;
                score[1][i / 4][i % 4] = i % 2 ? minus.y : minus.x;
            }
            #pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                #pragma unroll
                for (int half = 0; half < 2; ++half) {
                    uint4 y = *(const uint4 *)(part + half * FRAGMENT + 512 * p + 16 * lane);
                    #pragma unroll
                    for (int m = 0; m < SHARING; ++m) multiply(score[half][m], x[m][2 * p], y.x, y.y);
                    #pragma unroll
                    for (int m = 0; m < SHARING; ++m) multiply(score[half][m], x[m][2 * p + 1], y.z, y.w);
                }
            }
            #pragma unroll
            for (int half = 0; STEPS % 2 && half < 2; ++half) {
                uint2 y = *(const uint2 *)(part + half * FRAGMENT + 512 * PAIRS + 8 * lane);
                #pragma unroll
                for (int m = 0; m < SHARING; ++m) multiply(score[half][m], x[m][STEPS - 1], y.x, y.y);
            }
            #pragma unroll
            for (int half = 0; HALF_STEP && half < 2; ++half) {
                uint y = *(const uint *)(part + half * FRAGMENT + 256 * STEPS + 4 * lane);
                #pragma unroll
                for (int m = 0; m < SHARING; ++m) multiply_half(score[half][m], x[m][STEPS], y);
            }
            #pragma unroll
            for (int i = 0; i < 4 * SHARING; ++i) { /* row 16 m + g + 8 h, centre 8 n + 2 t + i % 2 */
                int r = i / 2, value = 256 * score[0][i / 4][i % 4] + score[1][i / 4][i % 4];
                if (value > best[r]) {
                    best[r] = value;
                    nearest[r] = 8 * n + 2 * t + i % 2;
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) best_of_row(&best[r], &nearest[r]);
        #pragma unroll
        for (int r = 0; r < ROWS; r += 4) {
            uint own = block * POINTS + 8 * (r + t) + g;
            uint k = t < 2 ? (t == 0 ? nearest[r] : nearest[r + 1]) : t == 2 ? nearest[r + 2] : nearest[r + 3];
            if (own < length) {
                labels[first + own] = (uchar)k;
                atomic_inc(count + k);
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            uint *to = sum + nearest[r] * SLOTS + 8 * t;
            #pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                uint low = x[r / 2][s][r % 2], high = x[r / 2][s][r % 2 + 2];
                uint turned[2] = {__byte_perm(low, high, turn), __byte_perm(low, high, turn ^ 0x4444)};
                #pragma unroll
                for (int i = 0; i < 8; ++i) {
                    atomic_add(to + 32 * s + (g + i) % 8, __byte_perm(turned[i / 4], 0, 0x4440 | i % 4));
                }
            }
            if (HALF_STEP) {
                uint *own = sum + nearest[r] * SLOTS + 32 * STEPS + g / 4 * 16 + 4 * t, bytes = x[r / 2][STEPS][r % 2];
                #pragma unroll
                for (int i = 0; i < 4; ++i) atomic_add(own + (g + i) % 4, bytes >> 8 * ((g + i) % 4) & 0xFFu);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (length) {
        for (uint i = item; i < K * DIMS; i += 32 * WARPS) {
            uint d = i % DIMS, *own = sum + i / DIMS * SLOTS + SLOT(d), value = d < 32 * STEPS ? *own : own[0] + own[16];
            if (value) atomic_add(sums + (size_t)node * K * DIMS + i, value);
        }
        for (uint i = item; i < K; i += 32 * WARPS) {
            if (count[i]) atomic_add(counts + node * K + i, count[i]);
        }
    }
}
