/* Re-layouts of a row-major matrix of n rows and NDIM columns, through 32 x 32 tiles in local memory so that both
   sides are coalesced. Padding is written as zeros. Launched with work-groups of (32, 8). */
#define TILE 32

void load_tile(__global const float *in, uint n, __local float *tile, size_t row, size_t column) {
    for (uint y = get_local_id(1); y < TILE; y += get_local_size(1)) {
        size_t r = row + y, c = column + get_local_id(0);
        tile[y * (TILE + 1) + get_local_id(0)] = r < n && c < NDIM ? in[r * NDIM + c] : 0.0f;
    }
}

/* out[d * pitch + i]: neighbouring points are neighbouring words. */
__kernel void column_major(__global const float *RESTRICT in, __global float *RESTRICT out, uint n, uint pitch) {
    LOCAL_ARRAY(float, tile, TILE * (TILE + 1));
    size_t row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    load_tile(in, n, tile, row, column);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint y = get_local_id(1); y < TILE; y += get_local_size(1)) {
        size_t d = column + y, i = row + get_local_id(0);
        if (d < NDIM && i < pitch) out[d * pitch + i] = tile[get_local_id(0) * (TILE + 1) + y];
    }
}

/* out[((d / 4) * pitch + i) * 4 + d % 4]: four dimensions of a point together, neighbouring points beside them. */
__kernel void blocked(__global const float *RESTRICT in, __global float *RESTRICT out, uint n, uint pitch) {
    LOCAL_ARRAY(float, tile, TILE * (TILE + 1));
    size_t row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    load_tile(in, n, tile, row, column);
    barrier(CLK_LOCAL_MEM_FENCE);
    /* 32 columns are 8 blocks; a row of the work-group writes the 32 points of one block. */
    for (uint b = get_local_id(1); b < TILE / 4; b += get_local_size(1)) {
        size_t block = column / 4 + b, i = row + get_local_id(0);
        __local const float *t = tile + get_local_id(0) * (TILE + 1) + 4 * b;
        if (block * 4 < NDIM && i < pitch) vstore4(MAKE_FLOAT4(t[0], t[1], t[2], t[3]), block * pitch + i, out);
    }
}

/* out[i * pitch + d]: rows padded to whole vectors. */
__kernel void pitched(__global const float *RESTRICT in, __global float *RESTRICT out, uint n, uint pitch) {
    size_t total = (size_t)n * pitch;
    for (size_t k = get_global_id(0); k < total; k += get_global_size(0)) {
        size_t i = k / pitch, d = k - i * pitch;
        out[k] = d < NDIM ? in[i * NDIM + d] : 0.0f;
    }
}
