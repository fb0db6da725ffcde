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

   Sums come from the same registers, by an atomic for each byte, whose 32 lanes hit 32 banks, whatever the labels are:
     SPREAD   each lane has a word of its own for each of its bytes, so that a cluster has eight sums of a dimension; no byte is
              turned, and a row has one address
     else     byte e of step s goes to word 32 s + 8 t + e of its cluster, and a lane begins with e = g; half a step has two sums
              of 16 words, one for rows g < 4

   Macros: K, DIMS (a multiple of 16), WARPS, SHARING (tiles of 16 points that share a load of centres: 2 or 4), SPREAD. */
#include "matrix_units.h"
#include "pass.cl"

#define POINTS (16 * SHARING)
#define ROWS (2 * SHARING) /* of a lane */
#define STEPS (DIMS / 32)
#define HALF_STEP (DIMS % 32 != 0)
#define SLOTS (SPREAD ? 8 * DIMS : (STEPS + HALF_STEP) * 32) /* words of a cluster's sums */
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

/* Place of byte d of centre k % 8 in a fragment. */
#define PLACE(k, d)                                                                                      \
    ((d) < 64 * PAIRS                                                                                    \
         ? (d) / 64 * 512 + (4 * ((k) % 8) + (d) % 64 / 16) * 16 + (d) % 16                              \
     : (d) < 32 * STEPS                                                                                  \
         ? PAIRS * 512 + (4 * ((k) % 8) + (d) % 32 / 8) * 8 + (d) % 8                                    \
         : STEPS * 256 + (4 * ((k) % 8) + (d) % 16 / 4) * 4 + (d) % 4)

/* A lane's bytes of a row, x as below, to the sums of its cluster. */
__device__ __forceinline__ void add_row(uint *to, const uint (*x)[4], uint h, uint lane) {
#if SPREAD
    uint *own = to + lane;
    #pragma unroll
    for (int i = 0; i < 8 * STEPS; ++i) atomic_add(own + 32 * i, __byte_perm(x[i / 8][h + i % 8 / 4 * 2], 0, 0x4440 | i % 4));
    #pragma unroll
    for (int i = 0; i < 4 * HALF_STEP; ++i) atomic_add(own + 32 * (8 * STEPS + i), __byte_perm(x[STEPS][h], 0, 0x4440 | i));
#else
    uint g = lane / 4, t = lane % 4, turn = (0x3210 + 0x1111 * g) & 0x7777, own = address(to);
    #pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        uint low = x[s][h], high = x[s][h + 2], turned[2] = {__byte_perm(low, high, turn), __byte_perm(low, high, turn ^ 0x4444)};
        #pragma unroll
        for (uint i = 0; i < 8; ++i) {
            add_local(own + 4 * (8 * t + (g + i) % 8) + 128 * s, __byte_perm(turned[i / 4], 0, 0x4440 | i % 4));
        }
    }
    uint turned = HALF_STEP ? __byte_perm(x[STEPS - !HALF_STEP][h], 0, turn & 0x3333) : 0;
    #pragma unroll
    for (uint i = 0; i < 4 * HALF_STEP; ++i) {
        add_local(own + 4 * (32 * STEPS + g / 4 * 16 + 4 * t + (g + i) % 4), __byte_perm(turned, 0, 0x4440 | i));
    }
#endif
}

/* The dimension of a lane's byte w, where t = lane % 4: bytes in the order in which `add_row` takes them. */
__device__ __forceinline__ uint dimension(uint w, uint t) {
    if (w >= 8 * STEPS) return 32 * STEPS + 4 * t + w % 4;
    return w < 16 * PAIRS ? w / 16 * 64 + 16 * t + w % 16 : w / 8 * 32 + 8 * t + w % 8;
}

/* The sum of that dimension of a cluster. Neighbours in t, then in w, read 32 banks. */
__device__ __forceinline__ uint sum_of(const uint *sum, uint w, uint t) {
#if SPREAD
    uint value = 0;
    #pragma unroll
    for (uint g = 0; g < 8; ++g) value += sum[32 * w + (g + w) % 8 * 4 + t];
    return value;
#else
    if (w < 8 * STEPS) return sum[w / 8 * 32 + 8 * t + w % 8];
    sum += 32 * STEPS + 4 * t + w % 4;
    return sum[0] + sum[16];
#endif
}

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
    for (uint i = item; i < K * SLOTS / 4; i += 32 * WARPS) ((uint4 *)sum)[i] = MAKE_UINT4(0, 0, 0, 0);
    for (uint i = item; i < PADDED; i += 32 * WARPS) minus_half[i] = i < K ? -halves[node * K + i] : -INT_MAX;
    for (uint i = item; i < K; i += 32 * WARPS) count[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const uchar *from = (const uchar *)(points + (size_t)first * WORDS);
    const uchar *from_pairs = from + 16 * t, *from_step = from + 64 * PAIRS + 8 * t, *from_half = from + 32 * STEPS + 4 * t;
    uint blocks = (length + POINTS - 1) / POINTS;
    for (uint block = warp; block < blocks; block += WARPS) {
        uint x[SHARING][STEPS + HALF_STEP][4]; /* row 16 m + g + 8 h: registers h and h + 2; rows past the end are zeros and add nothing */
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            uint point = block * POINTS + 8 * r + g, all = point < length ? ~0u : 0;
            size_t row = (size_t)min(point, length - 1) * DIMS;
            int m = r / 2, h = r % 2;
            #pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                uint4 v = *(const uint4 *)(from_pairs + row + 64 * p);
                x[m][2 * p][h] = v.x & all;
                x[m][2 * p][h + 2] = v.y & all;
                x[m][2 * p + 1][h] = v.z & all;
                x[m][2 * p + 1][h + 2] = v.w & all;
            }
            if (STEPS % 2) {
                uint2 v = *(const uint2 *)(from_step + row);
                x[m][STEPS - 1][h] = v.x & all;
                x[m][STEPS - 1][h + 2] = v.y & all;
            }
            if (HALF_STEP) x[m][STEPS][h] = *(const uint *)(from_half + row) & all;
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
        for (int r = 0; r < ROWS; ++r) add_row(sum + nearest[r] * SLOTS, x[r / 2], r % 2, lane);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (length) {
        for (uint i = item; i < K * DIMS; i += 32 * WARPS) {
            uint k = i / DIMS, w = i % DIMS / 4, value = sum_of(sum + k * SLOTS, w, i % 4);
            if (value) atomic_add(sums + ((size_t)node * K + k) * DIMS + dimension(w, i % 4), value);
        }
        for (uint i = item; i < K; i += 32 * WARPS) {
            if (count[i]) atomic_add(counts + node * K + i, count[i]);
        }
    }
}
