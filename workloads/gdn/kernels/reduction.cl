/* out[first + v] = the product of vector v of `raw` with a vector of ones: one work-group per vector. One launch does N
   vectors of the loop's matrix, or all N x N of the batch. */
__kernel void sums(__global const float *RESTRICT raw, __global const float *RESTRICT ones, uint length, uint first,
                   __global float *RESTRICT out) {
    LOCAL_ARRAY(float, part, GROUP);
    uint item = get_local_id(0), vector = first + get_group_id(0);
    __global const float *x = raw + (size_t)vector * length;
    float sum = 0.0f;
    for (uint p = item; p < length; p += GROUP) sum = fma(x[p], ones[p], sum);
    part[item] = sum;
    for (uint reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) part[item] += part[item + reach];
    }
    if (item == 0) out[vector] = part[0];
}
