/* One pass of k-means: labels, sums and counts from one read of the points. A work-group takes a tile (a run of points of
   one node), STEP points at a time: rows go to local memory, each work-item classifies POINTS of them, then work-items
   own four neighbouring dimensions each and add the rows up.

   A centre is 16-bit fixed point, 8 bits of fraction, C = 256 hi + lo; half is (C . C) / 512, rounded. The label is that of
   the largest 256 (x . hi) + x . lo - half, the lowest of equals: integers throughout.

   Macros: K, DIMS, GROUP, POINTS, CENTRES (held at a time), SUMS:
     0  a 32-bit atomic for each byte, in local memory
     1  a 32-bit atomic for two bytes in 16-bit halves, emptied after each step
     2  lists of the step's rows by label; halves are added in registers (K of them), emptied before they can overflow

   Row w + WORDS * j of a cluster's sums holds dimension 4 w + j, so that neighbouring work-items hit different banks. */
#include "pass.cl"

#define WORDS (DIMS / 4)
#define PITCH (WORDS + 4)
#define STEP (GROUP * POINTS)
#define LANES (GROUP / WORDS) /* rows that are added at a time */
#define MASK 0x00FF00FFu
#if SUMS == 0
#define EXTRA 0
#elif SUMS == 1
#define EXTRA (K * 2 * WORDS)
#else
#define EXTRA (K * STEP / 2 + K)
#endif
#define SUMS_AT (2 * K * WORDS)
#define COUNTS_AT (SUMS_AT + K * DIMS)
#define HALVES_AT (COUNTS_AT + K)
#define LABELS_AT (HALVES_AT + K)
#define EXTRA_AT (LABELS_AT + STEP)
#define ROWS_AT ((EXTRA_AT + EXTRA + 3) / 4 * 4)
#define ARENA (ROWS_AT + STEP * PITCH)
#define STEPS_HELD (257 / ((STEP + LANES - 1) / LANES)) /* steps whose sums of one lane fit 16 bits */

#if SUMS == 2
/* Adds a lane's halves to the sums, and clears them. */
void empty(__local uint *sums, uint word, uint *even, uint *odd) {
    for (int k = 0; k < K; ++k) {
        if (even[k] | odd[k]) {
            atomic_add(sums + k * DIMS + word, even[k] & 0xFFFFu);
            atomic_add(sums + k * DIMS + 2 * WORDS + word, even[k] >> 16);
            atomic_add(sums + k * DIMS + WORDS + word, odd[k] & 0xFFFFu);
            atomic_add(sums + k * DIMS + 3 * WORDS + word, odd[k] >> 16);
        }
        even[k] = odd[k] = 0;
    }
}
#endif

__kernel void REQD_GROUP(GROUP) pass(PARAMETERS(uint)) {
    LOCAL_ARENA(uint, arena, ARENA);
    __local uint *hi = arena, *lo = arena + K * WORDS, *sum = arena + SUMS_AT, *count = arena + COUNTS_AT;
    __local int *half_norm = (__local int *)(arena + HALVES_AT);
    __local uint *label = arena + LABELS_AT, *rows = arena + ROWS_AT;
    uint item = get_local_id(0), word = item % WORDS, lane = item / WORDS;
    uint4 tile = vload4(get_group_id(0), tiles);
    uint node = tile.x, first = tile.y, length = moving[node] ? tile.z : 0;

    for (uint i = item; i < K * WORDS; i += GROUP) {
        uint a = centres[2 * ((size_t)node * K * WORDS + i)], b = centres[2 * ((size_t)node * K * WORDS + i) + 1];
        hi[i] = UPPER(a, b);
        lo[i] = LOWER(a, b);
    }
    for (uint i = item; i < K * DIMS; i += GROUP) sum[i] = 0;
    for (uint i = item; i < K; i += GROUP) {
        half_norm[i] = halves[node * K + i];
        count[i] = 0;
    }
#if SUMS == 1
    __local uint *extra = arena + EXTRA_AT;
    for (uint i = item; i < EXTRA; i += GROUP) extra[i] = 0;
#elif SUMS == 2
    __local ushort *list = (__local ushort *)(arena + EXTRA_AT);
    __local uint *listed = arena + EXTRA_AT + K * STEP / 2;
    uint even[K], odd[K], held = 0;
    for (int k = 0; k < K; ++k) even[k] = odd[k] = 0;
#endif

    for (uint base = 0; base < length; base += STEP) {
        uint here = min((uint)STEP, length - base);
        __global const uint *from = points + (size_t)(first + base) * WORDS;
        for (uint i = item; i < here * (WORDS / 4); i += GROUP) {
            uint row = i / (WORDS / 4), column = i % (WORDS / 4);
            vstore4(vload4(i, from), 0, rows + row * PITCH + 4 * column);
        }
#if SUMS == 2
        for (uint i = item; i < K; i += GROUP) listed[i] = 0;
#endif
        barrier(CLK_LOCAL_MEM_FENCE);

        int best[POINTS];
        uint nearest[POINTS];
        #pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            best[p] = -INT_MAX - 1;
            nearest[p] = 0;
        }
        for (uint k = 0; k < K; k += CENTRES) {
            uint upper[CENTRES][POINTS], lower[CENTRES][POINTS];
            #pragma unroll
            for (int c = 0; c < CENTRES; ++c) {
                #pragma unroll
                for (int p = 0; p < POINTS; ++p) upper[c][p] = lower[c][p] = 0;
            }
            for (uint w = 0; w < WORDS; w += 4) {
                uint4 x[POINTS];
                #pragma unroll
                for (int p = 0; p < POINTS; ++p) x[p] = vload4(0, rows + min(item + p * GROUP, here - 1) * PITCH + w);
                #pragma unroll
                for (int c = 0; c < CENTRES; ++c) {
                    uint4 h = vload4(0, hi + (k + c) * WORDS + w), l = vload4(0, lo + (k + c) * WORDS + w);
                    #pragma unroll
                    for (int p = 0; p < POINTS; ++p) {
                        upper[c][p] = DOT4_U8(x[p].x, h.x, DOT4_U8(x[p].y, h.y, upper[c][p]));
                        upper[c][p] = DOT4_U8(x[p].z, h.z, DOT4_U8(x[p].w, h.w, upper[c][p]));
                        lower[c][p] = DOT4_U8(x[p].x, l.x, DOT4_U8(x[p].y, l.y, lower[c][p]));
                        lower[c][p] = DOT4_U8(x[p].z, l.z, DOT4_U8(x[p].w, l.w, lower[c][p]));
                    }
                }
            }
            #pragma unroll
            for (int c = 0; c < CENTRES; ++c) {
                #pragma unroll
                for (int p = 0; p < POINTS; ++p) {
                    int score = (int)(256 * upper[c][p] + lower[c][p]) - half_norm[k + c];
                    if (score > best[p]) {
                        best[p] = score;
                        nearest[p] = k + c;
                    }
                }
            }
        }
        #pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            uint row = item + p * GROUP;
            if (row < here) {
                label[row] = nearest[p];
                labels[first + base + row] = (uchar)nearest[p];
#if SUMS == 2
                list[nearest[p] * STEP + atomic_inc(listed + nearest[p])] = (ushort)row;
#else
                atomic_inc(count + nearest[p]);
#endif
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

#if SUMS == 2
        for (uint i = item; i < K; i += GROUP) count[i] += listed[i];
        if (lane < LANES) {
            #pragma unroll
            for (int k = 0; k < K; ++k) {
                for (uint i = lane, end = listed[k]; i < end; i += LANES) {
                    uint x = rows[list[k * STEP + i] * PITCH + word];
                    even[k] += x & MASK;
                    odd[k] += x >> 8 & MASK;
                }
            }
            if (++held == STEPS_HELD) {
                empty(sum, word, even, odd);
                held = 0;
            }
        }
#else
        if (lane < LANES) {
            for (uint row = lane; row < here; row += LANES) {
                uint x = rows[row * PITCH + word], k = label[row];
#if SUMS == 1
                atomic_add(extra + k * 2 * WORDS + word, x & MASK);
                atomic_add(extra + (k * 2 + 1) * WORDS + word, x >> 8 & MASK);
#else
                atomic_add(sum + k * DIMS + word, x & 0xFFu);
                atomic_add(sum + k * DIMS + WORDS + word, x >> 8 & 0xFFu);
                atomic_add(sum + k * DIMS + 2 * WORDS + word, x >> 16 & 0xFFu);
                atomic_add(sum + k * DIMS + 3 * WORDS + word, x >> 24);
#endif
            }
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
#if SUMS == 1
        for (uint i = item; i < EXTRA; i += GROUP) {
            uint pair = extra[i], at = i / (2 * WORDS) * DIMS + i % (2 * WORDS);
            sum[at] += pair & 0xFFFFu;
            sum[at + 2 * WORDS] += pair >> 16;
            extra[i] = 0;
        }
#endif
    }
#if SUMS == 2
    if (lane < LANES) empty(sum, word, even, odd);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (length) {
        for (uint i = item; i < K * DIMS; i += GROUP) {
            uint k = i / DIMS, d = i % DIMS, value = sum[k * DIMS + d % 4 * WORDS + d / 4];
            if (value) atomic_add(sums + (size_t)node * K * DIMS + i, value);
        }
        for (uint i = item; i < K; i += GROUP) {
            if (count[i]) atomic_add(counts + node * K + i, count[i]);
        }
    }
}
