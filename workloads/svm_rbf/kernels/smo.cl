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
#include "smo_memory.cl"
#include "smo_candidates.cl"
#include "smo_rows.cl"

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
        for (int w = 0; w < PICKED_WORDS; ++w) PICKED[w] = 0;
        KEPT[K_V0] = 0;
        KEPT[K_V1] = 1;
        KEPT[K_HAND] = 2 % SLOTS;
    }
    barrier(BOTH_FENCES);
    pass(floats, ints, floats, floats, 0.0f, first, last, group, values, indices);
}

/* A row's slot goes from its owner, if it has one, to another point; every group notes it for points of its own. */
void assign_slot(__global int *ints, int slot, int owner, int point, uint first, uint last) {
    if (get_local_id(0) == 0 && owner >= 0 && OWNS(owner)) SLOT_OF(owner) = -1;
    if (get_local_id(0) == 0 && OWNS(point)) SLOT_OF(point) = slot;
}

/* `high` as every group has chosen it, and the two slots that are free for rows. */
typedef struct {
    int point, slot, missing, v0, v1;
    float f;
} High;

#if FIRST_ORDER
/* `low` is the most violating point, the candidate of group `entry`; missing rows of both are computed in one pass. */
void pick_low(MEMORY, High high, int entry, uint first, uint last, __local float *part) {
    int low = LOW_I[entry], slot = LOW_S[entry];
    /* the row of `high` may have taken the slot that held the row of `low` */
    int missing = slot < 0 || (high.missing && slot == high.v0);
    if (missing) {
        slot = high.slot == high.v0 ? high.v1 : high.v0;
        int owner = OWNER[slot];
        barrier(BOTH_FENCES);
        assign_slot(ints, slot, owner, low, first, last);
    }
    __global float *row_high = cache + (size_t)high.slot * PADDED, *row_low = cache + (size_t)slot * PADDED;
    if (high.missing && missing) rows(data, row_high, row_low, high.point, low, 1, first, last, vectors, part);
    else if (high.missing || missing)
        rows(data, high.missing ? row_high : row_low, row_low, high.missing ? high.point : low, low, 0, first, last, vectors,
             part);
    if (get_global_id(0) == 0) {
        PICKED[P_LOW] = low;
        PICKED[P_LOW_F] = as_int(MOST[entry]);
        PICKED[P_LOW_A] = LOW_A[entry];
        PICKED[P_LOW_S] = slot;
        PICKED[P_LOW_NEW] = missing;
        PICKED[missing ? COMPUTED : HITS] += 1;
    }
}
#else
/* Each group's candidate for `low`: the greatest gain of a step with `high`. */
void propose_low(MEMORY, High high, uint first, uint last, __local float *values, __local int *indices,
                 __local float *part) {
    uint item = get_local_id(0), group = get_group_id(0);
    __global float *row_high = cache + (size_t)high.slot * PADDED;
    barrier(BOTH_FENCES);
    if (high.missing) rows(data, row_high, row_high, high.point, high.point, 0, first, last, vectors, part);
    LANES_BEGIN(gain_v, gain_i)
    for (uint k = first + item * LANE_POINTS; k < last; k += GROUP * LANE_POINTS) {
        #pragma unroll
        for (int l = 0; l < LANE_POINTS; ++l) {
            float over = F(k + l) + LOST(k + l) - high.f;
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
}
#endif

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
    High high;
    high.point = HIGH_I[eh];
    high.slot = HIGH_S[eh];
    high.f = b_high;
    high.v0 = KEPT[K_V0];
    high.v1 = KEPT[K_V1];
    high.missing = high.slot < 0;
    if (high.missing) {
        high.slot = high.v0;
        assign_slot(ints, high.v0, OWNER[high.v0], high.point, first, last);
    }
    if (lead) {
        PICKED[ITERATIONS] += 1;
        PICKED[P_HIGH] = high.point;
        PICKED[P_HIGH_F] = as_int(b_high);
        PICKED[P_HIGH_A] = HIGH_A[eh];
        PICKED[P_HIGH_S] = high.slot;
        PICKED[P_HIGH_NEW] = high.missing;
        PICKED[P_V0] = high.v0;
        PICKED[P_V1] = high.v1;
        PICKED[P_O0] = OWNER[high.v0];
        PICKED[P_O1] = OWNER[high.v1];
        PICKED[high.missing ? COMPUTED : HITS] += 1;
    }
#if FIRST_ORDER
    pick_low(data, cache, floats, ints, vectors, high, em, first, last, part);
#else
    propose_low(data, cache, floats, ints, vectors, high, first, last, values, indices, part);
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

/* A point's new alpha, and which way it may move from there; its own group notes it. */
void set_alpha(__global float *floats, __global int *ints, int point, int alpha, uint first, uint last) {
    if (get_local_id(0) == 0 && OWNS(point)) {
        int grows = alpha < FULL, shrinks = alpha > 0;
        ALPHA(point) = alpha;
        FLAGS(point) = Y(point) > 0.0f ? (grows ? UP : 0) | (shrinks ? LOW : 0) : (shrinks ? UP : 0) | (grows ? LOW : 0);
    }
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
        assign_slot(ints, slot_low, slot_low == v0 ? PICKED[P_O0] : PICKED[P_O1], low, first, last);
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
    set_alpha(floats, ints, high, alpha_high, first, last);
    set_alpha(floats, ints, low, alpha_low, first, last);
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
