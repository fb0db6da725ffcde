/* Escoin's direct convolution (X. Chen, arXiv 1802.10280, its code at commit e89275f). A work-group computes a tile of
   COLUMNS x ROWS outputs of one filter in IMAGES images, a work-item one output of each. The filter's compressed row,
   values and stretched offsets, comes into local memory in pieces of STAGED weights, for all of the group; inputs come
   from the padded copy (pad.cl) through the cache for what nobody writes; images take a piece one after the other. */
#define ITEMS (COLUMNS * ROWS)

__kernel REQD_GROUP(ITEMS) void escoin(__global const float *RESTRICT padded, __global const int *RESTRICT starts,
                                       __global const int *RESTRICT offsets, __global const float *RESTRICT values,
                                       __global float *RESTRICT out) {
    LOCAL_ARRAY(float, staged_values, STAGED);
    LOCAL_ARRAY(int, staged_offsets, STAGED);
    /* Unsigned: of signed remainders of the work-item's number PoCL 5.0 made wrong addresses in the loop over pieces. */
    const uint item = get_local_id(0), filter = get_group_id(1), tile = get_group_id(0), line = tile / TILES_ACROSS;
    const uint x = tile % TILES_ACROSS * COLUMNS + item % COLUMNS, y = line % TILES_DOWN * ROWS + item / COLUMNS;
    const int image = line / TILES_DOWN * IMAGES;
    const int images = min(BATCH - image, IMAGES), last = starts[filter + 1];
    __global const float *from = padded + (size_t)image * (CHANNELS * PLANE) + y * STRIDE * LINE + x;
    float sums[IMAGES];
#pragma unroll
    for (int n = 0; n < IMAGES; ++n) sums[n] = 0.0f;
    for (int first = starts[filter]; first < last; first += STAGED) {
        const int count = last - first < STAGED ? last - first : STAGED;
        for (uint i = item; i < (uint)count; i += ITEMS) {
            staged_values[i] = values[first + i];
            staged_offsets[i] = offsets[first + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int n = 0; n < IMAGES; ++n)
            if (n < images)
                for (int i = 0; i < count; ++i)
                    sums[n] = fma(staged_values[i], from[(size_t)n * (CHANNELS * PLANE) + staged_offsets[i]], sums[n]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __global float *to = out + ((size_t)image * FILTERS + filter) * (OUT_HEIGHT * OUT_WIDTH) + y * OUT_WIDTH + x;
    if (x < OUT_WIDTH && y < OUT_HEIGHT) {
#pragma unroll
        for (int n = 0; n < IMAGES; ++n)
            if (n < images) to[(size_t)n * (FILTERS * OUT_HEIGHT * OUT_WIDTH)] = sums[n];
    }
}
