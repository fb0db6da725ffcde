/* y = 2 x, after so many dependent rounds that change nothing: the time grows with them. */
__kernel void rounds(__global const float *x, __global float *y, uint n, uint count, float one, float zero) {
    uint i = get_global_id(0);
    if (i >= n) return;
    float v = x[i];
    for (uint round = 0; round < count; round++) v = v * one + zero;
    y[i] = 2.0f * v;
}
