/* A pass as the source has it: classify, and sum, as two kernels; points are interleaved. A work-group of either takes a tile.
   The source re-lays the points out for each kernel; here one layout serves both: neighbouring work-items of `classify` read
   neighbouring words, and a work-item of `add` reads the same dimensions of four neighbouring points in one load. Scores are
   exact integers (fused.cl has the rule), so that a build gives the same tree as every other.

   Macros: K, DIMS, GROUP (of classify), ROWS (of a work-group of `add` that share dimensions, a power of two). */
#define INTERLEAVED 1
#include "interleaved.cl"

#define PRODUCT(x, a, b) \
    (((x) & 0xFFu) * ((a) & 0xFFFFu) + ((x) >> 8 & 0xFFu) * ((a) >> 16) + ((x) >> 16 & 0xFFu) * ((b) & 0xFFFFu) + \
     ((x) >> 24) * ((b) >> 16))

/* A work-item per point; centres in local memory. */
__kernel void REQD_GROUP(GROUP) classify(__global const uint *RESTRICT points, __global const uint *RESTRICT tiles,
                                         __global const uint *RESTRICT centres, __global const int *RESTRICT halves,
                                         __global const uint *RESTRICT moving, __global uchar *RESTRICT labels) {
    LOCAL_ARENA(uint, near, 2 * K * WORDS + K);
    __local uint *half_norm = near + 2 * K * WORDS;
    uint4 tile = vload4(get_group_id(0), tiles);
    uint length = moving[tile.x] ? tile.z : 0;
    for (uint i = get_local_id(0); i < 2 * K * WORDS; i += GROUP) near[i] = centres[2 * (size_t)tile.x * K * WORDS + i];
    for (uint k = get_local_id(0); k < K; k += GROUP) half_norm[k] = (uint)halves[(size_t)tile.x * K + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < length; i += GROUP) {
        uint x[WORDS];
        #pragma unroll
        for (uint w = 0; w < WORDS; ++w) x[w] = points[WORD_AT(tile.y + i, w)];
        int best = -INT_MAX - 1;
        uint nearest = 0;
        for (uint k = 0; k < K; ++k) {
            uint product = 0;
            #pragma unroll
            for (uint w = 0; w < WORDS; w += 2) {
                uint4 c = vload4(k * (WORDS / 2) + w / 2, near);
                product += PRODUCT(x[w], c.x, c.y) + PRODUCT(x[w + 1], c.z, c.w);
            }
            int score = (int)(product - half_norm[k]);
            if (score > best) {
                best = score;
                nearest = k;
            }
        }
        labels[tile.y + i] = (uchar)nearest;
    }
}

/* Work-items own four dimensions each, ROWS of them share these; partial sums lie in local memory, are combined by halving,
   and a group adds one value per class and dimension to global memory. Row w + WORDS * j of a class holds dimension 4 w + j,
   so that neighbouring work-items hit different banks. */
__kernel void REQD_GROUP(WORDS * ROWS) add(__global const uint *RESTRICT points, __global const uint *RESTRICT tiles,
                                           __global const uint *RESTRICT moving, __global const uchar *RESTRICT labels,
                                           __global uint *RESTRICT sums, __global uint *RESTRICT counts) {
    LOCAL_ARENA(uint, partial, ROWS * K * (DIMS + 1));
    uint w = get_local_id(0) % WORDS, row = get_local_id(0) / WORDS;
    __local uint *own = partial + row * K * DIMS + w, *number = partial + ROWS * K * DIMS + row * K;
    uint4 tile = vload4(get_group_id(0), tiles);
    uint last = tile.y + (moving[tile.x] ? tile.z : 0);
    for (uint k = 0; k < K; ++k) {
        #pragma unroll
        for (uint j = 0; j < 4; ++j) own[k * DIMS + j * WORDS] = 0;
        if (w == 0) number[k] = 0;
    }
    for (uint four = tile.y / 4 + row; 4 * four < last; four += ROWS) {
        uint4 x = vload4(WORD_AT(4 * four, w) / 4, points);
        uint of[4] = {x.x, x.y, x.z, x.w};
        #pragma unroll
        for (uint p = 0; p < 4; ++p) {
            uint i = 4 * four + p;
            if (i >= tile.y && i < last) {
                uint k = labels[i];
                own[k * DIMS] += of[p] & 0xFFu;
                own[k * DIMS + WORDS] += of[p] >> 8 & 0xFFu;
                own[k * DIMS + 2 * WORDS] += of[p] >> 16 & 0xFFu;
                own[k * DIMS + 3 * WORDS] += of[p] >> 24;
                if (w == 0) ++number[k];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_rows = ROWS / 2; half_rows > 0; half_rows /= 2) {
        if (row < half_rows) {
            for (uint k = 0; k < K; ++k) {
                #pragma unroll
                for (uint j = 0; j < 4; ++j) own[k * DIMS + j * WORDS] += own[(half_rows * K + k) * DIMS + j * WORDS];
                if (w == 0) number[k] += number[half_rows * K + k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row == 0) {
        for (uint k = 0; k < K; ++k) {
            if (partial[ROWS * K * DIMS + k]) {
                #pragma unroll
                for (uint j = 0; j < 4; ++j)
                    atomic_add(sums + ((size_t)tile.x * K + k) * DIMS + 4 * w + j, own[k * DIMS + j * WORDS]);
                if (w == 0) atomic_add(counts + (size_t)tile.x * K + k, number[k]);
            }
        }
    }
}
