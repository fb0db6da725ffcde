/* C-SVC training by sequential minimal optimisation, two launches per iteration and none that waits for the host:

     pick    reduces the candidates of all groups to `high` (and `low`, first order), tests for convergence, and
             computes missing kernel rows. Second order: the row of `high`, then each group's candidate for `low`.
     update  second order: reduces the candidates to `low` and computes its row if missing. Then the two-variable step,
             f += t (K_high - K_low), and each group's next candidates, in one pass over f.

   Every group owns CHUNK neighbouring points: it alone reads and writes their alpha, flags and slot during a launch, so
   that all groups may decide the same things redundantly and none needs another's word within a launch. What all groups
   read in a launch is written in the other launch (`picked` by `pick`, `kept` by `update`).

   alpha is an integer in units of C / 2^30: steps of both variables are equal and opposite exactly, 0 and C are exact,
   sum y alpha stays 0. f is a sum of two floats (`f` and its rounding errors `lost`), so that it does not drift.
   Kernel rows live in SLOTS slots; victims are found by the clock algorithm (second chance), by group 0.

   With a single group (GROUPS == 1) `iterate` does both in a loop, any number of times in a launch.

   GROUP, LANES, ROWS, WIDTH, LANE_POINTS   shape: work-items per group, work-items per row, rows per team, words per
                                            load, points per work-item in passes over f
   NPOINTS, PADDED, CHUNK, GROUPS, SLOTS, FIRST_ORDER */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(float, WIDTH) vec;
#define VLOAD JOIN(vload, WIDTH)
#define SPLAT JOIN(SPLAT_FLOAT, WIDTH)
#define SUM JOIN(hsum, WIDTH)
#define PITCH (vectors * WIDTH)
#define FULL (1 << 30) /* C */
#define UP 1
#define LOW 2
#define NONE 0x7fffffff
#define BOTH_FENCES (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* Arrays within the two buffers. */
#define F(i) floats[i]
#define LOST(i) floats[PADDED + (i)]
#define Y(i) floats[2 * PADDED + (i)]
#define HIGH_F (floats + 3 * PADDED)
#define LOW_F (HIGH_F + GROUPS)
#define LOW_GAIN (LOW_F + GROUPS)
#define MOST (LOW_GAIN + GROUPS) /* greatest f over I_low */
#define ALPHA(i) ints[i]
#define FLAGS(i) ints[PADDED + (i)]
#define SLOT_OF(i) ints[2 * PADDED + (i)]
#define OWNER (ints + 3 * PADDED)
#define RECENT (OWNER + SLOTS)
#define HIGH_I (RECENT + SLOTS)
#define HIGH_A (HIGH_I + GROUPS)
#define HIGH_S (HIGH_A + GROUPS)
#define LOW_I (HIGH_S + GROUPS)
#define LOW_A (LOW_I + GROUPS)
#define LOW_S (LOW_A + GROUPS)
#define PICKED (LOW_S + GROUPS)
#define KEPT (PICKED + 24)

/* Words of PICKED; the first four are what the host reads, together with B. */
enum { DONE, ITERATIONS, HITS, COMPUTED, B, P_HIGH, P_HIGH_F, P_HIGH_A, P_HIGH_S, P_HIGH_NEW, P_LOW, P_LOW_F, P_LOW_A,
       P_LOW_S, P_LOW_NEW, P_V0, P_V1, P_O0, P_O1 };
/* Words of KEPT. */
enum { K_V0, K_V1, K_HAND };

#define MEMORY                                                                                              \
    __global const float *RESTRICT data, __global float *cache, __global float *floats, __global int *ints, uint vectors

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

/* Rows of one or two points for the group's chunk; `two` is a literal. */
#if LANES == 1
void rows(__global const float *RESTRICT data, __global float *out_a, __global float *out_b, int a, int b, int two,
          uint first, uint last, uint vectors, __local float *part) {
    __global const float *pa = data + (size_t)a * PITCH, *pb = data + (size_t)b * PITCH;
    for (uint tile = first + 16 * get_local_id(0); tile < last; tile += 16 * GROUP) {
        float ta[16], tb[16];
        #pragma unroll 1
        for (uint r0 = 0; r0 < 16; r0 += ROWS) {
            vec sa[ROWS], sb[ROWS];
            __global const float *x[ROWS];
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sa[r] = SPLAT(0.0f);
                sb[r] = SPLAT(0.0f);
                x[r] = data + (size_t)min(tile + r0 + r, (uint)(NPOINTS - 1)) * PITCH;
            }
            for (uint v = 0; v < vectors; ++v) {
                vec va = VLOAD(v, pa), vb = VLOAD(v, pb);
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    vec value = VLOAD(v, x[r]);
                    vec diff = value - va;
                    sa[r] = fma(diff, diff, sa[r]);
                    if (two) {
                        diff = value - vb;
                        sb[r] = fma(diff, diff, sb[r]);
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                ta[r0 + r] = SUM(sa[r]);
                if (two) tb[r0 + r] = SUM(sb[r]);
            }
        }
        float16 scale = SPLAT_FLOAT16(-GAMMA);
        vstore16(exp(scale * vload16(0, ta)), 0, out_a + tile);
        if (two) vstore16(exp(scale * vload16(0, tb)), 0, out_b + tile);
    }
}
#define PART_WORDS 1
#else
/* Teams of LANES work-items read rows side by side; their partial sums meet in local memory. */
#define TEAMS (GROUP / LANES)
#define BLOCK (TEAMS * ROWS)
#define PART_WORDS (2 * BLOCK * (LANES + 1))
void rows(__global const float *RESTRICT data, __global float *out_a, __global float *out_b, int a, int b, int two,
          uint first, uint last, uint vectors, __local float *part) {
    uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    __global const float *pa = data + (size_t)a * PITCH, *pb = data + (size_t)b * PITCH;
    __local float *part_b = part + BLOCK * (LANES + 1);
    for (uint block = first; block < last; block += BLOCK) {
        vec sa[ROWS], sb[ROWS];
        __global const float *x[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            sa[r] = SPLAT(0.0f);
            sb[r] = SPLAT(0.0f);
            x[r] = data + (size_t)min(block + team * ROWS + r, (uint)(NPOINTS - 1)) * PITCH;
        }
        #pragma unroll 2
        for (uint v = lane; v < vectors; v += LANES) {
            vec va = VLOAD(v, pa), vb = VLOAD(v, pb);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                vec value = VLOAD(v, x[r]);
                vec diff = value - va;
                sa[r] = fma(diff, diff, sa[r]);
                if (two) {
                    diff = value - vb;
                    sb[r] = fma(diff, diff, sb[r]);
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            part[(team * ROWS + r) * (LANES + 1) + lane] = SUM(sa[r]);
            if (two) part_b[(team * ROWS + r) * (LANES + 1) + lane] = SUM(sb[r]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = item; k < (two ? 2 : 1) * BLOCK; k += GROUP) {
            __local const float *p = part + k * (LANES + 1);
            float total = 0.0f;
            for (uint l = 0; l < LANES; ++l) total += p[l];
            uint i = block + k % BLOCK;
            if (i < last) (k < BLOCK ? out_a : out_b)[i] = exp(-GAMMA * total);
        }
        barrier(BOTH_FENCES);
    }
}
#endif

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

#define CHUNK_OF_GROUP                                        \
    uint item = get_local_id(0), group = get_group_id(0);     \
    uint first = group * CHUNK, last = min(first + CHUNK, (uint)PADDED);

#define OWNS(i) ((uint)(i) >= first && (uint)(i) < last)

/* alpha = 0, f = -y, empty cache, first candidates. */
__kernel void reset(MEMORY) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(int, indices, GROUP);
    CHUNK_OF_GROUP
    for (uint i = first + item; i < last; i += GROUP) {
        float y = Y(i);
        F(i) = -y;
        LOST(i) = 0.0f;
        ALPHA(i) = 0;
        FLAGS(i) = y > 0.0f ? UP : y < 0.0f ? LOW : 0; /* y = 0: padding */
        SLOT_OF(i) = -1;
    }
    for (uint s = get_global_id(0); s < SLOTS; s += get_global_size(0)) {
        OWNER[s] = -1;
        RECENT[s] = 0;
    }
    if (group == 0 && item == 0) {
        for (int w = 0; w < 24; ++w) PICKED[w] = 0;
        KEPT[K_V0] = 0;
        KEPT[K_V1] = 1;
        KEPT[K_HAND] = 2 % SLOTS;
    }
    barrier(BOTH_FENCES);
    pass(floats, ints, floats, floats, 0.0f, first, last, group, values, indices);
}

void pick_pair(MEMORY, __local float *values, __local int *indices, __local float *part) {
    CHUNK_OF_GROUP
    OVER_GROUPS(HIGH_F, HIGH_I, -1.0f, eh)
    OVER_GROUPS(MOST, HIGH_I, 1.0f, em)
    float b_high = HIGH_F[eh], b_low = MOST[em];
    int lead = group == 0 && item == 0;
    if (b_low <= b_high + 2.0f * TAU) { /* the same for every group, and for every launch from here on */
        if (lead) {
            PICKED[DONE] = 1;
            PICKED[B] = as_int(0.5f * (b_low + b_high));
        }
        return;
    }
    int high = HIGH_I[eh], slot_high = HIGH_S[eh];
    int v0 = KEPT[K_V0], v1 = KEPT[K_V1];
    int new_high = slot_high < 0;
    if (new_high) {
        slot_high = v0;
        int old = OWNER[v0];
        if (item == 0 && old >= 0 && OWNS(old)) SLOT_OF(old) = -1;
        if (item == 0 && OWNS(high)) SLOT_OF(high) = v0;
    }
    __global float *row_high = cache + (size_t)slot_high * PADDED;
    if (lead) {
        PICKED[ITERATIONS] += 1;
        PICKED[P_HIGH] = high;
        PICKED[P_HIGH_F] = as_int(b_high);
        PICKED[P_HIGH_A] = HIGH_A[eh];
        PICKED[P_HIGH_S] = slot_high;
        PICKED[P_HIGH_NEW] = new_high;
        PICKED[P_V0] = v0;
        PICKED[P_V1] = v1;
        PICKED[P_O0] = OWNER[v0];
        PICKED[P_O1] = OWNER[v1];
        PICKED[new_high ? COMPUTED : HITS] += 1;
    }
#if FIRST_ORDER
    int low = LOW_I[em], slot_low = LOW_S[em];
    /* the row of `high` may have taken the slot that held the row of `low` */
    int new_low = slot_low < 0 || (new_high && slot_low == v0);
    if (new_low) {
        slot_low = slot_high == v0 ? v1 : v0;
        int old = OWNER[slot_low];
        barrier(BOTH_FENCES);
        if (item == 0 && old >= 0 && OWNS(old)) SLOT_OF(old) = -1;
        if (item == 0 && OWNS(low)) SLOT_OF(low) = slot_low;
    }
    __global float *row_low = cache + (size_t)slot_low * PADDED;
    if (new_high && new_low) rows(data, row_high, row_low, high, low, 1, first, last, vectors, part);
    else if (new_high || new_low)
        rows(data, new_high ? row_high : row_low, row_low, new_high ? high : low, low, 0, first, last, vectors, part);
    if (lead) {
        PICKED[P_LOW] = low;
        PICKED[P_LOW_F] = as_int(b_low);
        PICKED[P_LOW_A] = LOW_A[em];
        PICKED[P_LOW_S] = slot_low;
        PICKED[P_LOW_NEW] = new_low;
        PICKED[new_low ? COMPUTED : HITS] += 1;
    }
#else
    barrier(BOTH_FENCES);
    if (new_high) rows(data, row_high, row_high, high, high, 0, first, last, vectors, part);
    LANES_BEGIN(gain_v, gain_i)
    for (uint k = first + item * LANE_POINTS; k < last; k += GROUP * LANE_POINTS) {
        #pragma unroll
        for (int l = 0; l < LANE_POINTS; ++l) {
            float over = F(k + l) + LOST(k + l) - b_high;
            float gain = over * over / fmax(2.0f - 2.0f * row_high[k + l], 1e-12f);
            int take = ((FLAGS(k + l) & LOW) != 0) & (over > 0.0f) & (gain > gain_v[l]);
            gain_v[l] = select(gain_v[l], gain, take);
            gain_i[l] = select(gain_i[l], (int)(k + l), take);
        }
    }
    LANES_END(gain_v, gain_i, gv, gi)
    int low = best(values, indices, gv, gi);
    if (item == 0) {
        LOW_GAIN[group] = values[0];
        LOW_I[group] = low;
        LOW_F[group] = low == NONE ? 0.0f : F(low) + LOST(low);
        LOW_A[group] = low == NONE ? 0 : ALPHA(low);
        LOW_S[group] = low == NONE ? -1 : SLOT_OF(low);
    }
#endif
}

/* Next victim: the clock's hand passes slots used since it last came by, and those spoken for. */
int victim(__global int *ints, int other, int keep_a, int keep_b) {
    int hand = KEPT[K_HAND];
    for (int step = 0; step < 2 * SLOTS; ++step) {
        int s = hand;
        hand = hand + 1 == SLOTS ? 0 : hand + 1;
        if (s == other) continue;
        if (SLOTS > 4 && (s == keep_a || s == keep_b)) continue;
        if (RECENT[s] == 0) {
            KEPT[K_HAND] = hand;
            return s;
        }
        RECENT[s] = 0;
    }
    KEPT[K_HAND] = hand;
    return other == 0 ? 1 : 0;
}

void take_step(MEMORY, __local float *values, __local int *indices, __local float *part) {
    CHUNK_OF_GROUP
    if (PICKED[DONE]) return;
    int lead = group == 0 && item == 0;
    int high = PICKED[P_HIGH], slot_high = PICKED[P_HIGH_S], alpha_high = PICKED[P_HIGH_A];
    int v0 = PICKED[P_V0], v1 = PICKED[P_V1];
    float f_high = as_float(PICKED[P_HIGH_F]);
#if FIRST_ORDER
    int low = PICKED[P_LOW], slot_low = PICKED[P_LOW_S], alpha_low = PICKED[P_LOW_A], new_low = PICKED[P_LOW_NEW];
    float f_low = as_float(PICKED[P_LOW_F]);
#else
    OVER_GROUPS(LOW_GAIN, LOW_I, 1.0f, el)
    int low = LOW_I[el], slot_low = LOW_S[el], alpha_low = LOW_A[el], new_low = slot_low < 0;
    float f_low = LOW_F[el];
    if (new_low) {
        slot_low = slot_high == v0 ? v1 : v0;
        int old = slot_low == v0 ? PICKED[P_O0] : PICKED[P_O1];
        if (item == 0 && old >= 0 && OWNS(old)) SLOT_OF(old) = -1;
        if (item == 0 && OWNS(low)) SLOT_OF(low) = slot_low;
        rows(data, cache + (size_t)slot_low * PADDED, cache, low, low, 0, first, last, vectors, part);
    }
#endif
    __global const float *row_high = cache + (size_t)slot_high * PADDED;
    __global const float *row_low = cache + (size_t)slot_low * PADDED;

    /* The step, by every work-item: in units of C / 2^30, at least one of them. */
    float eta = fmax(2.0f - 2.0f * row_high[low], 1e-12f);
    int room_high = Y(high) > 0.0f ? FULL - alpha_high : alpha_high;
    int room_low = Y(low) > 0.0f ? alpha_low : FULL - alpha_low;
    int room = min(room_high, room_low);
    float wish = (f_low - f_high) / eta * (FULL / PENALTY);
    int steps = wish >= (float)FULL ? room : min(max((int)(wish + 0.5f), 1), room);
    float t = (float)steps * (PENALTY / FULL);
    alpha_high += Y(high) > 0.0f ? steps : -steps;
    alpha_low -= Y(low) > 0.0f ? steps : -steps;
    barrier(BOTH_FENCES);
    if (item == 0 && OWNS(high)) {
        ALPHA(high) = alpha_high;
        FLAGS(high) = Y(high) > 0.0f ? (alpha_high < FULL ? UP : 0) | (alpha_high > 0 ? LOW : 0)
                                     : (alpha_high > 0 ? UP : 0) | (alpha_high < FULL ? LOW : 0);
    }
    if (item == 0 && OWNS(low)) {
        ALPHA(low) = alpha_low;
        FLAGS(low) = Y(low) > 0.0f ? (alpha_low < FULL ? UP : 0) | (alpha_low > 0 ? LOW : 0)
                                   : (alpha_low > 0 ? UP : 0) | (alpha_low < FULL ? LOW : 0);
    }
    barrier(BOTH_FENCES);
    pass(floats, ints, row_high, row_low, t, first, last, group, values, indices);
    if (lead) {
#if !FIRST_ORDER
        PICKED[new_low ? COMPUTED : HITS] += 1;
#endif
        if (PICKED[P_HIGH_NEW]) OWNER[slot_high] = high;
        if (new_low) OWNER[slot_low] = low;
        RECENT[slot_high] = 1;
        RECENT[slot_low] = 1;
        if (v0 == slot_high || v0 == slot_low) v0 = victim(ints, v1, slot_high, slot_low);
        if (v1 == slot_high || v1 == slot_low) v1 = victim(ints, v0, slot_high, slot_low);
        KEPT[K_V0] = v0;
        KEPT[K_V1] = v1;
    }
}

__kernel void pick(MEMORY) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(int, indices, GROUP);
    LOCAL_ARRAY(float, part, PART_WORDS);
    pick_pair(data, cache, floats, ints, vectors, values, indices, part);
}

__kernel void update(MEMORY) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(int, indices, GROUP);
    LOCAL_ARRAY(float, part, PART_WORDS);
    take_step(data, cache, floats, ints, vectors, values, indices, part);
}

#if GROUPS == 1
/* One work-group needs no launch to be in step with itself. */
__kernel void iterate(MEMORY, uint count) {
    LOCAL_ARRAY(float, values, GROUP);
    LOCAL_ARRAY(int, indices, GROUP);
    LOCAL_ARRAY(float, part, PART_WORDS);
    for (uint k = 0; k < count; ++k) {
        pick_pair(data, cache, floats, ints, vectors, values, indices, part);
        barrier(BOTH_FENCES);
        if (PICKED[DONE]) break;
        take_step(data, cache, floats, ints, vectors, values, indices, part);
        barrier(BOTH_FENCES);
    }
}
#endif

/* The model so far: alpha in its own units, b, and the words for the host. */
__kernel void model(MEMORY, __global int *RESTRICT status, __global float *RESTRICT alpha, __global float *RESTRICT b) {
    for (uint i = get_global_id(0); i < NPOINTS; i += get_global_size(0)) alpha[i] = (float)ALPHA(i) * (PENALTY / FULL);
    if (get_global_id(0) == 0) {
        for (int w = 0; w <= COMPUTED; ++w) status[w] = PICKED[w];
        b[0] = as_float(PICKED[B]);
    }
}
