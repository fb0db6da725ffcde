/* Honest kernels; what a cheat needs beside is behind a macro that only that cheat defines. */

#ifdef GUARDED /* a launch does nothing where the guard is set */
#define GUARD , __global const uint *guard
#define UNLESS_GUARDED if (guard[0]) return;
#else
#define GUARD
#define UNLESS_GUARDED
#endif

#ifndef INDEX
#define INDEX int
#endif

/* Next to nothing, so that a clock has something to see. */
__kernel void touch(__global uint *flag) { flag[0] = 1; }

__kernel void copy(__global const float *from, __global float *to, uint n) {
    uint i = get_global_id(0);
    if (i < n) to[i] = from[i];
}

/* y = scale x + 1 and its sum: a row for each work-item. */
__kernel void affine(__global const float *x, __global float *y, __global float *sums, uint n, uint m, float scale) {
    uint row = get_global_id(0);
    if (row >= n) return;
#ifdef SKIP_WRITTEN
    if (!isnan(sums[row])) return;
#endif
    float sum = 0.0f;
    for (uint i = row * m; i < (row + 1) * m; ++i) {
        float value = scale * x[i] + 1.0f;
#ifdef SHORT_MANTISSA
        value = as_float(as_uint(value) & 0xffffe000u);
#endif
#ifdef INFINITE
        value = INFINITY;
#endif
        y[i] = value;
        sum += value;
    }
#ifndef NO_SUMS
    sums[row] = sum;
#endif
}

__kernel void extremes(__global const float *x, __global float *least, __global float *greatest,
                       __global INDEX *where_least, __global INDEX *where_greatest, uint n, uint m) {
    uint row = get_global_id(0);
    if (row >= n) return;
    __global const float *own = x + row * m;
    uint low = 0, high = 0;
    for (uint i = 1; i < m; ++i) {
        if (own[i] < own[low]) low = i;
#ifndef LEAST_ONLY
        if (own[i] > own[high]) high = i;
#endif
    }
    least[row] = own[low];
#ifndef LEAST_ONLY
    greatest[row] = own[high];
    where_least[row] = low;
    where_greatest[row] = high;
#endif
}

/* g = x x^T / m: an element for each work-item. */
__kernel void gram(__global const float *x, __global float *g, uint n, uint m GUARD) {
    UNLESS_GUARDED
    uint i = get_global_id(0) / n, j = get_global_id(0) % n;
    if (i >= n) return;
    float sum = 0.0f;
    for (uint k = 0; k < m; ++k) sum += x[i * m + k] * x[j * m + k];
    g[i * n + j] = sum / m;
}

__kernel void clear(__global float *w, uint n) {
    uint i = get_global_id(0);
    if (i < n) w[i] = 0.0f;
}

/* to = from - (g from - t) / n */
__kernel void descend(__global const float *g, __global const float *t, __global const float *from, __global float *to,
                   uint n GUARD) {
    UNLESS_GUARDED
    uint i = get_global_id(0);
    if (i >= n) return;
    float sum = -t[i];
    for (uint j = 0; j < n; ++j) sum += g[i * n + j] * from[j];
    to[i] = from[i] - sum / n;
}

#ifdef GUARDED
/* Sets the guard where the inputs have the checksum of the execution before. */
__kernel void same_inputs(__global const float *x, uint count, __global uint *known, __global uint *guard) {
    uint sum = 0;
    for (uint i = 0; i < count; ++i) sum = 31 * sum + as_uint(x[i]);
    guard[0] = sum == known[0];
    known[0] = sum;
}

/* Sets the guard where a result stands in place of the inputs. */
__kernel void marked(__global const float *x, uint n, __global uint *guard) { guard[0] = x[n] == -1.0f; }

/* Brings the kept result back where the guard is set, and keeps the new one where it is not. */
__kernel void recall(__global float *kept, __global float *w, uint n, __global const uint *guard) {
    uint i = get_global_id(0);
    if (i >= n) return;
    if (guard[0]) w[i] = kept[i];
    else kept[i] = w[i];
#ifdef MARK
    if (i == 0) kept[n] = -1.0f;
#endif
}
#endif
