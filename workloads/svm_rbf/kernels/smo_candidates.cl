/* Best candidate of a work-group: greatest value, lowest index among equals. Ends with a barrier; every item returns the
   index and has the value in values[0]. */
int best(__local float *values, __local int *indices, float v, int i) {
#if GROUP > 1
    uint item = get_local_id(0);
    values[item] = v;
    indices[item] = i;
    for (uint half_ = GROUP / 2; half_ > 0; half_ >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_) {
            float w = values[item + half_];
            int j = indices[item + half_];
            int take = w > v || (w == v && j < i);
            v = select(v, w, take);
            i = select(i, j, take);
            values[item] = v;
            indices[item] = i;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    i = indices[0];
    return i;
#else
    values[0] = v;
    return i;
#endif
}

/* Greatest of an array with one entry per group (SIGN -1: least), and which entry that is; ties by point. */
#define OVER_GROUPS(array, index, sign, entry)                                   \
    int entry;                                                                   \
    {                                                                            \
        float v_ = -INFINITY;                                                    \
        int i_ = NONE;                                                           \
        for (int g_ = get_local_id(0); g_ < GROUPS; g_ += GROUP) {               \
            float w_ = sign * array[g_];                                         \
            int take_ = w_ > v_;                                                 \
            v_ = select(v_, w_, take_);                                          \
            i_ = select(i_, g_, take_); /* groups are in the order of points */ \
        }                                                                        \
        i_ = best(values, indices, v_, i_);                                      \
        entry = i_ == NONE ? 0 : i_;                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                            \
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
    int high = best(values, indices, uv, ui);
    if (item == 0) {
        HIGH_F[group] = -values[0];
        HIGH_I[group] = high;
        HIGH_A[group] = high == NONE ? 0 : ALPHA(high);
        HIGH_S[group] = high == NONE ? -1 : SLOT_OF(high);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int low = best(values, indices, lv, li);
    if (item == 0) {
        MOST[group] = values[0];
#if FIRST_ORDER
        LOW_F[group] = LOW_GAIN[group] = values[0];
        LOW_I[group] = low;
        LOW_A[group] = low == NONE ? 0 : ALPHA(low);
        LOW_S[group] = low == NONE ? -1 : SLOT_OF(low);
#endif
    }
}
