/* matrix[tap][image][pixel]: the inputs that each output is a product of. One work-item for each pixel, for a tap. */
#include "input.cl"

__kernel void im2col(__global const float *RESTRICT in, __global float *RESTRICT matrix, int first_image, int images) {
    const int item = get_global_id(0), tap = get_group_id(1);
    if (item < images * (OUT_HEIGHT * OUT_WIDTH)) {
        const int image = item / (OUT_HEIGHT * OUT_WIDTH), pixel = item % (OUT_HEIGHT * OUT_WIDTH);
        const int c = tap / (KERNEL_HEIGHT * KERNEL_WIDTH), r = tap / KERNEL_WIDTH % KERNEL_HEIGHT, s = tap % KERNEL_WIDTH;
        const int y = pixel / OUT_WIDTH * STRIDE - PADDING + r, x = pixel % OUT_WIDTH * STRIDE - PADDING + s;
        __global const float *maps = in + (size_t)(first_image + image) * (CHANNELS * HEIGHT * WIDTH);
        matrix[(size_t)tap * images * (OUT_HEIGHT * OUT_WIDTH) + item] = input_at(maps, c, y, x);
    }
}
