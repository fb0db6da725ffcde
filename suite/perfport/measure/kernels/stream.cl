/* Streams over arrays in DRAM. The macro of its name in capitals chooses the kernel: to compile one takes time enough.
   WALK      0: grid-stride over the whole array; 1: each work-group walks one of equal chunks; 2: it takes UNROLL vectors
             for each work-item, and there are as many work-groups as it takes; 3: as 1, and it ends with one sum (read)
   GROUP     work-items per work-group, a power of two (walk 3)
   UNROLL    independent loads in flight per work-item (read, copy)
   STREAMING 1: loads and stores carry the hint that data is not used again (copy) */
#if STREAMING
#define GET(i, p) JOIN(STREAM_LOAD, WIDTH)((i), (p))
#define PUT(v, i, p) JOIN(STREAM_STORE, WIDTH)((v), (i), (p))
#else
#define GET LOAD
#define PUT STORE
#endif

/* The vectors that this work-item takes: `first`, `first + step`, ... below `last`. */
#if WALK == 0
#define TAKE(n)                                                                 \
    size_t first = get_global_id(0), last = (n), step = get_global_size(0)
#else
#if WALK != 2
#define PER_GROUP(n) (((n) + get_num_groups(0) - 1) / get_num_groups(0))
#else
#define PER_GROUP(n) (UNROLL * get_local_size(0))
#endif
#define TAKE(n)                                                                 \
    size_t per_group = PER_GROUP(n);                                            \
    size_t first = get_group_id(0) * per_group + get_local_id(0);               \
    size_t end = get_group_id(0) * per_group + per_group;                       \
    size_t last = end < (n) ? end : (n);                                        \
    size_t step = get_local_size(0)
#endif

#ifdef READ_SUM
__kernel void read_sum(__global const float *RESTRICT a, __global float *RESTRICT out, ulong n) {
    TAKE(n);
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
#if WALK == 3
    LOCAL_ARRAY(float, part, GROUP);
    uint item = get_local_id(0);
    part[item] = SUM(sum[0]);
    for (uint reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) part[item] += part[item + reach];
    }
    if (item == 0) out[get_group_id(0)] = part[0];
#else
    out[get_global_id(0)] = SUM(sum[0]);
#endif
}
#endif

#ifdef COPY
__kernel void copy(__global const float *RESTRICT a, __global float *RESTRICT b, ulong n) {
    TAKE(n);
    size_t i = first;
    for (; i + (UNROLL - 1) * step < last; i += UNROLL * step) {
        vec v[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) v[u] = GET(i + u * step, a);
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) PUT(v[u], i + u * step, b);
    }
    for (; i < last; i += step) PUT(GET(i, a), i, b);
}
#endif

#ifdef TRIAD
__kernel void triad(__global const float *RESTRICT a, __global const float *RESTRICT b, __global float *RESTRICT c, ulong n) {
    TAKE(n);
    for (size_t i = first; i < last; i += step) PUT(GET(i, a) + GET(i, b) * SPLAT(0.4f), i, c);
}
#endif
