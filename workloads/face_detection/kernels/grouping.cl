/* Groups of windows that lie close together, as OpenCV's groupRectangles has them: connected components by union-find over
   all pairs of a frame, tile by tile (hooking the larger root to the smaller by compare-and-swap: J. Jaiganesh, M. Burtscher, "A
   High-Performance Connected Components Implementation for GPUs", HPDC 2018), then sums over each component. Components and
   integer sums do not depend on the order.

   windows: count, number by number. Per window: box (x, y, width, height), frame, parent in its component, sums of x, y, width,
   height and windows where it is a root. groups: how many, then GROUP_WORDS words each: frame, windows, mean box. faces: how
   many, windows in all, then FACE_WORDS words each: frame, box. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "level.cl"
#define GROUP_WORDS 6
#define FACE_WORDS 5
#define SIDE 64 /* of a tile of pairs: the work-group */

LEVEL_BY(first_window)

int scaled(uint length, float scale) { return (int)rint((float)length * scale); }

__kernel REQD_GROUP(SIDE) void boxes(__global const uint *RESTRICT windows, __global const uint *RESTRICT count, uint capacity,
                                     __global const Level *RESTRICT levels, uint level_count, uint frame_windows,
                                     __global int *RESTRICT boxes, __global uint *RESTRICT frames,
                                     __global uint *RESTRICT parents, __global uint *RESTRICT sums,
                                     __global uint *RESTRICT groups, __global uint *RESTRICT faces) {
    uint n = min(count[0], capacity);
    if (get_global_id(0) == 0) groups[0] = faces[0] = 0;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint frame = windows[i] / frame_windows, inside = windows[i] - frame * frame_windows;
        __global const Level *level = level_by_first_window(levels, level_count, inside);
        uint columns = level->columns, step = level->step, first = level->first_window;
        uint y = (inside - first) / columns, x = inside - first - y * columns;
        float scale = level->scale;
        vstore4(MAKE_INT4(scaled(x * step, scale), scaled(y * step, scale), scaled(WINDOW_WIDTH, scale),
                          scaled(WINDOW_HEIGHT, scale)), i, boxes);
        frames[i] = frame;
        parents[i] = i;
        for (uint k = 0; k < 5; ++k) sums[5 * i + k] = 0;
    }
}

/* Other work-items change parents meanwhile. On the way each node is hung below its parent's parent: an ancestor is always right. */
uint root(__global uint *parents, uint i) {
    uint at = ATOMIC_LOAD(&parents[i]), next;
    while ((next = ATOMIC_LOAD(&parents[at])) != at) {
        ATOMIC_STORE(&parents[i], next);
        i = at;
        at = next;
    }
    return at;
}

/* Unites the components of a and b; returns a node above both. */
uint unite(__global uint *parents, uint a, uint b) {
    a = root(parents, a);
    b = root(parents, b);
    while (a != b) {
        uint high = max(a, b), low = min(a, b);
        if (atomic_cmpxchg(&parents[high], high, low) == high) return low;
        a = root(parents, high);
        b = root(parents, low);
    }
    return a;
}

/* OpenCV's SimilarRects with an epsilon of 0.2: in doubles, as there. */
int close_together(int4 a, int4 b) {
    double limit = 0.2 * (double)(min(a.z, b.z) + min(a.w, b.w)) * 0.5;
    return abs(a.x - b.x) <= limit && abs(a.y - b.y) <= limit && abs(a.x + a.z - b.x - b.z) <= limit &&
           abs(a.y + a.w - b.y - b.w) <= limit;
}

/* A work-group takes tiles of SIDE x SIDE pairs, of which only those of the lower triangle count. Windows of a frame lie
   mostly together, so that few tiles hold pairs of one frame. */
__kernel REQD_GROUP(SIDE) void link(__global const uint *RESTRICT count, uint capacity, __global const int *RESTRICT boxes,
                                    __global const uint *RESTRICT frames, __global uint *parents) {
    LOCAL_ARRAY(int, others, 4 * SIDE);
    LOCAL_ARRAY(uint, other_frames, SIDE);
    LOCAL_ARRAY(uint, range, 2); /* first and last frame among the others */
    uint lid = get_local_id(0), n = min(count[0], capacity), tiles = (n + SIDE - 1) / SIDE, row = 0, before = 0;
    for (uint pair = get_group_id(0); pair < tiles * (tiles + 1) / 2; pair += get_num_groups(0)) {
        while (before + row + 1 <= pair) before += ++row;
        uint i = row * SIDE + lid, first = (pair - before) * SIDE, j = first + lid;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0) range[0] = range[1] = frames[first];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (j < n) {
            vstore4(vload4(j, boxes), lid, others);
            other_frames[lid] = frames[j];
            atomic_min(&range[0], frames[j]);
            atomic_max(&range[1], frames[j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < n && frames[i] >= range[0] && frames[i] <= range[1]) {
            int4 mine = vload4(i, boxes);
            uint frame = frames[i], known = i;
            for (uint k = 0; k < min((uint)SIDE, i - min(i, first)); ++k) {
                /* Two windows with one parent are united already. */
                if (other_frames[k] == frame && close_together(mine, vload4(k, others)) &&
                    ATOMIC_LOAD(&parents[first + k]) != known)
                    known = unite(parents, i, first + k);
            }
        }
    }
}

__kernel REQD_GROUP(SIDE) void add(__global const uint *RESTRICT count, uint capacity, __global const int *RESTRICT boxes,
                                   __global uint *parents, __global uint *sums) {
    uint n = min(count[0], capacity);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint to = 5 * root(parents, i);
        for (uint k = 0; k < 4; ++k) atomic_add(&sums[to + k], (uint)boxes[4 * i + k]);
        atomic_add(&sums[to + 4], 1u);
    }
}

/* The components of more than `neighbours` windows, with their mean boxes. */
__kernel REQD_GROUP(SIDE) void list(__global const uint *RESTRICT count, uint capacity, __global const uint *RESTRICT frames,
                                    __global const uint *RESTRICT sums, uint neighbours, __global uint *groups) {
    uint n = min(count[0], capacity);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint windows = sums[5 * i + 4];
        if (windows <= neighbours) continue;
        __global uint *to = groups + 1 + GROUP_WORDS * atomic_inc(&groups[0]);
        to[0] = frames[i];
        to[1] = windows;
        for (uint k = 0; k < 4; ++k) to[2 + k] = (uint)scaled(sums[5 * i + k], (float)(1.0 / (double)windows));
    }
}

/* The groups that do not lie in a stronger one of their frame: frame and box of each. */
__kernel REQD_GROUP(SIDE) void keep(__global const uint *RESTRICT count, __global const uint *RESTRICT groups,
                                    __global uint *faces) {
    uint n = groups[0];
    if (get_global_id(0) == 0) faces[1] = count[0];
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        __global const uint *mine = groups + 1 + GROUP_WORDS * i;
        int x = (int)mine[2], y = (int)mine[3], right = x + (int)mine[4], low = y + (int)mine[5], kept = 1;
        for (uint j = 0; j < n && kept; ++j) {
            __global const uint *other = groups + 1 + GROUP_WORDS * j;
            if (i == j || other[0] != mine[0] || (other[1] <= max(3u, mine[1]) && mine[1] >= 3u)) continue;
            int left = (int)other[2], top = (int)other[3], width = (int)other[4], height = (int)other[5];
            int margin = (int)rint(0.2 * (double)width), margin_y = (int)rint(0.2 * (double)height);
            kept = !(x >= left - margin && y >= top - margin_y && right <= left + width + margin &&
                     low <= top + height + margin_y);
        }
        if (!kept) continue;
        __global uint *to = faces + 2 + FACE_WORDS * atomic_inc(&faces[0]);
        to[0] = mine[0];
        for (uint k = 0; k < 4; ++k) to[1 + k] = mine[2 + k];
    }
}
