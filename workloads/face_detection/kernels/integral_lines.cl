/* Levels and their integral images for processors with few cores: a work-item goes down a strip of STRIP lines, so that sums
   along a line and down the strip are one pass. What lies above a strip is added by another kernel. */
#include "pyramid.cl"

/* A line of a level: sums along it, and with the line above it, if that is of the same strip (`below_another`). */
INLINE void sum_line(__global const uchar *upper, __global const uchar *lower, uint width, __global const uint *table,
                     uint share, uint columns, uint pitch, uint plane, __global uint *out, int below_another) {
    uint sum = 0, square = 0;
    __global const uint *above = out - pitch;
    out[0] = out[plane] = 0;
    for (uint x = 0; x < columns; ++x) {
        uint v = reduced(upper, lower, width, table[x], share);
        sum += v;
        square += v * v;
        out[x + 1] = below_another ? sum + above[x + 1] : sum;
        out[plane + x + 1] = below_another ? square + above[plane + x + 1] : square;
    }
}

/* One work-item per strip, `strips` to each level. */
__kernel REQD_GROUP(1) void lines(__global const uchar *RESTRICT images, uint width, uint height,
                                  __global const Level *RESTRICT levels, uint strips,
                                  __global const uint *RESTRICT coefficients, uint first, uint pitch, uint plane,
                                  ulong frame_words, __global uint *sums) {
    __global const Level *level = levels + first + get_group_id(0) / strips;
    uint begin = get_group_id(0) % strips * STRIP, end = min(begin + STRIP, level->height), columns = level->width;
    __global const uchar *image = images + (size_t)get_group_id(1) * width * height;
    __global uint *out = sums + get_group_id(1) * frame_words + level->place;
    if (begin == 0)
        for (uint x = 0; x <= columns; ++x) out[x] = out[plane + x] = 0;
    for (uint y = begin; y < end; ++y) {
        uint line = coefficients[level->row_table + y], top = line & 0xfffffu;
        __global const uchar *upper = image + (size_t)top * width;
        __global const uchar *lower = image + (size_t)min(top + 1, height - 1) * width;
        __global const uint *table = coefficients + level->column_table;
        __global uint *to = out + (size_t)(y + 1) * pitch;
        sum_line(upper, lower, width, table, line >> 20, columns, pitch, plane, to, y > begin);
    }
}

/* One work-item per SPAN columns, `spans` to each level: adds to each strip but the first what lies above it. */
__kernel REQD_GROUP(1) void add_above(__global uint *RESTRICT sums, __global const Level *RESTRICT levels, uint spans,
                                      uint first, uint pitch, uint plane, ulong frame_words) {
    __global const Level *level = levels + first + get_group_id(0) / spans;
    uint from = get_group_id(0) % spans * SPAN, columns = level->width + 1, height = level->height;
    if (from >= columns) return;
    uint count = min(columns - from, (uint)SPAN);
    for (uint p = 0; p < 2; ++p) {
        __global uint *out = sums + get_group_id(1) * frame_words + level->place + p * (size_t)plane + from;
        for (uint y = STRIP + 1; y <= height; ++y) {
            __global const uint *above = out + (size_t)((y - 1) / STRIP * STRIP) * pitch;
            __global uint *line = out + (size_t)y * pitch;
            for (uint x = 0; x < count; ++x) line[x] += above[x];
        }
    }
}
