__kernel void scale(__global const float *x, __global float *y, uint n, float factor) {
    y[0] = planted_undeclared_name;
}
