/* Arg-min and arg-max with WIDTH elements in a step, each of which is compared by itself: a candidate for each lane, merged when
   all are through. `finish` of arg_extrema.cl reduces what the work-groups leave.
   WIDTH      elements of a step, 4, 8 or 16, by loads of 4
   UNROLL     steps whose loads are in flight */
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
    WRITE_EXTREMA(group)
}
