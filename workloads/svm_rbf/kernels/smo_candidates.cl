#define KEEP_BETTER(v, i, other_v, other_i)                       \
    {                                                             \
        float w_ = (other_v);                                     \
        int j_ = (other_i), take_ = (w_ > v) | ((w_ == v) & (j_ < i)); \
        v = select(v, w_, take_);                                 \
        i = select(i, j_, take_);                                 \
    }

/* All candidates of a work-group become one: those of the first 32 work-items take in all others, then each other's, so that
   one hardware thread waits for itself alone. TAKE(o) takes in the candidate of the work-item o further on, STORE is for the
   work-item's own. Ends with a barrier. */
#define REDUCE(STORE, TAKE)                                              \
    STORE                                                                \
    barrier(CLK_LOCAL_MEM_FENCE);                                        \
    if (GROUP > 32 && item < 32) {                                       \
        for (uint o = 32; o < GROUP; o += 32) {                          \
            TAKE(o)                                                      \
        }                                                                \
        STORE                                                            \
    }                                                                    \
    for (uint o = (GROUP < 32 ? GROUP : 32) / 2; o > 0; o >>= 1) {       \
        HW_THREAD_SYNC();                                                \
        if (item < o) {                                                  \
            TAKE(o)                                                      \
            STORE                                                        \
        }                                                                \
    }                                                                    \
    barrier(CLK_LOCAL_MEM_FENCE);

#define STORE_FIRST         \
    {                       \
        values[item] = v;   \
        indices[item] = i;  \
    }
#define STORE_BOTH                   \
    {                                \
        values[item] = v;            \
        indices[item] = i;           \
        values[GROUP + item] = w;    \
        indices[GROUP + item] = j;   \
    }
#define TAKE_FIRST(o) KEEP_BETTER(v, i, values[item + (o)], indices[item + (o)])
#define TAKE_BOTH(o)                                                           \
    {                                                                          \
        KEEP_BETTER(v, i, values[item + (o)], indices[item + (o)])             \
        KEEP_BETTER(w, j, values[GROUP + item + (o)], indices[GROUP + item + (o)]) \
    }

/* Best candidate of a work-group: greatest value, lowest index among equals. Ends with a barrier; every item returns the
   index and has the value in values[0]. */
int best(__local float *values, __local int *indices, float v, int i) {
#if GROUP > 1
    uint item = get_local_id(0);
    REDUCE(STORE_FIRST, TAKE_FIRST)
    i = indices[0];
    return i;
#else
    values[0] = v;
    return i;
#endif
}

/* The best of two kinds of candidates, (v, i) and (w, j). Ends with a barrier, and leaves them in entries 0 and GROUP of both
   arrays. */
void best_of_each(__local float *values, __local int *indices, float v, int i, float w, int j) {
    uint item = get_local_id(0);
    REDUCE(STORE_BOTH, TAKE_BOTH)
}

/* Keep the greater of an array's entry for a group, the first where they are equal: groups are in the order of points. */
#define KEEP_GREATER(v, i, w, g)       \
    {                                  \
        float w_ = (w);                \
        int take_ = w_ > v;            \
        v = select(v, w_, take_);      \
        i = select(i, (int)(g), take_); \
    }

/* The group whose candidate for `low` has the greatest gain. */
int group_of_low(__global const float *gains, __local float *values, __local int *indices) {
    float v = -INFINITY;
    int g = NONE;
    for (uint k = get_local_id(0); k < GROUPS; k += GROUP) KEEP_GREATER(v, g, gains[k], k)
    g = best(values, indices, v, g);
    barrier(CLK_LOCAL_MEM_FENCE);
    return g == NONE ? 0 : g;
}

/* The groups with the least f over I_up, and with the greatest over I_low. */
int2 groups_of_pair(__global const float *high_f, __global const float *most, __local float *values,
                    __local int *indices) {
    float v = -INFINITY, w = -INFINITY;
    int g = NONE, h = NONE;
    for (uint k = get_local_id(0); k < GROUPS; k += GROUP) {
        KEEP_GREATER(v, g, -high_f[k], k)
        KEEP_GREATER(w, h, most[k], k)
    }
    best_of_each(values, indices, v, g, w, h);
    g = indices[0];
    h = indices[GROUP];
    barrier(CLK_LOCAL_MEM_FENCE);
    return MAKE_INT2(g == NONE ? 0 : g, h == NONE ? 0 : h);
}

/* One pass over the group's chunk, LANE_POINTS neighbouring points per work-item and step: each lane keeps its best.
   `v` is the lane's value of point `i`; a lane's first best has the lowest index. */
#define LANES_BEGIN(best_v, best_i)                      \
    float best_v[LANE_POINTS];                           \
    int best_i[LANE_POINTS];                             \
    for (int l = 0; l < LANE_POINTS; ++l) {              \
        best_v[l] = -INFINITY;                           \
        best_i[l] = NONE;                                \
    }
#define LANES_END(best_v, best_i, v, i)                                              \
    float v = best_v[0];                                                             \
    int i = best_i[0];                                                               \
    for (int l = 1; l < LANE_POINTS; ++l) {                                          \
        int take = (best_v[l] > v) | ((best_v[l] == v) & (best_i[l] < i));               \
        v = select(v, best_v[l], take);                                              \
        i = select(i, best_i[l], take);                                              \
    }

/* f += t (K_high - K_low) with its rounding error kept; then the group's candidates: least f over I_up, greatest over
   I_low. With t = 0 it only selects. */
void pass(__global float *floats, __global int *ints, __global const float *row_high, __global const float *row_low,
          float t, uint first, uint last, uint group, __local float *values, __local int *indices) {
    LANES_BEGIN(up_v, up_i)
    LANES_BEGIN(low_v, low_i)
    uint item = get_local_id(0);
    for (uint k = first + item * LANE_POINTS; k < last; k += GROUP * LANE_POINTS) {
        float f[LANE_POINTS], lost[LANE_POINTS], change[LANE_POINTS];
        int flags[LANE_POINTS];
        #pragma unroll
        for (int l = 0; l < LANE_POINTS; ++l) {
            f[l] = F(k + l);
            lost[l] = LOST(k + l);
            flags[l] = FLAGS(k + l);
            change[l] = t * (row_high[k + l] - row_low[k + l]);
        }
        #pragma unroll
        for (int l = 0; l < LANE_POINTS; ++l) {
            float sum = f[l] + change[l], back = sum - f[l];
            lost[l] += (f[l] - (sum - back)) + (change[l] - back);
            f[l] = sum;
            float value = sum + lost[l];
            int take = ((flags[l] & UP) != 0) & (-value > up_v[l]);
            up_v[l] = select(up_v[l], -value, take);
            up_i[l] = select(up_i[l], (int)(k + l), take);
            take = ((flags[l] & LOW) != 0) & (value > low_v[l]);
            low_v[l] = select(low_v[l], value, take);
            low_i[l] = select(low_i[l], (int)(k + l), take);
        }
        #pragma unroll
        for (int l = 0; l < LANE_POINTS; ++l) {
            F(k + l) = f[l];
            LOST(k + l) = lost[l];
        }
    }
    LANES_END(up_v, up_i, uv, ui)
    LANES_END(low_v, low_i, lv, li)
    best_of_each(values, indices, uv, ui, lv, li);
    if (item == 0) {
        int high = indices[0];
        HIGH_F[group] = -values[0];
        HIGH_I[group] = high;
        HIGH_A[group] = high == NONE ? 0 : ALPHA(high);
        HIGH_S[group] = high == NONE ? -1 : SLOT_OF(high);
        MOST[group] = values[GROUP];
#if FIRST_ORDER
        int low = indices[GROUP];
        LOW_F[group] = LOW_GAIN[group] = values[GROUP];
        LOW_I[group] = low;
        LOW_A[group] = low == NONE ? 0 : ALPHA(low);
        LOW_S[group] = low == NONE ? -1 : SLOT_OF(low);
#endif
    }
}
