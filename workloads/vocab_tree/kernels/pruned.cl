/* One pass of k-means for many clusters, exact with half of the dot products; meaning as in fused.cl. A
   work-item keeps the rows of POINTS points in registers; centres are read 16 bytes at a time, all items at one place.

   C = 256 h + l - 128, h and l bytes, so that the score of a centre, but for a term that all centres share, is
     256 (x . h) - half + x . l    and    |x . (l - 128)| <= |x| |l - 128|.
   The upper bytes give each centre a key: 256 (x . h) - half, its last 8 bits replaced by 255 - k. The KEPT largest keys
   are held in order. Centres whose key is within twice the bound (and what the replaced bits can hide) of the largest are
   compared exactly; if the last key held is among them, there may be more, and all keys are computed again.

   Macros: K, DIMS, GROUP, POINTS, KEPT (at most K). */
#include "pass.cl"

#define WORDS (DIMS / 4)
#define UNITS (DIMS / 16)
#define LOWER_PITCH (WORDS + 4) /* words: items that compare different centres hit different banks */
#define SUM_PITCH (DIMS + 1)    /* the same for items that add to different classes */
#define LOWER_AT (K * WORDS)
#define SUMS_AT (LOWER_AT + K * LOWER_PITCH)
#define COUNTS_AT (SUMS_AT + K * SUM_PITCH)
#define BASES_AT (COUNTS_AT + K)
#define RESTS_AT (BASES_AT + K)
#define WIDEST_AT (RESTS_AT + K)
#define ARENA (WIDEST_AT + 1)

uint product(const uint4 *x, __local const uint *row) {
    uint found = 0;
    #pragma unroll
    for (int u = 0; u < UNITS; ++u) {
        uint4 y = vload4(u, row);
        found = DOT4_U8(x[u].x, y.x, DOT4_U8(x[u].y, y.y, found));
        found = DOT4_U8(x[u].z, y.z, DOT4_U8(x[u].w, y.w, found));
    }
    return found;
}

__kernel void REQD_GROUP(GROUP) pass(PARAMETERS(uint)) {
    LOCAL_ARENA(uint, arena, ARENA);
    __local uint *upper = arena, *lower = arena + LOWER_AT, *sum = arena + SUMS_AT, *count = arena + COUNTS_AT;
    __local int *base = (__local int *)(arena + BASES_AT), *rest = (__local int *)(arena + RESTS_AT);
    __local uint *widest = arena + WIDEST_AT; /* the largest |l - 128|^2 */
    uint item = get_local_id(0);
    uint4 tile = vload4(get_group_id(0), tiles);
    uint node = tile.x, first = tile.y, length = moving[node] ? tile.z : 0;

    for (uint i = item; i < K * WORDS; i += GROUP) {
        uint k = i / WORDS, w = i % WORDS;
        uint a = centres[2 * ((size_t)node * K * WORDS + i)] + 0x00800080u;
        uint b = centres[2 * ((size_t)node * K * WORDS + i) + 1] + 0x00800080u;
        upper[i] = UPPER(a, b);
        lower[k * LOWER_PITCH + w] = LOWER(a, b);
    }
    for (uint i = item; i < K * SUM_PITCH; i += GROUP) sum[i] = 0;
    for (uint k = item; k < K; k += GROUP) {
        int half_norm = halves[node * K + k];
        base[k] = (-half_norm & ~255) | (255 - (int)k);
        rest[k] = -half_norm - base[k];
        count[k] = 0;
    }
    if (item == 0) *widest = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = item; k < K; k += GROUP) {
        uint squares = 0, total = 0;
        for (uint w = 0; w < WORDS; ++w) {
            uint four = lower[k * LOWER_PITCH + w];
            squares = DOT4_U8(four, four, squares);
            total = DOT4_U8(four, 0x01010101u, total);
        }
        atomic_max(widest, squares + 128 * 128 * DIMS - 256 * total);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float farthest = sqrt(convert_float(*widest));

    for (uint start = item; start < length; start += GROUP * POINTS) {
        uint4 x[POINTS][UNITS];
        int kept[POINTS][KEPT];
        #pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            __global const uint *from = points + (size_t)(first + min(start + p * GROUP, length - 1)) * WORDS;
            #pragma unroll
            for (int u = 0; u < UNITS; ++u) x[p][u] = vload4(u, from);
            #pragma unroll
            for (int i = 0; i < KEPT; ++i) kept[p][i] = -INT_MAX - 1;
        }
        for (uint k = 0; k < K; ++k) {
            uint found[POINTS];
            #pragma unroll
            for (int p = 0; p < POINTS; ++p) found[p] = 0;
            #pragma unroll
            for (int u = 0; u < UNITS; ++u) {
                uint4 y = vload4(u, upper + k * WORDS);
                #pragma unroll
                for (int p = 0; p < POINTS; ++p) {
                    found[p] = DOT4_U8(x[p][u].x, y.x, DOT4_U8(x[p][u].y, y.y, found[p]));
                    found[p] = DOT4_U8(x[p][u].z, y.z, DOT4_U8(x[p][u].w, y.w, found[p]));
                }
            }
            #pragma unroll
            for (int p = 0; p < POINTS; ++p) {
                int key = (int)(256 * found[p]) + base[k];
                #pragma unroll
                for (int i = 0; i < KEPT; ++i) {
                    int smaller = min(kept[p][i], key);
                    kept[p][i] = max(kept[p][i], key);
                    key = smaller;
                }
            }
        }
        #pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            uint row = start + p * GROUP;
            if (row < length) {
                uint squares = 0;
                #pragma unroll
                for (int u = 0; u < UNITS; ++u) {
                    squares = DOT4_U8(x[p][u].x, x[p][u].x, DOT4_U8(x[p][u].y, x[p][u].y, squares));
                    squares = DOT4_U8(x[p][u].z, x[p][u].z, DOT4_U8(x[p][u].w, x[p][u].w, squares));
                }
                /* The factor covers the rounding of both roots and of the products. */
                int bound = (int)(sqrt(convert_float(squares)) * farthest * 1.00001f) + 1;
                int edge = kept[p][0] - 2 * bound - 510, best = -INT_MAX - 1;
                uint nearest = 255 - (kept[p][0] & 255);
                if (KEPT < K && kept[p][KEPT - 1] >= edge) {
                    for (uint k = 0; k < K; ++k) {
                        int key = (int)(256 * product(x[p], upper + k * WORDS)) + base[k];
                        if (key >= edge) {
                            int score = key + rest[k] + (int)product(x[p], lower + k * LOWER_PITCH);
                            if (score > best) {
                                best = score;
                                nearest = k;
                            }
                        }
                    }
                } else if (kept[p][1] >= edge) {
                    while (kept[p][0] >= edge) {
                        uint k = 255 - (kept[p][0] & 255);
                        int score = kept[p][0] + rest[k] + (int)product(x[p], lower + k * LOWER_PITCH);
                        if (score > best || (score == best && k < nearest)) {
                            best = score;
                            nearest = k;
                        }
                        #pragma unroll
                        for (int i = 0; i < KEPT - 1; ++i) kept[p][i] = kept[p][i + 1];
                        kept[p][KEPT - 1] = -INT_MAX - 1;
                    }
                }
                labels[first + row] = (uchar)nearest;
                atomic_inc(count + nearest);
                __local uint *to = sum + nearest * SUM_PITCH;
                #pragma unroll
                for (int u = 0; u < UNITS; ++u) {
                    uint four[4];
                    four[0] = x[p][u].x;
                    four[1] = x[p][u].y;
                    four[2] = x[p][u].z;
                    four[3] = x[p][u].w;
                    #pragma unroll
                    for (int w = 0; w < 4; ++w) {
                        atomic_add(to + 16 * u + 4 * w, four[w] & 0xFFu);
                        atomic_add(to + 16 * u + 4 * w + 1, four[w] >> 8 & 0xFFu);
                        atomic_add(to + 16 * u + 4 * w + 2, four[w] >> 16 & 0xFFu);
                        atomic_add(to + 16 * u + 4 * w + 3, four[w] >> 24);
                    }
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (length) {
        for (uint i = item; i < K * DIMS; i += GROUP) {
            uint value = sum[i / DIMS * SUM_PITCH + i % DIMS];
            if (value) atomic_add(sums + (size_t)node * K * DIMS + i, value);
        }
        for (uint i = item; i < K; i += GROUP) {
            if (count[i]) atomic_add(counts + node * K + i, count[i]);
        }
    }
}
