/* Arg-min and arg-max in two launches: `parts` leaves one candidate per work-group, `finish` (one group) reduces those.
   Values and indices lie in arrays of their own (structure of arrays); the lowest index wins among equals.
   PAIRS      1: the input is (value, index) pairs, an array of structures
   WIDTH      elements per load */
#include "arg_tree.cl"

__kernel void parts(__global const float *RESTRICT input, uint n, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0), group = get_group_id(0);
    /* Each group walks a chunk of whole vectors; n may leave a rest, which the last group takes word by word. */
    uint vectors = n / WIDTH;
    uint per_group = (vectors + get_num_groups(0) - 1) / get_num_groups(0);
    uint first = min(group * per_group, vectors), last = min(first + per_group, vectors);
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_i = UINT_MAX, max_i = UINT_MAX;
#if WIDTH == 1
    for (uint k = first + item; k < last; k += GROUP) {
#if PAIRS
        float v = input[2 * (size_t)k];
        uint i = as_uint(input[2 * (size_t)k + 1]);
#else
        float v = input[k];
        uint i = k;
#endif
        if (MIN) KEEP(v < min_v, v, i, min_v, min_i);
        if (MAX) KEEP(v > max_v, v, i, max_v, max_i);
    }
#else
    float lane_min[WIDTH], lane_max[WIDTH];
    uint lane_min_k[WIDTH], lane_max_k[WIDTH];
    #pragma unroll
    for (int l = 0; l < WIDTH; ++l) {
        lane_min[l] = INFINITY;
        lane_max[l] = -INFINITY;
        lane_min_k[l] = lane_max_k[l] = UINT_MAX;
    }
    #pragma unroll UNROLL
    for (uint k = first + item; k < last; k += GROUP) {
        float v[WIDTH];
        #pragma unroll
        for (int l = 0; l < WIDTH; l += 4) {
            float4 four = vload4((size_t)k * (WIDTH / 4) + l / 4, input);
            v[l] = four.x;
            v[l + 1] = four.y;
            v[l + 2] = four.z;
            v[l + 3] = four.w;
        }
        #pragma unroll
        for (int l = 0; l < WIDTH; ++l) {
            if (MIN) KEEP(v[l] < lane_min[l], v[l], k, lane_min[l], lane_min_k[l]);
            if (MAX) KEEP(v[l] > lane_max[l], v[l], k, lane_max[l], lane_max_k[l]);
        }
    }
    #pragma unroll
    for (int l = 0; l < WIDTH; ++l) {
        uint min_at = lane_min_k[l] * WIDTH + l, max_at = lane_max_k[l] * WIDTH + l;
        if (lane_min_k[l] != UINT_MAX) KEEP(LOWER(lane_min[l], min_at, min_v, min_i), lane_min[l], min_at, min_v, min_i);
        if (lane_max_k[l] != UINT_MAX) KEEP(HIGHER(lane_max[l], max_at, max_v, max_i), lane_max[l], max_at, max_v, max_i);
    }
    if (group + 1 == get_num_groups(0)) {
        for (uint k = vectors * WIDTH + item; k < n; k += GROUP) {
            float v = input[k];
            if (MIN) KEEP(LOWER(v, k, min_v, min_i), v, k, min_v, min_i);
            if (MAX) KEEP(HIGHER(v, k, max_v, max_i), v, k, max_v, max_i);
        }
    }
#endif
    if (MIN) {
        TREE(values, indices, item, LOWER, min_v, min_i);
        if (item == 0) {
            min_value[group] = min_v;
            min_index[group] = min_i;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (MAX) {
        TREE(values, indices, item, HIGHER, max_v, max_i);
        if (item == 0) {
            max_value[group] = max_v;
            max_index[group] = max_i;
        }
    }
}

__kernel void finish(__global const float *RESTRICT part_min, __global const uint *RESTRICT part_min_index,
                     __global const float *RESTRICT part_max, __global const uint *RESTRICT part_max_index, uint parts,
                     OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0);
    if (MIN) {
        float v = INFINITY;
        uint i = UINT_MAX;
        for (uint k = item; k < parts; k += GROUP) KEEP(LOWER(part_min[k], part_min_index[k], v, i), part_min[k], part_min_index[k], v, i);
        TREE(values, indices, item, LOWER, v, i);
        if (item == 0) {
            min_value[0] = v;
            min_index[0] = i;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (MAX) {
        float v = -INFINITY;
        uint i = UINT_MAX;
        for (uint k = item; k < parts; k += GROUP) KEEP(HIGHER(part_max[k], part_max_index[k], v, i), part_max[k], part_max_index[k], v, i);
        TREE(values, indices, item, HIGHER, v, i);
        if (item == 0) {
            max_value[0] = v;
            max_index[0] = i;
        }
    }
}

/* Input of the array-of-structures control arm. */
__kernel void make_pairs(__global const float *RESTRICT values, __global float *RESTRICT pairs, uint n) {
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) {
        pairs[2 * i] = values[i];
        pairs[2 * i + 1] = as_float((uint)i);
    }
}
