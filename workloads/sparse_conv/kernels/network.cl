/* The pruned network in one launch: a work-group takes IMAGES images through all layers in local memory, one work-item
   for each of an image's PIXELS outputs of the second layer. In front of this file stands what is generated for the
   weights (fused.py): first_layer(from, to), the first layer's outputs of one pooled pixel for all filters, and
   second_layer(from, sums), all filters of one pixel.

   Local memory of an image: its pixels, then the FIRST pooled maps; later in their place the SECOND maps of the second
   layer, even rows in front of odd ones, so that a warp's rows lie in different banks when it reads the pooled maps.
   The last layer's weights are data: ENTRIES pairs of place and value for each of LANES work-items. */
#define PIXELS (LAST * LAST)
#define HALF (PIXELS / 2)
#define ITEMS (IMAGES * PIXELS)
#define IMAGE (SIDE * SIDE)
#define PLANE (MIDDLE * MIDDLE)
#define AREA (IMAGE + FIRST * PLANE)
#define TABLE (ENTRIES * LANES)

__kernel REQD_GROUP_RESIDENT(ITEMS, 1) void network(__global const float *RESTRICT in, __global const float *RESTRICT table,
                                                    __global float *RESTRICT out) {
    RESIDENT_GROUPS(ITEMS, 1);
    LOCAL_ARENA(float, areas, IMAGES *AREA + 2 * TABLE);
    LOCAL_ARRAY(float, parts, ITEMS);
    __local float *pairs = areas + IMAGES * AREA;
    const int item = get_local_id(0), first = get_group_id(0) * IMAGES, images = min(BATCH - first, IMAGES);
    for (int i = item; i < images * (IMAGE / 4); i += ITEMS)
        vstore4(vload4(i, in + (size_t)first * IMAGE), i % (IMAGE / 4), areas + i / (IMAGE / 4) * AREA);
    for (int i = item; i < TABLE; i += ITEMS) vstore2(vload2(i, table), i, pairs);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < images * PLANE; i += ITEMS) {
        __local float *area = areas + i / PLANE * AREA;
        const int pixel = i % PLANE;
        first_layer(area + pixel / MIDDLE * (2 * SIDE) + pixel % MIDDLE * 2, area + IMAGE + pixel);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    /* Work-items behind the last image compute that again and keep it for themselves. */
    const int mine = item / PIXELS, pixel = item % PIXELS;
    __local float *area = areas + min(mine, images - 1) * AREA;
    float sums[SECOND];
#pragma unroll
    for (int k = 0; k < SECOND; ++k) sums[k] = 0.0f;
    second_layer(area + IMAGE + (pixel % HALF / LAST * 2 + pixel / HALF) * MIDDLE + pixel % LAST, sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (mine < images) {
#pragma unroll
        for (int k = 0; k < SECOND; ++k) area[k * PIXELS + pixel] = sums[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    if (pixel < LANES) {
#pragma unroll
        for (int i = 0; i < ENTRIES; ++i) {
            const float2 pair = vload2(i * LANES + pixel, pairs);
            __local const float *at = area + (int)pair.x;
            const float2 even = vload2(0, at), odd = vload2(0, at + HALF);
            sum = fma(max(max(max(even.x, even.y), max(odd.x, odd.y)), 0.0f), pair.y, sum);
        }
    }
    parts[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (pixel < CLASSES && mine < images) {
        for (int i = pixel + CLASSES; i < LANES; i += CLASSES) sum += parts[item - pixel + i];
        out[(first + mine) * CLASSES + pixel] = sum;
    }
}
