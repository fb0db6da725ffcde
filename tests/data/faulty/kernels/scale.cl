__kernel void scale(__global const float *x, __global float *y, uint n, float factor) {
    uint i = get_global_id(0);
    if (i < n) y[i] = x[i] * factor;
}

#ifdef FOREVER
__kernel void forever(__global volatile int *flag, __global float *y) {
    while (flag[0] == 0) y[get_global_id(0)] = 0.0f;
}
#endif
