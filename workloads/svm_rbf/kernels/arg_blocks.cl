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

/* The best of the work-groups' values and its block, for every work-item. */
#define EXTREMUM(ORDER, part_value, part_block, v, b)     \
    {                                                     \
        REDUCE_PARTS(ORDER, part_value, part_block, v, b) \
        TREE(values, indices, item, ORDER, v, b)          \
        barrier(CLK_LOCAL_MEM_FENCE);                     \
        v = values[0];                                    \
        b = indices[0];                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                     \
    }

/* The lowest of a work-item's places in a block that hold a value. Every load is made, at the last word where there is none
   further, so that none waits for another. */
#define SEARCH(v, b, at)                                        \
    {                                                           \
        uint last = min(SIZE, n - b * SIZE) - 1;                \
        __global const float *block = input + (size_t)b * SIZE; \
        _Pragma("unroll 16")                                    \
        for (uint j = 0; j < BLOCK * WIDTH; ++j) {              \
            uint k = min(j * GROUP + item, last);               \
            if (block[k] == v) at = min(at, k);                 \
        }                                                       \
    }

__kernel void finish(__global const float *RESTRICT input, uint n, __global const float *RESTRICT part_min,
                     __global const uint *RESTRICT part_min_block, __global const float *RESTRICT part_max,
                     __global const uint *RESTRICT part_max_block, uint parts, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    LOCAL_ARRAY(uint, first, 2);
    uint item = get_local_id(0);
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_b = UINT_MAX, max_b = UINT_MAX, min_at = UINT_MAX, max_at = UINT_MAX;
    if (item == 0) first[0] = first[1] = UINT_MAX;
    if (MIN) EXTREMUM(LOWER, part_min, part_min_block, min_v, min_b)
    if (MAX) EXTREMUM(HIGHER, part_max, part_max_block, max_v, max_b)
    if (MIN) SEARCH(min_v, min_b, min_at)
    if (MAX) SEARCH(max_v, max_b, max_at)
    if (min_at != UINT_MAX) atomic_min(first, min_b * SIZE + min_at);
    if (max_at != UINT_MAX) atomic_min(first + 1, max_b * SIZE + max_at);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        if (MIN) {
            min_value[0] = min_v;
            min_index[0] = first[0];
        }
        if (MAX) {
            max_value[0] = max_v;
            max_index[0] = first[1];
        }
    }
}
