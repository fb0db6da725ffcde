/* Arg-min and arg-max in two launches: `parts` leaves one candidate per work-group, `finish` (one group) reduces those.
   Values and indices lie in vectors of their own, float4 and int4 (structure of arrays), and so do the candidates of a
   work-item's four lanes; the lowest index wins among equals.
   PAIRS      1: the input is (value, index) pairs, an array of structures; a float4 is two of them */
#include "arg_tree.cl"

/* Keep each component's candidate if it is better: by a vector's select(), or one after the other by branches. */
#if TERNARY
#define KEEP4(v, op, i, best_v, best_i)                     \
    {                                                       \
        KEEP(v.x op best_v.x, v.x, i.x, best_v.x, best_i.x) \
        KEEP(v.y op best_v.y, v.y, i.y, best_v.y, best_i.y) \
        KEEP(v.z op best_v.z, v.z, i.z, best_v.z, best_i.z) \
        KEEP(v.w op best_v.w, v.w, i.w, best_v.w, best_i.w) \
    }
#else
#define KEEP4(v, op, i, best_v, best_i)                     \
    {                                                       \
        int4 keep_ = v op best_v;                           \
        best_v = select(best_v, v, keep_);                  \
        if (INDEX) best_i = select(best_i, i, keep_);       \
    }
#endif
/* The best of four lanes. */
#define MERGE4(ORDER, lane_v, lane_i, v, i)                                        \
    {                                                                              \
        KEEP(ORDER(lane_v.x, (uint)lane_i.x, v, i), lane_v.x, (uint)lane_i.x, v, i) \
        KEEP(ORDER(lane_v.y, (uint)lane_i.y, v, i), lane_v.y, (uint)lane_i.y, v, i) \
        KEEP(ORDER(lane_v.z, (uint)lane_i.z, v, i), lane_v.z, (uint)lane_i.z, v, i) \
        KEEP(ORDER(lane_v.w, (uint)lane_i.w, v, i), lane_v.w, (uint)lane_i.w, v, i) \
    }

__kernel void parts(__global const float *RESTRICT input, uint n, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0), group = get_group_id(0);
    /* Each group walks a chunk of whole vectors; n may leave a rest, which the last group takes one by one. */
    uint vectors = n / 4, per_group = (vectors + get_num_groups(0) - 1) / get_num_groups(0);
    uint first = min(group * per_group, vectors), last = min(first + per_group, vectors);
    float4 lane_min = SPLAT_FLOAT4(INFINITY), lane_max = SPLAT_FLOAT4(-INFINITY);
    int4 lane_min_i = MAKE_INT4(-1, -1, -1, -1), lane_max_i = lane_min_i; /* as an unsigned index, none */
    for (uint k = first + item; k < last; k += GROUP) {
#if PAIRS
        float4 one = vload4(2 * (size_t)k, input), two = vload4(2 * (size_t)k + 1, input);
        float4 v = MAKE_FLOAT4(one.x, one.z, two.x, two.z);
        int4 i = MAKE_INT4(as_int(one.y), as_int(one.w), as_int(two.y), as_int(two.w));
#else
        float4 v = vload4(k, input);
        int4 i = MAKE_INT4(0, 1, 2, 3) + (int)(4 * k);
#endif
        if (MIN) KEEP4(v, <, i, lane_min, lane_min_i)
        if (MAX) KEEP4(v, >, i, lane_max, lane_max_i)
    }
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_i = UINT_MAX, max_i = UINT_MAX;
    if (MIN) MERGE4(LOWER, lane_min, lane_min_i, min_v, min_i)
    if (MAX) MERGE4(HIGHER, lane_max, lane_max_i, max_v, max_i)
    if (group + 1 == get_num_groups(0)) {
        for (uint k = 4 * vectors + item; k < n; k += GROUP) {
            float v = input[PAIRS ? 2 * (size_t)k : k];
            if (MIN) KEEP(LOWER(v, k, min_v, min_i), v, k, min_v, min_i);
            if (MAX) KEEP(HIGHER(v, k, max_v, max_i), v, k, max_v, max_i);
        }
    }
    WRITE_EXTREMA(group)
}

__kernel void finish(__global const float *RESTRICT part_min, __global const uint *RESTRICT part_min_index,
                     __global const float *RESTRICT part_max, __global const uint *RESTRICT part_max_index, uint parts,
                     OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0);
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_i = UINT_MAX, max_i = UINT_MAX;
    if (MIN) REDUCE_PARTS(LOWER, part_min, part_min_index, min_v, min_i)
    if (MAX) REDUCE_PARTS(HIGHER, part_max, part_max_index, max_v, max_i)
    WRITE_EXTREMA(0)
}

/* Input of the array-of-structures control arm. */
__kernel void make_pairs(__global const float *RESTRICT values, __global float *RESTRICT pairs, uint n) {
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) {
        pairs[2 * i] = values[i];
        pairs[2 * i + 1] = as_float((uint)i);
    }
}
