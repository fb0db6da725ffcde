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

   `iterate` does both in a loop, to convergence in one launch: what the two launches of an iteration were in step by, there are
   barriers of the whole grid for. They want all groups to run at the same time.

   GROUP, LANES, ROWS, WIDTH, LANE_POINTS   shape: work-items per group, work-items per row, rows per team, words per
                                            load, points per work-item in passes over f
   RESIDENT, STAGED                         1: `iterate` in place of `pick` and `update`; with each group's points in local memory
   NPOINTS, PADDED, CHUNK, GROUPS, SLOTS, FIRST_ORDER; POLLS: how often a group looks for the others */
#include "smo_memory.cl"
#include "smo_candidates.cl"
#include "smo_rows.cl"
#include "smo_ends.cl"

#define OWNS(i) ((uint)(i) >= first && (uint)(i) < last)

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
#if ROOM_FOR_ALL
        slot = low;
        assign_slot(ints, slot, -1, low, first, last);
#else
        slot = high.slot == high.v0 ? high.v1 : high.v0;
        int owner = OWNER[slot];
        barrier(BOTH_FENCES);
        assign_slot(ints, slot, owner, low, first, last);
#endif
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
        PICKED[missing ? COMPUTED : HITS] += 1;
    }
}
#else
/* Each group's candidate for `low`: the greatest gain of a step with `high`. */
void propose_low(MEMORY, High high, uint first, uint last, SCRATCH) {
    uint item = get_local_id(0), group = get_group_id(0);
    __global float *row_high = cache + (size_t)high.slot * PADDED;
    barrier(BOTH_FENCES);
    if (high.missing)
        row_of(data, cache, floats, ints, vectors, row_high, high.point, first, last, part, staged);
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

/* Returns whether training has converged. */
int pick_pair(MEMORY, SCRATCH) {
    CHUNK_OF_GROUP
    int2 entries = groups_of_pair(HIGH_F, MOST, values, indices);
    int eh = entries.x, em = entries.y;
    float b_high = HIGH_F[eh], b_low = MOST[em];
    int lead = group == 0 && item == 0;
    if (b_low <= b_high + 2.0f * TAU) { /* the same for every group, and for every launch from here on */
        if (lead) {
            PICKED[DONE] = 1;
            PICKED[B] = as_int(0.5f * (b_low + b_high));
        }
        return 1;
    }
    High high;
    high.point = HIGH_I[eh];
    high.slot = HIGH_S[eh];
    high.f = b_high;
    high.missing = high.slot < 0;
#if ROOM_FOR_ALL
    high.v0 = NONE;
    if (high.missing) {
        high.slot = high.point;
        assign_slot(ints, high.point, -1, high.point, first, last);
    }
#else
    high.v0 = KEPT[K_V0];
    high.v1 = KEPT[K_V1];
    if (high.missing) {
        high.slot = high.v0;
        assign_slot(ints, high.v0, OWNER[high.v0], high.point, first, last);
    }
#endif
    if (lead) {
        PICKED[ITERATIONS] += 1;
        PICKED[P_HIGH] = high.point;
        PICKED[P_HIGH_F] = as_int(b_high);
        PICKED[P_HIGH_A] = HIGH_A[eh];
        PICKED[P_HIGH_S] = high.slot;
#if !ROOM_FOR_ALL
        PICKED[P_V0] = high.v0;
        PICKED[P_V1] = high.v1;
        PICKED[P_O0] = OWNER[high.v0];
        PICKED[P_O1] = OWNER[high.v1];
#endif
        PICKED[high.missing ? COMPUTED : HITS] += 1;
    }
#if FIRST_ORDER
    pick_low(data, cache, floats, ints, vectors, high, em, first, last, part);
#else
    propose_low(data, cache, floats, ints, vectors, high, first, last, values, indices, part, staged);
#endif
    return 0;
}

#if !ROOM_FOR_ALL
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

/* Notes whose rows the slots hold, and finds the next two that are free. */
void keep_cache(__global int *ints, int high, int slot_high, int low, int slot_low) {
    int v0 = PICKED[P_V0], v1 = PICKED[P_V1];
    OWNER[slot_high] = high;
    OWNER[slot_low] = low;
    RECENT[slot_high] = 1;
    RECENT[slot_low] = 1;
    if (v0 == slot_high || v0 == slot_low) v0 = victim(ints, v1, slot_high, slot_low);
    if (v1 == slot_high || v1 == slot_low) v1 = victim(ints, v0, slot_high, slot_low);
    KEPT[K_V0] = v0;
    KEPT[K_V1] = v1;
}
#endif

/* A point's new alpha, and which way it may move from there; its own group notes it. */
void set_alpha(__global float *floats, __global int *ints, int point, int alpha, uint first, uint last) {
    if (get_local_id(0) == 0 && OWNS(point)) {
        int grows = alpha < FULL, shrinks = alpha > 0;
        ALPHA(point) = alpha;
        FLAGS(point) = Y(point) > 0.0f ? (grows ? UP : 0) | (shrinks ? LOW : 0) : (shrinks ? UP : 0) | (grows ? LOW : 0);
    }
}

void take_step(MEMORY, SCRATCH) {
    CHUNK_OF_GROUP
    int high = PICKED[P_HIGH], slot_high = PICKED[P_HIGH_S], alpha_high = PICKED[P_HIGH_A];
    float f_high = as_float(PICKED[P_HIGH_F]);
#if FIRST_ORDER
    int low = PICKED[P_LOW], slot_low = PICKED[P_LOW_S], alpha_low = PICKED[P_LOW_A];
    float f_low = as_float(PICKED[P_LOW_F]);
#else
    int el = group_of_low(LOW_GAIN, values, indices);
    int low = LOW_I[el], slot_low = LOW_S[el], alpha_low = LOW_A[el], new_low = slot_low < 0;
    float f_low = LOW_F[el];
    if (new_low) {
#if ROOM_FOR_ALL
        slot_low = low;
        assign_slot(ints, slot_low, -1, low, first, last);
#else
        int v0 = PICKED[P_V0], v1 = PICKED[P_V1];
        slot_low = slot_high == v0 ? v1 : v0;
        assign_slot(ints, slot_low, slot_low == v0 ? PICKED[P_O0] : PICKED[P_O1], low, first, last);
#endif
        row_of(data, cache, floats, ints, vectors, cache + (size_t)slot_low * PADDED, low, first, last, part, staged);
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
    if (group == 0 && item == 0) {
#if !FIRST_ORDER
        PICKED[new_low ? COMPUTED : HITS] += 1;
#endif
#if !ROOM_FOR_ALL
        keep_cache(ints, high, slot_high, low, slot_low);
#endif
    }
}

#if RESIDENT
/* Until all groups have arrived here as often as this one. Waits no longer than POLLS looks, so that where groups do not run at
   the same time the kernel ends all the same: returns whether it gave up, which `given_up` keeps. */
int meet(__global int *ints, uint arrivals, __local int *given_up) {
    barrier(BOTH_FENCES);
#if GROUPS > 1
    if (get_local_id(0) == 0) {
        DEVICE_FENCE();
        atomic_inc(ARRIVED);
        int polls = POLLS;
        while (polls > 0 && (int)(ATOMIC_LOAD(ARRIVED) - arrivals) < 0) --polls;
        if (polls == 0) given_up[0] = PICKED[STUCK] = 1;
        DEVICE_FENCE();
    }
    barrier(BOTH_FENCES);
#endif
    return given_up[0];
}

__kernel void iterate(MEMORY, uint count) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    LOCAL_ARRAY(float, part, PART_WORDS);
    LOCAL_ARRAY(int, given_up, 1);
#if STAGED
    LOCAL_ARENA(float, staged, STAGED_WORDS);
    CHUNK_OF_GROUP
    uint words = (min(last, (uint)NPOINTS) - first) * vectors;
    for (uint v = item; v < words; v += GROUP) VSTORE(VLOAD(v, data + (size_t)first * PITCH), v, staged);
#else
    __local float *staged = part;
#endif
    if (get_local_id(0) == 0) given_up[0] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint arrivals = 0;
    for (uint k = 0; k < count; ++k) {
        if (pick_pair(data, cache, floats, ints, vectors, values, indices, part, staged)) break;
        if (meet(ints, arrivals += GROUPS, given_up)) break;
        take_step(data, cache, floats, ints, vectors, values, indices, part, staged);
        if (meet(ints, arrivals += GROUPS, given_up)) break;
    }
}
#else
__kernel void pick(MEMORY) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    LOCAL_ARRAY(float, part, PART_WORDS);
    pick_pair(data, cache, floats, ints, vectors, values, indices, part, part);
}

__kernel void update(MEMORY) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    LOCAL_ARRAY(float, part, PART_WORDS);
    if (!PICKED[DONE]) take_step(data, cache, floats, ints, vectors, values, indices, part, part);
}
#endif

