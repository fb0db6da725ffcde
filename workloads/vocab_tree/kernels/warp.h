/* Instructions of a warp that CUDA C++ has no name for, compute capability 8.0 and later: all inline PTX of the kernels on matrix
   units. Matrices and copies are addressed by 16-byte units in local memory; a lane is 4 g + t. */
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

/* c (16 x 8) += a (16 x 16) b (16 x 8): the first half of the operands above. */
__device__ __forceinline__ void multiply_half(int *c, const uint *a, uint b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
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

/* Adds to a word of local memory, by its address. */
__device__ __forceinline__ void add_local(uint at, uint value) {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

__device__ __forceinline__ void prefetch_l2(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
