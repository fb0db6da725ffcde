/* What a build does besides passes. Macros: K, DIMS, GROUP, INTERLEAVED; nodes are numbered within a launch. */
#include "interleaved.cl"

/* Sums and counts to zero. */
__kernel void clear(__global uint *RESTRICT sums, __global uint *RESTRICT counts, uint nodes) {
    for (uint i = get_global_id(0); i < nodes * K * DIMS; i += get_global_size(0)) sums[i] = 0;
    for (uint i = get_global_id(0); i < nodes * K; i += get_global_size(0)) counts[i] = 0;
}

/* The first centres: `chosen` points (numbers in the buffer), a work-group per centre. A node starts as moving. */
__kernel void REQD_GROUP(DIMS) start(__global const uchar *RESTRICT points, __global const uint *RESTRICT chosen,
                                    __global ushort *RESTRICT centres, __global int *RESTRICT halves,
                                    __global uint *RESTRICT moving) {
    LOCAL_ARRAY(uint, squares, DIMS);
    uint d = get_local_id(0), centre = get_group_id(0);
    uint x = points[BYTE_AT(chosen[centre], d)];
    centres[(size_t)centre * DIMS + d] = (ushort)(x << 8);
    squares[d] = x * x;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (d == 0) {
        uint total = 0;
        for (uint i = 0; i < DIMS; ++i) total += squares[i];
        halves[centre] = (int)(total * 128);
        if (centre % K == 0) moving[centre / K] = 1;
    }
}

/* Sums to means, a work-group per node: new centres and their halves; the sums become zero again, the counts where an empty
   class must not be told. A node that does not change stops moving. progress[0] counts the nodes that move,
   progress[1] the empty classes; `empty` is 1 for a node that has any. */
__kernel void REQD_GROUP(DIMS) update(__global uint *RESTRICT sums, __global uint *RESTRICT counts,
                                     __global ushort *RESTRICT centres, __global int *RESTRICT halves,
                                     __global uint *RESTRICT moving, __global uint *RESTRICT empty,
                                     __global uint *RESTRICT progress) {
    LOCAL_ARRAY(ulong, squares, DIMS);
    LOCAL_ARRAY(uint, changed, 1);
    uint d = get_local_id(0), node = get_group_id(0), active = moving[node], gaps = 0;
    if (d == 0) changed[0] = 0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* everybody has read what the first one will write */
    for (uint k = 0; k < K; ++k) {
        size_t centre = (size_t)node * K + k;
        uint number = counts[centre], old = centres[centre * DIMS + d], value = old;
        if (active && number) value = (uint)((512 * (ulong)sums[centre * DIMS + d] + number) / (2 * (ulong)number));
        if (active && number == 0) ++gaps;
        squares[d] = (ulong)value * value;
        if (active) {
            centres[centre * DIMS + d] = (ushort)value;
            sums[centre * DIMS + d] = 0;
            if (value != old) atomic_or(changed, 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (d == 0 && active) {
            ulong total = 256;
            for (uint i = 0; i < DIMS; ++i) total += squares[i];
            halves[centre] = (int)(total >> 9);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (d == 0 && active) {
        empty[node] = gaps;
        moving[node] = changed[0] | (gaps != 0);
        if (moving[node]) atomic_inc(progress);
        if (gaps) atomic_add(progress + 1, gaps);
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (active && gaps == 0) {
        for (uint k = d; k < K; k += DIMS) counts[node * K + k] = 0;
    }
}

/* 256 |x - c|^2 of each point to its own centre, in a nodes' own order; a work-item per point of a tile. */
__kernel void distances(__global const uint *RESTRICT points, __global const uint *RESTRICT tiles,
                        __global const ushort *RESTRICT centres, __global const int *RESTRICT halves,
                        __global const uchar *RESTRICT labels, __global uint *RESTRICT found) {
    uint4 tile = vload4(get_group_id(0), tiles);
    for (uint i = get_local_id(0); i < tile.z; i += get_local_size(0)) {
        uint at = tile.y + i, k = labels[at];
        __global const ushort *c = centres + ((size_t)tile.x * K + k) * DIMS;
        uint squares = 0, product = 0;
        for (uint w = 0; w < WORDS; ++w) {
            uint x = points[WORD_AT(at, w)];
            for (uint j = 0; j < 4; ++j) {
                uint value = x >> 8 * j & 0xFFu;
                squares += value * value;
                product += value * c[4 * w + j];
            }
        }
        found[at] = 256 * squares - 2 * (product - (uint)halves[tile.x * K + k]) + 1;
    }
}

/* An empty class gets the point of its node that is farthest from its own centre; several, by class, get the farthest ones in
   order, the lowest number first of equal ones. A work-group per node of the launch, whose points begin at `first`. */
__kernel void REQD_GROUP(GROUP) refill(__global const uchar *RESTRICT points, __global const uint *RESTRICT first,
                                      __global const uint *RESTRICT size, __global const uint *RESTRICT distances,
                                      __global const uint *RESTRICT moving, __global const uint *RESTRICT empty,
                                      __global const uint *RESTRICT counts, __global ushort *RESTRICT centres,
                                      __global int *RESTRICT halves) {
    LOCAL_ARRAY(ulong, best, GROUP);
    uint item = get_local_id(0), node = get_group_id(0), start = first[node], number = size[node];
    uint wanted = moving[node] ? empty[node] : 0;
    size_t centre = (size_t)node * K;
    ulong last = ~(ulong)0; /* the point that was taken last: its distance, then how many numbers are higher */
    for (uint n = 0; n < wanted; ++n, ++centre) {
        while (counts[centre]) ++centre;
        ulong own = 0;
        for (uint i = item; i < number; i += GROUP) {
            ulong key = (ulong)distances[start + i] << 32 | (0xFFFFFFFFu - i);
            if (key < last && key > own) own = key;
        }
        best[item] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint step = GROUP / 2; step; step /= 2) {
            if (item < step && best[item + step] > best[item]) best[item] = best[item + step];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        last = best[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        uint at = start + (0xFFFFFFFFu - (uint)last);
        for (uint d = item; d < DIMS; d += GROUP) centres[centre * DIMS + d] = (ushort)((uint)points[BYTE_AT(at, d)] << 8);
        if (item == 0) {
            uint total = 0;
            for (uint d = 0; d < DIMS; ++d) total += (uint)points[BYTE_AT(at, d)] * points[BYTE_AT(at, d)];
            halves[centre] = (int)(total * 128);
        }
    }
}

/* The classes of a tile's points, counted: a work-group per tile, GROUP >= K items. */
__kernel void REQD_GROUP(GROUP) count_tiles(__global const uint *RESTRICT tiles, __global const uchar *RESTRICT labels,
                                           __global uint *RESTRICT found) {
    LOCAL_ARRAY(uint, count, K);
    uint item = get_local_id(0);
    uint4 tile = vload4(get_group_id(0), tiles);
    for (uint k = item; k < K; k += GROUP) count[k] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < tile.z; i += GROUP) atomic_inc(count + labels[tile.y + i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = item; k < K; k += GROUP) found[get_group_id(0) * K + k] = count[k];
}

/* What `count_tiles` found becomes places: where the first point of each class of a tile goes. A work-group per node, a
   work-item per class; `heads` holds the first tile of each node and the number of all tiles, `sizes` gets the points of each
   node and class. */
__kernel void REQD_GROUP(GROUP) place_tiles(__global const uint *RESTRICT tiles, __global const uint *RESTRICT heads,
                                           __global uint *RESTRICT found, __global uint *RESTRICT sizes) {
    LOCAL_ARRAY(uint, total, K);
    uint k = get_local_id(0), node = get_group_id(0), head = heads[node], end = heads[node + 1];
    if (k < K) {
        uint own = 0;
        for (uint tile = head; tile < end; ++tile) own += found[(size_t)tile * K + k];
        total[k] = own;
        sizes[(size_t)node * K + k] = own;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (k < K) {
        uint place = tiles[4 * head + 1];
        for (uint i = 0; i < k; ++i) place += total[i];
        for (uint tile = head; tile < end; ++tile) {
            uint own = found[(size_t)tile * K + k];
            found[(size_t)tile * K + k] = place;
            place += own;
        }
    }
}

/* Points into the order of their classes, those of a class in the order that they have: `places` holds where the first of
   each class of a tile goes. `order` goes along; the rows only if `rows` is 1. A tile has TILE points at most. */
__kernel void REQD_GROUP(GROUP) scatter(__global const uint *RESTRICT points, __global const uint *RESTRICT order,
                                       __global const uint *RESTRICT tiles, __global const uchar *RESTRICT labels,
                                       __global const uint *RESTRICT places, uint rows, __global uint *RESTRICT points_to,
                                       __global uint *RESTRICT order_to) {
    LOCAL_ARRAY(uint, label, TILE);
    LOCAL_ARRAY(uint, place, TILE);
    uint item = get_local_id(0);
    uint4 tile = vload4(get_group_id(0), tiles);
    for (uint i = item; i < tile.z; i += GROUP) label[i] = labels[tile.y + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = item; k < K; k += GROUP) {
        uint next = places[get_group_id(0) * K + k];
        for (uint i = 0; i < tile.z; ++i) {
            if (label[i] == k) place[i] = next++;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < tile.z; i += GROUP) order_to[place[i]] = order[tile.y + i];
    if (rows) {
        for (uint i = item; i < tile.z * (WORDS / 4); i += GROUP) {
            uint row = i / (WORDS / 4), column = i % (WORDS / 4);
            vstore4(vload4(((size_t)tile.y + row) * (WORDS / 4) + column, points),
                    (size_t)place[row] * (WORDS / 4) + column, points_to);
        }
    }
}

/* A query. Nodes, words and tables as the query module has them; UINT_MAX stands for what is not there. */

/* One level: each point goes on from its node to the child with the nearest centre; a point that has its word stays. A
   work-item per point. */
__kernel void descend(__global const uint *RESTRICT points, __global const ushort *RESTRICT centres,
                      __global const int *RESTRICT halves, __global const uint *RESTRICT children,
                      __global const uint *RESTRICT leaves, uint count, uint root, __global uint *RESTRICT nodes,
                      __global uint *RESTRICT words) {
    uint i = get_global_id(0);
    uint node = i >= count ? UINT_MAX : root ? 0 : nodes[i];
    if (node != UINT_MAX) {
        size_t first = (size_t)node * K;
        int best = -INT_MAX - 1;
        uint nearest = 0;
        for (uint k = 0; k < K; ++k) {
            uint product = 0;
            for (uint w = 0; w < WORDS; ++w) {
                uint x = points[(size_t)i * WORDS + w];
                __global const ushort *c = centres + (first + k) * DIMS + 4 * w;
                product += (x & 0xFFu) * c[0] + (x >> 8 & 0xFFu) * c[1] + (x >> 16 & 0xFFu) * c[2] + (x >> 24) * c[3];
            }
            int score = (int)product - halves[first + k];
            if (score > best) {
                best = score;
                nearest = k;
            }
        }
        words[i] = leaves[first + nearest];
        nodes[i] = children[first + nearest];
    }
}

#define PRODUCT(x, a, b) \
    (((x) & 0xFFu) * ((a) & 0xFFFFu) + ((x) >> 8 & 0xFFu) * ((a) >> 16) + ((x) >> 16 & 0xFFu) * ((b) & 0xFFFFu) + \
     ((x) >> 24) * ((b) >> 16))

/* All levels: the point stays in registers, centres come 16 bytes at a time. */
__kernel void descend_all(__global const uint *RESTRICT points, __global const uint *RESTRICT centres,
                          __global const int *RESTRICT halves, __global const uint *RESTRICT children,
                          __global const uint *RESTRICT leaves, uint count, __global uint *RESTRICT words) {
    uint i = get_global_id(0), node = i < count ? 0 : UINT_MAX, word = UINT_MAX;
    uint4 x[WORDS / 4];
    #pragma unroll
    for (uint u = 0; u < WORDS / 4; ++u) x[u] = vload4((size_t)min(i, count - 1) * (WORDS / 4) + u, points);
    while (node != UINT_MAX) {
        size_t first = (size_t)node * K;
        int best = -INT_MAX - 1;
        uint nearest = 0;
        for (uint k = 0; k < K; ++k) {
            uint product = 0;
            #pragma unroll
            for (uint u = 0; u < WORDS / 4; ++u) {
                uint4 a = vload4((first + k) * (WORDS / 2) + 2 * u, centres);
                uint4 b = vload4((first + k) * (WORDS / 2) + 2 * u + 1, centres);
                product += PRODUCT(x[u].x, a.x, a.y) + PRODUCT(x[u].y, a.z, a.w);
                product += PRODUCT(x[u].z, b.x, b.y) + PRODUCT(x[u].w, b.z, b.w);
            }
            int score = (int)product - halves[first + k];
            if (score > best) {
                best = score;
                nearest = k;
            }
        }
        word = leaves[first + nearest];
        node = children[first + nearest];
    }
    if (i < count) words[i] = word;
}
