/* Sums of vectors that lie one behind the other.
   GROUP   work-items per work-group, a power of two
   WIDTH   elements per load, 4, 8 or 16 (`sums_wide`)
   UNROLL  loads in flight per work-item (`sums_wide`)
   ROWS    vectors that a work-group takes, one after the other (`sums_wide`) */
#ifndef WIDTH
/* out[to + v] = the product of vector from + v of `raw` with a vector of ones: one work-group per vector. One launch does
   N vectors of the loop's matrix, or all N x N of the batch. */
__kernel void sums(__global const float *RESTRICT raw, __global const float *RESTRICT ones, uint length, uint from, uint to,
                   __global float *RESTRICT out) {
    LOCAL_ARRAY(float, part, GROUP);
    uint item = get_local_id(0);
    __global const float *x = raw + (size_t)(from + get_group_id(0)) * length;
    float sum = 0.0f;
    for (uint p = item; p < length; p += GROUP) sum = fma(x[p], ones[p], sum);
    part[item] = sum;
    for (uint reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) part[item] += part[item + reach];
    }
    if (item == 0) out[to + get_group_id(0)] = part[0];
}
#else
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDTH)
#define LOAD JOIN(vload, WIDTH)

/* out[v] = the sum of vector v. Loads are aligned to whole ones of `raw`, whatever the length: the elements of a vector in
   front of its first whole load and behind its last are added one by one. */
__kernel void sums_wide(__global const float *RESTRICT raw, uint length, uint vectors, __global float *RESTRICT out) {
    LOCAL_ARRAY(float, part, GROUP);
    uint item = get_local_id(0), row = get_group_id(0) * ROWS, rows = min(row + ROWS, vectors);
    for (; row < rows; ++row) {
        size_t begin = (size_t)row * length, end = begin + length;
        size_t first = (begin + WIDTH - 1) / WIDTH, last = end / WIDTH > first ? end / WIDTH : first;
        VECTOR sums[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) sums[u] = JOIN(SPLAT_FLOAT, WIDTH)(0.0f);
        size_t k = first + item;
        for (; k + (UNROLL - 1) * GROUP < last; k += UNROLL * GROUP) {
            #pragma unroll
            for (int u = 0; u < UNROLL; ++u) sums[u] += LOAD(k + u * GROUP, raw);
        }
        for (; k < last; k += GROUP) sums[0] += LOAD(k, raw);
        #pragma unroll
        for (int u = 1; u < UNROLL; ++u) sums[0] += sums[u];
        float sum = JOIN(hsum, WIDTH)(sums[0]);
        size_t head = first * WIDTH < end ? first * WIDTH : end;
        for (size_t p = begin + item; p < head; p += GROUP) sum += raw[p];
        for (size_t p = last * WIDTH + item; p < end; p += GROUP) sum += raw[p];
#if GROUP > 1
        part[item] = sum;
        for (uint reach = GROUP / 2; reach > 0; reach /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < reach) part[item] += part[item + reach];
        }
        if (item == 0) out[row] = part[0];
#if ROWS > 1
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
#else
        out[row] = sum;
#endif
    }
}
#endif
