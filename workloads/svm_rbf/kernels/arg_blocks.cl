/* Arg-min and arg-max by blocks of SIZE elements, BLOCK loads of each work-item: `parts` compares them by value alone, which is
   one operation for each and extremum, and leaves of each work-group the extreme value and the first block that has it. `finish`
   (one group) reduces those, and reads the block that is left once more for the index. What is behind the last whole block is a
   block, too.
   WIDTH      elements per load, 4, 8 or 16
   BLOCK      loads per block and work-item
   UNROLL     of which so many are in flight */
#include "arg_tree.cl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDTH)
#define LOAD JOIN(vload, WIDTH)
#define SIZE ((uint)(BLOCK * GROUP * WIDTH))

__kernel void parts(__global const float *RESTRICT input, uint n, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    uint blocks = n / SIZE, per_group = (blocks + groups - 1) / groups;
    uint first = min(group * per_group, blocks), last = min(first + per_group, blocks);
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_i = UINT_MAX, max_i = UINT_MAX; /* blocks */
    for (uint b = first; b < last; ++b) {
        size_t k = (size_t)b * BLOCK * GROUP + item;
        VECTOR lows = LOAD(k, input), highs = lows;
        #pragma unroll UNROLL
        for (int j = 1; j < BLOCK; ++j) {
            VECTOR v = LOAD(k + j * GROUP, input);
            if (MIN) lows = LOWER_OF(lows, v);
            if (MAX) highs = HIGHER_OF(highs, v);
        }
        float lowest = JOIN(hmin, WIDTH)(lows), highest = JOIN(hmax, WIDTH)(highs);
        if (MIN && (lowest < min_v || min_i == UINT_MAX)) {
            min_v = lowest;
            min_i = b;
        }
        if (MAX && (highest > max_v || max_i == UINT_MAX)) {
            max_v = highest;
            max_i = b;
        }
    }
    if (group + 1 == groups) {
        for (uint k = blocks * SIZE + item; k < n; k += GROUP) {
            float v = input[k];
            if (MIN) KEEP(LOWER(v, blocks, min_v, min_i), v, blocks, min_v, min_i);
            if (MAX) KEEP(HIGHER(v, blocks, max_v, max_i), v, blocks, max_v, max_i);
        }
    }
    WRITE_EXTREMA(group)
}

/* The extremum of the work-groups' and, from its block, its first index. */
#define EXTREMUM(ORDER, NONE, part_value, part_block, out_value, out_index)                                          \
    {                                                                                                                \
        float v = NONE;                                                                                              \
        uint b = UINT_MAX;                                                                                           \
        _Pragma("unroll 4")                                                                                          \
        for (uint k = item; k < parts; k += GROUP) {                                                                 \
            float other_v = part_value[k];                                                                           \
            uint other_b = part_block[k];                                                                            \
            KEEP(ORDER(other_v, other_b, v, b), other_v, other_b, v, b);                                             \
        }                                                                                                            \
        TREE(values, indices, item, ORDER, v, b)                                                                     \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                \
        v = values[0];                                                                                               \
        b = indices[0];                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                \
        __global const float *block = input + (size_t)b * SIZE, *stop = block + min(SIZE, n - b * SIZE), *at = stop; \
        _Pragma("unroll 16")                                                                                         \
        for (__global const float *place = block + item; place < stop; place += GROUP) {                             \
            if (*place == v && place < at) at = place;                                                               \
        }                                                                                                            \
        uint found = at < stop ? (uint)(at - input) : UINT_MAX;                                                      \
        TREE(values, indices, item, ORDER, v, found)                                                                 \
        if (item == 0) {                                                                                             \
            out_value[0] = v;                                                                                        \
            out_index[0] = found;                                                                                    \
        }                                                                                                            \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                \
    }

__kernel void finish(__global const float *RESTRICT input, uint n, __global const float *RESTRICT part_min,
                     __global const uint *RESTRICT part_min_block, __global const float *RESTRICT part_max,
                     __global const uint *RESTRICT part_max_block, uint parts, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0);
    if (MIN) EXTREMUM(LOWER, INFINITY, part_min, part_min_block, min_value, min_index)
    if (MAX) EXTREMUM(HIGHER, -INFINITY, part_max, part_max_block, max_value, max_index)
}
