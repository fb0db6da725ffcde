/* Reads local memory. Neighbouring work-items are STRIDE vectors apart in a tile of TILE vectors (a power of two): with 1
   they touch all banks, with 32 words one and the same. UNROLL reads per step lie HOP vectors apart. */
__kernel void local_read(__global const float *RESTRICT data, __global float *RESTRICT out, uint steps) {
    LOCAL_ARRAY(float, tile, (TILE + UNROLL * HOP) * WIDTH);
    for (uint i = (uint)get_local_id(0); i < (TILE + UNROLL * HOP) * WIDTH; i += (uint)get_local_size(0)) tile[i] = data[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    uint at = ((uint)get_local_id(0) * STRIDE) & (TILE - 1);
    vec sum[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) sum[u] = SPLAT(0.0f);
    for (uint s = 0; s < steps; ++s) {
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum[u] = sum[u] + LOAD(at + u * HOP, tile);
        at = (at + 1) & (TILE - 1);
    }
    for (int u = 1; u < UNROLL; ++u) sum[0] = sum[0] + sum[u];
    out[get_global_id(0)] = SUM(sum[0]);
}
