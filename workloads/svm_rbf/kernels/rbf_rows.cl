/* Two RBF rows in one pass: out_high[i] = exp(-gamma |x_i - x_high|^2), out_low likewise.
   NDIM dimensions, BLOCKS = ceil(NDIM / 4). `n` points; `pitch` in floats (column-major) or blocks of 4 floats
   (blocked); the two points are columns `high` and `low` of the data itself. */
#define BLOCKS ((NDIM + 3) / 4)
#define PARAMETERS                                                                                          \
    __global const float *RESTRICT data, uint n, uint pitch, uint high, uint low, float gamma,              \
        __global float *RESTRICT out_high, __global float *RESTRICT out_low

#ifdef ROW_MAJOR
/* The C loop as it stands: neighbouring work-items read words NDIM apart. */
__kernel void row_major(PARAMETERS) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    __global const float *x = data + i * pitch;
    __global const float *xh = data + (size_t)high * pitch;
    __global const float *xl = data + (size_t)low * pitch;
    float sum_high = 0.0f, sum_low = 0.0f;
    for (uint d = 0; d < NDIM; ++d) {
        float diff = x[d] - xh[d];
        sum_high += diff * diff;
        diff = x[d] - xl[d];
        sum_low += diff * diff;
    }
    out_high[i] = exp(-gamma * sum_high);
    out_low[i] = exp(-gamma * sum_low);
}
#endif

#ifdef ROW_MAJOR_FLOAT4
/* Rows padded with zeros to whole vectors. */
__kernel void row_major_float4(PARAMETERS) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    __global const float *x = data + i * pitch;
    __global const float *xh = data + (size_t)high * pitch;
    __global const float *xl = data + (size_t)low * pitch;
    float sum_high = 0.0f, sum_low = 0.0f;
    for (uint b = 0; b < BLOCKS; ++b) {
        float4 v = vload4(b, x);
        float4 diff = v - vload4(b, xh);
        sum_high += dot(diff, diff);
        diff = v - vload4(b, xl);
        sum_low += dot(diff, diff);
    }
    out_high[i] = exp(-gamma * sum_high);
    out_low[i] = exp(-gamma * sum_low);
}
#endif

#ifdef COLUMN_MAJOR
/* Neighbouring work-items read neighbouring words; the index strides through memory, or is recomputed. */
__kernel void column_major(PARAMETERS) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    float sum_high = 0.0f, sum_low = 0.0f;
#if RECOMPUTE
    for (uint d = 0; d < NDIM; ++d) {
        float v = data[(size_t)d * pitch + i];
        float diff = v - data[(size_t)d * pitch + high];
        sum_high += diff * diff;
        diff = v - data[(size_t)d * pitch + low];
        sum_low += diff * diff;
    }
#else
    __global const float *x = data + i, *xh = data + high, *xl = data + low;
    for (uint d = 0; d < NDIM; ++d) {
        float v = *x;
        float diff = v - *xh;
        sum_high += diff * diff;
        diff = v - *xl;
        sum_low += diff * diff;
        x += pitch;
        xh += pitch;
        xl += pitch;
    }
#endif
    out_high[i] = exp(-gamma * sum_high);
    out_low[i] = exp(-gamma * sum_low);
}
#endif

#ifdef VECTORIZED
/* Four consecutive dimensions of one point at a time. */
__kernel void vectorized(PARAMETERS) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    __global const float *x = data + 4 * i;
    __global const float *xh = data + (size_t)4 * high, *xl = data + (size_t)4 * low;
    float sum_high = 0.0f, sum_low = 0.0f;
    for (uint b = 0; b < BLOCKS; ++b) {
        float4 v = vload4(0, x);
        float4 diff = v - vload4(0, xh);
        sum_high += dot(diff, diff);
        diff = v - vload4(0, xl);
        sum_low += dot(diff, diff);
        x += 4 * pitch;
        xh += 4 * pitch;
        xl += 4 * pitch;
    }
    out_high[i] = exp(-gamma * sum_high);
    out_low[i] = exp(-gamma * sum_low);
}
#endif

#ifdef VECTORIZED_POINTS
/* Four neighbouring points per work-item; pitch and the outputs are padded to whole vectors. */
__kernel void vectorized_points(PARAMETERS) {
    size_t q = get_global_id(0);
    if (4 * q >= n) return;
    __global const float *x = data + 4 * q, *xh = data + high, *xl = data + low;
    float4 sum_high = SPLAT_FLOAT4(0.0f), sum_low = SPLAT_FLOAT4(0.0f);
    for (uint d = 0; d < NDIM; ++d) {
        float4 v = vload4(0, x);
        float4 diff = v - *xh;
        sum_high = fma(diff, diff, sum_high);
        diff = v - *xl;
        sum_low = fma(diff, diff, sum_low);
        x += pitch;
        xh += pitch;
        xl += pitch;
    }
    vstore4(MAKE_FLOAT4(exp(-gamma * sum_high.x), exp(-gamma * sum_high.y), exp(-gamma * sum_high.z),
                        exp(-gamma * sum_high.w)), q, out_high);
    vstore4(MAKE_FLOAT4(exp(-gamma * sum_low.x), exp(-gamma * sum_low.y), exp(-gamma * sum_low.z),
                        exp(-gamma * sum_low.w)), q, out_low);
}
#endif

#ifdef IMAGE
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

/* `high` and `low` come through the image path; each image is one row of RGBA pixels. */
__kernel void image(PARAMETERS, __read_only image2d_t high_image, __read_only image2d_t low_image) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    __global const float *x = data + 4 * i;
    float sum_high = 0.0f, sum_low = 0.0f;
    for (int b = 0; b < BLOCKS; ++b) {
        float4 v = vload4(0, x);
        float4 diff = v - read_imagef(high_image, nearest, MAKE_INT2(b, 0));
        sum_high += dot(diff, diff);
        diff = v - read_imagef(low_image, nearest, MAKE_INT2(b, 0));
        sum_low += dot(diff, diff);
        x += 4 * pitch;
    }
    out_high[i] = exp(-gamma * sum_high);
    out_low[i] = exp(-gamma * sum_low);
}

/* Fills both images with `write_imagef`: the source's hand-written form. */
__kernel void fill_images(__global const float *RESTRICT data, uint pitch, uint high, uint low,
                          __write_only image2d_t high_image, __write_only image2d_t low_image) {
    int b = get_global_id(0);
    if (b >= BLOCKS) return;
    write_imagef(high_image, MAKE_INT2(b, 0), vload4((size_t)b * pitch + high, data));
    write_imagef(low_image, MAKE_INT2(b, 0), vload4((size_t)b * pitch + low, data));
}
#endif

#ifdef GATHER
/* Collects the two points from blocked data into contiguous rows of zero-padded blocks. */
__kernel void gather(__global const float *RESTRICT data, uint pitch, uint high, uint low,
                     __global float *RESTRICT high_row, __global float *RESTRICT low_row) {
    uint b = get_global_id(0);
    if (b >= BLOCKS) return;
    vstore4(vload4((size_t)b * pitch + high, data), b, high_row);
    vstore4(vload4((size_t)b * pitch + low, data), b, low_row);
}
#endif

#ifdef LOCAL_MEMORY
/* The work-group copies both points into local memory first. */
__kernel void local_memory(PARAMETERS) {
    LOCAL_ARENA(float4, points, 2 * BLOCKS);
    /* GROUP, not get_local_size(0): with that and BLOCKS = 1 PoCL 3.1 compiles this loop to code that crashes. */
    for (uint b = get_local_id(0); b < BLOCKS; b += GROUP) {
        points[b] = vload4((size_t)b * pitch + high, data);
        points[BLOCKS + b] = vload4((size_t)b * pitch + low, data);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    size_t i = get_global_id(0);
    if (i >= n) return;
    __global const float *x = data + 4 * i;
    float sum_high = 0.0f, sum_low = 0.0f;
    #pragma unroll UNROLL
    for (uint b = 0; b < BLOCKS; ++b) {
        float4 v = vload4((size_t)b * pitch, x);
        float4 diff = v - points[b];
        sum_high += dot(diff, diff);
        diff = v - points[BLOCKS + b];
        sum_low += dot(diff, diff);
    }
    out_high[i] = exp(-gamma * sum_high);
    out_low[i] = exp(-gamma * sum_low);
}
#endif

#ifdef SPLIT_DIMENSIONS
/* As `local_memory`, with PARTS work-items for a point, which take its blocks in turn: PARTS times as many loads are on their
   way, and work-groups are PARTS times as many and as short, so that few points still fill the device to the end. Loads of
   UNROLL blocks precede the arithmetic on any of them, and so do those of the rest, whose number is no multiple of it. */
#define COLUMNS (GROUP / PARTS)
#define WHOLE (BLOCKS / PARTS / UNROLL * UNROLL)
#define REST ((BLOCKS + PARTS - 1) / PARTS - WHOLE)

__kernel void split_dimensions(PARAMETERS) {
    LOCAL_ARENA(float4, points, 2 * BLOCKS);
    LOCAL_ARRAY(float, part_high, GROUP);
    LOCAL_ARRAY(float, part_low, GROUP);
    uint item = get_local_id(0), column = item % COLUMNS, part = item / COLUMNS;
    for (uint b = item; b < BLOCKS; b += GROUP) {
        points[b] = vload4((size_t)b * pitch + high, data);
        points[BLOCKS + b] = vload4((size_t)b * pitch + low, data);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint i = get_group_id(0) * COLUMNS + column;
    __global const float *x = data + 4 * (size_t)min(i, n - 1); /* past the end: the last point again, and nothing written */
    float sum_high = 0.0f, sum_low = 0.0f;
#if WHOLE
    for (uint t = 0; t < WHOLE; t += UNROLL) {
        float4 v[UNROLL];
        #pragma unroll
        for (uint u = 0; u < UNROLL; ++u) v[u] = vload4((size_t)((t + u) * PARTS + part) * pitch, x);
        #pragma unroll
        for (uint u = 0; u < UNROLL; ++u) {
            uint b = (t + u) * PARTS + part;
            float4 diff = v[u] - points[b];
            sum_high += dot(diff, diff);
            diff = v[u] - points[BLOCKS + b];
            sum_low += dot(diff, diff);
        }
    }
#endif
#if REST
    float4 v[REST];
    #pragma unroll
    for (uint u = 0; u < REST; ++u) v[u] = vload4((size_t)min((WHOLE + u) * PARTS + part, (uint)BLOCKS - 1) * pitch, x);
    #pragma unroll
    for (uint u = 0; u < REST; ++u) {
        uint b = (WHOLE + u) * PARTS + part;
        if (b < BLOCKS) { /* the last block may be another part's */
            float4 diff = v[u] - points[b];
            sum_high += dot(diff, diff);
            diff = v[u] - points[BLOCKS + b];
            sum_low += dot(diff, diff);
        }
    }
#endif
    part_high[item] = sum_high;
    part_low[item] = sum_low;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0 && i < n) {
        for (uint p = 1; p < PARTS; ++p) {
            sum_high += part_high[p * COLUMNS + column];
            sum_low += part_low[p * COLUMNS + column];
        }
        out_high[i] = exp(-gamma * sum_high);
        out_low[i] = exp(-gamma * sum_low);
    }
}
#endif

#if defined(COOPERATIVE_ROWS) || defined(ROW_STREAMS)
#include "vector.cl"
#define VECTORS ((NDIM + WIDTH - 1) / WIDTH)
#endif

#ifdef ROW_STREAMS
/* Row-major data as it stands, for processors with wide vectors and few work-items: each work-item walks one run of
   neighbouring rows from end to end. Read in this order, a plain sum fills the memory bus of the CPU it was written
   on; with the distances in place of the sum the rate falls to 0.7 of that, and prefetching AHEAD words, across the
   ends of rows (and, harmlessly, of the data), brings it back to about 0.9. */
#define TAIL (NDIM % WIDTH)
__kernel void row_streams(PARAMETERS) {
    __global const float *point_high = data + (size_t)high * pitch, *point_low = data + (size_t)low * pitch;
    uint per_item = ((n + 15) / 16 + get_global_size(0) - 1) / get_global_size(0) * 16;
    uint first = min((uint)get_global_id(0) * per_item, n), last = min(first + per_item, n);
#if OVERLAP && TAIL
    /* A row's last vector reaches back over words that are counted already: the mask leaves the new ones. (Words must
       be finite: 0 * infinity would make a NaN of a distance that is infinite.) */
    float ones[WIDTH];
    for (int i = 0; i < WIDTH; ++i) ones[i] = i < WIDTH - TAIL ? 0.0f : 1.0f;
    vec mask = VLOAD(0, ones);
#endif
    __global const float *x = data + (size_t)first * pitch;
    for (uint tile = first; tile < last; tile += 16) {
        uint end = min(tile + 16, last);
        for (uint row = tile; row < end; ++row, x += pitch) {
            vec sums_high = SPLAT(0.0f), sums_low = SPLAT(0.0f);
            #pragma unroll UNROLL
            for (uint v = 0; v < NDIM / WIDTH; ++v) {
#if AHEAD
                PREFETCH(x + v * WIDTH + AHEAD);
#endif
                vec value = VLOAD(v, x);
                vec diff = value - VLOAD(v, point_high);
                sums_high = fma(diff, diff, sums_high);
                diff = value - VLOAD(v, point_low);
                sums_low = fma(diff, diff, sums_low);
            }
#if OVERLAP && TAIL
            vec value = VLOAD(0, x + NDIM - WIDTH);
            vec diff = mask * (value - VLOAD(0, point_high + NDIM - WIDTH));
            sums_high = fma(diff, diff, sums_high);
            diff = mask * (value - VLOAD(0, point_low + NDIM - WIDTH));
            sums_low = fma(diff, diff, sums_low);
#endif
            float sum_high = SUM(sums_high), sum_low = SUM(sums_low);
#if !OVERLAP && TAIL
            for (uint d = NDIM - TAIL; d < NDIM; ++d) {
                float diff = x[d] - point_high[d];
                sum_high = fma(diff, diff, sum_high);
                diff = x[d] - point_low[d];
                sum_low = fma(diff, diff, sum_low);
            }
#endif
            out_high[row] = -gamma * sum_high;
            out_low[row] = -gamma * sum_low;
        }
        if (end == tile + 16) { /* worth 3 to 5 % where rows are short (250 words) */
            vstore16(exp(vload16(0, out_high + tile)), 0, out_high + tile);
            vstore16(exp(vload16(0, out_low + tile)), 0, out_low + tile);
        } else {
            for (uint row = tile; row < end; ++row) {
                out_high[row] = exp(out_high[row]);
                out_low[row] = exp(out_low[row]);
            }
        }
    }
}
#endif

#ifdef COOPERATIVE_ROWS
/* Row-major data without re-layout: a team of LANES work-items walks ROWS rows together, WIDTH words each, so that
   reads are contiguous; partial sums meet in local memory. Groups are persistent, so that the two points are copied to
   local memory once, and take blocks of TEAMS * ROWS rows: in turn, or RUNS of neighbouring ones, which a processor
   that reads ahead follows from row to row. */
#define TEAMS (GROUP / LANES)
#define BLOCK (TEAMS * ROWS)

__kernel void cooperative_rows(PARAMETERS) {
    uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    LOCAL_ARENA(float, arena, 2 * VECTORS * WIDTH + 2 * BLOCK * (LANES + 1));
    __local float *point_high = arena, *point_low = arena + VECTORS * WIDTH;
    __local float *part_high = arena + 2 * VECTORS * WIDTH, *part_low = part_high + BLOCK * (LANES + 1);
    for (uint d = item; d < VECTORS * WIDTH; d += GROUP) {
        point_high[d] = data[(size_t)high * pitch + d];
        point_low[d] = data[(size_t)low * pitch + d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint blocks = (n + BLOCK - 1) / BLOCK;
#if RUNS
    uint run = (blocks + get_num_groups(0) - 1) / get_num_groups(0), first = get_group_id(0) * run;
    uint last = min(first + run, blocks);
    for (uint block = first; block < last; ++block) {
#else
    for (uint block = get_group_id(0); block < blocks; block += get_num_groups(0)) {
#endif
        uint row = block * BLOCK + team * ROWS;
        vec sum_high[ROWS], sum_low[ROWS];
        __global const float *x[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            sum_high[r] = SPLAT(0.0f);
            sum_low[r] = SPLAT(0.0f);
            x[r] = data + (size_t)min(row + r, n - 1) * pitch; /* past the end: read the last row again, write nothing */
        }
        #pragma unroll UNROLL
        for (uint v = lane; v < VECTORS; v += LANES) {
            vec ph = VLOAD(v, point_high), pl = VLOAD(v, point_low);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#if AHEAD
                PREFETCH(x[r] + v * WIDTH + AHEAD);
#endif
                vec value = VLOAD(v, x[r]);
                vec diff = value - ph;
                sum_high[r] = fma(diff, diff, sum_high[r]);
                diff = value - pl;
                sum_low[r] = fma(diff, diff, sum_low[r]);
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            part_high[(team * ROWS + r) * (LANES + 1) + lane] = SUM(sum_high[r]);
            part_low[(team * ROWS + r) * (LANES + 1) + lane] = SUM(sum_low[r]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = item; k < 2 * BLOCK; k += GROUP) {
            uint r = k % BLOCK;
            __local const float *part = (k < BLOCK ? part_high : part_low) + r * (LANES + 1);
            float total = 0.0f;
            for (uint l = 0; l < LANES; ++l) total += part[l];
            if (block * BLOCK + r < n) (k < BLOCK ? out_high : out_low)[block * BLOCK + r] = exp(-gamma * total);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
