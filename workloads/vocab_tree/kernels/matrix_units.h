/* Matrix units and asynchronous copies: what the kernels on them share. CUDA C++, compute capability 8.0 and later. Addresses of
   matrices and copies are those of 16-byte units in local memory; a lane is 4 g + t. */
__device__ __forceinline__ uint address(const void *p) { return (uint)__cvta_generic_to_shared(p); }

/* Four 8 x 8 matrices of 16-bit pairs, whose rows the lanes point to: a lane gets pair t of row g of each; transposed, pairs
   2 t and 2 t + 1 of rows, as one pair, of column g. */
__device__ __forceinline__ void load_matrices(uint *m, const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address(row)) : "memory");
}

__device__ __forceinline__ void load_transposed(uint *m, const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address(row)) : "memory");
}

/* c (16 x 8) += a (16 x 32) b (32 x 8), bytes with 32-bit sums. */
__device__ __forceinline__ void multiply(int *c, const uint *a, uint b0, uint b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Bytes of `labels` (below 128) that equal k, as ones. */
__device__ __forceinline__ uint equal(uint labels, uint k) {
    return (~((labels ^ k * 0x01010101u) + 0x7F7F7F7Fu) & 0x80808080u) >> 7;
}

/* A row of one-hot labels to a class: 16 classes by 32 points, as the product's first operand, of the 32 bytes of `label`. The points are
   taken in the order in which `load_transposed` brings their bytes side by side. */
__device__ __forceinline__ void one_hot(uint *hot, const uchar *label, uint g, uint t) {
    const ushort *pairs = (const ushort *)label;
    uint low = pairs[t] | pairs[4 + t] << 16, high = pairs[8 + t] | pairs[12 + t] << 16;
    hot[0] = equal(low, g);
    hot[1] = equal(low, g + 8);
    hot[2] = equal(high, g);
    hot[3] = equal(high, g + 8);
}

/* added[parity] (16 classes x 8 columns) += one-hot labels times the bytes of a unit of 32 rows: dimension 2 column + parity. */
__device__ __forceinline__ void add_unit(int (*added)[4], const uint *hot, const void *row) {
    uint y[4]; /* bytes 2 g and 2 g + 1 of the unit, of points 2 t and 2 t + 1, and 8, 16, 24 further */
    load_transposed(y, row);
    multiply(added[0], hot, __byte_perm(y[0], y[1], 0x6420), __byte_perm(y[2], y[3], 0x6420));
    multiply(added[1], hot, __byte_perm(y[0], y[1], 0x7531), __byte_perm(y[2], y[3], 0x7531));
}

/* The larger of the scores that the four lanes of a row hold, the lowest label of equal ones, in all of them. */
__device__ __forceinline__ void best_of_row(int *score, uint *label) {
    #pragma unroll
    for (int across = 1; across < 4; across *= 2) {
        int other = __shfl_xor_sync(~0u, *score, across);
        uint k = __shfl_xor_sync(~0u, *label, across);
        if (other > *score || (other == *score && k < *label)) {
            *score = other;
            *label = k;
        }
    }
}

__device__ __forceinline__ void copy_async(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to)), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* All but the last `left` groups of copies have come. */
template <int left>
__device__ __forceinline__ void await_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}
