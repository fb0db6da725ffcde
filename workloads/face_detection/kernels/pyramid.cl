/* Pyramid and integral images of all levels in one atlas. Rows of the grid's second dimension are frames. */
#include "level.cl"
#define AHEAD 8

LEVEL_BY(first_row)
LEVEL_BY(first_piece)

/* A pixel of a reduced image: offset and weight of its column, two rows of the image and the weight of the second. */
uint reduced(__global const uchar *upper, __global const uchar *lower, uint width, uint column, uint share) {
    uint x = column & 0xfffffu, weight = column >> 20, next = min(x + 1, width - 1);
    uint above = upper[x] * (256 - weight) + upper[next] * weight;
    uint below = lower[x] * (256 - weight) + lower[next] * weight;
    return (above * (256 - share) + below * share + (1u << 15)) >> 16;
}

/* One work-group per row: the reduced image, its pixels and their squares summed along the row. Work-items take neighbouring
   pixels from the image and neighbouring sums to the atlas; in between, by way of local memory, each has a run of pixels of
   its own, so that a scan over the work-items is needed only once for SCAN_GROUP runs. */
#define RUN 16
#define PADDED(i) ((i) + (i) / RUN) /* so that runs begin in different banks */
__kernel void rows(__global const uchar *RESTRICT images, uint width, uint height, __global const Level *RESTRICT levels,
                   uint count, __global const uint *RESTRICT coefficients, uint first, uint pitch, uint plane,
                   ulong frame_words, __global uint *RESTRICT sums) {
    uint lid = get_local_id(0), row = first + get_group_id(0);
    __global const Level *level = level_by_first_row(levels, count, row);
    uint y = row - level->first_row, columns = level->width;
    __global const uint *table = coefficients + level->column_table;
    uint line = coefficients[level->row_table + y], top = line & 0xfffffu;
    __global const uchar *image = images + (size_t)get_group_id(1) * width * height;
    __global const uchar *upper = image + (size_t)top * width, *lower = image + (size_t)min(top + 1, height - 1) * width;
    __global uint *out = sums + get_group_id(1) * frame_words + level->place + (size_t)(y + 1) * pitch;
    uint sum = 0, square = 0;
    if (lid == 0) out[0] = out[plane] = 0;
#if SCAN_GROUP == 1
    for (uint x = 0; x < columns; ++x) {
        uint v = reduced(upper, lower, width, table[x], line >> 20);
        sum += v;
        square += v * v;
        out[x + 1] = sum;
        out[plane + x + 1] = square;
    }
#else
    LOCAL_ARRAY(uint, scan, 2 * SCAN_GROUP);
    LOCAL_ARRAY(uint, run_sums, PADDED(RUN * SCAN_GROUP));
    LOCAL_ARRAY(uint, run_squares, PADDED(RUN * SCAN_GROUP));
    for (uint from = 0; from < columns; from += RUN * SCAN_GROUP) {
        uint pixels = min(columns - from, (uint)(RUN * SCAN_GROUP));
        for (uint i = lid; i < pixels; i += SCAN_GROUP)
            run_sums[PADDED(i)] = reduced(upper, lower, width, table[from + i], line >> 20);
        barrier(CLK_LOCAL_MEM_FENCE);
        uint begin = min(lid * RUN, pixels), end = min(begin + RUN, pixels), own = 0, own_square = 0;
        for (uint i = begin; i < end; ++i) {
            uint v = run_sums[PADDED(i)];
            own += v;
            own_square += v * v;
            run_sums[PADDED(i)] = own;
            run_squares[PADDED(i)] = own_square;
        }
        scan[lid] = own;
        scan[SCAN_GROUP + lid] = own_square;
        for (uint distance = 1; distance < SCAN_GROUP; distance *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint a = lid >= distance ? scan[lid - distance] : 0;
            uint b = lid >= distance ? scan[SCAN_GROUP + lid - distance] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            scan[lid] += a;
            scan[SCAN_GROUP + lid] += b;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lid; i < pixels; i += SCAN_GROUP) {
            uint run = i / RUN;
            out[from + i + 1] = sum + run_sums[PADDED(i)] + (run ? scan[run - 1] : 0);
            out[plane + from + i + 1] = square + run_squares[PADDED(i)] + (run ? scan[SCAN_GROUP + run - 1] : 0);
        }
        sum += scan[SCAN_GROUP - 1];
        square += scan[2 * SCAN_GROUP - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
}

/* One work-item per piece of a column: its sum. */
__kernel void pieces(__global const uint *RESTRICT sums, __global const Level *RESTRICT levels, uint count, uint first,
                     uint end, uint pitch, uint plane, ulong frame_words, __global uint *RESTRICT totals, uint all) {
    uint piece = first + get_global_id(0);
    if (piece >= end) return;
    __global const Level *level = level_by_first_piece(levels, count, piece);
    uint columns = level->width + 1, inside = piece - level->first_piece;
    uint x = inside % columns, y = inside / columns * STRIP;
    uint last = min(y + STRIP, level->height), sum = 0, square = 0;
    __global const uint *in = sums + get_group_id(1) * frame_words + level->place + x;
    for (; y < last; ++y) {
        sum += in[(y + 1) * pitch];
        square += in[(y + 1) * pitch + plane];
    }
    __global uint *out = totals + (size_t)get_group_id(1) * 2 * all;
    out[piece] = sum;
    out[all + piece] = square;
}

/* One work-item per piece of a column: sums along rows become integral images, in place. */
__kernel void columns(__global uint *RESTRICT sums, __global const Level *RESTRICT levels, uint count, uint first,
                      uint end, uint pitch, uint plane, ulong frame_words, __global const uint *RESTRICT totals, uint all) {
    uint piece = first + get_global_id(0);
    if (piece >= end) return;
    __global const Level *level = level_by_first_piece(levels, count, piece);
    uint columns = level->width + 1, inside = piece - level->first_piece;
    uint x = inside % columns, y = inside / columns * STRIP;
    uint last = min(y + STRIP, level->height), sum = 0, square = 0;
    __global const uint *total = totals + (size_t)get_group_id(1) * 2 * all;
    for (uint above = level->first_piece + x; above < piece; above += columns) {
        sum += total[above];
        square += total[all + above];
    }
    __global uint *out = sums + get_group_id(1) * frame_words + level->place + x;
    if (y == 0) out[0] = out[plane] = 0;
    for (; y < last; y += AHEAD) {
        uint line[AHEAD], squares[AHEAD]; /* read ahead of what is written: the compiler must not reorder the two */
        #pragma unroll
        for (uint i = 0; i < AHEAD; ++i) {
            int there = y + i < last;
            line[i] = there ? out[(y + i + 1) * pitch] : 0;
            squares[i] = there ? out[(y + i + 1) * pitch + plane] : 0;
        }
        #pragma unroll
        for (uint i = 0; i < AHEAD; ++i) {
            sum += line[i];
            square += squares[i];
            if (y + i < last) {
                out[(y + i + 1) * pitch] = sum;
                out[(y + i + 1) * pitch + plane] = square;
            }
        }
    }
}

/* One work-group per level: tilted sums, row by row from the two rows above.
   R. Lienhart, J. Maydt, "An Extended Set of Haar-like Features for Rapid Object Detection", ICIP 2002. */
__kernel void tilted(__global uint *RESTRICT sums, __global const Level *RESTRICT levels, uint first, uint pitch, uint plane,
                     ulong frame_words) {
    __global const Level *level = levels + first + get_group_id(0);
    __global const uint *upright = sums + get_group_id(1) * frame_words + level->place;
    __global uint *out = sums + get_group_id(1) * frame_words + level->place + 2 * (size_t)plane;
    uint width = level->width, height = level->height;
    for (uint y = 0; y <= height; ++y) {
        for (uint x = get_local_id(0); x <= width; x += TILTED_GROUP) {
            uint sum = 0;
            if (y > 0) {
                __global const uint *s = upright + (size_t)y * pitch + x;
                __global const uint *t = out + (size_t)(y - 1) * pitch + x;
                uint two = y > 1 ? 2 * pitch : pitch; /* the pixel at the apex, and the one above it */
                if (x == 0) {
                    sum = t[1];
                } else {
                    __global const uint *over = s - two;
                    sum = s[0] - *(s - 1) - over[0] + *(over - 1) + *(t - 1);
                    if (x < width) sum += t[1] - (y > 1 ? *(t - pitch) : 0);
                }
            }
            out[(size_t)y * pitch + x] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
