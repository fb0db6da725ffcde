/* C-SVC training by decomposition: a working set of up to 2 GROUPS points at a time, five launches for each, none of which waits
   for the host:

     choose   (one group) the candidates of all groups that violate the conditions are the working set; tests for convergence,
              finds slots for kernel rows that are missing
     fill     computes those rows, two in a walk over the data
     gather   the kernel between the members, from their rows
     solve    (one group) steps of two variables, second order, within the set, until its violation has halved
     update   f for what has changed, and each group's next candidates

   A chunk's candidates are its worst point for either direction, so that the most violating pair of all is always in the set.
   State and units are those of smo.cl.
   MEMBERS    2 GROUPS;  TILE   points of a work-group of `fill`, of which FILLERS share each tile's rows;  STEP_LIMIT   of a set */
#include "smo_memory.cl"
#include "smo_candidates.cl"
#include "smo_rows.cl"
#include "smo_ends.cl"

#define PER_ITEM ((MEMBERS + GROUP - 1) / GROUP)

/* Of each member: its point, or NONE, and its slot; then which members' rows are missing, and slot and change of y alpha of
   those whose alpha has changed. */
#define SET __global float *gram, __global int *members
#define POINT(m) members[m]
#define SLOT(m) members[MEMBERS + (m)]
#define MISSING(k) members[2 * MEMBERS + (k)]
#define CHANGED_SLOT(k) members[3 * MEMBERS + (k)]
#define CHANGE(k) members[4 * MEMBERS + (k)]
#define MISSING_COUNT members[5 * MEMBERS]
#define CHANGED_COUNT members[5 * MEMBERS + 1]

/* How many the work-items before this one have counted, and all of them. Needs a barrier before `counts` is written again. */
int2 counted(__local int *counts, int own) {
    uint item = get_local_id(0);
    int before = 0, all = 0;
    counts[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < GROUP; ++k) {
        before += k < item ? counts[k] : 0;
        all += counts[k];
    }
    return MAKE_INT2(before, all);
}

__kernel void choose(MEMORY, SET) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    LOCAL_ARRAY(int, counts, GROUP);
    uint item = get_local_id(0);
    int2 entries = groups_of_pair(HIGH_F, MOST, values, indices);
    float b_high = HIGH_F[entries.x], b_low = MOST[entries.y];
    if (b_low <= b_high + 2.0f * TAU) {
        if (item == 0) {
            PICKED[DONE] = 1;
            PICKED[B] = as_int(0.5f * (b_low + b_high));
        }
        return;
    }
    int now = PICKED[SETS] + 1, missing = 0, present = 0;
    for (int m = item * PER_ITEM; m < min((int)(item + 1) * PER_ITEM, MEMBERS); ++m) {
        int group = m % GROUPS, high = HIGH_F[group] < b_low ? HIGH_I[group] : NONE;
        int point = m < GROUPS ? high : LOW_F[group] > b_high && LOW_I[group] != high ? LOW_I[group] : NONE;
        int slot = point == NONE ? NONE : SLOT_OF(point);
        POINT(m) = point;
        SLOT(m) = slot;
        missing += slot < 0;
        present += slot >= 0 && point != NONE;
#if !ROOM_FOR_ALL
        if (slot >= 0 && point != NONE) RECENT[slot] = now;
#endif
    }
    int2 list = counted(counts, missing);
    int at = list.x, all = list.y;
    for (int m = item * PER_ITEM; m < min((int)(item + 1) * PER_ITEM, MEMBERS); ++m) {
        if (SLOT(m) >= 0) continue;
        MISSING(at++) = m;
#if ROOM_FOR_ALL
        SLOT(m) = SLOT_OF(POINT(m)) = POINT(m);
#endif
    }
    barrier(BOTH_FENCES);
    int hits = counted(counts, present).y;
    if (item == 0) {
        MISSING_COUNT = all;
        PICKED[SETS] = now;
        PICKED[HITS] += hits;
        PICKED[COMPUTED] += all;
        PICKED[WALKS] += (all + 1) / 2;
#if !ROOM_FOR_ALL
        /* In the order in which they were filled, but for those of this set, which has no more members than there are slots. */
        int hand = KEPT[K_HAND];
        for (int k = 0; k < all; ++k) {
            int m = MISSING(k);
            while (RECENT[hand] == now) hand = hand + 1 == SLOTS ? 0 : hand + 1;
            if (OWNER[hand] >= 0) SLOT_OF(OWNER[hand]) = -1;
            OWNER[hand] = POINT(m);
            RECENT[hand] = now;
            SLOT(m) = SLOT_OF(POINT(m)) = hand;
        }
        KEPT[K_HAND] = hand;
#endif
    }
}

__kernel void fill(MEMORY, SET) {
    LOCAL_ARRAY(float, part, PART_WORDS);
    if (!PICKED[DONE]) {
        uint first = get_group_id(0) / FILLERS * TILE, last = min(first + TILE, (uint)PADDED);
        int missing = MISSING_COUNT;
        for (int k = 2 * (get_group_id(0) % FILLERS); k < missing; k += 2 * FILLERS) {
            int a = MISSING(k);
            __global float *row_a = cache + (size_t)SLOT(a) * PADDED;
            if (k + 1 < missing) {
                int b = MISSING(k + 1);
                rows(data, row_a, cache + (size_t)SLOT(b) * PADDED, POINT(a), POINT(b), 1, first, last, vectors, part);
            } else {
                rows(data, row_a, row_a, POINT(a), POINT(a), 0, first, last, vectors, part);
            }
        }
    }
}

__kernel void gather(MEMORY, SET) {
    int a = get_group_id(0);
    if (PICKED[DONE] || POINT(a) == NONE) return;
    __global const float *row = cache + (size_t)SLOT(a) * PADDED;
    for (int b = get_local_id(0); b < MEMBERS; b += GROUP) gram[a * MEMBERS + b] = POINT(b) == NONE ? 0.0f : row[POINT(b)];
}

__kernel void solve(MEMORY, SET) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    LOCAL_ARRAY(float, fs, MEMBERS);
    LOCAL_ARRAY(int, alphas, MEMBERS);
    LOCAL_ARRAY(float, ys, MEMBERS);
    LOCAL_ARRAY(float, of_high, MEMBERS); /* the kernel of each member and `high` */
    uint item = get_local_id(0);
    float f[PER_ITEM], y[PER_ITEM], kernel_high[PER_ITEM], kernel_low[PER_ITEM];
    int alpha[PER_ITEM], before[PER_ITEM], done = PICKED[DONE];
    #pragma unroll
    for (int p = 0; p < PER_ITEM; ++p) {
        int m = p * GROUP + item, point = m < MEMBERS && !done ? POINT(m) : NONE;
        f[p] = point == NONE ? 0.0f : F(point) + LOST(point);
        y[p] = point == NONE ? 0.0f : Y(point);
        before[p] = alpha[p] = point == NONE ? 0 : ALPHA(point);
        if (m < MEMBERS) {
            fs[m] = f[p];
            alphas[m] = alpha[p];
            ys[m] = y[p];
        }
    }
    float enough = 2.0f * TAU;
    int steps_taken = 0;
    while (!done) {
        float up_v = -INFINITY, low_v = -INFINITY;
        int up_i = NONE, low_i = NONE;
        #pragma unroll
        for (int p = 0; p < PER_ITEM; ++p) {
            int m = p * GROUP + item;
            int up = y[p] > 0.0f ? alpha[p] < FULL : y[p] < 0.0f && alpha[p] > 0;
            int low = y[p] > 0.0f ? alpha[p] > 0 : y[p] < 0.0f && alpha[p] < FULL;
            int take = up & (-f[p] > up_v);
            up_v = select(up_v, -f[p], take);
            up_i = select(up_i, m, take);
            take = low & (f[p] > low_v);
            low_v = select(low_v, f[p], take);
            low_i = select(low_i, m, take);
        }
        best_of_each(values, indices, up_v, up_i, low_v, low_i);
        float f_high = -values[0], violation = values[GROUP] - f_high;
        int high = indices[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (steps_taken == 0) enough = fmax(enough, 0.5f * violation);
        done = violation <= enough || steps_taken == STEP_LIMIT;
        /* The barriers below are for all or for none. */
        float gain_v = -INFINITY;
        int gain_i = NONE;
        high = done ? 0 : high;
        #pragma unroll
        for (int p = 0; p < PER_ITEM; ++p) {
            int m = p * GROUP + item;
            int low = y[p] > 0.0f ? alpha[p] > 0 : y[p] < 0.0f && alpha[p] < FULL;
            float over = f[p] - f_high;
            kernel_high[p] = m < MEMBERS && !done ? gram[high * MEMBERS + m] : 0.0f;
            if (m < MEMBERS) of_high[m] = kernel_high[p];
            float gain = over * over / fmax(2.0f - 2.0f * kernel_high[p], 1e-12f);
            int take = low & (over > 0.0f) & (gain > gain_v);
            gain_v = select(gain_v, gain, take);
            gain_i = select(gain_i, m, take);
        }
        int low = best(values, indices, gain_v, gain_i);
        low = done || low == NONE ? 0 : low;
        #pragma unroll
        for (int p = 0; p < PER_ITEM; ++p) {
            int m = p * GROUP + item;
            kernel_low[p] = m < MEMBERS && !done ? gram[low * MEMBERS + m] : 0.0f;
        }
        float eta = fmax(2.0f - 2.0f * of_high[low], 1e-12f);
        int y_high = ys[high] > 0.0f, y_low = ys[low] > 0.0f;
        int room_high = y_high ? FULL - alphas[high] : alphas[high], room_low = y_low ? alphas[low] : FULL - alphas[low];
        int room = min(room_high, room_low);
        float wish = (fs[low] - f_high) / eta * (FULL / PENALTY);
        int steps = done ? 0 : wish >= (float)FULL ? room : min(max((int)(wish + 0.5f), 1), room);
        float t = (float)steps * (PENALTY / FULL);
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int p = 0; p < PER_ITEM; ++p) {
            int m = p * GROUP + item;
            if (m < MEMBERS && !done) {
                f[p] += t * (kernel_high[p] - kernel_low[p]);
                alpha[p] += m == high ? (y_high ? steps : -steps) : 0;
                alpha[p] -= m == low ? (y_low ? steps : -steps) : 0;
                fs[m] = f[p];
                alphas[m] = alpha[p];
            }
        }
        steps_taken += !done;
    }
    int changed = 0;
    #pragma unroll
    for (int p = 0; p < PER_ITEM; ++p) changed += alpha[p] != before[p];
    int2 list = counted(indices, changed);
    #pragma unroll
    for (int p = 0; p < PER_ITEM; ++p) {
        int m = p * GROUP + item;
        if (alpha[p] != before[p]) {
            int point = POINT(m), grows = alpha[p] < FULL, shrinks = alpha[p] > 0;
            ALPHA(point) = alpha[p];
            FLAGS(point) = y[p] > 0.0f ? (grows ? UP : 0) | (shrinks ? LOW : 0) : (shrinks ? UP : 0) | (grows ? LOW : 0);
            CHANGED_SLOT(list.x) = SLOT(m);
            CHANGE(list.x) = y[p] > 0.0f ? alpha[p] - before[p] : before[p] - alpha[p];
            ++list.x;
        }
    }
    if (item == 0) {
        CHANGED_COUNT = list.y;
        PICKED[STEPPED] += list.y;
        PICKED[ITERATIONS] += steps_taken;
    }
}

/* Few points have many work-items: each takes a slice of what has changed. */
#define COLUMNS (CHUNK < GROUP ? CHUNK : GROUP)
#define SLICES (GROUP / COLUMNS)

__kernel void update(MEMORY, SET) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    LOCAL_ARRAY(float, parts, GROUP);
    LOCAL_ARRAY(float, changes, MEMBERS);
    LOCAL_ARRAY(int, slots, MEMBERS);
    CHUNK_OF_GROUP
    if (!PICKED[DONE]) {
        int changed = CHANGED_COUNT;
        for (int k = item; k < changed; k += GROUP) {
            changes[k] = (float)CHANGE(k) * (PENALTY / FULL);
            slots[k] = CHANGED_SLOT(k);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint base = first; base < last; base += COLUMNS) {
            uint column = item % COLUMNS, slice = item / COLUMNS, k = base + column;
            if (slice < SLICES && k < last) {
                float sum = 0.0f;
                #pragma unroll 4
                for (int j = slice; j < changed; j += SLICES) sum = fma(changes[j], cache[(size_t)slots[j] * PADDED + k], sum);
                parts[item] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (slice == 0 && k < last) {
                float f = F(k), lost = LOST(k);
                for (int s = 0; s < SLICES; ++s) {
                    float change = parts[s * COLUMNS + column], sum = f + change, back = sum - f;
                    lost += (f - (sum - back)) + (change - back);
                    f = sum;
                }
                F(k) = f;
                LOST(k) = lost;
            }
            barrier(BOTH_FENCES);
        }
        pass(floats, ints, floats, floats, 0.0f, first, last, group, values, indices);
    }
}
