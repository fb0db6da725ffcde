/* The source's ladder: classify and sum as kernels of their own, over one node. Centres are floats here; macros: K, DIMS,
   GROUP, and for the sums ROWS (of a group that share a dimension) and RUN (points of a group). */

#if defined(NAIVE)
/* A work-item per point; everything in global memory. */
__kernel void classify(__global const float *RESTRICT points, __global const float *RESTRICT centres, uint count,
                       __global uchar *RESTRICT labels) {
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        float best = INFINITY;
        uint nearest = 0;
        for (uint k = 0; k < K; ++k) {
            float distance = 0.0f;
            for (uint d = 0; d < DIMS; ++d) {
                float difference = points[(size_t)i * DIMS + d] - centres[k * DIMS + d];
                distance = fma(difference, difference, distance);
            }
            if (distance < best) {
                best = distance;
                nearest = k;
            }
        }
        labels[i] = (uchar)nearest;
    }
}

/* A work-item per point and dimension; an atomic for each. */
__kernel void sum(__global const float *RESTRICT points, __global const uchar *RESTRICT labels, uint count,
                  __global uint *RESTRICT sums, __global uint *RESTRICT counts) {
    for (uint i = get_global_id(0); i < count * DIMS; i += get_global_size(0)) {
        uint k = labels[i / DIMS], d = i % DIMS;
        atomic_add(sums + k * DIMS + d, (uint)points[i]);
        if (d == 0) atomic_inc(counts + k);
    }
}
#else

#if LAYOUT == 0 /* rows, a byte at a time */
#define LOAD 1
#define WORD_OF(i, d) points[(size_t)(i) * DIMS + (d)]
typedef uchar word;
#else /* a uint4 holds 16 dimensions of a point */
#define LOAD 16
#if LAYOUT == 1 /* rows */
#define AT(i, unit) ((size_t)(i) * (DIMS / 16) + (unit))
#else /* unit by unit: the same unit of neighbouring points side by side */
#define AT(i, unit) ((size_t)(unit) * count + (i))
#endif
typedef uint word;
#endif

#define ADD_BYTE(x, c)                        \
    {                                         \
        float difference = (float)(x) - (c);  \
        distance = fma(difference, difference, distance); \
    }
#define ADD_WORD(x, at)              \
    ADD_BYTE((x) & 0xFFu, (at)[0])   \
    ADD_BYTE((x) >> 8 & 0xFFu, (at)[1])  \
    ADD_BYTE((x) >> 16 & 0xFFu, (at)[2]) \
    ADD_BYTE((x) >> 24, (at)[3])

/* Centres in local memory. */
__kernel void REQD_GROUP(GROUP) classify(__global const word *RESTRICT points, __global const float *RESTRICT centres,
                                         uint count, __global uchar *RESTRICT labels) {
    LOCAL_ARENA(float, near, K * DIMS);
    for (uint i = get_local_id(0); i < K * DIMS; i += GROUP) near[i] = centres[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
#if LAYOUT
        uint4 x[DIMS / 16];
        #pragma unroll
        for (uint u = 0; u < DIMS / 16; ++u) x[u] = vload4(AT(i, u), points);
#endif
        float best = INFINITY;
        uint nearest = 0;
        for (uint k = 0; k < K; ++k) {
            float distance = 0.0f;
#if LAYOUT
            #pragma unroll
            for (uint u = 0; u < DIMS / 16; ++u) {
                __local const float *c = near + k * DIMS + 16 * u;
                ADD_WORD(x[u].x, c)
                ADD_WORD(x[u].y, c + 4)
                ADD_WORD(x[u].z, c + 8)
                ADD_WORD(x[u].w, c + 12)
            }
#else
            for (uint d = 0; d < DIMS; ++d) ADD_BYTE(WORD_OF(i, d), near[k * DIMS + d])
#endif
            if (distance < best) {
                best = distance;
                nearest = k;
            }
        }
        labels[i] = (uchar)nearest;
    }
}

/* Work-items own a dimension each, ROWS of them share one; partial sums lie in local memory, are combined by halving, and
   a group adds one value per class and dimension to global memory.
   LAYOUT 0: a byte of a row at a time. 1: dimension-major, four neighbouring points of a dimension in one load.
   2: groups of RUN points, dimension-major inside, so that a work-group reads one contiguous piece. */
__kernel void REQD_GROUP(DIMS * ROWS) sum(__global const word *RESTRICT points, __global const uchar *RESTRICT labels,
                                         uint count, uint pitch, __global uint *RESTRICT sums,
                                         __global uint *RESTRICT counts) {
    LOCAL_ARENA(uint, partial, ROWS * K * (DIMS + 1));
    uint item = get_local_id(0), d = item % DIMS, row = item / DIMS;
    uint first = get_group_id(0) * RUN, last = min(first + RUN, count);
    __local uint *own = partial + row * K * DIMS + d, *number = partial + ROWS * K * DIMS + row * K;
    for (uint k = 0; k < K; ++k) {
        own[k * DIMS] = 0;
        if (d == 0) number[k] = 0;
    }
#if LAYOUT == 0
    for (uint i = first + row; i < last; i += ROWS) {
        uint k = labels[i];
        own[k * DIMS] += WORD_OF(i, d);
        if (d == 0) ++number[k];
    }
#else
#if LAYOUT == 1
    __global const uint *from = points + ((size_t)d * pitch + first) / 4;
#else
    __global const uint *from = points + ((size_t)first * DIMS + d * RUN) / 4;
#endif
    for (uint i = 4 * row; i < last - first; i += 4 * ROWS) {
        uint x = from[i / 4];
        for (uint j = 0; j < 4 && first + i + j < last; ++j) {
            uint k = labels[first + i + j];
            own[k * DIMS] += x >> 8 * j & 0xFFu;
            if (d == 0) ++number[k];
        }
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_rows = ROWS / 2; half_rows > 0; half_rows /= 2) {
        if (row < half_rows) {
            for (uint k = 0; k < K; ++k) {
                own[k * DIMS] += own[(half_rows * K + k) * DIMS];
                if (d == 0) number[k] += number[half_rows * K + k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row == 0) {
        for (uint k = 0; k < K; ++k) {
            atomic_add(sums + k * DIMS + d, own[k * DIMS]);
            if (d == 0) atomic_add(counts + k, number[k]);
        }
    }
}
#endif
