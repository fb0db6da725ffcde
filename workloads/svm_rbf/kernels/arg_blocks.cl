/* Arg-min and arg-max by blocks of SIZE elements, BLOCK loads of each work-item, which are compared by value alone: one operation
   for each and extremum. Each work-group leaves the extreme value and the first block that has it; the group that comes last finds
   the best of those, and reads its block once more for the index. What is behind the last whole block is a block, too.
   WIDTH      elements per load, 4, 8 or 16
   BLOCK      loads per block and work-item
   UNROLL     of which so many are in flight */
#include "arg_tree.cl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDTH)
#define LOAD JOIN(vload, WIDTH)
#define SIZE ((uint)(BLOCK * GROUP * WIDTH))

/* The best value of a work-group and its block, for every work-item. */
#define EXTREMUM(ORDER, v, b)                    \
    {                                            \
        TREE(values, indices, item, ORDER, v, b) \
        SHARE(v, b)                              \
    }
#define SHARE(v, b)               \
    barrier(CLK_LOCAL_MEM_FENCE); \
    v = values[0];                \
    b = indices[0];               \
    barrier(CLK_LOCAL_MEM_FENCE);

/* The same of all work-groups, which have written theirs; an earlier group has earlier blocks. Four values are loaded before any
   is compared, the last one again where there are no more. */
#define EXTREMUM_OF_GROUPS(ORDER, part_value, part_block, v, b)                             \
    {                                                                                       \
        uint best = UINT_MAX;                                                               \
        for (uint k = item; k < groups; k += 4 * GROUP) {                                   \
            uint at[4];                                                                     \
            float other[4];                                                                 \
            _Pragma("unroll")                                                               \
            for (uint j = 0; j < 4; ++j) {                                                  \
                at[j] = min(k + j * GROUP, groups - 1);                                     \
                other[j] = as_float(ATOMIC_LOAD(part_value + at[j]));                       \
            }                                                                               \
            _Pragma("unroll")                                                               \
            for (uint j = 0; j < 4; ++j)                                                    \
                KEEP(best == UINT_MAX || ORDER(other[j], at[j], v, best), other[j], at[j], v, best) \
        }                                                                                   \
        TREE(values, indices, item, ORDER, v, best)                                         \
        if (item == 0) indices[0] = ATOMIC_LOAD(part_block + best);                         \
        SHARE(v, b)                                                                         \
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

/* `arrived` counts the groups that have written theirs, and is zero before and after: no group waits for another. */
__kernel void extrema(__global const float *RESTRICT input, uint n, __global uint *part_min, __global uint *part_min_block,
                      __global uint *part_max, __global uint *part_max_block, __global uint *arrived, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    LOCAL_ARRAY(uint, found, 2);
    LOCAL_ARRAY(int, is_last, 1);
    uint item = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    uint blocks = n / SIZE, per_group = (blocks + groups - 1) / groups;
    uint first = min(group * per_group, blocks), last = min(first + per_group, blocks);
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_b = UINT_MAX, max_b = UINT_MAX;
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
        if (MIN && (lowest < min_v || min_b == UINT_MAX)) {
            min_v = lowest;
            min_b = b;
        }
        if (MAX && (highest > max_v || max_b == UINT_MAX)) {
            max_v = highest;
            max_b = b;
        }
    }
    if (group + 1 == groups) {
        for (uint k = blocks * SIZE + item; k < n; k += GROUP) {
            float v = input[k];
            if (MIN) KEEP(LOWER(v, blocks, min_v, min_b), v, blocks, min_v, min_b);
            if (MAX) KEEP(HIGHER(v, blocks, max_v, max_b), v, blocks, max_v, max_b);
        }
    }
    if (MIN) EXTREMUM(LOWER, min_v, min_b)
    if (MAX) EXTREMUM(HIGHER, max_v, max_b)
    if (item == 0) {
        found[0] = found[1] = UINT_MAX;
        is_last[0] = 1;
        if (groups > 1) {
            if (MIN) {
                ATOMIC_STORE(part_min + group, as_uint(min_v));
                ATOMIC_STORE(part_min_block + group, min_b);
            }
            if (MAX) {
                ATOMIC_STORE(part_max + group, as_uint(max_v));
                ATOMIC_STORE(part_max_block + group, max_b);
            }
            DEVICE_FENCE();
            is_last[0] = atomic_inc(arrived) == groups - 1;
            if (is_last[0]) ATOMIC_STORE(arrived, 0u); /* at the head of the branch with barriers PoCL 3.1 loses it */
            DEVICE_FENCE();
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_last[0]) {
        if (groups > 1) {
            if (MIN) EXTREMUM_OF_GROUPS(LOWER, part_min, part_min_block, min_v, min_b)
            if (MAX) EXTREMUM_OF_GROUPS(HIGHER, part_max, part_max_block, max_v, max_b)
        }
        uint min_at = UINT_MAX, max_at = UINT_MAX;
        if (MIN) SEARCH(min_v, min_b, min_at)
        if (MAX) SEARCH(max_v, max_b, max_at)
        if (min_at != UINT_MAX) atomic_min(found, min_b * SIZE + min_at);
        if (max_at != UINT_MAX) atomic_min(found + 1, max_b * SIZE + max_at);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) {
            if (MIN) {
                min_value[0] = min_v;
                min_index[0] = found[0];
            }
            if (MAX) {
                max_value[0] = max_v;
                max_index[0] = found[1];
            }
        }
    }
}
