/* Matrix units, by inline PTX in CUDA C++. OPERAND chooses the operands' type: 0 tf32, 1 bf16, 2 int8. */
#if OPERAND == 2
typedef int result;
#define INOUT(x) "+r"(x)
#else
typedef float result;
#define INOUT(x) "+f"(x)
#endif

#ifdef MMA
/* One warp's mma.sync of 16 x 8 x K (compute capability 8.0 and later), on CHAINS independent tiles of results. */
#if OPERAND == 0
#define MMA_SYNC "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#elif OPERAND == 1
#define MMA_SYNC "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA_SYNC "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
#endif

__kernel void mma(__global const uint *RESTRICT data, __global result *RESTRICT out, int steps) {
    uint lane = threadIdx.x & 31;
    uint a[4], b[CHAINS][2];
    #pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = data[i * 32 + lane];
    result d[CHAINS][4];
    #pragma unroll
    for (int k = 0; k < CHAINS; ++k) {
        b[k][0] = data[128 + k * 64 + lane];
        b[k][1] = data[160 + k * 64 + lane];
        d[k][0] = d[k][1] = d[k][2] = d[k][3] = 0;
    }
    for (int s = 0; s < steps; ++s) {
        #pragma unroll
        for (int k = 0; k < CHAINS; ++k)
            asm volatile(MMA_SYNC " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : INOUT(d[k][0]), INOUT(d[k][1]), INOUT(d[k][2]), INOUT(d[k][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[k][0]), "r"(b[k][1]));
    }
    result sum = 0;
    #pragma unroll
    for (int k = 0; k < CHAINS; ++k) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
    out[get_global_id(0)] = sum;
}
#endif

#ifdef WGMMA
/* One warpgroup's wgmma of 64 x 256 x 32 bytes (target sm_90a), both operands in shared memory, SLICES of them in flight.
   A tile is made of 8 x 16-byte core matrices, 128 bytes each, without swizzle: two side by side along k, then down. */
#define SLICES 4
#define A_BYTES (64 * 32)
#define B_BYTES (256 * 32)
#if OPERAND == 0
#define WGMMA_ASYNC "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32"
#define SCALES ", 1, 1"
#elif OPERAND == 1
#define WGMMA_ASYNC "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
#define SCALES ", 1, 1, 0, 0"
#else
#define WGMMA_ASYNC "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8"
#define SCALES ""
#endif
#define INOUT4(i) INOUT(d[i]), INOUT(d[i + 1]), INOUT(d[i + 2]), INOUT(d[i + 3])
#define INOUT16(i) INOUT4(i), INOUT4(i + 4), INOUT4(i + 8), INOUT4(i + 12)
#define INOUT64(i) INOUT16(i), INOUT16(i + 16), INOUT16(i + 32), INOUT16(i + 48)
#define D128 \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

/* Start address, distance of core matrices along k (128 bytes) and down (256 bytes), each in units of 16 bytes. */
__device__ __forceinline__ unsigned long long descriptor(uint address) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (128ull >> 4 << 16) | (256ull >> 4 << 32);
}

__kernel void REQD_GROUP(GROUP) wgmma(__global const uint *RESTRICT data, __global result *RESTRICT out, int steps) {
    __shared__ __align__(1024) uint tile[SLICES * (GROUP / 128 * A_BYTES + B_BYTES) / 4];
    for (uint i = threadIdx.x; i < sizeof(tile) / 4; i += GROUP) tile[i] = data[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    uint b0 = static_cast<uint>(__cvta_generic_to_shared(tile));
    uint a0 = b0 + SLICES * (B_BYTES + threadIdx.x / 128 * A_BYTES);
    result d[128];
    #pragma unroll
    for (int i = 0; i < 128; ++i) d[i] = 0;
    for (int s = 0; s < steps; ++s) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        #pragma unroll
        for (int k = 0; k < SLICES; ++k)
            asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0;\n" WGMMA_ASYNC " {" D128 "}, %128, %129, p" SCALES ";}"
                         : INOUT64(0), INOUT64(64)
                         : "l"(descriptor(a0 + k * A_BYTES)), "l"(descriptor(b0 + k * B_BYTES)), "r"(1));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    #pragma unroll
    for (int i = 0; i < 128; ++i) asm volatile("" : INOUT(d[i])::"memory");
    result sum = 0;
    #pragma unroll
    for (int i = 0; i < 128; ++i) sum += d[i];
    out[get_global_id(0)] = sum;
}
#endif
