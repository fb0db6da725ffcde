/* Each kernel does one kind of work; one work-item per element, n of them, in work-groups of 32. */
#define ITEM uint i = get_global_id(0)

/* 12 FLOP: a fused multiply-add (8) and a subtraction (4) on four lanes; 16 bytes in and out. */
__kernel void wide(__global const float *x, __global float *y) {
    ITEM;
    float4 v = vload4(i, x);
    v = v * v + v;
    vstore4(v - 1.0f, i, y);
}

/* 2 + 2 + 7 + 3 FLOP: mad, fma, dot, and three additions of the sum of components (none of it four lanes wide). */
__kernel void builtins(__global const float *x, __global float *y) {
    ITEM;
    float4 v = vload4(i, x);
    y[i] = hsum4(MAKE_FLOAT4(mad(v.x, v.y, v.z), fma(v.y, v.z, v.w), dot(v, v), v.x));
}

/* 5 calls of special functions, 1 FLOP; comparison, selection, minimum, sign and conversion count nothing. */
__kernel void special(__global const float *x, __global float *y) {
    ITEM;
    float4 v = exp(vload4(i, x));
    float root = native_rsqrt(v.x);
    y[i] = fmin(v.y, -v.z) + (v.w > 1.5f ? fabs(root) : (float)(int)root);
}

/* 3 integer operations a round on data, in a loop whose counter and addresses are none; branches are on data. */
__kernel void hash(__global const uint *x, __global uint *y) {
    ITEM;
    uint h = x[i];
    for (uint k = 0; k < ROUNDS; ++k) {
        h ^= x[(i + k) % 32];
        h = h * 9u + 7u;
    }
    y[i] = h;
}

/* 1 operation on data, which a decision needs; 1 more for what half of the work-items store. */
__kernel void decide(__global const uint *x, __global uint *y) {
    ITEM;
    if ((x[i] & 1u) == 0u) y[i] = i * 3u;
}

/* 8 operations, although the dialect's emulation shifts and masks. */
__kernel void dot8(__global const uint *x, __global uint *y) {
    ITEM;
    y[i] = DOT4_U8(x[i], x[(i + 1) % 32], 5u);
}

/* Local memory: 4 bytes stored and two words read by each work-item. A private array is neither. */
__kernel void tile(__global const float *x, __global float *y) {
    LOCAL_ARRAY(float, shared, 32);
    ITEM;
    uint item = get_local_id(0);
    float own[4];
    for (uint k = 0; k < 4; ++k) own[(item + k) % 4] = x[i];
    shared[item] = own[item % 4];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = shared[(item + 1) % 32] + shared[(item + 2) % 32];
}

/* One global and two local atomics by each work-item, one global by each work-group. */
__kernel void atomics(__global const uint *x, __global uint *y) {
    LOCAL_ARRAY(uint, counts, 4);
    ITEM;
    uint item = get_local_id(0);
    if (item < 4) counts[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(counts + i % 4);
    atomic_max(counts + (i + 1) % 4, x[i] & 7u);
    atomic_add(y, 1u);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) atomic_add(y + 1, counts[0]);
}

/* 16 bytes read from one image and written to another. */
__kernel void picture(__read_only image2d_t from, __write_only image2d_t to, __global float *y) {
    ITEM;
    const sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
    float4 v = read_imagef(from, nearest, MAKE_INT2((int)i, 0));
    write_imagef(to, MAKE_INT2((int)i, 0), v);
    y[i] = v.x;
}

/* The constant address space. */
__kernel void constants(__constant float *c, __global float *y) {
    ITEM;
    y[i] = c[i % 8];
}

/* Accesses: work-items read x at `STRIDE` words from each other (0: one word for all). */
__kernel void strided(__global const float *x, __global float *y) {
    ITEM;
    y[i] = x[i * STRIDE];
}

/* A launch outside the window: not counted. */
__kernel void clear(__global float *y) {
    ITEM;
    y[i] = 3.0f * y[i];
}
