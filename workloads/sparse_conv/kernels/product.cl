/* Products of the weights with im2col's matrix[TAPS][columns]; out[image][filter][pixel]. */

__global float *output_at(__global float *out, int first_image, int filter, int column) {
    const size_t image = first_image + column / PIXELS;
    return out + (image * FILTERS + filter) * PIXELS + column % PIXELS;
}

#ifdef DENSE
/* A tile of TILE filters by TILE columns for each work-group, SIDE x SIDE of it, TILE / SIDE apart, for each work-item;
   DEPTH taps at a time in local memory. Tails are zeros that are multiplied. */
#define EDGE (TILE / SIDE)
__kernel void product(__global const float *RESTRICT weights, __global const float *RESTRICT matrix,
                      __global float *RESTRICT out, int first_image, int columns) {
    LOCAL_ARRAY(float, left, DEPTH *TILE);
    LOCAL_ARRAY(float, right, DEPTH *TILE);
    const int item = get_local_id(0), x = item % EDGE, y = item / EDGE;
    const int filter = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    float sums[SIDE][SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; ++i)
#pragma unroll
        for (int j = 0; j < SIDE; ++j) sums[i][j] = 0.0f;
    for (int first = 0; first < TAPS; first += DEPTH) {
        for (int i = item; i < DEPTH * TILE; i += EDGE * EDGE) {
            const int tap = first + i / TILE, at = i % TILE, k = filter + i / DEPTH;
            float value = 0.0f, weight = 0.0f;
            if (tap < TAPS && column + at < columns) value = matrix[(size_t)tap * columns + column + at];
            if (first + i % DEPTH < TAPS && k < FILTERS) weight = weights[k * TAPS + first + i % DEPTH];
            right[i] = value;
            left[i % DEPTH * TILE + i / DEPTH] = weight;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = 0; d < DEPTH; ++d) {
            float row[SIDE];
#pragma unroll
            for (int j = 0; j < SIDE; ++j) row[j] = right[d * TILE + x + j * EDGE];
#pragma unroll
            for (int i = 0; i < SIDE; ++i) {
                const float w = left[d * TILE + y + i * EDGE];
#pragma unroll
                for (int j = 0; j < SIDE; ++j) sums[i][j] = fma(w, row[j], sums[i][j]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#pragma unroll
    for (int i = 0; i < SIDE; ++i)
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
            const int k = filter + y + i * EDGE, at = column + x + j * EDGE;
            if (k < FILTERS && at < columns) *output_at(out, first_image, k, at) = sums[i][j];
        }
}
#else
/* Compressed sparse rows: a work-item for each column of one filter. */
__kernel void product(__global const int *RESTRICT starts, __global const int *RESTRICT taps,
                      __global const float *RESTRICT values, __global const float *RESTRICT matrix,
                      __global float *RESTRICT out, int first_image, int columns) {
    const int column = get_global_id(0), filter = get_group_id(1);
    if (column < columns) {
        float sum = 0.0f;
        const int last = starts[filter + 1];
        for (int i = starts[filter]; i < last; ++i) sum = fma(values[i], matrix[(size_t)taps[i] * columns + column], sum);
        *output_at(out, first_image, filter, column) = sum;
    }
}
#endif
