/* out[i] = 2 * x[i], by kernels that are clean or hold one planted bug each. Work-groups of 64. */
#define PARAMETERS __global const float *x, __global float *scratch, __global float *out, uint n

__kernel void clean(PARAMETERS) {
    LOCAL_ARRAY(float, tile, 64);
    uint i = get_global_id(0), l = get_local_id(0);
    tile[l] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    float neighbour = tile[63 - l];
    if (i < n) out[i] = 2.0f * x[i] + 0.0f * neighbour;
}

/* No barrier between writing the tile and reading a neighbour's word. */
__kernel void race_local(PARAMETERS) {
    LOCAL_ARRAY(float, tile, 64);
    uint i = get_global_id(0), l = get_local_id(0);
    tile[l] = i < n ? x[i] : 0.0f;
    float neighbour = tile[63 - l];
    if (i < n) out[i] = 2.0f * x[i] + (neighbour > 1e30f ? 1.0f : 0.0f);
}

/* Work-items of several groups write different values to one word. */
__kernel void race_global(PARAMETERS) {
    uint i = get_global_id(0);
    scratch[0] = (float)i;
    if (i < n) out[i] = 2.0f * x[i];
}

/* The last work-item reads the word behind the input. */
__kernel void read_outside(PARAMETERS) {
    uint i = get_global_id(0);
    if (i >= n) return;
    float next = x[i + 1];
    out[i] = 2.0f * x[i] + (next == 1e30f ? 1.0f : 0.0f);
}

/* The guard is off by one. */
__kernel void write_outside(PARAMETERS) {
    uint i = get_global_id(0);
    if (i <= n) out[i] = i < n ? 2.0f * x[i] : 0.0f;
}

/* Half of the tile is never written. */
__kernel void unwritten_local(PARAMETERS) {
    LOCAL_ARRAY(float, tile, 64);
    uint i = get_global_id(0), l = get_local_id(0);
    if (l < 32) tile[l] = 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    float other = tile[63 - l];
    if (i < n) out[i] = 2.0f * x[i] + (other == 1e30f ? 1.0f : 0.0f);
}

/* A scratch buffer is read that nobody wrote. */
__kernel void unwritten_global(PARAMETERS) {
    uint i = get_global_id(0);
    if (i < n) out[i] = 2.0f * x[i] + (scratch[i % 4] == 1e30f ? 1.0f : 0.0f);
}

/* Half of the work-group leaves before the barrier. */
__kernel void divergent_barrier(PARAMETERS) {
    LOCAL_ARRAY(float, tile, 64);
    uint i = get_global_id(0), l = get_local_id(0);
    tile[l] = 1.0f;
    if (l < 32) barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) out[i] = 2.0f * x[i];
}
