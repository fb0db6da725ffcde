/* perfport kernel dialect, CUDA side: OpenCL C 1.2 kernels compile as CUDA C++ (docs/kernel-dialect.md). */
#define __kernel extern "C" __global__
#define __global
#define __local
#define __private
#define __constant const
#define __read_only
#define __write_only
#define RESTRICT __restrict__
#define INLINE __forceinline__
#define REQD_GROUP(x) __launch_bounds__(x)
#define REQD_GROUP_RESIDENT(x, groups) __launch_bounds__(x, groups)
#define RESIDENT_GROUPS(x, groups)
/* Helper functions of kernels are written as in OpenCL C; the build runs with -default-device. */

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_EPSILON 1.192092896e-07f
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#endif

/* Work-item functions. */
__device__ __forceinline__ size_t get_local_id(uint d) { return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z; }
__device__ __forceinline__ size_t get_group_id(uint d) { return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z; }
__device__ __forceinline__ size_t get_local_size(uint d) { return d == 0 ? blockDim.x : d == 1 ? blockDim.y : blockDim.z; }
__device__ __forceinline__ size_t get_num_groups(uint d) { return d == 0 ? gridDim.x : d == 1 ? gridDim.y : gridDim.z; }
__device__ __forceinline__ size_t get_global_id(uint d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }
__device__ __forceinline__ size_t get_global_size(uint d) { return get_num_groups(d) * get_local_size(d); }

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
__device__ __forceinline__ void barrier(int flags) {
    __syncthreads();
}
__device__ __forceinline__ void mem_fence(int flags) {
    if (flags & CLK_GLOBAL_MEM_FENCE) __threadfence(); else __threadfence_block();
}
#define HW_THREAD_ITEMS 32
#define HW_THREAD_SYNC() __syncwarp()
/* On both sides of a barrier of the grid: what a work-group wrote is seen by all that come after. */
#define DEVICE_FENCE() __threadfence()

#define LOCAL_ARRAY(type, name, count) __shared__ type name[count]
/* Dynamic; static in PTX for an OpenCL runtime, whose launches do not say how much it is. */
#ifdef PERFPORT_STATIC_ARENA
#define LOCAL_ARENA(type, name, count)                                                    \
    __shared__ __align__(16) unsigned char perfport_arena_[sizeof(type) * (count)];       \
    type *name = reinterpret_cast<type *>(perfport_arena_)
#else
#define LOCAL_ARENA(type, name, count)                                  \
    extern __shared__ __align__(16) unsigned char perfport_arena_[];    \
    type *name = reinterpret_cast<type *>(perfport_arena_)
#endif

/* A table in constant memory at file scope, followed by its initialiser; 64 KiB in all. zero is a kernel's argument
   of that value (see the OpenCL side). */
#define CONSTANT_TABLE(type, name, count) __constant__ type name[count]
#define CONSTANT_AT(name, i, zero) (name[i])

/* For CPUs' compilers. */
#define EXPLICIT_VECTORS(type)

/* Vector types: float2/4, int2/4, uint2/4, uchar4 are CUDA's own; the wider floats are structs of float4. */
struct __align__(16) float8 { float4 lo, hi; };
struct __align__(16) float16 { float8 lo, hi; };

#define MAKE_FLOAT2(a, b) make_float2((a), (b))
#define MAKE_FLOAT4(a, b, c, d) make_float4((a), (b), (c), (d))
#define MAKE_INT2(a, b) make_int2((a), (b))
#define MAKE_INT4(a, b, c, d) make_int4((a), (b), (c), (d))
#define MAKE_UINT4(a, b, c, d) make_uint4((a), (b), (c), (d))
__device__ __forceinline__ float4 SPLAT_FLOAT4(float a) { return make_float4(a, a, a, a); }
__device__ __forceinline__ float8 SPLAT_FLOAT8(float a) { float8 r; r.lo = SPLAT_FLOAT4(a); r.hi = r.lo; return r; }
__device__ __forceinline__ float16 SPLAT_FLOAT16(float a) { float16 r; r.lo = SPLAT_FLOAT8(a); r.hi = r.lo; return r; }

#define PP_OPS2(T, S, M, op)                                                                                     \
    __device__ __forceinline__ T operator op(T a, T b) { return M(a.x op b.x, a.y op b.y); }                     \
    __device__ __forceinline__ T operator op(T a, S b) { return M(a.x op b, a.y op b); }                         \
    __device__ __forceinline__ T operator op(S a, T b) { return M(a op b.x, a op b.y); }                         \
    __device__ __forceinline__ T &operator op##=(T &a, T b) { a = a op b; return a; }
#define PP_OPS4(T, S, M, op)                                                                                     \
    __device__ __forceinline__ T operator op(T a, T b) { return M(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w); } \
    __device__ __forceinline__ T operator op(T a, S b) { return M(a.x op b, a.y op b, a.z op b, a.w op b); }     \
    __device__ __forceinline__ T operator op(S a, T b) { return M(a op b.x, a op b.y, a op b.z, a op b.w); }     \
    __device__ __forceinline__ T &operator op##=(T &a, T b) { a = a op b; return a; }
#define PP_OPSW(T, op)                                                                                           \
    __device__ __forceinline__ T operator op(T a, T b) { T r; r.lo = a.lo op b.lo; r.hi = a.hi op b.hi; return r; } \
    __device__ __forceinline__ T &operator op##=(T &a, T b) { a = a op b; return a; }
#define PP_ARITH(P, T, S, M) P(T, S, M, +) P(T, S, M, -) P(T, S, M, *) P(T, S, M, /)
#define PP_BITS(P, T, S, M) P(T, S, M, &) P(T, S, M, |) P(T, S, M, ^)
PP_ARITH(PP_OPS2, float2, float, make_float2)
PP_ARITH(PP_OPS4, float4, float, make_float4)
PP_ARITH(PP_OPS2, int2, int, make_int2)
PP_ARITH(PP_OPS4, int4, int, make_int4)
PP_ARITH(PP_OPS2, uint2, uint, make_uint2)
PP_ARITH(PP_OPS4, uint4, uint, make_uint4)
PP_BITS(PP_OPS2, int2, int, make_int2)
PP_BITS(PP_OPS4, int4, int, make_int4)
PP_BITS(PP_OPS2, uint2, uint, make_uint2)
PP_BITS(PP_OPS4, uint4, uint, make_uint4)
PP_OPSW(float8, +) PP_OPSW(float8, -) PP_OPSW(float8, *)
PP_OPSW(float16, +) PP_OPSW(float16, -) PP_OPSW(float16, *)

__device__ __forceinline__ float hsum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }
__device__ __forceinline__ float hsum8(float8 v) { return hsum4(v.lo + v.hi); }
__device__ __forceinline__ float hsum16(float16 v) { return hsum8(v.lo + v.hi); }
/* The lower and the higher of two floats or of each component, neither of which is NaN. */
__device__ __forceinline__ float LOWER_OF(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ float HIGHER_OF(float a, float b) { return fmaxf(a, b); }
#define PP_EXTREMUM(OF, h4, h8, h16)                                                                                \
    __device__ __forceinline__ float4 OF(float4 a, float4 b) {                                                      \
        return make_float4(OF(a.x, b.x), OF(a.y, b.y), OF(a.z, b.z), OF(a.w, b.w));                                 \
    }                                                                                                               \
    __device__ __forceinline__ float8 OF(float8 a, float8 b) { float8 r; r.lo = OF(a.lo, b.lo); r.hi = OF(a.hi, b.hi); return r; } \
    __device__ __forceinline__ float16 OF(float16 a, float16 b) { float16 r; r.lo = OF(a.lo, b.lo); r.hi = OF(a.hi, b.hi); return r; } \
    __device__ __forceinline__ float h4(float4 v) { return OF(OF(v.x, v.y), OF(v.z, v.w)); }                        \
    __device__ __forceinline__ float h8(float8 v) { return h4(OF(v.lo, v.hi)); }                                    \
    __device__ __forceinline__ float h16(float16 v) { return h8(OF(v.lo, v.hi)); }
PP_EXTREMUM(LOWER_OF, hmin4, hmin8, hmin16)
PP_EXTREMUM(HIGHER_OF, hmax4, hmax8, hmax16)
__device__ __forceinline__ float dot(float4 a, float4 b) { return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, a.x * b.x))); }
__device__ __forceinline__ float dot(float2 a, float2 b) { return fmaf(a.y, b.y, a.x * b.x); }

/* fma and mad: contracted on both sides of the dialect. */
__device__ __forceinline__ float mad(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ float4 fma(float4 a, float4 b, float4 c) {
    return make_float4(fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w));
}
__device__ __forceinline__ float8 fma(float8 a, float8 b, float8 c) {
    float8 r; r.lo = fma(a.lo, b.lo, c.lo); r.hi = fma(a.hi, b.hi, c.hi); return r;
}
__device__ __forceinline__ float16 fma(float16 a, float16 b, float16 c) {
    float16 r; r.lo = fma(a.lo, b.lo, c.lo); r.hi = fma(a.hi, b.hi, c.hi); return r;
}
__device__ __forceinline__ float4 exp(float4 v) { return make_float4(expf(v.x), expf(v.y), expf(v.z), expf(v.w)); }
__device__ __forceinline__ float8 exp(float8 v) { float8 r; r.lo = exp(v.lo); r.hi = exp(v.hi); return r; }
__device__ __forceinline__ float16 exp(float16 v) { float16 r; r.lo = exp(v.lo); r.hi = exp(v.hi); return r; }
/* 32 bits: __mul24 first extends 24 bits to 32, which costs more than it saves since devices multiply 32 bits at full rate. */
__device__ __forceinline__ int mad24(int a, int b, int c) { return a * b + c; }
__device__ __forceinline__ uint mad24(uint a, uint b, uint c) { return a * b + c; }
__device__ __forceinline__ int mul24(int a, int b) { return __mul24(a, b); }
__device__ __forceinline__ uint mul24(uint a, uint b) { return __umul24(a, b); }

/* select(a, b, c): b where c is true (scalars: c != 0; vectors: the sign bit of c's component). */
__device__ __forceinline__ float select(float a, float b, int c) { return c ? b : a; }
__device__ __forceinline__ int select(int a, int b, int c) { return c ? b : a; }
__device__ __forceinline__ uint select(uint a, uint b, int c) { return c ? b : a; }
__device__ __forceinline__ uint select(uint a, uint b, uint c) { return c ? b : a; }
__device__ __forceinline__ float4 select(float4 a, float4 b, int4 c) {
    return make_float4(c.x < 0 ? b.x : a.x, c.y < 0 ? b.y : a.y, c.z < 0 ? b.z : a.z, c.w < 0 ? b.w : a.w);
}
__device__ __forceinline__ int4 select(int4 a, int4 b, int4 c) {
    return make_int4(c.x < 0 ? b.x : a.x, c.y < 0 ? b.y : a.y, c.z < 0 ? b.z : a.z, c.w < 0 ? b.w : a.w);
}
/* Comparisons of vectors: -1 where true, 0 elsewhere. */
__device__ __forceinline__ int4 operator<(float4 a, float4 b) {
    return make_int4(-(a.x < b.x), -(a.y < b.y), -(a.z < b.z), -(a.w < b.w));
}
__device__ __forceinline__ int4 operator>(float4 a, float4 b) { return b < a; }

/* Vector loads and stores. On CUDA they need the vector's own alignment (16 bytes at most). */
__device__ __forceinline__ float2 vload2(size_t i, const float *p) { return reinterpret_cast<const float2 *>(p)[i]; }
__device__ __forceinline__ float4 vload4(size_t i, const float *p) { return reinterpret_cast<const float4 *>(p)[i]; }
__device__ __forceinline__ int4 vload4(size_t i, const int *p) { return reinterpret_cast<const int4 *>(p)[i]; }
__device__ __forceinline__ uint4 vload4(size_t i, const uint *p) { return reinterpret_cast<const uint4 *>(p)[i]; }
__device__ __forceinline__ float8 vload8(size_t i, const float *p) {
    float8 r; r.lo = vload4(2 * i, p); r.hi = vload4(2 * i + 1, p); return r;
}
__device__ __forceinline__ float16 vload16(size_t i, const float *p) {
    float16 r; r.lo = vload8(2 * i, p); r.hi = vload8(2 * i + 1, p); return r;
}
__device__ __forceinline__ void vstore2(float2 v, size_t i, float *p) { reinterpret_cast<float2 *>(p)[i] = v; }
__device__ __forceinline__ void vstore4(float4 v, size_t i, float *p) { reinterpret_cast<float4 *>(p)[i] = v; }
__device__ __forceinline__ void vstore4(int4 v, size_t i, int *p) { reinterpret_cast<int4 *>(p)[i] = v; }
__device__ __forceinline__ void vstore4(uint4 v, size_t i, uint *p) { reinterpret_cast<uint4 *>(p)[i] = v; }
__device__ __forceinline__ void vstore8(float8 v, size_t i, float *p) { vstore4(v.lo, 2 * i, p); vstore4(v.hi, 2 * i + 1, p); }
__device__ __forceinline__ void vstore16(float16 v, size_t i, float *p) { vstore8(v.lo, 2 * i, p); vstore8(v.hi, 2 * i + 1, p); }
#define PREFETCH(p) /* a CPU matter: see the OpenCL side */

/* A load that the first-level cache does not serve. */
__device__ __forceinline__ float4 LOAD_PAST_L1_4(size_t i, const float *p) { return __ldcg(reinterpret_cast<const float4 *>(p) + i); }

/* Loads and stores of floats that are not used again soon: they go to the front of the queue for eviction. */
__device__ __forceinline__ float STREAM_LOAD1(size_t i, const float *p) { return __ldcs(p + i); }
__device__ __forceinline__ float4 STREAM_LOAD4(size_t i, const float *p) { return __ldcs(reinterpret_cast<const float4 *>(p) + i); }
__device__ __forceinline__ float8 STREAM_LOAD8(size_t i, const float *p) {
    float8 r; r.lo = STREAM_LOAD4(2 * i, p); r.hi = STREAM_LOAD4(2 * i + 1, p); return r;
}
__device__ __forceinline__ float16 STREAM_LOAD16(size_t i, const float *p) {
    float16 r; r.lo = STREAM_LOAD8(2 * i, p); r.hi = STREAM_LOAD8(2 * i + 1, p); return r;
}
__device__ __forceinline__ void STREAM_STORE1(float v, size_t i, float *p) { __stcs(p + i, v); }
__device__ __forceinline__ void STREAM_STORE4(float4 v, size_t i, float *p) { __stcs(reinterpret_cast<float4 *>(p) + i, v); }
__device__ __forceinline__ void STREAM_STORE8(float8 v, size_t i, float *p) {
    STREAM_STORE4(v.lo, 2 * i, p); STREAM_STORE4(v.hi, 2 * i + 1, p);
}
__device__ __forceinline__ void STREAM_STORE16(float16 v, size_t i, float *p) {
    STREAM_STORE8(v.lo, 2 * i, p); STREAM_STORE8(v.hi, 2 * i + 1, p);
}

/* Type punning and conversions. */
__device__ __forceinline__ uint as_uint(float a) { return __float_as_uint(a); }
__device__ __forceinline__ int as_int(float a) { return __float_as_int(a); }
__device__ __forceinline__ float as_float(uint a) { return __uint_as_float(a); }
__device__ __forceinline__ float as_float(int a) { return __int_as_float(a); }
__device__ __forceinline__ float convert_float(uint a) { return static_cast<float>(a); }
__device__ __forceinline__ float convert_float(int a) { return static_cast<float>(a); }
#define native_exp __expf
__device__ __forceinline__ float native_rsqrt(float x) { float r; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ uint mul_hi(uint a, uint b) { return __umulhi(a, b); }

/* 32-bit atomics of OpenCL C 1.2. */
#define atomic_inc(p) atomicAdd((p), 1)
#define atomic_add(p, v) atomicAdd((p), (v))
#define atomic_min(p, v) atomicMin((p), (v))
#define atomic_max(p, v) atomicMax((p), (v))
#define atomic_or(p, v) atomicOr((p), (v))
#define atomic_xchg(p, v) atomicExch((p), (v))
#define atomic_cmpxchg(p, c, v) atomicCAS((p), (c), (v))
/* Words that other work-items change meanwhile: a plain access that the compiler must make. */
__device__ __forceinline__ uint ATOMIC_LOAD(const volatile uint *p) { return *p; }
__device__ __forceinline__ void ATOMIC_STORE(volatile uint *p, uint v) { *p = v; }

__device__ __forceinline__ uint DOT4_U8(uint a, uint b, uint c) {
#if __CUDA_ARCH__ >= 610
    return __dp4a(a, b, c);
#else
    return c + (a & 0xffu) * (b & 0xffu) + ((a >> 8) & 0xffu) * ((b >> 8) & 0xffu) +
           ((a >> 16) & 0xffu) * ((b >> 16) & 0xffu) + (a >> 24) * (b >> 24);
#endif
}

/* Images: RGBA float, unnormalised coordinates, nearest, clamp; the read handle is a texture object, the write
   handle a surface object, both 64-bit values. Inline PTX, because NVRTC sees no texture headers. */
typedef unsigned long long image2d_t;
typedef int sampler_t;
#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_ADDRESS_CLAMP 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 0
#define CLK_FILTER_NEAREST 0
__device__ __forceinline__ float4 read_imagef(image2d_t image, sampler_t, int2 at) {
    float4 v;
    asm volatile("tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(image), "r"(at.x), "r"(at.y));
    return v;
}
__device__ __forceinline__ void write_imagef(image2d_t image, int2 at, float4 v) {
    asm volatile("sust.b.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};" ::"l"(image), "r"(at.x * 16), "r"(at.y),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
