/* Reads a set that a cache holds, again and again. UNROLL vectors per work-item and step are in flight; LANES is the size of
   the work-group, so that their addresses differ by constants. */

#ifdef REREAD
#if PAST_L1
#define READ LOAD_PAST_L1_4
#else
#define READ LOAD
#endif

/* Each work-group walks `set` vectors (a multiple of UNROLL work-groups' vectors) of its own slice, `slice` vectors after
   the one before; with slice = 0 all walk the same set, each from another place. */
__kernel void reread(__global const float *RESTRICT data, __global float *RESTRICT out, ulong slice, uint set, uint steps) {
    __global const float *own = data + get_group_id(0) * slice * WIDTH;
    const size_t lanes = LANES, stride = UNROLL * LANES, last = set; /* of 64 bits: offsets of 32 could wrap */
    size_t at = get_group_id(0) * (last / stride) / get_num_groups(0) * stride;
    vec sum[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) sum[u] = SPLAT(0.0f);
    for (uint s = 0; s < steps; ++s) {
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum[u] = sum[u] + READ(at + u * lanes + get_local_id(0), own);
        at = at + stride < last ? at + stride : 0;
    }
    for (int u = 1; u < UNROLL; ++u) sum[0] = sum[0] + sum[u];
    out[get_global_id(0)] = SUM(sum[0]);
}
#endif

#ifdef UNIFORM_READ
/* All work-items of a group read one place at a time of a small table. What they do with it differs, or a compiler would
   do it once for all of them. */
__kernel void uniform_read(__constant float *RESTRICT table, __global float *RESTRICT out, uint set, uint steps) {
    vec factor = SPLAT(1.0f + 0.001f * (float)(get_local_id(0) & 1023));
    size_t at = 0, last = set;
    vec sum[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) sum[u] = SPLAT(0.0f);
    for (uint s = 0; s < steps; ++s) {
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum[u] = fma(LOAD(at + u, table), factor, sum[u]);
        at = at + UNROLL < last ? at + UNROLL : 0;
    }
    for (int u = 1; u < UNROLL; ++u) sum[0] = sum[0] + sum[u];
    out[get_global_id(0)] = SUM(sum[0]);
}
#endif
