/* Kernels whose best shape is a device's ceiling. Macros choose the shape:
   WIDTH     vector width in floats (1, 4, 8, 16)
   CHUNKED   1: each work-group walks a contiguous chunk; 0: grid-stride over the whole array
   UNROLL    independent loads in flight per work-item (read, copy)
   CHAINS    independent recurrences per work-item (fma)
   QUADRATIC 1: x = x * x + c, 0: x = x * a + c */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if WIDTH == 1
typedef float vec;
#define LOAD(i, p) ((p)[i])
#define STORE(v, i, p) ((p)[i] = (v))
#define SPLAT(a) (a)
#define SUM(v) (v)
#else
typedef JOIN(float, WIDTH) vec;
#define LOAD(i, p) JOIN(vload, WIDTH)((i), (p))
#define STORE(v, i, p) JOIN(vstore, WIDTH)((v), (i), (p))
#define SPLAT(a) JOIN(SPLAT_FLOAT, WIDTH)(a)
#define SUM(v) JOIN(hsum, WIDTH)(v)
#endif

/* The vectors that this work-item walks: `first`, `first + step`, ... below `last`. */
#if CHUNKED
#define WALK(n)                                                                 \
    size_t per_group = ((n) + get_num_groups(0) - 1) / get_num_groups(0);       \
    size_t first = get_group_id(0) * per_group + get_local_id(0);               \
    size_t end = get_group_id(0) * per_group + per_group;                       \
    size_t last = end < (n) ? end : (n);                                        \
    size_t step = get_local_size(0)
#else
#define WALK(n)                                                                 \
    size_t first = get_global_id(0), last = (n), step = get_global_size(0)
#endif

#ifdef READ
__kernel void read_sum(__global const float *RESTRICT a, __global float *RESTRICT out, ulong n) {
    WALK(n);
    vec sum[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) sum[u] = SPLAT(0.0f);
    size_t i = first;
    for (; i + (UNROLL - 1) * step < last; i += UNROLL * step) {
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum[u] = sum[u] + LOAD(i + u * step, a);
    }
    for (; i < last; i += step) sum[0] = sum[0] + LOAD(i, a);
    for (int u = 1; u < UNROLL; ++u) sum[0] = sum[0] + sum[u];
    out[get_global_id(0)] = SUM(sum[0]);
}
#endif

#ifdef COPY
__kernel void copy(__global const float *RESTRICT a, __global float *RESTRICT b, ulong n) {
    WALK(n);
    size_t i = first;
    for (; i + (UNROLL - 1) * step < last; i += UNROLL * step) {
        vec v[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) v[u] = LOAD(i + u * step, a);
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) STORE(v[u], i + u * step, b);
    }
    for (; i < last; i += step) STORE(LOAD(i, a), i, b);
}
#endif

#ifdef TRIAD
__kernel void triad(__global const float *RESTRICT a, __global const float *RESTRICT b, __global float *RESTRICT c, ulong n) {
    WALK(n);
    for (size_t i = first; i < last; i += step) STORE(LOAD(i, a) + LOAD(i, b) * SPLAT(0.4f), i, c);
}
#endif

#ifdef FMA
__kernel void fma_chains(__global float *out, float a, float c, int steps) {
    vec x[CHAINS];
    #pragma unroll
    for (int k = 0; k < CHAINS; ++k) x[k] = SPLAT(0.3f + 0.01f * k + 1e-7f * (float)(get_global_id(0) & 1023));
    vec factor = SPLAT(a), offset = SPLAT(c);
    for (int s = 0; s < steps; ++s) {
#if QUADRATIC
        #pragma unroll
        for (int k = 0; k < CHAINS; ++k) x[k] = fma(x[k], x[k], offset);
#else
        #pragma unroll
        for (int k = 0; k < CHAINS; ++k) x[k] = fma(x[k], factor, offset);
#endif
    }
    for (int k = 1; k < CHAINS; ++k) x[0] = x[0] + x[k];
    out[get_global_id(0)] = SUM(x[0]);
}
#endif
