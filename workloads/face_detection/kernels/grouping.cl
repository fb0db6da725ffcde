/* Groups of windows that lie close together, as OpenCV's groupRectangles has them: connected components by union-find over
   all pairs of a frame, tile by tile (hooking the larger root to the smaller by compare-and-swap: J. Jaiganesh, M. Burtscher, "A
   High-Performance Connected Components Implementation for GPUs", HPDC 2018), then sums over each component. Components and
   integer sums do not depend on the order.

   windows: count, number by number. Per window: box (x, y, width, height), frame, parent in its component, sums of x, y, width,
   height and windows where it is a root. groups: how many, windows in all, then GROUP_WORDS words each: frame, windows, sums. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define LEVEL_WORDS 15
#define GROUP_WORDS 6
#define SIDE 64 /* of a tile of pairs: the work-group */

uint level_of(__global const uint *levels, uint count, uint n) {
    uint low = 0, high = count;
    while (high - low > 1) {
        uint middle = (low + high) >> 1;
        if (levels[middle * LEVEL_WORDS + 5] <= n) low = middle; else high = middle;
    }
    return low;
}

int scaled(uint length, float scale) { return (int)rint((float)length * scale); }

__kernel REQD_GROUP(SIDE) void boxes(__global const uint *RESTRICT windows, __global const uint *RESTRICT count, uint capacity,
                                     __global const uint *RESTRICT levels, uint level_count, uint frame_windows,
                                     __global int *RESTRICT boxes, __global uint *RESTRICT frames,
                                     __global uint *RESTRICT parents, __global uint *RESTRICT sums,
                                     __global uint *RESTRICT groups) {
    uint n = min(count[0], capacity);
    if (get_global_id(0) == 0) {
        groups[0] = 0;
        groups[1] = count[0];
    }
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint frame = windows[i] / frame_windows, inside = windows[i] - frame * frame_windows;
        __global const uint *level = levels + LEVEL_WORDS * level_of(levels, level_count, inside);
        uint columns = level[3], step = level[4], y = (inside - level[5]) / columns, x = inside - level[5] - y * columns;
        float scale = as_float(level[13]);
        vstore4(MAKE_INT4(scaled(x * step, scale), scaled(y * step, scale), scaled(WINDOW_WIDTH, scale),
                          scaled(WINDOW_HEIGHT, scale)), i, boxes);
        frames[i] = frame;
        parents[i] = i;
        for (uint k = 0; k < 5; ++k) sums[5 * i + k] = 0;
    }
}

/* Parents are read and written by atomic operations alone: other work-items change them meanwhile. */
uint root(__global uint *parents, uint i) {
    uint parent = atomic_or(&parents[i], 0u);
    while (parent != i) {
        i = parent;
        parent = atomic_or(&parents[i], 0u);
    }
    return i;
}

/* Unites the components of a and b; returns a parent of both. */
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

/* A work-group takes tiles of SIDE x SIDE pairs, of which only those of the lower triangle count. */
__kernel REQD_GROUP(SIDE) void link(__global const uint *RESTRICT count, uint capacity, __global const int *RESTRICT boxes,
                                    __global const uint *RESTRICT frames, __global uint *parents) {
    LOCAL_ARRAY(int, others, 4 * SIDE);
    LOCAL_ARRAY(uint, other_frames, SIDE);
    uint lid = get_local_id(0), n = min(count[0], capacity), tiles = (n + SIDE - 1) / SIDE, row = 0, before = 0;
    for (uint pair = get_group_id(0); pair < tiles * (tiles + 1) / 2; pair += get_num_groups(0)) {
        while (before + row + 1 <= pair) before += ++row;
        uint i = row * SIDE + lid, first = (pair - before) * SIDE, j = first + lid;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (j < n) {
            vstore4(vload4(j, boxes), lid, others);
            other_frames[lid] = frames[j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < n) {
            int4 mine = vload4(i, boxes);
            uint frame = frames[i], known = i;
            for (uint k = 0; k < min((uint)SIDE, i - min(i, first)); ++k) {
                /* A parent read without care may be an old one, but of the same component it is. */
                if (other_frames[k] == frame && close_together(mine, vload4(k, others)) && parents[first + k] != known)
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

/* The components of more than `neighbours` windows. */
__kernel REQD_GROUP(SIDE) void list(__global const uint *RESTRICT count, uint capacity, __global const uint *RESTRICT frames,
                                    __global const uint *RESTRICT sums, uint neighbours, __global uint *groups) {
    uint n = min(count[0], capacity);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        if (sums[5 * i + 4] <= neighbours) continue;
        __global uint *to = groups + 2 + GROUP_WORDS * atomic_inc(&groups[0]);
        to[0] = frames[i];
        to[1] = sums[5 * i + 4];
        for (uint k = 0; k < 4; ++k) to[2 + k] = sums[5 * i + k];
    }
}
