/* Arg-min and arg-max by blocks: a work-item compares the elements of BLOCK loads by value alone, which is one operation
   for each and extremum, and keeps the first block with the extreme value. When all are through it reads that block once
   more for the index. `finish` of arg_extrema.cl reduces what the work-groups leave.
   WIDTH      elements per load, 4, 8 or 16
   BLOCK      loads per block and work-item
   UNROLL     of which so many are in flight */
#include "arg_tree.cl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDTH)
#define LOAD JOIN(vload, WIDTH)
#define SPLAT JOIN(SPLAT_FLOAT, WIDTH)

/* The first element of a block that equals a value; the block has it. */
#define FIND(block, value, found_v, found_i)                                      \
    for (int j_ = BLOCK - 1; j_ >= 0; --j_) {                                     \
        size_t at_ = ((size_t)(block) * BLOCK + j_) * GROUP * WIDTH + item * WIDTH; \
        for (int l_ = WIDTH - 1; l_ >= 0; --l_) {                                 \
            float element_ = input[at_ + l_];                                     \
            if (element_ == (value)) {                                            \
                found_v = element_;                                               \
                found_i = (uint)at_ + l_;                                         \
            }                                                                     \
        }                                                                         \
    }

__kernel void parts(__global const float *RESTRICT input, uint n, OUTPUTS) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(uint, indices, GROUP);
    uint item = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    uint blocks = n / (BLOCK * GROUP * WIDTH), per_group = (blocks + groups - 1) / groups;
    uint first = min(group * per_group, blocks), last = min(first + per_group, blocks);
    float low = INFINITY, high = -INFINITY;
    uint low_at = UINT_MAX, high_at = UINT_MAX;
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
        if (MIN && (lowest < low || low_at == UINT_MAX)) {
            low = lowest;
            low_at = b;
        }
        if (MAX && (highest > high || high_at == UINT_MAX)) {
            high = highest;
            high_at = b;
        }
    }
    float min_v = INFINITY, max_v = -INFINITY;
    uint min_i = UINT_MAX, max_i = UINT_MAX;
    if (MIN && low_at != UINT_MAX) FIND(low_at, low, min_v, min_i)
    if (MAX && high_at != UINT_MAX) FIND(high_at, high, max_v, max_i)
    /* What is left behind the last whole block, the last group takes word by word. */
    if (group + 1 == groups) {
        for (uint k = blocks * BLOCK * GROUP * WIDTH + item; k < n; k += GROUP) {
            float v = input[k];
            if (MIN) KEEP(LOWER(v, k, min_v, min_i), v, k, min_v, min_i);
            if (MAX) KEEP(HIGHER(v, k, max_v, max_i), v, k, max_v, max_i);
        }
    }
    WRITE_EXTREMA(group)
}
