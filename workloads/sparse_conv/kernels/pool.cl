/* ReLU and 2 x 2 maximum of maps of HEIGHT x WIDTH, both even. */
__kernel void pool(__global const float *RESTRICT in, __global float *RESTRICT out, int count) {
    const int item = get_global_id(0);
    if (item < count) {
        const int x = item % (WIDTH / 2), line = item / (WIDTH / 2);
        __global const float *at = in + (size_t)line * (2 * WIDTH) + 2 * x;
        out[item] = max(max(max(at[0], at[1]), max(at[WIDTH], at[WIDTH + 1])), 0.0f);
    }
}
