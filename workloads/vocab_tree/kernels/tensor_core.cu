/* One pass of k-means on matrix units for up to 16 clusters; meaning as in fused.cl. CUDA C++, from compute
   capability 8.0: `mma.sync` m16n8k32 of bytes with 32-bit sums, so that scores and sums stay exact integers; m16n8k16 for the last 16
   dimensions of an odd number of such units.

   Each warp works for itself: 32 points at a time, staged by asynchronous copies STAGES deep.
     scores  A = points (rows, 16 at a time), B = upper bytes of the centres, then lower ones into 256 times the first
     sums    A = one-hot labels (16 classes by 32 points), B = points, whose bytes are brought side by side by transposing
             loads of pairs and PRMT; sums stay in registers to the end

   Rows lie 128 bytes apart in local memory, 16-byte unit u of row r at u ^ (r % 8), which makes `ldmatrix` free of bank
   conflicts.

   Macros: K, DIMS (a multiple of 16), WARPS, STAGES. */
#include "matrix_units.h"
#include "pass.cl"

#define UNITS (DIMS / 16)
#define STEPS ((UNITS + 1) / 2) /* of 32 dimensions, or 16 in the last one */
#define TILES ((K + 7) / 8)
#define PADDED (TILES * 8)
#define ROW 128 /* bytes */
#define WORDS (DIMS / 4)

#define CENTRES_AT 0 /* bytes: upper rows, then lower rows */
#define STAGED_AT (2 * PADDED * ROW)
#define SUMS_AT (STAGED_AT + WARPS * STAGES * 32 * ROW)
#define HALVES_AT (SUMS_AT + 4 * K * DIMS)
#define COUNTS_AT (HALVES_AT + 4 * PADDED)
#define LABELS_AT (COUNTS_AT + 4 * PADDED)
#define ARENA (LABELS_AT + WARPS * 32)

#define PLACE(row, unit) ((row) * ROW + (((unit) ^ ((row) & 7)) << 4))

__kernel void REQD_GROUP(32 * WARPS) pass(PARAMETERS(uint)) {
    LOCAL_ARENA(uchar, arena, ARENA);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint4 tile = vload4(get_group_id(0), tiles);
    uint node = tile.x, first = tile.y, length = moving[node] ? tile.z : 0;
    uint *sum = (uint *)(arena + SUMS_AT), *count = (uint *)(arena + COUNTS_AT);
    int *half_norm = (int *)(arena + HALVES_AT);

    for (uint i = item; i < PADDED * WORDS; i += 32 * WARPS) {
        uint k = i / WORDS, w = i % WORDS, a = 0, b = 0;
        if (k < K) {
            a = centres[2 * ((size_t)node * K * WORDS + i)];
            b = centres[2 * ((size_t)node * K * WORDS + i) + 1];
        }
        uint at = PLACE(k, w / 4) + w % 4 * 4;
        *(uint *)(arena + at) = __byte_perm(a, b, 0x7531);
        *(uint *)(arena + PADDED * ROW + at) = __byte_perm(a, b, 0x6420);
    }
    for (uint i = item; i < K * DIMS; i += 32 * WARPS) sum[i] = 0;
    for (uint i = item; i < PADDED; i += 32 * WARPS) {
        half_norm[i] = i < K ? halves[node * K + i] : INT_MAX;
        count[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    uchar *own = arena + STAGED_AT + warp * STAGES * 32 * ROW, *label = arena + LABELS_AT + warp * 32;
    const uchar *from = (const uchar *)(points + (size_t)first * WORDS);
    uint blocks = (length + 31) / 32;

    auto stage = [&](uint block, uint place) {
        if (block < blocks) {
            for (uint i = lane; i < 32 * UNITS; i += 32) {
                uint row = i / UNITS, unit = i % UNITS, point = min(block * 32 + row, length - 1);
                copy_async(own + place * 32 * ROW + PLACE(row, unit), from + (size_t)point * DIMS + 16 * unit);
            }
        }
        commit_copies();
    };

    int added[UNITS][2][4] = {};
    uint number[2] = {};
    for (int s = 0; s < STAGES - 1; ++s) stage(warp + s * WARPS, s);
    uint place = 0;
    for (uint block = warp; block < blocks; block += WARPS) {
        stage(block + (STAGES - 1) * WARPS, (place + STAGES - 1) % STAGES);
        await_copies<STAGES - 1>();
        __syncwarp();
        const uchar *rows = own + place * 32 * ROW;

        uint x[2][STEPS][4]; /* points 16 m + g and 8 more, bytes 32 s + 4 t and 16 more */
        #pragma unroll
        for (int m = 0; m < 2; ++m) {
            #pragma unroll
            for (int s = 0; s < STEPS; ++s) load_matrices(x[m][s], rows + PLACE(16 * m + lane % 16, min(2 * s + lane / 16, UNITS - 1u)));
        }
        int best[2][2];
        uint nearest[2][2];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            best[i / 2][i % 2] = -INT_MAX - 1;
            nearest[i / 2][i % 2] = 0;
        }
        #pragma unroll
        for (int n = 0; n < TILES; ++n) {
            int score[2][4] = {};
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uchar *part = arena + half * PADDED * ROW;
                #pragma unroll
                for (int i = 0; half && i < 8; ++i) score[i / 4][i % 4] *= 256;
                #pragma unroll
                for (int s = 0; s < STEPS; s += 2) { /* two steps: 64 bytes of 8 centres */
                    uint y[4];
                    load_matrices(y, part + PLACE(8 * n + lane % 8, min(2 * s + lane / 8, UNITS - 1u)));
                    #pragma unroll
                    for (int i = 0; i < 2 && s + i < STEPS; ++i) {
                        #pragma unroll
                        for (int m = 0; m < 2; ++m) {
                            if (2 * (s + i) + 1 < UNITS) {
                                multiply(score[m], x[m][s + i], y[2 * i], y[2 * i + 1]);
                            } else {
                                multiply_half(score[m], x[m][s + i], y[2 * i]);
                            }
                        }
                    }
                }
            }
            #pragma unroll
            for (int i = 0; i < 8; ++i) { /* point 16 m + g + 8 h, centre 8 n + 2 t + j */
                int m = i / 4, h = i / 2 % 2;
                uint k = 8 * n + 2 * t + i % 2;
                int value = score[m][i % 4] - half_norm[k];
                if (value > best[m][h]) {
                    best[m][h] = value;
                    nearest[m][h] = k;
                }
            }
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            int m = i / 2, h = i % 2;
            best_of_row(&best[m][h], &nearest[m][h]);
            if (t == 0) label[16 * m + 8 * h + g] = (uchar)nearest[m][h];
        }
        __syncwarp();
        uint point = block * 32 + lane, k = label[lane];
        if (point < length) labels[first + point] = (uchar)k;
        __syncwarp();
        if (point >= length) label[lane] = 0x7F;
        __syncwarp();
        uint hot[4];
        one_hot(hot, label, g, t);
        number[0] = __dp4a(hot[2], 0x01010101u, __dp4a(hot[0], 0x01010101u, number[0]));
        number[1] = __dp4a(hot[3], 0x01010101u, __dp4a(hot[1], 0x01010101u, number[1]));
        #pragma unroll
        for (int u = 0; u < UNITS; ++u) add_unit(added[u], hot, rows + PLACE(lane, u));
        __syncwarp();
        place = (place + 1) % STAGES;
    }
    await_copies<0>();
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
        number[h] += __shfl_xor_sync(~0u, number[h], 1);
        number[h] += __shfl_xor_sync(~0u, number[h], 2);
        if (t == 0 && g + 8 * h < K) atomic_add(count + g + 8 * h, number[h]);
    }
    #pragma unroll
    for (int u = 0; u < UNITS; ++u) {
        #pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) { /* class g + 8 (r / 2), column 2 t + r % 2 of 8: dimension 16 u + 2 column + odd */
                uint k = g + r / 2 * 8, d = 16 * u + 2 * (2 * t + r % 2) + odd;
                if (k < K && added[u][odd][r]) atomic_add(sum + k * DIMS + d, (uint)added[u][odd][r]);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (length) {
        for (uint i = item; i < K * DIMS; i += 32 * WARPS) {
            if (sum[i]) atomic_add(sums + (size_t)node * K * DIMS + i, sum[i]);
        }
        for (uint i = item; i < K; i += 32 * WARPS) {
            if (count[i]) atomic_add(counts + node * K + i, count[i]);
        }
    }
}
