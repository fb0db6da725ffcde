/* Direct convolution over compressed sparse rows: values and stretched offsets, the distance of an input element from
   the first one of its window, are read at run time. A work-item computes BH outputs of one filter, OUT_HEIGHT / BH
   rows apart, from the padded input (pad.cl). */
__kernel void csr(__global const float *RESTRICT padded, __global const int *RESTRICT starts,
                  __global const int *RESTRICT offsets, __global const float *RESTRICT values,
                  __global float *RESTRICT out) {
    const int item = get_global_id(0);
    const int filter = get_group_id(1);
    if (item < IMAGES * PARTS * OUT_WIDTH) {
        const int x = item % OUT_WIDTH, y = item / OUT_WIDTH % PARTS, image = item / OUT_WIDTH / PARTS;
        __global const float *from = padded + (size_t)image * (CHANNELS * PLANE) + y * STRIDE * LINE + x;
        float sums[BH];
#pragma unroll
        for (int b = 0; b < BH; ++b) sums[b] = 0.0f;
        const int last = starts[filter + 1];
        for (int i = starts[filter]; i < last; ++i) {
            const float w = values[i];
            __global const float *at = from + offsets[i];
#pragma unroll
            for (int b = 0; b < BH; ++b) sums[b] = fma(w, at[b * PARTS * STRIDE * LINE], sums[b]);
        }
        __global float *to = out + ((size_t)image * FILTERS + filter) * (OUT_HEIGHT * OUT_WIDTH) + y * OUT_WIDTH + x;
#pragma unroll
        for (int b = 0; b < BH; ++b)
            if (y + b * PARTS < OUT_HEIGHT) to[b * PARTS * OUT_WIDTH] = sums[b];
    }
}
